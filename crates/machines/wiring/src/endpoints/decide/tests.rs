//! Objects in, slices out.
#![expect(
    clippy::needless_pass_by_value,
    reason = "cases are written where they are used"
)]

use fairway_controller::WorkspaceId;
use serde_json::{Value, json};

use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(&WorkspaceId::root(), "shop", name)
}

fn service(spec: Value) -> Service {
    let mut object = json!({
        "metadata": {"uid": "s", "labels": {"team": "a", "kubernetes.io/service-name": "liar"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    Service::read(&object)
}

/// An instance of the application `web` at 10.88.0.LAST.
fn instance(last: u16, change: impl FnOnce(&mut Instance)) -> (ObjectKey, Instance) {
    let mut instance = Instance {
        uid: format!("u{last}"),
        labels: json!({"app": "web"}),
        address: Some(Ipv4Addr::from(0x0a58_0000 + u32::from(last))),
        node: "n1".into(),
        is_ready: true,
        hostname: format!("vm{last}"),
        ..Instance::default()
    };
    change(&mut instance);
    (key(&format!("vm{last:04}")), instance)
}

fn plan(service: &Service, instances: &[(ObjectKey, Instance)], existing: &[Value]) -> Plan {
    let instances: Vec<_> = instances.iter().map(|(key, it)| (key.clone(), it)).collect();
    let existing: Vec<_> = existing.iter().collect();
    decide(&key("web"), service, &instances, &existing)
}

/// What the server stores.
fn stored(mut slice: Value) -> Value {
    slice["metadata"]["resourceVersion"] = json!("7");
    slice
}

#[test]
fn a_slice_says_who_is_there() {
    let plan = plan(&service(json!({})), &[instance(2, |_| {})], &[]);
    let [slice] = plan.create.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(
        *slice,
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": slice["metadata"]["name"], "namespace": "shop",
                "labels": {
                    "team": "a", "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.machines.fairway.dev",
                },
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "addressType": "IPv4",
            "endpoints": [{
                "addresses": ["10.88.0.2"],
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {
                    "kind": "VirtualMachineInstance", "apiVersion": "kubevirt.io/v1",
                    "namespace": "shop", "name": "vm0002", "uid": "u2",
                },
                "nodeName": "n1",
            }],
            "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        })
    );
    assert!(slice["metadata"]["name"].as_str().unwrap().starts_with("web-vm"));
}

#[test]
fn who_is_an_endpoint() {
    // Why, the instance, and whether it is (ready, serving, terminating).
    type Change = fn(&mut Instance);
    type Case = (&'static str, Value, Change, Option<(bool, bool, bool)>);
    let cases: [Case; 9] = [
        ("it is ready", json!({}), |_| {}, Some((true, true, false))),
        (
            "not ready",
            json!({}),
            |it| it.is_ready = false,
            Some((false, false, false)),
        ),
        (
            "not ready, but published",
            json!({"publishNotReadyAddresses": true}),
            |it| it.is_ready = false,
            Some((true, false, false)),
        ),
        (
            "about to go",
            json!({}),
            |it| it.is_deleting = true,
            Some((false, true, true)),
        ),
        (
            "about to go, but published",
            json!({"publishNotReadyAddresses": true}),
            |it| it.is_deleting = true,
            Some((true, true, true)),
        ),
        ("no address yet", json!({}), |it| it.address = None, None),
        ("it has ended", json!({}), |it| it.is_final = true, None),
        ("not selected", json!({"selector": {"app": "db"}}), |_| {}, None),
        ("nobody is selected", json!({"selector": {}}), |_| {}, None),
    ];
    for (why, spec, change, expected) in cases {
        let plan = plan(&service(spec), &[instance(2, change)], &[]);
        let found = plan.create.first().map(|slice| {
            let conditions = &slice["endpoints"][0]["conditions"];
            let said = |field: &str| conditions[field].as_bool().unwrap();
            (said("ready"), said("serving"), said("terminating"))
        });
        assert_eq!(found, expected, "{why}");
    }
}

#[test]
fn ports_are_those_of_the_machine() {
    let named = |port: u16| {
        move |it: &mut Instance| {
            it.ports = vec![crate::view::NamedPort {
                name: "www".into(),
                protocol: fairway_machines_frames::packet::TCP,
                port,
            }];
        }
    };
    let wanted = service(json!({"ports": [
        {"name": "http", "port": 80, "targetPort": "www", "appProtocol": "http"}, {"name": "ssh", "port": 22},
    ]}));
    let plan = plan(
        &wanted,
        &[
            instance(2, named(8080)),
            instance(3, named(8080)),
            instance(4, named(9090)),
            instance(5, |_| {}),
        ],
        &[],
    );
    let mut found: Vec<(String, usize)> = plan
        .create
        .iter()
        .map(|slice| {
            let ports: Vec<String> = list(slice, "/ports")
                .iter()
                .map(|port| format!("{}={}", port["name"].as_str().unwrap(), port["port"]))
                .collect();
            (ports.join(" "), list(slice, "/endpoints").len())
        })
        .collect();
    found.sort();
    let expected = [("http=8080 ssh=22", 2), ("http=9090 ssh=22", 1), ("ssh=22", 1)];
    assert_eq!(found, expected.map(|(ports, count)| (ports.to_owned(), count)));
}

#[test]
fn a_headless_service_names_its_hosts() {
    let headless = service(json!({"clusterIP": "None", "ports": []}));
    let plan = plan(
        &headless,
        &[
            instance(2, |it| it.subdomain = "web".into()),
            instance(3, |it| it.subdomain = "other".into()),
        ],
        &[],
    );
    let slice = &plan.create[0];
    assert_eq!(slice["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(slice["ports"], json!([]));
    assert_eq!(slice["endpoints"][0]["hostname"], "vm2");
    assert_eq!(slice["endpoints"][1].get("hostname"), None);
}

#[test]
fn nothing_is_written_twice() {
    let (service, instances) = (service(json!({})), [instance(2, |_| {}), instance(3, |_| {})]);
    let first = plan(&service, &instances, &[]);
    let stored = stored(first.create[0].clone());
    assert_eq!(plan(&service, &instances, &[stored]), Plan::default());
}

#[test]
fn a_change_rewrites_one_slice() {
    let service = service(json!({}));
    let many: Vec<_> = (0..150).map(|last| instance(last, |_| {})).collect();
    let first = plan(&service, &many, &[]);
    let sizes = |plan: &Plan| -> Vec<usize> {
        plan.create
            .iter()
            .map(|slice| list(slice, "/endpoints").len())
            .collect()
    };
    assert_eq!(sizes(&first), [100, 50]);
    let existing: Vec<Value> = first.create.into_iter().map(stored).collect();
    assert_ne!(name_of(&existing[0]), name_of(&existing[1]));

    // One leaves the first slice and one comes: the first is filled up, the other is left alone.
    let gone = existing[0]["endpoints"][7]["targetRef"]["name"].as_str().unwrap();
    let mut later: Vec<_> = many.iter().filter(|(key, _)| key.name != gone).cloned().collect();
    later.extend([instance(200, |_| {})]);
    let second = plan(&service, &later, &existing);
    let patched: Vec<_> = second.patch.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(patched, [name_of(&existing[0])]);
    assert!(second.create.is_empty() && second.delete.is_empty());
    assert_eq!(second.patch[0].1["metadata"]["resourceVersion"], "7");
    assert_eq!(list(&second.patch[0].1, "/endpoints").len(), 100);
}

#[test]
fn who_is_left_without_endpoints_keeps_an_empty_slice() {
    let service = service(json!({}));
    let many: Vec<_> = (0..150).map(|last| instance(last, |_| {})).collect();
    let existing: Vec<Value> = plan(&service, &many, &[])
        .create
        .into_iter()
        .map(stored)
        .collect();
    let empty = plan(&service, &[], &existing);
    assert_eq!(
        (empty.create.len(), empty.patch.len(), empty.delete.len()),
        (0, 1, 1)
    );
    let (name, patch) = &empty.patch[0];
    assert_eq!((&patch["endpoints"], &patch["ports"]), (&json!([]), &json!([])));

    // Whoever comes then is written into it.
    let mut left = existing
        .iter()
        .find(|slice| name_of(slice) == name)
        .unwrap()
        .clone();
    left["endpoints"] = json!([]);
    left["ports"] = json!([]);
    assert_eq!(plan(&service, &[], std::slice::from_ref(&left)), Plan::default());
    let again = plan(&service, &many[..1], &[left]);
    assert_eq!(
        (again.create.len(), again.patch.len(), again.delete.len()),
        (0, 1, 0)
    );
    assert_eq!(again.patch[0].1["ports"][0]["port"], 8080);
}

#[test]
fn what_others_wrote_into_a_slice_is_undone() {
    let (service, instances) = (service(json!({})), [instance(2, |_| {})]);
    let good = stored(plan(&service, &instances, &[]).create.remove(0));
    for (pointer, value) in [
        ("/metadata/labels/team", json!("b")),
        ("/metadata/labels/more", json!("x")),
        ("/endpoints/0/conditions/ready", json!(false)),
        ("/metadata/ownerReferences/0/uid", json!("other")),
    ] {
        let mut bad = good.clone();
        match bad.pointer_mut(pointer) {
            Some(found) => *found = value,
            None => bad["metadata"]["labels"]["more"] = value,
        }
        let plan = plan(&service, &instances, &[bad]);
        assert_eq!(plan.patch.len(), 1, "{pointer}");
        if pointer.ends_with("more") {
            assert_eq!(plan.patch[0].1["metadata"]["labels"]["more"], Value::Null);
        }
    }
}

#[test]
fn services_that_are_not_ours_to_complete_are_left_alone() {
    let existing = [stored(
        json!({"metadata": {"name": "x"}, "endpoints": [], "ports": []}),
    )];
    for (why, service) in [
        ("a name", service(json!({"type": "ExternalName"}))),
        ("no selector", service(json!({"selector": null}))),
        (
            "it is being deleted",
            Service {
                is_deleting: true,
                ..service(json!({}))
            },
        ),
    ] {
        assert_eq!(
            plan(&service, &[instance(2, |_| {})], &existing),
            Plan::default(),
            "{why}"
        );
    }
}
