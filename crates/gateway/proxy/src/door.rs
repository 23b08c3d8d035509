//! Doors: sockets that are listened on, and the workers that serve who comes.
//!
//! Every worker accepts from every door, so whoever is idle takes the next connection and the kernel's queue is one: nothing
//! waits behind a busy worker, and nothing is lost when a door stays open over a change of tables.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::clients::TooMany;
use crate::health_check;
use crate::metrics;
use crate::peer::Peer;
use crate::plan::DoorPlan;
use crate::proxy::Shared;
use crate::upstream::pool;
use crate::{h1, tls, tunnel};

/// Connections that the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 4096;

/// How often idle connections to backends are looked through.
const SWEEP: Duration = Duration::from_secs(5);

/// How long to rest when the host has no file left for another connection.
const EXHAUSTED: Duration = Duration::from_millis(50);

pub(crate) struct Doors {
    open: HashMap<SocketAddr, Opened>,
    workers: Vec<Worker>,
}

struct Opened {
    local: SocketAddr,
    _closing: watch::Sender<()>,
}

struct Worker {
    commands: Option<mpsc::UnboundedSender<Open>>,
    thread: Option<JoinHandle<()>>,
}

/// A door for a worker to serve until the sender of `closing` is gone.
struct Open {
    address: SocketAddr,
    listener: TcpListener,
    closing: watch::Receiver<()>,
}

impl Doors {
    pub(crate) fn start(shared: &Arc<Shared>, count: usize) -> io::Result<Self> {
        let mut workers = Vec::with_capacity(count);
        for index in 0..count {
            let (send, receive) = mpsc::unbounded_channel();
            let shared = Arc::clone(shared);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let thread = std::thread::Builder::new()
                .name(format!("gateway-{index}"))
                .spawn(move || runtime.block_on(work(shared, index, receive)))?;
            workers.push(Worker {
                commands: Some(send),
                thread: Some(thread),
            });
        }
        Ok(Self {
            open: HashMap::new(),
            workers,
        })
    }

    /// Opens what is wanted and not open, and closes what is open and not wanted. Where each is bound, or why not.
    pub(crate) fn open(&mut self, wanted: &[SocketAddr]) -> BTreeMap<SocketAddr, Result<SocketAddr, String>> {
        // First close, so that an address may move from one door to another.
        self.open.retain(|address, _| wanted.contains(address));
        let mut told = BTreeMap::new();
        for address in wanted {
            if let Some(opened) = self.open.get(address) {
                told.insert(*address, Ok(opened.local));
                continue;
            }
            match self.bind(*address) {
                Ok(opened) => {
                    told.insert(*address, Ok(opened.local));
                    self.open.insert(*address, opened);
                }
                Err(error) => {
                    told.insert(*address, Err(format!("cannot listen on {address}: {error}")));
                }
            }
        }
        told
    }

    fn bind(&self, address: SocketAddr) -> io::Result<Opened> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        // A second call changes the length of the queue; the first was made by binding.
        rustix::net::listen(&listener, BACKLOG)?;
        let local = listener.local_addr()?;
        let (closing, closed) = watch::channel(());
        for worker in &self.workers {
            let open = Open {
                address,
                listener: listener.try_clone()?,
                closing: closed.clone(),
            };
            if let Some(commands) = &worker.commands {
                let _ = commands.send(open);
            }
        }
        Ok(Opened {
            local,
            _closing: closing,
        })
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.open.clear();
        for worker in &mut self.workers {
            worker.commands = None;
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// A worker's life. When nobody can tell it anything any more it ends, and its connections with it.
async fn work(shared: Arc<Shared>, index: usize, mut commands: mpsc::UnboundedReceiver<Open>) {
    let mut tasks = JoinSet::new();
    tasks.spawn(sweep(Arc::clone(&shared), index));
    if index == health_check::WORKER {
        tasks.spawn(health_check::run(Arc::clone(&shared)));
    }
    while let Some(open) = commands.recv().await {
        while tasks.try_join_next().is_some() {}
        tasks.spawn(accept(Arc::clone(&shared), index, open));
    }
}

async fn sweep(shared: Arc<Shared>, worker: usize) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let plan = shared.plan.load_full();
        for endpoint in plan.clusters.values().flat_map(|cluster| &cluster.endpoints) {
            pool::sweep(endpoint, worker, shared.options.timeouts.upstream_idle).await;
        }
    }
}

