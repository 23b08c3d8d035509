//! The sync agent: kinds of a service cluster, offered to workspaces; objects mirrored down, status brought back up.
//!
//! An [`Agent`] stands between two sides. On the **service cluster** (any Kubernetes cluster, or a workspace) are the
//! PublishedResources, the definitions, and the copies that its controllers work on. On the **provider's** side is an
//! APIExport, through whose virtual workspace the agent sees all consumers' objects. Decisions are those of
//! `fairway_kernel_tenancy` (`published`, `naming`, `mutation`, `related`, `offering`, `mirror`); here they are given what
//! they ask for, and what they answer is carried out.
//!
//! | module | keeps true |
//! |---|---|
//! | `publications` | every PublishedResource has its APIResourceSchema, and conditions that tell how it fares |
//! | `export` | the APIExport offers what is published, and claims what that needs |
//! | `mirrors` | what is offered is mirrored: one [`mirror`] for each publication, begun anew when it changes |
//! | [`mirror`] | every consumer's object has its copy, the copy's status, and its related objects |
//! | [`connect`] | an agent stands between the servers that two kubeconfigs lead to |
//! | [`election`] | of several agents for one export, one works |
//! | [`probes`] | whoever asks over HTTP learns how an agent fares |
//! | [`hosted`] | exports of Fairway's own workspaces that ask for it have an agent in the process |
//!
//! Tasks: watches and controllers belong to the agent's manager; those of a mirror to a manager of its own, which ends when
//! its publication changes. Nothing is remembered but what the watches have seen: an agent that starts anew finds its
//! copies by their labels.

mod catalog;
pub mod connect;
mod consumers;
pub mod election;
mod export;
pub mod hosted;
mod mirror;
mod mirrors;
pub mod probes;
mod publications;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::{ClientFactory, Manager, Metrics, Queue, Shutdown};
use jiff::Timestamp;
use kube::Client;

use crate::catalog::Catalog;
pub use crate::consumers::Dial;

/// In whose name fields are applied, on both sides.
const MANAGER: &str = "fairway-syncagent";
/// How soon to look again before every watch has told what there is.
const UNTIL_SYNCED: Duration = Duration::from_millis(20);

/// One agent: it keeps one APIExport.
#[derive(Clone)]
pub struct Agent {
    /// Its name, which copies carry. It must not change, or the copies would not be found again.
    pub name: String,
    /// The APIExport.
    pub export: String,
    /// The APIExportEndpointSlice that leads to the consumers.
    pub slice: String,
    /// Which PublishedResources are this agent's, as a label selector; empty: all.
    pub selector: String,
    /// The service cluster.
    pub service: Client,
    /// The workspace of the APIExport.
    pub provider: Client,
    /// The workspace of the APIExportEndpointSlice.
    pub slices: Client,
    /// How the virtual workspace is reached.
    pub dial: Dial,
    /// How many objects of a kind are worked on at once.
    pub workers: usize,
}

impl Agent {
    /// Works until the end. Returns when what was under way is finished.
    pub async fn run(self, metrics: Arc<Metrics>, shutdown: Shutdown) {
        let service = self.service.clone();
        let factory = ClientFactory::plain(move |_| service.clone());
        let mut manager = Manager::new(factory, metrics, shutdown);
        let queue: Queue<String> = Queue::default();
        let catalog = Catalog::new(queue.clone());
        publications::register(&mut manager, &self, &catalog, &queue);
        let exported = export::register(&mut manager, &self, &catalog);
        let endpoints = export::endpoints(&mut manager, &self);
        let keep = mirrors::keep(
            self,
            catalog,
            exported,
            endpoints,
            manager.metrics(),
            manager.shutdown(),
        );
        manager.spawn(keep);
        manager.run().await;
    }
}

/// The time as objects have it: whole seconds.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
