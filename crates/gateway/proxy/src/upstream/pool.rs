//! Connections to one endpoint that wait for their next request.
//!
//! A connection is used again only in the name of the same client: the fabric judged it by that client's address when it was
//! opened, and NetworkPolicies must not be got round by waiting for somebody else's connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fairway_fabric::{Connection, Origin};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use super::Endpoint;

/// A connection that speaks HTTP/1.
pub(crate) struct Conn {
    pub(crate) io: Box<dyn Connection>,
    pub(crate) buffer: BytesMut,
    pub(crate) out: BytesMut,
    /// Requests that it carried before this one.
    pub(crate) used: u32,
    /// Something of this request was written, and something of an answer read.
    pub(crate) sent: bool,
    pub(crate) received: bool,
    /// Written bytes may stay in the connection until it is flushed.
    pub(crate) flushes: bool,
    pub(crate) origin: Origin,
    pub(crate) worker: usize,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) permit: OwnedSemaphorePermit,
}

pub(crate) struct Idle {
    io: Box<dyn Connection>,
    buffer: BytesMut,
    out: BytesMut,
    used: u32,
    flushes: bool,
    origin: Origin,
    permit: OwnedSemaphorePermit,
    since: Instant,
}

/// What an idle connection keeps of its buffers at most.
const KEPT: usize = 16 * 1024;

impl Conn {
    /// Back to where the next request finds it.
    pub(crate) fn keep(self) {
        let endpoint = self.endpoint;
        if endpoint.waiting.load(Ordering::Relaxed) > 0 {
            // Somebody waits for room and may come in another name: the permit is worth more than the connection.
            return;
        }
        let Some(Ok(mut idle)) = endpoint.idle.get(self.worker).map(|idle| idle.lock()) else {
            return;
        };
        if idle.len() >= endpoint.breaker.idle {
            idle.pop_front();
        }
        let small = |buffer: BytesMut| {
            if buffer.capacity() > KEPT {
                BytesMut::new()
            } else {
                buffer
            }
        };
        idle.push_back(Idle {
            io: self.io,
            buffer: small(self.buffer),
            out: small(self.out),
            used: self.used + 1,
            flushes: self.flushes,
            origin: self.origin,
            permit: self.permit,
            since: Instant::now(),
        });
    }

    pub(crate) fn into_io(self) -> Tunnel {
        Tunnel {
            io: self.io,
            _permit: self.permit,
        }
    }
}

/// The youngest idle connection that is alive.
pub(crate) async fn take(endpoint: &Arc<Endpoint>, worker: usize, origin: Origin) -> Option<Conn> {
    loop {
        let mut idle = {
            let mut all = endpoint.idle.get(worker)?.lock().ok()?;
            let at = all.iter().rposition(|idle| idle.origin == origin)?;
            all.remove(at)?
        };
        if !is_quiet(&mut idle.io).await {
            continue;
        }
        return Some(Conn {
            io: idle.io,
            buffer: idle.buffer,
            out: idle.out,
            used: idle.used,
            sent: false,
            received: false,
            flushes: idle.flushes,
            origin,
            worker,
            endpoint: Arc::clone(endpoint),
            permit: idle.permit,
        });
    }
}

/// Nothing has come since the last answer: neither its end, nor bytes that nobody asked for.
async fn is_quiet(io: &mut Box<dyn Connection>) -> bool {
    poll_fn(|cx| {
        let mut byte = [0_u8];
        let mut buffer = ReadBuf::new(&mut byte);
        Poll::Ready(Pin::new(&mut *io).poll_read(cx, &mut buffer).is_pending())
    })
    .await
}

/// Closes what waited too long or was closed by the backend.
pub(crate) async fn sweep(endpoint: &Endpoint, worker: usize, longest: Duration) {
    let old = match endpoint.idle.get(worker).map(|idle| idle.lock()) {
        Some(Ok(mut idle)) => std::mem::take(&mut *idle),
        _ => return,
    };
    let mut kept = std::collections::VecDeque::with_capacity(old.len());
    for mut idle in old {
        if idle.since.elapsed() < longest && is_quiet(&mut idle.io).await {
            kept.push_back(idle);
        }
    }
    if let Some(Ok(mut idle)) = endpoint.idle.get(worker).map(|idle| idle.lock()) {
        kept.append(&mut idle);
        *idle = kept;
    }
    if let Some(Ok(mut lines)) = endpoint.http2.get(worker).map(|lines| lines.lock()) {
        let now = tokio::time::Instant::now();
        lines.retain(|line| !line.sender.is_closed() && line.activity.idle_at(longest) > now);
    }
}

/// A connection that left the pool for good, and counts until it ends.
pub(crate) struct Tunnel {
    io: Box<dyn Connection>,
    _permit: OwnedSemaphorePermit,
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
