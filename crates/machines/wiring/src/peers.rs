//! Links to the switches of other nodes, encrypted.
//!
//! As soon as there is more than one Node, a node that has machines listens for the others and writes on its Node where, and the
//! fingerprint of its key. Of two nodes the one whose name comes first calls and keeps the link. Through it go packets between
//! machines. Connections that a node opens itself (probes, consoles, ports of the host) to a machine of another node are opened by
//! that node, over a connection of their own. A single node listens for nobody.

mod accept;
mod call;
mod identity;
mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fairway_controller::cache::Cache;
use fairway_controller::{Clients, Json, ObjectKey, Reach, Requests, Shutdown, WorkspaceId};
use fairway_fabric::{Connection, Destination, DialError, Talk};
use fairway_machines_frames::topology::PortId;
use fairway_machines_network::{Elsewhere, Network};
use futures::future::BoxFuture;
use kube::runtime::watcher::Config;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::UnixStream;
use tokio::sync::watch;

pub(crate) use identity::IdentityError;
use identity::{Fingerprint, Identity};

use crate::kinds::{NODE, path};
use crate::node::Shared;
use crate::settings::Tunnel;
use crate::watches::follow_in;

/// Where a node's tunnel listens.
const ADDRESS: &str = "fairway.dev/tunnel-address";
/// The fingerprint of its key.
const KEY: &str = "fairway.dev/tunnel-key";
/// How long the other side may take to say who it is and what it wants, and this one to start its switch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon something that failed is tried again, and how seldom at last.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(10);
/// What of a link or connection is held in each direction. Beyond it the switch queues, and drops at last.
const HELD: usize = 64 * 1024;

/// Another node, as its Node describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Neighbour {
    address: SocketAddr,
    key: Fingerprint,
}

impl Neighbour {
    fn read(node: &Value) -> Option<Self> {
        let annotations = node.pointer("/metadata/annotations")?;
        let said = |name: &str| annotations.get(name)?.as_str();
        Some(Self {
            address: said(ADDRESS)?.parse().ok()?,
            key: said(KEY)?.parse().ok()?,
        })
    }
}

/// The links of a node.
pub(crate) struct Peers {
    node: String,
    tunnel: Tunnel,
    identity: Identity,
    /// Every Node, this one too; those without a tunnel are reached by nobody.
    nodes: Arc<Cache<Option<Neighbour>>>,
    links: Mutex<BTreeMap<String, PortId>>,
    /// Counts the changes of Nodes.
    changes: watch::Sender<u64>,
    shared: Weak<Shared>,
}

impl Peers {
    pub(crate) fn new(node: &str, tunnel: Tunnel, shared: &Weak<Shared>) -> Result<Self, IdentityError> {
        Ok(Self {
            node: node.to_owned(),
            tunnel,
            identity: Identity::new()?,
            nodes: Arc::new(Cache::new(&Reach::One(WorkspaceId::root()))),
            links: Mutex::default(),
            changes: watch::Sender::new(0),
            shared: Weak::clone(shared),
        })
    }

    /// Whether this is the node of that name.
    pub(crate) fn is(&self, node: &str) -> bool {
        self.node == node
    }

    /// Whether every Node has been seen.
    pub(crate) fn is_synced(&self) -> bool {
        self.nodes.is_synced()
    }

    /// The links that there are, by node.
    pub(crate) fn links(&self) -> BTreeMap<String, PortId> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs until the end.
    pub(crate) async fn run(self: Arc<Self>, clients: Clients, mut shutdown: Shutdown) {
        let peers = Arc::clone(&self);
        let follow = follow_in(
            clients.root(),
            NODE,
            Config::default(),
            shutdown.clone(),
            Arc::clone(&self.nodes),
            |_: &ObjectKey, node: Json| Neighbour::read(&node.value),
            move |_| peers.changes.send_modify(|count| *count = count.wrapping_add(1)),
        );
        tokio::select! {
            () = shutdown.wait() => {}
            () = follow => {}
            () = self.stay(&clients) => {}
        }
    }

    /// Listens and calls for as long as there are other nodes.
    async fn stay(self: Arc<Self>, clients: &Clients) {
        let mut changes = self.changes.subscribe();
        loop {
            // The sender lives as long as this does.
            let _ = changes.wait_for(|_| self.has_others()).await.is_ok();
            let listener = match accept::bind(&self.tunnel).await {
                Ok(listener) => listener,
                Err(error) => {
                    tracing::error!(
                        %error, address = %self.tunnel.address, port = ?self.tunnel.port,
                        "this node has no link to others: cannot listen for them; configure another address or port"
                    );
                    tokio::time::sleep(LAST_RETRY).await;
                    continue;
                }
            };
            let own = Neighbour {
                address: self.advertised(&listener),
                key: self.identity.fingerprint(),
            };
            tracing::info!(address = %own.address, "other nodes reach the switch of this one");
            tokio::select! {
                () = Arc::clone(&self).accept(listener) => {}
                () = Arc::clone(&self).call(&own, clients) => {}
                _ = changes.wait_for(|_| !self.has_others()) => {}
            }
            self.tell(None, clients).await;
        }
    }

    fn has_others(&self) -> bool {
        !self.nodes.keys_where(|key, _| key.name != self.node).is_empty()
    }

