//! The ApplicationSet controller: Applications out of generators and a template, as `fairway-gitops-appset` decides.
//!
//! - `pass`: one pass over a set; `deletion`: its end. `checks`: which Applications may be written; `hands`: the writing.
//! - `world`: what generators see; `listings`: the names of files, from commit to commit; [`pulls`]: pull requests, a port for those of this installation's own host.
//! - `registry`: what each set depends on, so that it hears of what concerns it; `view`, `views`: what is kept of its
//!   Applications.
//!
//! It is part of the engine's crate since it reads the same sources, projects and clusters, but it is a user of its own, which may
//! write Applications and nothing that they stand for. Tasks: one watch for sets and projects over all workspaces, one for
//! pushes, one controller; from the first set on one watch for Applications and one for cluster Secrets. They write keys into
//! the one queue.

mod checks;
mod deletion;
mod hands;
mod listings;
mod pass;
pub mod pulls;
mod registry;
mod view;
mod views;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairway_api::argoproj::{CLUSTER_SECRETS, CONTROL_PLANES, GROUP};
use fairway_controller::dynamic::{Change, follow_all};
use fairway_controller::events::Recorder;
use fairway_controller::glimpse::Glimpse;
use fairway_controller::kinds::{Kind, Kinds};
use fairway_controller::watch::follow;
use fairway_controller::{Clients, Controller, Json, Manager, ObjectKey, Queue, Shutdown};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::settings::Catalog;
use crate::sources::{News, SharedSources};
use listings::Listings;
use pass::Sets;
use pulls::SharedPulls;
pub use registry::PullFollowers;
use registry::Registry;
use view::{Meaning, View, meaning};
use views::Views;

/// Who the controller is: it sees sets, projects and cluster Secrets, and writes Applications.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-applicationset-controller";

/// How many sets are worked on at once. Each writes many Applications at once.
const WORKERS: usize = 2;

/// What the controller is told at the start.
pub(crate) struct Options {
    pub(crate) sources: SharedSources,
    pub(crate) pulls: SharedPulls,
    pub(crate) followers: PullFollowers,
    pub(crate) urls: Vec<String>,
    pub(crate) kinds: watch::Receiver<Arc<Kinds>>,
}

/// Starts the controller's tasks.
pub(crate) fn start(manager: &mut Manager, options: Options) {
    let (clients, shutdown) = (manager.clients(USER), manager.shutdown());
    let queue: Queue<ObjectKey> = Queue::default();
    let registry = Registry::new(queue.clone());
    options.followers.are(&registry);
    let applications = Arc::new(Views::new(clients.reach()));
    let sets = Sets {
        clients: clients.clone(),
        catalog: Catalog::default(),
        listings: Listings::new(Arc::clone(&options.sources)),
        pulls: options.pulls,
        recorder: Recorder::new(clients.clone(), "applicationset-controller"),
        applications: Arc::clone(&applications),
        registry: registry.clone(),
        urls: options.urls,
    };
    let ears = Arc::new(Ears {
        clients: clients.clone(),
        registry: registry.clone(),
        applications,
        kinds: options.kinds.clone(),
        has_begun: AtomicBool::new(false),
        shutdown: shutdown.clone(),
    });
    manager.spawn(follow_all::<Json>(
        clients.every(),
        options.kinds,
        |kind| is_ours(kind, &["ApplicationSet", "AppProject"]),
        shutdown.clone(),
        move |change| ears.take(change),
    ));
    manager.spawn(hear(options.sources, registry, shutdown.clone()));
    let controller = Controller::new("applicationset", queue, sets).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), shutdown));
}

/// A workspace whose own definition has taken a kind over has controllers of its own for it.
fn is_ours(kind: &Kind, kinds: &[&str]) -> bool {
    kind.is_common() && kind.resource.group == GROUP && kinds.contains(&kind.resource.kind.as_str())
}

/// Hears of pushes until the end.
async fn hear(sources: SharedSources, registry: Registry, mut shutdown: Shutdown) {
    let mut news = sources.news();
    loop {
        let heard = tokio::select! {
            () = shutdown.wait() => return,
            heard = news.recv() => heard,
        };
        match heard {
            Ok(News { url, .. }) => registry.pushed(&url),
            // Too much at once: all are looked at.
            Err(RecvError::Lagged(_)) => registry.stale_where(|_| true),
            Err(RecvError::Closed) => {
                shutdown.wait().await;
                return;
            }
        }
    }
}

