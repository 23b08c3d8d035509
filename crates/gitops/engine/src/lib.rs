//! The Application controller: it acts on what the pure GitOps crates decide.
//!
//! - [`sources`]: where manifests come from, a port. `desired`: what they declare, rendered when something changed.
//! - `cluster`: a place with its watches; `destination`: which place an application means, and as whom it acts there.
//! - `observe`: declared and live objects side by side; `report`: what is written of them.
//! - `operation`: a sync, whose state is in the Application; `act`: the requests.
//! - `engine`: one pass over one Application. `answers`: who pushed hears of it; `plans`: what a sync would do.
//! - `service`: what is asked of the engine through the API; `permissions`: whom it answers; `project_tokens`: who comes as a
//!   project's role.
//! - [`appset`]: the ApplicationSet controller.
//!
//! Tasks: one watch for Applications and projects over all workspaces; one controller that takes their keys from a queue; one
//! task that hears of pushes; for the first Application the watches of settings and clusters, and for each kind that is
//! managed one watch. Channels: every watch writes keys into the one queue. No pass keeps anything that is not in the
//! objects, but for what makes the next pass cheap.
//!
//! It must not know the API server; Git, repositories of charts and plugins only in `sources`: the rest sees clients and
//! [`sources::Sources`].

mod act;
mod answers;
mod application;
pub mod appset;
mod cluster;
mod conditions;
mod desired;
mod destination;
mod engine;
mod news;
mod observe;
mod operation;
mod pen;
mod permissions;
mod plans;
mod project_tokens;
mod report;
mod service;
mod settings;
pub mod sources;
mod tombstones;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fairway_api::argoproj::{CLUSTER_SECRETS, GROUP};
use fairway_controller::dynamic::{Change, follow_all};
use fairway_controller::events::Recorder;
use fairway_controller::kinds::Kind;
use fairway_controller::served::Served;
use fairway_controller::watch::follow;
use fairway_controller::{
    ClientFactory, Clients, Controller, Manager, Metrics, ObjectKey, Queue, Reach, Shutdown,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};

pub use answers::{Answers, Expected, Wishes};
use cluster::Cluster;
use desired::Renderer;
use destination::Destinations;
use engine::{Engine, Passes};
pub use plans::{Plans, Proposal, Pulls};
pub use project_tokens::{Bearer, ProjectTokens};
pub use service::Service;
use sources::SharedSources;

pub use engine::proposed::{Candidate, Judge};

/// Who the engine is: it sees everything, and writes Applications and events.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-gitops-engine";
/// Who syncs where no project names a service account.
pub const SYNC_USER: &str = "system:serviceaccount:kube-system:fairway-gitops-sync";

/// Counts how often an application was rendered.
const RENDERS: &str = "fairway_gitops_renders_total";

/// What the engine is told at the start.
pub struct Options {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// Where manifests come from.
    pub sources: SharedSources,
    /// The addresses of this API, without paths: destinations below them are workspaces of this process.
    pub urls: Vec<String>,
    /// The pull requests of this installation's own host.
    pub pulls: appset::pulls::SharedPulls,
    /// Which sets follow pull requests elsewhere, for who hears of those.
    pub pull_followers: appset::PullFollowers,
    /// How many applications are worked on at once.
    pub workers: usize,
    /// What is served here, if somebody follows it already.
    pub served: Option<Served>,
    /// Who listens to what becomes of pushes.
    pub answers: Answers,
    /// Who asks what a sync would do.
    pub plans: Plans,
}

/// Runs the engine until the end. Returns when what was under way is finished.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    run_with_judge(options, metrics, shutdown, drop).await;
}

