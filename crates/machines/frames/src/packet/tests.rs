//! Frames as they are, frames that lie about themselves, and random ones.

use proptest::prelude::*;

use super::*;
use crate::build;

const A: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
const B: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 3);
const MAC_A: Mac = Mac([2, 0, 0, 0, 0, 2]);
const MAC_B: Mac = Mac([2, 0, 0, 0, 0, 3]);

fn datagram() -> Vec<u8> {
    build::udp(build::Route::new(MAC_A, MAC_B, A, B), 1000, 53, b"question")
}

/// The datagram with some bytes replaced, counted from the start of the IPv4 header.
fn changed(changes: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = datagram();
    for &(at, byte) in changes {
        frame[ETHERNET_HEADER + at] = byte;
    }
    frame
}

#[test]
fn a_datagram_is_read() {
    let frame = datagram();
    assert_eq!(
        Ethernet::read(&frame),
        Ok(Ethernet {
            dst: MAC_B,
            src: MAC_A,
            kind: Kind::Ipv4
        })
    );
    let read = Ipv4::read(&frame).unwrap();
    assert_eq!((read.src, read.dst, read.sport, read.dport), (A, B, 1000, 53));
    assert_eq!(read.transport, Transport::Udp);
    assert_eq!(read.end, frame.len());
}

#[test]
fn padding_is_not_part_of_the_packet() {
    let mut frame = datagram();
    let end = frame.len();
    frame.extend([0; 10]);
    assert_eq!(Ipv4::read(&frame).unwrap().end, end);
}

#[test]
fn packets_that_lie_are_refused() {
    for (why, changes, expected) in [
        ("version 6", vec![(0, 0x65)], Malformed::Header),
        ("header of four words", vec![(0, 0x44)], Malformed::Header),
        ("options", vec![(0, 0x46)], Malformed::Options),
        ("longer than the frame", vec![(2, 1), (3, 0)], Malformed::Short),
        (
            "shorter than its header",
            vec![(2, 0), (3, 19)],
            Malformed::Header,
        ),
        ("no room for UDP", vec![(2, 0), (3, 27)], Malformed::Short),
        (
            "UDP longer than the packet",
            vec![(24, 0), (25, 17)],
            Malformed::Header,
        ),
        (
            "UDP shorter than its header",
            vec![(24, 0), (25, 7)],
            Malformed::Header,
        ),
        ("too short for TCP", vec![(9, TCP)], Malformed::Short),
    ] {
        assert_eq!(Ipv4::read(&changed(&changes)), Err(expected), "{why}");
    }
    assert_eq!(Ethernet::read(&[0; 13]), Err(Malformed::Short));
    assert_eq!(Ipv4::read(&[0; 20]), Err(Malformed::Short));
}

#[test]
fn pieces_have_no_ports() {
    for (why, high, low) in [("first", 0x20, 0), ("second", 0x20, 1), ("last", 0, 185)] {
        let read = Ipv4::read(&changed(&[(6, high), (7, low)])).unwrap();
        assert_eq!(
            (read.transport, read.sport, read.dport),
            (Transport::Fragment, 0, 0),
            "{why}"
        );
    }
    let whole = Ipv4::read(&changed(&[(6, 0x40), (7, 0)])).unwrap();
    assert_eq!(whole.transport, Transport::Udp, "don't fragment");
}

#[test]
fn an_icmp_error_names_the_connection_it_is_about() {
    let question = datagram();
    let answer = build::unreachable(
        build::Route::new(MAC_B, MAC_A, B, A),
        build::Unreachable::Port,
        &question[ETHERNET_HEADER..],
    );
    let read = Ipv4::read(&answer).unwrap();
    assert_eq!(
        read.transport,
        Transport::IcmpError(Some(Ipv4::read(&question).unwrap().tuple()))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_read_or_refused(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Ethernet::read(&frame);
        let _ = Arp::read(&frame);
        if let Ok(read) = Ipv4::read(&frame) {
            prop_assert!(read.end <= frame.len());
            let _ = read.segment(&frame);
        }
    }

    #[test]
    fn changed_packets_stay_within_the_frame(changes in prop::collection::vec((0_usize..36, any::<u8>()), 1..6), cut in 0_usize..50) {
        let mut frame = changed(&changes);
        frame.truncate(frame.len().saturating_sub(cut));
        if let Ok(read) = Ipv4::read(&frame) {
            prop_assert!(read.end <= frame.len());
        }
    }
}
