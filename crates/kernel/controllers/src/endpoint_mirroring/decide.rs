//! Which slices mirror an Endpoints object.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairway_kernel_kinds::read::{filled, has, list, part, text};
use serde_json::{Map, Value, json};

pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that belong to the original alone.
const NOT_MIRRORED: [&str; 2] = [
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
];
/// Upstream's `--mirroring-max-endpoints-per-subset`.
const MAX_PER_SUBSET: usize = 1_000;
const MAX_NAME: usize = 253;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) create: Vec<Value>,
    pub(super) update: Vec<(String, Value)>,
    pub(super) delete: Vec<String>,
}

/// What a slice is found by: one for each family of addresses and set of ports.
type SliceKey = (&'static str, Vec<Port>);
type Port = (String, i64, String, String);
/// An endpoint by its address and the UID of its target.
type Member = ((IpAddr, String), Value);

/// Compares what there is with what there should be.
pub(super) fn decide(endpoints: Option<&Value>, service: Option<&Value>, existing: &[Value]) -> Plan {
    let mut plan = Plan::default();
    let wanted = match (endpoints, service) {
        (Some(endpoints), Some(service)) if mirrored(endpoints, service) => slices(endpoints),
        _ => BTreeMap::new(),
    };
    let mut found: BTreeMap<SliceKey, Vec<&Value>> = BTreeMap::new();
    for slice in existing {
        found.entry(key_of(slice)).or_default().push(slice);
    }
    for (key, slice) in &wanted {
        match found.remove(key).as_deref() {
            None | Some([]) => plan.create.push(slice.clone()),
            Some([first, rest @ ..]) => {
                plan.delete.extend(rest.iter().map(|slice| name_of(slice)));
                if !same(first, slice) {
                    plan.update.push((name_of(first), updated(first, slice)));
                }
            }
        }
    }
    plan.delete
        .extend(found.values().flatten().map(|slice| name_of(slice)));
    plan
}

fn mirrored(endpoints: &Value, service: &Value) -> bool {
    let metadata = part(endpoints, "metadata");
    text(part(metadata, "labels"), SKIP) != "true"
        && !has(part(metadata, "annotations"), LEADER)
        && text(metadata, "deletionTimestamp").is_empty()
        && !filled(part(service, "spec"), "selector")
}

fn name_of(slice: &Value) -> String {
    text(part(slice, "metadata"), "name").to_owned()
}

fn port_of(port: &Value) -> Port {
    let protocol = Some(text(port, "protocol"))
        .filter(|p| !p.is_empty())
        .unwrap_or("TCP");
    (
        text(port, "name").to_owned(),
        port["port"].as_i64().unwrap_or(0),
        protocol.to_owned(),
        text(port, "appProtocol").to_owned(),
    )
}

fn key_of(slice: &Value) -> SliceKey {
    let family = if text(slice, "addressType") == "IPv6" {
        "IPv6"
    } else {
        "IPv4"
    };
    let mut ports: Vec<Port> = list(slice, "ports").iter().map(port_of).collect();
    ports.sort();
    (family, ports)
}

/// The slices of an Endpoints object. Ports that lead to the same addresses share one, as do subsets with the same ports.
fn slices(endpoints: &Value) -> BTreeMap<SliceKey, Value> {
    // By port: the endpoints behind it, by address.
    let mut by_port: BTreeMap<Option<Port>, BTreeMap<(IpAddr, String), Value>> = BTreeMap::new();
    for subset in list(endpoints, "subsets") {
        let ports: Vec<Option<Port>> = match list(subset, "ports") {
            [] => vec![None],
            ports => ports.iter().map(|port| Some(port_of(port))).collect(),
        };
        for (field, ready) in [("notReadyAddresses", false), ("addresses", true)] {
            for address in list(subset, field) {
                let Ok(ip) = text(address, "ip").parse::<IpAddr>() else {
                    continue;
                };
                let target = text(part(address, "targetRef"), "uid").to_owned();
                for port in &ports {
                    by_port
                        .entry(port.clone())
                        .or_default()
                        .insert((ip, target.clone()), endpoint(address, ip, ready));
                }
            }
        }
    }
    // Ports with the same endpoints come together.
    let mut groups: Vec<(Vec<Port>, Vec<Member>)> = Vec::new();
    for (port, members) in by_port {
        let members: Vec<_> = members.into_iter().collect();
        match groups.iter_mut().find(|(_, others)| *others == members) {
            Some((ports, _)) => ports.extend(port),
            None => groups.push((port.into_iter().collect(), members)),
        }
    }
    let mut slices: BTreeMap<SliceKey, Value> = BTreeMap::new();
    for (ports, members) in groups {
        for ((ip, _), member) in members.into_iter().take(MAX_PER_SUBSET) {
            let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
            let mut key_ports = ports.clone();
            key_ports.sort();
            let slice = slices
                .entry((family, key_ports))
                .or_insert_with(|| empty_slice(endpoints, family, &ports));
            if let Some(endpoints) = slice["endpoints"].as_array_mut() {
                endpoints.push(member);
            }
        }
    }
    slices
}

fn endpoint(address: &Value, ip: IpAddr, ready: bool) -> Value {
    let mut endpoint = json!({"addresses": [ip], "conditions": {"ready": ready}});
    for field in ["targetRef", "nodeName", "hostname"] {
        if has(address, field) {
            endpoint[field] = address[field].clone();
        }
    }
    endpoint
}

fn empty_slice(endpoints: &Value, family: &str, ports: &[Port]) -> Value {
    let metadata = part(endpoints, "metadata");
    let name = text(metadata, "name");
    let mut labels = part(metadata, "labels").as_object().cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.into());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.into());
    let annotations: Map<String, Value> = part(metadata, "annotations")
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !NOT_MIRRORED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let ports: Vec<Value> = ports
        .iter()
        .map(|(name, port, protocol, app)| {
            let mut shown = json!({"name": name, "port": port, "protocol": protocol});
            if !app.is_empty() {
                shown["appProtocol"] = json!(app);
            }
            shown
        })
        .collect();
    let prefix = if name.len() < MAX_NAME {
        format!("{name}-")
    } else {
        name.to_owned()
    };
    let mut own = json!({
        "generateName": prefix, "namespace": text(metadata, "namespace"), "labels": labels,
        "ownerReferences": [{
            "apiVersion": "v1", "kind": "Endpoints", "name": name, "uid": text(metadata, "uid"),
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    if !annotations.is_empty() {
        own["annotations"] = Value::Object(annotations);
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": own,
        "addressType": family, "endpoints": [], "ports": ports,
    })
}

/// Whether a slice says already what it should.
fn same(existing: &Value, wanted: &Value) -> bool {
    let map = |slice: &Value, field: &str| {
        part(part(slice, "metadata"), field)
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    let members = |slice: &Value| {
        let mut members: Vec<String> = list(slice, "endpoints").iter().map(canonical).collect();
        members.sort();
        members
    };
    map(existing, "labels") == map(wanted, "labels")
        && map(existing, "annotations") == map(wanted, "annotations")
        && members(existing) == members(wanted)
}

/// The same text for the same endpoint, whatever the order of its fields.
fn canonical(endpoint: &Value) -> String {
    let sorted: BTreeMap<&String, &Value> = endpoint.as_object().into_iter().flatten().collect();
    let text = |value: &Value| match value.as_object() {
        Some(fields) => format!("{:?}", fields.iter().collect::<BTreeMap<_, _>>()),
        None => value.to_string(),
    };
    sorted
        .iter()
        .map(|(key, value)| format!("{key}={};", text(value)))
        .collect()
}

fn updated(existing: &Value, wanted: &Value) -> Value {
    let mut slice = wanted.clone();
    let own = part(existing, "metadata");
    slice["metadata"]["name"] = own["name"].clone();
    slice["metadata"]["resourceVersion"] = own["resourceVersion"].clone();
    if let Some(metadata) = slice["metadata"].as_object_mut() {
        metadata.shift_remove("generateName");
    }
    slice
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::decide;

    fn endpoints(subsets: &Value) -> Value {
        json!({"metadata": {"name": "db", "namespace": "n", "uid": "u", "labels": {"a": "b"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x", "note": "kept"}}, "subsets": subsets})
    }

    fn service() -> Value {
        json!({"spec": {}})
    }

    /// What the server makes of a slice that is created.
    fn stored(mut slice: Value, name: &str) -> Value {
        slice["metadata"]["name"] = json!(name);
        slice["metadata"]["resourceVersion"] = json!("7");
        slice
    }

    #[test]
    fn a_slice_says_what_the_endpoints_say() {
        let one = endpoints(
            &json!([{"addresses": [{"ip": "10.1.2.3", "hostname": "h"}], "ports": [{"port": 80}]}]),
        );
        let plan = decide(Some(&one), Some(&service()), &[]);
        let [slice] = plan.create.as_slice() else {
            panic!("{plan:?}")
        };
        assert_eq!(
            slice["endpoints"],
            json!([{"addresses": ["10.1.2.3"], "conditions": {"ready": true}, "hostname": "h"}])
        );
        assert_eq!(
            slice["ports"],
            json!([{"name": "", "port": 80, "protocol": "TCP"}])
        );
        assert_eq!(slice["addressType"], "IPv4");
        assert_eq!(slice["metadata"]["generateName"], "db-");
        assert_eq!(slice["metadata"]["annotations"], json!({"note": "kept"}));
        assert_eq!(
            slice["metadata"]["labels"],
            json!({"a": "b", "kubernetes.io/service-name": "db",
                   "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"})
        );
        // Nothing is left to do, then.
        let there = [stored(slice.clone(), "db-abc")];
        assert_eq!(
            decide(Some(&one), Some(&service()), &there),
            super::Plan::default()
        );
        // Another address changes the slice in place.
        let other = endpoints(&json!([{"addresses": [{"ip": "10.2.3.4"}], "ports": [{"port": 80}]}]));
        let plan = decide(Some(&other), Some(&service()), &there);
        assert_eq!((plan.create.len(), plan.delete.len()), (0, 0));
        let (name, slice) = &plan.update[0];
        assert_eq!(
            (name.as_str(), &slice["metadata"]["resourceVersion"]),
            ("db-abc", &json!("7"))
        );
        assert_eq!(slice["endpoints"][0]["addresses"], json!(["10.2.3.4"]));
        // Another port needs another slice.
        let moved = endpoints(&json!([{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 81}]}]));
        let plan = decide(Some(&moved), Some(&service()), &there);
        assert_eq!(
            (plan.create.len(), plan.delete.as_slice()),
            (1, ["db-abc".to_owned()].as_slice())
        );
    }

    #[test]
    fn families_and_sets_of_ports_have_slices_of_their_own() {
        for (name, subsets, want) in [
            ("none", json!([]), vec![]),
            (
                "two families",
                json!([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}]}]),
                vec![("IPv4", 1, 1), ("IPv6", 1, 1)],
            ),
            (
                "the same address behind two ports",
                json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "a", "port": 80}]},
                       {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "b", "port": 81}]}]),
                vec![("IPv4", 2, 1)],
            ),
            (
                "other addresses behind another port",
                json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"name": "a", "port": 80}]},
                       {"notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"name": "b", "port": 81}]}]),
                vec![("IPv4", 1, 1), ("IPv4", 1, 1)],
            ),
        ] {
            let plan = decide(Some(&endpoints(&subsets)), Some(&service()), &[]);
            let shown: Vec<(&str, usize, usize)> = plan
                .create
                .iter()
                .map(|slice| {
                    let count = |field: &str| slice[field].as_array().map_or(0, Vec::len);
                    (
                        slice["addressType"].as_str().unwrap(),
                        count("ports"),
                        count("endpoints"),
                    )
                })
                .collect();
            assert_eq!(shown, want, "{name}");
        }
    }

    #[test]
    fn what_is_not_mirrored_loses_its_slices() {
        let plain = endpoints(&json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]));
        let slice = decide(Some(&plain), Some(&service()), &[]).create.remove(0);
        let there = [stored(slice.clone(), "db-1"), stored(slice, "db-2")];
        let with = |field: &str, value: Value| {
            let mut changed = plain.clone();
            changed["metadata"][field] = value;
            changed
        };
        let skipped = with(
            "labels",
            json!({"endpointslice.kubernetes.io/skip-mirror": "true"}),
        );
        let lock = with(
            "annotations",
            json!({"control-plane.alpha.kubernetes.io/leader": "{}"}),
        );
        let selecting = json!({"spec": {"selector": {"app": "x"}}});
        for (name, endpoints, service, deleted) in [
            ("one too many", Some(&plain), Some(&service()), 1),
            ("no endpoints", None, Some(&service()), 2),
            ("no service", Some(&plain), None, 2),
            ("a service with a selector", Some(&plain), Some(&selecting), 2),
            ("told to skip", Some(&skipped), Some(&service()), 2),
            ("a lock", Some(&lock), Some(&service()), 2),
        ] {
            let plan = decide(endpoints, service, &there);
            assert_eq!((plan.create.len(), plan.delete.len()), (0, deleted), "{name}");
        }
    }
}
