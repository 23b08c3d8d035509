//! Bytes that go on as they are: TCP doors, TLS that is passed through, and connections after an upgrade.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional};

use crate::chance;
use crate::metrics;
use crate::permit::Permit;
use crate::plan::{ForwardPlan, TargetPlan};
use crate::proxy::Shared;
use crate::upstream::dial::{self, Dialler};

/// How long the end of a tunnel may take to be told.
const GOODBYE: Duration = Duration::from_secs(1);
/// Endpoints that are tried before a connection is given up.
const ATTEMPTS: usize = 3;

pub(crate) async fn forward<T: AsyncRead + AsyncWrite + Unpin>(
    shared: &Arc<Shared>,
    worker: usize,
    client: SocketAddr,
    stream: T,
    forward: &ForwardPlan,
) {
    let Some(TargetPlan::Cluster(cluster)) = forward
        .backends
        .pick(chance::next())
        .map(|backend| &backend.target)
    else {
        tracing::debug!(route = %forward.key.name, "closed a connection: its route has no backend");
        return;
    };
    let dialler = Dialler {
        fabric: &shared.fabric,
        worker,
        connect: shared.options.timeouts.connect,
    };
    let origin = dial::origin(client.ip());
    let mut failed = None;
    for _ in 0..ATTEMPTS.min(cluster.endpoints.len()) {
        let now = shared.now();
        let Some(endpoint) = cluster.pick(shared.options.balance, now, None, failed.as_ref()) else {
            break;
        };
        let Some(_in_flight) = endpoint.enter() else {
            metrics::add(&shared.metrics.totals.upstream_overflows);
            return;
        };
        match dial::raw(dialler, endpoint, origin).await {
            Ok((io, _permit)) => {
                endpoint.health.succeeded();
                return join(stream, io, shared.options.timeouts.tunnel_idle, Vec::new()).await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot forward a connection");
                metrics::add(&shared.metrics.totals.upstream_connect_failures);
                if error.is_endpoints() && endpoint.health.failed(now, &endpoint.outliers) {
                    metrics::add(&shared.metrics.totals.upstream_ejections);
                }
                failed = Some(Arc::clone(endpoint));
            }
        }
    }
}

/// Both ways until both have ended, one has broken, nothing has passed for too long, or a permit is lost.
pub(crate) async fn join<A, B>(one: A, two: B, idle: Duration, mut permits: Vec<Permit>)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let started = Instant::now();
    let seen = Arc::new(AtomicU64::new(0));
    let watched = |seen: &Arc<AtomicU64>| Arc::clone(seen);
    let mut one = Seen {
        io: one,
        started,
        seen: watched(&seen),
    };
    let mut two = Seen {
        io: two,
        started,
        seen: watched(&seen),
    };
    let silence = async {
        loop {
            let quiet = started
                .elapsed()
                .saturating_sub(Duration::from_millis(seen.load(Ordering::Relaxed)));
            if quiet >= idle {
                return;
            }
            tokio::time::sleep(idle - quiet).await;
        }
    };
    tokio::select! {
        // Either side may break off; there is nobody to tell.
        _ = copy_bidirectional(&mut one, &mut two) => {}
        () = silence => {}
        () = lost(&mut permits) => {
            // Both are told that it is over, rather than left with a connection that breaks.
            let told = async { tokio::join!(one.shutdown(), two.shutdown()) };
            let _ = tokio::time::timeout(GOODBYE, told).await;
        }
    }
}

async fn lost(permits: &mut [Permit]) {
    poll_fn(
        |cx| match permits.iter_mut().any(|permit| permit.poll_lost(cx).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        },
    )
    .await;
}

/// A stream that remembers when something was read from it.
struct Seen<T> {
    io: T,
    started: Instant,
    seen: Arc<AtomicU64>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Seen<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buffer));
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.seen.store(now, Ordering::Relaxed);
        Poll::Ready(read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Seen<T> {
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
