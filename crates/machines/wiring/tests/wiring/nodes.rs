//! Several nodes, whose switches are linked by encrypted tunnels.

use std::net::{Ipv4Addr, SocketAddr};

use fairway_controller::ShutdownTrigger;
use fairway_fabric::{Destination, DialError};
use fairway_machines_plan::machine::CardNetwork;
use fairway_machines_wiring::frames::Mac;
use fairway_machines_wiring::{Card, Settings, Tunnel, Wiring};
use serde_json::{Value, json};
use smoltcp::socket::tcp::State;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::guest::{Guest, until};
use crate::harness::{PATIENCE, TEAM, World, eventually, instance_path, key};

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);

fn tunnel() -> Tunnel {
    Tunnel {
        address: Ipv4Addr::LOCALHOST.into(),
        port: None,
    }
}

/// Two nodes, n1 and n2.
struct Nodes {
    world: World,
    wirings: [Wiring; 2],
    _ends: [ShutdownTrigger; 2],
    folders: [tempfile::TempDir; 2],
}

impl Nodes {
    async fn start() -> Self {
        let world = World::start().await;
        let tunnel = tunnel();
        let start = |name: &str| world.one_of_nodes(name, Some(tunnel), Settings::default());
        let [(one, end), (other, other_end)] = ["n1", "n2"].map(start);
        for name in ["n1", "n2"] {
            world
                .create("root", "/api/v1/nodes", json!({"metadata": {"name": name}}))
                .await;
        }
        Self {
            world,
            wirings: [one, other],
            _ends: [end, other_end],
            folders: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()],
        }
    }

    fn plug(&self, at: usize, name: &str, guest: &Guest) {
        self.plug_in(TEAM, at, name, guest);
    }

    fn plug_in(&self, workspace: &str, at: usize, name: &str, guest: &Guest) {
        let card = Card {
            name: "default".into(),
            mac: Mac(guest.mac),
            network: CardNetwork::Pod,
            socket: guest.path.clone(),
        };
        self.wirings[at].plug(&key(workspace, name), name, vec![card]);
    }

    async fn set_status(&self, name: &str, more: Value) {
        self.world
            .merge(TEAM, &instance_path(name), json!({ "status": more }))
            .await;
    }

    /// A machine on one of the nodes.
    async fn machine(&self, at: usize, name: &str, number: u8) -> Guest {
        self.machine_in(TEAM, at, name, number).await
    }

    async fn machine_in(&self, workspace: &str, at: usize, name: &str, number: u8) -> Guest {
        let mut guest = Guest::new(self.folders[at].path(), number);
        // Addresses of cards follow from names, as those of real machines do.
        let mac: Vec<String> = guest.mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let card = json!([{"name": "default", "masquerade": {}, "macAddress": mac.join(":")}]);
        let spec = json!({"spec": {"domain": {"devices": {"interfaces": card}}}});
        self.world.instance(workspace, name, spec).await;
        self.plug_in(workspace, at, name, &guest);
        self.world.set_ready(workspace, name, true).await;
        let status = json!({"status": {"nodeName": format!("n{}", at + 1)}});
        self.world.merge(workspace, &instance_path(name), status).await;
        let address = self.world.address(workspace, name).await.parse().unwrap();
        guest.take_address(address, GATEWAY);
        guest
    }

    /// A network of cards in a workspace.
    async fn bridge(&self, workspace: &str, name: &str, vlan: u16) {
        let path = "/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions";
        let config = json!({"type": "bridge", "bridge": "br1", "vlan": vlan}).to_string();
        let definition = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name}, "spec": {"config": config},
        });
        self.world.create(workspace, path, definition).await;
    }

    /// A machine whose only card is on such a network, with the address that its number says.
    async fn on_bridge(&self, workspace: &str, at: usize, name: &str, network: &str, number: u8) -> Guest {
        let mut guest = Guest::new(self.folders[at].path(), number);
        guest.take_address(on_lan(number), on_lan(1));
        let mac: Vec<String> = guest.mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let card = json!([{"name": "lan", "bridge": {}, "macAddress": mac.join(":")}]);
        let networks = json!([{"name": "lan", "multus": {"networkName": network}}]);
        let spec = json!({"spec": {"domain": {"devices": {"interfaces": card}}, "networks": networks}});
        self.world.instance(workspace, name, spec).await;
        self.plug_lan(workspace, at, name, network, &guest);
        self.world.set_ready(workspace, name, true).await;
        let status = json!({"status": {"nodeName": format!("n{}", at + 1)}});
        self.world.merge(workspace, &instance_path(name), status).await;
        guest
    }

    fn plug_lan(&self, workspace: &str, at: usize, name: &str, network: &str, guest: &Guest) {
        let card = Card {
            name: "lan".into(),
            mac: Mac(guest.mac),
            network: CardNetwork::Multus {
                namespace: "shop".into(),
                name: network.into(),
                default: false,
            },
            socket: guest.path.clone(),
        };
        self.wirings[at].plug(&key(workspace, name), name, vec![card]);
    }

    /// A Service in front of every machine.
    async fn service(&self) -> Ipv4Addr {
        let services = "/api/v1/namespaces/shop/services";
        let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]});
        let service = json!({"metadata": {"name": "web"}, "spec": spec});
        self.world.create(TEAM, services, service).await;
        let object = self.world.get(TEAM, &format!("{services}/web")).await.unwrap();
        object["spec"]["clusterIP"].as_str().unwrap().parse().unwrap()
    }

    async fn address(&self, name: &str) -> Ipv4Addr {
        self.world.address(TEAM, name).await.parse().unwrap()
    }
}

