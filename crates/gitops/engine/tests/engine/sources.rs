//! Repositories in memory: commits are trees that tests write.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fairway_gitops_appset::generator::PullRequest;
use fairway_gitops_engine::appset::pulls::{Asked, HostedPulls, Pulls, PullsError};
use fairway_gitops_engine::sources::{Answer, News, Repository, RevisionMetadata, SourceError, Sources};
use fairway_gitops_tree::Tree;
use tokio::sync::broadcast;

type Files = BTreeMap<String, String>;

#[derive(Default)]
struct Repo {
    commits: Vec<Files>,
    unreachable: bool,
}

pub(crate) struct Memory {
    repos: Mutex<HashMap<String, Repo>>,
    news: broadcast::Sender<News>,
    /// How many trees were asked for: each is a render.
    pub(crate) renders: AtomicUsize,
    /// Whoever holds it keeps trees back.
    pub(crate) gate: tokio::sync::RwLock<()>,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            repos: Mutex::default(),
            news: broadcast::channel(64).0,
            renders: AtomicUsize::new(0),
            gate: tokio::sync::RwLock::default(),
        })
    }

    /// Commits files over those that are there; an empty file is deleted. Returns the commit.
    pub(crate) fn push(&self, url: &str, files: &[(&str, &str)]) -> String {
        self.push_asked(url, files, 0)
    }

    /// The same, for somebody who waits for an answer.
    pub(crate) fn push_asked(&self, url: &str, files: &[(&str, &str)], asked_by: u64) -> String {
        let commit = self.commit(url, files);
        let news = News {
            asked_by,
            ..News::of(url)
        };
        let _ = self.news.send(news);
        commit
    }

    /// The same, and nobody hears of it.
    pub(crate) fn commit(&self, url: &str, files: &[(&str, &str)]) -> String {
        let mut repos = self.repos.lock().unwrap();
        let repo = repos.entry(url.to_owned()).or_default();
        let mut tree = repo.commits.last().cloned().unwrap_or_default();
        for (path, content) in files {
            match content.is_empty() {
                true => tree.remove(*path),
                false => tree.insert((*path).to_owned(), (*content).to_owned()),
            };
        }
        repo.commits.push(tree);
        id(repo.commits.len() - 1)
    }

    pub(crate) fn set_unreachable(&self, url: &str, unreachable: bool) {
        self.repos
            .lock()
            .unwrap()
            .entry(url.to_owned())
            .or_default()
            .unreachable = unreachable;
        let _ = self.news.send(News::of(url));
    }

    fn files(&self, repository: &Repository, commit: &str) -> Result<Files, SourceError> {
        let repos = self.repos.lock().unwrap();
        let repo = repos.get(&repository.url);
        let repo = repo.ok_or_else(|| SourceError::Missing(format!("repository {repository} not found")))?;
        let number = usize::from_str_radix(commit.trim_start_matches('c'), 16).unwrap_or(usize::MAX);
        repo.commits
            .get(number)
            .cloned()
            .ok_or_else(|| SourceError::Missing(format!("unable to resolve '{commit}' to a commit SHA")))
    }
}

fn id(number: usize) -> String {
    format!("c{number:039x}")
}

impl Sources for Memory {
    fn resolve<'a>(&'a self, repository: &'a Repository, revision: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            let repos = self.repos.lock().unwrap();
            let repo = repos.get(&repository.url);
            let repo =
                repo.ok_or_else(|| SourceError::Missing(format!("repository {repository} not found")))?;
            if repo.unreachable {
                return Err(SourceError::Unreachable(format!(
                    "{repository} cannot be reached"
                )));
            }
            match revision {
                "" | "HEAD" | "main" => Ok(id(repo.commits.len() - 1)),
                commit if commit.starts_with('c') => Ok(commit.to_owned()),
                other => Err(SourceError::Missing(format!(
                    "unable to resolve '{other}' to a commit SHA"
                ))),
            }
        })
    }

    fn tree<'a>(&'a self, repository: &'a Repository, commit: &'a str) -> Answer<'a, Tree> {
        Box::pin(async move {
            self.renders.fetch_add(1, Ordering::SeqCst);
            drop(self.gate.read().await);
            let files = self.files(repository, commit)?;
            Ok(Tree::of(files.into_iter().map(|(path, text)| (path, text.into_bytes()))).unwrap())
        })
    }

    fn changed<'a>(
        &'a self,
        repository: &'a Repository,
        old: &'a str,
        new: &'a str,
    ) -> Answer<'a, Vec<String>> {
        Box::pin(async move {
            let (old, new) = (self.files(repository, old)?, self.files(repository, new)?);
            let paths = old
                .keys()
                .chain(new.keys().filter(|path| !old.contains_key(*path)));
            Ok(paths
                .filter(|path| old.get(*path) != new.get(*path))
                .cloned()
                .collect())
        })
    }

    fn metadata<'a>(&'a self, _: &'a Repository, _: &'a str) -> Answer<'a, RevisionMetadata> {
        Box::pin(async { Ok(RevisionMetadata::default()) })
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

/// A host whose repositories have the pull requests that tests say.
#[derive(Default)]
pub(crate) struct HostOfPulls(Mutex<BTreeMap<String, Vec<PullRequest>>>);

impl HostOfPulls {
    pub(crate) const URL: &'static str = "https://git.example.com";

    pub(crate) fn set(&self, repository: &str, pulls: Vec<PullRequest>) {
        self.0.lock().unwrap().insert(repository.to_owned(), pulls);
    }
}

impl HostedPulls for HostOfPulls {
    fn address(&self, asked: &Asked) -> Option<String> {
        (asked.api == Self::URL).then(|| format!("{}/{}/{}.git", Self::URL, asked.owner, asked.name))
    }

    fn open<'a>(&'a self, asked: &'a Asked) -> Pulls<'a> {
        Box::pin(async move {
            let all = self.0.lock().unwrap();
            let found = all.get(&format!("{}/{}", asked.owner, asked.name));
            found
                .cloned()
                .ok_or_else(|| PullsError::NotFound("there is no such repository".to_owned()))
        })
    }
}
