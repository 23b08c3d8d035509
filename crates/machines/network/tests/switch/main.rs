//! The switch with guests that are real TCP/IP stacks behind the sockets that QEMU would listen on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test")]

mod guest;
mod lifecycle;
mod links;
mod real_qemu;
mod taps;
mod world;

use std::net::Ipv4Addr;

use fairway_fabric::{Destination, DialError, Fabric};
use fairway_machines_network::frames::Reason;
use serde_json::json;
use smoltcp::socket::tcp::State;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use guest::until;
use world::{GATEWAY, VIP, World, ip};

#[test]
fn guests_get_addresses_and_reach_each_other() {
    let mut world = World::new(&[(2, "shop"), (3, "shop")]);
    let [a, b] = world.guests.as_mut_slice() else {
        panic!()
    };
    a.ask_for_address();
    b.ask_for_address();
    let leases = until("two leases", &mut [a, b], |guests| {
        Some((guests[0].lease.clone()?, guests[1].lease.clone()?))
    });
    assert_eq!((leases.0.address, leases.1.address), (ip(2), ip(3)));
    assert_eq!(leases.0.router, Some(GATEWAY));
    assert_eq!(leases.0.resolvers, [GATEWAY]);

    for (what, address) in [("the gateway", GATEWAY), ("the neighbour", ip(3))] {
        let ping = a.ping(address, u16::from(address.octets()[3]));
        until(what, &mut [a, b], |guests| guests[0].has_pong(ping).then_some(()));
    }

    b.echo_on(80);
    let connection = a.connect(ip(3), 80, 4000);
    let message: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
    let (mut sent, mut heard) = (0, Vec::new());
    until("the echo of 800 kB", &mut [a, b], |guests| {
        let socket = guests[0].tcp(connection);
        if socket.can_send() && sent < message.len() {
            sent += socket.send_slice(&message[sent..]).unwrap();
        }
        heard.extend(guests[0].heard(connection));
        (heard.len() >= message.len()).then_some(())
    });
    assert!(heard == message);
    let counters = world.counters();
    assert_eq!((counters.connected_ports, counters.overflowed), (2, 0));
}

#[test]
fn a_service_leads_to_its_machine() {
    let mut world = World::new(&[(2, "shop"), (3, "shop")]);
    world.add_service("shop", VIP, 80, &[(ip(3), 8080)]);
    world.apply();
    let [a, b] = world.guests.as_mut_slice() else {
        panic!()
    };
    b.echo_on(8080);
    let connection = a.connect(VIP, 80, 4000);
    until("an open connection", &mut [a, b], |guests| {
        guests[0].tcp(connection).may_send().then_some(())
    });
    a.tcp(connection).send_slice(b"through the Service").unwrap();
    let mut heard = Vec::new();
    until("its echo", &mut [a, b], |guests| {
        heard.extend(guests[0].heard(connection));
        (heard == b"through the Service").then_some(())
    });
    let nobody = a.connect(VIP, 81, 4001);
    until("a refusal", &mut [a, b], |guests| {
        (guests[0].tcp(nobody).state() == State::Closed).then_some(())
    });
}