/// The same, and hands out who can judge what is not pushed yet.
pub async fn run_with_judge(
    options: Options,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    take: impl FnOnce(Judge),
) {
    let mut manager = Manager::new(options.clients.clone(), metrics, shutdown.clone());
    let clients = manager.clients(USER);
    let queue: Queue<ObjectKey> = Queue::default();
    let hub = Cluster::start(
        clients.clone(),
        manager.clients(SYNC_USER),
        options.served,
        queue.clone(),
        shutdown.clone(),
    );
    let kinds = hub.served.changes();
    let sets = appset::Options {
        sources: Arc::clone(&options.sources),
        pulls: options.pulls,
        followers: options.pull_followers,
        urls: options.urls.clone(),
        kinds: kinds.clone(),
    };
    appset::start(&mut manager, sets);
    manager.spawn(tombstones::expire(
        clients.clone(),
        hub.served.clone(),
        shutdown.clone(),
    ));
    let destinations = Destinations::new(hub, options.urls, queue.clone(), shutdown.clone());
    let engine = Arc::new(Engine::new(
        clients.clone(),
        destinations,
        Renderer::new(Arc::clone(&options.sources), manager.metrics().counter(RENDERS)),
        Recorder::new(clients.clone(), "argocd-application-controller"),
        options.answers.clone(),
    ));
    options.answers.run_with(clients.clone());
    options.plans.run_with(&engine);
    take(Judge {
        engine: Arc::clone(&engine),
        sources: Arc::clone(&options.sources),
    });
    let applications = Arc::new(Applications {
        engine: Arc::clone(&engine),
        queue: queue.clone(),
        clients: clients.clone(),
        known: Mutex::default(),
        follows_settings: AtomicBool::new(false),
        shutdown: shutdown.clone(),
    });
    let heard = Arc::clone(&applications);
    manager.spawn(follow_all(
        clients.every(),
        kinds,
        is_followed,
        shutdown.clone(),
        move |change| heard.take(change),
    ));
    manager.spawn(news::follow(
        options.sources,
        engine.clone(),
        queue.clone(),
        shutdown.clone(),
    ));
    let controller = Controller::new("application", queue, Passes(engine)).workers(options.workers.max(1));
    manager.spawn(controller.run(manager.metrics(), shutdown));
    manager.run().await;
    options.answers.end();
}

/// A workspace whose own definition has taken the kind over has controllers of its own for it.
fn is_followed(kind: &Kind) -> bool {
    kind.is_common()
        && kind.resource.group == GROUP
        && ["Application", "AppProject"].contains(&kind.resource.kind.as_str())
}

/// Which applications there are, and whom to wake.
struct Applications {
    engine: Arc<Engine>,
    queue: Queue<ObjectKey>,
    clients: Clients,
    known: Mutex<BTreeSet<ObjectKey>>,
    follows_settings: AtomicBool,
    shutdown: Shutdown,
}

impl Applications {
    fn reach(&self) -> &Reach {
        self.clients.reach()
    }

    fn take(self: &Arc<Self>, change: Change) {
        let Change::Event(kind, event) = change else {
            return;
        };
        let (object, is_gone) = match *event {
            Event::Apply(object) | Event::InitApply(object) => (object, false),
            Event::Delete(object) => (object, true),
            Event::Init | Event::InitDone => return,
        };
        let key = ObjectKey::of(self.reach(), &object.metadata);
        if kind.resource.kind != "Application" {
            self.wake(&key);
            return;
        }
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        let is_news = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match is_gone {
                true => known.remove(&key),
                false => known.insert(key.clone()),
            }
        };
        if is_news && !is_gone && !self.follows_settings.swap(true, Ordering::Relaxed) {
            self.follow_settings();
        }
        if !self.engine.is_own_write(&key, version) {
            self.queue.add(key);
        }
    }

    /// Wakes all applications of the workspace that something is in.
    fn wake(&self, about: &ObjectKey) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for key in known.iter().filter(|key| key.workspace == about.workspace) {
            self.queue.add(key.clone());
        }
    }

    /// Follows what all applications depend on. Nobody needs it before there is one.
    fn follow_settings(self: &Arc<Self>) {
        let settings: Api<PartialObjectMeta<ConfigMap>> = Api::all(self.clients.every());
        let only = watcher::Config::default().fields(&format!("metadata.name={}", settings::SETTINGS));
        tokio::spawn(self.clone().follow_each(settings, only));
        let clusters: Api<PartialObjectMeta<Secret>> = Api::all(self.clients.every());
        let only = watcher::Config::default().labels(CLUSTER_SECRETS);
        tokio::spawn(self.clone().follow_each(clusters, only));
    }

    async fn follow_each<K>(self: Arc<Self>, api: Api<PartialObjectMeta<K>>, only: watcher::Config)
    where
        PartialObjectMeta<K>:
            kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let shutdown = self.shutdown.clone();
        // What is listed at first is what the first pass finds anyway.
        follow(api, only, shutdown, move |event| {
            if let Event::Apply(object) | Event::Delete(object) = event {
                self.wake(&ObjectKey::of(self.reach(), kube::Resource::meta(&object)));
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_kinds_are_followed() {
        for (group, name, identity, expected) in [
            ("argoproj.io", "Application", "", true),
            ("argoproj.io", "AppProject", "", true),
            (
                "argoproj.io",
                "Application",
                "5b1c8e0e-uid-of-a-definition",
                false,
            ),
            ("argoproj.io", "Workflow", "", false),
            ("example.com", "Application", "", false),
        ] {
            let named = kube::core::GroupVersionKind::gvk(group, "v1alpha1", name);
            let kind = Kind {
                resource: kube::core::ApiResource::from_gvk(&named),
                identity: identity.to_owned(),
                namespaced: true,
                verbs: Vec::new(),
            };
            assert_eq!(is_followed(&kind), expected, "{group} {name} {identity}");
        }
    }
}
