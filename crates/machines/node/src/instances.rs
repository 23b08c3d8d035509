//! The instances of this host: a task for each, told of every change, and nothing left of those that are gone.
//!
//! One watch over all workspaces brings every instance; those of other nodes are passed over. When the first list is complete, the
//! directories of machines are compared with it: a machine whose instance is gone is ended, and one that has its instance is never
//! touched from here: its task takes it in hand.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE;
use fairway_controller::{Json, Metadata, ObjectKey, Shutdown, watch};
use fairway_machines_qemu::adopt;
use fairway_machines_qemu::launch::Adopted;
use kube::api::Api;
use kube::core::ApiResource;
use kube::runtime::watcher::{Config, Event};
use serde_json::Value;
use tokio::sync::{mpsc, watch as latest};
use tokio::task::JoinSet;

use crate::context::Context;
use crate::instance::confining;
use crate::instance::home::{self, Found, Owner};
use crate::instance::migration::{Role, role};
use crate::instance::runner::Runner;
use crate::instance::stirred::Bell;

/// How many things may happen to a machine before its task has looked.
const INBOX: usize = 256;
/// How soon a machine that should not be there is looked at again, if it does not go.
const AGAIN: Duration = Duration::from_secs(5);

/// The task of an instance, as it is told what happens.
#[derive(Debug)]
struct Entry {
    uid: String,
    /// The object; nothing once it is gone.
    object: latest::Sender<Option<Arc<Value>>>,
    /// Rung when a claim of its namespace has changed.
    claims: Arc<Bell>,
    /// Closed when the task has ended.
    done: latest::Receiver<()>,
}

#[derive(Default)]
struct State {
    entries: HashMap<ObjectKey, Entry>,
    tasks: JoinSet<()>,
    /// The list under way: all keys that it has.
    listed: Option<HashSet<ObjectKey>>,
    /// Directories of all instances that were listed first.
    expected: Option<HashSet<String>>,
    follows_claims: bool,
    knows_host: bool,
}

/// The instances of this host.
pub(crate) struct Instances {
    context: Arc<Context>,
    shutdown: Shutdown,
    state: Mutex<State>,
}