#[test]
fn guests_go_out_through_the_gateway_and_not_to_the_host() {
    let mut world = World::new(&[(2, "shop")]);
    let (allowed, forbidden, datagrams) = world.runtime.block_on(async {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        (echo, other, datagrams)
    });
    let [allowed_port, forbidden_port, datagram_port] = [
        allowed.local_addr().unwrap().port(),
        forbidden.local_addr().unwrap().port(),
        datagrams.local_addr().unwrap().port(),
    ];
    world.runtime.spawn(async move {
        loop {
            let (mut client, _) = allowed.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = client.split();
                tokio::io::copy(&mut read, &mut write).await.unwrap();
                write.shutdown().await.unwrap();
            });
        }
    });
    world.runtime.spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = datagrams.recv_from(&mut buffer).await.unwrap();
            datagrams.send_to(&buffer[..length], from).await.unwrap();
        }
    });
    world.allow(Ipv4Addr::LOCALHOST, allowed_port);
    world.allow(Ipv4Addr::LOCALHOST, datagram_port);
    world.apply();
    let [a] = world.guests.as_mut_slice() else {
        panic!()
    };

    let message: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
    let connection = a.connect(Ipv4Addr::LOCALHOST, allowed_port, 4000);
    let (mut sent, mut heard, mut closed) = (0, Vec::new(), false);
    until("400 kB there and back, and the end", &mut [a], |guests| {
        let socket = guests[0].tcp(connection);
        if socket.can_send() && sent < message.len() {
            sent += socket.send_slice(&message[sent..]).unwrap();
        }
        if sent == message.len() && !closed {
            socket.close();
            closed = true;
        }
        heard.extend(guests[0].heard(connection));
        let ended = matches!(guests[0].tcp(connection).state(), State::TimeWait | State::Closed);
        (heard.len() >= message.len() && ended).then_some(())
    });
    assert!(heard == message);

    let question = a.send_datagram(Ipv4Addr::LOCALHOST, datagram_port, 5000, b"a datagram");
    let answer = until("a datagram back", &mut [a], |guests| guests[0].datagram(question));
    assert_eq!(answer, b"a datagram");

    for (what, address, port) in [
        (
            "a port of the host that is not allowed",
            Ipv4Addr::LOCALHOST,
            forbidden_port,
        ),
        ("metadata", Ipv4Addr::new(169, 254, 169, 254), 80),
        ("a port of the gateway", GATEWAY, 6443),
    ] {
        let refused = a.connect(address, port, 4001);
        until(what, &mut [a], |guests| {
            (guests[0].tcp(refused).state() == State::Closed).then_some(())
        });
    }
    // The host's address towards the world, where it has one, is no way in either.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    if probe.connect("192.0.2.1:9").is_ok()
        && let std::net::IpAddr::V4(own) = probe.local_addr().unwrap().ip()
    {
        let listener = std::net::TcpListener::bind((own, 0)).unwrap();
        let refused = a.connect(own, listener.local_addr().unwrap().port(), 4002);
        until("the host's own address", &mut [a], |guests| {
            (guests[0].tcp(refused).state() == State::Closed).then_some(())
        });
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nothing came");
    }
    until("flows that ended are gone", &mut [], |_| {
        (world
            .network
            .as_ref()
            .map(|network| world.runtime.block_on(network.counters()).unwrap().flows)
            <= Some(1))
        .then_some(())
    });
}

#[test]
fn the_node_dials_guests_of_the_workspace_it_names() {
    let mut world = World::new(&[(2, "shop"), (3, "bank")]);
    world.add_service("shop", VIP, 80, &[(ip(2), 8080)]);
    world.apply();
    world.guests[0].echo_on(8080);
    let network = world.network.clone().unwrap();
    let dialling = |to: Destination| {
        let network = network.clone();
        async move {
            let mut connection = network.dial(to).await?;
            connection.write_all(b"from the node").await.unwrap();
            connection.shutdown().await.unwrap();
            let mut heard = Vec::new();
            connection.read_to_end(&mut heard).await.unwrap();
            Ok::<_, DialError>(heard)
        }
    };
    for (what, workspace, address, port, expected) in [
        ("a machine", "shop", ip(2), 8080, Ok(())),
        ("a Service", "shop", VIP, 80, Ok(())),
        (
            "another workspace's machine",
            "shop",
            ip(3),
            8080,
            Err("no machine of this workspace"),
        ),
        (
            "in another workspace's name",
            "bank",
            ip(2),
            8080,
            Err("no machine of this workspace"),
        ),
        (
            "a workspace that has nothing",
            "nobody",
            ip(2),
            8080,
            Err("has no machine on this node"),
        ),
        ("a port where nothing listens", "shop", ip(2), 9, Err("refused")),
    ] {
        let task = world
            .runtime
            .spawn(dialling(Destination::new(workspace, address, port)));
        let [a, b] = world.guests.as_mut_slice() else {
            panic!()
        };
        until(what, &mut [a, b], |_| task.is_finished().then_some(()));
        let result = world.runtime.block_on(task).unwrap();
        match (result, expected) {
            (Ok(heard), Ok(())) => assert_eq!(heard, b"from the node", "{what}"),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{what}: {error}"),
            (result, _) => panic!("{what}: {result:?}"),
        }
    }
}

