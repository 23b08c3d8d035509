//! The network of a node's machines, as others hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE;
use fairway_controller::{ObjectKey, Shutdown, WorkspaceId};
use fairway_dns::Server;
use fairway_fabric::{Connection, Destination, DialError, Fabric, Talk};
use fairway_machines_frames::packet::{TCP, UDP};
use fairway_machines_network::Network;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Card;
use crate::node::{self, Shared};
use crate::peers::Peers;
use crate::picture::{Plugged, Remark};
use crate::settings::NodeOptions;

/// Something about a machine's network that is not as its author wanted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// What is put down for the painter, and by it.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    plugged: Mutex<BTreeMap<ObjectKey, Plugged>>,
    problems: Mutex<BTreeMap<ObjectKey, Vec<Problem>>>,
    /// Grows when they change.
    troubles: watch::Sender<u64>,
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub(crate) fn plugged(&self) -> BTreeMap<ObjectKey, Plugged> {
        held(&self.plugged).clone()
    }

    /// Whether a machine of a workspace is plugged in.
    pub(crate) fn has(&self, workspace: &WorkspaceId) -> bool {
        held(&self.plugged).keys().any(|key| key.workspace == *workspace)
    }

    /// Keeps what is to be said about instances.
    pub(crate) fn set_problems(&self, remarks: &BTreeSet<Remark>) {
        let mut problems: BTreeMap<ObjectKey, Vec<Problem>> = BTreeMap::new();
        for remark in remarks {
            if remark.kind == VIRTUAL_MACHINE_INSTANCE.kind {
                problems.entry(remark.key.clone()).or_default().push(Problem {
                    reason: remark.reason,
                    message: remark.message.clone(),
                });
            }
        }
        let before = std::mem::replace(&mut *held(&self.problems), problems.clone());
        if before != problems {
            self.troubles.send_modify(|count| *count += 1);
        }
    }
}

/// The network of a node's machines. Clones share it.
#[derive(Clone)]
pub struct Wiring(Arc<Shared>);

impl fmt::Debug for Wiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wiring").field(&self.0.desk).finish()
    }
}

impl Wiring {
    /// Starts a node's side. Its tasks end with `shutdown`; watches and the switch itself start with the first card, or with
    /// the first Service that has a port of the host. Must be called within a runtime.
    pub fn start(options: NodeOptions, shutdown: &Shutdown) -> Self {
        Self(node::start(options, shutdown))
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Plugs the cards of a machine in, whose instance has this key. What was plugged in for it before is replaced; the same
    /// again changes nothing. Returns at once: the switch connects as soon as QEMU listens, and the cards carry frames as
    /// soon as the instance has its address.
    pub fn plug(&self, key: &ObjectKey, hostname: &str, cards: Vec<Card>) {
        let plugged = Plugged {
            hostname: hostname.to_owned(),
            cards,
        };
        let before = held(&self.0.desk.plugged).insert(key.clone(), plugged.clone());
        if before.as_ref() != Some(&plugged) {
            self.0.needed.now();
            self.0.wake.notify_one();
        }
    }

    /// Unplugs all cards of a machine.
    pub fn unplug(&self, key: &ObjectKey) {
        if held(&self.0.desk.plugged).remove(key).is_some() {
            self.0.wake.notify_one();
        }
    }

    /// The address of a machine that is plugged in, as soon as it has one and this node has seen it. It is also the annotation
    /// [`crate::ADDRESS_ANNOTATION`] of the instance, whose change is when to ask again.
    pub fn address(&self, key: &ObjectKey) -> Option<Ipv4Addr> {
        let caches = &self.0.caches;
        caches.address(key, caches.instances.get(key)?.as_ref())
    }

    /// What is wrong with the network of a machine that is plugged in: a card that could not be connected, and why. Each was also told
    /// by an event.
    pub fn problems(&self, key: &ObjectKey) -> Vec<Problem> {
        held(&self.0.desk.problems).get(key).cloned().unwrap_or_default()
    }

    /// Says when [`Self::problems`] of any machine have changed.
    pub fn troubles(&self) -> watch::Receiver<u64> {
        self.0.desk.troubles.subscribe()
    }

    /// The way to machines and Services through this node's switch.
    pub fn fabric(&self) -> Arc<dyn Fabric> {
        Arc::new(self.clone())
    }

    /// Who answers the questions of this node's machines about names.
    pub fn names(&self) -> Arc<Server> {
        Arc::clone(&self.0.names)
    }

    /// What has passed the switch; nothing if there is none.
    pub async fn counters(&self) -> Option<fairway_machines_network::Counters> {
        let network = self.0.network.load_full()?;
        network.counters().await
    }
}

/// A machine of a workspace that has nothing here.
struct Afar<'w> {
    peers: &'w Peers,
    node: String,
    to: Destination,
}

impl Wiring {
    /// Where a machine is that this node's switch cannot know; nothing, if it is to be asked.
    async fn afar(&self, to: &Destination, protocol: u8) -> Option<Afar<'_>> {
        let (peers, caches) = (self.0.peers.as_ref()?, &self.0.caches);
        self.0.needed.now();
        let begun = Instant::now();
        while !(caches.is_synced() && peers.is_synced()) && begun.elapsed() < LISTS {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let workspace = WorkspaceId::parse(&to.workspace).ok()?;
        if self.0.desk.has(&workspace) || caches.has_host_ports(&workspace) {
            return None;
        }
        let (node, to) = caches.place_of(to, protocol)?;
        (!peers.is(&node)).then_some(Afar { peers, node, to })
    }

    fn switch(&self, to: &Destination) -> Result<Arc<Network>, DialError> {
        let unreachable = || DialError::Unreachable {
            to: to.clone(),
            why: NO_SWITCH.into(),
        };
        self.0.network.load_full().ok_or_else(unreachable)
    }
}

impl Fabric for Wiring {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        Box::pin(async move {
            match self.afar(&to, TCP).await {
                Some(Afar { peers, node, to }) => peers.dial_at(&node, to).await,
                None => self.switch(&to)?.dial(to).await,
            }
        })
    }

    fn talk(&self, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>> {
        Box::pin(async move {
            match self.afar(&to, UDP).await {
                Some(Afar { peers, node, to }) => peers.talk_at(&node, to).await,
                None => self.switch(&to)?.talk(to).await,
            }
        })
    }
}

/// How long lists may take.
const LISTS: Duration = Duration::from_secs(5);
/// Why nothing is reached.
const NO_SWITCH: &str = "no machine runs on this node";
