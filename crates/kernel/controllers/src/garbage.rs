//! Owner-reference garbage collection: what lost its last owner goes too.
//!
//! Watches on the metadata of every deletable kind feed a [`graph::Graph`]; the graph says which objects to look at; a
//! look at the API decides ([`decide`]). An object is deleted only after the API itself has said that its owners are
//! absent, or a watch has reported their end, and only in the version that was looked at.
//!
//! Background: dependents follow when the owner is gone. Foreground: the owner has the finalizer `foregroundDeletion` and
//! waits for those dependents that block it. Orphan: the owner has the finalizer `orphan` and waits until its dependents
//! no longer refer to it.
//!
//! Watches see all workspaces; a reference counts only within its own. An owner in another workspace is absent.

mod collect;
mod decide;
mod graph;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_controller::dynamic::{self, Change};
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::kinds::Kind;
use fairway_controller::queue::WorkKey;
use fairway_controller::{Controller, Manager, Metadata, Queue, Reach, WorkspaceId};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::runtime::watcher::Event;
use tokio::sync::mpsc;

use self::collect::Collector;
use self::graph::{Consequences, Graph, Identity, Work, WorkAt};
use crate::{Setup, users};

const NAME: &str = "garbage-collector";
/// As many as upstream has.
const WORKERS: usize = 20;
/// Watches of different kinds are not in step: what was created before an owner was marked may be reported after it.
const SETTLE: Duration = Duration::from_millis(10);
/// Kinds that have gone and are remembered, since references to them outlive them.
const FORMER_KINDS: usize = 256;

/// Work in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GarbageKey {
    workspace: WorkspaceId,
    work: Work,
}

impl WorkKey for GarbageKey {
    fn workspace(&self) -> &WorkspaceId {
        &self.workspace
    }
}

impl fmt::Display for GarbageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            Work::Delete(uid) => write!(f, "{}|{uid}", self.workspace),
            Work::Orphan(uid) => write!(f, "{}|{uid} (orphan)", self.workspace),
        }
    }
}

/// What watches and workers share.
struct Shared {
    reach: Reach,
    graph: Mutex<Graph>,
    /// Kinds that have gone, each with a workspace that knew it.
    former: Mutex<Vec<(WorkspaceId, Arc<Kind>)>>,
    queue: Queue<GarbageKey>,
    /// Objects whose reference leads to another namespace, to be told so.
    misplaced: mpsc::UnboundedSender<(Identity, OwnerReference)>,
}

impl Shared {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, workspace: &WorkspaceId, work: impl IntoIterator<Item = Work>) {
        for work in work {
            let settle = matches!(work, Work::Orphan(_));
            let key = GarbageKey {
                workspace: workspace.clone(),
                work,
            };
            if settle {
                self.queue.add_after(key, SETTLE);
            } else {
                self.queue.add(key);
            }
        }
    }

    fn add_at(&self, work: Vec<WorkAt>) {
        for (workspace, work) in work {
            self.add(&workspace, [work]);
        }
    }

    fn follow(&self, workspace: &WorkspaceId, consequences: Consequences) {
        self.add(workspace, consequences.work);
        for misplaced in consequences.misplaced {
            // Nobody listens any more at the end of the process.
            let _ = self.misplaced.send(misplaced);
        }
    }

    /// Remembers where a kind was known.
    fn remember(&self, kind: &Arc<Kind>, mut places: Vec<WorkspaceId>) {
        // Where there is only one workspace, it is known even if no object was.
        if let Reach::One(workspace) = &self.reach {
            places = vec![workspace.clone()];
        }
        let mut former = self.former.lock().unwrap_or_else(PoisonError::into_inner);
        for place in places {
            former.retain(|(at, known)| *at != place || known.resource != kind.resource);
            if former.len() == FORMER_KINDS {
                former.remove(0);
            }
            former.push((place, Arc::clone(kind)));
        }
    }

    fn take(&self, change: Change) {
        match change {
            Change::Gone(kind) => {
                let (work, places) = self.graph().kind_gone(&kind);
                self.add_at(work);
                self.remember(&kind, places);
            }
            Change::Event(kind, event) => match *event {
                Event::Init => self.graph().list_begins(&kind),
                Event::InitApply(object) | Event::Apply(object) => {
                    let workspace = self.reach.workspace_of(&object.metadata);
                    let consequences = self.graph().observe(&workspace, &kind, &object.metadata);
                    self.follow(&workspace, consequences);
                }
                Event::InitDone => {
                    let work = self.graph().list_ends(&kind);
                    self.add_at(work);
                }
                Event::Delete(object) => {
                    let workspace = self.reach.workspace_of(&object.metadata);
                    let uid = object.metadata.uid.as_deref().unwrap_or_default();
                    let work = self.graph().remove(&workspace, uid);
                    self.add(&workspace, work);
                }
            },
        }
    }
}

/// Whether objects of the kind can be collected. Events end by themselves, and are too many.
fn is_collectable(kind: &Kind) -> bool {
    kind.can(&["delete", "list", "watch"]) && kind.resource.plural != "events"
}

pub(crate) fn register(manager: &mut Manager, setup: &Setup) {
    let clients = manager.clients(users::GARBAGE_COLLECTOR);
    let queue = Queue::default();
    let (misplaced, told) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        reach: manager.reach().clone(),
        graph: Mutex::default(),
        former: Mutex::default(),
        queue: queue.clone(),
        misplaced,
    });
    let sink = Arc::clone(&shared);
    let take = move |change| sink.take(change);
    manager.spawn(dynamic::follow_all(
        clients.every(),
        setup.served.changes(),
        is_collectable,
        manager.shutdown(),
        take,
    ));
    manager.spawn(tell(
        Recorder::new(clients.clone(), NAME),
        told,
        manager.shutdown(),
    ));
    let collector = Collector {
        clients,
        shared,
        served: setup.served.clone(),
    };
    let controller = Controller::new(NAME, queue, collector).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), manager.shutdown()));
}

/// Writes events about references that lead nowhere.
async fn tell(
    recorder: Recorder,
    mut told: mpsc::UnboundedReceiver<(Identity, OwnerReference)>,
    mut shutdown: fairway_controller::Shutdown,
) {
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            next = told.recv() => {
                let Some((object, owner)) = next else { return };
                let (about, happening) = misplaced_event(&object, &owner);
                recorder.record(&object.workspace, &about, happening).await;
            }
        }
    }
}

fn misplaced_event(object: &Identity, owner: &OwnerReference) -> (ObjectReference, Happening) {
    let about = ObjectReference {
        api_version: Some(object.api_version.clone()),
        kind: Some(object.kind.clone()),
        name: Some(object.name.clone()),
        namespace: (!object.namespace.is_empty()).then(|| object.namespace.clone()),
        uid: Some(object.uid.clone()),
        ..ObjectReference::default()
    };
    let message = format!(
        "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace {:?}",
        owner.api_version, owner.kind, object.namespace, owner.name, owner.uid, object.namespace
    );
    let happening = Happening {
        severity: Severity::Warning,
        reason: "OwnerRefInvalidNamespace",
        message,
    };
    (about, happening)
}

type MetadataApi = kube::Api<Metadata>;
