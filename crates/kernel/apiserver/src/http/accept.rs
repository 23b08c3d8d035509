//! Connections: accepted, shaken hands with, served, and drained at the end. One way for every listener of the process,
//! whatever it serves.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time to send the head of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// Time for requests under way to finish when the server ends.
const DRAIN: Duration = Duration::from_secs(5);

/// What strangers may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at once.
    pub connections: usize,
    /// The most bytes of a request's head.
    pub head: usize,
    /// Requests at once on a connection of HTTP/2.
    pub streams: u32,
    /// Bytes of a response that wait for a slow reader.
    pub send_buffer: usize,
}

/// What is served on a listener.
pub trait Site: Send + Sync + 'static {
    /// What answers consist of.
    type Body: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static;
    /// Whom a handshake trusted, if that matters afterwards.
    type Trust: Send;
    /// What is known of whoever is at the other end.
    type Peer: Send + Sync + 'static;

    /// The settings of the next handshake.
    fn tls(&self) -> (Arc<ServerConfig>, Self::Trust);

    /// Who is at the other end, once hands were shaken.
    fn peer(trust: Self::Trust, stream: &TlsStream<TcpStream>, address: SocketAddr) -> Self::Peer;

    /// Answers a request.
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Arc<Self::Peer>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Serves until the end, then lets requests under way finish.
pub async fn serve<S: Site>(
    site: Arc<S>,
    listener: TcpListener,
    bounds: Bounds,
    end: impl Future<Output = ()> + Send,
) {
    let places = Arc::new(Semaphore::new(bounds.connections));
    let graceful = hyper_util::server::graceful::GracefulShutdown::new();
    let server = Arc::new(builder(bounds));
    tokio::pin!(end);
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: waiting is all that helps.
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut end => break,
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            debug!(%address, "too many connections");
            continue;
        };
        let (site, server) = (Arc::clone(&site), Arc::clone(&server));
        let (tls, trust) = site.tls();
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let _place = place;
            let Some(stream) = handshake(tls, stream, address).await else {
                return;
            };
            let peer = Arc::new(S::peer(trust, &stream, address));
            let service = service_fn(move |request| {
                // Boxed: it is large, and on its way into a task it would be copied several times.
                let answer = Box::pin(Arc::clone(&site).answer(request, Arc::clone(&peer)));
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let connection = server
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .into_owned();
            if let Err(error) = watcher.watch(connection).await {
                debug!(%address, %error, "a connection ended with an error");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        debug!("connections were still open at the end and are cut");
    }
}

fn builder(bounds: Bounds) -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(bounds.head);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(bounds.streams)
        .max_header_list_size(u32::try_from(bounds.head).unwrap_or(u32::MAX))
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .max_send_buf_size(bounds.send_buffer)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(15));
    server
}

async fn handshake(
    tls: Arc<ServerConfig>,
    stream: TcpStream,
    address: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            debug!(%address, %error, "a TLS handshake failed");
            None
        }
        Err(_) => {
            debug!(%address, "a TLS handshake took too long");
            None
        }
    }
}
