//! Machines of other nodes, behind the link to their switch.

use super::*;
use crate::segment::{TAG, tag};

const LINK: u8 = 90;

/// As everywhere, but machine 4 is behind the link.
fn linked() -> Plan {
    let mut plan = plan();
    plan.peers = vec![port(LINK)];
    plan.guests[2].ports = vec![port(LINK)];
    plan.services[0].backends = [Backend {
        address: ip(4),
        port: 8080,
    }]
    .into();
    plan
}

/// What a machine's card says when it has arrived somewhere.
fn announcement(number: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&Mac::BROADCAST.0);
    frame[6..12].copy_from_slice(&mac(number).0);
    frame[12..14].copy_from_slice(&[0x80, 0x35]);
    frame
}

#[test]
fn connections_to_another_node_go_through_the_link() {
    let mut switch = switch(linked());
    let (verdict, frame) = decided(&mut switch, 2, tcp(route(2, ip(4)), 4000, 22, SYN));
    assert_eq!(verdict, Verdict::Forward(port(LINK)));
    assert_eq!(read(&frame).1, mac(4), "it is addressed to the machine's card");

    // Through a Service: translated here, both ways.
    let (verdict, frame) = decided(&mut switch, 2, tcp(route(2, VIP), 4001, 80, SYN));
    assert_eq!(verdict, Verdict::Forward(port(LINK)));
    let packet = read(&frame).2;
    assert_eq!((packet.dst, packet.dport), (ip(4), 8080));
    let (verdict, frame) = decided(&mut switch, LINK, tcp(route(4, ip(2)), 8080, 4001, SYN_ACK));
    assert_eq!(verdict, Verdict::Forward(port(2)));
    assert_eq!(read(&frame).2.src, VIP);

    assert_eq!(
        switch
            .open_from_node(SHOP, (ip(4), 22), TCP, None, 0)
            .map(|open| open.tuple),
        Err(Denied::Elsewhere(ip(4), 22, port(LINK))),
        "the node's own connections are the other node's to open"
    );
}

#[test]
fn what_comes_through_a_link_is_for_machines_here() {
    let mut plan = linked();
    plan.guests[3].ports = vec![port(LINK)];
    plan.policies =
        policies(&[json!({"podSelector": {"matchLabels": {"vm": "3"}}, "policyTypes": ["Ingress"]})]);
    let mut switch = switch(plan);
    for (what, from, to, expected) in [
        ("a machine here", 4, ip(2), Verdict::Forward(port(2))),
        (
            "a machine that a policy closes",
            4,
            ip(3),
            Verdict::Drop(Reason::Ingress),
        ),
        ("of another tenant", 5, ip(2), Verdict::Drop(Reason::Transit)),
        (
            "in the name of a machine here",
            3,
            ip(2),
            Verdict::Drop(Reason::SpoofedAddress),
        ),
        ("to a Service", 4, VIP, Verdict::Drop(Reason::Transit)),
        ("to the gateway", 4, GATEWAY, Verdict::Drop(Reason::Transit)),
        ("to the outside", 4, OUT, Verdict::Drop(Reason::Transit)),
    ] {
        let frame = tcp(route(from, to), 4000, 22, SYN);
        assert_eq!(decided(&mut switch, LINK, frame).0, expected, "{what}");
    }
    let mut other = tcp(route(4, ip(2)), 4000, 22, SYN);
    other[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(
        decided(&mut switch, LINK, other).0,
        Verdict::Drop(Reason::Ethertype)
    );
}

#[test]
fn a_machine_that_migrates_is_found_where_it_has_spoken_last() {
    let to_3 = || tcp(route(2, ip(3)), 1, 2, SYN);
    // It leaves: as soon as the other node says that it has arrived.
    let mut plan = linked();
    plan.guests[1].ports = vec![port(3), port(LINK)];
    let mut leaving = switch(plan.clone());
    assert_eq!(decided(&mut leaving, 2, to_3()).0, Verdict::Forward(port(3)));
    assert_eq!(
        decided(&mut leaving, LINK, announcement(3)).0,
        Verdict::Drop(Reason::Announced)
    );
    assert_eq!(decided(&mut leaving, 2, to_3()).0, Verdict::Forward(port(LINK)));
    assert_eq!(
        decided(&mut leaving, 3, tcp(route(3, ip(2)), 7, 8, SYN)).0,
        Verdict::Drop(Reason::Migrated)
    );
    // It arrives: the others are told.
    plan.guests[1].ports = vec![port(LINK), port(3)];
    let mut arriving = switch(plan);
    assert_eq!(decided(&mut arriving, 2, to_3()).0, Verdict::Forward(port(LINK)));
    assert_eq!(decided(&mut arriving, 3, announcement(3)).0, Verdict::Announce);
    assert_eq!(decided(&mut arriving, 2, to_3()).0, Verdict::Forward(port(3)));
}

#[test]
fn a_segment_goes_on_behind_a_link() {
    let mut plan = linked();
    plan.cards = vec![
        card(20, 1, &[20]),
        card(21, 1, &[LINK]),
        card(22, 2, &[22]),
        // It migrates away.
        card(23, 1, &[23, LINK]),
    ];
    let mut switch = switch(plan);
    assert_eq!(switch.topology().links_of(segment(1)), [port(LINK)]);
    assert_eq!(switch.topology().links_of(segment(2)), [], "nobody is there");
    let there = Verdict::Tunnel(port(LINK), segment(1));
    assert_eq!(decided(&mut switch, 20, on_a_segment(20, mac(21))).0, there);

    let arrives = |from: u8, to: Mac, of: u8| tag(&on_a_segment(from, to), segment(of));
    for (what, frame, expected) in [
        (
            "to a card here",
            arrives(21, mac(20), 1),
            Verdict::Landed(Landing::Port(port(20))),
        ),
        (
            "to all",
            arrives(21, Mac::BROADCAST, 1),
            Verdict::Landed(Landing::All(segment(1))),
        ),
        (
            "on a segment that it is not on",
            arrives(21, mac(22), 2),
            Verdict::Drop(Reason::SpoofedMac),
        ),
        (
            "on a segment that is not here",
            arrives(21, mac(20), 3),
            Verdict::Drop(Reason::SpoofedMac),
        ),
        (
            "in the name of a card here",
            arrives(20, mac(23), 1),
            Verdict::Drop(Reason::SpoofedMac),
        ),
        (
            "without a tag",
            on_a_segment(21, mac(20)),
            Verdict::Drop(Reason::Ethertype),
        ),
    ] {
        assert_eq!(decided(&mut switch, LINK, frame).0, expected, "{what}");
    }
    let (_, frame) = decided(&mut switch, LINK, arrives(21, mac(20), 1));
    assert_eq!(frame[TAG..], on_a_segment(21, mac(20)), "as it was sent");

    // A card that moves is found where it has spoken last.
    let to_23 = || on_a_segment(20, mac(23));
    assert_eq!(decided(&mut switch, 20, to_23()).0, Verdict::Forward(port(23)));
    decided(&mut switch, LINK, arrives(23, Mac::BROADCAST, 1));
    assert_eq!(decided(&mut switch, 20, to_23()).0, there);
    assert_eq!(
        decided(&mut switch, 23, on_a_segment(23, mac(20))).0,
        Verdict::Drop(Reason::Migrated)
    );
}
