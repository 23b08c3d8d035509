//! Backups of a machine that runs: ordered, looked at, read and ended. Upstream has no such thing.
//!
//! ```text
//! PUT .../virtualmachineinstances/NAME/backup                begin
//! GET .../virtualmachineinstances/NAME/backup                how far it is
//! GET .../virtualmachineinstances/NAME/backup/disks/DISK     what was copied of a disk, from `?offset=N` on
//! PUT .../virtualmachineinstances/NAME/backup/end            it is taken, or not wanted any more
//! ```

use bytes::Bytes;
use fairway_apiservice::{Body, BoxError};
use fairway_fabric::Connection;
use fairway_machines_guests::{Backup, Door, Order};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;

use crate::refusal::Refusal;
use crate::service::{Asked, Hands};
use crate::{answer, decide, options};

/// The largest order.
const LARGEST: usize = 256 << 10;
/// What is read at once.
const PIECE: usize = 64 << 10;

/// How a backup ends.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
struct End {
    /// Whoever ordered it has everything: its checkpoint stays.
    keep: bool,
    /// The checkpoint before, which is not needed any more then.
    forget: Option<String>,
}

impl Hands {
    pub(crate) async fn backup(
        &self,
        asked: &Asked,
        request: Request<Body>,
    ) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let vmi = asked.objects.instance().await?;
        let node = decide::backup(&vmi)?.to_owned();
        let rest = asked.info.rest.as_str();
        match (&head.method, rest.strip_prefix("disks/")) {
            (&Method::GET, None) if rest.is_empty() => {
                let told = self.order(asked, &node, Order::BackupStatus).await?;
                Ok(answer::json(StatusCode::OK, &told))
            }
            (&Method::GET, Some(disk)) => {
                let offset = decide::offset(head.uri.query().unwrap_or_default())?;
                let door = Door::Backup {
                    disk: disk.to_owned(),
                    offset,
                };
                let opened = self.guests.open(&node, &asked.key(), door).await;
                let file = opened.map_err(|refusal| asked.not_reached(refusal))?;
                Ok(content(file))
            }
            (&Method::PUT, None) if rest.is_empty() => {
                let order: Backup = options::read(&whole(body).await?)?;
                let told = self.order(asked, &node, Order::BeginBackup(order)).await?;
                Ok(answer::json(StatusCode::OK, &told))
            }
            (&Method::PUT, None) if rest == "end" => {
                let End { keep, forget } = options::read(&whole(body).await?)?;
                self.order(asked, &node, Order::EndBackup { keep, forget })
                    .await?;
                Ok(answer::done(StatusCode::OK))
            }
            _ => Err(Refusal {
                code: 404,
                reason: "NotFound".to_owned(),
                ..Refusal::bad_request(format!("the server has no backup/{rest}"))
            }),
        }
    }
}

/// Requests here may last, so that nobody else bounds them.
async fn whole(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Refusal::bad_request(error.to_string()))?;
        read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        if read.len() > LARGEST {
            return Err(Refusal::bad_request(format!(
                "the request is longer than {LARGEST} bytes"
            )));
        }
    }
    Ok(read)
}

/// A file, as it comes.
fn content(file: Box<dyn Connection>) -> Response<Body> {
    let stream = futures::stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE];
        let count = file.read(&mut piece).await?;
        if count == 0 {
            return Ok::<_, BoxError>(None);
        }
        piece.truncate(count);
        Ok(Some((Frame::data(Bytes::from(piece)), file)))
    });
    let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
    let kind = HeaderValue::from_static("application/octet-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
