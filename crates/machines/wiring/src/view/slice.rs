//! EndpointSlices, whoever wrote them.

use std::net::Ipv4Addr;

use serde_json::Value;

use super::{list, port, protocol, text};

/// The label by which a slice names its Service.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What is kept of a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The name of the Service.
    pub(crate) service: String,
    pub(crate) ports: Vec<SlicePort>,
    /// Those with IPv4 addresses.
    pub(crate) endpoints: Vec<SliceEndpoint>,
}

/// A port of every endpoint of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlicePort {
    pub(crate) name: String,
    pub(crate) protocol: u8,
    pub(crate) port: u16,
}

/// Something behind a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SliceEndpoint {
    pub(crate) address: Ipv4Addr,
    /// It takes new connections.
    pub(crate) is_ready: bool,
    /// It would, but is about to go: better than nobody.
    pub(crate) is_leaving: bool,
    pub(crate) hostname: Option<String>,
    pub(crate) node: String,
}

impl Slice {
    /// Reads an object.
    pub(crate) fn read(object: &Value) -> Self {
        let labels = object.pointer("/metadata/labels");
        let service = labels.and_then(|labels| labels.get(SERVICE_NAME)?.as_str());
        let is_ipv4 = text(object, "/addressType") == "IPv4";
        let endpoints = list(object, "/endpoints").iter().filter(|_| is_ipv4);
        Self {
            service: service.unwrap_or_default().to_owned(),
            ports: list(object, "/ports").iter().filter_map(read_port).collect(),
            endpoints: endpoints.flat_map(read_endpoints).collect(),
        }
    }
}

fn read_port(object: &Value) -> Option<SlicePort> {
    Some(SlicePort {
        name: text(object, "/name"),
        protocol: protocol(&text(object, "/protocol"))?,
        port: port(object, "port")?,
    })
}

/// Consumers use the first address of an endpoint, as upstream's do.
fn read_endpoints(object: &Value) -> Option<SliceEndpoint> {
    let said = |field: &str| object["conditions"][field].as_bool();
    // What is not said counts as ready, as upstream's documentation has it.
    let is_ready = said("ready").unwrap_or(true);
    let serves = said("serving").unwrap_or(is_ready);
    Some(SliceEndpoint {
        address: object["addresses"].get(0)?.as_str()?.parse().ok()?,
        is_ready,
        is_leaving: serves && said("terminating").unwrap_or(false),
        hostname: object["hostname"]
            .as_str()
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
        node: text(object, "/nodeName"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_are_ready_unless_they_say_otherwise() {
        for (conditions, is_ready, is_leaving) in [
            (json!({}), true, false),
            (
                json!({"ready": true, "serving": true, "terminating": false}),
                true,
                false,
            ),
            (json!({"ready": false}), false, false),
            (
                json!({"ready": false, "serving": true, "terminating": true}),
                false,
                true,
            ),
            (
                json!({"ready": false, "serving": false, "terminating": true}),
                false,
                false,
            ),
        ] {
            let slice = Slice::read(&json!({
                "metadata": {"labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4",
                "ports": [{"name": "", "port": 80}],
                "endpoints": [{"addresses": ["10.88.0.2", "10.88.0.3"], "conditions": conditions}],
            }));
            let [endpoint] = slice.endpoints.as_slice() else {
                panic!("{slice:?}");
            };
            assert_eq!(
                (endpoint.is_ready, endpoint.is_leaving),
                (is_ready, is_leaving),
                "{conditions}"
            );
            assert_eq!((slice.service.as_str(), slice.ports[0].port), ("web", 80));
        }
    }

    #[test]
    fn other_families_are_passed_over() {
        let slice = Slice::read(&json!({
            "addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}], "ports": [{"port": 80}],
        }));
        assert!(slice.endpoints.is_empty());
    }
}
