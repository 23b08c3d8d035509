//! Two tenants on one switch, and frames between them.

mod closed_ports;
mod connections;
mod hostile;
mod offers;
mod peers;

use std::net::Ipv4Addr;

use serde_json::json;

use super::*;
use crate::build::Route;
use crate::checksum;
use crate::outside::{Allowed, Outside};
use crate::packet::{ETHERNET_HEADER, Ipv4, TCP, Transport};
use crate::policy::Policies;
use crate::policy::compile::{Endpoint, Namespace, Source, compile};
use crate::service::{Backend, ServicePort};
use crate::topology::{Gateway, Plan, SegmentCard, Tenant};

pub(super) const SHOP: Tenant = Tenant(1);
pub(super) const BANK: Tenant = Tenant(2);
pub(super) const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
pub(super) const GATEWAY_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub(super) const VIP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
pub(super) const OUT: Ipv4Addr = Ipv4Addr::new(1, 1, 1, 1);

/// The guest with this number: 2, 3 and 4 are the shop's, 5 is the bank's.
pub(super) fn ip(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, 0, number)
}

pub(super) fn mac(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

pub(super) fn port(number: u8) -> PortId {
    PortId(u32::from(number))
}

pub(super) fn plan() -> Plan {
    let guest = |number: u8, tenant| Guest {
        tenant,
        mac: mac(number),
        address: ip(number),
        ports: vec![port(number)],
        hostname: format!("vm-{number}"),
        search: vec!["default.svc.cluster.local".into()],
        resolvers: vec![],
        options: vec![],
        accepts: None,
    };
    let service = |port, backends: &[(Ipv4Addr, u16)]| ServicePort {
        tenant: SHOP,
        address: VIP,
        protocol: TCP,
        port,
        backends: backends
            .iter()
            .map(|&(address, port)| Backend { address, port })
            .collect(),
        by_client: false,
    };
    Plan {
        gateway: Gateway {
            mac: GATEWAY_MAC,
            address: GATEWAY,
            network: "10.88.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            mtu: 1500,
            resolvers: vec![],
            domain: "cluster.local".into(),
            lease_seconds: 3600,
        },
        guests: vec![guest(2, SHOP), guest(3, SHOP), guest(4, SHOP), guest(5, BANK)],
        cards: vec![],
        peers: vec![],
        services: vec![
            service(80, &[(ip(3), 8080)]),
            service(81, &[]),
            service(82, &[(ip(5), 8080)]),
            service(83, &[(OUT, 443)]),
            service(84, &[(Ipv4Addr::LOCALHOST, 6443)]),
            service(85, &[(ip(2), 8080)]),
        ],
        policies: Policies::default(),
        outside: Outside::default(),
    }
}

pub(super) fn switch(plan: Plan) -> Switch {
    Switch::new(Arc::new(Topology::new(1, plan).unwrap()), Bounds::default())
}

/// Policies of the shop's namespace `default`, where every machine has the label `vm` with its number.
pub(super) fn policies(specs: &[serde_json::Value]) -> Policies {
    let endpoints: Vec<Endpoint> = (2..6)
        .map(|number| Endpoint {
            tenant: if number == 5 { BANK } else { SHOP },
            namespace: "default".into(),
            labels: json!({ "vm": number.to_string() }),
            address: ip(number),
            ports: vec![],
        })
        .collect();
    let namespaces = [SHOP, BANK].map(|tenant| Namespace {
        tenant,
        name: "default".into(),
        labels: json!({}),
    });
    let sources: Vec<Source> = specs
        .iter()
        .map(|spec| Source {
            tenant: SHOP,
            namespace: "default".into(),
            name: "policy".into(),
            spec: spec.clone(),
        })
        .collect();
    compile(&sources, &endpoints, &namespaces).0
}

/// From guest `from` to an address, at the card of whoever answers for it.
pub(super) fn route(from: u8, to: Ipv4Addr) -> Route {
    let dst_mac = match to.octets() {
        [10, 88, 0, number] if number > 1 => mac(number),
        _ => GATEWAY_MAC,
    };
    Route::new(mac(from), dst_mac, ip(from), to)
}

pub(super) fn tcp(route: Route, sport: u16, dport: u16, flags: u8) -> Vec<u8> {
    let mut segment = [0_u8; 24];
    segment[..2].copy_from_slice(&sport.to_be_bytes());
    segment[2..4].copy_from_slice(&dport.to_be_bytes());
    segment[7] = 9;
    segment[12] = 5 << 4;
    segment[13] = flags;
    segment[20..].copy_from_slice(b"data");
    let sum = checksum::of_segment(route.src, route.dst, TCP, &segment);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    // A datagram's frame has the header we need; its payload and protocol are replaced.
    let mut frame = build::udp(route, 0, 0, &[0; 16]);
    frame[ETHERNET_HEADER + 9] = TCP;
    frame[ETHERNET_HEADER + 10..ETHERNET_HEADER + 12].copy_from_slice(&[0, 0]);
    let header = checksum::of(&frame[ETHERNET_HEADER..ETHERNET_HEADER + 20]);
    frame[ETHERNET_HEADER + 10..ETHERNET_HEADER + 12].copy_from_slice(&header.to_be_bytes());
    frame[ETHERNET_HEADER + 20..].copy_from_slice(&segment);
    frame
}

pub(super) const SYN: u8 = 0x02;
pub(super) const SYN_ACK: u8 = 0x12;
pub(super) const ACK: u8 = 0x10;
pub(super) const FIN: u8 = 0x11;
pub(super) const RST: u8 = 0x04;

pub(super) fn ping(route: Route, kind: u8, id: u8) -> Vec<u8> {
    let mut frame = build::echo_reply(route, &[8, 0, 0, 0, 0, id, 0, 1]);
    frame[ETHERNET_HEADER + 20] = kind;
    frame
}

/// What another reader finds in a frame, with its checksums judged.
pub(super) fn read(frame: &[u8]) -> (Mac, Mac, Ipv4) {
    use smoltcp::wire::{Ipv4Packet, TcpPacket};
    let ethernet = Ethernet::read(frame).unwrap();
    let packet = Ipv4Packet::new_checked(&frame[ETHERNET_HEADER..]).unwrap();
    assert!(packet.verify_checksum());
    let read = Ipv4::read(frame).unwrap();
    if let Transport::Tcp(_) = read.transport {
        let segment = TcpPacket::new_checked(packet.payload()).unwrap();
        assert!(segment.verify_checksum(&read.src.into(), &read.dst.into()));
    }
    (ethernet.src, ethernet.dst, read)
}

/// The verdict in a word, and the packet as it was sent on.
pub(super) fn decided(switch: &mut Switch, from: u8, mut frame: Vec<u8>) -> (Verdict, Vec<u8>) {
    let verdict = switch.decide(port(from), &mut frame, 0);
    (verdict, frame)
}

#[test]
fn new_connections_go_where_they_may() {
    use crate::outside::Refusal;
    let node_port = ServicePort {
        tenant: SHOP,
        address: GATEWAY,
        protocol: TCP,
        port: 30_080,
        backends: [Backend {
            address: ip(3),
            port: 8080,
        }]
        .into(),
        by_client: false,
    };
    let mut plan = plan();
    plan.services.push(node_port);
    plan.outside.allowed.push(Allowed {
        network: "127.0.0.1/32".parse().unwrap(),
        port: Some(8000),
    });
    let mut switch = switch(plan);
    #[derive(Debug, PartialEq)]
    enum Went {
        To(u8),
        Out(Ipv4Addr, u16, bool),
        Names,
        Told(Reason),
        Lost(Reason),
    }
    use Went::{Lost, Names, Out, To, Told};
    for (what, from, to, dport, expected) in [
        ("a neighbour", 2, ip(3), 22, To(3)),
        ("another tenant", 2, ip(5), 22, Lost(Reason::Tenant)),
        ("back from there", 5, ip(2), 22, Lost(Reason::Tenant)),
        ("a Service", 2, VIP, 80, To(3)),
        ("a Service's other port", 2, VIP, 8080, Told(Reason::NoService)),
        (
            "a Service with nobody behind",
            2,
            VIP,
            81,
            Told(Reason::NoService),
        ),
        (
            "a Service that leads to another tenant",
            2,
            VIP,
            82,
            Lost(Reason::Tenant),
        ),
        ("a Service that leads out", 2, VIP, 83, Out(OUT, 443, false)),
        (
            "a Service that leads to the host",
            2,
            VIP,
            84,
            Told(Reason::Outside(Refusal::Loopback)),
        ),
        (
            "another tenant's Service",
            5,
            VIP,
            80,
            Told(Reason::NoSuchAddress),
        ),
        ("a node port", 2, GATEWAY, 30_080, To(3)),
        (
            "another tenant's node port",
            5,
            GATEWAY,
            30_080,
            Told(Reason::NoService),
        ),
        ("the gateway's names", 2, GATEWAY, 53, Names),
        ("the gateway's nothing", 2, GATEWAY, 6443, Told(Reason::NoService)),
        ("nobody's address", 2, ip(99), 22, Told(Reason::NoSuchAddress)),
        ("the internet", 2, OUT, 443, Out(OUT, 443, false)),
        (
            "what the operator names",
            2,
            Ipv4Addr::LOCALHOST,
            8000,
            Out(Ipv4Addr::LOCALHOST, 8000, true),
        ),
        (
            "the host",
            2,
            Ipv4Addr::LOCALHOST,
            6443,
            Told(Reason::Outside(Refusal::Loopback)),
        ),
        (
            "metadata",
            2,
            Ipv4Addr::new(169, 254, 169, 254),
            80,
            Told(Reason::Outside(Refusal::LinkLocal)),
        ),
        ("everybody", 2, Ipv4Addr::BROADCAST, 9, Lost(Reason::Broadcast)),
        (
            "the network's broadcast",
            2,
            Ipv4Addr::new(10, 88, 255, 255),
            9,
            Lost(Reason::Broadcast),
        ),
        (
            "a group",
            2,
            Ipv4Addr::new(224, 0, 0, 251),
            5353,
            Lost(Reason::Broadcast),
        ),
    ] {
        let (verdict, frame) = decided(
            &mut switch,
            from,
            tcp(route(from, to), 4000 + dport % 1000, dport, SYN),
        );
        let went = match verdict {
            Verdict::Forward(PortId(port)) => {
                read(&frame);
                To(u8::try_from(port).unwrap())
            }
            Verdict::Gateway(arrival) => match arrival.service {
                GatewayService::Outside { address, port, named } => Out(address, port, named),
                GatewayService::Resolver => Names,
                GatewayService::Node => panic!("{what}"),
            },
            Verdict::Refuse(answer, reason) => {
                let (src, dst, told) = read(&answer);
                assert_eq!((src, dst, told.dst), (GATEWAY_MAC, mac(from), ip(from)), "{what}");
                assert!(
                    matches!(told.transport, Transport::Tcp(flags) if flags.rst()),
                    "{what}"
                );
                Told(reason)
            }
            Verdict::Drop(reason) => Lost(reason),
            other => panic!("{what}: {other:?}"),
        };
        assert_eq!(went, expected, "{what}");
    }
}

#[test]
fn a_port_speaks_for_its_own_card_and_address_only() {
    let plain = || tcp(route(2, ip(3)), 1, 2, SYN);
    let with = |at: usize, byte: u8| {
        let mut frame = plain();
        frame[at] = byte;
        frame
    };
    let arp = |sender_mac, sender, target| {
        let mut frame = build::arp_reply(sender_mac, sender, mac(3), target);
        frame[6..12].copy_from_slice(&mac(2).0);
        frame[21] = 1;
        frame
    };
    for (what, frame, expected) in [
        ("another card", with(11, 3), Reason::SpoofedMac),
        ("another address", with(29, 3), Reason::SpoofedAddress),
        ("the gateway's address", with(29, 1), Reason::SpoofedAddress),
        (
            "ARP for another card",
            arp(mac(3), ip(2), ip(4)),
            Reason::SpoofedMac,
        ),
        (
            "ARP for another address",
            arp(mac(2), ip(3), ip(4)),
            Reason::SpoofedAddress,
        ),
        (
            "IPv6",
            {
                let mut f = with(12, 0x86);
                f[13] = 0xdd;
                f
            },
            Reason::Ipv6,
        ),
        (
            "LLDP",
            {
                let mut f = with(12, 0x88);
                f[13] = 0xcc;
                f
            },
            Reason::Ethertype,
        ),
        (
            "RARP",
            {
                let mut f = with(12, 0x80);
                f[13] = 0x35;
                f
            },
            Reason::Announced,
        ),
        ("nonsense", vec![0; 13], Reason::Malformed),
        (
            "a packet to all cards",
            {
                let mut f = plain();
                f[..6].fill(0xff);
                f
            },
            Reason::Broadcast,
        ),
    ] {
        let mut switch = switch(plan());
        assert_eq!(
            decided(&mut switch, 2, frame).0,
            Verdict::Drop(expected),
            "{what}"
        );
        assert_eq!(switch.connections(), 0, "{what}: nothing is remembered");
    }
    let mut switch = switch(plan());
    assert_eq!(
        decided(&mut switch, 99, plain()).0,
        Verdict::Drop(Reason::Unattached)
    );
}

#[test]
fn the_switch_answers_for_neighbours_of_the_same_tenant() {
    let mut switch = switch(plan());
    for (what, sender, target, expected) in [
        ("the gateway", ip(2), GATEWAY, Some(GATEWAY_MAC)),
        ("a neighbour", ip(2), ip(3), Some(mac(3))),
        ("another tenant's machine", ip(2), ip(5), None),
        ("nobody", ip(2), ip(77), None),
        ("itself", ip(2), ip(2), None),
        ("a probe for its own address", Ipv4Addr::UNSPECIFIED, ip(2), None),
        (
            "a probe for a neighbour's address",
            Ipv4Addr::UNSPECIFIED,
            ip(3),
            Some(mac(3)),
        ),
    ] {
        let mut frame = build::arp_reply(mac(2), sender, Mac::BROADCAST, target);
        frame[21] = 1;
        let answer = match decided(&mut switch, 2, frame).0 {
            Verdict::Answer(frame) => Some(Arp::read(&frame).unwrap()),
            Verdict::Drop(_) => None,
            other => panic!("{what}: {other:?}"),
        };
        assert_eq!(
            answer.map(|arp| (arp.sender_mac, arp.sender)),
            expected.map(|mac| (mac, target)),
            "{what}"
        );
    }
}

#[test]
fn pings_are_answered_by_the_gateway_and_carried_to_neighbours() {
    let mut switch = switch(plan());
    let (verdict, _) = decided(&mut switch, 2, ping(route(2, GATEWAY), 8, 7));
    let Verdict::Answer(answer) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(read(&answer).2.transport, Transport::EchoReply);

    assert_eq!(
        decided(&mut switch, 3, ping(route(3, ip(2)), 0, 7)).0,
        Verdict::Drop(Reason::Unsolicited)
    );
    assert_eq!(
        decided(&mut switch, 2, ping(route(2, ip(3)), 8, 7)).0,
        Verdict::Forward(port(3))
    );
    assert_eq!(
        decided(&mut switch, 3, ping(route(3, ip(2)), 0, 7)).0,
        Verdict::Forward(port(2))
    );
    assert_eq!(
        decided(&mut switch, 3, ping(route(3, ip(2)), 0, 8)).0,
        Verdict::Drop(Reason::Unsolicited)
    );
    let (out, _) = decided(&mut switch, 2, ping(route(2, OUT), 8, 7));
    assert!(matches!(out, Verdict::Refuse(_, Reason::Untranslatable)));
}

#[test]
fn dhcp_is_answered_to_the_card() {
    let mut message = vec![0; 240];
    message[..4].copy_from_slice(&[1, 1, 6, 0]);
    message[28..34].copy_from_slice(&mac(2).0);
    message[236..].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    message.extend([53, 1, 1, 255]);
    let discover = |src| {
        let route = Route::new(mac(2), Mac::BROADCAST, src, Ipv4Addr::BROADCAST);
        build::udp(route, 68, 67, &message)
    };
    let mut switch = switch(plan());
    let Verdict::Answer(answer) = decided(&mut switch, 2, discover(Ipv4Addr::UNSPECIFIED)).0 else {
        panic!("no answer");
    };
    let (src, dst, packet) = read(&answer);
    assert_eq!((src, dst), (GATEWAY_MAC, mac(2)));
    assert_eq!((packet.src, packet.dst), (GATEWAY, ip(2)));
    assert_eq!((packet.sport, packet.dport), (67, 68));
    assert_eq!(
        decided(&mut switch, 2, discover(ip(3))).0,
        Verdict::Drop(Reason::SpoofedAddress)
    );
    assert_eq!(
        decided(&mut switch, 3, discover(Ipv4Addr::UNSPECIFIED)).0,
        Verdict::Drop(Reason::SpoofedMac)
    );
}

pub(super) fn segment(number: u8) -> SegmentId {
    SegmentId([number; 16])
}

/// A card with this number on a segment.
pub(super) fn card(number: u8, of: u8, ports: &[u8]) -> SegmentCard {
    SegmentCard {
        segment: segment(of),
        mac: mac(number),
        ports: ports.iter().copied().map(port).collect(),
    }
}

pub(super) fn on_a_segment(from: u8, to: Mac) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&mac(from).0);
    frame
}

