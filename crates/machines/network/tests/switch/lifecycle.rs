//! A switch that ends and comes back, machines that do, and machines that move.

use std::sync::Arc;
use std::time::Duration;

use fairway_fabric::{Destination, forward};
use fairway_machines_network::frames::packet::UDP;
use fairway_machines_network::frames::service::{Backend, ServicePort};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::guest::{Guest, until};
use crate::world::{VIP, World, ip};

#[test]
fn guests_are_back_after_the_switch_was_killed() {
    let mut world = World::new(&[(2, "shop"), (3, "shop")]);
    world.add_service("shop", VIP, 80, &[(ip(3), 8080)]);
    world.apply();
    let sessions = {
        let [a, b] = world.guests.as_mut_slice() else {
            panic!()
        };
        b.echo_on(80);
        b.echo_on(8080);
        let sessions = [a.connect(ip(3), 80, 4000), a.connect(VIP, 80, 4001)];
        until("open sessions", &mut [a, b], |guests| {
            sessions
                .iter()
                .all(|session| guests[0].tcp(*session).may_send())
                .then_some(())
        });
        sessions
    };
    // The thread ends with its handle; the sockets are closed as by a process that is killed.
    world.network = None;
    until("the loss", &mut world.guests.iter_mut().collect::<Vec<_>>(), {
        let since = std::time::Instant::now();
        move |_| (since.elapsed() > Duration::from_millis(200)).then_some(())
    });
    world.start();
    let [a, b] = world.guests.as_mut_slice() else {
        panic!()
    };
    until("connected again", &mut [a, b], |guests| {
        guests.iter().all(|guest| guest.connected == 2).then_some(())
    });
    for (what, session) in [("the neighbour's", sessions[0]), ("the Service's", sessions[1])] {
        a.tcp(session).send_slice(b"still there").unwrap();
        let mut heard = Vec::new();
        until(what, &mut [a, b], |guests| {
            heard.extend(guests[0].heard(session));
            (heard == b"still there").then_some(())
        });
    }
}

#[test]
fn a_machine_that_was_restarted_is_connected_again() {
    let mut world = World::new(&[(2, "shop"), (3, "shop")]);
    {
        let [a, b] = world.guests.as_mut_slice() else {
            panic!()
        };
        until("both connected", &mut [a, b], |guests| {
            guests.iter().all(|guest| guest.connected == 1).then_some(())
        });
    }
    let old = world.guests.pop().unwrap();
    let directory = old.path.parent().unwrap().to_path_buf();
    std::fs::remove_file(&old.path).unwrap();
    drop(old);
    let mut reborn = Guest::new(&directory, 3);
    reborn.ask_for_address();
    let a = &mut world.guests[0];
    let lease = until("the same address", &mut [a, &mut reborn], |guests| {
        guests[1].lease.clone()
    });
    assert_eq!(lease.address, ip(3));
    let ping = a.ping(ip(3), 9);
    until("a ping", &mut [a, &mut reborn], |guests| {
        guests[0].has_pong(ping).then_some(())
    });
}

#[test]
fn a_guest_that_speaks_nonsense_is_cut_off_and_others_are_not() {
    let mut world = World::new(&[(2, "shop"), (3, "shop"), (4, "shop")]);
    let [a, b, c] = world.guests.as_mut_slice() else {
        panic!()
    };
    until("all connected", &mut [a, b, c], |guests| {
        guests.iter().all(|guest| guest.connected == 1).then_some(())
    });
    // Too long for a frame: the length alone breaks the connection, which is then made anew.
    c.send_frame(&vec![0; 100_000]);
    until("cut off, and connected again", &mut [a, b, c], |guests| {
        (guests[2].connected > 1).then_some(())
    });
    let ping = a.ping(ip(3), 1);
    until("the others", &mut [a, b, c], |guests| {
        guests[0].has_pong(ping).then_some(())
    });
    let ping = c.ping(ip(3), 2);
    until("itself, again", &mut [a, b, c], |guests| {
        guests[2].has_pong(ping).then_some(())
    });
}

