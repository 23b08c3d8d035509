//! What the API says about machines and their network, as the picture that a node's switch is given. Pure.
//!
//! Only workspaces that have something on this node are drawn: a machine, or a port of the host. Whatever contradicts something else is
//! left out and remarked on; the rest is drawn.

mod doors;
mod guests;
mod names;
mod segments;
mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fairway_api::Kind;
use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_machines_frames::Tenant;
use fairway_machines_frames::address::Mac;
use fairway_machines_frames::policy::compile::{self, compile};
use fairway_machines_frames::topology::{Gateway, Plan, PortId};
use serde_json::Value;

use crate::Card;
use crate::kinds::NETWORK_POLICY;
use crate::pools::Pool;
use crate::settings::Settings;
use crate::view::{Attachment, Instance, Service, Slice};

pub(crate) use doors::Door;
pub(crate) use names::Names;
pub(crate) use services::Backends;

/// The gateway's card. No machine may have its address.
pub(crate) const GATEWAY_MAC: Mac = Mac([0x02, 0, 0, 0, 0, 0x01]);
/// The largest packet that a card carries.
const MTU: u16 = 1500;
/// How long a lease lasts. Addresses never change, so this only says how soon a guest learns of other settings.
const LEASE_SECONDS: u32 = 3600;

/// What was plugged in for a machine of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plugged {
    pub(crate) hostname: String,
    pub(crate) cards: Vec<Card>,
}

/// Objects in the order of their keys.
pub(crate) type Objects<V> = Vec<(ObjectKey, Arc<V>)>;

/// What is known at a moment.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) plugged: BTreeMap<ObjectKey, Plugged>,
    pub(crate) instances: Objects<Instance>,
    pub(crate) services: Objects<Service>,
    pub(crate) slices: Objects<Slice>,
    /// NetworkPolicies: their `spec`.
    pub(crate) policies: Objects<Value>,
    /// Namespaces: their labels.
    pub(crate) namespaces: Objects<Value>,
    /// NetworkAttachmentDefinitions.
    pub(crate) attachments: BTreeMap<ObjectKey, Arc<Attachment>>,
    /// Links to other nodes, by their names.
    pub(crate) links: BTreeMap<String, PortId>,
}

/// Numbers that stand for names, given out by whoever draws again and again: the same name has the same number each time.
pub(crate) trait Numbers {
    fn tenant(&self, workspace: &WorkspaceId) -> Tenant;
    fn port(&self, socket: &Path) -> PortId;
}

/// Something that is not as somebody wanted it, for an event about an object of his.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Remark {
    /// The kind of the object: its `kind`.
    pub(crate) kind: &'static str,
    pub(crate) key: ObjectKey,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Remark {
    pub(crate) fn about(kind: &Kind, key: &ObjectKey, reason: &'static str, message: String) -> Self {
        Self {
            kind: kind.kind,
            key: key.clone(),
            reason,
            message,
        }
    }
}

/// The picture.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) plan: Plan,
    /// The names of each workspace.
    pub(crate) names: BTreeMap<WorkspaceId, Names>,
    /// Ports of the host.
    pub(crate) doors: Vec<Door>,
    /// Sorted, each once.
    pub(crate) remarks: Vec<Remark>,
}

/// Who draws, and with what.
pub(crate) struct Drawing<'a> {
    pub(crate) settings: &'a Settings,
    /// The Node's name.
    pub(crate) node: &'a str,
    pub(crate) numbers: &'a dyn Numbers,
    /// The addresses that load balancers may have.
    pub(crate) pools: &'a [Pool],
}

