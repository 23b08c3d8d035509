//! What a node may write: upstream's NodeRestriction, for what nodes do here.
//!
//! Whatever decides what is a node's must not be in its own hands, or it could make more its own.

use serde_json::Value;

use super::{Objects, SELECTED_NODE, SNAPSHOTS, has_files, is_local, is_selected, names};

/// The class that nodes bring along, and who fills its claims.
const CLASS: &str = "local";
const PROVISIONER: &str = "fairway.dev/local";
/// Labels of a Node by which administrators keep machines apart; upstream's.
const RESTRICTED: &str = "node-restriction.kubernetes.io/";
/// The condition of a Service by which a node tells whether ports of its host are open; the name of the node follows.
const HOST_PORTS: &str = "fairway.dev/HostPortsOpen.";
/// Labels of an instance that say how it is.
const OWN_LABELS: &str = "kubevirt.io/";

/// Why a node may not write an object as it is about to be; `old` is what it was.
pub fn check_write(
    node: &str,
    (group, resource): (&str, &str),
    object: &Value,
    old: Option<&Value>,
    objects: &dyn Objects,
) -> Result<(), String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let refused = |why: &str| {
        Err(format!(
            "node {node:?} is not allowed to write {resource} {name:?}: {why}"
        ))
    };
    match (group, resource) {
        ("", "nodes") | ("coordination.k8s.io", "leases") if name != node => refused("it is another's"),
        ("", "nodes") => match node_change(object, old) {
            Some(why) => refused(why),
            None => Ok(()),
        },
        ("kubevirt.io", "virtualmachineinstances") => match old {
            None => refused("instances are made by the control plane"),
            Some(old) if old["spec"] != object["spec"] => {
                refused("it tells how an instance is, and not what it shall be")
            }
            Some(old)
                if owners(old) != owners(object)
                    || labels_differ(old, object, |it| !it.starts_with(OWN_LABELS)) =>
            {
                refused("labels and owners of an instance are its author's")
            }
            Some(_) => Ok(()),
        },
        ("cdi.kubevirt.io", "datavolumes") => match old {
            None => refused("DataVolumes are made by the control plane"),
            Some(old) if old["spec"] != object["spec"] => {
                refused("it tells how a DataVolume is, and not what it shall be")
            }
            Some(old) if chosen(old) != chosen(object) => refused("it does not choose the node of a disk"),
            Some(_) => Ok(()),
        },
        ("", "persistentvolumeclaims") => match old {
            // The disk of a machine that moves to the node is there from now on.
            Some(old) if chosen(old) != chosen(object) => {
                match is_selected(object, node) && is_used(node, object, objects) {
                    true => Ok(()),
                    false => refused("it does not choose the node of a disk"),
                }
            }
            Some(_) => Ok(()),
            None if is_selected(object, node) && is_expected(node, object, objects) => Ok(()),
            None => refused(
                "neither a DataVolume that was placed on it nor an instance on it asks for this claim",
            ),
        },
        ("", "persistentvolumes") if !is_local(object, node) => refused("the volume is not on it"),
        ("", "persistentvolumes") => match old {
            Some(old) if names::claim_ref(old) == names::claim_ref(object) => Ok(()),
            _ if is_of_claim(node, object, objects) => Ok(()),
            _ => refused("the claim of the volume is not on it"),
        },
        (SNAPSHOTS, "volumesnapshots") => match old {
            None => refused("snapshots are not made by nodes"),
            Some(old) if old["spec"] != object["spec"] || chosen(old) != chosen(object) => {
                refused("it tells how a snapshot is, and not of what or where it shall be")
            }
            Some(_) => Ok(()),
        },
        (SNAPSHOTS, "volumesnapshotcontents") => match old {
            _ if !has_files(object, node) => refused("what it stands for is not on it"),
            None if !is_of_snapshot(node, object, objects) => {
                refused("it stands for no snapshot of a disk that is on it")
            }
            Some(old) if old["spec"] != object["spec"] || !has_files(old, node) => {
                refused("it does not change what a snapshot kept")
            }
            _ => Ok(()),
        },
        ("", "services") => match old {
            Some(old) if told_alone(node, old) == told_alone(node, object) => Ok(()),
            _ => refused("it tells whether ports of its host are open, and nothing else"),
        },
        ("storage.k8s.io", "storageclasses")
            if name != CLASS || object["provisioner"].as_str() != Some(PROVISIONER) =>
        {
            refused("it brings the class \"local\" along, and no other")
        }
        ("cdi.kubevirt.io", "storageprofiles") if name != CLASS => {
            refused("it brings the profile of the class \"local\" along, and no other")
        }
        _ => Ok(()),
    }
}

