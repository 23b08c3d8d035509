//! A place that applications live in: the API of this process with all its workspaces, or another cluster.
//!
//! What there is, is known from watches: one for each kind that some application manages, begun with the first that
//! needs it and ended with the last. Of what they see only objects that carry an application's mark are kept, as bytes;
//! anything else is read when somebody asks for it.
//!
//! Tasks: one for each watch, and one that follows which kinds are served. Each writes into the state and puts the keys of
//! applications into the engine's queue, and does nothing else.

mod family;
mod state;
mod watches;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_controller::kinds::{Kind, Kinds};
use fairway_controller::served::Served;
use fairway_controller::{Clients, ObjectKey, Queue, Shutdown, WorkspaceId};
use fairway_gitops_sync::hook;
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::tracking::Tracking;
use serde_json::Value;
use tokio::sync::Notify;

pub(crate) use family::Descendant;
use state::State;

/// How long the first list of a kind may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A place with its clients, its kinds and what is known of its objects.
pub(crate) struct Cluster {
    /// Looks.
    pub(crate) readers: Clients,
    /// Writes, unless somebody else is named for it.
    pub(crate) writers: Clients,
    pub(crate) served: Served,
    state: Mutex<State>,
    /// Wakes those who wait for a first list.
    listed: Notify,
    queue: Queue<ObjectKey>,
    shutdown: Shutdown,
    /// The version of Kubernetes; empty until it was asked for.
    version: Mutex<String>,
    /// What charts see of the kinds, and of which kinds it was made.
    api_versions: Mutex<Option<ApiVersions>>,
}

/// What charts see of kinds.
type ApiVersions = (Arc<Kinds>, Arc<[String]>);

/// What is known of an object.
pub(crate) enum Known {
    /// It is there.
    Is(Value),
    /// It is not, or carries no mark: who wants to know has to ask.
    Unmarked,
}

impl Cluster {
    /// A place; its tasks run until the end. What it serves is followed, unless somebody does already.
    pub(crate) fn start(
        readers: Clients,
        writers: Clients,
        served: Option<Served>,
        queue: Queue<ObjectKey>,
        shutdown: Shutdown,
    ) -> Arc<Self> {
        let served = served.unwrap_or_else(|| {
            let (served, follow) = Served::follow(readers.clone(), shutdown.clone());
            tokio::spawn(follow);
            served
        });
        let cluster = Arc::new(Self {
            readers,
            writers,
            served,
            state: Mutex::default(),
            listed: Notify::new(),
            queue,
            shutdown,
            version: Mutex::default(),
            api_versions: Mutex::default(),
        });
        tokio::spawn(watches::follow_kinds(Arc::downgrade(&cluster)));
        cluster
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No method panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the end has come, so that what cannot be found out means nothing.
    pub(crate) fn is_ending(&self) -> bool {
        self.shutdown.is_shut_down()
    }

    /// Waits until it is known what is served.
    pub(crate) async fn ready(&self) -> bool {
        let mut kinds = self.served.changes();
        let wait = kinds.wait_for(|kinds| !kinds.is_empty());
        let mut shutdown = self.shutdown.clone();
        tokio::select! {
            () = shutdown.wait() => false,
            found = tokio::time::timeout(PATIENCE, wait) => matches!(found, Ok(Ok(_))),
        }
    }

    /// The version of Kubernetes there.
    pub(crate) async fn version(&self, workspace: &WorkspaceId) -> String {
        let known = self
            .version
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if !known.is_empty() {
            return known;
        }
        match self.readers.of(workspace).apiserver_version().await {
            Ok(info) => {
                let version = info.git_version.trim_start_matches('v').to_owned();
                self.version
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone_from(&version);
                version
            }
            Err(_) => String::new(),
        }
    }

    /// Sees to it that kinds are watched for an application, and that those are not which it needs no more; returns when
    /// everything of them is known. The error is a sentence.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        application: &ObjectKey,
        kinds: &[Arc<Kind>],
    ) -> Result<(), String> {
        // Kinds of children are not waited for: nothing that is decided depends on them.
        let children = self.state().child_kinds.get(application).cloned();
        let all: Vec<Arc<Kind>> = kinds
            .iter()
            .cloned()
            .chain(children.into_iter().flatten())
            .collect();
        watches::need(self, application, &all);
        let begun = tokio::time::Instant::now();
        loop {
            let mut changed = std::pin::pin!(self.listed.notified());
            changed.as_mut().enable();
            let Some(waits_for) = self.state().first_unlisted(kinds) else {
                return Ok(());
            };
            let mut shutdown = self.shutdown.clone();
            let waited = tokio::select! {
                () = shutdown.wait() => return Err("the engine ends".to_owned()),
                waited = tokio::time::timeout_at(begun + PATIENCE, changed) => waited,
            };
            if waited.is_err() {
                return Err(format!(
                    "{} could not be listed at the destination within {} seconds",
                    waits_for.1,
                    PATIENCE.as_secs()
                ));
            }
        }
    }

