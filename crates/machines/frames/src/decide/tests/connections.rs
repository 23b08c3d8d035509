//! Connections over time: translation there and back, policies that change, and a switch that has forgotten.

use serde_json::json;

use super::*;
use crate::track::Bounds;

fn udp(from: u8, to: Ipv4Addr, sport: u16, dport: u16) -> Vec<u8> {
    build::udp(route(from, to), sport, dport, b"x")
}

/// A port, and the packet's ends as they now are.
type Went = (PortId, (Ipv4Addr, u16), (Ipv4Addr, u16));

/// Where a frame went.
fn went(switch: &mut Switch, from: u8, frame: Vec<u8>) -> Result<Went, Reason> {
    let (verdict, frame) = decided(switch, from, frame);
    match verdict {
        Verdict::Forward(port) => {
            let (_, _, packet) = read(&frame);
            Ok((port, (packet.src, packet.sport), (packet.dst, packet.dport)))
        }
        Verdict::Drop(reason) | Verdict::Refuse(_, reason) => Err(reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_service_is_translated_there_and_back() {
    let mut switch = switch(plan());
    let there = went(&mut switch, 2, tcp(route(2, VIP), 4000, 80, SYN));
    assert_eq!(there, Ok((port(3), (ip(2), 4000), (ip(3), 8080))));
    let (verdict, frame) = decided(&mut switch, 3, tcp(route(3, ip(2)), 8080, 4000, SYN_ACK));
    assert_eq!(verdict, Verdict::Forward(port(2)));
    let (_, _, packet) = read(&frame);
    assert_eq!((packet.src, packet.sport, packet.dport), (VIP, 80, 4000));
    // The same client port, to the same machine without the Service: told apart by another port.
    let direct = went(&mut switch, 2, tcp(route(2, ip(3)), 4000, 8080, SYN)).unwrap();
    assert_eq!((direct.0, direct.2), (port(3), (ip(3), 8080)));
    assert_ne!(direct.1, (ip(2), 4000));
    let back = went(&mut switch, 3, tcp(route(3, ip(2)), 8080, direct.1.1, SYN_ACK));
    assert_eq!(back, Ok((port(2), (ip(3), 8080), (ip(2), 4000))));
}

#[test]
fn a_machine_reaches_itself_through_a_service() {
    let mut plan = plan();
    plan.policies = policies(&[json!({ "podSelector": {}, "policyTypes": ["Ingress", "Egress"] })]);
    let mut switch = switch(plan);
    let (verdict, frame) = decided(&mut switch, 2, tcp(route(2, VIP), 4000, 85, SYN));
    assert_eq!(verdict, Verdict::Forward(port(2)));
    let (src, dst, packet) = read(&frame);
    assert_eq!((src, dst), (GATEWAY_MAC, mac(2)));
    assert_eq!((packet.src, packet.dst, packet.dport), (GATEWAY, ip(2), 8080));
    let back = went(
        &mut switch,
        2,
        tcp(route(2, GATEWAY), 8080, packet.sport, SYN_ACK),
    );
    assert_eq!(back, Ok((port(2), (VIP, 85), (ip(2), 4000))));
}

#[test]
fn answers_pass_where_opening_does_not() {
    // Only 2 may open to 3, and only on one port; 3 may open nothing.
    let mut plan = plan();
    plan.policies = policies(&[
        json!({ "podSelector": { "matchLabels": { "vm": "3" } }, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{ "from": [{ "podSelector": { "matchLabels": { "vm": "2" } } }], "ports": [{ "port": 8080 }] }] }),
    ]);
    let mut switch = switch(plan);
    for (what, from, frame, expected) in [
        (
            "3 opens",
            3,
            tcp(route(3, ip(2)), 8080, 4000, SYN),
            Err(Reason::Egress),
        ),
        (
            "3 answers what nobody asked",
            3,
            tcp(route(3, ip(2)), 22, 4000, ACK),
            Err(Reason::Egress),
        ),
        ("2 opens", 2, tcp(route(2, ip(3)), 4000, 8080, SYN), Ok(port(3))),
        (
            "3 answers",
            3,
            tcp(route(3, ip(2)), 8080, 4000, SYN_ACK),
            Ok(port(2)),
        ),
        (
            "2 opens another port",
            2,
            tcp(route(2, ip(3)), 4000, 22, SYN),
            Err(Reason::Ingress),
        ),
        (
            "4 opens",
            4,
            tcp(route(4, ip(3)), 4000, 8080, SYN),
            Err(Reason::Ingress),
        ),
        (
            "2 through the Service",
            2,
            tcp(route(2, VIP), 5000, 80, SYN),
            Ok(port(3)),
        ),
        (
            "4 through the Service",
            4,
            tcp(route(4, VIP), 5000, 80, SYN),
            Err(Reason::Ingress),
        ),
        (
            "3 goes out",
            3,
            tcp(route(3, OUT), 5000, 443, SYN),
            Err(Reason::Egress),
        ),
        ("3 sends datagrams", 3, udp(3, ip(2), 1, 2), Err(Reason::Egress)),
        (
            "pings are no port 8080",
            2,
            ping(route(2, ip(3)), 8, 1),
            Err(Reason::Ingress),
        ),
    ] {
        assert_eq!(
            went(&mut switch, from, frame).map(|went| went.0),
            expected,
            "{what}"
        );
    }
    // Names may always be asked.
    let (verdict, _) = decided(&mut switch, 3, udp(3, GATEWAY, 5000, 53));
    assert!(matches!(verdict, Verdict::Gateway(arrival) if arrival.service == GatewayService::Resolver));
}

#[test]
fn a_new_policy_takes_hold_of_old_connections() {
    let mut switch = switch(plan());
    let out = |flags| tcp(route(2, ip(3)), 4000, 8080, flags);
    let back = |flags| tcp(route(3, ip(2)), 8080, 4000, flags);
    assert!(went(&mut switch, 2, out(SYN)).is_ok());
    assert!(went(&mut switch, 3, back(SYN_ACK)).is_ok());

    let allowing = json!({ "podSelector": { "matchLabels": { "vm": "3" } }, "ingress": [{ "ports": [{ "port": 8080 }] }] });
    let mut allowed = plan();
    allowed.policies = policies(&[allowing]);
    // Another order of guests: indices of the old topology must not be used.
    allowed.guests.reverse();
    switch.update(Arc::new(Topology::new(2, allowed).unwrap()));
    assert_eq!(
        went(&mut switch, 3, back(ACK)).map(|w| w.0),
        Ok(port(2)),
        "still allowed"
    );
    assert_eq!(went(&mut switch, 2, out(ACK)).map(|w| w.0), Ok(port(3)));

    let mut denied = plan();
    denied.policies = policies(&[json!({ "podSelector": { "matchLabels": { "vm": "3" } } })]);
    switch.update(Arc::new(Topology::new(3, denied).unwrap()));
    assert_eq!(
        went(&mut switch, 3, back(ACK)),
        Err(Reason::Ingress),
        "answers, too"
    );
    assert_eq!(went(&mut switch, 2, out(ACK)), Err(Reason::Ingress));
    assert_eq!(switch.connections(), 0);
}

#[test]
fn connections_outlive_a_switch_that_forgets() {
    // The switch of the first packets is gone; this one has seen nothing.
    for (what, from, frame, expected) in [
        (
            "between machines",
            2,
            tcp(route(2, ip(3)), 4000, 22, ACK),
            Ok(port(3)),
        ),
        (
            "the client of a Service",
            2,
            tcp(route(2, VIP), 4000, 80, ACK),
            Ok(port(3)),
        ),
        (
            "the server must wait for the client",
            3,
            tcp(route(3, ip(2)), 8080, 4000, ACK),
            Err(Reason::Unsolicited),
        ),
        (
            "half a handshake",
            3,
            tcp(route(3, ip(2)), 22, 4000, SYN_ACK),
            Err(Reason::Unsolicited),
        ),
        (
            "a reset",
            2,
            tcp(route(2, ip(3)), 4000, 22, RST),
            Err(Reason::Unsolicited),
        ),
        (
            "through the gateway: told",
            2,
            tcp(route(2, OUT), 4000, 443, ACK),
            Err(Reason::Unsolicited),
        ),
    ] {
        let mut switch = switch(plan());
        assert_eq!(went(&mut switch, from, frame).map(|w| w.0), expected, "{what}");
    }
    let mut switch = switch(plan());
    let (verdict, _) = decided(&mut switch, 2, tcp(route(2, OUT), 4000, 443, ACK));
    assert!(
        matches!(verdict, Verdict::Refuse(..)),
        "a reset, so that nobody waits"
    );
    // The Service's connection, as the same switch goes on with it.
    assert!(went(&mut switch, 2, tcp(route(2, VIP), 4000, 80, ACK)).is_ok());
    let back = went(&mut switch, 3, tcp(route(3, ip(2)), 8080, 4000, ACK));
    assert_eq!(back, Ok((port(2), (VIP, 80), (ip(2), 4000))));
}

#[test]
fn a_backend_that_leaves_keeps_tcp_and_loses_datagrams() {
    let with_udp = |backend: u8| {
        let mut plan = plan();
        plan.services = [TCP, crate::packet::UDP]
            .map(|protocol| ServicePort {
                tenant: SHOP,
                address: VIP,
                protocol,
                port: 80,
                backends: [Backend {
                    address: ip(backend),
                    port: 8080,
                }]
                .into(),
                by_client: false,
            })
            .into();
        plan
    };
    let mut switch = switch(with_udp(3));
    let both = |switch: &mut Switch, flags| {
        [tcp(route(2, VIP), 4000, 80, flags), udp(2, VIP, 4000, 80)]
            .map(|frame| went(switch, 2, frame).unwrap().0)
    };
    assert_eq!(both(&mut switch, SYN), [port(3), port(3)]);
    switch.update(Arc::new(Topology::new(2, with_udp(4)).unwrap()));
    assert_eq!(both(&mut switch, ACK), [port(3), port(4)]);
}

#[test]
fn a_port_can_be_used_again_after_its_connection_has_closed() {
    let mut switch = switch(plan());
    let open = || tcp(route(2, VIP), 4000, 80, SYN);
    assert!(went(&mut switch, 2, open()).is_ok());
    assert!(went(&mut switch, 3, tcp(route(3, ip(2)), 8080, 4000, FIN)).is_ok());
    assert!(went(&mut switch, 2, tcp(route(2, VIP), 4000, 80, FIN)).is_ok());
    let mut moved = plan();
    moved.services[0].backends = [Backend {
        address: ip(4),
        port: 8080,
    }]
    .into();
    switch.update(Arc::new(Topology::new(2, moved).unwrap()));
    assert_eq!(
        went(&mut switch, 2, open()).map(|w| w.0),
        Ok(port(4)),
        "resolved anew"
    );
}

#[test]
fn the_node_reaches_machines_of_the_tenant_it_names() {
    let mut plan = plan();
    plan.policies = policies(&[
        json!({ "podSelector": { "matchLabels": { "vm": "3" } }, "ingress": [{ "from": [{ "ipBlock": { "cidr": "1.0.0.0/8" } }] }] }),
    ]);
    let mut switch = switch(plan);
    let other = Ipv4Addr::new(9, 9, 9, 9);
    for (what, tenant, to, origin, expected) in [
        ("for itself", SHOP, (ip(3), 22), None, Ok(ip(3))),
        (
            "for a client whom a policy allows",
            SHOP,
            (ip(3), 22),
            Some(OUT),
            Ok(ip(3)),
        ),
        (
            "for another client",
            SHOP,
            (ip(3), 22),
            Some(other),
            Err(Denied::Policy(other, 22)),
        ),
        ("a Service", SHOP, (VIP, 80), None, Ok(ip(3))),
        (
            "a Service with nobody behind",
            SHOP,
            (VIP, 81),
            None,
            Err(Denied::NoBackend(VIP, 81)),
        ),
        (
            "a Service that leads out",
            SHOP,
            (VIP, 83),
            None,
            Err(Denied::Outside(OUT, 443)),
        ),
        (
            "a Service that leads to another tenant",
            SHOP,
            (VIP, 82),
            None,
            Err(Denied::NoSuchAddress(ip(5))),
        ),
        (
            "in another tenant's name",
            BANK,
            (ip(3), 22),
            None,
            Err(Denied::NoSuchAddress(ip(3))),
        ),
        (
            "somewhere else",
            SHOP,
            (OUT, 443),
            None,
            Err(Denied::NoSuchAddress(OUT)),
        ),
    ] {
        let found = switch
            .open_from_node(tenant, to, TCP, origin, 0)
            .map(|connection| connection.tuple.dst);
        assert_eq!(found, expected, "{what}");
    }
    let open = switch.open_from_node(SHOP, (ip(3), 22), TCP, None, 0).unwrap();
    assert_eq!((open.port, open.mac, open.tuple.src), (port(3), mac(3), GATEWAY));
    let answer = || tcp(route(3, GATEWAY), 22, open.tuple.sport, SYN_ACK);
    let (verdict, _) = decided(&mut switch, 3, answer());
    assert!(
        matches!(verdict, Verdict::Gateway(arrival) if arrival.service == GatewayService::Node && arrival.tuple == open.tuple)
    );
    switch.close(&open.tuple);
    let (verdict, _) = decided(&mut switch, 3, answer());
    assert!(
        matches!(verdict, Verdict::Refuse(_, Reason::NoService)),
        "{verdict:?}"
    );
}

#[test]
fn errors_are_carried_back_along_their_connection() {
    let mut switch = switch(plan());
    let sent = udp(2, ip(3), 4000, 9);
    let error = |about: &[u8], from: u8, to: Ipv4Addr| {
        build::unreachable(
            route(from, to),
            build::Unreachable::Port,
            &about[ETHERNET_HEADER..],
        )
    };
    assert_eq!(
        went(&mut switch, 3, error(&sent, 3, ip(2))),
        Err(Reason::Unsolicited),
        "about nothing"
    );
    assert!(went(&mut switch, 2, sent.clone()).is_ok());
    assert_eq!(
        went(&mut switch, 3, error(&sent, 3, ip(2))).map(|w| w.0),
        Ok(port(2))
    );
    assert_eq!(
        went(&mut switch, 4, error(&sent, 4, ip(2))),
        Err(Reason::Unsolicited),
        "another machine's connection"
    );
}

#[test]
fn pieces_pass_where_no_policy_looks() {
    let piece = |to: Ipv4Addr| {
        let mut frame = udp(2, to, 1, 2);
        frame[ETHERNET_HEADER + 6] = 0x20;
        frame
    };
    let verdict = |plan: Plan, to| decided(&mut switch(plan), 2, piece(to)).0;
    assert_eq!(verdict(plan(), ip(3)), Verdict::Forward(port(3)));
    assert_eq!(verdict(plan(), ip(5)), Verdict::Drop(Reason::Tenant));
    assert_eq!(verdict(plan(), OUT), Verdict::Drop(Reason::Fragment));
    assert_eq!(verdict(plan(), VIP), Verdict::Drop(Reason::Fragment));
    let mut isolated = plan();
    isolated.policies =
        policies(&[json!({ "podSelector": { "matchLabels": { "vm": "3" } }, "ingress": [{}] })]);
    assert_eq!(verdict(isolated, ip(3)), Verdict::Drop(Reason::Fragment));
}

#[test]
fn a_flood_of_connections_ends_at_the_guest_who_makes_it() {
    let bounds = Bounds {
        total: 100,
        per_guest: 40,
    };
    let mut switch = Switch::new(Arc::new(Topology::new(1, plan()).unwrap()), bounds);
    for sport in 1..200 {
        let (verdict, _) = decided(&mut switch, 2, tcp(route(2, ip(3)), sport, 80, SYN));
        let expected = if sport <= 40 {
            Verdict::Forward(port(3))
        } else {
            Verdict::Drop(Reason::Full)
        };
        assert_eq!(verdict, expected, "{sport}");
    }
    assert!(matches!(
        decided(&mut switch, 4, tcp(route(4, ip(3)), 1, 80, SYN)).0,
        Verdict::Forward(_)
    ));
}