async fn accept(shared: Arc<Shared>, worker: usize, open: Open) {
    let Open {
        address,
        listener,
        closing,
    } = open;
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::warn!(%address, %error, "cannot serve a door"),
    };
    let port = listener.local_addr().map_or(address.port(), |local| local.port());
    let mut connections = JoinSet::new();
    let mut closed = closing.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = closed.changed() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, client)) => admit(
                &shared,
                worker,
                stream,
                client,
                address,
                port,
                &closing,
                &mut connections,
            ),
            Err(error) if is_clients(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
    // Who is in the kernel's queue was told that the door is open.
    while let Some(Ok((stream, client))) = futures::FutureExt::now_or_never(listener.accept()) {
        admit(
            &shared,
            worker,
            stream,
            client,
            address,
            port,
            &closing,
            &mut connections,
        );
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(shared.options.timeouts.drain, drained)
        .await
        .is_err()
    {
        tracing::info!(%address, "cut connections that outlasted their door");
    }
}

/// The client was gone before it was accepted.
fn is_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

#[expect(
    clippy::too_many_arguments,
    reason = "what a connection is, told once, from two places in one function"
)]
fn admit(
    shared: &Arc<Shared>,
    worker: usize,
    stream: TcpStream,
    client: SocketAddr,
    door: SocketAddr,
    port: u16,
    closing: &watch::Receiver<()>,
    connections: &mut JoinSet<()>,
) {
    let before = shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut counted = Counted {
        shared: Arc::clone(shared),
        client: None,
    };
    if before >= shared.options.limits.connections {
        metrics::add(&shared.metrics.totals.connections_refused);
        return;
    }
    match shared.clients.enter(client.ip()) {
        Ok(held) => counted.client = held,
        Err(TooMany) => return metrics::add(&shared.metrics.totals.connections_refused_by_client),
    }
    metrics::add(&shared.metrics.totals.connections_accepted);
    let (shared, closing) = (Arc::clone(shared), closing.clone());
    connections.spawn(async move {
        let _counted = counted;
        let _ = stream.set_nodelay(true);
        connection(shared, worker, stream, client, door, port, closing).await;
    });
}

/// A connection that is counted, altogether and for its client.
struct Counted {
    shared: Arc<Shared>,
    client: Option<IpAddr>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        if let Some(client) = self.client {
            self.shared.clients.leave(client);
        }
        metrics::add(&self.shared.metrics.totals.connections_closed);
    }
}

async fn connection(
    shared: Arc<Shared>,
    worker: usize,
    stream: TcpStream,
    client: SocketAddr,
    door: SocketAddr,
    port: u16,
    closing: watch::Receiver<()>,
) {
    let plan = shared.plan.load_full();
    let Some(served) = plan.doors.get(&door).cloned() else {
        return;
    };
    match &*served {
        DoorPlan::Http(_) => {
            let peer = Arc::new(Peer::new(client, door, port, None));
            let link = h1::server::Link {
                shared,
                worker,
                peer,
                closing,
            };
            h1::server::serve(link, h1::server::ClientIo::Tcp(stream)).await;
        }
        DoorPlan::Tls(names) => {
            let arrival = tls::Arrival {
                shared,
                worker,
                client,
                door,
                port,
                closing,
            };
            tls::serve(arrival, stream, names).await;
        }
        DoorPlan::Tcp(forward) => tunnel::forward(&shared, worker, client, stream, forward).await,
    }
}
