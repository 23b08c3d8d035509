//! Zones by workspace, one that all of them know, and messages to answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hickory_proto::op::{Edns, Message, ResponseCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::answer::{Outcome, answer, is_question, unreadable};
use crate::upstream::Upstream;
use crate::zone::Zone;

/// How a message came, which bounds its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Datagram,
    Stream,
}

/// What a datagram holds without being cut into pieces anywhere (the figure of DNS Flag Day 2020).
const DATAGRAM: u16 = 1232;
/// What a client takes that says nothing.
const SMALL: usize = 512;
/// How long a client may be silent on a stream.
const SILENCE: Duration = Duration::from_secs(10);
/// How many questions one stream may carry.
const QUESTIONS: usize = 1000;

/// The server. Cheap to share; zones change under it.
#[derive(Debug, Default)]
pub struct Server {
    zones: ArcSwap<HashMap<String, Arc<Zone>>>,
    /// Names that everybody knows, beside those of the own workspace.
    common: ArcSwapOption<Zone>,
    upstream: Option<Upstream>,
}

impl Server {
    /// Without an upstream, names outside of the zones are refused.
    pub fn new(upstream: Option<Upstream>) -> Self {
        Self {
            zones: ArcSwap::default(),
            common: ArcSwapOption::empty(),
            upstream,
        }
    }

    /// Replaces a workspace's names.
    pub fn set_zone(&self, workspace: &str, zone: Zone) {
        let zone = Arc::new(zone);
        self.zones.rcu(|zones| {
            let mut zones = HashMap::clone(zones);
            zones.insert(workspace.to_owned(), Arc::clone(&zone));
            zones
        });
    }

    pub fn remove_zone(&self, workspace: &str) {
        self.zones.rcu(|zones| {
            let mut zones = HashMap::clone(zones);
            zones.remove(workspace);
            zones
        });
    }

    /// Replaces the names that everybody knows.
    pub fn set_common(&self, zone: Zone) {
        self.common.store(Some(Arc::new(zone)));
    }

    /// Answers a message of somebody in `workspace`. `None`: it was no question.
    pub async fn answer(&self, workspace: &str, message: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let Ok(question) = Message::from_vec(message) else {
            return unreadable(message)?.to_vec().ok();
        };
        if !is_question(&question) {
            return None;
        }
        let own = self.zones.load().get(workspace).cloned();
        let common = self.common.load_full();
        let zones: Vec<&Zone> = own.as_deref().into_iter().chain(common.as_deref()).collect();
        let reply = match answer(&zones, &question, self.upstream.is_some()) {
            Outcome::Reply(reply) => reply,
            Outcome::Ask(ask) => {
                let mut reply = self.blank(&question);
                reply.add_query(ask.clone());
                self.complete(reply, ask).await
            }
            Outcome::Complete { reply, ask } => self.complete(reply, ask).await,
        };
        fitted(reply, &question, transport)
    }

    fn blank(&self, question: &Message) -> Message {
        let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
        reply.metadata.recursion_desired = question.metadata.recursion_desired;
        reply.metadata.recursion_available = self.upstream.is_some();
        reply
    }

    async fn complete(&self, mut reply: Message, ask: hickory_proto::op::Query) -> Message {
        let asked = match &self.upstream {
            Some(upstream) => upstream.ask(ask).await,
            None => return reply,
        };
        match asked {
            Ok(found) => {
                reply.metadata.response_code = found.metadata.response_code;
                reply.answers.extend(found.answers);
                reply.authorities.extend(found.authorities);
            }
            Err(error) => {
                tracing::debug!(%error, "no answer from upstream");
                reply.metadata.response_code = ResponseCode::ServFail;
            }
        }
        reply
    }

    /// Answers the questions of a stream, each with its length before it, until the client ends it or is too slow.
    pub async fn serve_stream(&self, workspace: &str, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        for _ in 0..QUESTIONS {
            let message = match tokio::time::timeout(SILENCE, read_message(&mut stream)).await {
                Ok(Ok(message)) => message,
                Ok(Err(_)) | Err(_) => return,
            };
            let Some(answer) = self.answer(workspace, &message, Transport::Stream).await else {
                return;
            };
            let Ok(length) = u16::try_from(answer.len()) else {
                return;
            };
            let mut framed = length.to_be_bytes().to_vec();
            framed.extend(answer);
            match tokio::time::timeout(SILENCE, stream.write_all(&framed)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}

/// Reads one message of a stream.
pub(crate) async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}

/// The answer as bytes: cut short where a datagram would not hold it, so that the client asks again over a stream.
fn fitted(mut reply: Message, question: &Message, transport: Transport) -> Option<Vec<u8>> {
    let mut room = SMALL;
    if let Some(asked) = &question.edns {
        room = usize::from(asked.max_payload().clamp(512, DATAGRAM));
        let mut edns = Edns::new();
        edns.set_max_payload(DATAGRAM);
        reply.set_edns(edns);
    }
    let bytes = reply.to_vec().ok()?;
    if transport == Transport::Datagram && bytes.len() > room {
        return reply.truncate().to_vec().ok();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
