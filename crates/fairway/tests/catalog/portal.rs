//! A client of `portal.fairway.localhost`, wherever it listens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const HOST: &str = "portal.fairway.localhost";

/// A caller with a token.
#[derive(Clone)]
pub(crate) struct Portal {
    pub authority: PathBuf,
    pub port: u64,
    pub token: String,
    /// What stands before `/api/catalog`.
    pub prefix: String,
}

/// Status, headers and JSON of an answer.
pub(crate) struct Answered {
    pub status: u16,
    pub link: Option<String>,
    pub body: Value,
}

impl Portal {
    pub(crate) fn new(data: &Path, port: u64, token: &str) -> Self {
        Self {
            authority: data.join("pki/ca.crt"),
            port,
            token: token.to_owned(),
            prefix: String::new(),
        }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answered {
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_file_iter(&self.authority).unwrap();
        for certificate in certificates {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let port = u16::try_from(self.port).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = ServerName::try_from(HOST).unwrap();
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let driving = tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/api/catalog{path}", self.prefix))
            .header("host", format!("{HOST}:{port}"))
            .header("content-type", "application/json");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let response = sender
            .send_request(request.body(Full::new(bytes::Bytes::from(body))).unwrap())
            .await
            .unwrap();
        let status = response.status().as_u16();
        let link = response
            .headers()
            .get("link")
            .map(|value| value.to_str().unwrap().to_owned());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        driving.abort();
        Answered {
            status,
            link,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answered = self.call("GET", path, None).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.body
    }
}
