//! Opening connections to endpoints, within what each is asked to carry.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use fairway_fabric::{Connection, Destination, DialError, Fabric, Origin};
use fairway_gateway_routes::table::{self, BackendProtocol};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsConnector;

use super::Endpoint;
use super::cluster::Cluster;
use super::endpoint::Line;
use super::pool::{self, Conn};
use crate::activity::{Activity, Open};
use crate::body::Body;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("too many requests wait for a connection to {0}")]
    Overflow(String),
    #[error("every connection to {0} was busy for too long")]
    Busy(String),
    #[error(transparent)]
    Dial(DialError),
    #[error("connecting to {0} took too long")]
    Slow(String),
    #[error("the backend at {at} does not prove that it is {name}")]
    Tls {
        at: String,
        name: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the TLS settings of the backend cannot be used: {0}")]
    Settings(String),
    #[error("the backend at {at} does not speak HTTP/2")]
    Http2 {
        at: String,
        #[source]
        source: hyper::Error,
    },
}

impl ConnectError {
    /// It says something about the endpoint rather than about us.
    pub(crate) fn is_endpoints(&self) -> bool {
        !matches!(self, Self::Overflow(_) | Self::Busy(_) | Self::Settings(_))
    }
}

/// In whose name: whoever connects over the loopback is the node itself.
pub(crate) fn origin(client: IpAddr) -> Origin {
    let client = client.to_canonical();
    if client.is_loopback() {
        Origin::Node
    } else {
        Origin::Client(client)
    }
}

/// What connecting needs beside the endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Dialler<'a> {
    pub(crate) fabric: &'a Arc<dyn Fabric>,
    pub(crate) worker: usize,
    pub(crate) connect: Duration,
}

/// An idle connection, or a new one.
pub(crate) async fn http1(
    dialler: Dialler<'_>,
    cluster: &Cluster,
    endpoint: &Arc<Endpoint>,
    origin: Origin,
) -> Result<Conn, ConnectError> {
    if let Some(conn) = pool::take(endpoint, dialler.worker, origin).await {
        return Ok(conn);
    }
    let permit = room(dialler, endpoint).await?;
    let (io, flushes) = open(dialler, cluster, endpoint, origin).await?;
    Ok(Conn {
        io,
        buffer: BytesMut::new(),
        out: BytesMut::new(),
        used: 0,
        sent: false,
        received: false,
        flushes,
        origin,
        worker: dialler.worker,
        endpoint: Arc::clone(endpoint),
        permit,
    })
}

/// Requests that one connection over HTTP/2 is given before another one is opened: what servers usually allow.
const STREAMS: usize = 100;

/// A way to send requests over HTTP/2; one connection carries many. The stream counts as long as it is held.
pub(crate) async fn http2(
    dialler: Dialler<'_>,
    cluster: &Cluster,
    endpoint: &Arc<Endpoint>,
    origin: Origin,
) -> Result<(SendRequest<Body>, Open), ConnectError> {
    let lines = endpoint.http2.get(dialler.worker);
    let known = |most: usize| {
        let mut lines = lines?.lock().ok()?;
        lines.retain(|line| !line.sender.is_closed());
        let line = lines
            .iter()
            .find(|line| line.origin == origin && line.sender.is_ready() && line.activity.streams() < most)?;
        Some((line.sender.clone(), Activity::open(&line.activity)))
    };
    if let Some(found) = known(STREAMS) {
        return Ok(found);
    }
    let permit = match Arc::clone(&endpoint.room).try_acquire_owned() {
        Ok(permit) => permit,
        Err(_) => match known(usize::MAX) {
            // It waits there for its turn.
            Some(found) => return Ok(found),
            None => room(dialler, endpoint).await?,
        },
    };
    let (io, _) = open(dialler, cluster, endpoint, origin).await?;
    let (sender, connection) = handshake(endpoint, io).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a backend ended");
        }
        drop(permit);
    });
    let activity = Arc::new(Activity::new());
    let stream = Activity::open(&activity);
    if let Some(Ok(mut lines)) = lines.map(|lines| lines.lock()) {
        lines.push(Line {
            origin,
            sender: sender.clone(),
            activity,
        });
    }
    Ok((sender, stream))
}

type Http2Connection =
    hyper::client::conn::http2::Connection<TokioIo<Box<dyn Connection>>, Body, TokioExecutor>;

/// What a backend may have on its way to clients that do not take it: of one answer, and of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

async fn handshake(
    endpoint: &Endpoint,
    io: Box<dyn Connection>,
) -> Result<(SendRequest<Body>, Http2Connection), ConnectError> {
    hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .handshake(TokioIo::new(io))
        .await
        .map_err(|source| ConnectError::Http2 {
            at: endpoint.to_string(),
            source,
        })
}

