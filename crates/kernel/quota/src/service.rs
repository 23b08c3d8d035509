//! What Services use: numbers, node ports, load balancers.

use fairway_kernel_kinds::quantity::Quantity;
use fairway_kernel_kinds::read::{int, list, part, text};
use serde_json::Value;

use crate::Amounts;

const COUNT: &str = "count/services";
const SERVICES: &str = "services";
const NODE_PORTS: &str = "services.nodeports";
const LOAD_BALANCERS: &str = "services.loadbalancers";

pub(crate) fn measures(name: &str) -> bool {
    matches!(name, COUNT | SERVICES | NODE_PORTS | LOAD_BALANCERS)
}

/// Node ports are counted by intent: they may not have been allocated yet.
pub(crate) fn usage(service: &Value) -> Amounts {
    let spec = part(service, "spec");
    let ports = list(spec, "ports");
    let kind = text(spec, "type");
    let node_ports = match kind {
        "NodePort" => ports.len(),
        "LoadBalancer" if part(spec, "allocateLoadBalancerNodePorts").as_bool() == Some(false) => ports
            .iter()
            .filter(|port| int(port, "nodePort").unwrap_or(0) != 0)
            .count(),
        "LoadBalancer" => ports.len(),
        _ => 0,
    };
    let number = |count: usize| Quantity::from_int(i64::try_from(count).unwrap_or(i64::MAX));
    let mut used = Amounts::default();
    used.one(COUNT);
    used.one(SERVICES);
    used.set(NODE_PORTS, number(node_ports));
    used.set(LOAD_BALANCERS, number(usize::from(kind == "LoadBalancer")));
    used
}
