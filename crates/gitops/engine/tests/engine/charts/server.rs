//! A server on loopback that answers as a test wants, and remembers what it was asked; over TLS if it is given a certificate.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What is asked for: the path with its query, and `Authorization`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) authorization: Option<String>,
}

pub(super) type Answer = Response<Full<Bytes>>;
type Handler = dyn Fn(&Asked) -> Answer + Send + Sync;

pub(super) struct Server {
    /// `127.0.0.1:PORT`
    pub(super) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

/// Certificate and key of a server, in PEM.
pub(super) struct Identity {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// A certificate for loopback that nobody trusts unless he is told to.
pub(super) fn identity() -> Identity {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    Identity {
        certificate: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

impl Server {
    pub(super) async fn start(
        identity: Option<&Identity>,
        handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let handler: Arc<Handler> = Arc::new(handler);
        let acceptor = identity.map(|identity| {
            let chain = vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .unwrap();
            TlsAcceptor::from(Arc::new(config))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (handler, noted, acceptor) = (handler.clone(), noted.clone(), acceptor.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let header = request.headers().get("authorization");
                        let asked = Asked {
                            path: request.uri().path_and_query().unwrap().to_string(),
                            authorization: header.map(|value| value.to_str().unwrap().to_owned()),
                        };
                        let answer = handler(&asked);
                        noted.lock().unwrap().push(asked);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let server = hyper::server::conn::http1::Builder::new();
                    match acceptor {
                        // Clients that do not trust us hang up.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                let _ = server.serve_connection(TokioIo::new(stream), service).await;
                            }
                        }
                        None => {
                            let _ = server.serve_connection(TokioIo::new(stream), service).await;
                        }
                    }
                });
            }
        });
        Self { address, asked, task }
    }

    /// What it was asked, as often as it was.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn ok(body: impl Into<Bytes>) -> Answer {
    Response::new(Full::new(body.into()))
}

pub(super) fn status(code: u16, headers: &[(&'static str, String)]) -> Answer {
    let mut answer = Response::builder().status(StatusCode::from_u16(code).unwrap());
    for (name, value) in headers {
        answer = answer.header(*name, value);
    }
    answer.body(Full::default()).unwrap()
}
