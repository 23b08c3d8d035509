//! Which slices a Service should have, and what is to be done about those that it has.
//!
//! Endpoints stay in the slice that they are in, so that a change rewrites as little as possible; slices that are no longer needed
//! are used for others before new ones are made. A Service that once had endpoints keeps an empty slice, as upstream's does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE;
use fairway_controller::ObjectKey;
use fairway_kernel_kinds::selector;
use serde_json::{Map, Value, json};

use crate::kinds::{ENDPOINT_SLICE, api_version};
use crate::view::{Instance, PortTarget, SERVICE_NAME, Service, ServicePort, list, protocol_name};

pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.machines.fairway.dev";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Upstream's `--max-endpoints-per-slice`.
const MOST: usize = 100;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) create: Vec<Value>,
    /// Merge patches by name. Each names the version that it is about.
    pub(super) patch: Vec<(String, Value)>,
    /// Slices as they were seen.
    pub(super) delete: Vec<Value>,
}

/// The ports that endpoints of a slice have, as they are written.
type Ports = Vec<Value>;

/// Compares what there is with what there should be.
pub(super) fn decide(
    key: &ObjectKey,
    service: &Service,
    instances: &[(ObjectKey, &Instance)],
    existing: &[&Value],
) -> Plan {
    let Some(wanted) = &service.selector else {
        return Plan::default();
    };
    // As upstream's: what a Service had before it became a mere name is left to its owner.
    if service.is_external_name() || service.is_deleting {
        return Plan::default();
    }
    let mut groups: BTreeMap<String, (Ports, BTreeMap<ObjectKey, Value>)> = BTreeMap::new();
    for (at, instance) in instances {
        if !selector::matches(wanted, &instance.labels) {
            continue;
        }
        let Some(address) = instance.address.filter(|_| !instance.is_final) else {
            continue;
        };
        let ports = ports(service, instance);
        let group = groups
            .entry(canonical(&ports))
            .or_insert_with(|| (ports, BTreeMap::new()));
        group
            .1
            .insert(at.clone(), endpoint(service, key, at, instance, address));
    }
    Placing {
        key,
        service,
        existing,
    }
    .place(groups)
}

struct Placing<'a> {
    key: &'a ObjectKey,
    service: &'a Service,
    existing: &'a [&'a Value],
}

impl Placing<'_> {
    fn place(&self, groups: BTreeMap<String, (Ports, BTreeMap<ObjectKey, Value>)>) -> Plan {
        let mut plan = Plan::default();
        // What each existing slice shall hold; nothing yet.
        let mut kept: BTreeMap<usize, (Ports, Vec<Value>)> = BTreeMap::new();
        let mut fresh: Vec<(Ports, Vec<Value>)> = Vec::new();
        for (own, (ports, members)) in groups {
            let mut homeless: BTreeMap<String, Value> = members
                .into_values()
                .map(|endpoint| (identity(&endpoint), endpoint))
                .collect();
            let mut mine: Vec<(usize, Vec<Value>)> = Vec::new();
            for (index, slice) in self.existing.iter().enumerate() {
                if canonical(list(slice, "/ports")) != own {
                    continue;
                }
                let stays: Vec<Value> = list(slice, "/endpoints")
                    .iter()
                    .filter_map(|endpoint| homeless.remove(&identity(endpoint)))
                    .collect();
                mine.push((index, stays));
            }
            let mut rest = homeless.into_values();
            for (index, mut members) in mine {
                while members.len() < MOST
                    && let Some(endpoint) = rest.next()
                {
                    members.push(endpoint);
                }
                if !members.is_empty() {
                    kept.insert(index, (ports.clone(), members));
                }
            }
            let mut rest = rest.peekable();
            while rest.peek().is_some() {
                fresh.push((ports.clone(), rest.by_ref().take(MOST).collect()));
            }
        }
        let mut free: BTreeSet<usize> = (0..self.existing.len())
            .filter(|at| !kept.contains_key(at))
            .collect();
        let mut names = self.names();
        for (ports, members) in fresh {
            match free.pop_first() {
                Some(index) => drop(kept.insert(index, (ports, members))),
                None => plan.create.push(self.slice(&mut names, &ports, &members)),
            }
        }
        if kept.is_empty() && plan.create.is_empty() {
            // Nobody is left: one slice stays and says so.
            if let Some(index) = free.pop_first() {
                kept.insert(index, (Vec::new(), Vec::new()));
            }
        }
        for (index, (ports, members)) in kept {
            let slice = self.existing[index];
            if let Some(patch) = self.patch(slice, &ports, &members) {
                plan.patch.push((name_of(slice).to_owned(), patch));
            }
        }
        plan.delete
            .extend(free.into_iter().map(|index| self.existing[index].clone()));
        plan
    }

    fn names(&self) -> BTreeSet<String> {
        self.existing
            .iter()
            .map(|slice| name_of(slice).to_owned())
            .collect()
    }

    /// The Service's own labels, and those by which slices are found.
    fn labels(&self) -> Map<String, Value> {
        let reserved = [SERVICE_NAME, MANAGED_BY, HEADLESS];
        let own = self.service.labels.iter();
        let mut labels: Map<String, Value> = own
            .filter(|(key, _)| !reserved.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        if self.service.is_headless {
            labels.insert(HEADLESS.to_owned(), "".into());
        }
        labels.insert(SERVICE_NAME.to_owned(), self.key.name.as_str().into());
        labels.insert(MANAGED_BY.to_owned(), MANAGER.into());
        labels
    }

    fn owner(&self) -> Value {
        json!([{
            "apiVersion": "v1", "kind": "Service", "name": self.key.name, "uid": self.service.uid,
            "controller": true, "blockOwnerDeletion": true,
        }])
    }

    /// A new slice. Its name follows from the Service and its place, so that of two writers only one makes it.
    fn slice(&self, names: &mut BTreeSet<String>, ports: &Ports, members: &[Value]) -> Value {
        let name = (0..)
            .map(|place: u32| format!("{}-vm{}", self.key.name, code(&self.service.uid, place)))
            .find(|name| !names.contains(name))
            .unwrap_or_default();
        names.insert(name.clone());
        json!({
            "apiVersion": api_version(&ENDPOINT_SLICE), "kind": ENDPOINT_SLICE.kind,
            "metadata": {
                "name": name, "namespace": self.key.namespace, "labels": self.labels(),
                "ownerReferences": self.owner(),
            },
            "addressType": "IPv4", "endpoints": members, "ports": ports,
        })
    }

    /// What is to be changed in a slice; nothing if it says already what it should.
    fn patch(&self, slice: &Value, ports: &Ports, members: &[Value]) -> Option<Value> {
        let labels = self.labels();
        let found = slice.pointer("/metadata/labels").and_then(Value::as_object);
        let same = |all: &[Value]| all.iter().map(sorted).collect::<BTreeSet<_>>();
        let is_same = found == Some(&labels)
            && slice.pointer("/metadata/ownerReferences").map(sorted) == Some(sorted(&self.owner()))
            && canonical(list(slice, "/ports")) == canonical(ports)
            && same(list(slice, "/endpoints")) == same(members);
        if is_same {
            return None;
        }
        let mut changed: Map<String, Value> = labels;
        for gone in found.into_iter().flatten().map(|(key, _)| key) {
            changed.entry(gone.clone()).or_insert(Value::Null);
        }
        Some(json!({
            "metadata": {
                "resourceVersion": slice.pointer("/metadata/resourceVersion"),
                "labels": changed, "ownerReferences": self.owner(),
            },
            "endpoints": members, "ports": ports,
        }))
    }
}

