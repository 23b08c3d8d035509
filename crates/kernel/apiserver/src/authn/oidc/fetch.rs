//! Reading an issuer's documents: HTTPS, one try, bounded in time and size.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long a document may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How large it may be.
const MAX_DOCUMENT: usize = 1024 * 1024;

/// The certificates of a PEM text.
pub(super) fn roots_of(pem: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|e| format!("it is not valid PEM: {e}"))?;
        roots.add(certificate).map_err(|e| e.to_string())?;
    }
    if roots.is_empty() {
        return Err("data does not contain any valid RSA or ECDSA certificates".to_owned());
    }
    Ok(roots)
}

/// A client that trusts these authorities; `None`: those of the machine.
pub(super) fn client(authority: Option<&str>) -> Result<TlsConnector, String> {
    let roots = match authority {
        Some(pem) => roots_of(pem)?,
        None => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Reads a JSON document.
pub(super) async fn json(client: &TlsConnector, url: &str) -> Result<Value, String> {
    match tokio::time::timeout(TIMEOUT, get(client, url)).await {
        Ok(Ok(body)) => serde_json::from_slice(&body).map_err(|e| format!("{url} is not JSON: {e}")),
        Ok(Err(why)) => Err(format!("{url} could not be read: {why}")),
        Err(_) => Err(format!("{url} did not answer within {} s", TIMEOUT.as_secs())),
    }
}

async fn get(client: &TlsConnector, url: &str) -> Result<Bytes, String> {
    let uri: Uri = url.parse().map_err(|_| "it is not a URL".to_owned())?;
    if uri.scheme_str() != Some("https") {
        return Err("only https is read".to_owned());
    }
    let authority = uri.authority().ok_or("it has no host")?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(443);
    let name = ServerName::try_from(host.to_owned()).map_err(|e| e.to_string())?;
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|e| e.to_string())?;
    let stream = client.connect(name, stream).await.map_err(|e| e.to_string())?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| e.to_string())?;
    let request = Request::get(uri.path_and_query().map_or("/", |p| p.as_str()))
        .header(http::header::HOST, authority.as_str())
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::USER_AGENT, "fairway")
        .body(Empty::<Bytes>::new())
        .map_err(|e| e.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            return Err(format!("it answers {}", response.status()));
        }
        let body = Limited::new(response.into_body(), MAX_DOCUMENT).collect().await;
        body.map(|b| b.to_bytes()).map_err(|e| e.to_string())
    };
    // The connection is driven as long as the exchange takes, and not a moment longer.
    tokio::pin!(connection);
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = &mut connection => match ended {
            Err(error) => Err(error.to_string()),
            // What has arrived may still be read.
            Ok(()) => exchange.await,
        },
    }
}
