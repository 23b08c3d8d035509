//! Somebody who receives webhooks, and answers as he is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn event(&self) -> &str {
        self.header("x-gitea-event")
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Receiver {
    seen: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<u16>>>,
    pub port: u16,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            port: listener.local_addr().unwrap().port(),
            ..Self::default()
        };
        let this = receiver.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let this = this.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        let this = this.clone();
                        async move {
                            let (parts, body) = request.into_parts();
                            let body = body.collect().await.unwrap().to_bytes();
                            let headers = parts.headers;
                            this.seen.lock().unwrap().push(Received { headers, body });
                            let status = this.answers.lock().unwrap().pop_front().unwrap_or(200);
                            let answer = Response::builder()
                                .status(status)
                                .body(Full::new(Bytes::from_static(b"thanks")));
                            Ok::<_, std::convert::Infallible>(answer.unwrap())
                        }
                    });
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        receiver
    }

    /// Answers the next requests with these statuses.
    pub(crate) fn answers(&self, statuses: &[u16]) {
        self.answers.lock().unwrap().extend(statuses);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Received> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until so many have come.
    pub(crate) async fn wait(&self, count: usize) -> Vec<Received> {
        let begun = Instant::now();
        while self.seen().len() < count {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:#?}", self.seen());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.seen()
    }
}
