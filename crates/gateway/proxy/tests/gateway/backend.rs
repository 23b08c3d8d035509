//! A backend that answers with what it was asked, and remembers how often.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<AtomicUsize>,
    pub(crate) connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start(name: &'static str) -> Self {
        Self::at(name, "127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn at(name: &'static str, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, connected) = (Arc::clone(&requests), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            let mut served = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connected.fetch_add(1, Ordering::SeqCst);
                let counted = Arc::clone(&counted);
                served.spawn(async move {
                    let service = service_fn(move |request| {
                        counted.fetch_add(1, Ordering::SeqCst);
                        answer(name, request)
                    });
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection_with_upgrades(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            address,
            requests,
            connections,
            task,
        }
    }

    pub(crate) fn seen(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

fn full(text: String) -> BoxBody<Bytes, std::convert::Infallible> {
    Full::new(Bytes::from(text)).boxed()
}

/// `/status/N`, `/slow/MS`, `/big/BYTES`, `/trailers`, `/ticks/MS` without an end; anything else is told back.
async fn answer(name: &'static str, request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let path = request.uri().path().to_owned();
    let mut words = path.split('/').skip(1);
    let (what, number) = (
        words.next().unwrap_or_default(),
        words.next().and_then(|word| word.parse::<u64>().ok()),
    );
    if request.headers().contains_key("upgrade") {
        return Ok(upgrade(request));
    }
    match (what, number) {
        ("status", Some(code)) => {
            let _ = request.into_body().collect().await?;
            let code = u16::try_from(code).unwrap();
            return Ok(Response::builder()
                .status(code)
                .body(full(String::new()))
                .unwrap());
        }
        ("slow", Some(millis)) => tokio::time::sleep(Duration::from_millis(millis)).await,
        ("big", Some(bytes)) => {
            let body = "x".repeat(usize::try_from(bytes).unwrap());
            return Ok(Response::new(full(body)));
        }
        ("trailers", _) => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            let frames = [
                Ok(Frame::data(Bytes::from("message"))),
                Ok(Frame::trailers(trailers)),
            ];
            let body = BodyExt::boxed(StreamBody::new(futures::stream::iter(frames)));
            return Ok(Response::new(body));
        }
        ("ticks", Some(millis)) => {
            let ticks = futures::stream::unfold(true, move |first| async move {
                if !first {
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                Some((Ok(Frame::data(Bytes::from_static(b"data: tick\n\n"))), false))
            });
            return Ok(Response::new(BodyExt::boxed(StreamBody::new(ticks))));
        }
        _ => {}
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut lines = vec![format!(
        "{name} {} {}",
        parts.method,
        parts.uri.path_and_query().unwrap()
    )];
    for (name, value) in &parts.headers {
        lines.push(format!("{name}: {}", value.to_str().unwrap()));
    }
    if parts.version == http::Version::HTTP_2 {
        lines.push(format!("authority: {}", parts.uri.authority().unwrap()));
    }
    lines.push(format!(
        "body: {} {}",
        body.len(),
        String::from_utf8_lossy(&body[..body.len().min(64)])
    ));
    Ok(Response::builder()
        .header("x-backend", name)
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .body(full(lines.join("\n")))
        .unwrap())
}

/// Whatever protocol it is, bytes come back in upper case.
fn upgrade(mut request: Request<Incoming>) -> Answer {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let protocol = request.headers()["upgrade"].clone();
    let key = request.headers().get("sec-websocket-key").cloned();
    if let Some(key) = key {
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        tokio::spawn(async move {
            let Ok(upgraded) = hyper::upgrade::on(&mut request).await else {
                return;
            };
            let role = tokio_tungstenite::tungstenite::protocol::Role::Server;
            let mut socket =
                tokio_tungstenite::WebSocketStream::from_raw_socket(TokioIo::new(upgraded), role, None).await;
            use futures::{SinkExt, StreamExt};
            while let Some(Ok(message)) = socket.next().await {
                if message.is_text() {
                    let text = message.into_text().unwrap().to_uppercase();
                    let _ = socket
                        .send(tokio_tungstenite::tungstenite::Message::text(text))
                        .await;
                }
            }
        });
        return Response::builder()
            .status(101)
            .header("upgrade", protocol)
            .header("connection", "upgrade")
            .header("sec-websocket-accept", accept)
            .body(full(String::new()))
            .unwrap();
    }
    tokio::spawn(async move {
        let Ok(upgraded) = hyper::upgrade::on(&mut request).await else {
            return;
        };
        let mut io = TokioIo::new(upgraded);
        let mut buffer = [0; 64];
        while let Ok(read @ 1..) = io.read(&mut buffer).await {
            let _ = io.write_all(&buffer[..read].to_ascii_uppercase()).await;
        }
    });
    Response::builder()
        .status(101)
        .header("upgrade", protocol)
        .header("connection", "upgrade")
        .body(full(String::new()))
        .unwrap()
}
