//! Where an agent that runs by itself tells how it fares: `/metrics` on one address, `/healthz` and `/readyz` on another,
//! in plain HTTP as probes and Prometheus ask.
//!
//! Each connection is bounded in time and their number is, too: the addresses need not be loopback ones.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairway_controller::{Metrics, Shutdown};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::debug;

/// Connections at once.
const MAX_CONNECTIONS: usize = 64;
/// Time to send the head of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// How long a connection may last.
const CONNECTION: Duration = Duration::from_secs(60);

/// How an agent fares.
#[derive(Clone, Default)]
pub struct Probes {
    /// Its figures.
    pub metrics: Arc<Metrics>,
    ready: Arc<AtomicBool>,
}

/// Which of the two an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `/metrics`.
    Metrics,
    /// `/healthz` and `/readyz`.
    Health,
}

impl Probes {
    /// Says whether both sides can be reached and work is done, or waited for.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    fn answer(&self, purpose: Purpose, method: &Method, path: &str) -> (StatusCode, String) {
        if method != Method::GET && method != Method::HEAD {
            return (StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned());
        }
        match (purpose, path.trim_end_matches('/')) {
            (Purpose::Metrics, "/metrics") => (StatusCode::OK, self.metrics.render()),
            (Purpose::Health, "/healthz") => (StatusCode::OK, "ok".to_owned()),
            (Purpose::Health, "/readyz") if self.ready.load(Ordering::Acquire) => {
                (StatusCode::OK, "ok".to_owned())
            }
            (Purpose::Health, "/readyz") => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the agent is starting, or ending\n".to_owned(),
            ),
            _ => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
        }
    }

    /// Answers on a socket until the end.
    pub async fn serve(self, purpose: Purpose, socket: TcpListener, mut shutdown: Shutdown) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                () = shutdown.wait() => return,
                accepted = socket.accept() => accepted,
            };
            match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok((stream, peer)), Ok(place)) => {
                    let probes = self.clone();
                    tokio::spawn(async move {
                        probes.converse(purpose, stream, peer).await;
                        drop(place);
                    });
                }
                // Whoever is one too many finds the connection closed.
                (Ok(_), Err(_)) => {}
                (Err(error), _) => {
                    debug!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn converse(self, purpose: Purpose, stream: TcpStream, peer: SocketAddr) {
        let answer = service_fn(move |request: Request<Incoming>| {
            let (status, text) = self.answer(purpose, request.method(), request.uri().path());
            let mut response = Response::new(Full::new(Bytes::from(text)));
            *response.status_mut() = status;
            let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            async move { Ok::<_, Infallible>(response) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .serve_connection(TokioIo::new(stream), answer);
        if let Ok(Err(error)) = tokio::time::timeout(CONNECTION, connection).await {
            debug!(%peer, %error, "a connection for probes failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::Shutdown;
    use http::Method;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::{Probes, Purpose};

    #[test]
    fn each_address_has_its_paths() {
        let probes = Probes::default();
        for (purpose, method, path, ready, expected) in [
            (Purpose::Metrics, Method::GET, "/metrics", false, 200),
            (Purpose::Metrics, Method::POST, "/metrics", false, 405),
            (Purpose::Metrics, Method::GET, "/healthz", true, 404),
            (Purpose::Health, Method::GET, "/healthz", false, 200),
            (Purpose::Health, Method::GET, "/healthz/", false, 200),
            (Purpose::Health, Method::GET, "/readyz", false, 503),
            (Purpose::Health, Method::HEAD, "/readyz", true, 200),
            (Purpose::Health, Method::GET, "/metrics", true, 404),
        ] {
            probes.set_ready(ready);
            let (status, _) = probes.answer(purpose, &method, path);
            assert_eq!(status, expected, "{purpose:?} {method} {path} {ready}");
        }
    }

    #[tokio::test]
    async fn figures_are_read_over_http() {
        let probes = Probes::default();
        probes.metrics.controller("mirror");
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = socket.local_addr().unwrap();
        let (end, shutdown) = Shutdown::new();
        let serving = tokio::spawn(probes.serve(Purpose::Metrics, socket, shutdown));
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("controller=\"mirror\""), "{text}");
        end.shut_down();
        serving.await.unwrap();
    }
}
