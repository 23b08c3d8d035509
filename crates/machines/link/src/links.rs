//! The server's end: the streams of all nodes, and the machines behind them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fairway_controller::ObjectKey;
use fairway_fabric::{Connection, Destination, DialError};
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use fairway_websocket::Role;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::node::{PING, PONG};
use crate::tube;
use crate::wire::{FIGURES, Key, LARGEST, LARGEST_FIGURES, ORDERS, Problem, Task, WISH, Wish};

/// How long a node may take to open a stream.
const OPENING: Duration = Duration::from_secs(15);
/// How long it may take to carry out an order.
const OBEYING: Duration = Duration::from_secs(120);
/// How long it may take to tell figures of its machines, how many are asked at a time, and how long all of them together may take:
/// whoever reads figures does so every few seconds, and does not wait for a node that is ill.
const COUNTING: Duration = Duration::from_secs(5);
const COUNTING_AT_ONCE: usize = 32;
const COUNTING_ALL: Duration = Duration::from_secs(8);

/// The nodes that are connected, and the one of this process. Clones share them.
#[derive(Clone)]
pub struct Links(Arc<Inner>);

struct Inner {
    /// The node of this process, and its machines.
    here: Option<(String, Arc<dyn Guests>)>,
    can_plug: bool,
    nodes: Mutex<HashMap<String, Link>>,
    count: AtomicU64,
}

struct Link {
    sender: SendRequest<Full<Bytes>>,
    number: u64,
    /// Dropped when another takes its place.
    _end: oneshot::Sender<()>,
}

/// Why nothing came of a request.
enum Missed {
    /// The node was not reached.
    Lost(String),
    /// It said why not.
    Said(Problem),
}

impl Links {
    /// For a process that runs machines itself, or none. `can_plug`: nodes plug disks into machines that run.
    pub fn new(here: Option<(String, Arc<dyn Guests>)>, can_plug: bool) -> Self {
        Self(Arc::new(Inner {
            here,
            can_plug,
            nodes: Mutex::default(),
            count: AtomicU64::new(0),
        }))
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<String, Link>> {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes that are connected.
    pub fn connected(&self) -> Vec<String> {
        self.nodes().keys().cloned().collect()
    }

    /// Takes the stream of a node, until it breaks or the node calls again.
    pub(crate) async fn take<S>(&self, node: &str, socket: S)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (plain, carrying) = tube::tube(socket, Role::Server);
        let carrying = tokio::spawn(carrying);
        let joined = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(plain))
            .await;
        let (sender, connection) = match joined {
            Ok(joined) => joined,
            Err(error) => {
                carrying.abort();
                return tracing::warn!(node, %error, "the stream of a node is not used");
            }
        };
        let number = self.0.count.fetch_add(1, Ordering::Relaxed);
        let (end, replaced) = oneshot::channel();
        let link = Link {
            sender,
            number,
            _end: end,
        };
        self.nodes().insert(node.to_owned(), link);
        tracing::info!(node, "a node is connected");
        tokio::select! {
            _ = connection => {}
            _ = replaced => {}
        }
        carrying.abort();
        let mut nodes = self.nodes();
        if nodes.get(node).is_some_and(|link| link.number == number) {
            nodes.remove(node);
            tracing::info!(node, "a node is not connected any more");
        }
    }

    async fn send(
        &self,
        node: &str,
        request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Missed> {
        let sender = self.nodes().get(node).map(|link| link.sender.clone());
        let Some(mut sender) = sender else {
            return Err(Missed::Lost(
                "it keeps no stream to this server; see whether `fairway node` runs there".to_owned(),
            ));
        };
        let asking = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        match tokio::time::timeout(patience, asking).await {
            Ok(Ok(response)) if response.status() == StatusCode::OK => Ok(response),
            Ok(Ok(response)) => {
                let body = read(response).await;
                let problem = body.ok().and_then(|it| serde_json::from_slice(&it).ok());
                let strange =
                    || Problem::Failed("the node answered something that is not understood".to_owned());
                Err(Missed::Said(problem.unwrap_or_else(strange)))
            }
            Ok(Err(error)) => Err(Missed::Lost(error.to_string())),
            Err(_) => Err(Missed::Lost(format!("no answer within {} s", patience.as_secs()))),
        }
    }

    async fn connect(&self, node: &str, wish: &Wish) -> Result<Box<dyn Connection>, Missed> {
        let wrong = |error: &dyn std::fmt::Display| Missed::Lost(error.to_string());
        let wish = serde_json::to_string(wish).map_err(|error| wrong(&error))?;
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri("machines:1")
            .header(WISH, wish)
            .body(Full::default())
            .map_err(|error| wrong(&error))?;
        let response = self.send(node, request, OPENING).await?;
        let stream = hyper::upgrade::on(response).await;
        Ok(Box::new(TokioIo::new(stream.map_err(|error| wrong(&error))?)))
    }

    async fn command(&self, node: &str, task: &Task) -> Result<Value, Missed> {
        let wrong = |error: &dyn std::fmt::Display| Missed::Lost(error.to_string());
        let body = serde_json::to_vec(task).map_err(|error| wrong(&error))?;
        let request = Request::post(format!("http://machines{ORDERS}"))
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| wrong(&error))?;
        let response = self.send(node, request, OBEYING).await?;
        let body = read(response).await.map_err(Missed::Lost)?;
        serde_json::from_slice(&body).map_err(|error| wrong(&error))
    }

