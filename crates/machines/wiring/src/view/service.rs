//! Services.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use fairway_machines_frames::address::Cidr;
use serde_json::{Value, json};

use super::{flag, list, port, protocol, text};

/// How a Service is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ServiceType {
    #[default]
    ClusterIp,
    NodePort,
    LoadBalancer,
    ExternalName,
}

/// What is kept of a Service.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Service {
    pub(crate) uid: String,
    pub(crate) created: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) is_deleting: bool,
    pub(crate) kind: ServiceType,
    /// `clusterIP: None`.
    pub(crate) is_headless: bool,
    pub(crate) cluster_ip: Option<Ipv4Addr>,
    pub(crate) external_ips: Vec<Ipv4Addr>,
    pub(crate) external_name: String,
    /// As a selector with `matchLabels`; none if the Service selects nothing.
    pub(crate) selector: Option<Value>,
    pub(crate) ports: Vec<ServicePort>,
    pub(crate) publishes_not_ready: bool,
    /// `sessionAffinity: ClientIP`.
    pub(crate) by_client: bool,
    /// `externalTrafficPolicy: Local`: what comes from outside goes to machines of the same node.
    pub(crate) external_is_local: bool,
    /// `internalTrafficPolicy: Local`.
    pub(crate) internal_is_local: bool,
    pub(crate) balancer: Balancer,
    /// What its conditions say about ports of hosts, by the name of the node.
    pub(crate) ports_are_open: BTreeMap<String, bool>,
}

/// The condition that tells whether ports of a host are open; the name of the node follows. Every node has one of its own, so that they do
/// not contradict each other, and may write no other.
pub(crate) const HOST_PORTS: &str = "fairway.dev/HostPortsOpen.";

/// What a Service says about its load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Balancer {
    pub(crate) class: Option<String>,
    /// The address that was asked for.
    pub(crate) wanted: String,
    /// The pool that was asked for.
    pub(crate) pool: String,
    /// Services with the same word may have the same address.
    pub(crate) shares: String,
    /// Who may come; everybody if nobody is named.
    pub(crate) sources: Vec<String>,
    /// Addresses that it has.
    pub(crate) addresses: Vec<Ipv4Addr>,
}

impl Balancer {
    /// The networks that may come. What cannot be read lets nobody in.
    pub(crate) fn allowed(&self) -> Option<Vec<Cidr>> {
        let read = |text: &String| text.trim().parse().ok();
        (!self.sources.is_empty()).then(|| self.sources.iter().filter_map(read).collect())
    }
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) protocol: u8,
    pub(crate) port: u16,
    pub(crate) target: PortTarget,
    pub(crate) node_port: Option<u16>,
    pub(crate) app_protocol: Option<String>,
}

/// The port of a machine behind a port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PortTarget {
    Number(u16),
    Name(String),
}

impl Service {
    /// Reads an object.
    pub(crate) fn read(object: &Value) -> Self {
        let addresses = |pointer: &str| {
            let texts = list(object, pointer).iter().filter_map(Value::as_str);
            texts
                .filter_map(|text| text.parse().ok())
                .collect::<Vec<Ipv4Addr>>()
        };
        let cluster_ip = text(object, "/spec/clusterIP");
        let selector = object.pointer("/spec/selector").and_then(Value::as_object);
        let selector = selector
            .filter(|selector| !selector.is_empty())
            .map(|selector| json!({ "matchLabels": selector }));
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        Self {
            uid: text(object, "/metadata/uid"),
            created: text(object, "/metadata/creationTimestamp"),
            labels: labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            is_deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
            kind: match text(object, "/spec/type").as_str() {
                "NodePort" => ServiceType::NodePort,
                "LoadBalancer" => ServiceType::LoadBalancer,
                "ExternalName" => ServiceType::ExternalName,
                _ => ServiceType::ClusterIp,
            },
            is_headless: cluster_ip == "None",
            cluster_ip: addresses("/spec/clusterIPs")
                .first()
                .copied()
                .or_else(|| cluster_ip.parse().ok()),
            external_ips: addresses("/spec/externalIPs"),
            external_name: text(object, "/spec/externalName"),
            selector,
            ports: list(object, "/spec/ports").iter().filter_map(read_port).collect(),
            publishes_not_ready: flag(object, "/spec/publishNotReadyAddresses"),
            by_client: text(object, "/spec/sessionAffinity") == "ClientIP",
            external_is_local: text(object, "/spec/externalTrafficPolicy") == "Local",
            internal_is_local: text(object, "/spec/internalTrafficPolicy") == "Local",
            ports_are_open: list(object, "/status/conditions")
                .iter()
                .filter_map(|condition| {
                    let node = condition["type"].as_str()?.strip_prefix(HOST_PORTS)?;
                    Some((node.to_owned(), condition["status"] == "True"))
                })
                .collect(),
            balancer: Balancer {
                class: object
                    .pointer("/spec/loadBalancerClass")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                wanted: Some(text(object, "/spec/loadBalancerIP"))
                    .filter(|wanted| !wanted.is_empty())
                    .unwrap_or_else(|| annotation(object, "loadBalancerIPs")),
                pool: annotation(object, "address-pool"),
                shares: annotation(object, "allow-shared-ip"),
                sources: list(object, "/spec/loadBalancerSourceRanges")
                    .iter()
                    .filter_map(|range| range.as_str().map(str::to_owned))
                    .collect(),
                addresses: list(object, "/status/loadBalancer/ingress")
                    .iter()
                    .filter_map(|ingress| ingress["ip"].as_str()?.parse().ok())
                    .collect(),
            },
        }
    }

