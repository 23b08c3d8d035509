//! Node ports and load balancers: ports of the host that lead to machines.

use std::net::{Ipv4Addr, SocketAddr};

use fairway_machines_plan::machine::CardNetwork;
use fairway_machines_wiring::frames::Mac;
use fairway_machines_wiring::{Card, Settings, Tunnel};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::guest::{Guest, until};
use crate::harness::{BOTH, TEAM, World, eventually, key};

const SERVICES: &str = "/api/v1/namespaces/shop/services";

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// What a port of the host answers while the guest has its turns: its echo, or nothing.
async fn heard(at: SocketAddr, guest: &mut Guest) -> String {
    let task = tokio::spawn(async move {
        let Ok(mut client) = TcpStream::connect(at).await else {
            return "closed".to_owned();
        };
        let mut heard = String::new();
        if client.write_all(b"hello").await.is_ok() && client.shutdown().await.is_ok() {
            let _ = client.read_to_string(&mut heard).await;
        }
        heard
    });
    until("an answer of a port of the host", &mut [guest], |_| {
        task.is_finished().then_some(())
    });
    task.await.unwrap()
}

async fn until_heard(at: SocketAddr, guest: &mut Guest, expected: &str) {
    let begun = std::time::Instant::now();
    loop {
        let found = heard(at, guest).await;
        if found == expected {
            return;
        }
        assert!(begun.elapsed() < crate::harness::PATIENCE, "{at}: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn service(world: &World, workspace: &str, name: &str, spec: Value) {
    world
        .create(
            workspace,
            SERVICES,
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await;
}

async fn balanced_at(world: &World, workspace: &str, name: &str) -> Ipv4Addr {
    let path = format!("{SERVICES}/{name}");
    world
        .until(workspace, &path, "has an external address", |it| {
            it["status"]["loadBalancer"]["ingress"][0]["ip"]
                .as_str()?
                .parse()
                .ok()
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn ports_of_the_host_lead_to_machines() {
    let world = World::start().await;
    let (wiring, _end) = world.node(Settings::default());
    let folder = tempfile::tempdir().unwrap();
    for (number, workspace) in [(2, "root"), (3, TEAM)] {
        world.instance(workspace, "web", json!({})).await;
        world.set_ready(workspace, "web", true).await;
        let mut guest = Guest::new(folder.path(), number);
        let address: Ipv4Addr = world.address(workspace, "web").await.parse().unwrap();
        guest.take_address(address, Ipv4Addr::new(10, 88, 0, 1));
        guest.echo_on(8080);
        let card = Card {
            name: "default".into(),
            mac: Mac(guest.mac),
            network: CardNetwork::Pod,
            socket: guest.path.clone(),
        };
        wiring.plug(&key(workspace, "web"), "web", vec![card]);

        let spec = |kind: &str, port: u16| json!({"type": kind, "selector": {"app": "web"}, "ports": [{"port": port, "targetPort": 8080}]});
        service(&world, workspace, "node", spec("NodePort", 80)).await;
        let object = world.get(workspace, &format!("{SERVICES}/node")).await.unwrap();
        let port = u16::try_from(object["spec"]["ports"][0]["nodePort"].as_u64().unwrap()).unwrap();
        until_heard(SocketAddr::from(([127, 0, 0, 1], port)), &mut guest, "hello").await;

        let number = free_port();
        service(&world, workspace, "balanced", spec("LoadBalancer", number)).await;
        let balanced = SocketAddr::from((balanced_at(&world, workspace, "balanced").await, number));
        assert_eq!(balanced.ip(), Ipv4Addr::LOCALHOST);
        until_heard(balanced, &mut guest, "hello").await;

        // Only from elsewhere, and then not at all.
        let path = format!("{SERVICES}/balanced");
        let patch = json!({"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"]}});
        world.merge(workspace, &path, patch).await;
        until_heard(balanced, &mut guest, "").await;
        let patch = json!({"spec": {"type": "ClusterIP", "loadBalancerSourceRanges": null,
            "allocateLoadBalancerNodePorts": null, "externalTrafficPolicy": null, "ports": [{"port": number, "targetPort": 8080}]}});
        world.merge(workspace, &path, patch).await;
        until_heard(balanced, &mut guest, "closed").await;
        eventually("the external address is gone", || async {
            let object = world.get(workspace, &path).await.unwrap();
            object["status"]["loadBalancer"]["ingress"].is_null()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn ports_that_cannot_be_opened_are_told() {
    let world = World::start().await;
    let (_wiring, _end) = world.node(Settings::default());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let spec = json!({"type": "LoadBalancer", "loadBalancerIP": "127.0.0.1", "ports": [{"port": port}]});
    service(&world, TEAM, "web", spec).await;
    let path = format!("{SERVICES}/web");
    let condition = |object: &Value| {
        let all = object["status"]["conditions"].as_array()?.iter();
        let mut all = all;
        let found = all.find(|it| it["type"] == "fairway.dev/HostPortsOpen.n1")?;
        Some((
            found["status"].clone(),
            found["message"].as_str().unwrap_or_default().to_owned(),
        ))
    };
    let message = format!(
        "Cannot listen on 127.0.0.1:{port}: another program listens there: end it, or choose another port."
    );
    world
        .until(TEAM, &path, "says that its port is not open", |object| {
            (condition(object)? == (json!("False"), message.clone())).then_some(())
        })
        .await;
    eventually("there is an event", || async {
        world
            .events(TEAM)
            .await
            .contains(&format!("web PortNotOpened: {message}"))
    })
    .await;
    drop(taken);
    // A change brings another try; without one it comes after ten seconds.
    world
        .merge(TEAM, &path, json!({"spec": {"sessionAffinity": "ClientIP"}}))
        .await;
    world
        .until(TEAM, &path, "says that its port is open", |object| {
            (condition(object)?.0 == "True").then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn each_node_tells_of_its_own_ports() {
    let world = World::start().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    // Both want the port on the same host, as themselves: neither overwrites what the other says.
    let tunnel = Tunnel {
        address: Ipv4Addr::LOCALHOST.into(),
        port: Some(free_port()),
    };
    let (_one, _end_one) = world.one_of_nodes("n1", Some(tunnel), Settings::default());
    let tunnel = Tunnel {
        port: Some(free_port()),
        ..tunnel
    };
    let (_two, _end_two) = world.one_of_nodes("n2", Some(tunnel), Settings::default());
    let spec = json!({"type": "LoadBalancer", "loadBalancerIP": "127.0.0.1", "ports": [{"port": port}]});
    service(&world, TEAM, "web", spec).await;
    let path = format!("{SERVICES}/web");
    let said = |object: &Value, node: &str| {
        let name = format!("fairway.dev/HostPortsOpen.{node}");
        let all = object["status"]["conditions"].as_array().into_iter().flatten();
        let mut own = all.filter(|it| it["type"] == name.as_str());
        own.next().map(|it| it["status"].clone())
    };
    world
        .until(TEAM, &path, "both say that the port is not open", |object| {
            let is_closed = |node| said(object, node) == Some(json!("False"));
            (is_closed("n1") && is_closed("n2")).then_some(())
        })
        .await;
    // What the balancer said is still there.
    let object = world.get(TEAM, &path).await.unwrap();
    assert_eq!(object["status"]["loadBalancer"]["ingress"][0]["ip"], "127.0.0.1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_status_that_somebody_wrote_opens_nothing() {
    let world = World::new().await;
    let (_wiring, _end) = world.node(Settings::default());
    let port = free_port();
    let spec = json!({"type": "LoadBalancer", "loadBalancerClass": "mine", "ports": [{"port": port}]});
    service(&world, TEAM, "web", spec).await;
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "0.0.0.0"}]}}});
    world.merge(TEAM, &format!("{SERVICES}/web/status"), status).await;
    eventually("it is told", || async {
        let events = world.events(TEAM).await;
        events
            .iter()
            .any(|event| event.starts_with("web AddressNotInPool: 0.0.0.0 is no address"))
    })
    .await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn services_that_want_the_same_port_have_addresses_of_their_own() {
    let mut world = World::start().await;
    // A second replica must not give others.
    world.run(Settings::default());
    let spec = |port: u16| json!({"type": "LoadBalancer", "ports": [{"port": port}]});
    for workspace in BOTH {
        service(&world, workspace, "a", spec(80)).await;
        service(&world, workspace, "b", spec(81)).await;
    }
    let mut found = Vec::new();
    for (workspace, name) in [("root", "a"), ("root", "b"), (TEAM, "a"), (TEAM, "b")] {
        let port = if name == "a" { 80 } else { 81 };
        found.push((balanced_at(&world, workspace, name).await, port));
    }
    eventually("addresses and ports are distinct", || async {
        let mut now = Vec::new();
        for (workspace, name) in [("root", "a"), ("root", "b"), (TEAM, "a"), (TEAM, "b")] {
            let port = if name == "a" { 80 } else { 81 };
            now.push((balanced_at(&world, workspace, name).await, port));
        }
        now.sort();
        now.dedup();
        now.len() == 4 && now.iter().all(|(address, _)| address.octets()[3] <= 2)
    })
    .await;
    let none = json!({"type": "LoadBalancer", "loadBalancerIP": "192.0.2.1", "ports": [{"port": 80}]});
    service(&world, TEAM, "c", none).await;
    eventually("the one that cannot be is told", || async {
        let events = world.events(TEAM).await;
        events
            .iter()
            .any(|event| event.starts_with("c AllocationFailed: Failed to allocate IP for \"shop/c\""))
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn pools_of_the_operator_come_before_the_loopback() {
    let mut world = World::start().await;
    let (_wiring, _end) = world.node(Settings::default());
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ipaddresspools.metallb.io"},
        "spec": {
            "group": "metallb.io", "scope": "Namespaced",
            "names": {"plural": "ipaddresspools", "singular": "ipaddresspool", "kind": "IPAddressPool", "listKind": "IPAddressPoolList"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    let pools = "/apis/metallb.io/v1beta1/namespaces/shop/ipaddresspools";
    let pool = |range: &str| json!({"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": {"name": "main"}, "spec": {"addresses": [range]}});
    for workspace in BOTH {
        world.create(workspace, crds, definition.clone()).await;
        eventually("pools are served", || async {
            world.admin(workspace).list(pools).await.is_ok()
        })
        .await;
    }
    // A tenant's pool is not the operator's.
    world.create(TEAM, pools, pool("127.2.0.1-127.2.0.9")).await;
    world.create("root", pools, pool("127.1.0.1-127.1.0.2")).await;
    let port = free_port();
    service(
        &world,
        TEAM,
        "web",
        json!({"type": "LoadBalancer", "ports": [{"port": port}]}),
    )
    .await;
    let path = format!("{SERVICES}/web");
    let until_at = async |address: &str| {
        let what = format!("is at {address}");
        world
            .until(TEAM, &path, &what, |it| {
                (it["status"]["loadBalancer"]["ingress"][0]["ip"] == address).then_some(())
            })
            .await;
        eventually(&format!("port {port} is open at {address}"), || async {
            TcpStream::connect((address, port)).await.is_ok()
        })
        .await;
    };
    until_at("127.1.0.1").await;
    world.delete("root", &format!("{pools}/main")).await;
    until_at("127.0.0.1").await;
    assert!(TcpStream::connect(("127.1.0.1", port)).await.is_err());
    world.stop().await;
}
