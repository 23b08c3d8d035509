//! Connections that somebody else may carry.
//!
//! Where the kernel can carry frames between cards, the switch judges a connection and hands busy ones over, one direction at a time. Only what the
//! switch itself would forward without touching a byte is offered: packets between two cards of this node, to the receiver's own card, and
//! untranslated. Whoever carries it forgets it after a while, so that the switch sees some packets and goes on judging, and at once when the
//! picture of the world changes. What opens or ends a connection must still come here.

use super::{Sender, Switch};
use crate::address::Mac;
use crate::packet::{Ipv4, TCP, UDP};
use crate::topology::PortId;
use crate::track::{Connection, Direction, Hop, Tuple};

/// One direction of a connection that may be carried by somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub from: PortId,
    pub to: PortId,
    pub from_mac: Mac,
    pub to_mac: Mac,
    pub tuple: Tuple,
}

impl Switch {
    /// Offers connections from now on. Whoever asks for that takes them, again and again.
    pub fn offer_connections(&mut self) {
        self.offers.get_or_insert_default();
    }

    /// What has become busy since the last time.
    pub fn take_offers(&mut self) -> Vec<Offer> {
        self.offers.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Offers a connection whose packet goes its way, if somebody else could carry it.
    pub(super) fn offer(
        &mut self,
        sender: &Sender<'_>,
        packet: &Ipv4,
        connection: &Connection,
        direction: Direction,
    ) {
        let Some(offers) = &mut self.offers else {
            return;
        };
        let Hop::Guest(index) = connection.hop(direction) else {
            return;
        };
        let Some(receiver) = sender.topology.guest(index) else {
            return;
        };
        let is_plain = connection.forward == connection.reply.reversed()
            && matches!(packet.protocol, TCP | UDP)
            && sender.ethernet.dst == receiver.mac;
        // A machine that moves has two places; one of another node is behind a link.
        let ([from], [to]) = (sender.guest.ports.as_slice(), receiver.ports.as_slice()) else {
            return;
        };
        let is_here = !sender.topology.is_peer(*from) && !sender.topology.is_peer(*to);
        if is_plain && is_here && from != to {
            offers.push(Offer {
                from: *from,
                to: *to,
                from_mac: sender.guest.mac,
                to_mac: receiver.mac,
                tuple: packet.tuple(),
            });
        }
    }
}