#[test]
fn a_session_survives_a_migration() {
    let mut world = World::new(&[(2, "shop"), (3, "shop")]);
    let directory = world.guests[0].path.parent().unwrap().join("destination");
    std::fs::create_dir(&directory).unwrap();
    // The destination's card exists, and is silent, while the source runs.
    let mut destination = Guest::new(&directory, 3);
    let second = destination.path.clone();
    world.apply_with(|network, plan| plan.guests[1].ports.push(network.attach(second)));
    let [a, b] = world.guests.as_mut_slice() else {
        panic!()
    };
    b.echo_on(80);
    let session = a.connect(ip(3), 80, 4000);
    until("a session", &mut [a, b], |guests| {
        guests[0].tcp(session).may_send().then_some(())
    });
    // The guest moves: its stack, with everything in it, now has the other card.
    b.move_to(&mut destination);
    until("the new card is connected", &mut [b], |guests| {
        (guests[0].connected == 1).then_some(())
    });
    b.announce();
    a.tcp(session).send_slice(b"after the move").unwrap();
    let mut heard = Vec::new();
    until("the echo from there", &mut [a, b], |guests| {
        heard.extend(guests[0].heard(session));
        (heard == b"after the move").then_some(())
    });
}

#[test]
fn a_port_of_the_host_leads_to_a_guest() {
    let mut world = World::new(&[(2, "shop")]);
    world.guests[0].echo_on(8080);
    let listener = world.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let door = listener.local_addr().unwrap();
    let network = world.network.clone().unwrap();
    let target = Arc::new(Destination::new("shop", ip(2), 8080));
    world.runtime.spawn(forward::serve(listener, network, target));
    let client = world.runtime.spawn(async move {
        let mut client = TcpStream::connect(door).await.unwrap();
        client.write_all(b"by the node's port").await.unwrap();
        client.shutdown().await.unwrap();
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        heard
    });
    let [a] = world.guests.as_mut_slice() else {
        panic!()
    };
    until("a client of the host", &mut [a], |_| {
        client.is_finished().then_some(())
    });
    assert_eq!(world.runtime.block_on(client).unwrap(), "by the node's port");
}

#[test]
fn a_guest_that_is_gone_takes_its_connections_with_it() {
    let mut world = World::new(&[(2, "shop")]);
    world.guests[0].echo_on(8080);
    let network = world.network.clone().unwrap();
    let dialling = world.runtime.spawn(async move {
        fairway_fabric::Fabric::dial(&*network, Destination::new("shop", ip(2), 8080)).await
    });
    until("a dialled connection", &mut [&mut world.guests[0]], |_| {
        dialling.is_finished().then_some(())
    });
    let mut connection = world.runtime.block_on(dialling).unwrap().unwrap();
    world.apply_with(|_, plan| plan.guests.clear());
    let ended = world
        .runtime
        .block_on(async { tokio::time::timeout(crate::guest::DEADLINE, connection.read(&mut [0; 8])).await });
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    assert_eq!(world.counters().flows, 0);
}

#[test]
fn datagrams_come_and_go_through_a_port_of_the_host() {
    let mut world = World::new(&[(2, "shop")]);
    world.apply_with(|network, plan| {
        plan.services.push(ServicePort {
            tenant: network.tenant("shop"),
            address: VIP,
            protocol: UDP,
            port: 53,
            backends: [Backend {
                address: ip(2),
                port: 5353,
            }]
            .into(),
            by_client: false,
        });
    });
    let network = world.network.clone().unwrap();
    let (socket, client) = world.runtime.block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        (socket, UdpSocket::bind("127.0.0.1:0").await.unwrap())
    });
    let door = socket.local_addr().unwrap();
    let target = Arc::new(Destination::new("shop", VIP, 53));
    world
        .runtime
        .spawn(forward::serve_datagrams(socket, network, target));
    let asking = world.runtime.spawn(async move {
        let mut buffer = [0; 64];
        for question in ["one", "two"] {
            // The guest may not be connected yet.
            let length = loop {
                client.send_to(question.as_bytes(), door).await.unwrap();
                let answer = client.recv(&mut buffer);
                match tokio::time::timeout(std::time::Duration::from_millis(200), answer).await {
                    Ok(length) => break length.unwrap(),
                    Err(_) => continue,
                }
            };
            assert!(buffer[..length].starts_with(b"re: "), "{:?}", &buffer[..length]);
        }
    });
    let guest = &mut world.guests[0];
    let server = guest.bind_datagrams(5353);
    until("answers to datagrams", &mut [guest], |guests| {
        guests[0].answer_datagrams(server, b"re: ");
        asking.is_finished().then_some(())
    });
    world.runtime.block_on(asking).unwrap();
}
