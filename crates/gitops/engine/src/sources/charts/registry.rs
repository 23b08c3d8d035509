//! A repository of a registry: asked for its tags, manifests and layers, with the token that it wants.

use std::sync::Mutex;

use bytes::Bytes;
use fairway_gitops_chartrepo::challenge::{self, Challenge};
use fairway_gitops_chartrepo::oci::{self, Descriptor, Digest, Manifest};
use fairway_gitops_chartrepo::{Unusable, Url};
use http::StatusCode;
use http::header::{LINK, WWW_AUTHENTICATE};

use super::super::SourceError;
use super::super::credentials::Grant;
use super::super::web::{self, Ask, Reply, Way, Web};
use super::{MAX_ARCHIVE, refused, unusable};

/// The largest page of a list of tags, and the largest token.
const MAX_PAGE: usize = 4 << 20;
/// How many pages a list of tags may have.
const MAX_PAGES: usize = 200;

/// A repository, and who asks.
pub(super) struct Registry<'w> {
    web: &'w Web,
    way: Way,
    base: Url,
    repository: oci::Repository,
    basic: Option<(String, String)>,
    /// What was found out to be wanted.
    authorization: Mutex<Option<String>>,
}

impl<'w> Registry<'w> {
    pub(super) fn new(web: &'w Web, repository: oci::Repository, grant: &Grant) -> Result<Self, SourceError> {
        let base = repository
            .base(grant.is("insecureOCIForceHttp"))
            .map_err(unusable)?;
        let basic = grant.basic().or_else(|| base.user());
        let basic = basic.map(|(name, password)| (name.to_owned(), password.to_owned()));
        Ok(Self {
            web,
            way: grant.way(),
            authorization: Mutex::new(None),
            base,
            repository,
            basic,
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.authorization
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The versions of all tags.
    pub(super) async fn tags(&self) -> Result<Vec<String>, SourceError> {
        let mut url = self.repository.tags(&self.base);
        let mut tags = Vec::new();
        for _ in 0..MAX_PAGES {
            let reply = self.get(&url, "application/json", MAX_PAGE).await?;
            tags.extend(oci::tags_in(&reply.body).map_err(unusable)?);
            let link = reply.headers.get(LINK).and_then(|link| link.to_str().ok());
            match link.and_then(|link| oci::next_page(&url, link)) {
                Some(next) => url = next,
                None => return Ok(tags),
            }
        }
        Err(SourceError::Missing(format!(
            "{}: its list of tags does not end",
            self.name()
        )))
    }

    /// The manifest of a tag or digest, and its digest.
    pub(super) async fn manifest(&self, reference: &str) -> Result<(Manifest, Digest), SourceError> {
        let digest = Digest::parse(reference)
            .ok()
            .filter(|_| reference.starts_with("sha256:"));
        if digest.is_none() && !oci::is_tag(reference) {
            return Err(SourceError::Missing(format!(
                "{reference:?} is no tag, digest or constraint of versions; {} has neither",
                self.name()
            )));
        }
        let url = self.repository.manifest(&self.base, reference);
        let reply = self.get(&url, oci::ACCEPT, oci::MAX_MANIFEST).await?;
        let found = Digest::of(&reply.body);
        if let Some(wanted) = digest {
            wanted
                .check("the manifest", &reply.body)
                .map_err(|why| self.wrong(&why))?;
        }
        let manifest = Manifest::parse(&reply.body).map_err(|why| self.wrong(&why))?;
        Ok((manifest, found))
    }

    /// A layer, which must be what its manifest says.
    pub(super) async fn layer(&self, layer: &Descriptor) -> Result<Bytes, SourceError> {
        let size = usize::try_from(layer.size).unwrap_or(usize::MAX);
        if size > MAX_ARCHIVE {
            return Err(SourceError::Missing(format!(
                "{}: the layer has {size} bytes, more than the limit of {MAX_ARCHIVE}",
                self.name()
            )));
        }
        let url = self.repository.blob(&self.base, &layer.digest);
        let reply = self.get(&url, "*/*", MAX_ARCHIVE).await?;
        layer
            .digest
            .check("the layer", &reply.body)
            .map_err(|why| self.wrong(&why))?;
        Ok(reply.body)
    }

    pub(super) fn wrong(&self, why: &Unusable) -> SourceError {
        SourceError::Missing(format!("{}: {why}", self.name()))
    }

    fn name(&self) -> String {
        format!("oci://{}/{}", self.repository.registry, self.repository.name)
    }

    async fn get(&self, url: &Url, accept: &str, limit: usize) -> Result<Reply, SourceError> {
        let known = self.known().clone();
        let reply = self.send(url, accept, limit, known.as_deref()).await?;
        if reply.status != StatusCode::UNAUTHORIZED || !reply.url.is_same_origin(&self.base) {
            return self.good(reply);
        }
        let headers = reply.headers.get_all(WWW_AUTHENTICATE).iter();
        let authorization = match challenge::parse(headers.filter_map(|header| header.to_str().ok())) {
            Some(Challenge::Basic) => match &self.basic {
                Some((name, password)) => web::basic(name, password),
                None => return self.good(reply),
            },
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => self.token(&realm, &service, &scope).await?,
            None => return self.good(reply),
        };
        *self.known() = Some(authorization.clone());
        let reply = self.send(url, accept, limit, Some(&authorization)).await?;
        self.good(reply)
    }

    async fn send(
        &self,
        url: &Url,
        accept: &str,
        limit: usize,
        authorization: Option<&str>,
    ) -> Result<Reply, SourceError> {
        let ask = Ask {
            url,
            accept,
            authorization,
            known: None,
            limit,
        };
        self.web.get(&self.way, ask).await
    }

    fn good(&self, reply: Reply) -> Result<Reply, SourceError> {
        match reply.status {
            StatusCode::OK => Ok(reply),
            status => Err(refused(status, &reply.url, &self.name())),
        }
    }

    async fn token(&self, realm: &str, service: &str, scope: &str) -> Result<String, SourceError> {
        let own = self.repository.scope();
        let mut scopes: Vec<&str> = scope.split(' ').filter(|scope| !scope.is_empty()).collect();
        if scopes.is_empty() {
            scopes.push(&own);
        }
        let url = challenge::token_address(&self.base, realm, service, &scopes).map_err(unusable)?;
        let basic = self
            .basic
            .as_ref()
            .map(|(name, password)| web::basic(name, password));
        let reply = self
            .send(&url, "application/json", MAX_PAGE, basic.as_deref())
            .await?;
        let reply = self.good(reply)?;
        let token = challenge::token_in(&reply.body).map_err(|why| self.wrong(&why))?;
        Ok(format!("Bearer {token}"))
    }
}
