//! What happens to a frame that came from a guest.
//!
//! ```text
//! whose port? ── none: drop
//!   ├─ a segment's card: learn, forward or flood
//!   ├─ another node's switch: whose machine, or which segment's card? then as for one of this node, to this node only
//!   └─ a guest: own MAC?
//!        ├─ ARP: answered here      ├─ DHCP: answered here
//!        └─ IPv4: own address? known connection? ── yes: its way, translated
//!             └─ new: Service → tenant → policies → guest, gateway or refusal; remembered
//! ```
//!
//! The order is the safety: nothing is looked up for a frame whose sender is not who it says, and no connection is
//! remembered before it is allowed. When the topology changes, a known connection is judged again before its next
//! packet, so that a policy takes hold of connections that are already there.

mod ipv4;
mod node;
mod offer;
mod peer;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::address::Mac;
use crate::build;
use crate::outside::Refusal;
use crate::packet::{Arp, Ethernet, Kind, Malformed};
use crate::segment::{Heard, Way};
use crate::topology::{Attachment, Guest, PortId, SegmentId, Topology};
use crate::track::{Bounds, Slot, Tracker, Tuple};

pub use node::{Denied, NodeConnection};
pub use offer::Offer;

/// What is to be done with a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// To this port, as it now is.
    Forward(PortId),
    /// To every other port of the segment, and with its tag through every link of it.
    Flood(SegmentId),
    /// To the link, with the tag of the segment.
    Tunnel(PortId, SegmentId),
    /// It came through a link, and its tag is taken out: the frame begins [`crate::segment::TAG`] bytes later.
    Landed(Landing),
    /// To every switch that this one is linked to: a machine has arrived here.
    Announce,
    /// Another frame goes back to where it came from.
    Answer(Vec<u8>),
    /// A packet for the gateway's end of a connection.
    Gateway(Arrival),
    /// Nothing passes, and the sender is told so by this frame, instead of waiting for an answer that will not come.
    Refuse(Vec<u8>, Reason),
    Drop(Reason),
}

/// Where a frame goes that came through a link on a segment: to cards of this switch alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    Port(PortId),
    All(SegmentId),
}

/// A packet that has reached the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The connection, until it is forgotten.
    pub slot: Slot,
    /// The connection's tuple as its opener sends: what a guest wants to reach, in whose name the gateway then speaks.
    pub tuple: Tuple,
    pub service: GatewayService,
}

/// What the gateway does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayService {
    /// Connects to the outside on the guest's behalf. `named`: also if it is the host.
    Outside {
        address: Ipv4Addr,
        port: u16,
        named: bool,
    },
    /// Answers questions about names.
    Resolver,
    /// It belongs to a connection that the node has opened.
    Node,
}

/// Why a frame goes nowhere. Each has a counter of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The port is attached to nothing.
    Unattached,
    Malformed,
    SpoofedMac,
    SpoofedAddress,
    /// The guest's machine now speaks from another port.
    Migrated,
    /// IPv6 is not served.
    Ipv6,
    /// A protocol that has no business here.
    Ethertype,
    /// Broadcasts and multicasts end at the switch.
    Broadcast,
    /// Reverse ARP and gratuitous ARP: heard, and done with.
    Announced,
    /// Who was asked for is not there, or not this tenant's.
    NoSuchNeighbour,
    /// Another tenant's machine.
    Tenant,
    Egress,
    Ingress,
    /// A port that the receiver's card does not let through.
    ClosedPort,
    /// An address of the machines' or Services' network that nobody has.
    NoSuchAddress,
    Outside(Refusal),
    /// A protocol that the gateway does not translate.
    Untranslatable,
    Fragment,
    /// A packet in the middle of a connection that nobody knows.
    Unsolicited,
    /// Too many connections.
    Full,
    /// A machine whose port is gone.
    NoPort,
    /// No service of the gateway is there.
    NoService,
    /// A DHCP message that wants no answer.
    Dhcp,
    /// From another node's switch, and for no machine of this one.
    Transit,
}

/// The state of a switch: the picture of the world, and what was learnt.
#[derive(Debug)]
pub struct Switch {
    topology: Arc<Topology>,
    tracker: Tracker,
    heard: Heard,
    /// Of guests with more than one port, by their addresses: the latest in their order that has spoken.
    active: HashMap<Ipv4Addr, PortId>,
    /// The port that the node last spoke from.
    next_port: u16,
    /// Connections that somebody else may carry; nothing if nobody can.
    offers: Option<Vec<Offer>>,
}

impl Switch {
    pub fn new(topology: Arc<Topology>, bounds: Bounds) -> Self {
        Self {
            topology,
            tracker: Tracker::new(bounds),
            heard: Heard::default(),
            active: HashMap::new(),
            next_port: 0,
            offers: None,
        }
    }

    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    pub fn connections(&self) -> usize {
        self.tracker.len()
    }

    /// Takes a new picture of the world.
    pub fn update(&mut self, topology: Arc<Topology>) {
        self.heard.retain(topology.places());
        self.active.retain(|_, port| topology.attachment(*port).is_some());
        self.topology = topology;
        // They were judged by the older one.
        self.take_offers();
    }

