//! Contradictions that must not become a topology.

use super::*;

fn guest(address: &str, mac: u8, port: u32) -> Guest {
    Guest {
        tenant: Tenant(1),
        mac: Mac([2, 0, 0, 0, 0, mac]),
        address: address.parse().unwrap(),
        ports: vec![PortId(port)],
        hostname: "vm".into(),
        search: vec![],
        resolvers: vec![],
        options: vec![],
        accepts: None,
    }
}

fn plan(guests: Vec<Guest>) -> Plan {
    Plan {
        gateway: Gateway {
            mac: Mac([2, 0, 0, 0, 0, 1]),
            address: Ipv4Addr::new(10, 88, 0, 1),
            network: "10.88.0.0/16".parse().unwrap(),
            services: "10.96.0.0/12".parse().unwrap(),
            mtu: 1500,
            resolvers: vec![],
            domain: "cluster.local".into(),
            lease_seconds: 3600,
        },
        guests,
        cards: vec![],
        peers: vec![],
        services: vec![],
        policies: Policies::default(),
        outside: Outside::default(),
    }
}

#[test]
fn contradictions_are_found() {
    let mac = |last| Mac([2, 0, 0, 0, 0, last]);
    for (guests, expected) in [
        (vec![guest("10.88.0.2", 2, 1), guest("10.88.0.3", 3, 2)], None),
        (
            vec![guest("10.88.0.2", 2, 1), guest("10.88.0.2", 3, 2)],
            Some(Contradiction::AddressTwice(Ipv4Addr::new(10, 88, 0, 2))),
        ),
        (
            vec![guest("10.88.0.2", 2, 1), guest("10.88.0.3", 2, 2)],
            Some(Contradiction::MacTwice(mac(2))),
        ),
        (
            vec![guest("10.88.0.2", 1, 1)],
            Some(Contradiction::MacTwice(mac(1))),
        ),
        (
            vec![guest("10.88.0.2", 2, 1), guest("10.88.0.3", 3, 1)],
            Some(Contradiction::PortTwice(PortId(1))),
        ),
        (
            vec![guest("10.88.0.1", 2, 1)],
            Some(Contradiction::Misplaced(
                Ipv4Addr::new(10, 88, 0, 1),
                "10.88.0.0/16".parse().unwrap(),
            )),
        ),
        (
            vec![guest("10.96.0.9", 2, 1)],
            Some(Contradiction::Misplaced(
                Ipv4Addr::new(10, 96, 0, 9),
                "10.88.0.0/16".parse().unwrap(),
            )),
        ),
    ] {
        let found = Topology::new(1, plan(guests.clone())).err();
        assert_eq!(found, expected, "{guests:?}");
    }

    let mut neighbours = plan(vec![guest("10.88.0.2", 2, 1), guest("10.88.0.3", 2, 2)]);
    neighbours.guests[1].tenant = Tenant(2);
    assert!(
        Topology::new(1, neighbours).is_ok(),
        "tenants do not see each other's cards"
    );

    let mut overlapping = plan(vec![]);
    overlapping.gateway.services = "10.0.0.0/8".parse().unwrap();
    assert!(matches!(
        Topology::new(1, overlapping),
        Err(Contradiction::Overlap(..))
    ));
    let mut group = plan(vec![guest("10.88.0.2", 2, 1)]);
    group.guests[0].mac = Mac([3, 0, 0, 0, 0, 2]);
    assert!(matches!(Topology::new(1, group), Err(Contradiction::GroupMac(_))));
}

#[test]
fn a_lease_names_the_gateway_unless_resolvers_are_configured() {
    let mut plan = plan(vec![guest("10.88.0.2", 2, 1)]);
    let lease = |plan: &Plan| {
        let topology = Topology::new(1, plan.clone()).unwrap();
        topology.lease(&topology.guests()[0])
    };
    assert_eq!(lease(&plan).resolvers, [Ipv4Addr::new(10, 88, 0, 1)]);
    plan.gateway.resolvers = vec![Ipv4Addr::new(9, 9, 9, 9)];
    assert_eq!(lease(&plan).resolvers, [Ipv4Addr::new(9, 9, 9, 9)]);
    plan.guests[0].resolvers = vec![Ipv4Addr::new(1, 1, 1, 1)];
    plan.guests[0].options = vec![(67, b"pxe".to_vec())];
    let own = lease(&plan);
    assert_eq!(own.resolvers, [Ipv4Addr::new(1, 1, 1, 1)]);
    assert_eq!(own.options, [(67, b"pxe".to_vec())]);
}