    /// Figures of the machines of this process and of all nodes that are connected, as Prometheus reads them, each with the node that it came
    /// from; nothing for this process. In the place of what a node did not tell in time is why not.
    pub async fn figures(&self) -> Vec<(Option<String>, Result<String, String>)> {
        let mut all = Vec::new();
        if let Some((_, guests)) = &self.0.here {
            all.push((None, Ok(guests.figures().await)));
        }
        let nodes = self.connected();
        let mut told: HashMap<String, Result<String, String>> = HashMap::new();
        {
            let asking = futures::stream::iter(nodes.clone())
                .map(|node| async move {
                    let answer = self.count(&node).await;
                    (node, answer)
                })
                .buffer_unordered(COUNTING_AT_ONCE);
            let gathering = asking.for_each(|(node, answer)| {
                told.insert(node, answer);
                std::future::ready(())
            });
            // What has come until then counts.
            let _ = tokio::time::timeout(COUNTING_ALL, gathering).await;
        }
        for node in nodes {
            let answer = told.remove(&node);
            let late = || Err("there was no time to ask it".to_owned());
            all.push((Some(node), answer.unwrap_or_else(late)));
        }
        all
    }

    async fn count(&self, node: &str) -> Result<String, String> {
        let request = Request::get(format!("http://machines{FIGURES}"))
            .body(Full::default())
            .map_err(|error| error.to_string())?;
        let response = self.send(node, request, COUNTING).await;
        let response = response.map_err(|missed| match missed {
            Missed::Lost(why) | Missed::Said(Problem::Failed(why)) => why,
            Missed::Said(problem) => format!("{problem:?}"),
        })?;
        let body = read_within(response, LARGEST_FIGURES, COUNTING).await?;
        String::from_utf8(body.to_vec()).map_err(|error| error.to_string())
    }

    /// The machines of this process, if the node is its own.
    fn here(&self, node: &str) -> Option<&Arc<dyn Guests>> {
        let here = self.0.here.as_ref().filter(|(name, _)| name == node);
        here.map(|(_, guests)| guests)
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes, String> {
    read_within(response, LARGEST, OBEYING).await
}

async fn read_within(
    response: Response<Incoming>,
    largest: usize,
    patience: Duration,
) -> Result<Bytes, String> {
    let body = Limited::new(response.into_body(), largest);
    let reading = tokio::time::timeout(patience, body.collect());
    match reading.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the answer does not end".to_owned()),
    }
}

fn refusal(node: &str, key: &ObjectKey, missed: Missed) -> Refusal {
    match missed {
        Missed::Said(problem) => problem.refusal(key),
        Missed::Lost(why) => Refusal::NodeLost {
            key: key.clone(),
            node: node.to_owned(),
            why,
        },
    }
}

impl Guests for Links {
    fn can_plug(&self) -> bool {
        self.0.can_plug
    }

    fn open<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        door: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        if let Some(guests) = self.here(node) {
            return guests.open(node, key, door);
        }
        let wish = Wish::Open {
            key: Key::of(key),
            door,
        };
        Box::pin(async move {
            let opened = self.connect(node, &wish).await;
            opened.map_err(|missed| refusal(node, key, missed))
        })
    }

    fn dial<'a>(
        &'a self,
        node: &'a str,
        to: &'a Destination,
    ) -> Option<BoxFuture<'a, Result<Box<dyn Connection>, DialError>>> {
        if self.here(node).is_some() {
            return None;
        }
        Some(Box::pin(async move {
            let dialled = self.connect(node, &Wish::dial(to)).await;
            dialled.map_err(|missed| match missed {
                Missed::Said(problem) => problem.dial(to),
                Missed::Lost(why) => DialError::Unreachable {
                    to: to.clone(),
                    why: format!("the node {node} cannot be reached: {why}"),
                },
            })
        }))
    }

    fn order<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        order: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        if let Some(guests) = self.here(node) {
            return guests.order(node, key, order);
        }
        let task = Task {
            key: Key::of(key),
            order,
        };
        Box::pin(async move {
            let told = self.command(node, &task).await;
            told.map_err(|missed| refusal(node, key, missed))
        })
    }
}
