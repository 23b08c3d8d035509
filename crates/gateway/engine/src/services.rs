//! What a Gateway is as a Service: OpenShift's Routes and other parts of a cluster lead to Services, not to Gateways. Pure.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairway_api::gateway::GATEWAY;
use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_gateway_routes::observed::Kind;
use fairway_gateway_routes::settings::Binding;
use fairway_gateway_routes::status::{Says, Status};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::bindings::Bindings;
use crate::kinds::{ENDPOINT_SLICE, SERVICE, api_version};
use crate::settings::Settings;
use crate::world::Seen;

/// Upstream's label for what is made for a Gateway.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
const GATEWAY_CLASS_NAME: &str = "gateway.networking.k8s.io/gateway-class-name";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "fairway-gateway";
/// The longest name of a Service.
const LONGEST: usize = 63;
/// Bytes of a digest that tell names apart.
const PRINT: usize = 4;

/// The Service of a Gateway, with the slice that leads to its listeners.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GatewayService {
    pub(crate) key: ObjectKey,
    pub(crate) service: Value,
    pub(crate) slice: Value,
}

/// Whether an object is one of them.
pub(crate) fn is_own(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels");
    labels.is_some_and(|labels| labels[MANAGED_BY] == MANAGER && labels.get(GATEWAY_NAME).is_some())
}

/// The Services of all Gateways that are served. Of two Gateways with one name for it the first has the Service.
pub(crate) fn wanted(
    seen: &Seen,
    statuses: &[Arc<Status>],
    bindings: &Bindings,
    settings: &Settings,
) -> Vec<GatewayService> {
    let mut found: Vec<GatewayService> = Vec::new();
    for status in statuses {
        let Says::Gateway { addresses, .. } = &status.says else {
            continue;
        };
        let Ok(workspace) = WorkspaceId::parse(&status.workspace) else {
            continue;
        };
        let held = seen.observed.workspaces.get(&status.workspace);
        let Some(gateway) = held.and_then(|held| held.gateways.get(&status.name)) else {
            continue;
        };
        let Some(spec) = gateway.known() else { continue };
        let key = ObjectKey::new(&workspace, &status.name.namespace, &status.name.name);
        let Some(current) = seen.current.get(&(Kind::Gateway, key.clone())) else {
            continue;
        };
        let address = addresses
            .iter()
            .find_map(|(_, value)| value.parse::<IpAddr>().ok());
        let (Some(address), false) = (address, spec.listeners.is_empty()) else {
            continue;
        };
        // Listeners may share a port.
        let mut ports: BTreeMap<u16, (&str, u16)> = BTreeMap::new();
        for listener in &spec.listeners {
            let bound = match bindings.get(&SocketAddr::new(address, listener.port)) {
                Some(Binding::Port(port)) => *port,
                _ => listener.port,
            };
            ports.entry(listener.port).or_insert((&listener.name, bound));
        }
        let made = service(
            &key,
            &spec.class,
            &current.uid,
            &current.infrastructure,
            (address, settings),
            &ports,
        );
        // Gateway `a` of class `b-c` and `a-b` of class `c`: two owners would write over each other for ever.
        if !found.iter().any(|other| other.key == made.key) {
            found.push(made);
        }
    }
    found
}

