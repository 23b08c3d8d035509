//! The picture of the world that frames are judged by: who is attached where, under which address, for which tenant.
//!
//! It is immutable and replaced as a whole, with a new generation, so a frame is never judged by half of a change.
//! Building one is where contradictions are found: two machines with one address, an address outside of the network.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::address::{Cidr, Mac};
use crate::dhcp::Lease;
use crate::outside::Outside;
use crate::packet::{SCTP, TCP, UDP};
use crate::policy::{EndpointPolicy, Policies};
use crate::segment::Places;
use crate::service::{ServicePort, Services};

/// A socket that the switch is connected to: of a QEMU process, or the link to another node's switch. Never used again for
/// another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u32);

/// A workspace, as a number: strings are not compared per frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(pub u32);

/// A layer-2 network of its own, for cards that a NetworkAttachmentDefinition attaches. Every node calls it by the same name, which
/// follows from the workspace and what the network is called there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(pub [u8; 16]);

/// A card on the network that every machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub tenant: Tenant,
    pub mac: Mac,
    pub address: Ipv4Addr,
    /// Where it is: at a card, or behind the link to another node. Two while a machine migrates, the one that it moves to last.
    pub ports: Vec<PortId>,
    pub hostname: String,
    /// Search domains for names, most specific first.
    pub search: Vec<String>,
    /// Whom it asks for names; those of the network if none are named.
    pub resolvers: Vec<Ipv4Addr>,
    /// What DHCP tells it beside what it tells everybody, by number.
    pub options: Vec<(u8, Vec<u8>)>,
    /// The ports that may be opened to it, with their protocols; every one if nothing is said. Answers to what it opened itself
    /// always come through.
    pub accepts: Option<Vec<(u8, u16)>>,
}

impl Guest {
    /// Whether a port may be opened to it. What has no ports is not asked about.
    pub fn accepts(&self, protocol: u8, port: u16) -> bool {
        let has_ports = matches!(protocol, TCP | UDP | SCTP);
        !has_ports || (self.accepts.as_ref()).is_none_or(|accepted| accepted.contains(&(protocol, port)))
    }
}

/// A card on a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentCard {
    pub segment: SegmentId,
    pub mac: Mac,
    /// Where it is, as a [`Guest`]'s.
    pub ports: Vec<PortId>,
}

/// The switch's own end of the machines' network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    pub mac: Mac,
    pub address: Ipv4Addr,
    /// Guests' addresses are in it.
    pub network: Cidr,
    /// Services' addresses are in it; none of them exists anywhere else.
    pub services: Cidr,
    pub mtu: u16,
    /// Names are asked here; the gateway itself if none are named.
    pub resolvers: Vec<Ipv4Addr>,
    pub domain: String,
    pub lease_seconds: u32,
}

/// What a [`Topology`] is made of.
#[derive(Debug, Clone)]
pub struct Plan {
    pub gateway: Gateway,
    pub guests: Vec<Guest>,
    pub cards: Vec<SegmentCard>,
    /// Links to switches of other nodes, which carry packets between machines.
    pub peers: Vec<PortId>,
    pub services: Vec<ServicePort>,
    pub policies: Policies,
    pub outside: Outside,
}

/// What a port is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// The machines' network: an index of [`Topology::guests`].
    Guest(u32),
    Segment(SegmentId),
    /// The switch of another node.
    Peer,
}

/// Why a plan is no topology. The switch keeps the one that it has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Contradiction {
    #[error("the address {0} is given to two machines: delete one of them, or free the address of the other")]
    AddressTwice(Ipv4Addr),
    /// Within a tenant or a segment, or a machine has the gateway's.
    #[error("the MAC address {0} is given to two machines: set another macAddress on one of them")]
    MacTwice(Mac),
    #[error("{0} is a group address, which no card may have: the first byte of a MAC address must be even")]
    GroupMac(Mac),
    #[error("the address {0} cannot be a machine's: it is outside of {1}, or the gateway's")]
    Misplaced(Ipv4Addr, Cidr),
    #[error("port {} is attached twice", .0.0)]
    PortTwice(PortId),
    #[error("the networks of machines ({0}) and of Services ({1}) overlap: configure others")]
    Overlap(Cidr, Cidr),
}

/// The ports of a segment.
#[derive(Debug, Default)]
struct Members {
    here: Vec<PortId>,
    links: Vec<PortId>,
}

/// The picture, indexed for looking up.
#[derive(Debug)]
pub struct Topology {
    pub generation: u64,
    pub gateway: Gateway,
    guests: Vec<Guest>,
    policies: Vec<Option<Arc<EndpointPolicy>>>,
    by_address: HashMap<Ipv4Addr, u32>,
    attachments: HashMap<PortId, Attachment>,
    /// Ports of segments on this switch, and links behind which each segment goes on.
    members: HashMap<SegmentId, Members>,
    places: Places,
    peers: Vec<PortId>,
    /// Machines that migrate, by their card.
    moving: HashMap<Mac, Vec<u32>>,
    pub services: Services,
    pub outside: Outside,
}

