//! What a node may do: look after its own Node and Lease, run the instances that are bound to it, and read what those name.
//!
//! Nodes are outside RBAC, as upstream's are: which Secret a node may read depends on what is placed on it at the moment. Upstream keeps a
//! graph of that from watches. Here everything is in the memory of the same process already, so the question is asked of the objects
//! themselves ([`Objects`]), when it is asked; nothing is kept twice, and nothing is late.
//!
//! Lists and watches of kinds whose objects belong to nodes are allowed and limited ([`is_limited`]): the node sees those that are its own
//! ([`is_own`]), as if the server had added a selector. That is a function of the object alone, so that in a watch an object that
//! becomes the node's is ADDED, and one that ceases to be is DELETED.
//!
//! What is a node's follows only from what a node cannot write itself: specs of instances and DataVolumes, the node of an instance that is
//! not its own, the annotation that says for which node a disk was chosen. [`check_write`] keeps it so.

mod names;
mod write;

use serde_json::Value;

use crate::{Attributes, Decision, UserInfo};

pub use write::check_write;

/// Users that are nodes; the rest of the name is the node's.
const USER: &str = "system:node:";
/// The group that all of them are in.
const GROUP: &str = "system:nodes";
/// On claims and DataVolumes: on which node the disk is, or shall be.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On contents of snapshots: the node whose files they stand for.
const FILES_NODE: &str = "fairway.dev/node";
/// Kinds of snapshots of disks.
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
/// Where Leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// What the installation consists of and every node must know. None of it is secret.
const READABLE: &[(&str, &str)] = &[
    ("", "namespaces"),
    ("", "services"),
    ("cdi.kubevirt.io", "cdiconfigs"),
    ("cdi.kubevirt.io", "cdis"),
    ("discovery.k8s.io", "endpointslices"),
    ("hco.kubevirt.io", "hyperconvergeds"),
    ("k8s.cni.cncf.io", "network-attachment-definitions"),
    ("kubevirt.io", "kubevirts"),
    ("metallb.io", "ipaddresspools"),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("snapshot.storage.k8s.io", "volumesnapshotclasses"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

/// The objects of an installation, as they are now.
pub trait Objects {
    /// One object; the namespace of a cluster-scoped one is empty.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value>;

    /// The instances of a namespace.
    fn instances(&self, namespace: &str) -> Vec<Value>;

    /// The DataVolumes of a namespace.
    fn data_volumes(&self, namespace: &str) -> Vec<Value>;
}

/// The node that a user is, if he is one.
pub fn name_of(user: &UserInfo) -> Option<&str> {
    let name = user.name.strip_prefix(USER).filter(|it| !it.is_empty())?;
    user.in_group(GROUP).then_some(name)
}

/// Decides about a request of a node, in a workspace whose objects these are.
pub fn decide(node: &str, is_root: bool, attributes: &Attributes<'_>, objects: &dyn Objects) -> Decision {
    let Some(target) = &attributes.resource else {
        return no_opinion("");
    };
    let verb = attributes.verb;
    let reads = matches!(verb, "get" | "list" | "watch");
    let writes = matches!(verb, "patch" | "update");
    let looks = matches!(verb, "list" | "watch");
    let is_own_name = target.name == node;
    let owner = || {
        owner(
            node,
            target.group,
            target.resource,
            target.namespace,
            target.name,
            objects,
        )
    };
    let arrives = || {
        let volume = objects.get("", "persistentvolumes", "", target.name);
        volume.is_some_and(|it| names::holds_disk(node, &it, objects))
    };
    let allowed = match (target.group, target.resource, target.subresource) {
        ("", "nodes", "") if is_root => reads || verb == "create" || (writes && is_own_name),
        ("", "nodes", "status") if is_root => writes && is_own_name,
        ("machines.fairway.dev", "nodes", "link") if is_root => verb == "get" && is_own_name,
        // Images that everybody may start from, and what was sent for a disk of the node.
        ("machines.fairway.dev", "images" | "blobs", "") if is_root => verb == "get",
        ("machines.fairway.dev", "uploads", "" | "content") => {
            verb == "get" && names::is_claim_of(node, target.namespace, target.name, objects)
        }
        ("coordination.k8s.io", "leases", "") if is_root && target.namespace == LEASES => {
            verb == "create" || ((writes || verb == "get") && is_own_name)
        }
        ("certificates.k8s.io", "certificatesigningrequests", "") if is_root => {
            matches!(verb, "create" | "get")
        }
        ("" | "events.k8s.io", "events", "") => writes || verb == "create",
        // Whether a disk may be copied is asked in the name of whoever wants the copy; upstream's nodes may ask, too.
        ("authorization.k8s.io", "subjectaccessreviews", "") => verb == "create",
        ("storage.k8s.io", "storageclasses", "") | ("cdi.kubevirt.io", "storageprofiles", "") => {
            reads || verb == "create"
        }
        // What a DataVolume starts from; where there is nothing secret.
        ("cdi.kubevirt.io", "datasources", "") => verb == "get",
        // Whose account is asked whether a disk may be a copy is said by the machine that it is made for.
        ("kubevirt.io", "virtualmachines", "") => {
            verb == "get" && names::has_disk_of(node, target.namespace, target.name, objects)
        }
        ("kubevirt.io", "virtualmachineinstances", "") => looks || ((writes || verb == "get") && owner()),
        ("kubevirt.io", "virtualmachineinstances", "status") => writes && owner(),
        ("", "persistentvolumeclaims" | "persistentvolumes", "") | ("cdi.kubevirt.io", "datavolumes", "") => {
            looks
                || (verb == "create" && target.resource != "datavolumes")
                || ((writes || matches!(verb, "get" | "delete")) && owner())
                || (target.resource == "persistentvolumes" && (writes || verb == "get") && arrives())
        }
        ("", "persistentvolumeclaims" | "persistentvolumes", "status")
        | ("cdi.kubevirt.io", "datavolumes", "status") => (writes || verb == "get") && owner(),
        (SNAPSHOTS, "volumesnapshots", "") => looks || ((writes || verb == "get") && owner()),
        (SNAPSHOTS, "volumesnapshotcontents", "") => {
            verb == "create" || ((writes || matches!(verb, "get" | "delete")) && owner())
        }
        (SNAPSHOTS, "volumesnapshots" | "volumesnapshotcontents", "status") => writes && owner(),
        // It tells whether ports of its host are open, and nothing else: see what it may write.
        ("", "services", "status") => verb == "patch",
        ("", "secrets" | "configmaps" | "serviceaccounts", "") => {
            verb == "get" && !target.name.is_empty() && owner()
        }
        ("", "serviceaccounts", "token") => verb == "create" && owner(),
        (group, resource, "") => reads && READABLE.contains(&(group, resource)),
        _ => false,
    };
    match allowed {
        true => Decision::Allow {
            reason: "node: it is the node's own, or what runs there needs it".into(),
        },
        false => no_opinion("no relationship found between the node and this object"),
    }
}

fn no_opinion(reason: &'static str) -> Decision {
    Decision::NoOpinion {
        reason: reason.into(),
    }
}

/// Whether an object is a node's, or named by something that is.
fn owner(
    node: &str,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
    objects: &dyn Objects,
) -> bool {
    if name.is_empty() {
        return false;
    }
    let is_named = |resource: &str| names::of_instances(node, resource, namespace, name, objects);
    match resource {
        "secrets" | "configmaps" => {
            is_named(resource) || names::of_volumes(node, resource, namespace, name, objects)
        }
        "serviceaccounts" => is_named(resource),
        "persistentvolumeclaims" | "datavolumes" => {
            // A claim and its DataVolume have one name and one node.
            let pair = [
                objects.get("", "persistentvolumeclaims", namespace, name),
                objects.get("cdi.kubevirt.io", "datavolumes", namespace, name),
            ];
            let has_node = |it: &Option<Value>| it.as_ref().is_some_and(|it| is_selected(it, node));
            // That there is none of the name is nobody's secret.
            pair.iter().all(Option::is_none)
                || pair.iter().any(has_node)
                || is_named("persistentvolumeclaims")
        }
        _ => match objects.get(group, resource, namespace, name) {
            Some(object) => is_own(node, group, resource, &object),
            None => true,
        },
    }
}

/// Whether lists and watches of a kind show a node only what is its own.
pub fn is_limited(group: &str, resource: &str) -> bool {
    matches!(
        (group, resource),
        ("kubevirt.io", "virtualmachineinstances")
            | ("", "persistentvolumeclaims" | "persistentvolumes")
            | ("cdi.kubevirt.io", "datavolumes")
            | (SNAPSHOTS, "volumesnapshots")
    )
}

/// Whether an object of such a kind is a node's.
pub fn is_own(node: &str, group: &str, resource: &str, object: &Value) -> bool {
    match (group, resource) {
        ("kubevirt.io", "virtualmachineinstances") => is_bound(object, node),
        ("", "persistentvolumeclaims")
        | ("cdi.kubevirt.io", "datavolumes")
        | (SNAPSHOTS, "volumesnapshots") => is_selected(object, node),
        (SNAPSHOTS, "volumesnapshotcontents") => has_files(object, node),
        ("", "persistentvolumes") => is_local(object, node),
        _ => false,
    }
}

/// Whether an instance runs on a node, or is on its way from or to it.
fn is_bound(instance: &Value, node: &str) -> bool {
    let status = &instance["status"];
    let migration = &status["migrationState"];
    let under_way = !migration["completed"].as_bool().unwrap_or(false);
    status["nodeName"] == node
        || (under_way && (migration["targetNode"] == node || migration["sourceNode"] == node))
}

fn is_selected(object: &Value, node: &str) -> bool {
    object["metadata"]["annotations"][SELECTED_NODE] == node
}

/// Whether what a snapshot kept is on a node.
fn has_files(content: &Value, node: &str) -> bool {
    content["metadata"]["annotations"][FILES_NODE] == node
}

/// Whether a volume is on a node, and nowhere else.
fn is_local(volume: &Value, node: &str) -> bool {
    let terms = volume
        .pointer("/spec/nodeAffinity/required/nodeSelectorTerms")
        .and_then(Value::as_array);
    let expression = |term: &Value| {
        let [expression] = term["matchExpressions"].as_array()?.as_slice() else {
            return None;
        };
        let is_host = expression["key"] == "kubernetes.io/hostname" && expression["operator"] == "In";
        Some(is_host && expression["values"] == serde_json::json!([node]))
    };
    terms.is_some_and(|terms| terms.len() == 1 && expression(&terms[0]) == Some(true))
}

#[cfg(test)]
mod tests;
