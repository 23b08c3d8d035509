//! Connections that the node itself opens to guests: for NodePorts, gateways, probes and consoles.

use std::net::Ipv4Addr;

use super::{Reason, Switch};
use crate::address::Mac;
use crate::policy::Attempt;
use crate::service::Found;
use crate::topology::{PortId, Tenant};
use crate::track::{Hop, Opener, Opening, Slot, Tuple};

/// The first port that the gateway speaks from; below are the ports of services.
const EPHEMERAL: u16 = 32_768;

/// A connection that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeConnection {
    pub slot: Slot,
    /// From the gateway to the guest.
    pub tuple: Tuple,
    pub port: PortId,
    pub mac: Mac,
}

/// Why the node does not connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("no machine of this workspace has the address {0}")]
    NoSuchAddress(Ipv4Addr),
    #[error("no machine is ready behind the Service address {0}, port {1}")]
    NoBackend(Ipv4Addr, u16),
    /// The Service leads out of the machines' network: the caller may go there by itself.
    #[error("the Service leads to {0}, port {1}, which is not a machine")]
    Outside(Ipv4Addr, u16),
    #[error("a NetworkPolicy forbids it: allow ingress from {0} to port {1}")]
    Policy(Ipv4Addr, u16),
    #[error("the card of {0} lets only the ports through that its interface names: add port {1} to them")]
    ClosedPort(Ipv4Addr, u16),
    #[error("the machine is not attached to the switch: it is not running on this node, or just starting")]
    NoPort,
    /// The machine is on another node, whose own switch has to open the connection.
    #[error("the machine with the address {0} is on another node")]
    Elsewhere(Ipv4Addr, u16, PortId),
    #[error("too many connections are open")]
    Full,
}

impl Switch {
    /// Says from which port the node speaks next. A switch that starts again should begin elsewhere: guests may remember
    /// connections of the one before.
    pub fn speak_from(&mut self, port: u16) {
        self.next_port = port;
    }

    /// Opens a connection from the gateway to a guest or Service of a tenant. Policies judge it if it is made for
    /// somebody (`origin`); the node itself is always let in, as Kubernetes demands for probes.
    pub fn open_from_node(
        &mut self,
        tenant: Tenant,
        to: (Ipv4Addr, u16),
        protocol: u8,
        origin: Option<Ipv4Addr>,
        now: u64,
    ) -> Result<NodeConnection, Denied> {
        let topology = std::sync::Arc::clone(&self.topology);
        let gateway = topology.gateway.address;
        let wanted = Tuple {
            protocol,
            src: origin.unwrap_or(gateway),
            dst: to.0,
            // Varies the choice of a backend, which a client's own port does elsewhere.
            sport: self.next_port,
            dport: to.1,
        };
        let (address, port) = match topology.services.find(tenant, &wanted) {
            Found::Backend(backend) => (backend.address, backend.port),
            Found::Nobody => return Err(Denied::NoBackend(to.0, to.1)),
            Found::NoService => to,
        };
        let is_inside = topology.gateway.network.contains(address);
        let (index, guest) = match topology.guest_at(address) {
            Some((index, guest)) if guest.tenant == tenant => (index, guest),
            None if !is_inside && address != to.0 => return Err(Denied::Outside(address, port)),
            // Whether another tenant has the address is nobody's business.
            _ => return Err(Denied::NoSuchAddress(address)),
        };
        let attempt = Attempt {
            from: origin.unwrap_or(gateway),
            to: address,
            protocol,
            port,
        };
        let there = Hop::Guest(index);
        let judged = match origin {
            Some(_) => super::ipv4::judge(&topology, None, there, &attempt),
            None => super::ipv4::must_accept(&topology, there, &attempt),
        };
        judged.map_err(|reason| match reason {
            Reason::ClosedPort => Denied::ClosedPort(address, port),
            _ => Denied::Policy(attempt.from, port),
        })?;
        let place = self.port_of(guest).ok_or(Denied::NoPort)?;
        if topology.is_peer(place) {
            return Err(Denied::Elsewhere(address, port, place));
        }
        let tuple = self
            .free_tuple(gateway, address, port, protocol)
            .ok_or(Denied::Full)?;
        let opening = Opening {
            forward: tuple,
            reply: tuple.reversed(),
            opener: Opener::Node(origin),
            to_responder: Hop::Guest(index),
            to_opener: Hop::Gateway,
            target: None,
            generation: topology.generation,
        };
        let slot = self.tracker.open(opening, now).map_err(|_| Denied::Full)?;
        Ok(NodeConnection {
            slot,
            tuple,
            port: place,
            mac: guest.mac,
        })
    }

    fn free_tuple(&mut self, gateway: Ipv4Addr, address: Ipv4Addr, port: u16, protocol: u8) -> Option<Tuple> {
        for _ in 0..64 {
            self.next_port = self.next_port.checked_add(1).unwrap_or(EPHEMERAL).max(EPHEMERAL);
            let tuple = Tuple {
                protocol,
                src: gateway,
                dst: address,
                sport: self.next_port,
                dport: port,
            };
            if self.tracker.is_free(&tuple) && self.tracker.is_free(&tuple.reversed()) {
                return Some(tuple);
            }
        }
        None
    }

    /// Forgets a connection whose gateway's end is gone.
    pub fn close(&mut self, tuple: &Tuple) {
        if let Some((slot, _)) = self.tracker.find(tuple, 0) {
            self.tracker.forget(slot);
        }
    }
}
