//! Nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Printer;
use crate::column::{AGE, NAME, text as column, wide};
use crate::field::{NONE, UNKNOWN, age, at, filled_or, flag, items, name, text};

pub(crate) static NODE: Printer = Printer {
    columns: &[
        NAME,
        column("Status", "Whether the node is ready, and takes pods"),
        column("Roles", "The node's roles, from its labels"),
        AGE,
        column("Version", "The version of the node's kubelet"),
        wide("Internal-IP", "The node's address within the cluster"),
        wide("External-IP", "The node's address from outside of the cluster"),
        wide("OS-Image", "The node's operating system"),
        wide("Kernel-Version", "The node's kernel"),
        wide("Container-Runtime", "What runs the node's containers"),
    ],
    cells: |node, now| {
        let mut kernel = filled_or(node, "status.nodeInfo.kernelVersion", UNKNOWN).to_owned();
        let architecture = text(node, "status.nodeInfo.architecture");
        if !architecture.is_empty() {
            kernel = format!("{kernel} ({architecture})");
        }
        vec![
            name(node),
            status(node).into(),
            roles(node).into(),
            age(node, now),
            text(node, "status.nodeInfo.kubeletVersion").into(),
            address(node, "InternalIP").into(),
            address(node, "ExternalIP").into(),
            filled_or(node, "status.nodeInfo.osImage", UNKNOWN).into(),
            kernel.into(),
            filled_or(node, "status.nodeInfo.containerRuntimeVersion", UNKNOWN).into(),
        ]
    },
};

fn status(node: &Value) -> String {
    // Of several conditions of one type, the last is the one that counts here.
    let ready = items(node, "status.conditions").rfind(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(node, "spec.unschedulable", false) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Value) -> String {
    let labels = at(node, "metadata.labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    match roles.is_empty() {
        true => NONE.to_owned(),
        false => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    items(node, "status.addresses")
        .find(|address| text(address, "type") == kind)
        .map_or(NONE, |a| text(a, "address"))
}
