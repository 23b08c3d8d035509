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
pub mod admission;
mod bindings;
mod certificates;
mod claims;
mod classes;
mod conductor;
mod keeper;
mod kinds;
mod names;
mod observe;
mod pace;
mod plane;
mod policies;
mod portal;
mod service;
mod services;
mod settings;
mod statuses;
mod world;

use std::sync::Arc;

use fairway_controller::{Manager, Metrics, Reach, Shutdown};

use addresses::Pool;
use conductor::{Conductor, Outlets};
use policies::{Enforcer, Held};
use tokio::sync::watch;
use world::World;

pub use bindings::instead;
pub use certificates::{Issuer, USER as CERTIFICATES_USER};
pub use claims::USER as CLAIMS_USER;
pub use fairway_gateway_gatekeeper::{NoRealms, Realms};
pub use names::Names;
pub use plane::{Acknowledged, DataPlane, Guards, NotBound, Probe, Protection};
pub use plane::{Explained, Stage};
pub use policies::USER as POLICIES_USER;
pub use portal::USER as PORTAL_USER;
pub use service::Service;
pub use settings::{Options, Settings};

/// Who serves Gateways and routes, in the API.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gateway-routes";

/// Starts the controllers: what serves until the end, and what answers people's questions. Must be called within a runtime.
pub fn start(
    options: Options,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
) -> (impl Future<Output = ()> + Send, Service) {
    let mut manager = Manager::new(options.clients.clone(), metrics, shutdown);
    let (clients, of_policies) = (manager.clients(USER), manager.clients(policies::USER));
    let world = Arc::new(World::new(clients.reach()));
    let held = Arc::new(Held::new());
    observe::start(&mut manager, &clients, &world);
    policies::start(&mut manager, &of_policies, &world, &held);
    portal::start(
        &mut manager,
        Arc::clone(&options.outbound),
        Arc::clone(&options.realms),
    );
    let (statuses, statuses_told) = watch::channel(statuses::Told::default());
    let (of_each, policies_told) = watch::channel(statuses::PoliciesTold::default());
    let (wanted, kept) = watch::channel(keeper::Wanted::default());
    let (certificates, asked_for) = watch::channel(certificates::Wanted::default());
    let ending = manager.shutdown();
    manager.spawn(statuses::write(
        clients.clone(),
        Arc::clone(&world),
        statuses_told,
        ending.clone(),
    ));
    manager.spawn(statuses::write_policies(
        of_policies.clone(),
        Arc::clone(&held),
        policies_told,
        ending.clone(),
    ));
    manager.spawn(keeper::keep(
        (clients.clone(), of_policies.clone()),
        (Arc::clone(&world), Arc::clone(&held)),
        kept,
        ending.clone(),
    ));
    manager.spawn(certificates::keep(
        manager.clients(certificates::USER),
        Arc::clone(&options.issuer),
        asked_for,
        ending.clone(),
    ));
    let pool = options.settings.pool.map(|range| Pool::new(&clients, range));
    let enforcer = Enforcer::new(
        of_policies.clone(),
        (options.outbound, options.realms),
        options.settings.refuse_uncounted,
    );
    let service = Service::new(Arc::clone(&options.plane), Arc::clone(&enforcer.gatekeeper));
    manager.spawn(policies::sweep(
        Arc::clone(&enforcer.gatekeeper),
        policies::SWEEP,
        ending.clone(),
    ));
    let (rounds, latest) = watch::channel(policies::prober::Latest::default());
    manager.spawn(policies::prober::probe(
        Arc::clone(&options.plane),
        Arc::clone(&held),
        latest,
        of_each,
        ending.clone(),
    ));
    let (claims, claimed) = watch::channel(claims::Latest::default());
    // Within one workspace age decides, so there is nothing to remember.
    let memory = (*clients.reach() == Reach::Every).then(|| manager.clients(claims::USER));
    if let Some(memory) = &memory {
        manager.spawn(claims::keep(memory.clone(), claimed, ending.clone()));
    }
    let outlets = Outlets {
        statuses,
        rounds,
        wanted,
        certificates,
        names: options.names,
        claims,
    };
    let conductor = Conductor::new(
        world,
        (options.plane, options.issuer),
        options.settings,
        pool,
        (held, enforcer),
        (outlets, memory),
    );
    manager.spawn(conductor.run(ending));
    (manager.run(), service)
}
