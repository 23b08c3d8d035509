//! What a node may say of Services.

use serde_json::{Value, json};

use super::{check_write, world};

#[test]
fn a_node_tells_of_its_own_ports_alone() {
    let old = json!({
        "metadata": {"name": "web", "namespace": "ns", "resourceVersion": "1"},
        "spec": {"type": "LoadBalancer"},
        "status": {
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]},
            "conditions": [{"type": "fairway.dev/HostPortsOpen.n2", "status": "True"}],
        },
    });
    let condition = |of: &str| json!({"type": of, "status": "False"});
    let conditions = |all: Vec<Value>| ("/status/conditions", json!(all));
    let theirs = || json!({"type": "fairway.dev/HostPortsOpen.n2", "status": "True"});
    for ((pointer, value), expected, why) in [
        (
            conditions(vec![theirs(), condition("fairway.dev/HostPortsOpen.n1")]),
            true,
            "its own ports",
        ),
        (conditions(vec![theirs()]), true, "nothing"),
        (
            conditions(vec![condition("fairway.dev/HostPortsOpen.n2")]),
            false,
            "another node's ports",
        ),
        (conditions(vec![]), false, "what another node said is gone"),
        (
            conditions(vec![theirs(), condition("fairway.dev/HostPortsOpen")]),
            false,
            "a word that is no node's",
        ),
        (
            conditions(vec![theirs(), condition("Ready")]),
            false,
            "any other condition",
        ),
        (
            ("/status/loadBalancer", json!({"ingress": [{"ip": "192.0.2.9"}]})),
            false,
            "an address: connections would go there",
        ),
        (
            ("/spec/type", json!("NodePort")),
            false,
            "what the Service shall be",
        ),
        (
            (
                "/metadata",
                json!({"name": "web", "namespace": "ns", "labels": {"a": "b"}}),
            ),
            false,
            "labels",
        ),
        (
            (
                "/metadata",
                json!({"name": "web", "namespace": "ns", "resourceVersion": "2", "managedFields": [{}]}),
            ),
            true,
            "what the server keeps of every write",
        ),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let checked = check_write("n1", ("", "services"), &new, Some(&old), &world());
        assert_eq!(checked.is_ok(), expected, "{why}: {checked:?}");
    }
}