#[test]
fn a_segment_is_a_plain_switch() {
    let mut plan = plan();
    plan.cards = vec![card(20, 1, &[20]), card(21, 1, &[21]), card(22, 2, &[22])];
    let mut switch = switch(plan);
    let frame = on_a_segment;
    for (what, from, frame, expected) in [
        (
            "to all",
            20,
            frame(20, Mac::BROADCAST),
            Verdict::Flood(segment(1)),
        ),
        ("learnt", 21, frame(21, mac(20)), Verdict::Forward(port(20))),
        (
            "another segment",
            22,
            frame(22, mac(20)),
            Verdict::Flood(segment(2)),
        ),
        (
            "spoofed",
            21,
            frame(20, mac(22)),
            Verdict::Drop(Reason::SpoofedMac),
        ),
    ] {
        assert_eq!(decided(&mut switch, from, frame).0, expected, "{what}");
    }
    assert_eq!(switch.topology().members(segment(1)), [port(20), port(21)]);
}

#[test]
fn the_newer_port_of_a_migrating_machine_wins() {
    let mut plan = plan();
    plan.guests[1].ports.push(port(33));
    let mut switch = switch(plan);
    let to_3 = || tcp(route(2, ip(3)), 1, 2, SYN);
    let from_3 = || tcp(route(3, ip(2)), 7, 8, SYN);
    assert_eq!(
        decided(&mut switch, 2, to_3()).0,
        Verdict::Forward(port(3)),
        "where it runs"
    );
    assert_eq!(decided(&mut switch, 3, from_3()).0, Verdict::Forward(port(2)));
    assert_eq!(
        decided(&mut switch, 33, from_3()).0,
        Verdict::Forward(port(2)),
        "it has arrived"
    );
    assert_eq!(decided(&mut switch, 2, to_3()).0, Verdict::Forward(port(33)));
    assert_eq!(
        decided(&mut switch, 3, from_3()).0,
        Verdict::Drop(Reason::Migrated),
        "from the past"
    );
    assert_eq!(switch.place_of(ip(3)), Some((port(33), mac(3))));
}
