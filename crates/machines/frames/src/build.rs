//! Frames that the switch itself sends: answers to ARP and echo, datagrams, and refusals that a guest understands at once
//! instead of waiting for a timeout.

use std::net::Ipv4Addr;

use smoltcp::wire::{ArpOperation, ArpPacket, EthernetAddress, EthernetFrame, EthernetProtocol};

use crate::address::Mac;
use crate::checksum;
use crate::packet::{ETHERNET_HEADER, ICMP, IPV4_HEADER, TCP, UDP};

/// From where to where a packet goes, on both layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub src_mac: Mac,
    pub dst_mac: Mac,
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
}

impl Route {
    pub fn new(src_mac: Mac, dst_mac: Mac, src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self {
            src_mac,
            dst_mac,
            src,
            dst,
        }
    }
}

/// Time to live of what the switch sends.
const HOPS: u8 = 64;

/// The Ethernet header of a frame that carries IPv4.
pub fn ethernet(src: Mac, dst: Mac) -> [u8; ETHERNET_HEADER] {
    let mut header = [0; ETHERNET_HEADER];
    header[..6].copy_from_slice(&dst.0);
    header[6..12].copy_from_slice(&src.0);
    header[12..].copy_from_slice(&[0x08, 0x00]);
    header
}

/// A frame with an IPv4 header before `segment`. A segment that no packet can hold is cut off.
fn ipv4(route: Route, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let segment = &segment[..segment.len().min(usize::from(u16::MAX) - IPV4_HEADER)];
    let length = u16::try_from(IPV4_HEADER + segment.len()).unwrap_or(u16::MAX);
    let mut frame = Vec::with_capacity(ETHERNET_HEADER + usize::from(length));
    frame.extend(ethernet(route.src_mac, route.dst_mac));
    let mut header = [0_u8; IPV4_HEADER];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    // Don't fragment: nothing that the switch sends is larger than the MTU, and identifiers need not be invented.
    header[6] = 0x40;
    header[8] = HOPS;
    header[9] = protocol;
    header[12..16].copy_from_slice(&route.src.octets());
    header[16..20].copy_from_slice(&route.dst.octets());
    let sum = checksum::of(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend(segment);
    frame
}

/// The longest payload of a UDP datagram.
pub const UDP_PAYLOAD: usize = 65_507;

/// A datagram in one packet; a payload over [`UDP_PAYLOAD`] is cut off, so callers refuse it before.
pub fn udp(route: Route, sport: u16, dport: u16, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(UDP_PAYLOAD)];
    let length = u16::try_from(8 + payload.len()).unwrap_or(u16::MAX);
    let mut segment = Vec::with_capacity(usize::from(length));
    segment.extend(sport.to_be_bytes());
    segment.extend(dport.to_be_bytes());
    segment.extend(length.to_be_bytes());
    segment.extend([0, 0]);
    segment.extend(payload);
    let sum = match checksum::of_segment(route.src, route.dst, UDP, &segment) {
        0 => 0xffff,
        sum => sum,
    };
    segment[6..8].copy_from_slice(&sum.to_be_bytes());
    ipv4(route, UDP, &segment)
}

/// The answer to "who has `asked_for`?" for the card `asker` at `asker_address`.
pub fn arp_reply(owner: Mac, asked_for: Ipv4Addr, asker: Mac, asker_address: Ipv4Addr) -> Vec<u8> {
    let mut buffer = vec![0; ETHERNET_HEADER + 28];
    let mut frame = EthernetFrame::new_unchecked(&mut buffer);
    frame.set_src_addr(EthernetAddress(owner.0));
    frame.set_dst_addr(EthernetAddress(asker.0));
    frame.set_ethertype(EthernetProtocol::Arp);
    let mut arp = ArpPacket::new_unchecked(frame.payload_mut());
    arp.set_hardware_type(smoltcp::wire::ArpHardware::Ethernet);
    arp.set_protocol_type(EthernetProtocol::Ipv4);
    arp.set_hardware_len(6);
    arp.set_protocol_len(4);
    arp.set_operation(ArpOperation::Reply);
    arp.set_source_hardware_addr(&owner.0);
    arp.set_source_protocol_addr(&asked_for.octets());
    arp.set_target_hardware_addr(&asker.0);
    arp.set_target_protocol_addr(&asker_address.octets());
    buffer
}

/// The answer to an echo request, whose ICMP message is `request`.
pub fn echo_reply(route: Route, request: &[u8]) -> Vec<u8> {
    let mut message = request.to_vec();
    if let Some(header) = message.get_mut(..4) {
        header.copy_from_slice(&[0; 4]);
    }
    let sum = checksum::of(&message);
    if let Some(place) = message.get_mut(2..4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    ipv4(route, ICMP, &message)
}

/// Why something cannot be reached, as an ICMP code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    Port,
    Prohibited,
}

/// Tells the sender of `packet` (without its Ethernet header) that it was refused.
pub fn unreachable(route: Route, why: Unreachable, packet: &[u8]) -> Vec<u8> {
    let code = match why {
        Unreachable::Port => 3,
        Unreachable::Prohibited => 13,
    };
    let quoted = &packet[..packet.len().min(IPV4_HEADER + 8)];
    let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
    message.extend(quoted);
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ipv4(route, ICMP, &message)
}

