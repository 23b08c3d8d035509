//! Manifests from Git: repositories of this installation where they are, and copies of others.
//!
//! A copy is brought up to date when somebody resolves a revision and the last time is long enough ago, and by a task that
//! goes round the copies that are in use; what moves is told as a push is. Credentials are those of Argo CD's Secrets
//! (`repository`, `repo-creds`) in the workspace of the application.

pub(crate) mod wake;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::{Clients, Shutdown};
use fairway_gitops_git::{Git, GitError, Merged, NewCommit, ObjectId, Remote, Repository as Bare, Signature};
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_tree::{Limits, Tree};
use sha2::{Digest as _, Sha256};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::{Answer, News, Repository, RevisionMetadata, SourceError, Sources, credentials};

/// How old a copy may be.
const FRESH: Duration = Duration::from_secs(180);
/// How many pushes may wait to be heard of.
const HEARD: usize = 1024;
/// How many copies are kept track of; each costs a look at its origin every few minutes.
const MOST: usize = 4096;

/// Finds the repositories of this installation by their addresses.
pub type Hosted = Box<dyn Fn(&Repository) -> Option<PathBuf> + Send + Sync>;

/// How repositories of this installation are reached that belong to another workspace than the Application: as anybody
/// reaches them, with a token of that workspace.
pub struct OwnHost {
    /// The address of the host, which all repositories begin with.
    pub url: String,
    /// Where it listens: `HOST:PORT:ADDRESS`. Its name need not be known to the machine.
    pub at: String,
    /// The certificates by which it is known, in PEM.
    pub authority: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

impl OwnHost {
    fn has(&self, url: &str) -> bool {
        let (url, _) = fairway_gitops_git::split_credentials(url);
        url.strip_prefix(&self.url)
            .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// Git repositories.
pub struct GitSources {
    git: Git,
    /// Where copies are.
    copies: PathBuf,
    hosted: Hosted,
    own: Option<OwnHost>,
    clients: Clients,
    news: broadcast::Sender<News>,
    known: Mutex<HashMap<PathBuf, Arc<Mirrored>>>,
}

/// A copy of somebody else's repository.
struct Mirrored {
    repository: Repository,
    path: PathBuf,
    /// Whether something happened there that it does not have yet.
    is_stale: AtomicBool,
    /// Whether somebody was told that there is something new, and is about to look.
    is_called: AtomicBool,
    /// Held while it is brought up to date.
    fetched: tokio::sync::Mutex<Option<Instant>>,
}

impl GitSources {
    /// Repositories of this installation are found by `hosted`; copies of others are kept in a directory.
    pub fn new(
        git: Git,
        copies: PathBuf,
        hosted: Hosted,
        own: Option<OwnHost>,
        clients: Clients,
    ) -> Arc<Self> {
        Arc::new(Self {
            git,
            copies,
            hosted,
            own,
            clients,
            news: broadcast::channel(HEARD).0,
            known: Mutex::default(),
        })
    }

    /// Where news are told, for others who have some.
    pub(super) fn teller(&self) -> broadcast::Sender<News> {
        self.news.clone()
    }

    /// Tells that something was pushed; whether anybody has heard it. Nobody does before the engine runs. Copies of it are
    /// looked at before anybody uses them again.
    pub fn pushed(&self, news: News) -> bool {
        let pushed = normalize_url(&news.url);
        let copies: Vec<Arc<Mirrored>> = self.lock().values().cloned().collect();
        for copy in copies {
            if normalize_url(&copy.repository.url) == pushed {
                copy.is_stale.store(true, Ordering::Relaxed);
            }
        }
        self.tell(news)
    }

    fn tell(&self, news: News) -> bool {
        self.news.send(news).is_ok()
    }

    /// Looks again and again at the origins of copies, until the end.
    pub async fn follow(self: Arc<Self>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(FRESH) => {}
            }
            let copies: Vec<Arc<Mirrored>> = self.lock().values().cloned().collect();
            for copy in copies {
                if shutdown.is_shut_down() {
                    return;
                }
                // What cannot be reached is told to those who ask.
                if let Ok(true) = self.refresh(&copy, Duration::ZERO).await {
                    self.tell(News::of(&copy.repository.url));
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Mirrored>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy_of(&self, repository: &Repository) -> Arc<Mirrored> {
        // Who may read a repository depends on the workspace and the project.
        let named = format!(
            "{}\0{}\0{}",
            repository.workspace,
            repository.project,
            normalize_url(&repository.url)
        );
        let digest = Sha256::digest(named.as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let path = self.copies.join(format!("{name}.git"));
        let mut known = self.lock();
        if known.len() >= MOST {
            known.retain(|_, copy| Arc::strong_count(copy) > 1);
        }
        let copy = known.entry(path.clone()).or_insert_with(|| {
            Arc::new(Mirrored {
                repository: repository.clone(),
                path,
                is_stale: AtomicBool::new(false),
                is_called: AtomicBool::new(false),
                fetched: tokio::sync::Mutex::default(),
            })
        });
        Arc::clone(copy)
    }

    /// Brings a copy up to date if it is older than that; whether something moved.
    async fn refresh(&self, copy: &Mirrored, fresh: Duration) -> Result<bool, SourceError> {
        let mut fetched = copy.fetched.lock().await;
        let is_stale = copy.is_stale.swap(false, Ordering::Relaxed);
        if !is_stale && fetched.is_some_and(|at| at.elapsed() < fresh) {
            return Ok(false);
        }
        // Until it has worked, it has not been done.
        *fetched = None;
        let remote = self.remote(&copy.repository).await?;
        let bare = match Bare::open(&self.git, &copy.path) {
            Ok(bare) => bare,
            Err(_) => Bare::init(&self.git, &copy.path, "main")
                .await
                .map_err(|error| unreachable(&error))?,
        };
        let moved = remote.mirror(&bare).await.map_err(|error| unreachable(&error))?;
        *fetched = Some(Instant::now());
        Ok(!moved.moved.is_empty())
    }

    /// How a repository is reached.
    async fn remote(&self, repository: &Repository) -> Result<Remote, SourceError> {
        let mut remote = Remote::new(&repository.url).map_err(|error| missing(&error))?;
        let grant = credentials::grant(&self.clients, repository).await?;
        remote.take_secret(|name| grant.text(name).map(str::to_owned));
        remote.known_hosts = grant.known_hosts;
        remote.ca = grant.ca;
        if let Some(own) = self.own.as_ref().filter(|own| own.has(&repository.url)) {
            remote.ca = (own.authority)().or(remote.ca);
            remote.at = Some(own.at.clone());
        }
        Ok(remote)
    }

    /// The repository on disk. `fresh` is how old a copy may be.
    async fn bare(&self, repository: &Repository, fresh: Option<Duration>) -> Result<Bare, SourceError> {
        if let Some(path) = (self.hosted)(repository) {
            return Bare::open(&self.git, path).map_err(|error| missing(&error));
        }
        let copy = self.copy_of(repository);
        if let Some(fresh) = fresh {
            self.refresh(&copy, fresh).await?;
        }
        Bare::open(&self.git, &copy.path).map_err(|error| missing(&error))
    }
}

fn missing(error: &GitError) -> SourceError {
    SourceError::Missing(error.full())
}

fn unreachable(error: &GitError) -> SourceError {
    SourceError::Unreachable(error.full())
}

fn commit_id(commit: &str) -> Result<ObjectId, SourceError> {
    ObjectId::parse(commit).map_err(|error| missing(&error))
}

fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

impl Sources for GitSources {
    fn renew<'a>(&'a self, repository: &'a Repository, oldest: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            if oldest < FRESH {
                self.bare(repository, Some(oldest)).await?;
            }
            Ok(())
        })
    }

    fn resolve<'a>(&'a self, repository: &'a Repository, revision: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            // A commit stays what it is, so that its repository need not be asked if it is here.
            if let Ok(id) = ObjectId::parse(revision)
                && let Ok(bare) = self.bare(repository, None).await
                && bare.resolve(id.as_str()).await.is_ok()
            {
                return Ok(revision.to_owned());
            }
            let bare = self.bare(repository, Some(FRESH)).await?;
            match bare.resolve(revision).await {
                Ok(found) => Ok(found.as_str().to_owned()),
                Err(error @ GitError::UnknownRevision { .. }) => Err(missing(&error)),
                Err(error) => Err(unreachable(&error)),
            }
        })
    }

    fn tree<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, Tree> {
        Box::pin(async move {
            let bare = self.bare(repository, None).await?;
            let id = commit_id(commit)?;
            bare.tree(&id, Limits::default())
                .await
                .map_err(|error| missing(&error))
        })
    }

    fn changed<'a>(
        &'a self,
        repository: &'a Repository,
        old: &'a str,
        new: &'a str,
    ) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            let bare = self.bare(repository, None).await?;
            let (old, new) = (commit_id(old)?, commit_id(new)?);
            bare.changed_paths(Some(&old), &new)
                .await
                .map_err(|error| missing(&error))
        })
    }

    fn merged<'a>(&'a self, repository: &'a Repository, base: &'a str, head: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            let bare = self.bare(repository, None).await?;
            let (ours, theirs) = (commit_id(base)?, commit_id(head)?);
            let broken = |error: GitError| unreachable(&error);
            if bare.is_ancestor(&ours, &theirs).await.map_err(broken)? {
                return Ok(head.to_owned());
            }
            let tree = match bare.merge_trees(&ours, &theirs).await.map_err(broken)? {
                Merged::Tree(tree) => tree,
                Merged::Conflicts(paths) => {
                    return Err(SourceError::Missing(format!(
                        "{} cannot be merged into {}: they disagree in {}",
                        short(head),
                        short(base),
                        paths.join(", ")
                    )));
                }
            };
            // Always the same for the same two, so that a plan that is asked for again leaves nothing more behind. No
            // reference points to it: it goes when the repository is tidied up.
            let nobody = Signature {
                name: "Fairway".to_owned(),
                email: "fairway@localhost".to_owned(),
                seconds: 0,
                offset_minutes: 0,
            };
            let merge = NewCommit {
                parents: vec![ours, theirs],
                changes: Vec::new(),
                author: nobody.clone(),
                committer: nobody,
                message: "What a merge would be\n".to_owned(),
            };
            let commit = bare.commit_tree(&tree, &merge).await.map_err(broken)?;
            Ok(commit.as_str().to_owned())
        })
    }

    fn metadata<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, RevisionMetadata> {
        Box::pin(async move {
            let bare = self.bare(repository, None).await?;
            let id = commit_id(commit)?;
            let info = bare.commit_info(&id).await.map_err(|error| missing(&error))?;
            Ok(RevisionMetadata {
                author: format!("{} <{}>", info.author.name, info.author.email),
                date: info.author.seconds,
                tags: bare.tags_of(&id).await.unwrap_or_default(),
                message: info.message,
            })
        })
    }

    fn refresh<'a>(&'a self, repository: &'a Repository, _: &'a [String]) -> Answer<'a, ()> {
        Box::pin(async move {
            if (self.hosted)(repository).is_none() {
                self.copy_of(repository).is_stale.store(true, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}
