//! TLS of clients: which name they ask for, which listener that is, and its certificates.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fairway_gateway_routes::table::{Certificate, HostPattern, Names};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::h1;
use crate::h2;
use crate::metrics;
use crate::peer::Peer;
use crate::plan::TlsPlan;
use crate::proxy::Shared;
use crate::rewound::Rewound;
use crate::tunnel;

/// How a listener ends TLS.
#[derive(Clone)]
pub(crate) struct Termination {
    config: Arc<ServerConfig>,
}

pub(crate) fn certified(certificate: &Certificate) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_slice_iter(certificate.chain.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("the chain is not PEM: {error}"))?;
    if chain.is_empty() {
        return Err("the chain has no certificate".into());
    }
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())
        .map_err(|error| format!("the key is not a PEM private key: {error}"))?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(|error| format!("certificate and key cannot be used together: {error}"))
}

/// None: there is no certificate to show.
pub(crate) fn termination(
    keys: Vec<Arc<CertifiedKey>>,
    authorities: Option<&str>,
) -> Result<Option<Termination>, String> {
    if keys.is_empty() {
        return Ok(None);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| format!("not PEM certificates: {error}"))?;
                roots
                    .add(certificate)
                    .map_err(|error| format!("one cannot be used: {error}"))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| error.to_string())?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(Keys(keys)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Some(Termination {
        config: Arc::new(config),
    }))
}

/// The first whose kind of key the client understands; they are in order of how well they fit.
#[derive(Debug)]
struct Keys(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for Keys {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fits = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        self.0.iter().find(fits).or(self.0.first()).cloned()
    }
}

/// A connection to a door that speaks TLS.
pub(crate) struct Arrival {
    pub(crate) shared: Arc<Shared>,
    pub(crate) worker: usize,
    pub(crate) client: SocketAddr,
    pub(crate) door: SocketAddr,
    pub(crate) port: u16,
    pub(crate) closing: watch::Receiver<()>,
}

/// The alert `unrecognized_name`, which ends a handshake before it began.
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70];

pub(crate) async fn serve(arrival: Arrival, mut stream: TcpStream, names: &Names<Arc<TlsPlan>>) {
    let shared = &arrival.shared;
    let limits = &shared.options.limits;
    let within = shared.options.timeouts.handshake;
    let hello = tokio::time::timeout(within, hello(&mut stream, limits.client_hello)).await;
    let Ok(Ok((first, name))) = hello else {
        metrics::add(&shared.metrics.totals.tls_failures);
        return;
    };
    // Without a name only a listener for all names is meant; there is none to guess.
    let plan = match &name {
        Some(name) => names.candidates(name).next(),
        None => names.get(&HostPattern::Any),
    };
    let (terminate, stream) = match plan.map(|plan| &**plan) {
        Some(TlsPlan::Passthrough(forward)) => {
            let stream = Rewound::new(first, stream);
            return tunnel::forward(shared, arrival.worker, arrival.client, stream, forward).await;
        }
        Some(TlsPlan::Terminate { tls: Some(tls), .. }) => (tls.clone(), stream),
        Some(TlsPlan::Terminate { tls: None, .. }) | None => {
            metrics::add(&shared.metrics.totals.tls_failures);
            let _ = stream.write_all(&UNRECOGNIZED_NAME).await;
            let _ = stream.shutdown().await;
            return;
        }
    };
    let accepting = TlsAcceptor::from(terminate.config).accept(Rewound::new(first, stream));
    let Ok(Ok(stream)) = tokio::time::timeout(within, accepting).await else {
        metrics::add(&shared.metrics.totals.tls_failures);
        return;
    };
    let peer = Arc::new(Peer::new(arrival.client, arrival.door, arrival.port, Some(name)));
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let link = h1::server::Link {
        shared: arrival.shared,
        worker: arrival.worker,
        peer,
        closing: arrival.closing,
    };
    if http2 {
        h2::serve(link, stream).await;
    } else {
        h1::server::serve(link, h1::server::ClientIo::Tls(Box::new(stream))).await;
    }
}

/// Reads a ClientHello, and nothing after it that matters: its bytes, to be read again, and the server name in lower case.
async fn hello(stream: &mut TcpStream, longest: usize) -> io::Result<(Bytes, Option<String>)> {
    let mut acceptor = Acceptor::default();
    let mut bytes = BytesMut::with_capacity(2048);
    loop {
        let before = bytes.len();
        if before >= longest {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the ClientHello is too long",
            ));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut fresh = &bytes[before..];
        while !fresh.is_empty() {
            acceptor.read_tls(&mut fresh)?;
        }
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                let name = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                return Ok((bytes.freeze(), name));
            }
            Err((error, mut alert)) => {
                let mut out = Vec::new();
                alert.write_all(&mut out)?;
                stream.write_all(&out).await?;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }
}
