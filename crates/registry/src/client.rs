//! A repository of a registry: asked for manifests, with the token that it wants.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_outbound::{Outbound, SendError};
use http::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::challenge::{self, Challenge};
use crate::manifest::{self, Descriptor, Manifest};
use crate::{Credentials, Digest, Reference, Version};

/// How long nothing may arrive.
const IDLE: Duration = Duration::from_secs(60);
/// The largest answer with a token.
const MAX_TOKEN: usize = 1 << 20;
/// An index may name an index, but not for ever.
const MAX_DEPTH: usize = 3;

/// Why a registry does not give something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// It does not have it, or not for who asks.
    #[error("{registry} answers {status} for {what}: {hint}")]
    Refused {
        /// The registry.
        registry: String,
        /// Its answer.
        status: StatusCode,
        /// What was asked for.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// It cannot be asked.
    #[error("asking {registry}: {source}")]
    Unreachable {
        /// The registry.
        registry: String,
        /// Why.
        source: SendError,
    },
    /// What it says makes no sense.
    #[error("{registry}: {why}")]
    Strange {
        /// The registry.
        registry: String,
        /// What is wrong.
        why: String,
    },
}

impl RegistryError {
    /// Whether trying again is of no use before somebody changes something. A registry may have tomorrow what it has not today.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused { .. } => false,
            Self::Unreachable { source, .. } => source.is_final(),
            Self::Strange { .. } => true,
        }
    }
}

/// How a blob is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Where it is. The registry may send on from there.
    pub url: String,
    /// What to send along.
    pub headers: Vec<(String, String)>,
}

/// A repository, and who asks.
#[derive(Debug)]
pub struct Registry {
    outbound: Arc<Outbound>,
    reference: Reference,
    credentials: Option<Credentials>,
    is_tls: bool,
    /// What was found out to be wanted.
    authorization: Mutex<Option<String>>,
}

impl Registry {
    /// The repository of an image. A registry on this machine is asked without encryption, and so is one of which the operator says that
    /// it has none.
    pub fn new(
        outbound: Arc<Outbound>,
        reference: Reference,
        credentials: Option<Credentials>,
        is_insecure: bool,
    ) -> Self {
        Self {
            outbound,
            is_tls: !is_insecure && !reference.is_loopback(),
            reference,
            credentials,
            authorization: Mutex::new(None),
        }
    }

    /// The digest of the image for a machine of this architecture, and its layers, the lowest first.
    pub async fn image(&self, architecture: &str) -> Result<(Digest, Vec<Descriptor>), RegistryError> {
        let mut wanted = self.reference.version().clone();
        for _ in 0..MAX_DEPTH {
            let (found, text) = self.manifest(&wanted).await?;
            match Manifest::parse(&text, architecture).map_err(|why| self.strange(why))? {
                Manifest::Image(layers) => return Ok((found, layers)),
                Manifest::Index(digest) => wanted = Version::Digest(digest),
            }
        }
        Err(self.strange("its index leads from one index to the next".to_owned()))
    }

    /// The digest that a tag stands for now.
    pub async fn digest(&self) -> Result<Digest, RegistryError> {
        let (digest, _) = self.manifest(self.reference.version()).await?;
        Ok(digest)
    }

    /// How a blob is asked for, once the image was.
    pub fn blob(&self, digest: &Digest) -> Blob {
        let headers = self
            .known()
            .into_iter()
            .map(|value| (AUTHORIZATION.as_str().to_owned(), value));
        Blob {
            url: self.url(&format!("blobs/{digest}")),
            headers: headers.collect(),
        }
    }

    async fn manifest(&self, version: &Version) -> Result<(Digest, Vec<u8>), RegistryError> {
        let url = self.url(&format!("manifests/{version}"));
        let text = self.get(&url, manifest::ACCEPT, manifest::MAX_MANIFEST).await?;
        let found = Digest::of(&text);
        match version {
            Version::Digest(wanted) if *wanted != found => Err(self.strange(format!(
                "the manifest has the digest {found}, not {wanted}: it was changed, or not transferred as a whole"
            ))),
            _ => Ok((found, text)),
        }
    }

    fn known(&self) -> Option<String> {
        self.authorization
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn url(&self, path: &str) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let reference = &self.reference;
        format!(
            "{scheme}://{}/v2/{}/{path}",
            reference.host(),
            reference.repository()
        )
    }

    fn strange(&self, why: String) -> RegistryError {
        RegistryError::Strange {
            registry: self.reference.registry().to_owned(),
            why,
        }
    }

    async fn get(&self, url: &str, accept: &str, limit: usize) -> Result<Vec<u8>, RegistryError> {
        let known = self.known();
        let (status, headers, body) = self.send(url, accept, limit, known.as_deref()).await?;
        if status != StatusCode::UNAUTHORIZED {
            return self.good(status, body);
        }
        let asked = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|it| it.to_str().ok());
        let authorization = match challenge::parse(asked) {
            Some(Challenge::Basic) => match &self.credentials {
                Some(credentials) => credentials.header(),
                None => return self.good(status, body),
            },
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => self.token(&realm, &service, &scope).await?,
            None => return self.good(status, body),
        };
        let (status, _, body) = self.send(url, accept, limit, Some(&authorization)).await?;
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(authorization);
        self.good(status, body)
    }

    async fn token(&self, realm: &str, service: &str, scope: &str) -> Result<String, RegistryError> {
        let own = format!("repository:{}:pull", self.reference.repository());
        let mut scopes: Vec<&str> = scope.split(' ').filter(|scope| !scope.is_empty()).collect();
        if scopes.is_empty() {
            scopes.push(&own);
        }
        let address = challenge::token_address(self.is_tls, realm, service, &scopes)
            .map_err(|why| self.strange(why))?;
        let basic = self.credentials.as_ref().map(Credentials::header);
        let (status, _, body) = self
            .send(&address, "application/json", MAX_TOKEN, basic.as_deref())
            .await?;
        let body = self.good(status, body)?;
        let token = challenge::token_in(&body).map_err(|why| self.strange(why))?;
        Ok(format!("Bearer {token}"))
    }

    async fn send(
        &self,
        url: &str,
        accept: &str,
        limit: usize,
        authorization: Option<&str>,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), RegistryError> {
        let unreachable = |source: SendError| RegistryError::Unreachable {
            registry: self.reference.registry().to_owned(),
            source,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in [(ACCEPT, Some(accept)), (AUTHORIZATION, authorization)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let mut answer = self
            .outbound
            .get(url, &headers, IDLE)
            .await
            .map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(piece) = answer.next().await.map_err(unreachable)? {
            body.extend_from_slice(&piece);
            if body.len() > limit {
                return Err(self.strange(format!("its answer is longer than {limit} bytes")));
            }
        }
        Ok((answer.status, answer.headers, body))
    }

    fn good(&self, status: StatusCode, body: Vec<u8>) -> Result<Vec<u8>, RegistryError> {
        if status == StatusCode::OK {
            return Ok(body);
        }
        Err(RegistryError::Refused {
            registry: self.reference.registry().to_owned(),
            status,
            what: self.reference.to_string(),
            hint: match status {
                StatusCode::NOT_FOUND => "there is no such image; look at its name and tag",
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if self.credentials.is_none() => {
                    "it may need credentials; name a Secret that has them"
                }
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "the credentials are not enough for it",
                StatusCode::TOO_MANY_REQUESTS => "it is asked too often; credentials may raise the limit",
                _ => "try again later, or ask who runs it",
            },
        })
    }
}