/// The ports of a Service as this instance has them. A name that it does not have is no port.
fn ports(service: &Service, instance: &Instance) -> Ports {
    service
        .ports
        .iter()
        .filter_map(|port| {
            let number = target(port, instance)?;
            let mut shown = json!({
                "name": port.name, "protocol": protocol_name(port.protocol), "port": number,
            });
            if let Some(protocol) = &port.app_protocol {
                shown["appProtocol"] = protocol.as_str().into();
            }
            Some(shown)
        })
        .collect()
}

fn target(port: &ServicePort, instance: &Instance) -> Option<u16> {
    match &port.target {
        PortTarget::Number(number) => Some(*number),
        PortTarget::Name(name) => (instance.ports.iter())
            .find(|own| own.name == *name && own.protocol == port.protocol)
            .map(|own| own.port),
    }
}

fn endpoint(
    service: &Service,
    service_key: &ObjectKey,
    key: &ObjectKey,
    instance: &Instance,
    address: Ipv4Addr,
) -> Value {
    let (serving, terminating) = (instance.is_ready, instance.is_deleting);
    let ready = service.publishes_not_ready || (serving && !terminating);
    let mut endpoint = json!({
        "addresses": [address.to_string()],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {
            "kind": VIRTUAL_MACHINE_INSTANCE.kind, "apiVersion": api_version(&VIRTUAL_MACHINE_INSTANCE),
            "namespace": key.namespace, "name": key.name, "uid": instance.uid,
        },
    });
    if !instance.node.is_empty() {
        endpoint["nodeName"] = instance.node.as_str().into();
    }
    if instance.subdomain == service_key.name {
        endpoint["hostname"] = instance.hostname.as_str().into();
    }
    endpoint
}

fn name_of(slice: &Value) -> &str {
    slice
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Who an endpoint is, whatever is said of it.
fn identity(endpoint: &Value) -> String {
    format!(
        "{} {}",
        endpoint["addresses"]
            .get(0)
            .and_then(Value::as_str)
            .unwrap_or_default(),
        endpoint["targetRef"]["uid"].as_str().unwrap_or_default()
    )
}

/// The same text for the same value, whatever the order of its fields.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, String> =
                fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            format!("{fields:?}")
        }
        Value::Array(items) => items.iter().map(sorted).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The same text for the same ports in whatever order.
fn canonical(ports: &[Value]) -> String {
    let ports: BTreeSet<String> = ports.iter().map(sorted).collect();
    ports.into_iter().collect::<Vec<_>>().join(";")
}

/// A short text that follows from a UID and a number: FNV-1a in base 32.
fn code(uid: &str, place: u32) -> String {
    const LETTERS: &[u8; 32] = b"bcdfghjklmnpqrstvwxz2456789acdeg";
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in uid.bytes().chain(place.to_be_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..6)
        .map(|digit| {
            let at = usize::try_from((hash >> (digit * 5 + 20)) & 31).unwrap_or(0);
            char::from(LETTERS[at])
        })
        .collect()
}

#[cfg(test)]
mod tests;
