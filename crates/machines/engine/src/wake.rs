//! What is followed, and who looks again when something happens.

pub(crate) mod glimpse;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairway_api::Kind as Named;
use fairway_api::kubevirt::{
    DATA_VOLUME, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION,
};
use fairway_controller::cache::Cache;
use fairway_controller::dynamic::{Change, follow_all};
use fairway_controller::glimpse::Glimpse;
use fairway_controller::kinds::{Kind, Kinds};
use fairway_controller::watch::follow;
use fairway_controller::{Clients, Metadata, ObjectKey, Queue, Shutdown, WorkspaceId};
use fairway_machines_plan::node::LEASES;
use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim};
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;

use crate::installed::{Installation, Which};
use crate::migrate::glimpse::Migration;
use crate::nodes::Heard;
use crate::objects::{CLUSTER_INSTANCETYPE, CLUSTER_PREFERENCE, INSTANCETYPE, PREFERENCE};
use crate::schedule::ground::Ground;
use crate::schedule::instance::Instance;
use crate::settings::SettingsOf;
use glimpse::Machine;

/// Keys to look at, a queue for each controller.
#[derive(Clone, Default)]
pub(crate) struct Queues {
    /// Machines.
    pub(crate) machines: Queue<ObjectKey>,
    /// Instances without a node.
    pub(crate) unplaced: Queue<ObjectKey>,
    /// Nodes, by name.
    pub(crate) nodes: Queue<String>,
    /// Migrations.
    pub(crate) migrations: Queue<ObjectKey>,
    /// Nodes that machines may have to leave, by name.
    pub(crate) left: Queue<String>,
    /// Objects that ask for an installation.
    pub(crate) installations: Queue<Installation>,
}

/// Kinds that machines depend on, followed when there is a machine.
const DEPENDED_ON: [Named; 5] = [
    DATA_VOLUME,
    INSTANCETYPE,
    CLUSTER_INSTANCETYPE,
    PREFERENCE,
    CLUSTER_PREFERENCE,
];

/// A workspace whose own definition has taken the kind over has controllers of its own for it.
fn is(kind: &Kind, named: &Named) -> bool {
    kind.is_common() && kind.resource.group == named.group && kind.resource.kind == named.kind
}

/// Follows what there is, and wakes whom it concerns.
pub(crate) struct Wake {
    clients: Clients,
    kinds: watch::Receiver<Arc<Kinds>>,
    machines: Cache<Machine>,
    ground: Arc<Ground>,
    heard: Arc<Heard>,
    migrations: Cache<Migration>,
    queues: Queues,
    settings: Arc<SettingsOf>,
    follows_more: AtomicBool,
    shutdown: Shutdown,
}

