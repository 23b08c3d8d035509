//! Layer-2 segments: the networks that a NetworkAttachmentDefinition attaches extra cards to.
//!
//! A segment is a plain switch: it learns which port a MAC address speaks from and floods what it does not know. A port
//! speaks with its own address only, so nothing is learnt that was not configured; what is learnt is *where* a card is
//! now, which changes when its machine migrates.

use std::collections::HashMap;

use crate::address::Mac;
use crate::packet::Ethernet;
use crate::topology::{PortId, SegmentId};

/// Where a frame goes on its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Port(PortId),
    /// Every other port of the segment.
    Flood,
    /// Its receiver is on the port that it came from.
    Nowhere,
    /// The port does not own the source address.
    Spoofed,
}

/// Where cards were last heard. Bounded by the cards that are configured: others are not learnt.
#[derive(Debug, Default)]
pub struct Heard {
    ports: HashMap<(SegmentId, Mac), PortId>,
}

impl Heard {
    /// Learns from a frame that came from `port`, which owns `own`, and says where it goes.
    pub fn decide(&mut self, segment: SegmentId, own: Mac, port: PortId, frame: &Ethernet) -> Way {
        if frame.src != own {
            return Way::Spoofed;
        }
        self.ports.insert((segment, own), port);
        if frame.dst.is_group() {
            return Way::Flood;
        }
        match self.ports.get(&(segment, frame.dst)) {
            Some(&there) if there == port => Way::Nowhere,
            Some(&there) => Way::Port(there),
            None => Way::Flood,
        }
    }

    /// Forgets what is no longer attached.
    pub fn retain(&mut self, mut is_attached: impl FnMut(SegmentId, Mac, PortId) -> bool) {
        self.ports
            .retain(|&(segment, mac), &mut port| is_attached(segment, mac, port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    const LAN: SegmentId = SegmentId(1);
    const OTHER: SegmentId = SegmentId(2);

    fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    #[test]
    fn a_segment_learns_where_its_cards_are() {
        let mut heard = Heard::default();
        let steps = [
            ("not heard yet", LAN, 1, 1, mac(2), Way::Flood),
            ("heard", LAN, 2, 2, mac(1), Way::Port(PortId(1))),
            ("now both are", LAN, 1, 1, mac(2), Way::Port(PortId(2))),
            ("to all", LAN, 1, 1, Mac::BROADCAST, Way::Flood),
            ("to itself", LAN, 1, 1, mac(1), Way::Nowhere),
            ("another segment knows nothing", OTHER, 3, 3, mac(1), Way::Flood),
            ("migrated", LAN, 2, 7, mac(1), Way::Port(PortId(1))),
            ("found at its new place", LAN, 1, 1, mac(2), Way::Port(PortId(7))),
        ];
        for (why, segment, card, port, dst, expected) in steps {
            let frame = Ethernet {
                src: mac(card),
                dst,
                kind: Kind::Other(0x1234),
            };
            assert_eq!(
                heard.decide(segment, mac(card), PortId(port), &frame),
                expected,
                "{why}"
            );
        }
        let lie = Ethernet {
            src: mac(1),
            dst: mac(2),
            kind: Kind::Ipv4,
        };
        assert_eq!(heard.decide(LAN, mac(9), PortId(9), &lie), Way::Spoofed);
        heard.retain(|_, _, port| port != PortId(7));
        assert_eq!(heard.ports.len(), 2);
    }
}
