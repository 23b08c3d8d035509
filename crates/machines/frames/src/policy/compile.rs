//! From NetworkPolicy objects to addresses.
//!
//! Selectors are evaluated within the policy's own workspace: a label in another tenant's workspace never selects
//! anything here. What cannot be read (an unknown selector operator, an IPv6 block) selects nobody, so an allowance that
//! is not understood allows nothing; what was not understood is returned, for a condition on the object.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use fairway_kernel_kinds::selector;
use serde_json::Value;

use super::{Block, EndpointPolicy, Peers, Policies, PortMatch, Rule};
use crate::address::Cidr;
use crate::packet::{SCTP, TCP, UDP};
use crate::topology::Tenant;

/// Something with an address and labels that policies may select: a machine.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub tenant: Tenant,
    pub namespace: String,
    /// An object of strings.
    pub labels: Value,
    pub address: Ipv4Addr,
    /// Ports with a name, and their protocol.
    pub ports: Vec<(String, u8, u16)>,
}

/// A namespace and its labels.
#[derive(Debug, Clone)]
pub struct Namespace {
    pub tenant: Tenant,
    pub name: String,
    pub labels: Value,
}

/// A NetworkPolicy object, and where it lies.
#[derive(Debug, Clone)]
pub struct Source {
    pub tenant: Tenant,
    pub namespace: String,
    pub name: String,
    pub spec: Value,
}

/// A part of a policy that has no effect, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    pub tenant: Tenant,
    pub namespace: String,
    pub name: String,
    pub what: String,
}

struct World<'a> {
    endpoints: &'a [Endpoint],
    namespaces: &'a [Namespace],
}

/// Evaluates every policy.
pub fn compile(
    sources: &[Source],
    endpoints: &[Endpoint],
    namespaces: &[Namespace],
) -> (Policies, Vec<Ignored>) {
    let world = World {
        endpoints,
        namespaces,
    };
    let mut by_address: HashMap<Ipv4Addr, EndpointPolicy> = HashMap::new();
    let mut ignored = Vec::new();
    for source in sources {
        let mut reader = Reader {
            source,
            world: &world,
            ignored: &mut ignored,
        };
        let selected = reader.selected();
        if selected.is_empty() {
            continue;
        }
        let (ingress, egress) = reader.directions();
        let ingress = ingress.then(|| reader.rules("ingress", "from", &selected));
        let egress = egress.then(|| reader.rules("egress", "to", &selected));
        for endpoint in selected {
            let policy = by_address.entry(endpoint.address).or_default();
            extend(&mut policy.ingress, ingress.as_deref());
            extend(&mut policy.egress, egress.as_deref());
        }
    }
    let by_address = by_address
        .into_iter()
        .map(|(address, policy)| (address, Arc::new(policy)))
        .collect();
    (Policies::new(by_address), ignored)
}

/// Policies add up: what any of them allows is allowed.
fn extend(rules: &mut Option<Vec<Arc<Rule>>>, more: Option<&[Arc<Rule>]>) {
    if let Some(more) = more {
        rules.get_or_insert_default().extend(more.iter().cloned());
    }
}

struct Reader<'a> {
    source: &'a Source,
    world: &'a World<'a>,
    ignored: &'a mut Vec<Ignored>,
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

impl<'a> Reader<'a> {
    fn ignore(&mut self, what: String) {
        self.ignored.push(Ignored {
            tenant: self.source.tenant,
            namespace: self.source.namespace.clone(),
            name: self.source.name.clone(),
            what,
        });
    }

