//! A backend that tells requests that came whole from those that did not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fairway_gateway_routes::table::BackendProtocol;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

use crate::rig::{Rig, cluster, http_table, rule};

/// Paths and bodies.
type Got = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A backend that writes down what it got whole.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) address: SocketAddr,
    got: Got,
}

impl Recorder {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let recorder = Self {
            address: listener.local_addr().unwrap(),
            got: Arc::default(),
        };
        let got = Arc::clone(&recorder.got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let got = Arc::clone(&got);
                tokio::spawn(async move {
                    let service = service_fn(move |request| record(Arc::clone(&got), request));
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        recorder
    }

    pub(crate) fn take(&self) -> Vec<(String, Vec<u8>)> {
        std::mem::take(&mut *self.got.lock().unwrap())
    }
}

async fn record(got: Got, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let cookies = request.headers().get_all("cookie").iter();
    let cookies: Vec<_> = cookies.map(|value| value.to_str().unwrap().to_owned()).collect();
    let body = request.into_body().collect().await?.to_bytes().to_vec();
    let answer = format!("{path} {} {}", body.len(), cookies.join(" and "));
    got.lock().unwrap().push((path, body));
    Ok(Response::new(Full::new(answer.into())))
}

pub(crate) fn recorded(recorder: &Recorder, protocol: BackendProtocol) -> Rig {
    let mut web = cluster("web", &[recorder.address]);
    web.protocol = protocol;
    Rig::new(http_table(vec![("/", rule("web"))], vec![web]))
}