/// A connection of its own for one question, whatever the breaker says; with HTTP/2 spoken on it if the backend wants that.
pub(crate) async fn apart(
    dialler: Dialler<'_>,
    cluster: &Cluster,
    endpoint: &Arc<Endpoint>,
) -> Result<Apart, ConnectError> {
    let (io, _) = open(dialler, cluster, endpoint, Origin::Node).await?;
    if cluster.spec.protocol != BackendProtocol::Http2 {
        return Ok(Apart::Http1(io));
    }
    let (sender, connection) = handshake(endpoint, io).await?;
    Ok(Apart::Http2(sender, Box::new(connection)))
}

pub(crate) enum Apart {
    Http1(Box<dyn Connection>),
    /// It has to be driven.
    Http2(SendRequest<Body>, Box<Http2Connection>),
}

/// One connection as it is, for bytes that nobody looks into.
pub(crate) async fn raw(
    dialler: Dialler<'_>,
    endpoint: &Arc<Endpoint>,
    origin: Origin,
) -> Result<(Box<dyn Connection>, OwnedSemaphorePermit), ConnectError> {
    let permit = room(dialler, endpoint).await?;
    let io = dial(dialler, endpoint, origin).await?;
    Ok((io, permit))
}

/// Waits for its turn if the endpoint has as many connections as it may have.
async fn room(dialler: Dialler<'_>, endpoint: &Arc<Endpoint>) -> Result<OwnedSemaphorePermit, ConnectError> {
    if let Ok(permit) = Arc::clone(&endpoint.room).try_acquire_owned() {
        return Ok(permit);
    }
    /// Counts back also when nobody waits any longer.
    struct Waiting<'a>(&'a Endpoint);
    impl Drop for Waiting<'_> {
        fn drop(&mut self) {
            self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let before = endpoint.waiting.fetch_add(1, Ordering::Relaxed);
    let _waiting = Waiting(endpoint);
    if before >= endpoint.breaker.pending {
        return Err(ConnectError::Overflow(endpoint.to_string()));
    }
    // Idle connections in others' names, or of other workers, make room.
    make_room(endpoint);
    match tokio::time::timeout(dialler.connect, Arc::clone(&endpoint.room).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(ConnectError::Busy(endpoint.to_string())),
    }
}

fn make_room(endpoint: &Endpoint) {
    for idle in &endpoint.idle {
        if let Ok(mut idle) = idle.lock()
            && idle.pop_front().is_some()
        {
            return;
        }
    }
    for lines in &endpoint.http2 {
        if let Ok(mut lines) = lines.lock()
            && let Some(at) = lines.iter().position(|line| line.activity.streams() == 0)
        {
            // Its connection ends, and gives its place back, when nobody can send on it any longer.
            lines.remove(at);
            return;
        }
    }
}

async fn open(
    dialler: Dialler<'_>,
    cluster: &Cluster,
    endpoint: &Arc<Endpoint>,
    origin: Origin,
) -> Result<(Box<dyn Connection>, bool), ConnectError> {
    let io = dial(dialler, endpoint, origin).await?;
    let Some(tls) = &cluster.tls else {
        return Ok((io, false));
    };
    let tls = tls
        .as_ref()
        .map_err(|why| ConnectError::Settings(why.to_string()))?;
    let name = ServerName::try_from(tls.hostname.clone())
        .map_err(|_| ConnectError::Settings(format!("{:?} is not a host name", tls.hostname)))?;
    let handshake = TlsConnector::from(Arc::clone(&tls.config)).connect(name, io);
    match tokio::time::timeout(dialler.connect, handshake).await {
        Ok(Ok(stream)) => Ok((Box::new(stream), true)),
        Ok(Err(source)) => Err(ConnectError::Tls {
            at: endpoint.to_string(),
            name: tls.hostname.clone(),
            source,
        }),
        Err(_) => Err(ConnectError::Slow(endpoint.to_string())),
    }
}

async fn dial(
    dialler: Dialler<'_>,
    endpoint: &Endpoint,
    origin: Origin,
) -> Result<Box<dyn Connection>, ConnectError> {
    let table::Endpoint::Address(address) = &endpoint.at else {
        return Err(ConnectError::Settings("a listener of ours is not dialled".into()));
    };
    let mut to = Destination::new(endpoint.cluster.workspace.clone(), address.ip(), address.port());
    to.origin = origin;
    match tokio::time::timeout(dialler.connect, dialler.fabric.dial(to)).await {
        Ok(dialled) => dialled.map_err(ConnectError::Dial),
        Err(_) => Err(ConnectError::Slow(endpoint.to_string())),
    }
}

#[cfg(test)]
mod tests;