impl Topology {
    pub fn new(generation: u64, plan: Plan) -> Result<Self, Contradiction> {
        let gateway = plan.gateway;
        if gateway.network.overlaps(gateway.services) {
            return Err(Contradiction::Overlap(gateway.network, gateway.services));
        }
        let mut topology = Self {
            generation,
            guests: plan.guests,
            policies: Vec::new(),
            by_address: HashMap::new(),
            attachments: HashMap::new(),
            members: HashMap::new(),
            places: Places::new(),
            peers: plan.peers,
            moving: HashMap::new(),
            services: Services::new(plan.services),
            outside: plan.outside,
            gateway,
        };
        topology.index_peers()?;
        topology.index_guests(&plan.policies)?;
        topology.index_cards(&plan.cards)?;
        Ok(topology)
    }

    fn index_peers(&mut self) -> Result<(), Contradiction> {
        for port in &self.peers {
            if self.attachments.insert(*port, Attachment::Peer).is_some() {
                return Err(Contradiction::PortTwice(*port));
            }
        }
        Ok(())
    }

    fn index_guests(&mut self, policies: &Policies) -> Result<(), Contradiction> {
        let mut macs = HashMap::new();
        for (index, guest) in (0..).zip(&self.guests) {
            let address = guest.address;
            if !self.gateway.network.contains(address) || address == self.gateway.address {
                return Err(Contradiction::Misplaced(address, self.gateway.network));
            }
            if guest.mac.is_group() {
                return Err(Contradiction::GroupMac(guest.mac));
            }
            // Tenants hear nothing of each other, so none can take a card's address away from another.
            if macs.insert((guest.tenant, guest.mac), index).is_some() || guest.mac == self.gateway.mac {
                return Err(Contradiction::MacTwice(guest.mac));
            }
            if self.by_address.insert(address, index).is_some() {
                return Err(Contradiction::AddressTwice(address));
            }
            if guest.ports.len() > 1 {
                self.moving.entry(guest.mac).or_default().push(index);
            }
            for port in &guest.ports {
                // Many machines may be behind one link.
                if self.attachments.get(port) == Some(&Attachment::Peer) {
                    continue;
                }
                if self.attachments.insert(*port, Attachment::Guest(index)).is_some() {
                    return Err(Contradiction::PortTwice(*port));
                }
            }
            self.policies.push(policies.of(address));
        }
        Ok(())
    }

    fn index_cards(&mut self, cards: &[SegmentCard]) -> Result<(), Contradiction> {
        for card in cards {
            if card.mac.is_group() {
                return Err(Contradiction::GroupMac(card.mac));
            }
            let place = (card.segment, card.mac);
            if self.places.insert(place, card.ports.clone()).is_some() {
                return Err(Contradiction::MacTwice(card.mac));
            }
            let members = self.members.entry(card.segment).or_default();
            for port in &card.ports {
                // Many cards may be behind one link.
                if self.attachments.get(port) == Some(&Attachment::Peer) {
                    if !members.links.contains(port) {
                        members.links.push(*port);
                    }
                    continue;
                }
                let attachment = Attachment::Segment(card.segment);
                if self.attachments.insert(*port, attachment).is_some() {
                    return Err(Contradiction::PortTwice(*port));
                }
                members.here.push(*port);
            }
        }
        Ok(())
    }

    pub fn attachment(&self, port: PortId) -> Option<Attachment> {
        self.attachments.get(&port).copied()
    }

    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    /// The guest with an index that this topology gave out.
    pub fn guest(&self, index: u32) -> Option<&Guest> {
        self.guests.get(usize::try_from(index).ok()?)
    }

    pub fn policy(&self, index: u32) -> Option<&EndpointPolicy> {
        self.policies.get(usize::try_from(index).ok()?)?.as_deref()
    }

    pub fn guest_at(&self, address: Ipv4Addr) -> Option<(u32, &Guest)> {
        let index = *self.by_address.get(&address)?;
        Some((index, self.guest(index)?))
    }

    /// Links to other switches.
    pub fn peers(&self) -> &[PortId] {
        &self.peers
    }

    pub fn is_peer(&self, port: PortId) -> bool {
        self.attachments.get(&port) == Some(&Attachment::Peer)
    }

    /// Machines with this card that migrate.
    pub fn moving(&self, mac: Mac) -> &[u32] {
        self.moving.get(&mac).map_or(&[], Vec::as_slice)
    }

    /// Every port of a segment on this switch.
    pub fn members(&self, segment: SegmentId) -> &[PortId] {
        self.members.get(&segment).map_or(&[], |it| &it.here)
    }

    /// The links behind which a segment has cards.
    pub fn links_of(&self, segment: SegmentId) -> &[PortId] {
        self.members.get(&segment).map_or(&[], |it| &it.links)
    }

    /// Where cards on segments may be.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// What a guest is told by DHCP.
    pub fn lease(&self, guest: &Guest) -> Lease {
        let gateway = &self.gateway;
        Lease {
            address: guest.address,
            netmask: gateway.network.netmask(),
            router: gateway.address,
            resolvers: if !guest.resolvers.is_empty() {
                guest.resolvers.clone()
            } else if gateway.resolvers.is_empty() {
                vec![gateway.address]
            } else {
                gateway.resolvers.clone()
            },
            mtu: gateway.mtu,
            hostname: guest.hostname.clone(),
            domain: gateway.domain.clone(),
            search: guest.search.clone(),
            seconds: gateway.lease_seconds,
            options: guest.options.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
