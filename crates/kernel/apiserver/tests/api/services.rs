//! Addresses and ports of Services: given once, given back, refused where they do not fit.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Client, Server};

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, kind: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80}], "selector": {"a": "b"}}})
}

fn with_address(name: &str, address: &str) -> Value {
    let mut service = service(name, "ClusterIP");
    service["spec"]["clusterIP"] = address.into();
    service
}

fn with_port(name: &str, port: u32) -> Value {
    let mut service = service(name, "NodePort");
    service["spec"]["ports"][0]["nodePort"] = port.into();
    service
}

fn address(service: &Value) -> String {
    service["spec"]["clusterIP"].as_str().unwrap_or("").to_owned()
}

fn port(service: &Value) -> Option<u64> {
    service["spec"]["ports"][0]["nodePort"].as_u64()
}

async fn create(admin: &Client, service: &Value) -> Value {
    admin.post(SERVICES, service).await.expect(201)
}

#[tokio::test]
async fn many_at_once_get_different_addresses_and_ports() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = futures::future::join_all((0..100).map(|i| {
        let admin = admin.clone();
        async move { create(&admin, &service(&format!("s{i}"), "NodePort")).await }
    }))
    .await;
    let addresses: BTreeSet<String> = made.iter().map(address).collect();
    let ports: BTreeSet<u64> = made.iter().filter_map(port).collect();
    assert_eq!((addresses.len(), ports.len()), (100, 100));
    assert!(addresses.iter().all(|a| a.starts_with("10.")), "{addresses:?}");
    assert!(ports.iter().all(|p| (30_000..=32_767).contains(p)));
    assert!(
        made.iter()
            .all(|s| s["spec"]["clusterIPs"][0] == s["spec"]["clusterIP"])
    );
}

#[tokio::test]
async fn of_many_that_want_the_same_one_gets_it() {
    let server = Server::start().await;
    let admin = server.admin();
    let codes = futures::future::join_all((0..12).map(|i| {
        let admin = admin.clone();
        async move {
            admin
                .post(SERVICES, &with_address(&format!("s{i}"), "10.96.0.77"))
                .await
                .code
        }
    }))
    .await;
    assert_eq!(codes.iter().filter(|c| **c == 201).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|c| matches!(c, 201 | 422)), "{codes:?}");
    let codes = futures::future::join_all((0..12).map(|i| {
        let admin = admin.clone();
        async move {
            admin
                .post(SERVICES, &with_port(&format!("p{i}"), 30_777))
                .await
                .code
        }
    }))
    .await;
    assert_eq!(codes.iter().filter(|c| **c == 201).count(), 1, "{codes:?}");
}

#[tokio::test]
async fn requested_ones_are_checked() {
    let server = Server::start().await;
    let admin = server.admin();
    create(&admin, &with_address("a", "10.96.0.50")).await;
    create(&admin, &with_port("p", 30_500)).await;
    for (wanted, words, why) in [
        (
            with_address("x", "10.96.0.50"),
            "provided IP is already allocated",
            "taken",
        ),
        (
            with_address("x", "192.168.1.1"),
            "not in the valid range",
            "outside",
        ),
        (
            with_address("x", "10.96.0.0"),
            "not in the valid range",
            "the network's own",
        ),
        (
            with_address("x", "10.111.255.255"),
            "not in the valid range",
            "the broadcast address",
        ),
        (with_address("x", "fd00::1"), "", "another family"),
        (with_address("x", "ten"), "", "not an address"),
        (
            with_port("x", 30_500),
            "provided port is already allocated",
            "taken",
        ),
        (with_port("x", 80), "not in the valid range", "outside"),
        (with_port("x", 70_000), "", "not a port"),
    ] {
        let refused = admin.post(SERVICES, &wanted).await;
        refused.refused(422, "Invalid", words);
        println!("{why}");
    }
    admin.get(&format!("{SERVICES}/x")).await.expect(404);
    let mut second = service("x", "NodePort");
    second["spec"]["ports"] =
        json!([{"name": "a", "port": 80, "nodePort": 30_501}, {"name": "b", "port": 81, "nodePort": 30_500}]);
    let refused = admin.post(SERVICES, &second).await;
    refused.refused(422, "Invalid", "provided port is already allocated");
    let cause = &refused.json()["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.ports[1].nodePort", "{cause}");
    let mut health = service("x", "LoadBalancer");
    health["spec"]["externalTrafficPolicy"] = "Local".into();
    health["spec"]["healthCheckNodePort"] = 30_500.into();
    let refused = admin.post(SERVICES, &health).await;
    assert_eq!(refused.code, 500, "{}", refused.text());
    assert!(
        refused.text().contains("HealthCheck NodePort 30500"),
        "{}",
        refused.text()
    );
    let mut twice = service("twice", "NodePort");
    twice["spec"]["ports"] =
        json!([{"name": "a", "port": 80, "nodePort": 30_600}, {"name": "b", "port": 81, "nodePort": 30_600}]);
    let refused = admin.post(SERVICES, &twice).await;
    assert_eq!(
        refused.code,
        422,
        "the same port twice in one Service: {}",
        refused.text()
    );
    let mut shared = service("shared", "NodePort");
    shared["spec"]["ports"] = json!([
        {"name": "a", "port": 53, "protocol": "TCP", "nodePort": 30_601},
        {"name": "b", "port": 53, "protocol": "UDP", "nodePort": 30_601},
    ]);
    create(&admin, &shared).await;
}