fn service(
    gateway: &ObjectKey,
    class: &str,
    uid: &str,
    infrastructure: &Value,
    (address, settings): (IpAddr, &Settings),
    ports: &BTreeMap<u16, (&str, u16)>,
) -> GatewayService {
    let name = service_name(&gateway.name, class);
    let mut labels = asked_for(infrastructure, "labels");
    for (label, value) in [
        (GATEWAY_NAME, gateway.name.as_str()),
        (GATEWAY_CLASS_NAME, class),
        (MANAGED_BY, MANAGER),
    ] {
        labels.insert(label.to_owned(), value.into());
    }
    let metadata = |labels: Map<String, Value>| {
        let mut metadata = json!({
            "name": name, "namespace": gateway.namespace, "labels": labels,
            "ownerReferences": [{
                "apiVersion": GATEWAY.api_version(), "kind": GATEWAY.kind, "name": gateway.name, "uid": uid,
                "controller": true,
            }],
        });
        let annotations = asked_for(infrastructure, "annotations");
        if !annotations.is_empty() {
            metadata["annotations"] = annotations.into();
        }
        metadata
    };
    let of_service = ports.iter().map(|(port, (name, bound))| {
        json!({"name": port_name(name, *port), "port": port, "protocol": "TCP", "targetPort": bound})
    });
    let of_slice = ports.iter().map(
        |(port, (name, bound))| json!({"name": port_name(name, *port), "port": bound, "protocol": "TCP"}),
    );
    let service = json!({
        "apiVersion": api_version(&SERVICE), "kind": SERVICE.kind,
        "metadata": metadata(labels.clone()),
        "spec": {"type": "ClusterIP", "ports": of_service.collect::<Vec<_>>()},
    });
    labels.insert("kubernetes.io/service-name".to_owned(), name.clone().into());
    labels.insert(SLICE_MANAGED_BY.to_owned(), MANAGER.into());
    // Kubernetes lets no endpoint have an address of the loopback, which a laptop's Gateways have: the name that leads there
    // stands in for it.
    let (family, target) = match address {
        IpAddr::V4(ip) if !ip.is_loopback() => ("IPv4", ip.to_string()),
        IpAddr::V6(ip) if !ip.is_loopback() => ("IPv6", ip.to_string()),
        _ => ("FQDN", format!("gateway.{}", settings.domain)),
    };
    let slice = json!({
        "apiVersion": api_version(&ENDPOINT_SLICE), "kind": ENDPOINT_SLICE.kind,
        "metadata": metadata(labels),
        "addressType": family,
        "endpoints": [{"addresses": [target], "conditions": {"ready": true}}],
        "ports": of_slice.collect::<Vec<_>>(),
    });
    GatewayService {
        key: ObjectKey::new(&gateway.workspace, &gateway.namespace, &name),
        service,
        slice,
    }
}

/// `<gateway>-<class>`, as people expect it. Where that is no name of a Service it is bent into one; so that two that are bent
/// alike stay two, such a name ends with a print of what it came from.
fn service_name(gateway: &str, class: &str) -> String {
    let whole = format!("{gateway}-{class}");
    if whole.len() <= LONGEST && !whole.contains('.') {
        return whole;
    }
    let digest = Sha256::digest(whole.as_bytes());
    let print: String = digest
        .iter()
        .take(PRINT)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut name = whole.replace('.', "-");
    name.truncate(LONGEST - print.len() - 1);
    format!("{}-{print}", name.trim_end_matches('-'))
}

/// Labels or annotations that a Gateway wants on what is made for it.
fn asked_for(infrastructure: &Value, what: &str) -> Map<String, Value> {
    infrastructure[what].as_object().cloned().unwrap_or_default()
}

/// Names of ports are labels of DNS; those of listeners may be longer.
fn port_name(listener: &str, port: u16) -> String {
    let is_label = listener.len() <= LONGEST && !listener.contains('.');
    match is_label {
        true => listener.to_owned(),
        false => format!("port-{port}"),
    }
}

