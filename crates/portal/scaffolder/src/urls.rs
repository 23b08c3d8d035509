//! Where what a run publishes will be found: host names with the port at which gateways are really reached.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ports::Gateways;

/// Where HTTPS usually is.
pub(crate) const HTTPS: u16 = 443;
const HTTP: u16 = 80;
/// So many addresses are looked at. Manifests are anybody's, and hosts times listeners soon are more than anybody reads.
const MOST: usize = 1_000;
/// The API takes no more of them in a route.
const MOST_PARENTS: usize = 32;

/// The addresses of Routes and HTTPRoutes among manifests, each once. Of a host with HTTPS the plain ones are left out.
pub(crate) fn of(manifests: &[Value], gateways: &dyn Gateways) -> Vec<String> {
    let mut doors: Vec<(&str, &str, u16)> = Vec::new();
    for object in manifests {
        let hosts = match &object["spec"]["host"] {
            Value::String(host) => vec![host.as_str()],
            _ => texts(&object["spec"]["hostnames"]),
        };
        if hosts.is_empty() {
            continue;
        }
        let at = match object["kind"].as_str() {
            Some("Route") => vec![route(object)],
            Some("HTTPRoute") => listeners(object, manifests),
            _ => continue,
        };
        let of_host = |host| at.iter().map(move |(scheme, port)| (host, *scheme, *port));
        let room = MOST.saturating_sub(doors.len());
        doors.extend(hosts.into_iter().flat_map(of_host).take(room));
    }
    let safe = doors.iter().filter(|(_, scheme, _)| *scheme == "https");
    let safe: BTreeSet<&str> = safe.map(|(host, ..)| *host).collect();
    let mut found: Vec<String> = Vec::new();
    for (host, scheme, port) in &doors {
        if *scheme == "http" && safe.contains(host) {
            continue;
        }
        let url = match (*scheme, gateways.port(*port)) {
            ("https", HTTPS) | ("http", HTTP) => format!("{scheme}://{host}"),
            (scheme, port) => format!("{scheme}://{host}:{port}"),
        };
        if !found.contains(&url) {
            found.push(url);
        }
    }
    found
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Without `tls` a Route is plain HTTP.
fn route(object: &Value) -> (&'static str, u16) {
    match object["spec"]["tls"].is_object() {
        true => ("https", HTTPS),
        false => ("http", HTTP),
    }
}

/// The listeners that an HTTPRoute names. Of a Gateway that is not among the manifests nothing is known.
fn listeners(object: &Value, manifests: &[Value]) -> Vec<(&'static str, u16)> {
    let parents = object["spec"]["parentRefs"].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for parent in parents.take(MOST_PARENTS) {
        let namespace = match &parent["namespace"] {
            Value::Null => &object["metadata"]["namespace"],
            named => named,
        };
        let gateway = manifests.iter().find(|it| {
            it["kind"] == "Gateway"
                && it["metadata"]["name"] == parent["name"]
                && it["metadata"]["namespace"] == *namespace
        });
        let listeners = gateway.and_then(|it| it["spec"]["listeners"].as_array());
        for listener in listeners.into_iter().flatten().take(MOST) {
            let is_meant = |field: &str, own: &str| parent[field].is_null() || parent[field] == listener[own];
            let port = listener["port"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok());
            let scheme = match listener["protocol"].as_str() {
                Some("HTTPS" | "TLS") => "https",
                Some("HTTP") => "http",
                _ => continue,
            };
            let door = port.map(|port| (scheme, port));
            found.extend(door.filter(|_| is_meant("sectionName", "name") && is_meant("port", "port")));
        }
    }
    match found.is_empty() {
        true => vec![("https", HTTPS)],
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Ports(u16);

    impl Gateways for Ports {
        fn domain(&self) -> &'static str {
            "apps.example"
        }

        fn port(&self, wanted: u16) -> u16 {
            match wanted < 1024 {
                true => wanted + self.0,
                false => wanted,
            }
        }
    }

    #[test]
    fn what_is_published_is_found_by_its_hosts_and_ports() {
        let route = |spec: Value| json!({"kind": "Route", "spec": spec});
        let http = |parent: Value| {
            json!({
                "kind": "HTTPRoute", "metadata": {"namespace": "n"},
                "spec": {"hostnames": ["a.example", "b.example"], "parentRefs": [parent]},
            })
        };
        let gateway = || {
            json!({"kind": "Gateway", "metadata": {"name": "g", "namespace": "n"}, "spec": {"listeners": [
                {"name": "plain", "protocol": "HTTP", "port": 80}, {"name": "tls", "protocol": "HTTPS", "port": 443},
                {"name": "high", "protocol": "HTTPS", "port": 9443},
            ]}})
        };
        for (manifests, moved, expected, why) in [
            (
                vec![json!({"kind": "Service", "spec": {}})],
                0,
                vec![],
                "nothing is published",
            ),
            (
                vec![route(json!({"host": "a.example", "tls": {}}))],
                0,
                vec!["https://a.example"],
                "TLS",
            ),
            (
                vec![route(json!({"host": "a.example", "tls": {}}))],
                8000,
                vec!["https://a.example:8443"],
                "no privilege",
            ),
            (
                vec![route(json!({"host": "a.example"}))],
                0,
                vec!["http://a.example"],
                "no TLS",
            ),
            (
                vec![route(json!({"host": "a.example"}))],
                8000,
                vec!["http://a.example:8080"],
                "neither",
            ),
            (
                vec![http(json!({"name": "elsewhere"}))],
                8000,
                vec!["https://a.example:8443", "https://b.example:8443"],
                "a Gateway that is there already",
            ),
            (
                vec![gateway(), http(json!({"name": "g", "sectionName": "plain"}))],
                8000,
                vec!["http://a.example:8080", "http://b.example:8080"],
                "a listener by name",
            ),
            (
                vec![gateway(), http(json!({"name": "g", "port": 9443}))],
                8000,
                vec!["https://a.example:9443", "https://b.example:9443"],
                "a listener by port",
            ),
            (
                vec![
                    gateway(),
                    http(json!({"name": "g"})),
                    route(json!({"host": "a.example", "tls": {}})),
                ],
                0,
                vec![
                    "https://a.example",
                    "https://a.example:9443",
                    "https://b.example",
                    "https://b.example:9443",
                ],
                "all with TLS, and each once",
            ),
            (
                vec![
                    http(json!({"name": "g", "sectionName": "plain"})),
                    gateway(),
                    route(json!({"host": "a.example", "tls": {}})),
                ],
                8000,
                vec!["http://b.example:8080", "https://a.example:8443"],
                "a Route gives one of the hosts TLS",
            ),
        ] {
            assert_eq!(of(&manifests, &Ports(moved)), expected, "{why}");
        }
    }
}
