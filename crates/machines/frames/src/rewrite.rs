//! Network address translation of one packet, in place: addresses, ports, and the checksums that cover them.

use crate::checksum::Amendment;
use crate::packet::{ETHERNET_HEADER, IPV4_HEADER, TCP, UDP};
use crate::track::Tuple;

const SEGMENT: usize = ETHERNET_HEADER + IPV4_HEADER;

/// Whether packets of this protocol can be translated: their checksums are known and lie where we look for them.
pub fn is_possible(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP)
}

/// Makes a packet that was read as `from` one of `to`. The frame has been read before, so its lengths hold; protocols
/// that cannot be translated are left alone.
pub fn translate(frame: &mut [u8], from: Tuple, to: Tuple) {
    if from == to || !is_possible(from.protocol) || frame.len() < SEGMENT + 8 {
        return;
    }
    let mut addresses = Amendment::default();
    addresses.address(from.src, to.src);
    addresses.address(from.dst, to.dst);
    let mut all = addresses;
    all.word(from.sport, to.sport);
    all.word(from.dport, to.dport);

    frame[ETHERNET_HEADER + 12..ETHERNET_HEADER + 16].copy_from_slice(&to.src.octets());
    frame[ETHERNET_HEADER + 16..ETHERNET_HEADER + 20].copy_from_slice(&to.dst.octets());
    amend(frame, ETHERNET_HEADER + 10, addresses);
    frame[SEGMENT..SEGMENT + 2].copy_from_slice(&to.sport.to_be_bytes());
    frame[SEGMENT + 2..SEGMENT + 4].copy_from_slice(&to.dport.to_be_bytes());
    match from.protocol {
        TCP => amend(frame, SEGMENT + 16, all),
        // Zero means that the sender made no checksum, and is never the result of one.
        UDP if frame[SEGMENT + 6..SEGMENT + 8] != [0, 0] => {
            amend(frame, SEGMENT + 6, all);
            if frame[SEGMENT + 6..SEGMENT + 8] == [0, 0] {
                frame[SEGMENT + 6..SEGMENT + 8].copy_from_slice(&[0xff, 0xff]);
            }
        }
        _ => {}
    }
}

fn amend(frame: &mut [u8], at: usize, change: Amendment) {
    if let Some(&[high, low]) = frame.get(at..at + 2) {
        let sum = change.apply(u16::from_be_bytes([high, low]));
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::address::Mac;
    use crate::build::{self, Route};
    use crate::packet::Ipv4;

    fn route(src: u32, dst: u32) -> Route {
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        Route::new(mac, mac, Ipv4Addr::from(src), Ipv4Addr::from(dst))
    }

    proptest! {
        #[test]
        fn a_translated_datagram_equals_one_that_was_built_so(
            before in any::<(u32, u32, u16, u16)>(),
            after in any::<(u32, u32, u16, u16)>(),
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut frame = build::udp(route(before.0, before.1), before.2, before.3, &payload);
            let expected = build::udp(route(after.0, after.1), after.2, after.3, &payload);
            let from = Ipv4::read(&frame).unwrap().tuple();
            translate(&mut frame, from, Ipv4::read(&expected).unwrap().tuple());
            prop_assert_eq!(frame, expected);
        }
    }

    #[test]
    fn a_datagram_without_checksum_stays_without() {
        let mut frame = build::udp(route(1, 2), 3, 4, b"x");
        frame[SEGMENT + 6..SEGMENT + 8].copy_from_slice(&[0, 0]);
        let from = Ipv4::read(&frame).unwrap().tuple();
        translate(&mut frame, from, Tuple { dport: 9, ..from });
        assert_eq!(frame[SEGMENT + 6..SEGMENT + 8], [0, 0]);
        assert_eq!(Ipv4::read(&frame).unwrap().dport, 9);
    }
}
