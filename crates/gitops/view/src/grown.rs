//! The tree of an Application's resources, out of what the engine says of them.

use std::collections::HashMap;

use serde_json::Value;

use crate::field::{list, text};
use crate::resource::{Node, ResourceState, states};

/// Owners of owners are followed so far.
const MAX_DEPTH: usize = 16;

/// The resources of an Application with what they own, as an `ApplicationTree` has it.
pub fn grown(application: &Value, tree: &Value) -> Vec<Node> {
    let nodes = list(tree, "/nodes");
    let mut below: HashMap<&str, Vec<&Value>> = HashMap::new();
    for node in nodes {
        for parent in list(node, "/parentRefs") {
            below.entry(text(parent, "/uid")).or_default().push(node);
        }
    }
    let root = |state: ResourceState| {
        let is_meant = |node: &&Value| {
            list(node, "/parentRefs").is_empty()
                && text(node, "/group") == state.group
                && text(node, "/kind") == state.kind
                && text(node, "/namespace") == state.namespace
                && text(node, "/name") == state.name
        };
        let live = nodes.iter().find(is_meant);
        Node {
            created: live
                .map(|it| text(it, "/createdAt").to_owned())
                .unwrap_or_default(),
            children: live.map(|it| children(&below, it, 0)).unwrap_or_default(),
            state,
        }
    };
    states(application, &[]).into_iter().map(root).collect()
}

fn children(below: &HashMap<&str, Vec<&Value>>, owner: &Value, depth: usize) -> Vec<Node> {
    let uid = text(owner, "/uid");
    if depth > MAX_DEPTH || uid.is_empty() {
        return Vec::new();
    }
    let node = |it: &&Value| Node {
        state: ResourceState {
            group: text(it, "/group").to_owned(),
            kind: text(it, "/kind").to_owned(),
            namespace: text(it, "/namespace").to_owned(),
            name: text(it, "/name").to_owned(),
            health: text(it, "/health/status").to_owned(),
            message: text(it, "/health/message").to_owned(),
            ..ResourceState::default()
        },
        created: text(it, "/createdAt").to_owned(),
        children: children(below, it, depth + 1),
    };
    below.get(uid).into_iter().flatten().map(node).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn children_are_below_their_owners() {
        let application = json!({"status": {"resources": [
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "Synced"},
            {"kind": "ConfigMap", "namespace": "shop", "name": "web"},
        ]}});
        let tree = json!({"nodes": [
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "1", "createdAt": "x"},
            {"kind": "ConfigMap", "namespace": "shop", "name": "web", "uid": "9"},
            {"group": "apps", "kind": "ReplicaSet", "namespace": "shop", "name": "web-1", "uid": "2", "parentRefs": [{"uid": "1"}]},
            {"kind": "Pod", "namespace": "shop", "name": "web-1-a", "uid": "3", "parentRefs": [{"uid": "2"}],
                "health": {"status": "Degraded", "message": "it crashed"}},
            // Somebody who owns himself.
            {"kind": "Pod", "namespace": "shop", "name": "odd", "uid": "4", "parentRefs": [{"uid": "4"}]},
        ]});
        let found = grown(&application, &tree);
        let deployment = found.iter().find(|it| it.state.kind == "Deployment").unwrap();
        assert_eq!(deployment.created, "x");
        let pod = &deployment.children[0].children[0];
        assert_eq!(
            (pod.state.name.as_str(), pod.state.health.as_str()),
            ("web-1-a", "Degraded")
        );
        assert!(
            found
                .iter()
                .find(|it| it.state.kind == "ConfigMap")
                .unwrap()
                .children
                .is_empty()
        );
        assert!(
            grown(&application, &json!({}))
                .iter()
                .all(|it| it.children.is_empty())
        );
    }
}
