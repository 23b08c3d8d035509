//! What a joined node fetches from the control plane: images by name, and files that were sent for its claims.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_image::{Image, ImageError, Receiving};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde::Deserialize as _;
use serde_json::Value;

use super::http::made_room;
use super::{Origin, Origins, blocking};
use crate::alone::Alone;
use crate::fill::{FillError, Progress};
use crate::image_service::{blob_path, image_path, upload_path};
use crate::images::Images;
use crate::place::Content;

/// How long the server may take to answer, and how long nothing may arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something in the control plane's cache.
#[derive(Clone)]
pub(crate) struct Remote {
    client: Client,
    path: String,
    pub(crate) record: Image,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn read(found: &Value) -> Result<Image, Failure> {
    Image::deserialize(found).map_err(|error| {
        Failure::NotYet(format!(
            "what the server says of an image is not understood ({error}); this node may run another Fairway than the server"
        ))
    })
}

impl Origins {
    /// An image of the control plane; nothing if it has none of the name. What is here already is not fetched again.
    pub(super) async fn image_of_server(&self, name: &str) -> Result<Option<Origin>, Failure> {
        match find(self.clients.root(), name).await? {
            Some(remote) => self.here_or(remote).await.map(Some),
            None => Ok(None),
        }
    }

    /// What was sent for a claim of this node; nothing if nothing was.
    pub(crate) async fn uploaded(&self, claim: &ObjectKey) -> Result<Option<Origin>, Failure> {
        let client = self.clients.of(&claim.workspace);
        let path = upload_path(&claim.namespace, &claim.name);
        let Some(found) = Requests::new(client.clone()).get(&path).await? else {
            return Ok(None);
        };
        let record = read(&found)?;
        let path = format!("{path}/content");
        self.here_or(Remote { client, path, record }).await.map(Some)
    }

    async fn here_or(&self, remote: Remote) -> Result<Origin, Failure> {
        let (images, digest) = (Arc::clone(&self.images), remote.record.digest.clone());
        let found = blocking(move || images.open()?.by_digest(&digest)).await;
        match found {
            Ok(Some(image)) => Ok(Origin::Here {
                size: Some(image.virtual_size),
                content: Content::Image(Box::new(image)),
            }),
            Ok(None) => Ok(Origin::Server(Box::new(remote))),
            Err(error) => Err(Failure::NotYet(crate::fill::sentence(&error))),
        }
    }

    /// Fetches it into the cache of this node.
    pub(super) async fn receive(
        &self,
        remote: &Remote,
        size: u64,
        progress: &Progress,
    ) -> Result<Image, FillError> {
        let received = receive(&self.images, &self.alone, remote, size, progress).await;
        match received {
            Ok(image) => Ok(image),
            Err(error) => {
                let images = Arc::clone(&self.images);
                match blocking(move || images.open()).await {
                    Ok(cache) => Err(made_room(&cache, error).await),
                    Err(_) => Err(FillError::from(error)),
                }
            }
        }
    }
}

/// What a name stands for at the control plane; nothing if it knows none of the name.
pub(crate) async fn find(client: Client, name: &str) -> Result<Option<Remote>, Failure> {
    let Some(found) = Requests::new(client.clone()).get(&image_path(name)).await? else {
        return Ok(None);
    };
    let record = read(&found)?;
    let path = blob_path(&record.digest);
    Ok(Some(Remote { client, path, record }))
}

/// Fetches something into a cache, unless it is there, for a disk of at most so many bytes.
pub(crate) async fn receive(
    images: &Arc<Images>,
    alone: &Alone,
    remote: &Remote,
    size: u64,
    progress: &Progress,
) -> Result<Image, ImageError> {
    let record = &remote.record;
    // The second waits for the first, and finds what it fetched.
    let _alone = alone.with(&record.digest).await;
    let (images, wanted) = (Arc::clone(images), record.clone());
    let begun = blocking(move || {
        let cache = images.open()?;
        match cache.by_digest(&wanted.digest)? {
            Some(image) => Ok(Err(image)),
            None => cache.receive(&wanted, size).map(Ok),
        }
    });
    match begun.await? {
        Err(image) => Ok(image),
        Ok(receiving) => {
            let received = fetch(remote, receiving, progress).await?;
            blocking(move || received.finish()).await
        }
    }
}

/// Asks for what is missing, until there is no more.
async fn fetch(
    remote: &Remote,
    mut receiving: Receiving,
    progress: &Progress,
) -> Result<Receiving, ImageError> {
    let broken = |why: String| ImageError::Download {
        url: remote.path.clone(),
        why,
        is_final: false,
    };
    let late = || broken(format!("nothing arrived for {} s", PATIENCE.as_secs()));
    let have = receiving.have();
    if have == receiving.size() {
        return Ok(receiving);
    }
    let mut request = Request::get(&remote.path);
    if have > 0 {
        request = request.header(header::RANGE, format!("bytes={have}-"));
    }
    let request = request
        .body(Body::empty())
        .map_err(|error| broken(error.to_string()))?;
    let response = tokio::time::timeout(PATIENCE, remote.client.send(request))
        .await
        .map_err(|_| late())?
        .map_err(|error| broken(fairway_controller::error::sentence(&error)))?;
    match response.status() {
        StatusCode::OK => receiving.restart()?,
        StatusCode::PARTIAL_CONTENT if begins(response.headers()) == Some(have) => {}
        status => return Err(broken(format!("the server answers {status}"))),
    }
    let mut body = response.into_body();
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame())
            .await
            .map_err(|_| late())?;
        let Some(frame) = frame else {
            return Ok(receiving);
        };
        let frame = frame.map_err(|error| broken(error.to_string()))?;
        if progress.is_cancelled() {
            return Err(broken("nobody wants it any more".to_owned()));
        }
        if let Ok(piece) = frame.into_data() {
            // Disks are as fast as networks: a piece is written in less time than handing it to another thread takes.
            receiving.write(&piece)?;
            progress.set(receiving.have(), receiving.size());
        }
    }
}

/// Where in the content an answer with a part of it begins.
fn begins(headers: &http::HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}
