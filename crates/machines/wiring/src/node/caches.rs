//! What a node has seen of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use fairway_api::Kind;
use fairway_api::kubevirt::{NETWORK_ATTACHMENT_DEFINITION, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::cache::Cache;
use fairway_controller::{Clients, Json, ObjectKey, Reach, Shutdown, WorkspaceId, watch};
use fairway_machines_frames::topology::PortId;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::runtime::watcher::Config;
use serde_json::Value;

use super::Shared;
use crate::kinds::{ENDPOINT_SLICE, IP_ADDRESS, NAMESPACE, NETWORK_POLICY, SERVICE};
use crate::picture::{Objects, Plugged, World};
use crate::reservation::{self, Reservation};
use crate::view::{Attachment, Instance, Service, Slice, strings};
use crate::watches::{follow, follow_in};

/// Services with ports of the host.
const WITH_HOST_PORTS: &str = "spec.type!=ClusterIP,spec.type!=ExternalName";

/// A cache for each kind.
pub(crate) struct Caches {
    pub(crate) instances: Arc<Cache<Instance>>,
    pub(crate) services: Arc<Cache<Service>>,
    pub(crate) slices: Arc<Cache<Slice>>,
    policies: Arc<Cache<Value>>,
    namespaces: Arc<Cache<Value>>,
    attachments: Arc<Cache<Attachment>>,
    /// Whose addresses are.
    reservations: Arc<Cache<Option<Reservation>>>,
    home: WorkspaceId,
}

impl Caches {
    pub(crate) fn new(reach: &Reach) -> Self {
        Self {
            instances: Arc::new(Cache::new(reach)),
            services: Arc::new(Cache::new(reach)),
            slices: Arc::new(Cache::new(reach)),
            policies: Arc::new(Cache::new(reach)),
            namespaces: Arc::new(Cache::new(reach)),
            attachments: Arc::new(Cache::new(reach)),
            reservations: Arc::new(Cache::new(&Reach::One(reservation::home(reach)))),
            home: reservation::home(reach),
        }
    }

    /// Whether every list has been read. Before that a picture would lack policies, which must never be.
    pub(crate) fn is_synced(&self) -> bool {
        self.instances.is_synced()
            && self.services.is_synced()
            && self.slices.is_synced()
            && self.policies.is_synced()
            && self.namespaces.is_synced()
            && self.attachments.is_synced()
            && self.reservations.is_synced()
    }

    /// The address of an instance, if it is really its.
    pub(crate) fn address(&self, key: &ObjectKey, instance: &Instance) -> Option<Ipv4Addr> {
        let address = instance.address?;
        reservation::is_of(&self.reservations, &self.home, address, key).then_some(address)
    }

    /// Machines of other nodes whose instances this node does not see.
    fn foreign(&self, here: &BTreeSet<WorkspaceId>) -> Objects<Instance> {
        let all = self.reservations.all().into_iter();
        let foreign = all.filter_map(|(key, held)| {
            let held = held.as_ref().as_ref()?;
            if !here.contains(&held.machine.workspace) || self.instances.get(&held.machine).is_some() {
                return None;
            }
            let instance = held.seen.as_ref()?.instance(key.name.parse().ok()?);
            Some((held.machine.clone(), Arc::new(instance)))
        });
        foreign.collect()
    }

    /// The node on which the machine with an address runs.
    pub(super) fn node_at(&self, workspace: &WorkspaceId, address: Ipv4Addr) -> Option<String> {
        let held = (self.reservations).get(&ObjectKey::new(&self.home, "", &address.to_string()))?;
        let held = (held.as_ref().as_ref()).filter(|held| held.machine.workspace == *workspace)?;
        let node = match self.instances.get(&held.machine) {
            Some(instance) => (instance.address == Some(address)).then(|| instance.node.clone()),
            None => held.seen.as_ref().map(|seen| seen.node().to_owned()),
        };
        node.filter(|node| !node.is_empty())
    }

    /// Whether a workspace has a Service with a port of the host.
    pub(crate) fn has_host_ports(&self, workspace: &WorkspaceId) -> bool {
        (self.services.of_workspace(workspace).iter()).any(|(_, service)| service.has_host_ports())
    }

    /// Everything in the workspaces that have something here.
    pub(crate) fn world(
        &self,
        plugged: BTreeMap<ObjectKey, Plugged>,
        links: BTreeMap<String, PortId>,
    ) -> World {
        let with_ports = self.services.keys_where(|_, service| service.has_host_ports());
        let here: BTreeSet<WorkspaceId> = (plugged.keys())
            .chain(&with_ports)
            .map(|key| key.workspace.clone())
            .collect();
        let mut instances = all_of(&self.instances, &here);
        for (key, instance) in &mut instances {
            if instance.address.is_some() && self.address(key, instance).is_none() {
                Arc::make_mut(instance).address = None;
            }
        }
        instances.extend(self.foreign(&here));
        instances.sort_by(|(one, _), (other, _)| one.cmp(other));
        World {
            plugged,
            links,
            instances,
            services: all_of(&self.services, &here),
            slices: all_of(&self.slices, &here),
            policies: all_of(&self.policies, &here),
            namespaces: all_of(&self.namespaces, &here),
            attachments: all_of(&self.attachments, &here).into_iter().collect(),
        }
    }
}

fn all_of<V>(cache: &Cache<V>, here: &BTreeSet<WorkspaceId>) -> Objects<V> {
    here.iter()
        .flat_map(|workspace| cache.of_workspace(workspace))
        .collect()
}

/// Follows every kind into its cache, and wakes the painter.
pub(super) async fn follow_all(shared: Arc<Shared>, clients: Clients, shutdown: Shutdown) {
    let caches = &shared.caches;
    let context = (&shared, &clients, &shutdown);
    let tasks = [
        keep(
            context,
            VIRTUAL_MACHINE_INSTANCE,
            &caches.instances,
            Instance::read,
        ),
        keep(context, SERVICE, &caches.services, |_, object| {
            Service::read(object)
        }),
        keep(context, ENDPOINT_SLICE, &caches.slices, |_, object| {
            Slice::read(object)
        }),
        keep(context, NETWORK_POLICY, &caches.policies, |_, object| {
            object.get("spec").cloned().unwrap_or_default()
        }),
        keep(context, NAMESPACE, &caches.namespaces, |_, object| {
            strings(object, "/metadata/labels")
        }),
        keep(
            context,
            NETWORK_ATTACHMENT_DEFINITION,
            &caches.attachments,
            |_, object| Attachment::read(object),
        ),
    ];
    let painter = Arc::clone(&shared);
    let reservations = follow_in(
        clients.of(&caches.home),
        IP_ADDRESS,
        reservation::ours(),
        shutdown.clone(),
        Arc::clone(&caches.reservations),
        |_: &ObjectKey, object: Json| Reservation::read(&object.value),
        move |_| painter.wake.notify_one(),
    );
    // A list without objects changes nothing, and still the picture waited for it.
    let all_seen = watch::once(
        || caches.is_synced(),
        shutdown.clone(),
        || shared.wake.notify_one(),
    );
    tokio::join!(futures::future::join_all(tasks), reservations, all_seen);
}

fn keep<V: PartialEq + Send + Sync + 'static>(
    (shared, clients, shutdown): (&Arc<Shared>, &Clients, &Shutdown),
    kind: Kind,
    cache: &Arc<Cache<V>>,
    read: impl Fn(&ObjectKey, &Value) -> V + Send + Sync + 'static,
) -> BoxFuture<'static, ()> {
    let shared = Arc::clone(shared);
    follow(
        clients.clone(),
        kind,
        Config::default(),
        shutdown.clone(),
        Arc::clone(cache),
        read,
        move |_| shared.wake.notify_one(),
    )
    .boxed()
}

/// Looks out for the first Service with a port of the host, until the rest is needed for whatever reason.
pub(super) async fn look_out(shared: Arc<Shared>, clients: Clients, mut shutdown: Shutdown) {
    let seen = Arc::new(Cache::new(clients.reach()));
    let found = Arc::clone(&shared);
    let looking = follow_in(
        clients.every(),
        SERVICE,
        Config::default().fields(WITH_HOST_PORTS),
        shutdown.clone(),
        seen,
        |_: &ObjectKey, _: Json| (),
        move |change| {
            if change.now.is_some() {
                found.needed.now();
            }
        },
    );
    tokio::select! {
        () = shutdown.wait() => {}
        () = shared.needed.wait() => {}
        () = looking => {}
    }
}
