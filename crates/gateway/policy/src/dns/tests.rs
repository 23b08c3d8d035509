//! Names of listeners and their addresses.

use serde_json::{Value, json};

use super::*;
use crate::object::Kind;
use crate::tls::ListenerView;

#[test]
fn names_are_published() {
    let listener = |name: &str, hostname: &str, attached_routes| ListenerView {
        name: name.into(),
        hostname: Some(hostname.into()),
        attached_routes,
        ..ListenerView::default()
    };
    let gateway = GatewayView {
        workspace: "root".into(),
        namespace: "infra".into(),
        name: "gw".into(),
        listeners: vec![
            listener("a", "a.example.com", 1),
            listener("b", "*.example.com", 2),
            listener("c", "idle.example.com", 0),
            listener("d", "a.example.com", 1),
        ],
        addresses: vec!["10.0.0.2".into(), "10.0.0.1".into(), "fd00::1".into()],
    };
    let policy = |spec: Value| {
        let mut spec = spec;
        spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"});
        let object = json!({"metadata": {"name": "p", "namespace": "infra"}, "spec": spec});
        Policy::read("root", Kind::DnsPolicy, &object)
    };
    for (spec, addresses, notes) in [
        (json!({}), "10.0.0.1 10.0.0.2 fd00::1", 0),
        (json!({"excludeAddresses": ["10.0.0.2"]}), "10.0.0.1 fd00::1", 0),
        (json!({"excludeAddresses": ["10.0.0.0/8"]}), "fd00::1", 0),
        (
            json!({"excludeAddresses": ["10.0.0.0/99", "x/8", "::/0"]}),
            "10.0.0.1 10.0.0.2",
            0,
        ),
        (
            json!({"healthCheck": {}, "loadBalancing": {"weight": 1}, "providerRefs": [{"name": "aws"}], "delegate": false}),
            "10.0.0.1 10.0.0.2 fd00::1",
            3,
        ),
    ] {
        let decided = decide(&policy(spec.clone()), &[], std::slice::from_ref(&gateway));
        let names: Vec<&str> = decided
            .records
            .iter()
            .map(|record| record.name.as_str())
            .collect();
        assert_eq!(
            names,
            ["a.example.com", "*.example.com"],
            "once each, and only those with routes"
        );
        assert_eq!(decided.records[0].addresses.join(" "), addresses, "{spec}");
        assert_eq!(decided.notes.len(), notes, "{:?}", decided.notes);
        assert_eq!(
            decided.denied,
            ["idle.example.com: no route is attached to listener c"],
            "{spec}"
        );
    }
}
