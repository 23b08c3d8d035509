//! What is done with objects of machines' kinds when they are written: what KubeVirt's and its data importer's webhooks
//! do, in their words, and what a dry run is told.
//!
//! A module here is a kind or a family of them. Each adapts what the other modules of this crate decide
//! ([`crate::defaults`], [`crate::validate`], [`crate::instancetype`], [`crate::impact`]) to a request: which object it is
//! about, who asks, and what else there is.

use std::sync::Arc;

use fairway_admission::{Admission, Place, Refusal, Request, Resource, World};
use serde_json::Value;

use crate::settings::{Settings, Sources};
use crate::validate::{self, Cause, CauseType};

mod clone;
mod cron;
mod data_volume;
mod infrastructure;
mod instance;
mod machine;
mod migration;
mod network;
mod size;
mod snapshot;
mod volume_snapshot;

pub use data_volume::{CLONE_SOURCE_ANNOTATION, IMAGES_NAMESPACE};
pub use migration::{FINALIZER as MIGRATION_FINALIZER, SELECTOR_LABEL as MIGRATION_SELECTOR_LABEL};

/// The address of a machine, which only the part that gives addresses may write.
pub const ADDRESS_ANNOTATION: &str = "fairway.dev/address";
/// Names of the control plane's users begin so.
const CONTROL_PLANE: &str = "system:serviceaccount:kube-system:fairway-machines-";
/// The user that gives addresses.
const WIRING: &str = "system:serviceaccount:kube-system:fairway-machines-wiring";
/// Names of hosts that joined begin so. What they may write is limited before it comes here.
const NODES: &str = "system:node:";

const KUBEVIRTS: Resource = Resource::new("kubevirt.io", "kubevirts");
const MACHINES: Resource = Resource::new("kubevirt.io", "virtualmachines");
const INSTANCES: Resource = Resource::new("kubevirt.io", "virtualmachineinstances");
const HYPERCONVERGEDS: Resource = Resource::new("hco.kubevirt.io", "hyperconvergeds");
const CLAIMS: Resource = Resource::new("", "persistentvolumeclaims");
const DATA_VOLUMES: Resource = Resource::new("cdi.kubevirt.io", "datavolumes");
const DATA_SOURCES: Resource = Resource::new("cdi.kubevirt.io", "datasources");

/// Settings are few; more than so many objects of them are not looked at.
const MOST_SETTINGS: usize = 64;

/// What completes and judges the objects of a kind; nothing for kinds that are not machines'.
pub fn of(group: &str, plural: &str) -> Option<Arc<dyn Admission>> {
    Some(match (group, plural) {
        ("kubevirt.io", "virtualmachines") => Arc::new(machine::Machines),
        ("kubevirt.io", "virtualmachineinstances") => Arc::new(instance::Instances),
        ("kubevirt.io", "virtualmachineinstancemigrations") => Arc::new(migration::Migrations),
        ("instancetype.kubevirt.io", plural) => size::of(plural)?,
        ("snapshot.kubevirt.io", "virtualmachinesnapshots") => Arc::new(snapshot::Snapshots),
        ("snapshot.kubevirt.io", "virtualmachinerestores") => Arc::new(snapshot::Restores),
        ("snapshot.kubevirt.io", "virtualmachinesnapshotcontents") => Arc::new(snapshot::Contents),
        ("clone.kubevirt.io", "virtualmachineclones") => Arc::new(clone::Clones),
        ("cdi.kubevirt.io", "datavolumes") => Arc::new(data_volume::DataVolumes),
        ("cdi.kubevirt.io", "dataimportcrons") => Arc::new(cron::Crons),
        ("kubevirt.io", "kubevirts") => Arc::new(infrastructure::KubeVirts),
        ("cdi.kubevirt.io", "cdis") => Arc::new(infrastructure::DataImporters),
        ("hco.kubevirt.io", "hyperconvergeds") => Arc::new(infrastructure::HyperConvergeds),
        ("snapshot.storage.k8s.io", "volumesnapshots") => Arc::new(volume_snapshot::VolumeSnapshots),
        ("snapshot.storage.k8s.io", "volumesnapshotcontents") => Arc::new(volume_snapshot::Contents),
        ("snapshot.storage.k8s.io", "volumesnapshotclasses") => Arc::new(infrastructure::Passive),
        ("k8s.cni.cncf.io", "network-attachment-definitions") => Arc::new(network::Attachments),
        ("cdi.kubevirt.io", "datasources" | "storageprofiles" | "cdiconfigs") => {
            Arc::new(infrastructure::Passive)
        }
        _ => return None,
    })
}