/// What the watches tell, and whom it concerns.
struct Ears {
    clients: Clients,
    registry: Registry,
    applications: Arc<Views>,
    kinds: watch::Receiver<Arc<Kinds>>,
    has_begun: AtomicBool,
    shutdown: Shutdown,
}

impl Ears {
    /// Something happened to a set or a project.
    fn take(self: &Arc<Self>, change: Change<Json>) {
        let Change::Event(kind, event) = change else {
            return;
        };
        let (object, is_gone, is_news) = match *event {
            Event::Apply(object) => (object, false, true),
            Event::InitApply(object) => (object, false, false),
            Event::Delete(object) => (object, true, true),
            Event::Init | Event::InitDone => return,
        };
        let key = ObjectKey::of(self.clients.reach(), &object.metadata);
        if kind.resource.kind == "AppProject" {
            if is_news {
                self.registry.stale_where(|set| set.workspace == key.workspace);
            }
            return;
        }
        if !CONTROL_PLANES.contains(&key.namespace.as_str()) {
            return;
        }
        if is_gone {
            self.registry.gone(&key);
            return;
        }
        self.registry.seen(key, &object.value);
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            self.begin();
        }
    }

    /// Follows what all sets depend on. Nobody needs it before there is one.
    fn begin(self: &Arc<Self>) {
        let heard = Arc::clone(self);
        tokio::spawn(follow_all::<Glimpse<View>>(
            self.clients.every(),
            self.kinds.clone(),
            |kind| is_ours(kind, &["Application"]),
            self.shutdown.clone(),
            move |change| heard.take_application(change),
        ));
        let heard = Arc::clone(self);
        let secrets: Api<PartialObjectMeta<Secret>> = Api::all(self.clients.every());
        let only = watcher::Config::default().labels(CLUSTER_SECRETS);
        let shutdown = self.shutdown.clone();
        tokio::spawn(follow(secrets, only, shutdown, move |event| {
            if let Event::Apply(object) | Event::Delete(object) = event {
                let key = ObjectKey::of(heard.clients.reach(), &object.metadata);
                let concerns =
                    |set: &ObjectKey| set.workspace == key.workspace && set.namespace == key.namespace;
                heard.registry.stale_where(concerns);
            }
        }));
    }

    /// Something happened to an Application: its set looks, at once if somebody has changed what it writes.
    fn take_application(&self, change: Change<Glimpse<View>>) {
        let (kind, event) = match change {
            Change::Event(kind, event) => (kind.name(), event),
            Change::Gone(kind) => {
                self.applications.forget(&kind.name());
                return;
            }
        };
        let key = |object: &Glimpse<View>| ObjectKey::of(self.clients.reach(), &object.metadata);
        let (key, old, new) = match &*event {
            Event::Apply(object) => {
                let key = key(object);
                let old = self.applications.get(&key);
                (key, old, Some(object.kept.clone()))
            }
            Event::Delete(object) => {
                let key = key(object);
                let old = self.applications.get(&key);
                (key, old, None)
            }
            // What has vanished meanwhile is told by nobody else.
            Event::InitDone => {
                let mut concerned = self.applications.workspaces(&kind);
                self.applications.take(&kind, *event);
                concerned.extend(self.applications.workspaces(&kind));
                self.registry.look_where(|set| concerned.contains(&set.workspace));
                return;
            }
            Event::Init | Event::InitApply(_) => {
                self.applications.take(&kind, *event);
                return;
            }
        };
        self.applications.take(&kind, *event);
        let found = match &new {
            Some(new) => meaning(old.as_deref(), new),
            None => Meaning::Substance,
        };
        let owner = |view: &View| {
            let (name, _) = view.owner.as_ref()?;
            Some(ObjectKey::new(&key.workspace, &key.namespace, name))
        };
        let owners = [new.as_ref().and_then(owner), old.as_deref().and_then(owner)];
        for set in owners.into_iter().flatten() {
            match found {
                Meaning::Nothing => {}
                Meaning::Standing => self.registry.wake(set, false),
                Meaning::Substance => self.registry.wake(set, true),
            }
        }
    }
}
