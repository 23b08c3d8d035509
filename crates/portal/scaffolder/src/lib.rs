//! Runs software templates.
//!
//! A run is a `Voyage` object (`fairway.dev/v1alpha1`); [`voyage`] reads it, [`admission`] writes into it who started it. [`drive`] does
//! what `fairway-portal-template` says comes next, one step after the other, with the actions of [`actions`]; what a step makes is in
//! the object before it is made, so that a run can be taken up by anybody at any step, and be undone ([`undo`]).
//!
//! A run acts with the rights of the user who started it and no others: every request to the API and to Git is that user's
//! ([`ports::Actors`], [`ports::Forge`]), and who that is is found out again before each step ([`who`]). With its own rights the
//! controller reads and writes Voyages, looks at quotas, and asks who somebody is.
//!
//! The working tree of a run is a value in memory. After a restart the steps that made it are done again; what they fetched is pinned.
//!
//! Tasks: one watch of Voyages over all workspaces and one controller; a controller for messages ([`outbox`]). [`rest`] answers
//! Backstage's API and writes objects like anybody else. The crate sees clients and ports, and must not know the kernel, the Git host,
//! the catalog or the GitOps engine.

pub mod actions;
pub mod admission;
pub mod builtin;
mod controller;
mod deployed;
mod discovery;
mod drive;
pub mod dry_run;
mod entities;
#[cfg(test)]
mod fake;
mod outbox;
pub mod ports;
mod quota;
pub mod rest;
pub mod service;
mod source;
pub mod submit;
pub mod templates;
mod undo;
mod urls;
mod voyage;
mod who;

use std::sync::Arc;

use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_outbound::Outbound;

pub use builtin::Builtin;
pub use ports::{Actors, Apis, Forge, Gateways, Mail, Mailer, Person, Place, Places, Renderer, Unrendered};

/// Who the controller is: it reads Voyages, Templates and quotas, and writes what became of Voyages.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-scaffolder";

/// What it is told at the start.
#[derive(Clone)]
pub struct Options {
    /// Makes clients of its own.
    pub clients: ClientFactory,
    /// Makes clients of others.
    pub actors: Arc<dyn Actors>,
    /// The Git host.
    pub forge: Arc<dyn Forge>,
    /// The portal's APIs.
    pub apis: Arc<dyn Apis>,
    /// Sends mail.
    pub mailer: Arc<dyn Mailer>,
    /// Sends messages to where they may go.
    pub outbound: Arc<Outbound>,
    /// Templates that are part of the program.
    pub builtins: Arc<[Builtin]>,
    /// Foresees where machines run.
    pub places: Arc<dyn Places>,
    /// Foresees what Applications deploy.
    pub renderer: Arc<dyn Renderer>,
    /// Knows the addresses of what is published.
    pub gateways: Arc<dyn Gateways>,
    /// The address of the portal, for links: `https://portal.fairway.localhost:7443`.
    pub portal: String,
}

/// Everything that a run needs, in one place.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) own: fairway_controller::Clients,
    /// Looking at quotas and holding a part of them is one thing: nobody else looks in between.
    pub(crate) holding: tokio::sync::Mutex<()>,
    /// Since when this process drives runs.
    pub(crate) begun: String,
}

impl World {
    pub(crate) fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            own: options.clients.clients(USER),
            options,
            holding: tokio::sync::Mutex::default(),
            begun: now(),
        })
    }
}

/// The parts that share a world: the controllers, and the API.
pub struct Scaffolder {
    world: Arc<World>,
}

impl Scaffolder {
    /// Nothing happens yet. Must be called within a runtime.
    pub fn new(options: Options) -> Self {
        Self {
            world: World::new(options),
        }
    }

    /// The templates that are part of the program.
    pub fn builtins(&self) -> Arc<[Builtin]> {
        Arc::clone(&self.world.options.builtins)
    }

    /// Runs Voyages until the end.
    pub fn run(&self, metrics: Arc<Metrics>, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        controller::run(Arc::clone(&self.world), metrics, shutdown)
    }

    /// What would happen, asked through the Kubernetes API.
    pub fn dry_runs(&self) -> service::DryRuns {
        service::DryRuns {
            world: Arc::clone(&self.world),
        }
    }

    /// Backstage's API.
    pub fn rest(&self) -> rest::Rest {
        rest::Rest::new(Arc::clone(&self.world))
    }
}

/// Now, as objects write it.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
