//! What every cluster and every namespace has: accounts, certificates, the kubernetes Service, roles; and what ends.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::harness::{Cluster, ROOT_CA, create, eventually, gone, there};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_has_its_account_and_certificates() {
    let cluster = Cluster::start().await;
    cluster.namespace("first").await;
    there(
        &cluster.api("v1", "ServiceAccount", "serviceaccounts", "first"),
        "default",
    )
    .await;
    there(&cluster.config_maps("first"), "kube-root-ca.crt").await;
    cluster.namespace("n").await;
    let accounts = cluster.api("v1", "ServiceAccount", "serviceaccounts", "n");
    let config_maps = cluster.config_maps("n");
    let account = there(&accounts, "default").await;
    let certificates = there(&config_maps, "kube-root-ca.crt").await;
    println!("the account came after {account:?}, the certificates {certificates:?} later");
    // Both come back, and what others write is put right.
    let uid = accounts.get("default").await.unwrap().metadata.uid;
    accounts
        .delete("default", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the account comes back", || async {
        accounts
            .get_opt("default")
            .await
            .unwrap()
            .is_some_and(|account| account.metadata.uid != uid)
    })
    .await;
    let wrong = json!({"metadata": {"labels": {"mine": "yes"}}, "data": {"ca.crt": "wrong", "more": "x"}});
    config_maps
        .patch("kube-root-ca.crt", &PatchParams::default(), &Patch::Merge(wrong))
        .await
        .unwrap();
    eventually("the certificates are put right", || async {
        let config_map = config_maps.get("kube-root-ca.crt").await.unwrap();
        config_map.data["data"] == json!({"ca.crt": ROOT_CA})
    })
    .await;
    let labels = config_maps
        .get("kube-root-ca.crt")
        .await
        .unwrap()
        .metadata
        .labels
        .unwrap();
    assert_eq!(labels["mine"], "yes");
    config_maps
        .delete("kube-root-ca.crt", &DeleteParams::default())
        .await
        .unwrap();
    there(&config_maps, "kube-root-ca.crt").await;
    for namespace in ["default", "kube-system"] {
        there(&cluster.config_maps(namespace), "kube-root-ca.crt").await;
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kubernetes_service_leads_to_the_server() {
    let cluster = Cluster::start().await;
    let services = cluster.api("v1", "Service", "services", "default");
    let slices = cluster.api(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        "default",
    );
    let endpoints = cluster.api("v1", "Endpoints", "endpoints", "default");
    for api in [&services, &endpoints, &slices] {
        there(api, "kubernetes").await;
    }
    assert_eq!(
        services.get("kubernetes").await.unwrap().data["spec"]["clusterIP"],
        "10.96.0.1"
    );
    assert_eq!(
        slices.get("kubernetes").await.unwrap().data["endpoints"][0]["addresses"],
        json!(["192.0.2.7"])
    );
    slices
        .delete("kubernetes", &DeleteParams::default())
        .await
        .unwrap();
    there(&slices, "kubernetes").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregated_roles_gather_rules() {
    let cluster = Cluster::start().await;
    let roles = cluster.api("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "");
    let rules = json!([{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}]);
    create(
        &roles,
        json!({"metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, "rules": rules}),
    )
    .await;
    for name in ["view", "edit", "admin"] {
        eventually(&format!("{name} gathers the rule"), || async {
            let role = roles.get(name).await.unwrap();
            role.data["rules"].as_array().unwrap().contains(&rules[0])
        })
        .await;
    }
    roles.delete("widgets", &DeleteParams::default()).await.unwrap();
    eventually("view loses the rule", || async {
        !roles.get("view").await.unwrap().data["rules"]
            .as_array()
            .unwrap()
            .contains(&rules[0])
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_end() {
    let cluster = Cluster::with_event_ttl(Duration::from_millis(400)).await;
    let events = cluster.api("v1", "Event", "events", "default");
    create(
        &events,
        json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "x", "namespace": "default"}, "reason": "R", "message": "m"}),
    )
    .await;
    gone(&events, "e").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_servers_find_whom_to_trust() {
    let cluster = Cluster::start().await;
    let config_maps = cluster.config_maps("kube-system");
    let name = "extension-apiserver-authentication";
    there(&config_maps, name).await;
    let wrong = json!({"data": {"client-ca-file": "wrong", "requestheader-client-ca-file": "theirs"}});
    config_maps
        .patch(name, &PatchParams::default(), &Patch::Merge(wrong))
        .await
        .unwrap();
    eventually("our key is put right, and others' stay", || async {
        let data = config_maps.get(name).await.unwrap().data["data"].clone();
        data == json!({"client-ca-file": ROOT_CA, "requestheader-client-ca-file": "theirs"})
    })
    .await;
    config_maps.delete(name, &DeleteParams::default()).await.unwrap();
    there(&config_maps, name).await;
    cluster.stop().await;
}
