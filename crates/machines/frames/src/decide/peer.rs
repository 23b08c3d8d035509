//! Packets and frames that come from the switch of another node.
//!
//! That switch has judged them as its own machine's, and it may be mistaken about what has changed meanwhile, so they are judged
//! here again. They go to machines of this node only: every switch is linked to every other. A frame of a segment says by its
//! tag which one it is of, and is taken from a card alone that the picture has on that segment and behind that link.

use super::{Landing, Reason, Sender, Switch, Verdict};
use crate::packet::{Ethernet, Ipv4, Kind};
use crate::segment::{self, Way};
use crate::topology::{PortId, SegmentId, Topology};

impl Switch {
    pub(super) fn arrived(
        &mut self,
        topology: &Topology,
        port: PortId,
        ethernet: Ethernet,
        frame: &mut [u8],
        now: u64,
    ) -> Verdict {
        match ethernet.kind {
            Kind::Ipv4 => {}
            Kind::Rarp => {
                for &index in topology.moving(ethernet.src) {
                    if let Some(guest) = topology.guest(index).filter(|guest| guest.ports.contains(&port)) {
                        self.is_active(guest, port);
                    }
                }
                return Verdict::Drop(Reason::Announced);
            }
            _ => {
                return match segment::tag_of(frame, &ethernet) {
                    Some(segment) => self.landed(topology, segment, port, &ethernet, frame),
                    None => Verdict::Drop(Reason::Ethertype),
                };
            }
        }
        let Ok(packet) = Ipv4::read(frame) else {
            return Verdict::Drop(Reason::Malformed);
        };
        // A packet is its machine's if the machine is behind the link that it came through. Its card is not asked: what went
        // through a Service comes from the gateway's.
        let Some((index, guest)) = topology
            .guest_at(packet.src)
            .filter(|(_, guest)| guest.ports.contains(&port))
        else {
            return Verdict::Drop(Reason::SpoofedAddress);
        };
        if !self.is_active(guest, port) {
            return Verdict::Drop(Reason::Migrated);
        }
        let is_here = topology.guest_at(packet.dst).is_some_and(|(_, there)| {
            there.tenant == guest.tenant && self.port_of(there).is_some_and(|port| !topology.is_peer(port))
        });
        if !is_here {
            return Verdict::Drop(Reason::Transit);
        }
        let sender = Sender {
            topology,
            index,
            guest,
            ethernet,
        };
        match self.ipv4(&sender, frame, now) {
            // Refusals are the other switch's to tell, which knows as much.
            Verdict::Refuse(_, reason) => Verdict::Drop(reason),
            verdict => verdict,
        }
    }

    /// A frame of a segment.
    fn landed(
        &mut self,
        topology: &Topology,
        segment: SegmentId,
        link: PortId,
        ethernet: &Ethernet,
        frame: &mut [u8],
    ) -> Verdict {
        let landing = match self.heard.decide(topology.places(), segment, link, ethernet) {
            Way::Port(there) if topology.is_peer(there) => return Verdict::Drop(Reason::Transit),
            Way::Port(there) => Landing::Port(there),
            Way::Flood => Landing::All(segment),
            Way::Nowhere => return Verdict::Drop(Reason::Transit),
            Way::Spoofed => return Verdict::Drop(Reason::SpoofedMac),
            Way::Migrated => return Verdict::Drop(Reason::Migrated),
        };
        segment::strip(frame);
        Verdict::Landed(landing)
    }
}