/// What has to be changed on an object that is there: fields that are not asked for are left alone.
pub(crate) fn correction(there: &Value, wanted: &Value) -> Option<Value> {
    let mut patch = Map::new();
    for (field, value) in wanted.as_object().into_iter().flatten() {
        if matches!(field.as_str(), "apiVersion" | "kind" | "addressType") {
            continue;
        }
        if let Some(part) = lacking(there.get(field).unwrap_or(&Value::Null), value) {
            patch.insert(field.clone(), part);
        }
    }
    if patch.is_empty() {
        return None;
    }
    let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
    metadata["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
    Some(Value::Object(patch))
}

fn lacking(there: &Value, wanted: &Value) -> Option<Value> {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            let mut patch = Map::new();
            for (field, value) in wanted {
                if let Some(part) = lacking(there.get(field).unwrap_or(&Value::Null), value) {
                    patch.insert(field.clone(), part);
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        // Elements have defaults that nobody asked for.
        (Value::Array(there), Value::Array(wanted)) if there.len() == wanted.len() => {
            let same = there
                .iter()
                .zip(wanted)
                .all(|(there, wanted)| lacking(there, wanted).is_none());
            (!same).then(|| wanted.clone().into())
        }
        _ => (there != wanted).then(|| wanted.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(address: [u8; 4], name: &str) -> GatewayService {
        service(
            &ObjectKey::new(&WorkspaceId::root(), "n", name),
            "istio",
            "u1",
            &json!({"labels": {"team": "a"}}),
            (IpAddr::from(address), &Settings::default()),
            &[(80, ("http", 8080))].into(),
        )
    }

    #[test]
    fn a_gateway_is_a_service() {
        let made = made([192, 0, 2, 7], "web");
        assert_eq!(made.key.name, "web-istio");
        assert!(is_own(&made.service) && is_own(&made.slice));
        assert_eq!(made.service["metadata"]["labels"]["team"], "a");
        assert_eq!(
            made.service["spec"]["ports"][0],
            json!({"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080})
        );
        assert_eq!(made.slice["endpoints"][0]["addresses"][0], "192.0.2.7");
        assert_eq!(made.slice["ports"][0]["port"], 8080);
    }

    #[test]
    fn loopback_is_told_by_name() {
        let made = made([127, 0, 0, 1], "web");
        assert_eq!(made.slice["addressType"], "FQDN");
        assert_eq!(
            made.slice["endpoints"][0]["addresses"][0],
            "gateway.apps.fairway.localhost"
        );
    }

    #[test]
    fn names_fit_and_stay_apart() {
        let long = "a".repeat(70);
        for (gateway, expected, reason) in [
            ("web", "web-istio", "as it is"),
            ("web.shop", "web-shop-istio-", "a dot is none of a Service"),
            (long.as_str(), &format!("{}-", "a".repeat(54)), "too long"),
        ] {
            let name = service_name(gateway, "istio");
            assert!(name.starts_with(expected), "{reason}: {name}");
            assert!(name.len() <= LONGEST && !name.contains('.'), "{reason}: {name}");
        }
        for (one, other) in [
            ("web.shop", "web-shop"),
            (&*format!("{long}b"), &*format!("{long}c")),
        ] {
            assert_ne!(service_name(one, "istio"), service_name(other, "istio"));
        }
    }

    #[test]
    fn one_service_has_one_gateway() {
        let world = crate::world::World::new(&fairway_controller::Reach::Every);
        let workspace = WorkspaceId::root();
        let statuses = [("a", "b-istio"), ("a-b", "istio")].map(|(name, class)| {
            let mut gateway = json!({
                "metadata": {"namespace": "n", "name": name, "uid": name},
                "spec": {"gatewayClassName": class, "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
            });
            world.put(Kind::Gateway, ObjectKey::new(&workspace, "n", name), &mut gateway);
            Arc::new(Status {
                workspace: workspace.as_str().to_owned(),
                kind: Kind::Gateway,
                name: fairway_gateway_routes::observed::Name::new("n", name),
                says: Says::Gateway {
                    addresses: vec![("IPAddress".to_owned(), "192.0.2.7".to_owned())],
                    conditions: Vec::new(),
                    listeners: Vec::new(),
                },
            })
        });
        let seen = world.seen();
        let found = wanted(&seen, &statuses, &Bindings::new(), &Settings::default());
        let owners: Vec<&Value> = (found.iter())
            .map(|it| &it.service["metadata"]["ownerReferences"][0]["name"])
            .collect();
        assert_eq!(owners, [&json!("a")]);
    }

    #[test]
    fn only_what_differs_is_corrected() {
        let wanted = made([192, 0, 2, 7], "web").service;
        let mut there = wanted.clone();
        there["metadata"]["resourceVersion"] = json!("7");
        there["spec"]["clusterIP"] = json!("10.96.0.9");
        there["spec"]["ports"][0]["nodePort"] = json!(0);
        assert_eq!(correction(&there, &wanted), None, "what others add is left alone");
        there["spec"]["ports"][0]["targetPort"] = json!(1);
        let patch = correction(&there, &wanted).unwrap();
        assert_eq!(patch["metadata"], json!({"resourceVersion": "7"}));
        assert_eq!(patch["spec"], json!({"ports": wanted["spec"]["ports"]}));
    }
}