#[test]
fn tenants_and_policies_keep_guests_apart() {
    let mut world = World::new(&[(2, "shop"), (3, "shop"), (4, "bank")]);
    world.policies = vec![json!({
        "podSelector": { "matchLabels": { "vm": "3" } },
        "ingress": [{ "from": [{ "podSelector": { "matchLabels": { "vm": "2" } } }], "ports": [{ "port": 80 }] }],
    })];
    world.apply();
    let [a, b, c] = world.guests.as_mut_slice() else {
        panic!()
    };
    b.echo_on(80);
    b.echo_on(81);
    c.echo_on(80);
    let allowed = a.connect(ip(3), 80, 4000);
    let forbidden = a.connect(ip(3), 81, 4001);
    let foreign = a.connect(ip(4), 80, 4002);
    until("the allowed connection", &mut [a, b, c], |guests| {
        guests[0].tcp(allowed).may_send().then_some(())
    });
    let counters = until("drops", &mut [a, b, c], |_| {
        let network = world.network.as_ref().unwrap();
        let counters = world.runtime.block_on(network.counters()).unwrap();
        // The foreign neighbour is not even found: ARP is not answered across tenants.
        let enough = counters.dropped.contains_key(&Reason::Ingress)
            && counters.dropped.contains_key(&Reason::NoSuchNeighbour);
        enough.then_some(counters)
    });
    assert!(!a.tcp(forbidden).may_send() && !a.tcp(foreign).may_send());
    assert!(
        c.seen.is_empty(),
        "the bank has seen nothing: {:?}",
        counters.dropped
    );

    // A frame straight to the foreign card, without asking for it.
    let mut frame = b
        .seen
        .iter()
        .find(|frame| frame[12..14] == [8, 0])
        .unwrap()
        .clone();
    frame[..6].copy_from_slice(&c.mac);
    frame[30..34].copy_from_slice(&ip(4).octets());
    a.send_frame(&frame);
    // And in the name of others.
    let mut spoofed = frame.clone();
    spoofed[6..12].copy_from_slice(&b.mac);
    a.send_frame(&spoofed);
    frame[26..30].copy_from_slice(&ip(3).octets());
    a.send_frame(&frame);
    until("more drops", &mut [a, b, c], |_| {
        let network = world.network.as_ref().unwrap();
        let dropped = world.runtime.block_on(network.counters()).unwrap().dropped;
        [Reason::Tenant, Reason::SpoofedMac, Reason::SpoofedAddress]
            .iter()
            .all(|reason| dropped.contains_key(reason))
            .then_some(())
    });
    assert!(c.seen.is_empty());
}

#[test]
fn names_are_answered_by_the_askers_workspace() {
    let mut world = World::new(&[(2, "shop"), (3, "bank")]);
    for (workspace, last) in [("shop", 2), ("bank", 3)] {
        world.names.set_zone(
            workspace,
            fairway_dns::Zone::new(
                "cluster.local",
                vec![],
                &[],
                &[fairway_dns::zone::Machine {
                    namespace: "default".into(),
                    name: "me".into(),
                    hostname: None,
                    subdomain: None,
                    address: ip(last),
                }],
            ),
        );
    }
    // A question for me.default.vm.cluster.local, type A.
    let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["me", "default", "vm", "cluster", "local"] {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    let [a, b] = world.guests.as_mut_slice() else {
        panic!()
    };
    let asked = [
        a.send_datagram(GATEWAY, 53, 5000, &question),
        b.send_datagram(GATEWAY, 53, 5000, &question),
    ];
    let answers = until("two answers", &mut [a, b], {
        let mut found = [None, None];
        move |guests| {
            for index in 0..2 {
                found[index] = found[index]
                    .take()
                    .or_else(|| guests[index].datagram(asked[index]));
            }
            Some([found[0].clone()?, found[1].clone()?])
        }
    });
    assert!(answers[0].ends_with(&ip(2).octets()), "{:?}", answers[0]);
    assert!(answers[1].ends_with(&ip(3).octets()), "{:?}", answers[1]);

    // The same over a stream.
    let connection = a.connect(GATEWAY, 53, 4000);
    until("a stream", &mut [a, b], |guests| {
        guests[0].tcp(connection).may_send().then_some(())
    });
    let mut framed = u16::try_from(question.len()).unwrap().to_be_bytes().to_vec();
    framed.extend(&question);
    a.tcp(connection).send_slice(&framed).unwrap();
    let mut heard = Vec::new();
    until("its answer", &mut [a, b], |guests| {
        heard.extend(guests[0].heard(connection));
        heard.ends_with(&ip(2).octets()).then_some(())
    });
}