    /// Forgets connections that have been silent for too long; called now and then.
    pub fn sweep(&mut self, now: u64) {
        self.tracker.sweep(now, 4096);
    }

    /// Decides on a frame from `port`. It may be rewritten, if it is forwarded or handed to the gateway.
    pub fn decide(&mut self, port: PortId, frame: &mut [u8], now: u64) -> Verdict {
        let topology = Arc::clone(&self.topology);
        let Some(attachment) = topology.attachment(port) else {
            return Verdict::Drop(Reason::Unattached);
        };
        let Ok(ethernet) = Ethernet::read(frame) else {
            return Verdict::Drop(Reason::Malformed);
        };
        match attachment {
            Attachment::Segment(segment) => {
                match self.heard.decide(topology.places(), segment, port, &ethernet) {
                    Way::Port(there) if topology.is_peer(there) => Verdict::Tunnel(there, segment),
                    Way::Port(there) => Verdict::Forward(there),
                    Way::Flood => Verdict::Flood(segment),
                    Way::Nowhere => Verdict::Drop(Reason::NoPort),
                    Way::Spoofed => Verdict::Drop(Reason::SpoofedMac),
                    Way::Migrated => Verdict::Drop(Reason::Migrated),
                }
            }
            Attachment::Peer => self.arrived(&topology, port, ethernet, frame, now),
            Attachment::Guest(index) => {
                let Some(guest) = topology.guest(index) else {
                    return Verdict::Drop(Reason::Unattached);
                };
                if ethernet.src != guest.mac {
                    return Verdict::Drop(Reason::SpoofedMac);
                }
                if !self.is_active(guest, port) {
                    return Verdict::Drop(Reason::Migrated);
                }
                let sender = Sender {
                    topology: &topology,
                    index,
                    guest,
                    ethernet,
                };
                match ethernet.kind {
                    Kind::Ipv4 => self.ipv4(&sender, frame, now),
                    Kind::Arp => arp(&sender, frame),
                    Kind::Rarp if guest.ports.len() > 1 => Verdict::Announce,
                    Kind::Rarp => Verdict::Drop(Reason::Announced),
                    Kind::Ipv6 => Verdict::Drop(Reason::Ipv6),
                    Kind::Other(_) => Verdict::Drop(Reason::Ethertype),
                }
            }
        }
    }

    /// Whether a guest's frame from this port counts. While a machine migrates it has two ports; as soon as the newer one
    /// has spoken, what is still in the older one's pipe is from the past.
    fn is_active(&mut self, guest: &Guest, port: PortId) -> bool {
        if guest.ports.len() < 2 {
            return true;
        }
        let age = |port: PortId| guest.ports.iter().position(|known| *known == port);
        let active = self.active.entry(guest.address).or_insert(port);
        if age(port) > age(*active) {
            *active = port;
        }
        *active == port
    }

    /// The port that a guest is to be reached at.
    fn port_of(&self, guest: &Guest) -> Option<PortId> {
        match guest.ports.as_slice() {
            [] => None,
            [only] => Some(*only),
            several => self
                .active
                .get(&guest.address)
                .copied()
                .filter(|port| several.contains(port))
                .or_else(|| several.first().copied()),
        }
    }

    /// The port and card behind an address, for what the gateway sends.
    pub fn place_of(&self, address: Ipv4Addr) -> Option<(PortId, Mac)> {
        let (_, guest) = self.topology.guest_at(address)?;
        Some((self.port_of(guest)?, guest.mac))
    }
}

/// A guest whose frame is being judged.
struct Sender<'t> {
    topology: &'t Topology,
    index: u32,
    guest: &'t Guest,
    ethernet: Ethernet,
}

/// Neighbours are not asked: the switch knows them all.
fn arp(sender: &Sender<'_>, frame: &[u8]) -> Verdict {
    let guest = sender.guest;
    let arp = match Arp::read(frame) {
        Ok(arp) => arp,
        Err(Malformed::Short | Malformed::Header | Malformed::Options) => {
            return Verdict::Drop(Reason::Malformed);
        }
    };
    if arp.sender_mac != guest.mac {
        return Verdict::Drop(Reason::SpoofedMac);
    }
    // A machine that has no address yet asks whether somebody else has it.
    if arp.sender != guest.address && !(arp.request && arp.sender.is_unspecified()) {
        return Verdict::Drop(Reason::SpoofedAddress);
    }
    if !arp.request || arp.target == guest.address {
        return Verdict::Drop(Reason::Announced);
    }
    let topology = sender.topology;
    let owner = if arp.target == topology.gateway.address {
        topology.gateway.mac
    } else {
        match topology.guest_at(arp.target) {
            Some((_, neighbour)) if neighbour.tenant == guest.tenant => neighbour.mac,
            _ => return Verdict::Drop(Reason::NoSuchNeighbour),
        }
    };
    Verdict::Answer(build::arp_reply(owner, arp.target, guest.mac, arp.sender))
}

#[cfg(test)]
mod tests;
