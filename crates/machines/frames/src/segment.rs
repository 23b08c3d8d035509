//! Layer-2 segments: the networks that a NetworkAttachmentDefinition attaches extra cards to.
//!
//! A segment is a plain switch: it floods what is for all, and sends the rest to where a card was heard last. A card speaks
//! with its own address and from a place that the picture of the world knows, so nothing is learnt that was not configured; what
//! is learnt is *where* a card is now, which changes when its machine migrates.
//!
//! Links to other nodes carry frames of every segment, so each says which one is its own: [`tag`] puts the segment's name
//! behind the two addresses, as a VLAN does with its number, and [`strip`] takes it out again, in place.

use std::collections::HashMap;

use crate::address::Mac;
use crate::packet::{Ethernet, Kind};
use crate::topology::{PortId, SegmentId};

/// How many bytes a tag is.
pub const TAG: usize = 2 + size_of::<SegmentId>();
/// What follows the addresses of a tagged frame: the EtherType that is left to everybody's own use.
const TAGGED: u16 = 0x88b5;
/// Both addresses of a frame.
const ADDRESSES: usize = 12;

/// Where cards may be: at a port of this switch, behind a link, or both while a machine migrates, the place that it moves to last.
pub type Places = HashMap<(SegmentId, Mac), Vec<PortId>>;

/// Where a frame goes on its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Port(PortId),
    /// Every other port of the segment.
    Flood,
    /// Its receiver is on the port that it came from.
    Nowhere,
    /// The source address is not that of a card which may be there.
    Spoofed,
    /// The card has already spoken from the place that it moves to.
    Migrated,
}

/// Where cards were last heard. Bounded by the cards that are configured: others are not learnt.
#[derive(Debug, Default)]
pub struct Heard {
    ports: HashMap<(SegmentId, Mac), PortId>,
}

impl Heard {
    /// Learns from a frame that came from `port`, and says where it goes.
    pub fn decide(&mut self, places: &Places, segment: SegmentId, port: PortId, frame: &Ethernet) -> Way {
        let sender = (segment, frame.src);
        let own = places.get(&sender).map_or(&[][..], Vec::as_slice);
        let age = |port: PortId| own.iter().position(|known| *known == port);
        if age(port).is_none() {
            return Way::Spoofed;
        }
        if self.ports.get(&sender).is_some_and(|last| age(*last) > age(port)) {
            return Way::Migrated;
        }
        self.ports.insert(sender, port);
        if frame.dst.is_group() {
            return Way::Flood;
        }
        let receiver = (segment, frame.dst);
        let configured = || places.get(&receiver)?.first();
        match self.ports.get(&receiver).or_else(configured) {
            Some(&there) if there == port => Way::Nowhere,
            Some(&there) => Way::Port(there),
            None => Way::Flood,
        }
    }

    /// Forgets what is no longer there.
    pub fn retain(&mut self, places: &Places) {
        self.ports.retain(|card, port| {
            let known = places.get(card);
            known.is_some_and(|places| places.contains(port))
        });
    }
}

/// A frame with the name of its segment, for a link.
pub fn tag(frame: &[u8], segment: SegmentId) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(frame.len().min(ADDRESSES));
    [addresses, &TAGGED.to_be_bytes(), &segment.0, rest].concat()
}

/// The segment of a frame that came through a link; nothing if it has no tag.
pub fn tag_of(frame: &[u8], ethernet: &Ethernet) -> Option<SegmentId> {
    if ethernet.kind != Kind::Other(TAGGED) {
        return None;
    }
    // What is left must be a frame.
    let rest = frame.get(ADDRESSES + 2..).filter(|rest| rest.len() >= TAG)?;
    rest.first_chunk().copied().map(SegmentId)
}