/// The settings in force where a request is made.
fn settings(world: &dyn World) -> Settings {
    let at = |place: Place| {
        let all = |resource| world.list(place, resource, None, MOST_SETTINGS);
        Sources::of(all(KUBEVIRTS), all(HYPERCONVERGEDS))
    };
    let (platform, own) = (at(Place::Root), at(Place::Here));
    Settings::in_force(&platform, Some(&own).filter(|own| **own != platform))
}

/// Whether a part of the control plane asks, or a node.
fn is_ours(request: &Request<'_>) -> bool {
    let is_part = |prefix: &str| request.user.starts_with(prefix);
    !request.is_local_user && (is_part(CONTROL_PLANE) || is_part(NODES))
}

/// Whether an object is on its way out.
fn is_leaving(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The text of a field; empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The name of an object.
fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Fields that are structures in Go, which writes them although they are empty. Of others, `{}` says something:
/// `masquerade: {}`.
const STRUCTURES: [&str; 4] = ["devices", "domain", "metadata", "resources"];

/// Whether two values mean the same to Go: nothing, null and an empty list are alike.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let mut keys = left.keys().chain(right.keys());
            keys.all(|key| match (left.get(key), right.get(key)) {
                (Some(one), Some(other)) => same(one, other),
                (one, other) => one.or(other).is_none_or(|value| {
                    let is_structure = STRUCTURES.contains(&key.as_str());
                    is_empty(value) && (is_structure || !value.is_object())
                }),
            })
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(one, other)| same(one, other))
        }
        (Value::Null, other) | (other, Value::Null) => is_empty(other) && !other.is_object(),
        (one, other) => one == other,
    }
}

/// Whether there is nothing in a value.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(Value::is_null),
        _ => false,
    }
}

/// One thing that is wrong.
fn cause(kind: CauseType, field: impl Into<String>, message: impl Into<String>) -> Cause {
    Cause {
        kind,
        message: message.into(),
        field: field.into(),
    }
}

/// KubeVirt's refusal of an object; of many causes the first are told.
fn refusal(webhook: &'static str, causes: &[Cause]) -> Refusal {
    let told = causes.iter().take(validate::MAX_CAUSES);
    Refusal::invalid(
        webhook,
        validate::message(causes),
        told.map(Cause::told).collect(),
    )
}

/// No refusal if nothing is wrong.
fn verdict(webhook: &'static str, causes: &[Cause]) -> Result<(), Refusal> {
    match causes {
        [] => Ok(()),
        causes => Err(refusal(webhook, causes)),
    }
}

/// The data importer's refusal of an object.
fn importer_refusal(webhook: &'static str, causes: &[Cause]) -> Refusal {
    let message: String = causes.iter().map(|it| format!(" {}", it.message)).collect();
    Refusal {
        reason: "",
        ..Refusal::invalid(webhook, message, causes.iter().map(Cause::told).collect())
    }
}

impl Cause {
    fn told(&self) -> fairway_admission::Cause {
        fairway_admission::Cause::new(self.kind.reason(), self.field.clone(), self.message.clone())
    }
}

/// As API servers say that an object is not there.
fn not_found(resource: Resource, name: &str) -> String {
    format!("{} \"{name}\" not found", resource.qualified())
}

#[cfg(test)]
mod tests;
