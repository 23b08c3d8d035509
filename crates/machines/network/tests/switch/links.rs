//! Two switches that are linked: machines of two nodes.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use fairway_fabric::{Connection, Destination, DialError, Fabric, Talk};
use fairway_machines_network::Elsewhere;
use fairway_machines_network::frames::topology::{Guest as Card, Plan, PortId};
use fairway_machines_network::frames::{Mac, Reason};
use futures::future::BoxFuture;
use smoltcp::socket::tcp::State;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::guest::{Guest, until};
use crate::world::{VIP, World, ip};

/// Two nodes with one machine each, 2 and 3, and the ports of their links.
fn linked() -> ([World; 2], [PortId; 2]) {
    let mut nodes = [World::new(&[(2, "shop")]), World::new(&[(3, "shop")])];
    let (one, other) = UnixStream::pair().unwrap();
    let links = [
        nodes[0].network.as_ref().unwrap().link(one),
        nodes[1].network.as_ref().unwrap().link(other),
    ];
    nodes[0].add_service("shop", VIP, 80, &[(ip(3), 8080)]);
    for (at, far) in [(0, 3), (1, 2)] {
        nodes[at].apply_with(|network, plan| {
            let tenant = network.tenant("shop");
            add_far(plan, tenant, far, vec![links[at]]);
            plan.peers = vec![links[at]];
        });
    }
    (nodes, links)
}

fn add_far(
    plan: &mut Plan,
    tenant: fairway_machines_network::frames::Tenant,
    number: u8,
    ports: Vec<PortId>,
) {
    plan.guests.push(Card {
        tenant,
        mac: Mac([2, 0, 0, 0, 0, number]),
        address: ip(number),
        ports,
        hostname: format!("vm-{number}"),
        search: vec![],
        resolvers: vec![],
        options: vec![],
        accepts: None,
    });
}

#[test]
fn machines_of_two_nodes_reach_each_other() {
    let ([mut a, mut b], _) = linked();
    let (near, far) = (&mut a.guests[0], &mut b.guests[0]);
    far.echo_on(80);
    far.echo_on(8080);
    for (what, to, port) in [("a machine", ip(3), 80), ("through a Service", VIP, 80)] {
        let connection = near.connect(to, port, 4000 + u16::from(to.octets()[3]));
        until(what, &mut [near, far], |guests| {
            guests[0].tcp(connection).may_send().then_some(())
        });
        near.tcp(connection).send_slice(b"hello").unwrap();
        let mut heard = Vec::new();
        until("its echo", &mut [near, far], |guests| {
            heard.extend(guests[0].heard(connection));
            (heard == b"hello").then_some(())
        });
    }
    let ping = far.ping(ip(2), 9);
    until("a ping back", &mut [near, far], |guests| {
        guests[1].has_pong(ping).then_some(())
    });
}

/// Opens connections on the other node.
struct Other(Arc<fairway_machines_network::Network>);

impl Elsewhere for Other {
    fn dial(&self, _: PortId, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        self.0.dial(to)
    }

    fn talk(&self, _: PortId, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>> {
        self.0.talk(to)
    }
}

#[test]
fn a_node_dials_machines_of_others_through_them() {
    let ([a, mut b], _) = linked();
    b.guests[0].echo_on(8080);
    let network = a.network.clone().unwrap();
    let dial = |to| {
        let network = Arc::clone(&network);
        a.runtime.spawn(async move {
            let mut connection = network.dial(to).await.map_err(|error| error.to_string())?;
            connection.write_all(b"from afar").await.unwrap();
            connection.shutdown().await.unwrap();
            let mut heard = String::new();
            connection.read_to_string(&mut heard).await.unwrap();
            Ok::<_, String>(heard)
        })
    };
    let to = Destination::new("shop", VIP, 80);
    let dialling = dial(to.clone());
    let refused = a.runtime.block_on(dialling).unwrap().unwrap_err();
    assert!(refused.contains("is on another node"), "{refused}");
    network.set_elsewhere(Arc::new(Other(b.network.clone().unwrap())));
    let dialling = dial(to);
    until("a dial through the other node", &mut [&mut b.guests[0]], |_| {
        dialling.is_finished().then_some(())
    });
    assert_eq!(a.runtime.block_on(dialling).unwrap().as_deref(), Ok("from afar"));
}

#[test]
fn a_session_survives_the_migration_to_another_node() {
    let ([mut a, mut b], links) = linked();
    let folder = tempfile::tempdir().unwrap();
    // The card of the machine on the node that it moves to.
    let mut target = Guest::new(folder.path(), 3);
    a.guests[0].echo_on(80);
    let session = b.guests[0].connect(ip(2), 80, 4000);
    until(
        "an open session",
        &mut [&mut a.guests[0], &mut b.guests[0]],
        |guests| guests[1].tcp(session).may_send().then_some(()),
    );

    // Both nodes hear that it may be at either.
    let mut local = None;
    a.apply_with(|network, plan| {
        let port = network.attach(target.path.clone());
        local = Some(port);
        let tenant = network.tenant("shop");
        add_far(plan, tenant, 3, vec![links[0], port]);
        plan.peers = vec![links[0]];
    });
    b.apply_with(|network, plan| {
        plan.guests[0].ports.push(links[1]);
        let tenant = network.tenant("shop");
        add_far(plan, tenant, 2, vec![links[1]]);
        plan.peers = vec![links[1]];
    });
    until("the new card is connected", &mut [&mut target], |guests| {
        guests[0].is_connected().then_some(())
    });
    let mut machine = b.guests.remove(0);
    machine.move_to(&mut target);
    machine.announce();
    machine.tcp(session).send_slice(b"still here").unwrap();
    let mut heard = Vec::new();
    until(
        "the echo after the migration",
        &mut [&mut a.guests[0], &mut machine],
        |guests| {
            heard.extend(guests[1].heard(session));
            (heard == b"still here").then_some(())
        },
    );
    assert_eq!(machine.tcp(session).state(), State::Established);
    let dropped = a.counters().dropped;
    assert!(!dropped.contains_key(&Reason::SpoofedAddress), "{dropped:?}");
}
