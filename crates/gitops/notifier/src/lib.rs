//! Tells subscribers of Applications what happens to them, as argocd-notifications does.
//!
//! What to tell is decided by `fairway-gitops-notifications`; here it is read, sent and remembered:
//! - `configs`: the configurations of all workspaces, read when they change.
//! - `notifier`: one pass over one Application.
//! - [`send`]: messages on their way, by mail and by HTTP.
//!
//! Tasks: one watch of ConfigMaps by their name over all workspaces; when there is a first one, a watch of Secrets by their name, and
//! watches of Applications and projects; two controllers, one that reads configurations and one that takes Applications. Channels:
//! watches write keys into the controllers' queues. Where nobody has a configuration, nothing else is followed or kept.
//!
//! It is a crate of its own because nothing in it needs the engine: they meet in Applications. It sees clients and [`Commits`], and
//! must not know the engine, Git or the API server.

mod configs;
mod notifier;
pub mod send;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::backoff::Backoff;
use fairway_controller::kinds::Kinds;
use fairway_controller::{ClientFactory, Controller, Manager, Metrics, Queue, Shutdown, WorkspaceId};
use fairway_gitops_notifications::facts::Commit;
use fairway_outbound::Outbound;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use configs::Configs;
use notifier::Notifier;

/// Who it is: it reads its own ConfigMap and Secret, Applications and projects, and changes Applications.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-notifications-controller";

/// As who it writes events.
const COMPONENT: &str = "argocd-notifications-controller";

/// How many Applications are looked at at once. Most of the time is spent waiting for those who are told, and whoever does not answer
/// must not keep others waiting.
const WORKERS: usize = 32;

/// How soon what could not be sent is tried again.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    most: Duration::from_secs(300),
};

/// An Application that somebody asks about.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Where it is.
    pub workspace: &'a WorkspaceId,
    /// As it is read.
    pub application: &'a Value,
    /// Its project; null if there is none.
    pub project: &'a Value,
}

/// Whoever knows commits.
pub trait Commits: Send + Sync + 'static {
    /// A commit of the repository that an Application names; else why it is not known. An Application is believed no more than its
    /// project lets it.
    fn commit<'a>(&'a self, about: About<'a>, hash: &'a str) -> BoxFuture<'a, Result<Commit, String>>;
}

/// What it is told at the start.
pub struct Options {
    /// Makes clients.
    pub clients: ClientFactory,
    /// Sends messages to where they may go.
    pub outbound: Outbound,
    /// What is served.
    pub kinds: watch::Receiver<Arc<Kinds>>,
    /// Whoever knows commits.
    pub commits: Arc<dyn Commits>,
}

/// Tells until the end. Returns when what was under way is finished.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients, metrics, shutdown.clone());
    let clients = manager.clients(USER);
    let (changed, applications) = (Queue::default(), Queue::default());
    let configs = Arc::new(Configs::new(
        clients.clone(),
        options.kinds,
        changed.clone(),
        applications.clone(),
        shutdown.clone(),
    ));
    manager.spawn(Arc::clone(&configs).follow());
    let notifier = Notifier::new(clients, Arc::clone(&configs), options.outbound, options.commits);
    let reading = Controller::new("notifications-config", changed, configs::Reader(configs));
    manager.spawn(reading.run(manager.metrics(), shutdown.clone()));
    let telling = Controller::new("notifications", applications, notifier)
        .workers(WORKERS)
        .backoff(BACKOFF);
    manager.spawn(telling.run(manager.metrics(), shutdown));
    manager.run().await;
}
