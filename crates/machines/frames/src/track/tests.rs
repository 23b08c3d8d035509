//! Connections live as long as their kind may be silent, and never take more room than they were given.

use super::*;
use crate::packet::UDP;

const SYN: Transport = Transport::Tcp(TcpFlags(0x02));
const ACK: Transport = Transport::Tcp(TcpFlags(0x10));
const FIN: Transport = Transport::Tcp(TcpFlags(0x11));
const RST: Transport = Transport::Tcp(TcpFlags(0x04));

fn opening(protocol: u8, guest: u8, sport: u16) -> Opening {
    let src = Ipv4Addr::new(10, 88, 0, guest);
    let forward = Tuple {
        protocol,
        src,
        dst: Ipv4Addr::new(10, 88, 1, 1),
        sport,
        dport: 80,
    };
    Opening {
        forward,
        reply: forward.reversed(),
        opener: Opener::Guest(src),
        to_responder: Hop::Guest(0),
        to_opener: Hop::Guest(1),
        target: None,
        generation: 1,
    }
}

#[test]
fn silence_ends_a_connection_by_its_kind_and_stage() {
    use Direction::{ToOpener as Back, ToResponder as Out};
    for (why, protocol, packets, alive, dead) in [
        ("a SYN alone", TCP, vec![(Out, SYN)], 60_000, 60_001),
        (
            "both spoke",
            TCP,
            vec![(Out, SYN), (Back, ACK)],
            86_400_000,
            86_400_001,
        ),
        (
            "one side finished",
            TCP,
            vec![(Out, SYN), (Back, ACK), (Out, FIN)],
            120_000,
            120_001,
        ),
        (
            "the same side twice",
            TCP,
            vec![(Back, ACK), (Out, FIN), (Out, FIN)],
            120_000,
            120_001,
        ),
        (
            "both finished",
            TCP,
            vec![(Back, ACK), (Out, FIN), (Back, FIN)],
            10_000,
            10_001,
        ),
        ("broken off", TCP, vec![(Back, ACK), (Back, RST)], 10_000, 10_001),
        ("a question", UDP, vec![(Out, Transport::Udp)], 30_000, 30_001),
        (
            "a talk",
            UDP,
            vec![(Out, Transport::Udp), (Back, Transport::Udp)],
            180_000,
            180_001,
        ),
    ] {
        for (wait, expected) in [(alive, true), (dead, false)] {
            let mut tracker = Tracker::new(Bounds::default());
            let opening = opening(protocol, 2, 1000);
            let slot = tracker.open(opening, 0).unwrap();
            for &(direction, transport) in &packets {
                tracker.get_mut(slot).unwrap().pass(direction, transport, 0);
            }
            assert_eq!(
                tracker.find(&opening.forward, wait).is_some(),
                expected,
                "{why} after {wait}"
            );
            assert_eq!(tracker.len(), usize::from(expected), "{why}: forgotten at once");
        }
    }
}

#[test]
fn both_directions_find_the_connection() {
    let mut tracker = Tracker::new(Bounds::default());
    let mut opening = opening(TCP, 2, 1000);
    // Translated: the reply comes from elsewhere.
    opening.reply.src = Ipv4Addr::new(10, 88, 9, 9);
    opening.reply.sport = 8080;
    let slot = tracker.open(opening, 0).unwrap();
    assert_eq!(
        tracker.find(&opening.forward, 0),
        Some((slot, Direction::ToResponder))
    );
    assert_eq!(tracker.find(&opening.reply, 0), Some((slot, Direction::ToOpener)));
    assert_eq!(tracker.find(&opening.forward.reversed(), 0), None);
    let connection = tracker.get(slot).unwrap();
    assert_eq!(
        connection.translated(Direction::ToResponder),
        opening.reply.reversed()
    );
    assert_eq!(
        connection.translated(Direction::ToOpener),
        opening.forward.reversed()
    );
    tracker.forget(slot);
    assert!(tracker.is_empty() && tracker.is_free(&opening.forward) && tracker.is_free(&opening.reply));
}

#[test]
fn one_guest_cannot_take_what_others_need() {
    let bounds = Bounds {
        total: 6,
        per_guest: 4,
    };
    let mut tracker = Tracker::new(bounds);
    let results: Vec<_> = (0..5)
        .map(|sport| tracker.open(opening(TCP, 2, sport), 0).err())
        .collect();
    assert_eq!(results, [None, None, None, None, Some(Full::Guest)]);
    assert_eq!(tracker.open(opening(TCP, 2, 3), 0), Err(Full::Taken));
    let others: Vec<_> = (0..3)
        .map(|sport| tracker.open(opening(TCP, 3, sport), 0).err())
        .collect();
    assert_eq!(others, [None, None, Some(Full::Node)]);
    // A minute later the unanswered ones make room.
    assert!(tracker.open(opening(TCP, 3, 9), 60_001).is_ok());
    assert!(tracker.len() <= bounds.total);
}
