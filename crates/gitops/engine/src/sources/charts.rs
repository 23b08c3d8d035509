//! Charts from repositories over HTTP and from registries, and manifests from images.
//!
//! What a repository has is remembered for three minutes, and looked at again by a task that goes round the repositories that
//! are in use; what changes is told as a push is. A version of a chart is fetched once and kept on disk, until somebody asks
//! for a hard refresh. Who may see what depends on the workspace and the project, so nothing is shared between them but
//! bytes on disk.

mod cache;
mod registry;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::{Clients, Shutdown, WorkspaceId};
use fairway_gitops_chartrepo::oci::{self, Digest};
use fairway_gitops_chartrepo::{Index, MAX_INDEX, Unusable, Url, version};
use fairway_gitops_helm::{ArchiveLimits, unpack_chart, unpack_layer};
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_tree::Tree;
use http::StatusCode;
use http::header::ETAG;
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::credentials::{self, Grant, Secrets};
use super::web::{self, Ask, Way, Web};
use super::{Archive, DependencyRequest, News, Repository, RevisionMetadata, SourceError};
use cache::Cache;
use registry::Registry;

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

/// What is known of a repository.
struct Listed {
    /// With the name of the first chart that was asked for.
    repository: Repository,
    lent: Option<bool>,
    state: tokio::sync::Mutex<State>,
    /// Held while something is fetched, so that nobody fetches it twice.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    index: Stamped<Index>,
    /// By which the repository knows what it sent.
    tag: Option<String>,
    /// The versions of charts in a registry.
    tags: HashMap<String, Stamped<Vec<String>>>,
    /// What revisions of an image stand for.
    digests: HashMap<String, Stamped<String>>,
}

/// Something, and when it was so.
struct Stamped<T> {
    at: Option<Instant>,
    value: Option<Arc<T>>,
    failed: Option<(Instant, SourceError)>,
}

impl<T> Default for Stamped<T> {
    fn default() -> Self {
        Self {
            at: None,
            value: None,
            failed: None,
        }
    }
}

impl<T: PartialEq> Stamped<T> {
    /// What is known, if it may be used.
    fn usable(&self, fresh: Duration) -> Option<Result<Arc<T>, SourceError>> {
        if let Some((at, why)) = &self.failed
            && at.elapsed() < AGAIN.min(fresh)
        {
            return Some(Err(why.clone()));
        }
        let at = self.at?;
        let value = self.value.as_ref()?;
        (at.elapsed() < fresh).then(|| Ok(Arc::clone(value)))
    }

    /// Notes what was found out; whether it is something else than before.
    fn note(&mut self, found: Result<Option<T>, SourceError>) -> Result<bool, SourceError> {
        match found {
            Ok(found) => {
                self.failed = None;
                self.at = Some(Instant::now());
                let Some(found) = found else {
                    return Ok(false);
                };
                let is_other = self.value.as_deref().is_some_and(|known| *known != found);
                self.value = Some(Arc::new(found));
                Ok(is_other)
            }
            Err(why) => {
                self.failed = Some((Instant::now(), why.clone()));
                self.at = None;
                Err(why)
            }
        }
    }

