//! NetworkPolicies, evaluated to addresses: what may open a connection to what.
//!
//! [`compile`] turns objects (policies, endpoints with labels, namespaces) into one [`EndpointPolicy`] per address that
//! any policy selects. Who is not selected is not isolated, as in Kubernetes. Judging a connection then compares
//! addresses and ports and knows no label. Answers belong to their connection and are not judged.

pub mod compile;

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::address::Cidr;

/// The compiled policies of all tenants. Addresses are unique across tenants.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    by_address: HashMap<Ipv4Addr, Arc<EndpointPolicy>>,
}

impl Policies {
    pub fn new(by_address: HashMap<Ipv4Addr, Arc<EndpointPolicy>>) -> Self {
        Self { by_address }
    }

    pub fn of(&self, address: Ipv4Addr) -> Option<Arc<EndpointPolicy>> {
        self.by_address.get(&address).cloned()
    }
}

/// What one address may receive and open. `None`: it is not isolated in that direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointPolicy {
    pub ingress: Option<Vec<Arc<Rule>>>,
    pub egress: Option<Vec<Arc<Rule>>>,
}

/// Some peers on some ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub peers: Peers,
    /// Every port of every protocol if there are none.
    pub ports: Vec<PortMatch>,
}

/// Who is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peers {
    Anyone,
    These {
        addresses: HashSet<Ipv4Addr>,
        blocks: Vec<Block>,
    },
}

/// An `ipBlock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub network: Cidr,
    pub except: Vec<Cidr>,
}

impl Block {
    fn contains(&self, address: Ipv4Addr) -> bool {
        self.network.contains(address) && !self.except.iter().any(|except| except.contains(address))
    }
}

/// Which ports are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortMatch {
    Range {
        protocol: u8,
        first: u16,
        last: u16,
    },
    /// A name, which means a port of its own at each receiver.
    Named {
        protocol: u8,
        ports: HashMap<Ipv4Addr, u16>,
    },
}

/// A connection as policies see it: after Services have been resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
}

impl EndpointPolicy {
    /// Whether the endpoint, which is `attempt.to`, may receive this.
    pub fn admits(&self, attempt: &Attempt) -> bool {
        allowed(self.ingress.as_deref(), attempt.from, attempt)
    }

    /// Whether the endpoint, which is `attempt.from`, may open this.
    pub fn lets_out(&self, attempt: &Attempt) -> bool {
        allowed(self.egress.as_deref(), attempt.to, attempt)
    }
}

fn allowed(rules: Option<&[Arc<Rule>]>, peer: Ipv4Addr, attempt: &Attempt) -> bool {
    rules.is_none_or(|rules| {
        rules
            .iter()
            .any(|rule| rule.peers.contains(peer) && rule.means_port(attempt))
    })
}

impl Peers {
    fn contains(&self, address: Ipv4Addr) -> bool {
        match self {
            Self::Anyone => true,
            Self::These { addresses, blocks } => {
                addresses.contains(&address) || blocks.iter().any(|block| block.contains(address))
            }
        }
    }
}

impl Rule {
    fn means_port(&self, attempt: &Attempt) -> bool {
        self.ports.is_empty()
            || self.ports.iter().any(|port| match port {
                PortMatch::Range {
                    protocol,
                    first,
                    last,
                } => *protocol == attempt.protocol && (*first..=*last).contains(&attempt.port),
                PortMatch::Named { protocol, ports } => {
                    *protocol == attempt.protocol && ports.get(&attempt.to) == Some(&attempt.port)
                }
            })
    }
}
