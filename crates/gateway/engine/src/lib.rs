//! The controllers of gateways. They look at Gateways, routes and policies in every workspace, have `routes` decide what
//! follows from them, hand that to a [`DataPlane`], and tell people what became of it.
//!
//! ```text
//! watches ─ World (what was seen) ─ conductor: build ─ DataPlane::serve ─┬ statuses: what is said of objects
//!                                                                        └ keeper: what is made for Gateways
//! ```
//!
//! Tasks: each watch is one; the conductor is the only one that builds and speaks to the data plane; two writers follow it
//! through channels that hold the latest alone, so that a slow write delays no route. While there is neither a Gateway nor a
//! Route, only the kinds of gateways are watched, and Services, Secrets and the like are not.
//!
//! The crate must not know the kernel, sockets or the proxy, nor decide what a route means.

mod addresses;
mod bindings;
mod classes;
mod conductor;
mod keeper;
mod kinds;
mod observe;
mod plane;
mod services;
mod settings;
mod statuses;
mod world;

use std::sync::Arc;

use fairway_controller::{Manager, Metrics, Shutdown};

use addresses::Pool;
use conductor::Conductor;
use world::World;

pub use plane::{Acknowledged, DataPlane, Guards, NotBound, Protection};
pub use settings::{Options, Settings};

/// Who serves Gateways and routes, in the API.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gateway-routes";

/// Serves until the end.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients.clone(), metrics, shutdown);
    let clients = manager.clients(USER);
    let world = Arc::new(World::new(clients.reach()));
    observe::start(&mut manager, &clients, &world);
    let (told, statuses) = tokio::sync::watch::channel(statuses::Told::default());
    let (wanted, kept) = tokio::sync::watch::channel(keeper::Wanted::default());
    manager.spawn(statuses::write(
        clients.clone(),
        Arc::clone(&world),
        statuses,
        manager.shutdown(),
    ));
    manager.spawn(keeper::keep(
        clients.clone(),
        Arc::clone(&world),
        kept,
        manager.shutdown(),
    ));
    let pool = options
        .settings
        .pool
        .map(|range| Pool::new(clients.clone(), range));
    let conductor = Conductor::new(world, options.plane, options.settings, pool, told, wanted);
    manager.spawn(conductor.run(manager.shutdown()));
    manager.run().await;
}