    /// Whether its name leads elsewhere.
    pub(crate) fn is_external_name(&self) -> bool {
        self.kind == ServiceType::ExternalName
    }

    /// Whether it has ports of the host.
    pub(crate) fn has_host_ports(&self) -> bool {
        matches!(self.kind, ServiceType::NodePort | ServiceType::LoadBalancer)
    }
}

/// What an annotation of MetalLB says, under its present or its former name.
fn annotation(object: &Value, name: &str) -> String {
    let all = object.pointer("/metadata/annotations");
    let said = |prefix: &str| all?.get(format!("{prefix}/{name}"))?.as_str();
    let found = said("metallb.io").or_else(|| said("metallb.universe.tf"));
    found.unwrap_or_default().to_owned()
}

fn read_port(object: &Value) -> Option<ServicePort> {
    let own = port(object, "port")?;
    let target = match object.get("targetPort") {
        Some(Value::String(name)) if !name.is_empty() => PortTarget::Name(name.clone()),
        Some(Value::Number(_)) => PortTarget::Number(port(object, "targetPort").unwrap_or(own)),
        _ => PortTarget::Number(own),
    };
    Some(ServicePort {
        name: text(object, "/name"),
        protocol: protocol(&text(object, "/protocol"))?,
        port: own,
        target,
        node_port: port(object, "nodePort"),
        app_protocol: object
            .get("appProtocol")
            .and_then(Value::as_str)
            .map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use fairway_machines_frames::packet::{TCP, UDP};

    use super::*;

    #[test]
    fn a_service_is_what_decisions_need() {
        let found = Service::read(&json!({
            "metadata": {"uid": "u", "labels": {"a": "b"}},
            "spec": {
                "type": "LoadBalancer", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"],
                "externalIPs": ["192.0.2.1", "::1"], "selector": {"app": "web"},
                "externalTrafficPolicy": "Local", "sessionAffinity": "ClientIP",
                "loadBalancerSourceRanges": ["192.0.2.0/24", "nonsense"],
                "ports": [
                    {"name": "http", "port": 80, "targetPort": "web", "nodePort": 30080, "appProtocol": "http"},
                    {"port": 53, "protocol": "UDP"}, {"port": 0}, {"port": 7, "protocol": "DCCP"},
                ],
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}, {"hostname": "x"}]}},
        }));
        assert_eq!(found.kind, ServiceType::LoadBalancer);
        assert_eq!(found.cluster_ip, Some(Ipv4Addr::new(10, 96, 0, 7)));
        assert_eq!(found.external_ips, [Ipv4Addr::new(192, 0, 2, 1)]);
        assert_eq!(found.selector, Some(json!({"matchLabels": {"app": "web"}})));
        assert!(found.by_client && found.external_is_local && !found.internal_is_local && !found.is_headless);
        let ports: Vec<_> = found
            .ports
            .iter()
            .map(|it| (it.protocol, it.port, &it.target))
            .collect();
        assert_eq!(
            ports,
            [
                (TCP, 80, &PortTarget::Name("web".into())),
                (UDP, 53, &PortTarget::Number(53))
            ]
        );
        assert_eq!(found.balancer.addresses, [Ipv4Addr::new(192, 0, 2, 9)]);
        assert_eq!(
            found.balancer.allowed(),
            Some(vec!["192.0.2.0/24".parse().unwrap()]),
            "what cannot be read lets nobody in"
        );
    }

    #[test]
    fn a_service_may_have_neither_address_nor_selector() {
        let found =
            Service::read(&json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"], "selector": {}}}));
        assert!(found.is_headless);
        assert_eq!((found.cluster_ip, found.selector), (None, None));
        assert_eq!(found.balancer.allowed(), None);
    }
}
