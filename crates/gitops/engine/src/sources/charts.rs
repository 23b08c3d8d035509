//! Charts from repositories over HTTP and from registries, and manifests from images.
//!
//! What a repository has is remembered for three minutes, and looked at again by a task that goes round the repositories that
//! are in use; what changes is told as a push is. A version of a chart is fetched once and kept on disk, until somebody asks
//! for a hard refresh. Who may see what depends on the workspace and the project, so nothing is shared between them but
//! bytes on disk.

mod cache;
mod fetch;
mod listing;
mod registry;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::{Clients, Shutdown, WorkspaceId};
use fairway_gitops_chartrepo::{Unusable, Url, version};
use fairway_gitops_helm::{ArchiveLimits, unpack_chart};
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_tree::Tree;
use http::StatusCode;
use tokio::sync::broadcast;

use super::credentials::{self, Grant, Secrets};
use super::web::{self, Ask, Web};
use super::{Archive, DependencyRequest, News, Repository, RevisionMetadata, SourceError};
use cache::Cache;
use fetch::{name_of, unpacked};
use listing::{Listed, Stamped};

/// How old what is known of a repository may be.
const FRESH: Duration = Duration::from_secs(180);
/// How soon a repository that did not answer, or that lacks something, is asked again.
const AGAIN: Duration = Duration::from_secs(10);
/// The largest archive of a chart or layer of an image.
const MAX_ARCHIVE: usize = 64 << 20;
/// The largest file of values.
const MAX_DOCUMENT: usize = 4 << 20;
/// How much is kept on disk.
const MAX_CACHE: u64 = 1 << 30;
/// How many repositories are kept track of.
const MOST: usize = 1024;

/// Charts and images.
pub struct ChartSources {
    web: Web,
    clients: Clients,
    cache: Arc<Cache>,
    news: broadcast::Sender<News>,
    known: Mutex<HashMap<Key, Arc<Listed>>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    workspace: WorkspaceId,
    project: String,
    url: String,
    /// None: as a repository of the Application. Otherwise as one that a chart names, with or without credentials.
    lent: Option<bool>,
}

impl ChartSources {
    /// Charts are kept in a directory; news are told where those of others are.
    pub fn new(directory: PathBuf, clients: Clients, news: broadcast::Sender<News>) -> Arc<Self> {
        Arc::new(Self {
            web: Web::default(),
            clients,
            cache: Cache::new(directory, MAX_CACHE),
            news,
            known: Mutex::default(),
        })
    }