/// Refuses the TCP segment `refused`, as a closed port would (RFC 9293, 3.5.2). The route is the way back.
/// Nothing is answered to a reset.
pub fn reset(route: Route, refused: &[u8]) -> Option<Vec<u8>> {
    let header: &[u8; 20] = refused.first_chunk()?;
    let flags = header[13];
    if flags & 0x04 != 0 {
        return None;
    }
    let long = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let offset = usize::from(header[12] >> 4) * 4;
    let data = refused.len().saturating_sub(offset);
    let occupied = u32::try_from(data).unwrap_or(0) + u32::from(flags & 1) + u32::from(flags >> 1 & 1);
    let mut segment = [0_u8; 20];
    segment[..2].copy_from_slice(&header[2..4]);
    segment[2..4].copy_from_slice(&header[..2]);
    if flags & 0x10 != 0 {
        segment[4..8].copy_from_slice(&header[8..12]);
        segment[13] = 0x04;
    } else {
        segment[8..12].copy_from_slice(&long(4).wrapping_add(occupied).to_be_bytes());
        segment[13] = 0x14;
    }
    segment[12] = 5 << 4;
    let sum = checksum::of_segment(route.src, route.dst, TCP, &segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    Some(ipv4(route, TCP, &segment))
}

#[cfg(test)]
mod tests {
    use smoltcp::wire::{Icmpv4Packet, IpAddress, Ipv4Packet, TcpPacket, UdpPacket};

    use super::*;
    use crate::packet::{Arp, Ipv4, Transport};

    fn route() -> Route {
        Route::new(
            Mac([2, 0, 0, 0, 0, 1]),
            Mac([2, 0, 0, 0, 0, 2]),
            Ipv4Addr::new(10, 88, 0, 1),
            Ipv4Addr::new(10, 88, 0, 2),
        )
    }

    /// Another reader's opinion of our checksums.
    fn judged(frame: &[u8]) -> Ipv4Packet<&[u8]> {
        let packet = Ipv4Packet::new_checked(&frame[ETHERNET_HEADER..]).unwrap();
        assert!(packet.verify_checksum());
        packet
    }

    #[test]
    fn what_is_built_is_valid_to_another_reader() {
        let (src, dst) = (IpAddress::from(route().src), IpAddress::from(route().dst));
        let frame = udp(route(), 53, 1000, b"odd");
        let packet = judged(&frame);
        let datagram = UdpPacket::new_checked(packet.payload()).unwrap();
        assert!(datagram.verify_checksum(&src, &dst));
        assert_eq!(datagram.payload(), b"odd");

        let frame = echo_reply(route(), &[8, 0, 9, 9, 0, 7, 0, 1, 1, 2, 3]);
        let packet = judged(&frame);
        let message = Icmpv4Packet::new_checked(packet.payload()).unwrap();
        assert!(message.verify_checksum());
        assert_eq!(message.echo_ident(), 7);

        let question = udp(route(), 53, 1000, b"odd");
        let frame = unreachable(route(), Unreachable::Prohibited, &question[ETHERNET_HEADER..]);
        assert!(
            Icmpv4Packet::new_checked(judged(&frame).payload())
                .unwrap()
                .verify_checksum()
        );

        let mut syn = [0_u8; 20];
        syn[..4].copy_from_slice(&[0x04, 0, 0, 80]);
        syn[7] = 9;
        syn[12] = 0x50;
        syn[13] = 0x02;
        let frame = reset(route(), &syn).unwrap();
        let packet = judged(&frame);
        let segment = TcpPacket::new_checked(packet.payload()).unwrap();
        assert!(segment.verify_checksum(&src, &dst));
        assert!(segment.rst() && segment.ack());
        assert_eq!((segment.src_port(), segment.dst_port()), (80, 1024));
        assert_eq!(segment.ack_number().0, 10, "a SYN takes one number");
    }

    #[test]
    fn a_reset_is_not_answered() {
        let mut segment = [0_u8; 20];
        segment[12] = 0x50;
        segment[13] = 0x04;
        assert_eq!(reset(route(), &segment), None);
        assert_eq!(reset(route(), &segment[..19]), None, "too short");
    }

    #[test]
    fn arp_replies_say_who_has_it() {
        let route = route();
        let frame = arp_reply(route.src_mac, route.src, route.dst_mac, route.dst);
        assert_eq!(
            Arp::read(&frame),
            Ok(Arp {
                request: false,
                sender_mac: route.src_mac,
                sender: route.src,
                target: route.dst
            })
        );
    }

    #[test]
    fn a_payload_that_no_datagram_holds_is_cut_off() {
        let frame = udp(route(), 1, 2, &vec![0; 70_000]);
        let read = Ipv4::read(&frame).unwrap();
        assert_eq!(read.transport, Transport::Udp);
        assert_eq!(frame.len(), ETHERNET_HEADER + 65_535);
    }
}