impl Wake {
    pub(crate) fn new(
        clients: Clients,
        kinds: watch::Receiver<Arc<Kinds>>,
        ground: Arc<Ground>,
        heard: Arc<Heard>,
        queues: Queues,
        settings: Arc<SettingsOf>,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            machines: Cache::new(clients.reach()),
            migrations: Cache::new(clients.reach()),
            clients,
            kinds,
            ground,
            heard,
            queues,
            settings,
            follows_more: AtomicBool::new(false),
            shutdown,
        }
    }

    /// The watches that there are from the start.
    pub(crate) fn follow(self: &Arc<Self>) -> Vec<BoxFuture<'static, ()>> {
        let (machines, instances) = (Arc::clone(self), Arc::clone(self));
        let (nodes, leases, installations) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let client = || self.clients.every();
        let end = || self.shutdown.clone();
        vec![
            follow_all(
                client(),
                self.kinds.clone(),
                |kind| is(kind, &VIRTUAL_MACHINE),
                end(),
                move |change| machines.machine(change),
            )
            .boxed(),
            follow_all(
                client(),
                self.kinds.clone(),
                |kind| is(kind, &VIRTUAL_MACHINE_INSTANCE),
                end(),
                move |change| instances.instance(change),
            )
            .boxed(),
            follow_all(
                client(),
                self.kinds.clone(),
                |kind| Which::ALL.iter().any(|it| is(kind, it.kind())),
                end(),
                move |change| installations.installation(change),
            )
            .boxed(),
            // Nodes are the platform's, whichever workspaces have machines on them.
            follow(
                Api::<Node>::all(self.clients.root()),
                watcher::Config::default(),
                end(),
                move |event| nodes.node(event),
            )
            .boxed(),
            follow(
                Api::<Lease>::namespaced(self.clients.root(), LEASES),
                watcher::Config::default(),
                end(),
                move |event| leases.lease(&event),
            )
            .boxed(),
        ]
    }

    fn machine(self: &Arc<Self>, change: Change<Glimpse<Machine>>) {
        let Change::Event(_, event) = change else {
            return;
        };
        let keys = self.machines.take(*event, |seen| seen.kept);
        if !keys.is_empty() {
            self.follow_more();
        }
        for key in keys {
            self.queues.machines.add(key);
        }
    }

    fn instance(self: &Arc<Self>, change: Change<Glimpse<Instance>>) {
        let Change::Event(_, event) = change else {
            return;
        };
        let instances = &self.ground.instances;
        let before = match &*event {
            Event::Apply(object) | Event::Delete(object) => {
                let key = ObjectKey::of(self.clients.reach(), &object.metadata);
                instances.get(&key)
            }
            _ => None,
        };
        if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = &*event {
            let key = ObjectKey::of(self.clients.reach(), &object.metadata);
            self.ground
                .seen(&key, object.metadata.resource_version.as_deref());
        }
        let keys = instances.take(*event, |seen| seen.kept);
        if !keys.is_empty() {
            self.follow_more();
        }
        for key in keys {
            let now = instances.get(&key);
            if before.as_ref().is_some_and(|it| makes_room(it, now.as_deref())) {
                self.wake_unplaced(|_| true);
            }
            if now.as_ref().is_some_and(|it| it.node.is_empty()) {
                self.queues.unplaced.add(key.clone());
            }
            // Its node may be lost already.
            let node = now.as_ref().map(|it| &it.node).filter(|it| !it.is_empty());
            if let Some(node) = node.filter(|it| before.as_ref().is_none_or(|before| before.node != **it)) {
                self.queues.nodes.add(node.to_string());
            }
            self.wake_movers(&key, now.as_deref());
            // An instance has its machine's name.
            self.queues.machines.add(key);
        }
    }

    /// Wakes those who move an instance, or may have to.
    fn wake_movers(&self, key: &ObjectKey, instance: Option<&Instance>) {
        for (migration, seen) in self.migrations.of_namespace(&key.workspace, &key.namespace) {
            // Those that are over go with their instance.
            if (!seen.over || instance.is_none()) && *seen.instance == *key.name {
                self.queues.migrations.add(migration);
            }
        }
        let Some(instance) = instance.filter(|it| !it.node.is_empty() && !it.ended) else {
            return;
        };
        let node = self
            .ground
            .nodes
            .get(&ObjectKey::new(WorkspaceId::root_ref(), "", &instance.node));
        let drained = node.is_some_and(|it| it.cordoned || !it.taints.is_empty());
        if drained || instance.wants.is_some() || !instance.evacuates.is_empty() {
            self.queues.left.add(instance.node.to_string());
        }
    }

    fn migration(&self, change: Change<Glimpse<Migration>>) {
        let Change::Event(_, event) = change else {
            return;
        };
        for key in self.migrations.take(*event, |seen| seen.kept) {
            if let Some(seen) = self.migrations.get(&key).filter(|it| it.over) {
                // Another may have its turn now.
                let instance = ObjectKey::new(&key.workspace, &key.namespace, &seen.instance);
                let node = self.ground.instances.get(&instance).map(|it| it.node.to_string());
                node.into_iter().for_each(|it| self.queues.left.add(it));
            }
            self.queues.migrations.add(key);
        }
    }

    fn node(&self, event: Event<Node>) {
        let nodes = &self.ground.nodes;
        let before = match &event {
            Event::Apply(object) => nodes.get(&nodes.key_of(&object.metadata)),
            _ => None,
        };
        for key in nodes.take(event, Into::into) {
            // A node often tells what is of no account for placement.
            if before.is_none() || before != nodes.get(&key) {
                self.wake_unplaced(|_| true);
                self.queues.left.add(key.name.clone());
            }
            self.queues.nodes.add(key.name);
        }
    }

    fn lease(&self, event: &Event<Lease>) {
        let (Event::Apply(lease) | Event::InitApply(lease)) = event else {
            return;
        };
        if let (true, Some(name)) = (self.heard.lease(lease), &lease.metadata.name) {
            self.queues.nodes.add(name.clone());
        }
    }

    fn wake_unplaced(&self, whom: impl Fn(&ObjectKey) -> bool) {
        for key in self.ground.waiting(whom) {
            self.queues.unplaced.add(key);
        }
    }

    /// Follows what machines depend on. Nobody needs it before there is one.
    fn follow_more(self: &Arc<Self>) {
        if self.follows_more.swap(true, Ordering::Relaxed) {
            return;
        }
        let (depended, claims, migrations) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        tokio::spawn(follow_all(
            self.clients.every(),
            self.kinds.clone(),
            |kind| is(kind, &VIRTUAL_MACHINE_INSTANCE_MIGRATION),
            self.shutdown.clone(),
            move |change| migrations.migration(change),
        ));
        let wanted = |kind: &Kind| DEPENDED_ON.iter().any(|named| is(kind, named));
        let (kinds, end) = (self.kinds.clone(), self.shutdown.clone());
        tokio::spawn(follow_all(
            self.clients.every(),
            kinds,
            wanted,
            end.clone(),
            move |change| depended.depended_on(change),
        ));
        let api: Api<PartialObjectMeta<PersistentVolumeClaim>> = Api::all(self.clients.every());
        tokio::spawn(follow(api, watcher::Config::default(), end, move |event| {
            // What is listed at first is what the first pass finds anyway.
            if let Event::Apply(object) | Event::Delete(object) = event {
                claims.disk(&ObjectKey::of(claims.clients.reach(), &object.metadata));
            }
        }));
    }

    /// Settings have changed, or somebody waits for an installation.
    fn installation(&self, change: Change<Metadata>) {
        let Change::Event(kind, event) = change else {
            return;
        };
        let (Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = &*event else {
            return;
        };
        let key = ObjectKey::of(self.clients.reach(), &object.metadata);
        self.settings.forget(&key.workspace);
        // What is listed at first is what the first pass finds anyway.
        if !matches!(&*event, Event::InitApply(_)) {
            self.wake(&key.workspace, key.workspace.is_root(), |_, _| true);
        }
        let which = Which::ALL.into_iter().find(|it| is(&kind, it.kind()));
        if let Some(which) = which.filter(|_| !matches!(&*event, Event::Delete(_))) {
            self.queues.installations.add(Installation { which, key });
        }
    }

    fn depended_on(&self, change: Change<Metadata>) {
        let Change::Event(kind, event) = change else {
            return;
        };
        let (Event::Apply(object) | Event::Delete(object)) = *event else {
            return;
        };
        let key = ObjectKey::of(self.clients.reach(), &object.metadata);
        match kind.resource.kind.as_str() {
            kind if kind == DATA_VOLUME.kind => self.disk(&key),
            _ => self.wake(&key.workspace, false, |it, machine| {
                machine.is_sized && (key.namespace.is_empty() || key.namespace == it.namespace)
            }),
        }
    }

    /// A disk has changed.
    fn disk(&self, key: &ObjectKey) {
        for (machine, seen) in self.machines.of_namespace(&key.workspace, &key.namespace) {
            if seen.disks.iter().any(|it| **it == *key.name) {
                self.queues.machines.add(machine);
            }
        }
        self.wake_unplaced(|it| {
            let near = it.workspace == key.workspace && it.namespace == key.namespace;
            near && (self.ground.instances.get(it))
                .is_none_or(|seen| seen.disks.iter().any(|it| **it == *key.name))
        });
    }

    fn wake(&self, workspace: &WorkspaceId, everywhere: bool, whom: impl Fn(&ObjectKey, &Machine) -> bool) {
        let within = |key: &ObjectKey| everywhere || key.workspace == *workspace;
        let keys = self
            .machines
            .keys_where(|key, seen| within(key) && whom(key, seen));
        for key in keys {
            self.queues.machines.add(key);
        }
    }
}

/// Whether somebody who waits may have a place now: what was taken is free, or who was in the way is not any more.
fn makes_room(before: &Instance, now: Option<&Instance>) -> bool {
    now.is_none_or(|now| {
        now.ended != before.ended
            || now.node != before.node
            || now.target != before.target
            || now.labels != before.labels
            || now.amounts != before.amounts
            || now.avoids != before.avoids
    })
}