impl Instances {
    pub(crate) fn new(context: Arc<Context>, shutdown: Shutdown) -> Arc<Self> {
        let state = State {
            expected: Some(HashSet::new()),
            ..State::default()
        };
        Arc::new(Self {
            context,
            shutdown,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until the end. Returns when every task has let go of its machine.
    pub(crate) async fn run(self: Arc<Self>) {
        let kind = VIRTUAL_MACHINE_INSTANCE;
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        let api: Api<Json> = Api::all_with(self.context.clients.every(), &resource);
        let this = Arc::clone(&self);
        watch::follow(api, Config::default(), self.shutdown.clone(), move |event| {
            this.take(event);
        })
        .await;
        let mut tasks = std::mem::take(&mut self.state().tasks);
        while tasks.join_next().await.is_some() {}
    }

    fn take(self: &Arc<Self>, event: Event<Json>) {
        match event {
            Event::Init => self.state().listed = Some(HashSet::new()),
            Event::InitApply(object) => {
                let key = self.key(&object);
                let mut state = self.state();
                if let Some(listed) = &mut state.listed {
                    listed.insert(key.clone());
                }
                if let Some(expected) = &mut state.expected {
                    let uid = object.metadata.uid.as_deref().unwrap_or_default();
                    expected.insert(Owner::new(&key, uid).short());
                }
                drop(state);
                self.see(key, object.value);
            }
            Event::InitDone => self.listed(),
            Event::Apply(object) => self.see(self.key(&object), object.value),
            Event::Delete(object) => {
                let key = self.key(&object);
                if let Some(entry) = self.state().entries.get(&key) {
                    entry.object.send_replace(None);
                }
            }
        }
    }

    fn key(&self, object: &Json) -> ObjectKey {
        ObjectKey::of(self.context.clients.reach(), &object.metadata)
    }

    /// A list is complete: what it does not have is gone.
    fn listed(self: &Arc<Self>) {
        let mut state = self.state();
        let listed = state.listed.take().unwrap_or_default();
        for (key, entry) in &state.entries {
            if !listed.contains(key) {
                entry.object.send_replace(None);
            }
        }
        if let Some(expected) = state.expected.take() {
            for found in home::all(&self.context.directory) {
                if !found
                    .path
                    .file_name()
                    .is_some_and(|name| expected.contains(&*name.to_string_lossy()))
                {
                    let context = Arc::clone(&self.context);
                    state.tasks.spawn(bury(found, context, self.shutdown.clone()));
                }
            }
        }
    }

    /// An instance is new, or has changed.
    fn see(self: &Arc<Self>, key: ObjectKey, object: Value) {
        let mut state = self.state();
        if !state.knows_host {
            // Somebody has machines: what the host can do is found out before one is placed here.
            state.knows_host = true;
            let context = Arc::clone(&self.context);
            state.tasks.spawn(async move {
                let _ = context.host.facts().await;
            });
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let known = state
            .entries
            .get(&key)
            .filter(|it| it.uid == uid && !it.object.is_closed());
        if let Some(entry) = known {
            entry.object.send_replace(Some(Arc::new(object)));
            return;
        }
        if role(&object, &self.context.node) == Role::None && !self.has_home(&key, uid) {
            return;
        }
        if !state.follows_claims {
            state.follows_claims = true;
            state.tasks.spawn(Arc::clone(self).follow_claims());
        }
        self.begin(&mut state, key, object);
    }

    /// Whether a machine of the instance may be here although it is placed elsewhere.
    fn has_home(&self, key: &ObjectKey, uid: &str) -> bool {
        let name = Owner::new(key, uid).short();
        self.context.directory.join(home::RUN).join(name).exists()
    }

    /// Begins the task of an instance.
    fn begin(self: &Arc<Self>, state: &mut State, key: ObjectKey, object: Value) {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        // Another of the same name may still be leaving: they must not meet, as both are reached by that name.
        let before = state.entries.remove(&key).map(|it| {
            it.object.send_replace(None);
            it.done
        });
        let (sender, receiver) = latest::channel(Some(Arc::new(object.clone())));
        let (inbox, claims) = (mpsc::channel(INBOX), Arc::<Bell>::default());
        let (ending, done) = latest::channel(());
        let entry = Entry {
            uid,
            object: sender,
            claims: Arc::clone(&claims),
            done,
        };
        state.entries.insert(key.clone(), entry);
        let (context, shutdown) = (Arc::clone(&self.context), self.shutdown.clone());
        let this = Arc::downgrade(self);
        state.tasks.spawn(async move {
            if let Some(mut before) = before {
                // It only ever ends.
                let _ = before.changed().await;
            }
            let runner = Runner::new(context, key.clone(), object, receiver, inbox, claims);
            if let Some(heard) = runner.run(shutdown).await
                && let Some(this) = this.upgrade()
            {
                this.ended(key, heard);
            }
            drop(ending);
        });
        // What has ended is forgotten now and then.
        while state.tasks.try_join_next().is_some() {}
        if state.entries.len() > 64 {
            state.entries.retain(|_, it| !it.object.is_closed());
        }
    }

    /// A task has ended because its instance was no business of this node. If it has become so again meanwhile, such as a machine that is to come
    /// once more after a first attempt failed, nobody else would hear of it.
    fn ended(self: &Arc<Self>, key: ObjectKey, mut heard: latest::Receiver<Option<Arc<Value>>>) {
        // Whoever tells holds this, too: from here on nothing is told to a task that has ended.
        let mut state = self.state();
        let unheard = heard.has_changed().unwrap_or(false);
        let object = heard.borrow_and_update().clone();
        drop(heard);
        if let Some(object) = object.filter(|_| unheard)
            && state
                .entries
                .get(&key)
                .is_some_and(|it| object["metadata"]["uid"] == it.uid.as_str())
            && role(&object, &self.context.node) != Role::None
        {
            self.begin(&mut state, key, object.as_ref().clone());
        }
    }

    /// Tells machines of claims that change.
    async fn follow_claims(self: Arc<Self>) {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "PersistentVolumeClaim".to_owned(),
            plural: "persistentvolumeclaims".to_owned(),
        };
        let api: Api<Metadata> = Api::all_with(self.context.clients.every(), &resource);
        let shutdown = self.shutdown.clone();
        watch::follow(api, Config::default(), shutdown, move |event| match event {
            Event::InitApply(claim) | Event::Apply(claim) => {
                let key = ObjectKey::of(self.context.clients.reach(), &claim.metadata);
                let state = self.state();
                let near = state
                    .entries
                    .iter()
                    .filter(|(it, _)| it.workspace == key.workspace && it.namespace == key.namespace);
                for (_, entry) in near {
                    entry.claims.ring(&key.name);
                }
            }
            _ => {}
        })
        .await;
    }
}

/// Ends a machine whose instance is gone, and removes its directory.
async fn bury(found: Found, context: Arc<Context>, mut shutdown: Shutdown) {
    loop {
        if ended(&found.path).await {
            match found.remove() {
                Ok(()) => {
                    let name = confining::name(&found.path);
                    context.processors.release(&name);
                    return context.isolation.gone(&name);
                }
                Err(error) => {
                    tracing::warn!(%error, "the directory of a machine whose instance is gone is not removed");
                }
            }
        }
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

async fn ended(path: &Path) -> bool {
    let outcome = match adopt(path).await {
        Ok(Adopted::Gone) => return true,
        Ok(Adopted::Running(machine)) => {
            tracing::info!(directory = %path.display(), pid = machine.pid(), "ending a machine whose instance is gone");
            machine.stop(Duration::ZERO).await.map(drop)
        }
        Ok(Adopted::Silent(orphan)) => {
            tracing::info!(directory = %path.display(), pid = orphan.pid(), why = orphan.why, "ending a silent machine whose instance is gone");
            orphan.kill().await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        tracing::warn!(directory = %path.display(), %error, "a machine whose instance is gone does not end; trying again");
    }
    outcome.is_ok()
}