    /// What others are told. Whoever listens everywhere is found where this host's own packets come from.
    fn advertised(&self, listener: &tokio::net::TcpListener) -> SocketAddr {
        let port = listener.local_addr().map_or(0, |address| address.port());
        let address = match self.tunnel.address {
            address if address.is_unspecified() => outgoing(address).unwrap_or(address),
            address => address,
        };
        SocketAddr::new(address, port)
    }

    /// Writes on the Node what others have to know. Without a Node nothing is written: it will come. `false`: it is to be tried again.
    async fn tell(&self, own: Option<&Neighbour>, clients: &Clients) -> bool {
        let key = ObjectKey::new(&WorkspaceId::root(), "", &self.node);
        let Some(said) = self.nodes.get(&key) else {
            return true;
        };
        if said.as_ref().as_ref() == own {
            return true;
        }
        let patch = json!({"metadata": {"annotations": {
            ADDRESS: own.map(|own| own.address.to_string()),
            KEY: own.map(|own| own.key.to_string()),
        }}});
        let told = Requests::new(clients.root())
            .merge(&path(&NODE, &key), &patch)
            .await;
        match told {
            Ok(_) => true,
            Err(failure) => {
                tracing::warn!(
                    reason = failure.sentence(),
                    "other nodes are not told how to reach this one; trying again"
                );
                false
            }
        }
    }

    fn neighbour(&self, name: &str) -> Option<Neighbour> {
        let key = ObjectKey::new(&WorkspaceId::root(), "", name);
        self.nodes.get(&key)?.as_ref().clone()
    }

    /// The node with a key.
    fn name_of(&self, key: Fingerprint) -> Option<String> {
        let has_key = |node: &Option<Neighbour>| node.as_ref().is_some_and(|it| it.key == key);
        let mut found = self
            .nodes
            .keys_where(|name, node| name.name != self.node && has_key(node));
        found.pop().map(|key| key.name)
    }

    /// Waits until a key is no longer that of a node: it restarted, or was removed.
    async fn until_unknown(&self, name: &str, key: Fingerprint) {
        let mut changes = self.changes.subscribe();
        let is_known = || self.neighbour(name).is_some_and(|it| it.key == key);
        let _ = changes.wait_for(|_| !is_known()).await.is_ok();
    }

    /// The switch, which is started if there is none.
    async fn network(&self) -> Option<Arc<Network>> {
        let shared = self.shared.upgrade()?;
        shared.needed.now();
        let started = async {
            loop {
                if let Some(network) = shared.network.load_full() {
                    return network;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, started).await.ok()
    }

    /// Gives a link to the switch until it breaks, or the other is no node any more.
    async fn carry(&self, name: &str, key: Fingerprint, mut stream: impl Connection) {
        let Some(network) = self.network().await else {
            return;
        };
        let ends = UnixStream::pair().and_then(|(near, far)| Ok((near, far.into_std()?)));
        let (mut near, far) = match ends {
            Ok(ends) => ends,
            Err(error) => return tracing::warn!(%error, "a link to another node is not used"),
        };
        let held = Held {
            peers: self,
            name,
            port: network.link(far),
            network,
        };
        // Of two links to one node the later counts.
        self.with_links(|links| links.insert(name.to_owned(), held.port));
        tracing::info!(node = name, "linked to the switch of another node");
        tokio::select! {
            // However it ended, it is made again.
            _ = copy_bidirectional_with_sizes(&mut stream, &mut near, HELD, HELD) => {}
            () = self.until_unknown(name, key) => {}
        }
    }

    /// Changes the links, and has the switch hear of it.
    fn with_links<T>(&self, change: impl FnOnce(&mut BTreeMap<String, PortId>) -> T) -> T {
        let changed = change(&mut self.links.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(shared) = self.shared.upgrade() {
            shared.wake.notify_one();
        }
        changed
    }
}

/// A link that the switch has. It is taken away also where whoever carries it is stopped.
struct Held<'p> {
    peers: &'p Peers,
    name: &'p str,
    network: Arc<Network>,
    port: PortId,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.network.detach(self.port);
        self.peers.with_links(|links| {
            if links.get(self.name) == Some(&self.port) {
                links.remove(self.name);
            }
        });
        tracing::info!(node = self.name, "lost the link to the switch of another node");
    }
}

impl Elsewhere for Peers {
    fn dial(&self, via: PortId, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        Box::pin(async move {
            let (node, to) = self.behind(via, to)?;
            self.dial_at(&node, to).await
        })
    }

    fn talk(&self, via: PortId, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>> {
        Box::pin(async move {
            let (node, to) = self.behind(via, to)?;
            self.talk_at(&node, to).await
        })
    }
}

impl Peers {
    /// The node behind a link.
    fn behind(&self, via: PortId, to: Destination) -> Result<(String, Destination), DialError> {
        let found = self.links().into_iter().find(|(_, port)| *port == via);
        match found {
            Some((node, _)) => Ok((node, to)),
            None => Err(DialError::Unreachable {
                to,
                why: "the link to the machine's node has just been lost".into(),
            }),
        }
    }
}

/// The address that packets to the outside come from. Nothing is sent.
fn outgoing(family: IpAddr) -> Option<IpAddr> {
    let somewhere = match family {
        IpAddr::V4(_) => "192.0.2.1:9",
        IpAddr::V6(_) => "[2001:db8::1]:9",
    };
    let socket = std::net::UdpSocket::bind((family, 0)).ok()?;
    socket.connect(somewhere).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}