    /// The endpoints that the policy is about.
    fn selected(&mut self) -> Vec<&'a Endpoint> {
        let all = Value::Null;
        let wanted = self.source.spec.get("podSelector").unwrap_or(&all);
        let source = self.source;
        self.matching(wanted, |endpoint| endpoint.namespace == source.namespace)
    }

    fn matching(&self, labels: &Value, in_place: impl Fn(&Endpoint) -> bool) -> Vec<&'a Endpoint> {
        self.world
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.tenant == self.source.tenant && in_place(endpoint))
            .filter(|endpoint| selector::matches(labels, &endpoint.labels))
            .collect()
    }

    /// Whether the policy isolates for receiving, and for opening.
    fn directions(&self) -> (bool, bool) {
        let spec = &self.source.spec;
        let types = list(spec, "policyTypes");
        if types.is_empty() {
            // Upstream's default: always Ingress, and Egress if there are rules for it.
            return (true, !list(spec, "egress").is_empty());
        }
        let has = |wanted: &str| types.iter().any(|kind| kind == wanted);
        (has("Ingress"), has("Egress"))
    }

    fn rules(&mut self, direction: &str, peers: &str, selected: &[&Endpoint]) -> Vec<Arc<Rule>> {
        let source = self.source;
        let receives = direction == "ingress";
        let mut rules = Vec::new();
        for (index, rule) in list(&source.spec, direction).iter().enumerate() {
            let at = format!("spec.{direction}[{index}]");
            let peers = self.peers(&format!("{at}.{peers}"), list(rule, peers));
            let receivers: Vec<&Endpoint> = if receives {
                selected.to_vec()
            } else {
                self.world
                    .endpoints
                    .iter()
                    .filter(|endpoint| endpoint.tenant == source.tenant)
                    .collect()
            };
            let wanted = list(rule, "ports");
            let ports = self.ports(&at, wanted, &receivers);
            // Ports that were all ignored must not become "every port".
            if wanted.is_empty() || !ports.is_empty() {
                rules.push(Arc::new(Rule { peers, ports }));
            }
        }
        rules
    }

    fn peers(&mut self, at: &str, peers: &[Value]) -> Peers {
        if peers.is_empty() {
            return Peers::Anyone;
        }
        let mut addresses = HashSet::new();
        let mut blocks = Vec::new();
        for (index, peer) in peers.iter().enumerate() {
            if let Some(block) = peer.get("ipBlock").filter(|block| !block.is_null()) {
                match read_block(block) {
                    Some(block) => blocks.push(block),
                    None => self.ignore(format!(
                        "{at}[{index}].ipBlock is not an IPv4 network, so it allows nobody"
                    )),
                }
                continue;
            }
            addresses.extend(
                self.selected_peers(peer)
                    .into_iter()
                    .map(|endpoint| endpoint.address),
            );
        }
        Peers::These { addresses, blocks }
    }

    fn selected_peers(&self, peer: &Value) -> Vec<&'a Endpoint> {
        let present = |field: &str| peer.get(field).filter(|selector| !selector.is_null());
        let everyone = Value::Null;
        match (present("namespaceSelector"), present("podSelector")) {
            (Some(namespaces), labels) => {
                let names: HashSet<&str> = self
                    .world
                    .namespaces
                    .iter()
                    .filter(|namespace| namespace.tenant == self.source.tenant)
                    .filter(|namespace| selector::matches(namespaces, &namespace.labels))
                    .map(|namespace| namespace.name.as_str())
                    .collect();
                self.matching(labels.unwrap_or(&everyone), |endpoint| {
                    names.contains(endpoint.namespace.as_str())
                })
            }
            (None, Some(labels)) => {
                let own = &self.source.namespace;
                self.matching(labels, |endpoint| endpoint.namespace == *own)
            }
            (None, None) => Vec::new(),
        }
    }

    fn ports(&mut self, at: &str, ports: &[Value], receivers: &[&Endpoint]) -> Vec<PortMatch> {
        let mut matches = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            match read_port(port, receivers) {
                Some(port) => matches.push(port),
                None => self.ignore(format!("{at}.ports[{index}] names no port, so it allows nothing")),
            }
        }
        matches
    }
}

fn read_block(block: &Value) -> Option<Block> {
    let network: Cidr = block.get("cidr")?.as_str()?.parse().ok()?;
    let except = list(block, "except")
        .iter()
        .map(|except| except.as_str()?.parse().ok())
        // An exception that cannot be read must not widen what is allowed.
        .collect::<Option<_>>()?;
    Some(Block { network, except })
}

fn read_port(port: &Value, receivers: &[&Endpoint]) -> Option<PortMatch> {
    let protocol = match port.get("protocol").and_then(Value::as_str) {
        None | Some("" | "TCP") => TCP,
        Some("UDP") => UDP,
        Some("SCTP") => SCTP,
        Some(_) => return None,
    };
    let number = |value: &Value| value.as_u64().and_then(|number| u16::try_from(number).ok());
    match port.get("port").filter(|port| !port.is_null()) {
        None => Some(PortMatch::Range {
            protocol,
            first: 0,
            last: u16::MAX,
        }),
        Some(Value::String(name)) => {
            let ports = receivers
                .iter()
                .filter_map(|endpoint| {
                    let named = endpoint
                        .ports
                        .iter()
                        .find(|(own, kind, _)| own == name && *kind == protocol)?;
                    Some((endpoint.address, named.2))
                })
                .collect();
            Some(PortMatch::Named { protocol, ports })
        }
        Some(first) => {
            let first = number(first)?;
            let last = match port.get("endPort").filter(|end| !end.is_null()) {
                Some(end) => number(end).filter(|&last| last >= first)?,
                None => first,
            };
            Some(PortMatch::Range {
                protocol,
                first,
                last,
            })
        }
    }
}

#[cfg(test)]
mod tests;