fn on_lan(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 7, number)
}

/// Dials from a node until there is an echo.
async fn until_dialled(wiring: &Wiring, to: &Destination, guest: &mut Guest) {
    let begun = std::time::Instant::now();
    loop {
        let (fabric, to) = (wiring.fabric(), to.clone());
        let task = tokio::spawn(async move {
            let mut connection = fabric.dial(to).await.map_err(|error| error.to_string())?;
            let said = connection.write_all(b"from afar").await;
            said.and(connection.shutdown().await)
                .map_err(|error| error.to_string())?;
            let mut heard = String::new();
            let read = connection.read_to_string(&mut heard).await;
            read.map(|_| heard).map_err(|error| error.to_string())
        });
        until("a dial", &mut [guest], |_| task.is_finished().then_some(()));
        let found = task.await.unwrap();
        if found.as_deref() == Ok("from afar") {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Pings until there is a pong: links take a moment.
fn until_pinged(from: &mut Guest, to: Ipv4Addr, other: &mut Guest) {
    let ping = from.ping(to, 77);
    until("a pong of another node", &mut [from, other], |guests| {
        guests[0].has_pong(ping).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn machines_of_two_nodes_are_on_one_network() {
    let nodes = Nodes::start().await;
    let mut client = nodes.machine(0, "client", 2).await;
    let mut web = nodes.machine(1, "web", 3).await;
    web.echo_on(8080);
    let address = nodes.address("web").await;
    until_pinged(&mut client, address, &mut web);
    let connection = client.connect(address, 8080, 4000);
    until(
        "a connection to the other node",
        &mut [&mut client, &mut web],
        |guests| (guests[0].tcp(connection).state() == State::Established).then_some(()),
    );

    let service = nodes.service().await;
    for to in [address, service] {
        let port = if to == address { 8080 } else { 80 };
        until_dialled(&nodes.wirings[0], &Destination::new(TEAM, to, port), &mut web).await;
    }

    // A machine of another workspace is not found, from either side.
    let mut stranger = nodes.machine_in("root", 0, "stranger", 9).await;
    let ping = stranger.ping(address, 5);
    let silent = stranger.connect(address, 8080, 4000);
    until_pinged(&mut client, address, &mut web);
    until_dialled(
        &nodes.wirings[0],
        &Destination::new(TEAM, address, 8080),
        &mut web,
    )
    .await;
    for _ in 0..10 {
        stranger.turn();
        web.turn();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!stranger.has_pong(ping));
    assert_ne!(stranger.tcp(silent).state(), State::Established);
    let fabric = nodes.wirings[0].fabric();
    assert!(
        fabric
            .dial(Destination::new("root", address, 8080))
            .await
            .is_err()
    );

    // Datagrams.
    let socket = web.bind_datagrams(5353);
    let talk = fabric.talk(Destination::new(TEAM, address, 5353)).await.unwrap();
    let (send, mut receive) = (talk.send, talk.receive);
    send.send(b"datagram".to_vec()).await.unwrap();
    let echo = tokio::spawn(async move { receive.recv().await });
    until("a datagram there and back", &mut [&mut web], |guests| {
        guests[0].answer_datagrams(socket, b"heard: ");
        echo.is_finished().then_some(())
    });
    assert_eq!(echo.await.unwrap().as_deref(), Some(&b"heard: datagram"[..]));

    // Policies are asked where the machine is, and the answer comes back.
    let policies = "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies";
    let deny = json!({"metadata": {"name": "deny"}, "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}});
    nodes.world.create(TEAM, policies, deny).await;
    let outside = Destination::new(TEAM, address, 8080).on_behalf_of("192.0.2.7".parse().unwrap());
    eventually("the policy holds over nodes", || async {
        match fabric.dial(outside.clone()).await {
            Err(error) => error.to_string().contains("a NetworkPolicy forbids it"),
            Ok(_) => false,
        }
    })
    .await;
    let silent = client.connect(address, 8080, 4001);
    for _ in 0..20 {
        client.turn();
        web.turn();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(client.tcp(silent).state(), State::SynSent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_node_reaches_machines_of_workspaces_that_it_knows_nothing_of() {
    let nodes = Nodes::start().await;
    let mut web = nodes.machine(1, "web", 3).await;
    web.echo_on(8080);
    let address = nodes.address("web").await;
    until_dialled(
        &nodes.wirings[0],
        &Destination::new(TEAM, address, 8080),
        &mut web,
    )
    .await;
    let service = nodes.service().await;
    until_dialled(&nodes.wirings[0], &Destination::new(TEAM, service, 80), &mut web).await;
    // Nothing listens there, and that is what is said.
    let (fabric, closed) = (nodes.wirings[0].fabric(), Destination::new(TEAM, address, 81));
    let task = tokio::spawn(async move { fabric.dial(closed).await.map(|_| ()) });
    until("a refusal", &mut [&mut web], |_| task.is_finished().then_some(()));
    let found = task.await.unwrap();
    assert!(matches!(found, Err(DialError::Refused { .. })), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_single_node_listens_for_nobody() {
    let world = World::start().await;
    let (wiring, _end) = world.one_of_nodes("n1", Some(tunnel()), Settings::default());
    let folder = tempfile::tempdir().unwrap();
    let node = |name: &str| json!({"metadata": {"name": name}});
    world.create("root", "/api/v1/nodes", node("n1")).await;
    world.instance(TEAM, "web", json!({})).await;
    let guest = Guest::new(folder.path(), 2);
    let card = Card {
        name: "default".into(),
        mac: Mac(guest.mac),
        network: CardNetwork::Pod,
        socket: guest.path.clone(),
    };
    wiring.plug(&key(TEAM, "web"), "web", vec![card]);
    world.address(TEAM, "web").await;
    let told = |node: Value| node["metadata"]["annotations"]["fairway.dev/tunnel-address"].clone();
    for _ in 0..20 {
        let own = world.get("root", "/api/v1/nodes/n1").await.unwrap();
        assert_eq!(told(own), Value::Null);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // Another one comes, and goes.
    world.create("root", "/api/v1/nodes", node("n2")).await;
    let address: SocketAddr = world
        .until("root", "/api/v1/nodes/n1", "tells its tunnel", |node| {
            told(node.clone()).as_str()?.parse().ok()
        })
        .await;
    let stranger = tokio::net::TcpStream::connect(address).await.unwrap();
    world.delete("root", "/api/v1/nodes/n2").await;
    world
        .until("root", "/api/v1/nodes/n1", "tells of no tunnel", |node| {
            told(node.clone()).is_null().then_some(())
        })
        .await;
    drop(stranger);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_session_survives_the_migration_to_another_node() {
    let nodes = Nodes::start().await;
    let mut client = nodes.machine(0, "client", 2).await;
    let mut machine = nodes.machine(0, "web", 3).await;
    // Something runs on the other node already, so that the link is there.
    let mut other = nodes.machine(1, "other", 4).await;
    let address = nodes.address("web").await;
    until_pinged(&mut client, nodes.address("other").await, &mut other);
    machine.echo_on(8080);
    let session = client.connect(address, 8080, 4000);
    until("an open session", &mut [&mut client, &mut machine], |guests| {
        guests[0].tcp(session).may_send().then_some(())
    });

    // The machine is being received there.
    let mut target = Guest::new(nodes.folders[1].path(), 3);
    nodes
        .set_status(
            "web",
            json!({"migrationState": {"sourceNode": "n1", "targetNode": "n2"}}),
        )
        .await;
    nodes.plug(1, "web", &target);
    until("the new card is connected", &mut [&mut target], |guests| {
        guests[0].is_connected().then_some(())
    });
    machine.move_to(&mut target);
    machine.announce();
    client.tcp(session).send_slice(b"after the move").unwrap();
    let mut heard = Vec::new();
    until(
        "the echo from there",
        &mut [&mut client, &mut machine],
        |guests| {
            // As QEMU does, again and again.
            guests[1].announce();
            heard.extend(guests[0].heard(session));
            (heard == b"after the move").then_some(())
        },
    );

    // And when everybody has been told.
    nodes
        .set_status(
            "web",
            json!({"nodeName": "n2", "migrationState": {"completed": true}}),
        )
        .await;
    nodes.wirings[0].unplug(&key(TEAM, "web"));
    client.tcp(session).send_slice(b", and later").unwrap();
    until(
        "the echo afterwards",
        &mut [&mut client, &mut machine],
        |guests| {
            heard.extend(guests[0].heard(session));
            (heard == b"after the move, and later").then_some(())
        },
    );
    until_dialled(
        &nodes.wirings[0],
        &Destination::new(TEAM, address, 8080),
        &mut machine,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn cards_on_a_bridge_meet_over_nodes_and_move() {
    let nodes = Nodes::start().await;
    for workspace in ["root", TEAM] {
        nodes.bridge(workspace, "lan", 7).await;
    }
    nodes.bridge(TEAM, "vlan", 8).await;
    let mut near = nodes.on_bridge(TEAM, 0, "near", "lan", 2).await;
    let mut far = nodes.on_bridge(TEAM, 1, "far", "lan", 3).await;
    // Of another workspace, and of another VLAN of the same bridge; both at the far node.
    let mut stranger = nodes.on_bridge("root", 1, "stranger", "lan", 4).await;
    let mut other = nodes.on_bridge(TEAM, 1, "other", "vlan", 5).await;
    far.echo_on(8080);
    until_pinged(&mut near, on_lan(3), &mut far);
    let session = near.connect(on_lan(3), 8080, 4000);
    until("a session", &mut [&mut near, &mut far], |guests| {
        guests[0].tcp(session).may_send().then_some(())
    });
    let unheard = [4, 5].map(|number| near.ping(on_lan(number), u16::from(number)));
    until_pinged(&mut near, on_lan(3), &mut far);
    for _ in 0..20 {
        near.turn();
        stranger.turn();
        other.turn();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(unheard.iter().all(|ping| !near.has_pong(*ping)));
    assert!(
        stranger.seen.is_empty() && other.seen.is_empty(),
        "not even a question is heard"
    );

    // The far one moves here, and the session with it.
    let mut target = Guest::new(nodes.folders[0].path(), 3);
    let moving = json!({"migrationState": {"sourceNode": "n2", "targetNode": "n1"}});
    nodes.set_status("far", moving).await;
    nodes.plug_lan(TEAM, 0, "far", "lan", &target);
    until("the new card is connected", &mut [&mut target], |guests| {
        guests[0].is_connected().then_some(())
    });
    far.move_to(&mut target);
    near.tcp(session).send_slice(b"after the move").unwrap();
    let mut heard = Vec::new();
    until("the echo from here", &mut [&mut near, &mut far], |guests| {
        guests[1].announce();
        heard.extend(guests[0].heard(session));
        (heard == b"after the move").then_some(())
    });
}
