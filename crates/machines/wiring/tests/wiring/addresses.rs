//! Addresses: one per machine, kept while the machine exists, and never given twice.

use std::collections::BTreeSet;

use fairway_machines_wiring::Settings;
use serde_json::json;

use crate::harness::{BOTH, TEAM, World, eventually, instance_path, machine_path};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_keeps_its_address_while_it_exists() {
    let mut world = World::start().await;
    for workspace in BOTH {
        world.machine(workspace, "web").await;
        world.instance(workspace, "web", json!({})).await;
    }
    let first = world.address("root", "web").await;
    let other = world.address(TEAM, "web").await;
    assert_ne!(first, other, "the same name in two workspaces is two machines");

    for workspace in BOTH {
        // A stop and a start: another instance of the same machine.
        world.delete(workspace, &instance_path("web")).await;
        world.instance(workspace, "web", json!({})).await;
    }
    assert_eq!(world.address("root", "web").await, first);
    assert_eq!(world.address(TEAM, "web").await, other);

    world.delete(TEAM, &machine_path("web")).await;
    world.delete(TEAM, &instance_path("web")).await;
    eventually("the address is released", || async {
        world.reservations().await == [("root|shop/web".to_owned(), first.clone())]
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_without_a_machine_has_one_too() {
    let mut world = World::start().await;
    world.instance(TEAM, "alone", json!({})).await;
    world.address(TEAM, "alone").await;
    // No card on the network that everything has, no address that it would be told.
    let elsewhere = json!({"spec": {"networks": [{"name": "default", "multus": {"networkName": "lan"}}]}});
    world.instance(TEAM, "elsewhere", elsewhere).await;
    world.instance(TEAM, "later", json!({})).await;
    world.address(TEAM, "later").await;
    let object = world.get(TEAM, &instance_path("elsewhere")).await.unwrap();
    assert_eq!(
        object["metadata"]["annotations"]["fairway.dev/address"],
        json!(null)
    );

    for name in ["alone", "elsewhere", "later"] {
        world.delete(TEAM, &instance_path(name)).await;
    }
    eventually("the addresses are released", || async {
        world.reservations().await.is_empty()
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_while_nobody_looked_is_made_good() {
    let mut world = World::start().await;
    for name in ["kept", "gone", "damaged"] {
        world.instance(TEAM, name, json!({})).await;
    }
    let kept = world.address(TEAM, "kept").await;
    let damaged = world.address(TEAM, "damaged").await;
    world.address(TEAM, "gone").await;
    world.crash();
    world.delete(TEAM, &instance_path("gone")).await;
    // Between the two writes: the address is reserved, and the instance does not say so.
    let forget = json!({"metadata": {"annotations": {"fairway.dev/address": null}}});
    world.merge(TEAM, &instance_path("kept"), forget).await;
    // And somebody removed a reservation by hand.
    let path = format!("/apis/networking.k8s.io/v1/ipaddresses/{damaged}");
    world.delete("system:fairway", &path).await;

    world.run(Settings::default());
    assert_eq!(world.address(TEAM, "kept").await, kept);
    let mut expected = vec![
        (format!("{TEAM}|shop/kept"), kept),
        (format!("{TEAM}|shop/damaged"), damaged),
    ];
    expected.sort();
    eventually("reservations are what they should be", || async {
        world.reservations().await == expected
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_race_give_no_address_twice() {
    let mut world = World::new().await;
    // Few addresses, so that many want the same.
    let settings = || Settings {
        machines: "10.88.0.0/27".parse().unwrap(),
        ..Settings::default()
    };
    for _ in 0..3 {
        world.run(settings());
    }
    let names: Vec<String> = (0..14).map(|number| format!("vm{number}")).collect();
    for name in &names {
        for workspace in BOTH {
            world.instance(workspace, name, json!({})).await;
        }
    }
    let mut found = BTreeSet::new();
    for name in &names {
        for workspace in BOTH {
            let address = world.address(workspace, name).await;
            assert!(found.insert(address.clone()), "{address} is given twice");
        }
    }
    eventually("every machine has one reservation", || async {
        world.reservations().await.len() == found.len()
    })
    .await;
    // One is left, and then none.
    world.instance("root", "last", json!({})).await;
    world.address("root", "last").await;
    world.instance("root", "late", json!({})).await;
    eventually("the one without an address is told", || async {
        let events = world.events("root").await;
        events.iter().any(|event| {
            event.starts_with("late NoAddressAvailable: All addresses of 10.88.0.0/27 are taken")
        })
    })
    .await;
    world.delete(TEAM, &instance_path("vm3")).await;
    world.address("root", "late").await;
    world.stop().await;
}
