//! The TLS listener: HTTP/1.1 and HTTP/2 on one port, client certificates where they are offered.
//!
//! What is served and who is trusted may be exchanged while it runs: a connection keeps what it began with, the next one
//! gets the new.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::body::ResponseBody;
use super::client_certificate::{Requested, is_trusted};
use crate::authn::{Peer, x509};
use crate::kernel::Kernel;
use crate::pki::Pair;
use crate::service;

/// A handshake that takes longer is given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time to send the head of a request.
const HEADERS: Duration = Duration::from_secs(30);
/// Connections at once.
const MAX_CONNECTIONS: usize = 8_192;
/// The most bytes of a request's head.
const MAX_HEAD: usize = 256 * 1024;
/// Time for requests under way to finish when the server ends.
const DRAIN: Duration = Duration::from_secs(5);

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file is wrong.
    #[error("the {what} is not valid PEM")]
    Pem {
        /// Which one.
        what: &'static str,
        /// Why.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The parts do not fit.
    #[error("the serving certificate cannot be used")]
    Config(#[source] rustls::Error),
    /// The client CA is unusable.
    #[error("the client certificate authority cannot be used")]
    ClientAuthority(#[source] rustls::server::VerifierBuilderError),
}

/// What a connection is served with, and whose certificates are believed on it.
pub struct Tls {
    config: Arc<ServerConfig>,
    trusted: Arc<dyn ClientCertVerifier>,
    web: Arc<ServerConfig>,
}

impl Tls {
    /// The same certificate for listeners that ask for none of the client: browsers would ask their users.
    pub fn web(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.web)
    }
}

/// TLS with this serving certificate; clients may show a certificate of `client_authority`.
pub fn tls(serving: &Pair, client_authority: &str) -> Result<Arc<Tls>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pem = |what| move |source| TlsError::Pem { what, source };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(serving.certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(pem("serving certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).map_err(pem("serving key"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(client_authority.as_bytes()) {
        roots
            .add(certificate.map_err(pem("client certificate authority"))?)
            .map_err(TlsError::Config)?;
    }
    let trusted = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .map_err(TlsError::ClientAuthority)?;
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Config)?
        .with_client_cert_verifier(Arc::new(Requested(Arc::clone(&trusted))))
        .with_single_cert(chain, key)
        .map_err(TlsError::Config)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut web = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Config)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(&config.cert_resolver));
    web.alpn_protocols.clone_from(&config.alpn_protocols);
    Ok(Arc::new(Tls {
        config: Arc::new(config),
        trusted,
        web: Arc::new(web),
    }))
}

/// Serves until the kernel shuts down, then lets requests under way finish.
pub async fn serve(kernel: Arc<Kernel>, listener: TcpListener, tls: Arc<ArcSwap<Tls>>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = hyper_util::server::graceful::GracefulShutdown::new();
    let mut shutdown = kernel.shutdown.subscribe();
    let server = Arc::new(builder());
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
            () = ended(&mut shutdown) => break,
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            debug!(%address, "too many connections");
            continue;
        };
        let (kernel, tls, server) = (Arc::clone(&kernel), tls.load_full(), Arc::clone(&server));
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            let _place = place;
            let Some((stream, peer)) = handshake(&tls, stream, address).await else {
                return;
            };
            let peer = Arc::new(peer);
            let service = service_fn(move |request| {
                let (kernel, peer) = (Arc::clone(&kernel), Arc::clone(&peer));
                async move { Ok::<_, std::convert::Infallible>(handle(&kernel, request, &peer).await) }
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

/// Returns when the kernel shuts down, without keeping the channel's lock.
async fn ended(shutdown: &mut tokio::sync::watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|down| *down).await;
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(MAX_HEAD);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .max_send_buf_size(512 * 1024)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .keep_alive_timeout(Duration::from_secs(15));
    server
}

async fn handshake(
    tls: &Tls,
    stream: TcpStream,
    address: SocketAddr,
) -> Option<(tokio_rustls::server::TlsStream<TcpStream>, Peer)> {
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(
        HANDSHAKE,
        TlsAcceptor::from(Arc::clone(&tls.config)).accept(stream),
    )
    .await
    {
        Ok(Ok(stream)) => {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let certificate = chain.first().filter(|_| is_trusted(&*tls.trusted, chain));
            let identity = certificate.and_then(|c| x509::user(c));
            let refused = !chain.is_empty() && identity.is_none();
            let until = certificate.and_then(|c| x509::end(c));
            Some((
                stream,
                Peer {
                    refused,
                    until,
                    address: Some(address.ip()),
                    ..identity.map_or_else(Peer::default, Peer::known)
                },
            ))
        }
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

async fn handle(kernel: &Arc<Kernel>, request: Request<Incoming>, peer: &Peer) -> Response<ResponseBody> {
    let request = request.map(|body: Incoming| body.map_err(Into::into).boxed_unsync());
    service::serve(kernel, request, peer).await
}