/// Takes the tag out: afterwards the frame begins [`TAG`] bytes later.
pub fn strip(frame: &mut [u8]) {
    if frame.len() >= ADDRESSES + TAG {
        frame.copy_within(..ADDRESSES, TAG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAN: SegmentId = SegmentId([1; 16]);
    const OTHER: SegmentId = SegmentId([2; 16]);
    const LINK: u32 = 90;

    fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    fn places() -> Places {
        let at = |segment, card, ports: &[u32]| {
            let ports = ports.iter().copied().map(PortId).collect();
            ((segment, mac(card)), ports)
        };
        Places::from([
            at(LAN, 1, &[1]),
            // It migrates, from one port to another.
            at(LAN, 2, &[2, 7]),
            at(LAN, 4, &[LINK]),
            at(LAN, 5, &[LINK]),
            at(OTHER, 3, &[3]),
        ])
    }

    #[test]
    fn a_segment_knows_where_its_cards_are() {
        let mut heard = Heard::default();
        let steps = [
            ("where it is configured", LAN, 1, 1, mac(2), Way::Port(PortId(2))),
            ("nobody's address", LAN, 1, 1, mac(9), Way::Flood),
            ("an answer", LAN, 2, 2, mac(1), Way::Port(PortId(1))),
            ("to all", LAN, 1, 1, Mac::BROADCAST, Way::Flood),
            ("to itself", LAN, 1, 1, mac(1), Way::Nowhere),
            (
                "another segment knows nothing of it",
                OTHER,
                3,
                3,
                mac(1),
                Way::Flood,
            ),
            ("migrated", LAN, 2, 7, mac(1), Way::Port(PortId(1))),
            ("found at its new place", LAN, 1, 1, mac(2), Way::Port(PortId(7))),
            ("what was still on its way", LAN, 2, 2, mac(1), Way::Migrated),
            ("to another node", LAN, 1, 1, mac(4), Way::Port(PortId(LINK))),
            ("from there", LAN, 4, LINK, mac(1), Way::Port(PortId(1))),
            ("from there to there", LAN, 4, LINK, mac(5), Way::Nowhere),
            ("in the name of another card", LAN, 1, 2, mac(2), Way::Spoofed),
            (
                "in the name of a card that is here",
                LAN,
                1,
                LINK,
                mac(2),
                Way::Spoofed,
            ),
            ("in the name of nobody", LAN, 9, 1, mac(2), Way::Spoofed),
            ("of another segment", OTHER, 1, 1, mac(3), Way::Spoofed),
        ];
        for (why, segment, card, port, dst, expected) in steps {
            let frame = Ethernet {
                src: mac(card),
                dst,
                kind: Kind::Other(0x1234),
            };
            let way = heard.decide(&places(), segment, PortId(port), &frame);
            assert_eq!(way, expected, "{why}");
        }
        assert_eq!(heard.ports.len(), 4, "what was not configured is not learnt");
        let mut after = places();
        after.insert((LAN, mac(2)), vec![PortId(2)]);
        heard.retain(&after);
        assert_eq!(heard.ports.len(), 3);
    }

    #[test]
    fn a_tag_is_taken_out_as_it_was_put_in() {
        let mut frame: Vec<u8> = (0..64).collect();
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        let mut tagged = tag(&frame, LAN);
        assert_eq!(tagged.len(), frame.len() + TAG);
        let ethernet = Ethernet::read(&tagged).unwrap();
        assert_eq!(tag_of(&tagged, &ethernet), Some(LAN));
        strip(&mut tagged);
        assert_eq!(tagged[TAG..], frame);
        assert_eq!(tag_of(&frame, &Ethernet::read(&frame).unwrap()), None);
        // Whatever is too short is no tagged frame, and nothing breaks.
        let whole = tag(&frame[..14], LAN);
        for length in 0..whole.len() {
            let mut short = whole[..length].to_vec();
            if let Ok(ethernet) = Ethernet::read(&short) {
                assert_eq!(tag_of(&short, &ethernet), None, "{length}");
            }
            strip(&mut short);
        }
        assert_eq!(tag_of(&whole, &Ethernet::read(&whole).unwrap()), Some(LAN));
    }
}
