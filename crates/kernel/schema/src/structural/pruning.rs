//! Removal of fields that the schema does not know.
//!
//! Below `x-kubernetes-preserve-unknown-fields` nothing is removed, except where a schema further down specifies fields
//! again. The metadata of resources, embedded ones too, is not described by schemas and left to [`super::objectmeta`].

use serde_json::Value;

use super::node::{Flags, Node};
use super::trail::{Step, Trail};

fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Removes what is unknown; `resource` says that the value is a whole object with metadata.
pub(super) fn prune(
    node: Option<&Node>,
    resource: bool,
    value: &mut Value,
    trail: &Trail<'_>,
    unknown: &mut Vec<String>,
) {
    if let Some(node) = node
        && node.has(Flags::PRESERVE_UNKNOWN)
    {
        preserve(node, resource, value, trail, unknown);
        return;
    }
    match value {
        Value::Object(object) => object.retain(|name, value| {
            let embedded = resource || node.is_some_and(|n| n.has(Flags::EMBEDDED));
            if embedded && is_meta(name) {
                return true;
            }
            let here = trail.then(Step::Field(name));
            match node {
                Some(node) if node.property(name).is_some() => {
                    prune(node.property(name), false, value, &here, unknown);
                    true
                }
                Some(node) if node.mentions_additional() => {
                    prune(node.additional(), false, value, &here, unknown);
                    true
                }
                _ => {
                    unknown.push(here.dotted());
                    false
                }
            }
        }),
        Value::Array(items) => {
            let child = node.and_then(Node::items);
            for (i, item) in items.iter_mut().enumerate() {
                prune(child, false, item, &trail.then(Step::Index(i)), unknown);
            }
        }
        _ => {}
    }
}

fn preserve(node: &Node, resource: bool, value: &mut Value, trail: &Trail<'_>, unknown: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let embedded = resource || node.has(Flags::EMBEDDED);
            for (name, value) in object.iter_mut() {
                if embedded && is_meta(name) {
                    continue;
                }
                let here = trail.then(Step::Field(name));
                if let Some(child) = node.property(name) {
                    prune(Some(child), false, value, &here, unknown);
                } else if node.mentions_additional() {
                    prune(node.additional(), false, value, &here, unknown);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.items() else { return };
            for (i, item) in items.iter_mut().enumerate() {
                preserve(child, false, item, &trail.then(Step::Index(i)), unknown);
            }
        }
        _ => {}
    }
}
