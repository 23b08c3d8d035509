//! A file that arrives becomes a disk: it is unpacked while it arrives, in another thread, and is there as a whole or not at all.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairway_apiservice::Body;
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_image::import::{self, Kept};
use fairway_machines_image::{Image, ImageError};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::sync::mpsc;

use super::token::Token;
use super::{Inside, Refusal, Uploads, kept_key};
use crate::decide::volume;
use crate::fill::{FillError, sentence};
use crate::names;
use crate::origin::{Origins, Target, blocking};
use crate::place::Place;

/// Pieces that wait to be unpacked; then the sender waits.
const WAITING: usize = 8;
/// How long the node of a disk may take to fetch it, and how often it is looked whether it has.
const HANDING_OVER: Duration = Duration::from_secs(1800);
const LOOK: Duration = Duration::from_millis(200);

impl Uploads {
    pub(super) async fn receive(&self, token: &Token, body: Body) -> Result<(), Refusal> {
        let Some(inside) = self.0.inside.get() else {
            return Err(Refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "nothing is uploaded here: this server has no volumes".to_owned(),
            ));
        };
        // The second waits for the first, and then finds that there is nothing to send any more.
        let _alone = self.0.alone.with(&token.uid).await;
        let claim = self.claim(inside, token).await?;
        let workspace = token.workspace()?;
        let Some(size) = claim.spec.resources.requests.bytes() else {
            return Err(Refusal(
                StatusCode::BAD_REQUEST,
                "the claim asks for no storage".to_owned(),
            ));
        };
        let directory = inside.place.directory(&workspace, &volume::name(&token.uid));
        let key = kept_key(&token.uid);
        let image = unpack(inside, body, &key, &token.name, size)
            .await
            .map_err(|error| refusal(&error))?;
        if claim.metadata.annotation(names::SELECTED_NODE) != Some(&inside.node) {
            let handed = self.hand_over(inside, token).await;
            let images = Arc::clone(&inside.images);
            // Who is late still finds it; the cache forgets by itself what nobody asks for.
            if !matches!(handed, Err(Refusal(StatusCode::GATEWAY_TIMEOUT, _))) {
                let _ = blocking(move || images.open()?.forget(&key)).await;
            }
            return handed;
        }
        let made = Origins::make_from(
            Target {
                directory: directory.clone(),
                size,
                preallocation: claim.metadata.annotation(names::PREALLOCATION) == Some("true"),
            },
            image,
        )
        .await;
        // The volume has a link to the content; the cache has no use for it.
        let images = Arc::clone(&inside.images);
        let _ = blocking(move || images.open()?.forget(&key)).await;
        made.map_err(|FillError { message, is_final }| {
            let status = match is_final {
                true => StatusCode::BAD_REQUEST,
                false => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Refusal(status, message)
        })?;
        // It may have been deleted meanwhile.
        if let Err(refusal) = self.claim(inside, token).await {
            let _ = blocking(move || Place::remove(&directory)).await;
            return Err(refusal);
        }
        inside
            .queue
            .add(ObjectKey::new(&workspace, &token.namespace, &token.name));
        Ok(())
    }
}

impl Uploads {
    /// Lets the node on which the disk is made fetch what was sent, and waits until it has.
    async fn hand_over(&self, inside: &Inside, token: &Token) -> Result<(), Refusal> {
        let requests = Requests::new(inside.clients.of(&token.workspace()?));
        let path = format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
            token.namespace, token.name
        );
        let unavailable = |failure: Failure| Refusal(StatusCode::SERVICE_UNAVAILABLE, failure.sentence());
        // Another word each time, so that the node looks again also after an attempt that failed.
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"uid": token.uid, "annotations": {names::UPLOADED: now}}});
        requests.merge(&path, &patch).await.map_err(unavailable)?;
        let give_up = Instant::now() + HANDING_OVER;
        while Instant::now() < give_up {
            let found = requests
                .get(&path)
                .await
                .map_err(unavailable)?
                .unwrap_or_default();
            if found["metadata"]["uid"] != token.uid.as_str() {
                let why = format!("PVC {} was deleted while it was uploaded", token.name);
                return Err(Refusal(StatusCode::CONFLICT, why));
            }
            if found["status"]["phase"] == "Bound" {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        let why = format!(
            "the node of PVC {} has not fetched what was sent within {} s; it goes on as soon as it is there",
            token.name,
            HANDING_OVER.as_secs()
        );
        Err(Refusal(StatusCode::GATEWAY_TIMEOUT, why))
    }
}

fn refusal(error: &ImageError) -> Refusal {
    let status = match error {
        ImageError::NoRoom { .. } => StatusCode::INSUFFICIENT_STORAGE,
        ImageError::File { .. } | ImageError::Program { .. } | ImageError::Build(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::BAD_REQUEST,
    };
    Refusal(status, format!("Saving stream failed: {}", sentence(error)))
}

/// Makes an image of what arrives.
async fn unpack(
    inside: &Inside,
    mut body: Body,
    key: &str,
    name: &str,
    size: u64,
) -> Result<Image, ImageError> {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(WAITING);
    let images = Arc::clone(&inside.images);
    let mut request = import::Request::keeping(
        Kept {
            key: key.to_owned(),
            ..Kept::default()
        },
        &format!("the upload into {name}"),
    );
    request.max_size = size;
    let unpacking = blocking(move || {
        let pieces = Pieces {
            receiver,
            rest: Bytes::new(),
            has_ended: false,
        };
        import::stream(&images.open()?, pieces, &request, |_| {})
    });
    let sending = async {
        while let Some(frame) = body.frame().await {
            let piece = match frame {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => Ok(data),
                    Err(_) => continue,
                },
                Err(error) => Err(io::Error::other(error)),
            };
            let is_last = piece.is_err();
            // Nobody reads on: it was refused, and the answer says why.
            if sender.send(piece).await.is_err() || is_last {
                return;
            }
        }
        // An empty piece says that this was all; a channel that closes without it, that something broke off.
        let _ = sender.send(Ok(Bytes::new())).await;
    };
    let (image, ()) = tokio::join!(unpacking, sending);
    image
}

/// Pieces that arrive, as a reader.
struct Pieces {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
    has_ended: bool,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !self.has_ended {
            match self.receiver.blocking_recv() {
                Some(Ok(piece)) if piece.is_empty() => self.has_ended = true,
                Some(Ok(piece)) => self.rest = piece,
                Some(Err(error)) => return Err(error),
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the upload broke off",
                    ));
                }
            }
        }
        let count = self.rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}