    fn forget(&mut self) {
        (self.at, self.failed) = (None, None);
    }
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
            self.look_round(&shutdown).await;
        }
    }

    async fn look_round(&self, shutdown: &Shutdown) {
        let known: Vec<Arc<Listed>> = self.lock().values().cloned().collect();
        for listed in known {
            if shutdown.is_shut_down() {
                return;
            }
            // What cannot be reached is told to those who ask.
            if let Ok(true) = self.look(&listed).await {
                // Nobody listens before the engine runs.
                let _ = self.news.send(News::of(&listed.repository.url));
            }
        }
    }

    /// Looks at everything that was asked of a repository; whether something is different now.
    async fn look(&self, listed: &Listed) -> Result<bool, SourceError> {
        let mut state = listed.state.lock().await;
        let grant = self.grant(listed).await?;
        let mut is_other = false;
        if state.index.value.is_some() {
            let found = self.read_index(listed, &grant, &mut state).await;
            is_other |= state.index.note(found)?;
        }
        for (chart, tags) in &mut state.tags {
            let found = self.read_tags(listed, &grant, chart).await;
            is_other |= tags.note(found.map(Some))?;
        }
        for (revision, digest) in &mut state.digests {
            let found = self.read_digest(listed, &grant, revision).await;
            is_other |= digest.note(found.map(Some))?;
        }
        Ok(is_other)
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
        let grant = self.grant(&listed).await?;
        let found = match is_registry(&repository.url, &grant) {
            true => {
                let tags = self.tags(&listed, &grant, &repository.chart).await?;
                version::resolve(revision, tags.iter().map(String::as_str))
            }
            false => {
                let index = self.index(&listed, &grant, FRESH).await?;
                let versions = index.versions(&repository.chart).map_err(unusable)?;
                version::resolve(revision, versions.into_iter())
            }
        };
        found.map_err(|why| {
            SourceError::Missing(format!(
                "chart {} of {repository}: invalid revision {revision:?}: {why}",
                repository.chart
            ))
        })
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

    async fn index(
        &self,
        listed: &Listed,
        grant: &Grant,
        fresh: Duration,
    ) -> Result<Arc<Index>, SourceError> {
        let mut state = listed.state.lock().await;
        if let Some(known) = state.index.usable(fresh) {
            return known;
        }
        let found = self.read_index(listed, grant, &mut state).await;
        state.index.note(found)?;
        let index = state.index.value.clone();
        index.ok_or_else(|| SourceError::Unreachable(format!("{} sent no index", listed.repository)))
    }

    /// Reads the index; none if it is the one that is known.
    async fn read_index(
        &self,
        listed: &Listed,
        grant: &Grant,
        state: &mut State,
    ) -> Result<Option<Index>, SourceError> {
        let url = Url::parse(&listed.repository.url).map_err(unusable)?;
        let authorization = authorization(grant, &url);
        let known = state.tag.clone().filter(|_| state.index.value.is_some());
        let index = url.index();
        let ask = Ask {
            url: &index,
            accept: "*/*",
            authorization: authorization.as_deref(),
            known: known.as_deref(),
            limit: MAX_INDEX,
        };
        let reply = self.web.get(&grant.way(), ask).await?;
        match reply.status {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED if known.is_some() => return Ok(None),
            status => return Err(refused(status, &reply.url, &url.to_string())),
        }
        let tag = reply.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        state.tag = tag.map(str::to_owned);
        let body = reply.body;
        let parsed = tokio::task::spawn_blocking(move || Index::parse(&body)).await;
        let parsed =
            parsed.map_err(|_| SourceError::Unreachable("reading an index was broken off".to_owned()))?;
        parsed
            .map(Some)
            .map_err(|why| SourceError::Missing(format!("{index}: {why}")))
    }

    async fn tags(
        &self,
        listed: &Listed,
        grant: &Grant,
        chart: &str,
    ) -> Result<Arc<Vec<String>>, SourceError> {
        let mut state = listed.state.lock().await;
        let tags = state.tags.entry(chart.to_owned()).or_default();
        if let Some(known) = tags.usable(FRESH) {
            return known;
        }
        let found = self.read_tags(listed, grant, chart).await;
        tags.note(found.map(Some))?;
        Ok(tags.value.clone().unwrap_or_default())
    }

    async fn read_tags(
        &self,
        listed: &Listed,
        grant: &Grant,
        chart: &str,
    ) -> Result<Vec<String>, SourceError> {
        let repository = oci::Repository::parse(&listed.repository.url, chart).map_err(unusable)?;
        Registry::new(&self.web, repository, grant)?.tags().await
    }

    /// The digest of a revision of an image.
    async fn digest(&self, listed: &Listed, revision: &str) -> Result<String, SourceError> {
        if revision.starts_with("sha256:") && Digest::parse(revision).is_ok() {
            return Ok(revision.to_owned());
        }
        let mut state = listed.state.lock().await;
        let digest = state.digests.entry(revision.to_owned()).or_default();
        if let Some(known) = digest.usable(FRESH) {
            return known.map(|digest| digest.to_string());
        }
        let found = match self.grant(listed).await {
            Ok(grant) => self.read_digest(listed, &grant, revision).await,
            Err(why) => Err(why),
        };
        digest.note(found.map(Some))?;
        Ok(digest.value.as_deref().cloned().unwrap_or_default())
    }

    async fn read_digest(
        &self,
        listed: &Listed,
        grant: &Grant,
        revision: &str,
    ) -> Result<String, SourceError> {
        let repository = oci::Repository::parse(&listed.repository.url, "").map_err(unusable)?;
        let registry = Registry::new(&self.web, repository, grant)?;
        let direct = registry.manifest(&oci::tag_of(revision)).await;
        let why = match direct {
            Ok((_, digest)) => return Ok(digest.to_string()),
            Err(why @ SourceError::Unreachable(_)) => return Err(why),
            Err(why) if !version::is_constraint(revision) => return Err(why),
            Err(why) => why,
        };
        let tags = registry.tags().await?;
        let found = version::resolve(revision, tags.iter().map(String::as_str));
        let found = found.map_err(|_| why)?;
        let (_, digest) = registry.manifest(&oci::tag_of(&found)).await?;
        Ok(digest.to_string())
    }

    /// The files in the layer of an image.
    async fn image(&self, listed: &Listed, digest: &str) -> Result<Tree, SourceError> {
        let name = name_of(listed, "", digest);
        let _fetching = listed.fetching.lock().await;
        // What kind of layer it is, is kept before its bytes.
        let kept = self.cache.get(&name).await;
        let kept = kept.as_deref().and_then(|kept| kept.split_first());
        let (kind, bytes): (u8, Arc<[u8]>) = match kept {
            Some((kind, bytes)) => (*kind, bytes.into()),
            None => {
                let grant = self.grant(listed).await?;
                let repository = oci::Repository::parse(&listed.repository.url, "").map_err(unusable)?;
                let registry = Registry::new(&self.web, repository, &grant)?;
                let (manifest, _) = registry.manifest(digest).await?;
                let layer = manifest.content().map_err(|why| registry.wrong(&why))?;
                let bytes = registry.layer(layer).await?;
                let kind = match (layer.is_chart(), layer.is_gzipped()) {
                    (true, _) => b'c',
                    (false, true) => b'z',
                    (false, false) => b't',
                };
                let all: Vec<u8> = std::iter::once(kind).chain(bytes.iter().copied()).collect();
                self.cache.put(&name, all.into()).await;
                (kind, bytes.to_vec().into())
            }
        };
        let named = format!("{} at {digest}", listed.repository);
        unpacked(named, move || match kind {
            b'c' => unpack_chart(&bytes, ArchiveLimits::default()),
            kind => unpack_layer(&bytes, kind == b'z', ArchiveLimits::default()),
        })
        .await
    }

    /// A version of a chart, fetched if nobody has yet.
    async fn archive(
        &self,
        listed: &Listed,
        chart: &str,
        version: &str,
        passes_credentials: bool,
    ) -> Result<Arc<[u8]>, SourceError> {
        let name = name_of(listed, chart, version);
        let _fetching = listed.fetching.lock().await;
        if let Some(kept) = self.cache.get(&name).await {
            return Ok(kept);
        }
        let grant = self.grant(listed).await?;
        let bytes = match is_registry(&listed.repository.url, &grant) {
            true => {
                let repository = oci::Repository::parse(&listed.repository.url, chart).map_err(unusable)?;
                self.pull(repository, &grant, version).await?
            }
            false => {
                self.download(listed, &grant, chart, version, passes_credentials)
                    .await?
            }
        };
        self.cache.put(&name, Arc::clone(&bytes)).await;
        Ok(bytes)
    }

    async fn pull(
        &self,
        repository: oci::Repository,
        grant: &Grant,
        version: &str,
    ) -> Result<Arc<[u8]>, SourceError> {
        let registry = Registry::new(&self.web, repository, grant)?;
        let (manifest, _) = registry.manifest(&oci::tag_of(version)).await?;
        let layer = manifest.chart().map_err(|why| registry.wrong(&why))?;
        Ok(registry.layer(layer).await?.to_vec().into())
    }

    async fn download(
        &self,
        listed: &Listed,
        grant: &Grant,
        chart: &str,
        version: &str,
        passes_credentials: bool,
    ) -> Result<Arc<[u8]>, SourceError> {
        let repository = &listed.repository;
        let mut index = self.index(listed, grant, FRESH).await?;
        if index.find(chart, version).is_err() {
            // It may have been published since.
            index = self.index(listed, grant, AGAIN).await?;
        }
        let entry = index
            .find(chart, version)
            .map_err(|why| SourceError::Missing(format!("{repository}: {why}")))?;
        let base = Url::parse(&repository.url).map_err(unusable)?;
        if let Some(reference) = entry.url.strip_prefix("oci://") {
            // Such an index points into a registry.
            let (name, tag) = match reference.rsplit_once(':') {
                Some((name, tag)) if !tag.contains('/') => (name, tag),
                _ => (reference, entry.version.as_str()),
            };
            let there = oci::Repository::parse(&format!("oci://{name}"), "").map_err(unusable)?;
            let named = Repository {
                url: format!("oci://{name}"),
                ..repository.clone()
            };
            let lent = listed.lent != Some(false);
            let grant = credentials::grant_dependency(&self.clients, &named, lent).await?;
            return self.pull(there, &grant, &oci::version_of(tag)).await;
        }
        let url = base.chart(&entry.url).map_err(unusable)?;
        let is_own = base.is_same_origin(&url);
        let way = match is_own {
            true => grant.way(),
            false => {
                self.way_elsewhere(listed, grant, &url, passes_credentials)
                    .await?
            }
        };
        let authorization = authorization(grant, &base)
            .filter(|_| is_own || passes_credentials)
            .or_else(|| url.user().map(|(name, password)| web::basic(name, password)));
        let ask = Ask {
            url: &url,
            accept: "application/gzip,application/octet-stream,*/*;q=0.1",
            authorization: authorization.as_deref(),
            known: None,
            limit: MAX_ARCHIVE,
        };
        let reply = self.web.get(&way, ask).await?;
        if reply.status != StatusCode::OK {
            return Err(refused(reply.status, &reply.url, &repository.to_string()));
        }
        // Not every index has digests that are any.
        if let Ok(digest) = Digest::parse(&entry.digest) {
            let what = format!("{url}, by the index of {repository},");
            digest.check(&what, &reply.body).map_err(unusable)?;
        }
        Ok(reply.body.to_vec().into())
    }

    /// The way to a host that a repository names beside itself: with the certificates of that host.
    async fn way_elsewhere(
        &self,
        listed: &Listed,
        grant: &Grant,
        url: &Url,
        passes_credentials: bool,
    ) -> Result<Way, SourceError> {
        let there = Repository {
            url: url.to_string(),
            ..listed.repository.clone()
        };
        let hosts = credentials::grant_dependency(&self.clients, &there, false).await?;
        let mut way = grant.way();
        way.ca = hosts.ca;
        if !passes_credentials {
            way.client_certificate = None;
        }
        Ok(way)
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

/// Under what something is kept: nobody finds what others fetched.
fn name_of(listed: &Listed, chart: &str, version: &str) -> String {
    let repository = &listed.repository;
    format!(
        "{}\0{}\0{:?}\0{}\0{chart}\0{version}",
        repository.workspace,
        repository.project,
        listed.lent,
        normalize_url(&repository.url)
    )
}

fn authorization(grant: &Grant, url: &Url) -> Option<String> {
    let basic = grant.basic().or_else(|| url.user());
    basic.map(|(name, password)| web::basic(name, password))
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

async fn unpacked(
    named: String,
    work: impl FnOnce() -> Result<Tree, fairway_gitops_helm::Error> + Send + 'static,
) -> Result<Tree, SourceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(tree)) => Ok(tree),
        Ok(Err(why)) => Err(SourceError::Missing(format!("{named}: {why}"))),
        Err(_) => Err(SourceError::Unreachable(format!(
            "{named}: unpacking was broken off"
        ))),
    }
}
