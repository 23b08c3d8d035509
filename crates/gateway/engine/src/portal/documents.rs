//! Fetches the documents of APIProducts from addresses that their owners name: judged, bounded, and few at a time.

use std::sync::Arc;
use std::time::Duration;

use fairway_gateway_policy::portal::{Fetched, LARGEST};
use fairway_outbound::{Outbound, SendError};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::Semaphore;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Fewer than there are workers: slow servers must not keep keys waiting.
const AT_ONCE: usize = 2;

pub(super) struct Documents {
    outbound: Arc<Outbound>,
    room: Semaphore,
}

impl Documents {
    pub(super) fn new(outbound: Arc<Outbound>) -> Self {
        Self {
            outbound,
            room: Semaphore::new(AT_ONCE),
        }
    }

    /// None: others are being fetched.
    pub(super) async fn fetch(&self, url: &str) -> Option<Fetched> {
        let _place = self.room.try_acquire().ok()?;
        let fetched = tokio::time::timeout(LIMIT, self.read(url)).await;
        Some(match fetched {
            Ok(Ok(fetched)) => fetched,
            Ok(Err(error)) => Fetched::Failed(error.to_string()),
            Err(_) => Fetched::Failed(format!("it took longer than {LIMIT:?}")),
        })
    }

    async fn read(&self, url: &str) -> Result<Fetched, SendError> {
        let accepts = HeaderValue::from_static("application/json, application/yaml, text/yaml, */*;q=0.1");
        let headers = HeaderMap::from_iter([(header::ACCEPT, accepts)]);
        let mut answer = self.outbound.get(url, &headers, LIMIT).await?;
        if answer.status != StatusCode::OK {
            let why = format!("unexpected status code {}", answer.status.as_u16());
            return Ok(Fetched::Failed(why));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = answer.next().await? {
            if bytes.len() + piece.len() > LARGEST {
                return Ok(Fetched::TooLarge);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Fetched::Text(text),
            Err(_) => Fetched::Failed("what is there is not text in UTF-8".to_owned()),
        })
    }
}
