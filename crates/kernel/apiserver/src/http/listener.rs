//! The TLS listener: HTTP/1.1 and HTTP/2 on one port, client certificates where they are offered.
//!
//! What is served and who is trusted may be exchanged while it runs: a connection keeps what it began with, the next one
//! gets the new.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use super::accept::{self, Bounds, Site};
use super::body::ResponseBody;
use super::client_certificate::{Requested, is_trusted};
use crate::authn::{Peer, x509};
use crate::kernel::Kernel;
use crate::pki::Pair;
use crate::service;

/// What clients may take.
const BOUNDS: Bounds = Bounds {
    connections: 8_192,
    head: 256 * 1024,
    streams: 250,
    send_buffer: 512 * 1024,
};

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

/// The Kubernetes API, as it is served on a listener.
struct Api {
    kernel: Arc<Kernel>,
    tls: Arc<ArcSwap<Tls>>,
}

impl Site for Api {
    type Body = ResponseBody;
    /// A certificate must be judged by those who asked for it, also when others take over meanwhile.
    type Trust = Arc<Tls>;
    type Peer = Peer;

    fn tls(&self) -> (Arc<ServerConfig>, Arc<Tls>) {
        let tls = self.tls.load_full();
        (Arc::clone(&tls.config), tls)
    }

    fn peer(tls: Arc<Tls>, stream: &TlsStream<TcpStream>, address: SocketAddr) -> Peer {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificate = chain.first().filter(|_| is_trusted(&*tls.trusted, chain));
        let identity = certificate.and_then(|c| x509::user(c));
        Peer {
            refused: !chain.is_empty() && identity.is_none(),
            until: certificate.and_then(|c| x509::end(c)),
            address: Some(address.ip()),
            ..identity.map_or_else(Peer::default, Peer::known)
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, peer: Arc<Peer>) -> Response<ResponseBody> {
        let request = request.map(|body: Incoming| body.map_err(Into::into).boxed_unsync());
        service::serve(&self.kernel, request, &peer).await
    }
}

/// Serves until the kernel shuts down, then lets requests under way finish.
pub async fn serve(kernel: Arc<Kernel>, listener: TcpListener, tls: Arc<ArcSwap<Tls>>) {
    let mut shutdown = kernel.shutdown.subscribe();
    // Without keeping the channel's lock.
    let end = async move { drop(shutdown.wait_for(|down| *down).await) };
    accept::serve(Arc::new(Api { kernel, tls }), listener, BOUNDS, end).await;
}
