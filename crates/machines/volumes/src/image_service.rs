//! What joined nodes fetch from the control plane: images that everybody may start from, and files that were sent for a claim of theirs.
//!
//! ```text
//! machines.fairway.dev/v1  images/NAME                        what a name stands for: the record of the cache
//!                          blobs/DIGEST                       its content; only what a name stands for
//!                          namespaces/NS/uploads/CLAIM        what was sent for a claim whose disk is made elsewhere
//!                          namespaces/NS/uploads/CLAIM/content
//! ```
//!
//! Content is asked for by digest and from a place on (`Range: bytes=N-`), so that what was interrupted goes on. Who may ask is judged
//! before a request gets here: a node reads every image, and an upload only if the claim is its own.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource, full};
use fairway_controller::{ClientFactory, Clients, Requests, WorkspaceId};
use fairway_machines_image::{Image, ImageError};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::json;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::service_fn;

use crate::images::Images;
use crate::origin::blocking;
use crate::uploads::kept_key;

/// The group, which others add resources to.
pub(crate) const GROUP: &str = "machines.fairway.dev";
const VERSION: &str = "v1";
/// How many transfers there are at once; who comes later tries again.
const AT_ONCE: usize = 16;
/// What is read of a file at once.
const PIECE: usize = 256 << 10;

/// The path of what a name stands for.
pub(crate) fn image_path(name: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/images/{name}")
}

/// The path of the content with a digest.
pub(crate) fn blob_path(digest: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/blobs/{digest}")
}

/// The path of what was sent for a claim.
pub(crate) fn upload_path(namespace: &str, claim: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/uploads/{claim}")
}

/// Gives nodes what they fetch.
#[derive(Clone)]
pub struct ImageService(Arc<Shared>);

struct Shared {
    clients: Clients,
    images: Arc<Images>,
    turns: Arc<Semaphore>,
}

/// Why nothing is given.
struct Refusal(StatusCode, String);

impl ImageService {
    /// Of the cache in a directory.
    pub fn new(clients: &ClientFactory, images: PathBuf) -> Self {
        Self(Arc::new(Shared {
            clients: clients.clients(crate::USER),
            images: Arc::new(Images::new(images)),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }))
    }

    async fn answer(&self, info: &RequestInfo, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        let is_root = info.cluster == WorkspaceId::root().as_str();
        match (info.resource.as_str(), info.subresource.as_str()) {
            ("images", "") if is_root => record(&self.named(&info.name).await?),
            ("blobs", "") if is_root => {
                let image = self.by_digest(&info.name).await?;
                self.content(&image, headers).await
            }
            ("uploads", "") => record(&self.upload(info).await?),
            ("uploads", "content") => {
                let image = self.upload(info).await?;
                self.content(&image, headers).await
            }
            _ => Err(unknown("images are those of the root workspace")),
        }
    }