    /// What an application wants to hear of, and what is marked as its own.
    pub(crate) fn interest(
        &self,
        application: &ObjectKey,
        workspace: &WorkspaceId,
        keys: BTreeSet<ResourceKey>,
    ) {
        self.state().interest(application, workspace, keys);
    }

    /// That an application waits for a kind to be defined.
    pub(crate) fn wait_for_kinds(&self, application: &ObjectKey, waits: bool) {
        self.state().wait_for_kinds(application, waits);
    }

    /// Forgets an application, and ends what only it needed.
    pub(crate) fn forget(self: &Arc<Self>, application: &ObjectKey) {
        watches::need(self, application, &[]);
        let mut state = self.state();
        state.child_kinds.remove(application);
        state.interest(application, WorkspaceId::root_ref(), BTreeSet::new());
        state.wait_for_kinds(application, false);
    }

    /// The kinds of children that are watched for an application, beside those that it manages.
    pub(crate) fn child_kinds(&self, application: &ObjectKey) -> Vec<Arc<Kind>> {
        let kinds = self.state().child_kinds.get(application).cloned();
        kinds.unwrap_or_default()
    }

    /// Watches kinds for an application because its objects have children of them, beside those that it manages.
    pub(crate) fn watch_children(
        self: &Arc<Self>,
        application: &ObjectKey,
        managed: &[Arc<Kind>],
        children: Vec<Arc<Kind>>,
    ) {
        {
            let mut state = self.state();
            match children.is_empty() {
                true => state.child_kinds.remove(application),
                false => state.child_kinds.insert(application.clone(), children.clone()),
            };
        }
        let all: Vec<Arc<Kind>> = managed.iter().cloned().chain(children).collect();
        watches::need(self, application, &all);
    }

    /// Whether a kind has been listed.
    pub(crate) fn is_listed(&self, kind: &Arc<Kind>) -> bool {
        self.state().first_unlisted(std::slice::from_ref(kind)).is_none()
    }

    /// What is known to be below objects, by their UIDs: parents before children.
    pub(crate) fn below(&self, workspace: &WorkspaceId, roots: &[&str]) -> Vec<Descendant> {
        self.state().family.below(workspace, roots)
    }

    /// Everything that is marked as an application's.
    pub(crate) fn marked(&self, workspace: &WorkspaceId, instance: &str, tracking: &Tracking) -> Vec<Value> {
        let texts = self.state().marked(workspace, instance, &tracking.label);
        let objects = texts
            .iter()
            .filter_map(|text| serde_json::from_slice::<Value>(text).ok());
        objects
            .filter(|object| tracking.owner(object).as_deref() == Some(instance))
            // A hook whose name was generated does not know it in its mark.
            .filter(|object| hook::is_hook(object) || tracking.is_self_referenced(object, None))
            .collect()
    }

    /// What is known of an object of a kind that is watched.
    pub(crate) fn known(&self, workspace: &WorkspaceId, key: &ResourceKey) -> Known {
        let text = self.state().text(workspace, key);
        match text.and_then(|text| serde_json::from_slice(&text).ok()) {
            Some(object) => Known::Is(object),
            None => Known::Unmarked,
        }
    }

    /// Whether an object that is marked is there.
    pub(crate) fn is_there(&self, workspace: &WorkspaceId, key: &ResourceKey) -> bool {
        self.state().text(workspace, key).is_some()
    }

    /// Whether other applications declare an object too, or have objects in it if it is a Namespace.
    pub(crate) fn is_needed_by_others(
        &self,
        application: &ObjectKey,
        workspace: &WorkspaceId,
        key: &ResourceKey,
    ) -> bool {
        self.state().is_needed_by_others(application, workspace, key)
    }

    /// Every group-version that is served, and every kind in its preferred one.
    pub(crate) fn api_versions(&self) -> Arc<[String]> {
        let kinds = self.served.every();
        let mut known = self.api_versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, versions)) = &*known
            && Arc::ptr_eq(of, &kinds)
        {
            return Arc::clone(versions);
        }
        let mut versions: BTreeSet<String> = kinds.group_versions().into_iter().map(str::to_owned).collect();
        versions.extend(
            kinds
                .iter()
                .map(|kind| format!("{}/{}", kind.resource.api_version, kind.resource.kind)),
        );
        let versions: Arc<[String]> = versions.into_iter().collect();
        *known = Some((kinds, Arc::clone(&versions)));
        versions
    }

    /// Takes the answer to a write in before the watch brings it.
    pub(crate) fn written(&self, workspace: &WorkspaceId, object: &Value) {
        self.state().put(workspace, object.clone(), None);
    }

    /// Takes in that an object is gone.
    pub(crate) fn removed(&self, workspace: &WorkspaceId, key: &ResourceKey) {
        self.state().remove(workspace, key, None);
    }
}
