//! A node's end: dials, answers, and dials again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_controller::Shutdown;
use fairway_fabric::{Connection, Destination, Fabric, Origin};
use fairway_machines_guests::Guests;
use fairway_websocket::Role;
use fairway_websocket::handshake::Offer;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::Client;
use kube::client::Body;
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::time::Instant;

use crate::wire::{FIGURES, LARGEST, ORDERS, Problem, Task, WISH, Wish};
use crate::{PROTOCOL, path, tube};

/// How soon a stream that broke is dialled again, and how seldom at last.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);
/// How long the server may take to answer the call.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often either end is asked whether it is there, and how long it may take to answer.
pub(crate) const PING: Duration = Duration::from_secs(10);
pub(crate) const PONG: Duration = Duration::from_secs(10);
/// Streams at a time.
const STREAMS: u32 = 256;

/// Who answers on a node.
#[derive(Clone)]
pub struct Answers {
    /// The name of the node.
    pub node: String,
    /// Its machines.
    pub guests: Arc<dyn Guests>,
    /// Their network.
    pub fabric: Arc<dyn Fabric>,
}

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("the server did not answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("the call failed: {0}")]
    Call(#[source] kube::Error),
    #[error("the server does not take the stream: {0}")]
    Refused(#[from] fairway_websocket::handshake::HandshakeError),
    #[error("the stream broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
}

/// Keeps the stream of a node until the end. `client` is asked at every call, as credentials are renewed.
pub async fn keep(answers: Answers, client: impl Fn() -> Client + Send, mut shutdown: Shutdown) {
    let mut retry = FIRST_RETRY;
    let mut is_told = false;
    loop {
        let began = Instant::now();
        let ended = tokio::select! {
            () = shutdown.wait() => return,
            ended = once(&answers, client(), &mut is_told) => ended,
        };
        if let Err(error) = ended
            && !is_told
        {
            // Once is enough: machines run on.
            is_told = true;
            tracing::warn!(%error, "the server does not reach the machines of this node; trying again");
        }
        if began.elapsed() > LAST_RETRY {
            retry = FIRST_RETRY;
        }
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(retry) => {}
        }
        retry = (retry * 2).min(LAST_RETRY);
    }
}

/// One stream, until it breaks.
async fn once(answers: &Answers, client: Client, is_told: &mut bool) -> Result<(), LinkError> {
    let offer = Offer::new(PROTOCOL)?;
    let mut request = Request::get(path(&answers.node)).body(Body::empty())?;
    offer.add_to(request.headers_mut());
    let calling = async {
        let response = client.send(request).await.map_err(LinkError::Call)?;
        offer.check(response.status(), response.headers())?;
        Ok::<_, LinkError>(hyper::upgrade::on(response).await?)
    };
    let upgraded = tokio::time::timeout(PATIENCE, calling)
        .await
        .map_err(|_| LinkError::Late)??;
    *is_told = false;
    tracing::info!(
        node = answers.node,
        "the server reaches the machines of this node"
    );
    answer_on(answers, TokioIo::new(upgraded)).await
}

/// Answers on a connection until it breaks.
pub(crate) async fn answer_on<S>(answers: &Answers, socket: S) -> Result<(), LinkError>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (plain, carrying) = tube::tube(socket, Role::Client);
    let answers = answers.clone();
    let service = service_fn(move |request| {
        let answers = answers.clone();
        async move { Ok::<_, Infallible>(answers.answer(request).await) }
    });
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .max_concurrent_streams(STREAMS)
        .serve_connection(TokioIo::new(plain), service);
    tokio::select! {
        served = serving => served.map_err(LinkError::Broken),
        () = carrying => Ok(()),
    }
}

type Reply = Response<Full<Bytes>>;

impl Answers {
    async fn answer(&self, mut request: Request<Incoming>) -> Reply {
        if request.method() == Method::CONNECT {
            let upgrade = hyper::upgrade::on(&mut request);
            return match self.open(request.headers()).await {
                Ok(mut machine) => {
                    tokio::spawn(async move {
                        if let Ok(stream) = upgrade.await {
                            // Either side may break off; there is nobody to tell.
                            let _ = copy_bidirectional(&mut TokioIo::new(stream), &mut machine).await;
                        }
                    });
                    Response::new(Full::default())
                }
                Err(problem) => reply(StatusCode::BAD_GATEWAY, &problem),
            };
        }
        if request.uri().path() == FIGURES {
            return Response::new(Full::new(Bytes::from(self.guests.figures().await)));
        }
        if request.uri().path() != ORDERS {
            return reply(StatusCode::NOT_FOUND, &Problem::Failed(unknown("a request")));
        }
        match self.obey(request.into_body()).await {
            Ok(told) => reply(StatusCode::OK, &told),
            Err(problem) => reply(StatusCode::BAD_GATEWAY, &problem),
        }
    }

    async fn open(&self, headers: &HeaderMap) -> Result<Box<dyn Connection>, Problem> {
        let wish = headers
            .get(WISH)
            .and_then(|it| serde_json::from_slice(it.as_bytes()).ok());
        match wish {
            Some(Wish::Open { key, door }) => {
                let key = key.key().ok_or(Problem::NotRunning)?;
                let opened = self.guests.open(&self.node, &key, door).await;
                opened.map_err(|refusal| Problem::of_refusal(&refusal))
            }
            Some(Wish::Dial {
                workspace,
                address,
                port,
                client,
            }) => {
                let mut to = Destination::new(workspace, address, port);
                to.origin = client.map_or(Origin::Node, Origin::Client);
                let dialled = self.fabric.dial(to).await;
                dialled.map_err(|error| Problem::of_dial(&error))
            }
            None => Err(Problem::Failed(unknown("a stream"))),
        }
    }

    async fn obey(&self, body: Incoming) -> Result<Value, Problem> {
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body
            .map_err(|error| Problem::Failed(error.to_string()))?
            .to_bytes();
        let task: Task = serde_json::from_slice(&body).map_err(|_| Problem::Failed(unknown("an order")))?;
        let key = task.key.key().ok_or(Problem::NotRunning)?;
        let told = self.guests.order(&self.node, &key, task.order).await;
        told.map_err(|refusal| Problem::of_refusal(&refusal))
    }
}

/// The server may be newer than this node.
fn unknown(what: &str) -> String {
    format!("the node does not know {what} of this kind; it may run an older Fairway than the server")
}

fn reply(status: StatusCode, body: &impl Serialize) -> Reply {
    let text = serde_json::to_vec(body).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}
