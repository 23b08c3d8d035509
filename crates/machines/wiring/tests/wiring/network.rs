//! Guests with real TCP/IP stacks behind sockets that QEMU would listen on, on the network that the API describes.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fairway_controller::ShutdownTrigger;
use fairway_fabric::{Destination, DialError, Fabric};
use fairway_machines_plan::machine::CardNetwork;
use fairway_machines_wiring::frames::Mac;
use fairway_machines_wiring::{Card, Settings, Wiring};
use serde_json::{Value, json};
use smoltcp::socket::tcp::State;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::guest::{Guest, until};
use crate::harness::{BOTH, TEAM, World, eventually, instance_path, key};

const SERVICES: &str = "/api/v1/namespaces/shop/services";
const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies";
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);

/// Machines that run on one node.
struct Node {
    world: World,
    wiring: Wiring,
    end: Option<ShutdownTrigger>,
    folder: tempfile::TempDir,
}

impl Node {
    async fn start(settings: Settings) -> Self {
        let world = World::start().await;
        let (wiring, end) = world.node(settings);
        Self {
            world,
            wiring,
            end: Some(end),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn plug(&self, workspace: &str, name: &str, guest: &Guest, network: CardNetwork) {
        let card = Card {
            name: "default".into(),
            mac: Mac(guest.mac),
            network,
            socket: guest.path.clone(),
        };
        self.wiring.plug(&key(workspace, name), name, vec![card]);
    }

    /// An instance that runs here and has asked for its address.
    async fn machine(&self, workspace: &str, name: &str, number: u8, more: Value) -> Guest {
        let mut guest = Guest::new(self.folder.path(), number);
        self.world.instance(workspace, name, more).await;
        self.plug(workspace, name, &guest, CardNetwork::Pod);
        self.world.set_ready(workspace, name, true).await;
        let address = self.world.address(workspace, name).await;
        guest.ask_for_address();
        let lease = until("a lease", &mut [&mut guest], |guests| guests[0].lease.clone());
        assert_eq!(lease.address.to_string(), address, "{workspace} {name}");
        assert_eq!(lease.resolvers, [GATEWAY]);
        eventually("the node knows the address", || async {
            self.wiring.address(&key(workspace, name)) == Some(lease.address)
        })
        .await;
        guest
    }

    async fn service(&self, workspace: &str, name: &str, spec: Value) -> Ipv4Addr {
        self.world
            .create(
                workspace,
                SERVICES,
                json!({"metadata": {"name": name}, "spec": spec}),
            )
            .await;
        let path = format!("{SERVICES}/{name}");
        self.world
            .until(workspace, &path, "has an address", |it| {
                it["spec"]["clusterIP"].as_str()?.parse().ok()
            })
            .await
    }

    fn fabric(&self) -> Arc<dyn Fabric> {
        self.wiring.fabric()
    }
}

fn address_of(guest: &Guest) -> Ipv4Addr {
    guest.lease.as_ref().unwrap().address
}

/// Dials while the guests have their turns, says something and returns the echo.
async fn dialled(
    fabric: &Arc<dyn Fabric>,
    to: Destination,
    guests: &mut [&mut Guest],
) -> Result<String, String> {
    let fabric = Arc::clone(fabric);
    let task = tokio::spawn(async move {
        let mut connection = fabric.dial(to).await?;
        connection.write_all(b"from the node").await.unwrap();
        connection.shutdown().await.unwrap();
        let mut heard = String::new();
        connection.read_to_string(&mut heard).await.unwrap();
        Ok::<_, DialError>(heard)
    });
    until("a dial", guests, |_| task.is_finished().then_some(()));
    task.await.unwrap().map_err(|error| error.to_string())
}

/// Dials until the answer is as expected: objects take a moment to reach the switch.
async fn until_dialled(
    fabric: &Arc<dyn Fabric>,
    to: &Destination,
    guests: &mut [&mut Guest],
    wanted: impl Fn(&Result<String, String>) -> bool,
) {
    let begun = std::time::Instant::now();
    // A dial that a change overtakes waits for ten seconds.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    loop {
        let found = dialled(fabric, to.clone(), guests).await;
        if wanted(&found) {
            return;
        }
        assert!(begun.elapsed() < crate::harness::PATIENCE, "{to}: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// Connects from a guest until the connection is open, or is refused.
fn connects(guests: &mut [&mut Guest], to: Ipv4Addr, port: u16, own_port: u16) -> bool {
    let connection = guests[0].connect(to, port, own_port);
    until("an answer", guests, |guests| {
        match guests[0].tcp(connection).state() {
            State::Established => Some(true),
            State::Closed => Some(false),
            _ => None,
        }
    })
}

/// Asks for the address of a name.
fn asked(guest: &mut Guest, name: &str, own_port: u16) -> Option<Ipv4Addr> {
    let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend(label.bytes());
    }
    question.extend([0, 0, 1, 0, 1]);
    let handle = guest.send_datagram(GATEWAY, 53, own_port, &question);
    let answer = until("an answer about a name", &mut [guest], |guests| {
        guests[0].datagram(handle)
    });
    let has_answer = answer[7] > 0;
    has_answer.then(|| Ipv4Addr::from(*answer.last_chunk::<4>().unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn two_workspaces_with_the_same_names_share_nothing() {
    let node = Node::start(Settings::default()).await;
    let mut web = node.machine("root", "web", 2, json!({})).await;
    let mut client = node.machine("root", "client", 3, json!({})).await;
    let mut other_web = node.machine(TEAM, "web", 4, json!({})).await;
    let mut other_client = node.machine(TEAM, "client", 5, json!({})).await;
    web.echo_on(8080);
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]});
    let address = node.service("root", "web", spec.clone()).await;
    let other_address = node.service(TEAM, "web", spec).await;

    let fabric = node.fabric();
    let to = Destination::new("root", address, 80);
    let echo = |found: &Result<String, String>| *found == Ok("from the node".to_owned());
    until_dialled(&fabric, &to, &mut [&mut web], echo).await;
    assert!(connects(&mut [&mut client, &mut web], address, 80, 4000));

    // The other workspace has a Service of that name, behind which nobody listens.
    let to = Destination::new(TEAM, other_address, 80);
    let refused =
        |found: &Result<String, String>| matches!(found, Err(why) if why.contains("refused the connection"));
    until_dialled(&fabric, &to, &mut [&mut other_web], refused).await;
    assert!(!connects(
        &mut [&mut other_client, &mut other_web],
        other_address,
        80,
        4000
    ));

    // Nothing of one is there for the other: not by address, not by Service, not by name.
    let found = dialled(
        &fabric,
        Destination::new(TEAM, address_of(&web), 8080),
        &mut [&mut web],
    )
    .await;
    assert!(
        found
            .as_ref()
            .is_err_and(|why| why.contains("no machine of this workspace")),
        "{found:?}"
    );
    assert!(!connects(&mut [&mut other_client], address, 80, 4001));
    for (guest, own) in [(&mut client, address), (&mut other_client, other_address)] {
        let (mut port, mut found) = (5000, None);
        while found != Some(own) {
            port += 1;
            found = asked(guest, "web.shop.svc.cluster.local", port);
            assert!(port < 6000, "{found:?}");
        }
    }
    assert_eq!(
        asked(&mut client, "web.shop.vm.cluster.local", 6000),
        Some(address_of(&web))
    );
    assert_eq!(asked(&mut client, "nobody.shop.svc.cluster.local", 6001), None);

    // A slice by hand that names a machine of the other workspace leads nowhere.
    node.service(TEAM, "thief", json!({"ports": [{"port": 80}]}))
        .await;
    let path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
    let slice = json!({
        "metadata": {"name": "thief", "labels": {"kubernetes.io/service-name": "thief"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": [address_of(&web).to_string()]}], "ports": [{"name": "", "port": 8080}],
    });
    node.world.create(TEAM, path, slice).await;
    let thief: Value = node.world.get(TEAM, &format!("{SERVICES}/thief")).await.unwrap();
    let thief: Ipv4Addr = thief["spec"]["clusterIP"].as_str().unwrap().parse().unwrap();
    let stolen = |found: &Result<String, String>| matches!(found, Err(why) if why.contains("no machine of this workspace"));
    until_dialled(
        &fabric,
        &Destination::new(TEAM, thief, 80),
        &mut [&mut web],
        stolen,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn policies_take_effect_when_they_change() {
    let node = Node::start(Settings::default()).await;
    for workspace in BOTH {
        let mut web = node.machine(workspace, "web", 2, json!({})).await;
        let mut client = node.machine(workspace, "client", 3, json!({})).await;
        web.echo_on(8080);
        let to = address_of(&web);
        assert!(connects(&mut [&mut client, &mut web], to, 8080, 4000));

        let deny = json!({"metadata": {"name": "db"}, "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}});
        node.world.create(workspace, POLICIES, deny).await;
        let outside = Destination::new(workspace, to, 8080).on_behalf_of("192.0.2.7".parse().unwrap());
        let denied = |found: &Result<String, String>| matches!(found, Err(why) if why.contains("a NetworkPolicy forbids it"));
        until_dialled(&node.fabric(), &outside, &mut [&mut web], denied).await;
        let silent = client.connect(to, 8080, 4001);
        let own = dialled(
            &node.fabric(),
            Destination::new(workspace, to, 8080),
            &mut [&mut web, &mut client],
        )
        .await;
        assert_eq!(own.as_deref(), Ok("from the node"), "the node is always let in");
        assert_eq!(client.tcp(silent).state(), State::SynSent);

        let allow =
            json!({"spec": {"ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}});
        node.world
            .merge(workspace, &format!("{POLICIES}/db"), allow)
            .await;
        until(
            "the connection that waited",
            &mut [&mut client, &mut web],
            |guests| (guests[0].tcp(silent).state() == State::Established).then_some(()),
        );
        let found = dialled(&node.fabric(), outside, &mut [&mut web]).await;
        assert!(denied(&found), "{found:?}");
        node.wiring.unplug(&key(workspace, "web"));
        node.wiring.unplug(&key(workspace, "client"));
        drop((web, client));
        for name in ["guest-2.sock", "guest-3.sock"] {
            std::fs::remove_file(node.folder.path().join(name)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_switch_that_starts_again_finds_its_machines() {
    let mut node = Node::start(Settings::default()).await;
    let mut web = node.machine(TEAM, "web", 2, json!({})).await;
    web.echo_on(8080);
    let to = Destination::new(TEAM, address_of(&web), 8080);
    let echo = |found: &Result<String, String>| *found == Ok("from the node".to_owned());
    until_dialled(&node.fabric(), &to, &mut [&mut web], echo).await;
    drop(node.end.take());
    until("the end of the old switch", &mut [&mut web], |guests| {
        (!guests[0].is_connected()).then_some(())
    });
    let (wiring, end) = node.world.node(Settings::default());
    (node.wiring, node.end) = (wiring, Some(end));
    node.plug(TEAM, "web", &web, CardNetwork::Pod);
    until_dialled(&node.fabric(), &to, &mut [&mut web], echo).await;

    // And one whose machine is gone is disconnected.
    node.wiring.unplug(&key(TEAM, "web"));
    until("the end of the connection", &mut [&mut web], |guests| {
        (!guests[0].is_connected()).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn cards_on_a_bridge_meet_there_and_nowhere_else() {
    let node = Node::start(Settings::default()).await;
    let definition = |name: &str, config: &str| json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": {"config": config}});
    let path = "/apis/k8s.cni.cncf.io/v1/namespaces/shop/network-attachment-definitions";
    let lan = definition("lan", r#"{"type": "bridge", "bridge": "br1", "vlan": 7}"#);
    for workspace in BOTH {
        node.world.create(workspace, path, lan.clone()).await;
    }
    node.world
        .create("root", path, definition("host", r#"{"type": "macvlan"}"#))
        .await;
    let on = |name: &str| CardNetwork::Multus {
        namespace: "shop".into(),
        name: name.into(),
        default: false,
    };
    let mut guests: Vec<Guest> = Vec::new();
    for (number, workspace, name, network) in [
        (2, "root", "a", "lan"),
        (3, "root", "b", "lan"),
        (4, TEAM, "c", "lan"),
        (5, "root", "d", "host"),
    ] {
        let mut guest = Guest::new(node.folder.path(), number);
        guest.take_address(Ipv4Addr::new(192, 168, 7, number), Ipv4Addr::new(192, 168, 7, 1));
        let elsewhere =
            json!({"spec": {"networks": [{"name": "default", "multus": {"networkName": network}}]}});
        node.world.instance(workspace, name, elsewhere).await;
        node.plug(workspace, name, &guest, on(network));
        guests.push(guest);
    }
    let [a, b, c, d] = guests.as_mut_slice() else {
        panic!();
    };
    let ping = a.ping(Ipv4Addr::new(192, 168, 7, 3), 1);
    let others = [4, 5].map(|last| a.ping(Ipv4Addr::new(192, 168, 7, last), u16::from(last)));
    until("a neighbour's pong", &mut [a, b, c, d], |guests| {
        guests[0].has_pong(ping).then_some(())
    });
    assert!(others.iter().all(|other| !a.has_pong(*other)));
    assert!(
        c.seen.is_empty(),
        "nothing reaches the other workspace's network of that name"
    );

    eventually("the card that cannot be connected is told", || async {
        let events = node.world.events("root").await;
        events.iter().any(|event| {
            event.starts_with(
                "d NetworkNotServed: The card default is not connected: NetworkAttachmentDefinition host:",
            )
        })
    })
    .await;
    let problems = node.wiring.problems(&key("root", "d"));
    assert_eq!(problems[0].reason, "NetworkNotServed");
    assert!(node.wiring.problems(&key("root", "a")).is_empty());
    assert!(
        *node.wiring.troubles().borrow() > 0,
        "and whoever waits for it was told"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn contradictions_are_told_and_the_rest_works() {
    let node = Node::start(Settings::default()).await;
    let mut web = node.machine(TEAM, "web", 2, json!({})).await;
    web.echo_on(8080);
    let to = Destination::new(TEAM, address_of(&web), 8080);
    let echo = |found: &Result<String, String>| *found == Ok("from the node".to_owned());
    until_dialled(&node.fabric(), &to, &mut [&mut web], echo).await;

    // Another machine with the same card.
    let folder = tempfile::tempdir().unwrap();
    let twin = Guest::new(folder.path(), 2);
    node.world.instance(TEAM, "zwilling", json!({})).await;
    node.plug(TEAM, "zwilling", &twin, CardNetwork::Pod);
    eventually("the second is told", || async {
        let events = node.world.events(TEAM).await;
        events.iter().any(|event| {
            event.starts_with("zwilling MacAddressConflict: The machine has no network, because shop/web has the MAC address")
        })
    })
    .await;
    until_dialled(&node.fabric(), &to, &mut [&mut web], echo).await;
    node.world.delete(TEAM, &instance_path("zwilling")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_address_that_somebody_wrote_on_his_machine_takes_nobody_elses_away() {
    let mut node = Node::start(Settings::default()).await;
    let mut web = node.machine("root", "web", 2, json!({})).await;
    web.echo_on(8080);
    let address = address_of(&web);
    // Nobody corrects it, and the liar is the older one.
    node.world.stop().await;
    let lie = json!({"metadata": {"annotations": {"fairway.dev/address": address.to_string()}}});
    node.world.instance(TEAM, "liar", lie).await;
    let mut liar = Guest::new(node.folder.path(), 3);
    liar.take_address(address, GATEWAY);
    node.plug(TEAM, "liar", &liar, CardNetwork::Pod);
    node.world.delete("root", &instance_path("web")).await;
    let same = json!({"metadata": {"annotations": {"fairway.dev/address": address.to_string()}}});
    node.world.instance("root", "web", same).await;

    let echo = |found: &Result<String, String>| *found == Ok("from the node".to_owned());
    let to = Destination::new("root", address, 8080);
    until_dialled(&node.fabric(), &to, &mut [&mut web, &mut liar], echo).await;
    assert_eq!(node.wiring.address(&key(TEAM, "liar")), None);
    let ping = liar.ping(GATEWAY, 7);
    let again = dialled(&node.fabric(), to, &mut [&mut web, &mut liar]).await;
    assert_eq!(again.as_deref(), Ok("from the node"));
    assert!(!liar.has_pong(ping), "its card carries nothing");
}
