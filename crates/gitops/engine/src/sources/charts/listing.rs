//! What repositories have: read when somebody asks and it is not known, and looked at again by the way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_gitops_chartrepo::oci::{self, Digest};
use fairway_gitops_chartrepo::{Index, MAX_INDEX, Url, version};
use http::StatusCode;
use http::header::ETAG;
use tokio::time::Instant;

use super::super::credentials::Grant;
use super::super::web::Ask;
use super::super::{Repository, SourceError};
use super::registry::Registry;
use super::{AGAIN, ChartSources, FRESH, authorization, refused, unusable};

/// What is known of a repository.
pub(super) struct Listed {
    /// With the name of the first chart that was asked for.
    pub(super) repository: Repository,
    pub(super) lent: Option<bool>,
    pub(super) state: tokio::sync::Mutex<State>,
    /// Held while something is fetched, so that nobody fetches it twice.
    pub(super) fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) index: Stamped<Index>,
    /// By which the repository knows what it sent.
    pub(super) tag: Option<String>,
    /// The versions of charts in a registry.
    pub(super) tags: HashMap<String, Stamped<Vec<String>>>,
    /// What revisions of an image stand for.
    pub(super) digests: HashMap<String, Stamped<String>>,
}

/// Something, and when it was so.
pub(super) struct Stamped<T> {
    pub(super) at: Option<Instant>,
    pub(super) value: Option<Arc<T>>,
    pub(super) failed: Option<(Instant, SourceError)>,
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
    pub(super) fn usable(&self, fresh: Duration) -> Option<Result<Arc<T>, SourceError>> {
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
    pub(super) fn note(&mut self, found: Result<Option<T>, SourceError>) -> Result<bool, SourceError> {
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

    pub(super) fn forget(&mut self) {
        (self.at, self.failed) = (None, None);
    }
}

impl ChartSources {
    /// Looks at everything that was asked of a repository; whether something is different now.
    pub(super) async fn look(&self, listed: &Listed) -> Result<bool, SourceError> {
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

    /// The versions of a chart, if somebody has asked for them lately.
    pub(super) async fn known_versions(
        &self,
        listed: &Listed,
        chart: &str,
    ) -> Option<Result<Vec<String>, SourceError>> {
        let state = listed.state.lock().await;
        if let Some(index) = state.index.usable(FRESH) {
            return Some(index.and_then(|index| {
                let versions = index.versions(chart).map_err(unusable)?;
                Ok(versions.into_iter().map(str::to_owned).collect())
            }));
        }
        let tags = state.tags.get(chart)?.usable(FRESH)?;
        Some(tags.map(|tags| tags.to_vec()))
    }

    pub(super) async fn index(
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
    pub(super) async fn read_index(
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

    pub(super) async fn tags(
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

    pub(super) async fn read_tags(
        &self,
        listed: &Listed,
        grant: &Grant,
        chart: &str,
    ) -> Result<Vec<String>, SourceError> {
        let repository = oci::Repository::parse(&listed.repository.url, chart).map_err(unusable)?;
        Registry::new(&self.web, repository, grant)?.tags().await
    }

    /// The digest of a revision of an image.
    pub(super) async fn digest(&self, listed: &Listed, revision: &str) -> Result<String, SourceError> {
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

    pub(super) async fn read_digest(
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
}