    /// Looks again and again at the repositories that are in use, until the end.
    pub async fn follow(self: Arc<Self>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(FRESH) => {}
            }
            self.look_round(|| shutdown.is_shut_down()).await;
        }
    }

    /// Looks once at the repositories that are in use.
    pub(super) async fn look_round(&self, is_over: impl Fn() -> bool) {
        let known: Vec<Arc<Listed>> = self.lock().values().cloned().collect();
        for listed in known {
            if is_over() {
                return;
            }
            // What cannot be reached is told to those who ask.
            if let Ok(true) = self.look(&listed).await {
                // Nobody listens before the engine runs.
                let _ = self.news.send(News::of(&listed.repository.url));
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Listed>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listed(&self, repository: &Repository, lent: Option<bool>) -> Arc<Listed> {
        let key = Key {
            workspace: repository.workspace.clone(),
            project: repository.project.clone(),
            url: normalize_url(&repository.url),
            lent,
        };
        let mut known = self.lock();
        if known.len() >= MOST && !known.contains_key(&key) {
            known.retain(|_, listed| Arc::strong_count(listed) > 1);
        }
        let listed = known.entry(key).or_insert_with(|| {
            Arc::new(Listed {
                repository: repository.clone(),
                lent,
                state: tokio::sync::Mutex::default(),
                fetching: tokio::sync::Mutex::default(),
            })
        });
        Arc::clone(listed)
    }

    async fn grant(&self, listed: &Listed) -> Result<Grant, SourceError> {
        match listed.lent {
            None => credentials::grant(&self.clients, &listed.repository).await,
            Some(is_permitted) => {
                credentials::grant_dependency(&self.clients, &listed.repository, is_permitted).await
            }
        }
    }

    /// What a revision of a chart or image stands for.
    pub(super) async fn resolve(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<String, SourceError> {
        let listed = self.listed(repository, None);
        if is_image(repository) {
            return self.digest(&listed, revision).await;
        }
        if revision.is_empty() {
            return Err(SourceError::Missing(format!(
                "chart {} of {repository}: targetRevision is required: a version or a constraint of versions, as 1.2.* or *",
                repository.chart
            )));
        }
        if version::is_version(revision) {
            return Ok(revision.to_owned());
        }
        let versions = match self.known_versions(&listed, &repository.chart).await {
            Some(known) => known?,
            None => self.read_versions(&listed, &repository.chart).await?,
        };
        let found = version::resolve(revision, versions.iter().map(String::as_str));
        found.map_err(|why| {
            SourceError::Missing(format!(
                "chart {} of {repository}: invalid revision {revision:?}: {why}",
                repository.chart
            ))
        })
    }

    async fn read_versions(&self, listed: &Listed, chart: &str) -> Result<Vec<String>, SourceError> {
        let grant = self.grant(listed).await?;
        if is_registry(&listed.repository.url, &grant) {
            return Ok(self.tags(listed, &grant, chart).await?.to_vec());
        }
        let index = self.index(listed, &grant, FRESH).await?;
        let versions = index.versions(chart).map_err(unusable)?;
        Ok(versions.into_iter().map(str::to_owned).collect())
    }

    /// The files of a chart or image.
    pub(super) async fn tree(
        &self,
        repository: &Repository,
        revision: &str,
        passes_credentials: bool,
    ) -> Result<Tree, SourceError> {
        let listed = self.listed(repository, None);
        if is_image(repository) {
            return self.image(&listed, revision).await;
        }
        let bytes = self
            .archive(&listed, &repository.chart, revision, passes_credentials)
            .await?;
        let named = format!("chart {} {revision} of {repository}", repository.chart);
        let tree = unpacked(named, move || unpack_chart(&bytes, ArchiveLimits::default())).await;
        if tree.is_err() {
            // What is of no use is not kept: the next one may be.
            let name = name_of(&listed, &repository.chart, revision);
            self.cache.forget(&name).await;
        }
        tree
    }

    /// A chart that another needs.
    pub(super) async fn dependency(&self, wanted: &DependencyRequest) -> Result<Archive, SourceError> {
        let listed = self.listed(&wanted.repository, Some(wanted.uses_credentials));
        let (chart, constraint) = (&wanted.repository.chart, &wanted.version);
        let none = || {
            SourceError::Missing(format!(
                "can't get a valid version for the chart {chart} of {}: none meets {constraint:?}",
                wanted.repository
            ))
        };
        let version = match wanted.is_locked || version::is_version(constraint) {
            true => constraint.clone(),
            false => {
                let grant = self.grant(&listed).await?;
                match is_registry(&wanted.repository.url, &grant) {
                    true => {
                        let tags = self.tags(&listed, &grant, chart).await?;
                        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
                        let place = version::pick(constraint, &tags).ok_or_else(none)?;
                        tags[place].to_owned()
                    }
                    false => {
                        let index = self.index(&listed, &grant, FRESH).await?;
                        let found = index.find(chart, constraint).map_err(|_| none())?;
                        found.version.clone()
                    }
                }
            }
        };
        let bytes = self
            .archive(&listed, chart, &version, wanted.passes_credentials)
            .await?;
        Ok(Archive { version, bytes })
    }

    /// The addresses of repositories that have names.
    pub(super) async fn names(
        &self,
        workspace: &WorkspaceId,
        project: &str,
    ) -> Result<BTreeMap<String, String>, SourceError> {
        Ok(Secrets::read(&self.clients, workspace).await?.names(project))
    }

    /// A file of values.
    pub(super) async fn document(&self, workspace: &WorkspaceId, url: &str) -> Result<String, SourceError> {
        let parsed = Url::parse(url).map_err(unusable)?;
        let named = Repository {
            workspace: workspace.clone(),
            project: String::new(),
            url: parsed.to_string(),
            chart: String::new(),
        };
        // Certificates are public; credentials are for repositories.
        let grant = credentials::grant_dependency(&self.clients, &named, false).await?;
        let authorization = parsed.user().map(|(name, password)| web::basic(name, password));
        let ask = Ask {
            url: &parsed,
            accept: "*/*",
            authorization: authorization.as_deref(),
            known: None,
            limit: MAX_DOCUMENT,
        };
        let reply = self.web.get(&grant.way(), ask).await?;
        if reply.status != StatusCode::OK {
            return Err(refused(reply.status, &reply.url, &parsed.to_string()));
        }
        String::from_utf8(reply.body.into())
            .map_err(|_| SourceError::Missing(format!("{parsed} is not text")))
    }

    /// Forgets what is known of a repository, and these versions.
    pub(super) async fn refresh(&self, repository: &Repository, fetched: &[String]) {
        let listed = self.listed(repository, None);
        for version in fetched {
            self.cache
                .forget(&name_of(&listed, &repository.chart, version))
                .await;
        }
        let mut state = listed.state.lock().await;
        state.index.forget();
        state.tags.values_mut().for_each(Stamped::forget);
        state.digests.values_mut().for_each(Stamped::forget);
        state.tag = None;
    }

    /// Who made a chart, and what it is.
    pub(super) async fn metadata(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<RevisionMetadata, SourceError> {
        let tree = self.tree(repository, revision, false).await?;
        let chart = tokio::task::spawn_blocking(move || {
            fairway_gitops_helm::Chart::load(&tree.reader(), "").map(|chart| chart.metadata)
        });
        let Ok(Ok(chart)) = chart.await else {
            // An image need not be a chart.
            return Ok(RevisionMetadata::default());
        };
        let maintainers: Vec<String> = chart.maintainers.into_iter().map(|it| it.name).collect();
        Ok(RevisionMetadata {
            author: maintainers.join(", "),
            message: chart.description,
            ..RevisionMetadata::default()
        })
    }
}

/// Whether a repository is an image with manifests in it, and not one of charts.
pub(super) fn is_image(repository: &Repository) -> bool {
    repository.chart.is_empty() && repository.url.starts_with("oci://")
}

/// Whether charts are in a registry: it is said to be one, or its address has no scheme, as Argo CD wants it.
fn is_registry(url: &str, grant: &Grant) -> bool {
    grant.is("enableOCI") || url.starts_with("oci://") || !url.contains("://")
}

fn unusable(why: Unusable) -> SourceError {
    SourceError::Missing(why.0)
}

/// What an answer means that is none. `of` is the repository, as a Secret would name it.
fn refused(status: StatusCode, url: &Url, of: &str) -> SourceError {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => SourceError::Unreachable(format!(
            "{url} answers {status}: the credentials for {of} are missing or wrong; give them in a Secret with the label \
             argocd.argoproj.io/secret-type: repository, and url: {of}"
        )),
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            SourceError::Missing(format!("{of}: {url} answers {status}"))
        }
        status => SourceError::Unreachable(format!("{of}: {url} answers {status}")),
    }
}

fn authorization(grant: &Grant, url: &Url) -> Option<String> {
    let basic = grant.basic().or_else(|| url.user());
    basic.map(|(name, password)| web::basic(name, password))
}