#[tokio::test]
async fn what_is_deleted_is_free_again() {
    let server = Server::start().await;
    let admin = server.admin();
    for round in 0..3 {
        let mut wanted = with_port("s", 30_100);
        wanted["spec"]["clusterIP"] = "10.96.0.60".into();
        let made = create(&admin, &wanted).await;
        assert_eq!(
            (address(&made).as_str(), port(&made)),
            ("10.96.0.60", Some(30_100)),
            "round {round}"
        );
        admin.delete(&format!("{SERVICES}/s")).await.expect(200);
    }
    let mut held = with_port("held", 30_100);
    held["metadata"]["finalizers"] = json!(["test.dev/wait"]);
    create(&admin, &held).await;
    admin.delete(&format!("{SERVICES}/held")).await.expect(200);
    admin
        .post(SERVICES, &with_port("early", 30_100))
        .await
        .refused(422, "Invalid", "already allocated");
    admin
        .patch(
            "merge",
            &format!("{SERVICES}/held"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await
        .expect(200);
    create(&admin, &with_port("late", 30_100)).await;
    admin.delete(SERVICES).await.expect(200);
    create(&admin, &with_port("again", 30_100)).await;
}

#[tokio::test]
async fn a_change_of_type_takes_and_gives_back() {
    let server = Server::start().await;
    let admin = server.admin();
    let path = format!("{SERVICES}/s");
    let first = create(&admin, &service("s", "ClusterIP")).await;
    assert_eq!(port(&first), None);
    let node = admin
        .patch("merge", &path, &json!({"spec": {"type": "NodePort"}}))
        .await
        .expect(200);
    let taken = port(&node).expect("a node port");
    assert_eq!(address(&node), address(&first), "the address stays");
    let back = admin
        .patch("merge", &path, &json!({"spec": {"type": "ClusterIP"}}))
        .await
        .expect(200);
    assert_eq!(port(&back), None, "the port goes with the type");
    create(&admin, &with_port("other", u32::try_from(taken).unwrap())).await;
    let external = json!({"spec": {"type": "ExternalName", "externalName": "a.test", "clusterIP": null, "clusterIPs": null}});
    let external = admin.patch("merge", &path, &external).await.expect(200);
    assert_eq!(address(&external), "");
    create(&admin, &with_address("heir", &address(&first))).await;
    let refused = admin
        .patch(
            "merge",
            &format!("{SERVICES}/heir"),
            &json!({"spec": {"clusterIP": "10.96.0.200"}}),
        )
        .await;
    refused.refused(422, "Invalid", "spec.clusterIP");
    let headless = create(&admin, &with_address("headless", "None")).await;
    assert_eq!(address(&headless), "None");
}

#[tokio::test]
async fn a_failed_write_takes_nothing() {
    let server = Server::start().await;
    let admin = server.admin();
    create(&admin, &service("s", "ClusterIP")).await;
    admin
        .post(SERVICES, &with_port("s", 30_200))
        .await
        .refused(409, "AlreadyExists", "s");
    admin
        .post(&format!("{SERVICES}?dryRun=All"), &with_port("dry", 30_200))
        .await
        .expect(201);
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_200}]}});
    admin
        .patch("merge", &format!("{SERVICES}/s"), &stale)
        .await
        .refused(409, "Conflict", "");
    let mut wrong = with_port("wrong", 30_200);
    wrong["spec"]["clusterIP"] = "192.168.0.1".into();
    admin.post(SERVICES, &wrong).await.expect(422);
    create(&admin, &with_port("heir", 30_200)).await;
}
