//! The software catalog: entities in Backstage's form, from Git repositories and registered addresses, behind Backstage's REST API.
//!
//! State is objects of the workspace (`fairway.dev/v1alpha1`): a `CatalogLocation` says where to read, a `CatalogEntity` holds what was
//! read. What they mean is `fairway-portal-entity`'s, which touches nothing; this crate reads, writes and answers.
//!
//! ```text
//! Repository ──discover──► CatalogLocation ──read, reconcile──► CatalogEntity ──known──► rest ──► clients
//!      push ───────────────────────┘ (at once)                      (one watch, an index for each workspace)
//! ```
//!
//! Tasks: one watch on each of the three kinds, one controller for repositories, one for locations. Whoever asks is reviewed for each
//! request ([`access`]) and judged by RBAC on the two kinds in the workspace that he asks in; nothing of that is kept.
//!
//! Files come through [`files::Files`], which the binary makes of its Git host; addresses elsewhere through `fairway-outbound`. The crate
//! must not know the kernel, the Git host or the engine.

pub mod access;
mod discover;
pub mod files;
mod kinds;
mod known;
mod live;
mod read;
mod reconcile;
mod rest;

use std::sync::Arc;

use bytes::Bytes;
use fairway_controller::{ClientFactory, Manager, Metrics, ObjectKey, Queue, Shutdown, WorkspaceId};
use fairway_outbound::Outbound;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;

pub use known::Foreign;
use known::Known;

/// Who the catalog is, in every workspace.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-catalog";
/// The header by which a request names a workspace, by its path or id.
pub const WORKSPACE_HEADER: &str = "x-fairway-workspace";

/// Any error of a connection.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A client of a workspace, by its path or id, with the rights of [`USER`].
pub type ClientAt = Arc<dyn Fn(&str) -> Client + Send + Sync>;
/// The id of a workspace, by its path or id; none if there is none.
pub type Resolve = Arc<dyn Fn(&str) -> Option<WorkspaceId> + Send + Sync>;

/// What the catalog is told at the start.
pub struct Options {
    /// Its way to the API.
    pub client_at: ClientAt,
    /// Workspaces by name.
    pub resolve: Resolve,
    /// Hosted repositories.
    pub files: Arc<dyn files::Files>,
    /// The way to addresses elsewhere.
    pub outbound: Outbound,
    /// Kinds of other parts whose objects are entities, too: templates, users, groups.
    pub foreign: Vec<Foreign>,
}

/// The catalog.
pub struct Catalog {
    options: Options,
    known: Arc<Known>,
    locations: Queue<ObjectKey>,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Catalog").finish_non_exhaustive()
    }
}

impl Catalog {
    /// A catalog that knows nothing yet.
    pub fn new(options: Options) -> Arc<Self> {
        let watches = 1 + options.foreign.len();
        Arc::new(Self {
            options,
            known: Arc::new(Known::waiting_for(watches)),
            locations: Queue::default(),
        })
    }

    /// A repository was pushed to: what was read from it is read again, at once.
    /// `workspace` is the id of its workspace, `owner` its owner's name in addresses.
    pub fn pushed(&self, workspace: &str, owner: &str, repository: &str) {
        let Ok(workspace) = WorkspaceId::parse(workspace) else {
            return;
        };
        self.known.pushed(&workspace, owner, repository, &self.locations);
    }

    /// Follows repositories and locations until the end.
    pub async fn run(self: Arc<Self>, clients: ClientFactory, metrics: Arc<Metrics>, shutdown: Shutdown) {
        let mut manager = Manager::new(clients, metrics, shutdown);
        let own = manager.clients(USER);
        known::start(&mut manager, &own, &self);
        discover::start(&mut manager, &own, &self);
        reconcile::start(&mut manager, &own, &self);
        manager.run().await;
    }

    /// Answers a request to `portal.<domain>` below `/api/catalog`.
    pub async fn serve(self: &Arc<Self>, request: http::Request<Body>) -> http::Response<Body> {
        rest::serve(self, request).await
    }

    fn client_at(&self, workspace: &str) -> Client {
        (self.options.client_at)(workspace)
    }
}
