//! Charts and layers: fetched, checked against their digests, kept and unpacked.

use std::sync::Arc;

use fairway_gitops_chartrepo::Url;
use fairway_gitops_chartrepo::oci::{self, Digest};
use fairway_gitops_helm::{ArchiveLimits, unpack_chart, unpack_layer};
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_tree::Tree;
use http::StatusCode;

use super::super::credentials::{self, Grant};
use super::super::web::{self, Ask, Way};
use super::super::{Repository, SourceError};
use super::listing::Listed;
use super::registry::Registry;
use super::{AGAIN, ChartSources, FRESH, MAX_ARCHIVE, authorization, is_registry, refused, unusable};

impl ChartSources {
    /// The files in the layer of an image.
    pub(super) async fn image(&self, listed: &Listed, digest: &str) -> Result<Tree, SourceError> {
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
    pub(super) async fn archive(
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

    pub(super) async fn pull(
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

    pub(super) async fn download(
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
    pub(super) async fn way_elsewhere(
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

/// Under what something is kept: nobody finds what others fetched.
pub(super) fn name_of(listed: &Listed, chart: &str, version: &str) -> String {
    let repository = &listed.repository;
    format!(
        "{}\0{}\0{:?}\0{}\0{chart}\0{version}",
        repository.workspace,
        repository.project,
        listed.lent,
        normalize_url(&repository.url)
    )
}

pub(super) async fn unpacked(
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