fn chosen(object: &Value) -> &Value {
    &object["metadata"]["annotations"][SELECTED_NODE]
}

/// A Service without what a node may say of it, and what changes with every write.
fn told_alone(node: &str, service: &Value) -> Value {
    let own = format!("{HOST_PORTS}{node}");
    let mut rest = service.clone();
    if let Some(metadata) = rest["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        metadata.remove("resourceVersion");
    }
    if let Some(status) = rest["status"].as_object_mut() {
        if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| condition["type"] != own.as_str());
        }
        if status
            .get("conditions")
            .is_some_and(|it| *it == Value::Array(Vec::new()))
        {
            status.remove("conditions");
        }
    }
    rest
}

/// Whether a content stands for a snapshot that was placed on a node.
fn is_of_snapshot(node: &str, content: &Value, objects: &dyn Objects) -> bool {
    let named = &content["spec"]["volumeSnapshotRef"];
    let text = |field: &str| named[field].as_str().unwrap_or_default();
    let found = objects.get(SNAPSHOTS, "volumesnapshots", text("namespace"), text("name"));
    content["spec"]["driver"] == PROVISIONER
        && found.is_some_and(|it| is_selected(&it, node) && it["metadata"]["uid"] == named["uid"])
}

fn owners(object: &Value) -> &Value {
    &object["metadata"]["ownerReferences"]
}

/// Whether labels differ, of those that matter.
fn labels_differ(old: &Value, new: &Value, matters: impl Fn(&str) -> bool) -> bool {
    let (old, new) = (&old["metadata"]["labels"], &new["metadata"]["labels"]);
    let keys = [old, new]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|it| it.keys());
    let mut relevant = keys.filter(|key| matters(key));
    relevant.any(|key| old[key] != new[key])
}

/// What a node must not change of its own Node: it would choose its machines.
fn node_change(object: &Value, old: Option<&Value>) -> Option<&'static str> {
    let nothing = Value::Null;
    let before = old.unwrap_or(&nothing);
    if labels_differ(before, object, |it| it.starts_with(RESTRICTED)) {
        return Some("labels of node-restriction.kubernetes.io are the administrator's");
    }
    (old.is_some_and(|old| old["spec"]["taints"] != object["spec"]["taints"]))
        .then_some("taints are the administrator's")
}

/// Whether somebody who is not the node wants a claim there.
fn is_expected(node: &str, claim: &Value, objects: &dyn Objects) -> bool {
    let (namespace, name) = place(claim);
    let volume = objects.get("cdi.kubevirt.io", "datavolumes", namespace, name);
    volume.is_some_and(|it| is_selected(&it, node)) || is_used(node, claim, objects)
}

/// Whether a machine on the node, or on its way there, uses a claim.
fn is_used(node: &str, claim: &Value, objects: &dyn Objects) -> bool {
    let (namespace, name) = place(claim);
    names::of_instances(node, names::CLAIMS, namespace, name, objects)
}

fn place(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

fn is_of_claim(node: &str, volume: &Value, objects: &dyn Objects) -> bool {
    let (namespace, name) = names::claim_ref(volume);
    let claim = objects.get("", "persistentvolumeclaims", namespace, name);
    claim.is_some_and(|it| is_selected(&it, node))
}
