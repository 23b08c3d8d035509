//! A node's side: what is behind the handle.
//!
//! Tasks: a watch for each kind, and one painter. A watch keeps what it sees in a cache and wakes the painter, as does whoever plugs something in.
//! The painter waits a moment, draws the picture of everything, and hands it to the switch, the name server and the
//! ports of the host. All of this begins with the first card, or the first Service with a port of the host; before that there is one watch for
//! such Services, and no switch.

mod caches;
mod listeners;
mod painter;
mod place;

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use fairway_controller::events::Recorder;
use fairway_controller::{Clients, Shutdown};
use fairway_dns::{Server, Upstream};
use fairway_machines_network::Network;
use tokio::sync::Notify;

pub(crate) use caches::Caches;
use painter::Painter;

use crate::USER;
use crate::peers::Peers;
use crate::pools::{self, Pools};
use crate::settings::NodeOptions;
use crate::watches::Needed;
use crate::wiring::Desk;

/// What the tasks share.
pub(crate) struct Shared {
    pub(crate) desk: Desk,
    pub(crate) caches: Caches,
    /// The switch, while there is one.
    pub(crate) network: ArcSwapOption<Network>,
    /// Something has changed that the picture shows.
    pub(crate) wake: Notify,
    pub(crate) needed: Needed,
    /// The addresses that load balancers may have.
    pub(crate) pools: Arc<Pools>,
    /// Who answers machines' questions about names.
    pub(crate) names: Arc<Server>,
    /// Other nodes, if there may be any.
    pub(crate) peers: Option<Arc<Peers>>,
}

/// The links to other nodes. Without a key there are none, and machines of this node reach each other all the same.
fn peers(options: &NodeOptions, shared: &Weak<Shared>) -> Option<Arc<Peers>> {
    match Peers::new(&options.node, options.tunnel?, shared) {
        Ok(peers) => Some(Arc::new(peers)),
        Err(error) => {
            tracing::error!(%error, "this node has no link to others");
            None
        }
    }
}

/// Starts the tasks, which end with `shutdown`.
pub(crate) fn start(options: NodeOptions, shutdown: &Shutdown) -> Arc<Shared> {
    let clients: Clients = options.clients.clients(USER);
    let upstream =
        (!options.settings.resolvers.is_empty()).then(|| Upstream::new(options.settings.resolvers.clone()));
    let shared = Arc::new_cyclic(|shared| Shared {
        desk: Desk::default(),
        caches: Caches::new(clients.reach()),
        network: ArcSwapOption::empty(),
        wake: Notify::new(),
        needed: Needed::new(),
        pools: Arc::new(Pools::new(&options.settings)),
        names: Arc::new(Server::new(upstream)),
        peers: peers(&options, shared),
    });
    if let Some(peers) = &shared.peers {
        let links = Arc::clone(peers).run(clients.clone(), shutdown.clone());
        tokio::spawn(shared.needed.then(shutdown.clone(), links));
    }
    if let Some(served) = options.served.clone() {
        let (pools, painter) = (Arc::clone(&shared.pools), Arc::clone(&shared));
        let follow = pools::follow(pools, clients.clone(), served, shutdown.clone(), move || {
            painter.wake.notify_one();
        });
        tokio::spawn(shared.needed.then(shutdown.clone(), follow));
    }
    tokio::spawn(caches::look_out(
        Arc::clone(&shared),
        clients.clone(),
        shutdown.clone(),
    ));
    let follow = caches::follow_all(Arc::clone(&shared), clients.clone(), shutdown.clone());
    tokio::spawn(shared.needed.then(shutdown.clone(), follow));
    let painter = Painter::new(
        Arc::clone(&shared),
        options,
        Recorder::new(clients.clone(), "machine-network"),
        clients,
    );
    tokio::spawn(
        shared
            .needed
            .then(shutdown.clone(), painter.run(shutdown.clone())),
    );
    shared
}