impl Drawing<'_> {
    /// Draws the picture of a world.
    pub(crate) fn draw(&self, world: &World) -> Picture {
        let here = workspaces(world);
        let is_here = |key: &ObjectKey| here.contains(&key.workspace);
        let mut remarks = Vec::new();
        let guests = self.guests(world, &is_here, &mut remarks);
        let cards = self.segments(world, &is_here, &mut remarks);
        let backends = Backends::new(&world.slices, &is_here);
        let services = self.services(world, &is_here, &backends, &guests);
        let (policies, ignored) = self.policies(world, &is_here);
        remarks.extend(ignored);
        let doors = self.doors(world, &is_here, &mut remarks);
        let names = here
            .iter()
            .map(|workspace| (workspace.clone(), Names::of(world, workspace)))
            .collect();
        remarks.sort();
        remarks.dedup();
        Picture {
            plan: Plan {
                gateway: gateway(self.settings),
                guests,
                cards,
                peers: world.links.values().copied().collect(),
                services,
                policies,
                outside: self.settings.outside.clone(),
            },
            names,
            doors,
            remarks,
        }
    }

    fn policies(
        &self,
        world: &World,
        is_here: &dyn Fn(&ObjectKey) -> bool,
    ) -> (fairway_machines_frames::policy::Policies, Vec<Remark>) {
        let here = |key: &ObjectKey| is_here(key).then(|| self.numbers.tenant(&key.workspace));
        let endpoints: Vec<compile::Endpoint> = world
            .instances
            .iter()
            .filter_map(|(key, instance)| {
                Some(compile::Endpoint {
                    tenant: here(key)?,
                    namespace: key.namespace.clone(),
                    labels: instance.labels.clone(),
                    address: instance.address.filter(|_| !instance.is_final)?,
                    ports: (instance.ports.iter())
                        .map(|port| (port.name.clone(), port.protocol, port.port))
                        .collect(),
                })
            })
            .collect();
        let namespaces: Vec<compile::Namespace> = (world.namespaces.iter())
            .filter_map(|(key, labels)| {
                Some(compile::Namespace {
                    tenant: here(key)?,
                    name: key.name.clone(),
                    labels: Value::clone(labels),
                })
            })
            .collect();
        let mut workspaces = BTreeMap::new();
        let sources: Vec<compile::Source> = (world.policies.iter())
            .filter_map(|(key, spec)| {
                let tenant = here(key)?;
                workspaces.insert(tenant, key.workspace.clone());
                Some(compile::Source {
                    tenant,
                    namespace: key.namespace.clone(),
                    name: key.name.clone(),
                    spec: Value::clone(spec),
                })
            })
            .collect();
        let (policies, ignored) = compile(&sources, &endpoints, &namespaces);
        let ignored = ignored.into_iter().filter_map(|ignored| {
            let key = ObjectKey::new(
                workspaces.get(&ignored.tenant)?,
                &ignored.namespace,
                &ignored.name,
            );
            Some(Remark::about(
                &NETWORK_POLICY,
                &key,
                "PartlyIgnored",
                ignored.what,
            ))
        });
        (policies, ignored.collect())
    }
}

/// The gateway of the machines' network.
pub(crate) fn gateway(settings: &Settings) -> Gateway {
    Gateway {
        mac: GATEWAY_MAC,
        address: settings.gateway,
        network: settings.machines,
        services: settings.services,
        mtu: MTU,
        // The gateway answers itself.
        resolvers: Vec::new(),
        domain: settings.domain.clone(),
        lease_seconds: LEASE_SECONDS,
    }
}

/// The workspaces that have a machine or a port of the host here.
fn workspaces(world: &World) -> BTreeSet<WorkspaceId> {
    let machines = world.plugged.keys();
    let ports = world
        .services
        .iter()
        .filter(|(_, service)| service.has_host_ports());
    machines
        .chain(ports.map(|(key, _)| key))
        .map(|key| key.workspace.clone())
        .collect()
}

/// Another object, as the owner of one may hear of it: names of other workspaces are not his business.
fn named(what: &str, other: &ObjectKey, own: &ObjectKey) -> String {
    if other.workspace == own.workspace {
        format!("{}/{}", other.namespace, other.name)
    } else {
        format!("a {what} of another workspace")
    }
}

#[cfg(test)]
mod tests;
