//! Which connections are offered to whoever else can carry frames.

use super::*;

const LINK: u8 = 90;

/// Sends packets of a connection both ways until it is busy, and says what was offered.
fn offered(switch: &mut Switch, from: u8, to: Ipv4Addr, by_gateway: bool) -> Vec<Offer> {
    let mut there = route(from, to);
    if by_gateway {
        there = Route::new(mac(from), GATEWAY_MAC, ip(from), to);
    }
    decided(switch, from, tcp(there, 4000, 22, SYN));
    let [_, _, _, number] = to.octets();
    decided(switch, number, tcp(route(number, ip(from)), 22, 4000, SYN_ACK));
    for _ in 0..100 {
        decided(switch, from, tcp(there, 4000, 22, ACK));
    }
    switch.take_offers()
}

#[test]
fn busy_connections_between_cards_of_this_node_are_offered() {
    let mut plan = plan();
    plan.peers = vec![port(LINK)];
    plan.guests[2].ports = vec![port(LINK)];
    let mut silent = switch(plan.clone());
    assert_eq!(offered(&mut silent, 2, ip(3), false), [], "nobody wants any");
    let mut switch = switch(plan);
    switch.offer_connections();
    let found = offered(&mut switch, 2, ip(3), false);
    let [offer] = found.as_slice() else {
        panic!("one direction, once: {found:?}");
    };
    assert_eq!((offer.from, offer.to), (port(2), port(3)));
    assert_eq!((offer.from_mac, offer.to_mac), (mac(2), mac(3)));
    assert_eq!((offer.tuple.src, offer.tuple.sport), (ip(2), 4000));
    assert_eq!((offer.tuple.dst, offer.tuple.dport), (ip(3), 22));
    assert_eq!(switch.take_offers(), [], "they are taken once");
    for (why, from, to, by_gateway) in [
        ("another node's", 2, ip(4), false),
        ("another tenant's", 2, ip(5), false),
        ("through a Service", 2, VIP, false),
        (
            "sent to the gateway, whose card it then comes from",
            3,
            ip(2),
            true,
        ),
    ] {
        assert_eq!(offered(&mut switch, from, to, by_gateway), [], "{why}");
    }
}

#[test]
fn what_is_carried_elsewhere_is_offered_again_after_a_while() {
    let mut switch = switch(plan());
    switch.offer_connections();
    assert_eq!(offered(&mut switch, 2, ip(3), false).len(), 1);
    let mut at = |now: u64| {
        for _ in 0..100 {
            let mut frame = tcp(route(2, ip(3)), 4000, 22, ACK);
            switch.decide(port(2), &mut frame, now);
        }
        switch.take_offers().len()
    };
    assert_eq!(at(1000), 0, "it may still be on its way");
    assert_eq!(at(10_000), 1);
    assert_eq!(at(20_000), 1);
    // It ends: both sides have said so.
    for (from, to, sport, dport) in [(2, 3, 4000, 22), (3, 2, 22, 4000)] {
        let mut frame = tcp(route(from, ip(to)), sport, dport, ACK | FIN);
        switch.decide(port(from), &mut frame, 20_000);
    }
    for _ in 0..100 {
        let mut frame = tcp(route(2, ip(3)), 4000, 22, ACK);
        switch.decide(port(2), &mut frame, 27_000);
    }
    assert_eq!(switch.take_offers(), []);
}