    async fn named(&self, name: &str) -> Result<Image, Refusal> {
        let (images, wanted) = (Arc::clone(&self.0.images), name.to_owned());
        match blocking(move || images.open()?.find(&wanted)).await {
            Ok(Some(image)) => Ok(image),
            Ok(None) | Err(ImageError::Name(_)) => Err(unknown(&format!(
                "images.{GROUP} {name:?} not found; see what there is with `fairway image list` on the server"
            ))),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The content of an image that has a name: what was fetched for one tenant is nobody else's.
    async fn by_digest(&self, digest: &str) -> Result<Image, Refusal> {
        let (images, wanted) = (Arc::clone(&self.0.images), digest.to_owned());
        let all = blocking(move || images.open()?.images()).await;
        let all = all.map_err(|error| failed(&error))?;
        let found = all.into_iter().find(|image| image.digest == wanted);
        found.ok_or_else(|| unknown(&format!("no image has the digest {digest:?}")))
    }

    /// What was sent for a claim.
    async fn upload(&self, info: &RequestInfo) -> Result<Image, Refusal> {
        let missing = || unknown(&format!("nothing was sent for the claim {:?}", info.name));
        let workspace = WorkspaceId::parse(&info.cluster).map_err(|_| missing())?;
        let namespace = info.namespace.as_deref().unwrap_or_default();
        let path = format!(
            "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{}",
            info.name
        );
        let found = Requests::new(self.0.clients.of(&workspace)).get(&path).await;
        let found = found.map_err(|failure| Refusal(StatusCode::SERVICE_UNAVAILABLE, failure.sentence()))?;
        let uid = found.as_ref().and_then(|it| it["metadata"]["uid"].as_str());
        let key = kept_key(uid.ok_or_else(missing)?);
        let images = Arc::clone(&self.0.images);
        let kept = blocking(move || images.open()?.kept(&key)).await;
        kept.map_err(|error| failed(&error))?.ok_or_else(missing)
    }

    async fn content(&self, image: &Image, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
        let Ok(turn) = Arc::clone(&self.0.turns).try_acquire_owned() else {
            let why = format!("{AT_ONCE} images are being fetched; try again");
            return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let from = begin(headers).filter(|from| *from <= image.size);
        let opened = async {
            let mut file = File::open(&image.path).await?;
            file.seek(SeekFrom::Start(from.unwrap_or(0))).await?;
            Ok::<_, std::io::Error>(file)
        };
        let file = opened.await.map_err(|source| {
            let why = format!("reading {}: {source}", image.path.display());
            Refusal(StatusCode::INTERNAL_SERVER_ERROR, why)
        })?;
        let mut response = Response::new(pieces(file, turn));
        let headers = response.headers_mut();
        let left = image.size - from.unwrap_or(0);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(left));
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        if let Some(from) = from {
            let range = format!("bytes {from}-{}/{}", image.size.saturating_sub(1), image.size);
            if let Ok(range) = HeaderValue::from_str(&range) {
                headers.insert(header::CONTENT_RANGE, range);
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            }
        }
        Ok(response)
    }
}

/// A file piece by piece, as fast as it is taken.
fn pieces(file: File, turn: OwnedSemaphorePermit) -> Body {
    let stream = futures::stream::try_unfold((file, turn), |(mut file, turn)| async move {
        let mut piece = vec![0; PIECE];
        let count = file.read(&mut piece).await?;
        if count == 0 {
            return Ok::<_, BoxError>(None);
        }
        piece.truncate(count);
        Ok(Some((Frame::data(Bytes::from(piece)), (file, turn))))
    });
    StreamBody::new(stream).boxed_unsync()
}

/// From which byte on the rest is asked for.
fn begin(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

fn record(image: &Image) -> Result<Response<Body>, Refusal> {
    let text = serde_json::to_vec(image)
        .map_err(|error| Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let mut response = Response::new(full(text));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn unknown(why: &str) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, why.to_owned())
}

fn failed(error: &ImageError) -> Refusal {
    Refusal(StatusCode::INTERNAL_SERVER_ERROR, crate::fill::sentence(error))
}

fn refused(Refusal(status, message): Refusal) -> Response<Body> {
    let reason = match status {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": status.as_u16(),
    });
    let mut response = Response::new(full(body.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl ApiService for ImageService {
    fn group_version(&self) -> (&str, &str) {
        (GROUP, VERSION)
    }

    fn resources(&self) -> Vec<Resource> {
        vec![
            Resource::new("images", "Image").cluster_scoped(),
            Resource::new("blobs", "Blob").cluster_scoped().long_running(),
            Resource::new("uploads", "Upload"),
            Resource::new("uploads/content", "Upload").long_running(),
        ]
    }

    fn handler(&self) -> Handler {
        let service = self.clone();
        Handler::new(service_fn(move |request: Request<Body>| {
            let service = service.clone();
            let (head, _) = request.into_parts();
            async move {
                let info = head.extensions.get::<RequestInfo>().cloned().unwrap_or_default();
                let answer = service.answer(&info, &head.headers).await;
                Ok::<_, BoxError>(answer.unwrap_or_else(refused))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_file_is_asked_for() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_static(text));
            begin(&headers)
        };
        for (text, expected) in [
            ("bytes=0-", Some(0)),
            ("bytes=1048576-", Some(1 << 20)),
            // Other parts than a rest are not given: the answer is the whole.
            ("bytes=0-5", None),
            ("bytes=-5", None),
            ("bytes=0-,9-", None),
            ("pages=1-", None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(begin(&HeaderMap::new()), None);
    }
}
