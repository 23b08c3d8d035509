//! Whole pictures, as text.

use expect_test::expect;
use serde_json::json;

use super::*;

#[test]
fn two_workspaces_with_the_same_names() {
    let mut world = World::default();
    for (place, last, address) in [("root", 2, "10.96.0.7"), ("team", 3, "10.96.0.8")] {
        world.machine(place, "web", last, json!({"spec": {"subdomain": "pool"}}));
        world.service(place, "web", address, json!({}));
        let machine = format!("10.88.0.{last}");
        world.slice(
            place,
            "web",
            8080,
            &[(&machine, true, "n1"), ("10.88.0.9", false, "n1")],
        );
    }
    expect![[r#"
        guest 10.88.0.2 tenant 0 mac 02:00:00:00:01:02 ports [0] "web" search pool.shop.svc.cluster.local shop.svc.cluster.local svc.cluster.local cluster.local
        guest 10.88.0.3 tenant 1 mac 02:00:00:00:01:03 ports [1] "web" search pool.shop.svc.cluster.local shop.svc.cluster.local svc.cluster.local cluster.local
        service tenant 0 10.96.0.7:80/TCP -> 10.88.0.2:8080
        service tenant 1 10.96.0.8:80/TCP -> 10.88.0.3:8080
        name root web.shop Cluster { addresses: [10.96.0.7], ports: [Port { name: "http", protocol: "tcp", port: 80 }] }
        machine root web.shop Some("web") Some("pool") 10.88.0.2
        name team web.shop Cluster { addresses: [10.96.0.8], ports: [Port { name: "http", protocol: "tcp", port: 80 }] }
        machine team web.shop Some("web") Some("pool") 10.88.0.3
    "#]]
    .assert_eq(&shown(&draw(&world)));
}

#[test]
fn services_of_every_kind() {
    let mut world = World::default();
    world.machine("root", "a", 2, json!({}));
    world.machine("root", "b", 3, json!({}));
    let both = [("10.88.0.2", true, "n1"), ("10.88.0.3", true, "n2")];
    world.service(
        "root",
        "sticky",
        "10.96.0.1",
        json!({"sessionAffinity": "ClientIP", "externalIPs": ["192.0.2.7"]}),
    );
    world.slice("root", "sticky", 80, &both);
    world.service(
        "root",
        "node",
        "10.96.0.2",
        json!({"type": "NodePort", "externalTrafficPolicy": "Local", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]}),
    );
    world.slice("root", "node", 80, &both);
    world.service(
        "root",
        "balanced",
        "10.96.0.3",
        json!({
            "type": "LoadBalancer", "loadBalancerSourceRanges": ["192.0.2.0/24"],
            "ports": [
                {"name": "http", "port": 8080, "nodePort": 30081}, {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053},
            ],
            "status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}},
        }),
    );
    world.slice("root", "balanced", 9090, &both);
    world.service("root", "headless", "None", json!({"clusterIPs": ["None"]}));
    world.slice("root", "headless", 80, &both);
    world.service(
        "root",
        "elsewhere",
        "",
        json!({"type": "ExternalName", "externalName": "example.org"}),
    );
    world.service("root", "empty", "10.96.0.5", json!({}));
    expect![[r#"
        guest 10.88.0.2 tenant 0 mac 02:00:00:00:01:02 ports [0] "a" search shop.svc.cluster.local svc.cluster.local cluster.local
        guest 10.88.0.3 tenant 0 mac 02:00:00:00:01:03 ports [1] "b" search shop.svc.cluster.local svc.cluster.local cluster.local
        service tenant 0 10.96.0.3:8080/TCP -> 10.88.0.2:9090 10.88.0.3:9090
        service tenant 0 127.0.0.1:8080/TCP -> 10.88.0.2:9090 10.88.0.3:9090
        service tenant 0 10.88.0.1:30081/TCP -> 10.88.0.2:9090 10.88.0.3:9090
        service tenant 0 10.96.0.3:53/UDP -> 
        service tenant 0 127.0.0.1:53/UDP -> 
        service tenant 0 10.88.0.1:30053/UDP -> 
        service tenant 0 10.96.0.5:80/TCP -> 
        service tenant 0 10.96.0.2:80/TCP -> 10.88.0.2:80 10.88.0.3:80
        service tenant 0 10.88.0.1:30080/TCP -> 10.88.0.2:80
        service tenant 0 10.96.0.1:80/TCP -> 10.88.0.2:80 10.88.0.3:80 by client
        service tenant 0 192.0.2.7:80/TCP -> 10.88.0.2:80 10.88.0.3:80 by client
        door 127.0.0.1:53/UDP -> 127.0.0.1 port 53 in workspace root only [192.0.2.0/24]
        door 127.0.0.1:8080/TCP -> 127.0.0.1 port 8080 in workspace root only [192.0.2.0/24]
        door 127.0.0.1:30053/UDP -> 10.88.0.1 port 30053 in workspace root
        door 127.0.0.1:30080/TCP -> 10.88.0.1 port 30080 in workspace root
        door 127.0.0.1:30081/TCP -> 10.88.0.1 port 30081 in workspace root
        name root sticky.shop Cluster { addresses: [10.96.0.1], ports: [Port { name: "http", protocol: "tcp", port: 80 }] }
        name root node.shop Cluster { addresses: [10.96.0.2], ports: [Port { name: "http", protocol: "tcp", port: 80 }] }
        name root balanced.shop Cluster { addresses: [10.96.0.3], ports: [Port { name: "http", protocol: "tcp", port: 8080 }, Port { name: "dns", protocol: "udp", port: 53 }] }
        name root headless.shop Headless([Endpoint { hostname: None, address: 10.88.0.2, ports: [Port { name: "http", protocol: "tcp", port: 80 }] }, Endpoint { hostname: None, address: 10.88.0.3, ports: [Port { name: "http", protocol: "tcp", port: 80 }] }])
        name root elsewhere.shop External("example.org")
        name root empty.shop Cluster { addresses: [10.96.0.5], ports: [Port { name: "http", protocol: "tcp", port: 80 }] }
        machine root a.shop Some("a") None 10.88.0.2
        machine root b.shop Some("b") None 10.88.0.3
    "#]]
    .assert_eq(&shown(&draw(&world)));
}

#[test]
fn cards_on_bridges() {
    let mut world = World::default();
    let definition = |name: &str, config: &str| json!({"kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": {"config": config}});
    for place in ["root", "team"] {
        world.take(
            place,
            definition("lan", r#"{"type": "bridge", "bridge": "br1", "vlan": 100}"#),
        );
        world.take(
            place,
            definition("same", r#"{"type": "bridge", "bridge": "br1", "vlan": 100}"#),
        );
    }
    world.take(
        "root",
        definition("other", r#"{"type": "bridge", "bridge": "br1"}"#),
    );
    world.take(
        "root",
        definition("host", r#"{"type": "macvlan", "master": "ens192"}"#),
    );
    let mut plug = |place: &str, name: &str, network: &str, last: u8| {
        let card = Card {
            name: network.to_owned(),
            mac: Mac([2, 0, 0, 0, 2, last]),
            network: CardNetwork::Multus {
                namespace: "shop".into(),
                name: network.to_owned(),
                default: false,
            },
            socket: format!("/run/{place}/{name}/{network}").into(),
        };
        world.plug(place, name, card);
    };
    plug("root", "a", "lan", 1);
    plug("root", "b", "same", 2);
    plug("root", "b", "other", 3);
    plug("root", "c", "lan", 1);
    plug("root", "c", "host", 4);
    plug("root", "c", "nowhere", 5);
    plug("team", "a", "lan", 1);
    expect![[r#"
        card 02:00:00:00:02:01 segment 0 ports [0]
        card 02:00:00:00:02:02 segment 0 ports [1]
        card 02:00:00:00:02:03 segment 1 ports [2]
        card 02:00:00:00:02:01 segment 2 ports [3]
        remark VirtualMachineInstance root|shop/c MacAddressConflict: The card lan is not connected: shop/a has the MAC address 02:00:00:00:02:01 on the same network, too.
        remark VirtualMachineInstance root|shop/c NetworkNotFound: The card nowhere is not connected: there is no NetworkAttachmentDefinition shop/nowhere.
        remark VirtualMachineInstance root|shop/c NetworkNotServed: The card host is not connected: NetworkAttachmentDefinition host: networks of type macvlan are not available; machines are connected to bridges.
    "#]]
    .assert_eq(&shown(&draw(&world)));
}

#[test]
fn bridges_go_on_behind_links() {
    let mut world = World {
        links: BTreeMap::from([("n2".to_owned(), PortId(90)), ("n3".to_owned(), PortId(91))]),
        ..World::default()
    };
    let config = r#"{"type": "bridge", "bridge": "br1", "vlan": 100}"#;
    for (place, name, config) in [
        ("root", "lan", config),
        ("root", "other", r#"{"type": "bridge", "bridge": "br2"}"#),
        ("team", "lan", config),
    ] {
        world.take(
            place,
            json!({"kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": {"config": config}}),
        );
    }
    let mut machine = |place: &str, name: &str, last: u8, network: &str, created: u8, status: Value| {
        world.take(
            place,
            json!({
                "kind": "VirtualMachineInstance",
                "metadata": {"name": name, "creationTimestamp": format!("2026-01-0{created}T00:00:00Z")},
                "spec": {
                    "domain": {"devices": {"interfaces": [
                        {"name": "lan", "bridge": {}, "macAddress": format!("02:00:00:00:02:{last:02x}")},
                    ]}},
                    "networks": [{"name": "lan", "multus": {"networkName": network}}],
                },
                "status": status,
            }),
        );
    };
    let at = |node: &str| json!({"phase": "Running", "nodeName": node});
    machine("root", "here", 1, "lan", 5, at("n1"));
    machine("root", "far", 2, "lan", 5, at("n2"));
    machine("root", "far-too", 3, "lan", 5, at("n3"));
    machine("root", "unlinked", 4, "lan", 5, at("n4"));
    machine("root", "not-on-a-network-of-here", 5, "other", 5, at("n2"));
    machine("root", "older-with-that-card", 6, "lan", 1, at("n2"));
    machine("root", "here-too", 6, "lan", 5, at("n1"));
    machine(
        "root",
        "ended",
        7,
        "lan",
        5,
        json!({"phase": "Failed", "nodeName": "n2"}),
    );
    let leaves = json!({"phase": "Running", "nodeName": "n1", "migrationState": {"targetNode": "n2"}});
    machine("root", "leaves", 8, "lan", 5, leaves);
    machine("team", "far", 1, "lan", 5, at("n2"));
    for (name, last) in [("here", 1), ("here-too", 6), ("leaves", 8)] {
        let card = Card {
            name: "lan".into(),
            mac: Mac([2, 0, 0, 0, 2, last]),
            network: CardNetwork::Multus {
                namespace: "shop".into(),
                name: "lan".into(),
                default: false,
            },
            socket: format!("/run/{name}").into(),
        };
        world.plug("root", name, card);
    }
    expect![[r#"
        card 02:00:00:00:02:06 segment 0 ports [90]
        card 02:00:00:00:02:02 segment 0 ports [90]
        card 02:00:00:00:02:03 segment 0 ports [91]
        card 02:00:00:00:02:01 segment 0 ports [0]
        card 02:00:00:00:02:08 segment 0 ports [1, 90]
        card 02:00:00:00:02:04 segment 0 ports []
        remark VirtualMachineInstance root|shop/here-too MacAddressConflict: The card lan is not connected: shop/older-with-that-card has the MAC address 02:00:00:00:02:06 on the same network, too.
    "#]]
    .assert_eq(&shown(&draw(&world)));
}

#[test]
fn what_a_machine_says_about_itself() {
    let mut world = World::default();
    world.machine(
        "root",
        "a",
        2,
        json!({"spec": {
            "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}, "ports": [{"name": "www", "port": 80}],
                "dhcpOptions": {"bootFileName": "pxe"}}]}},
            "hostname": "front", "dnsConfig": {"nameservers": ["192.0.2.53"], "searches": ["example.org"]},
        }}),
    );
    world.machine(
        "root",
        "b",
        3,
        json!({"spec": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.53"]}}}),
    );
    // On another node, and one that has ended.
    world.machine("root", "far", 4, json!({}));
    world.machine("root", "ended", 5, json!({"status": {"phase": "Succeeded"}}));
    world.machine(
        "root",
        "no-address",
        6,
        json!({"metadata": {"annotations": {"fairway.dev/address": "soon"}}}),
    );
    world
        .plugged
        .retain(|key, _| !["far", "ended"].contains(&key.name.as_str()));
    expect![[r#"
        guest 10.88.0.2 tenant 0 mac 02:00:00:00:01:02 ports [0] "a" search shop.svc.cluster.local svc.cluster.local cluster.local example.org
          accepts [(6, 80)]
          resolvers [10.88.0.1, 192.0.2.53] options [(67, [112, 120, 101])]
        guest 10.88.0.3 tenant 0 mac 02:00:00:00:01:03 ports [1] "b" search 
          resolvers [192.0.2.53] options []
        guest 10.88.0.4 tenant 0 mac 02:84:e0:70:fa:9c ports [] "far" search shop.svc.cluster.local svc.cluster.local cluster.local
        machine root a.shop Some("front") None 10.88.0.2
        machine root b.shop Some("b") None 10.88.0.3
        machine root far.shop Some("far") None 10.88.0.4
    "#]]
    .assert_eq(&shown(&draw(&world)));
}

#[test]
fn ports_of_the_host_belong_to_the_older_service() {
    let mut world = World::default();
    let balanced = json!({
        "type": "LoadBalancer", "ports": [{"name": "http", "port": 8080}],
        "status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}},
    });
    world.service("root", "first", "10.96.0.1", balanced.clone());
    world.service("root", "second", "10.96.0.2", balanced.clone());
    world.service("team", "third", "10.96.0.3", balanced);
    expect![[r#"
        service tenant 0 10.96.0.1:8080/TCP -> 
        service tenant 0 127.0.0.1:8080/TCP -> 
        service tenant 0 10.96.0.2:8080/TCP -> 
        service tenant 1 10.96.0.3:8080/TCP -> 
        service tenant 1 127.0.0.1:8080/TCP -> 
        door 127.0.0.1:8080/TCP -> 127.0.0.1 port 8080 in workspace root
        name root first.shop Cluster { addresses: [10.96.0.1], ports: [Port { name: "http", protocol: "tcp", port: 8080 }] }
        name root second.shop Cluster { addresses: [10.96.0.2], ports: [Port { name: "http", protocol: "tcp", port: 8080 }] }
        name team third.shop Cluster { addresses: [10.96.0.3], ports: [Port { name: "http", protocol: "tcp", port: 8080 }] }
        remark Service root|shop/second PortConflict: 127.0.0.1:8080 leads to shop/first, which is older: choose another port or address.
        remark Service team|shop/third PortConflict: 127.0.0.1:8080 leads to a Service of another workspace, which is older: choose another port or address.
    "#]]
    .assert_eq(&shown(&draw(&world)));
}
