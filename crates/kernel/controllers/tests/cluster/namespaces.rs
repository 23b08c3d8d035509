//! Deletion of namespaces.

use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, create, eventually, gone, there};

fn condition(namespace: &Value, kind: &str) -> Option<(String, String)> {
    let list = namespace.pointer("/status/conditions")?.as_array()?;
    let found = list.iter().find(|c| c["type"] == kind)?;
    Some((
        found["status"].as_str()?.to_owned(),
        found["message"].as_str()?.to_owned(),
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_namespace_goes_at_once() {
    let cluster = Cluster::start().await;
    cluster.namespace("warm").await;
    there(&cluster.config_maps("warm"), "kube-root-ca.crt").await;
    cluster
        .namespaces()
        .delete("warm", &DeleteParams::default())
        .await
        .unwrap();
    gone(&cluster.namespaces(), "warm").await;
    cluster.namespace("n").await;
    let begun = Instant::now();
    cluster
        .namespaces()
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    gone(&cluster.namespaces(), "n").await;
    println!("an empty namespace went in {:?}", begun.elapsed());
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "it took {:?}",
        begun.elapsed()
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_goes_first_and_finalizers_are_waited_for() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let held = cluster.config_maps("n");
    create(&held, json!({"metadata": {"name": "free"}})).await;
    create(
        &held,
        json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}),
    )
    .await;
    let secrets = cluster.api("v1", "Secret", "secrets", "n");
    create(&secrets, json!({"metadata": {"name": "s"}})).await;
    cluster
        .namespaces()
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    gone(&held, "free").await;
    gone(&secrets, "s").await;
    eventually("the namespace says what it waits for", || async {
        let namespace = cluster.namespaces().get("n").await.unwrap();
        condition(&namespace.data, "NamespaceFinalizersRemaining").is_some_and(|(status, message)| {
            status == "True" && message.contains("example.com/hold in 1 resource instances")
        })
    })
    .await;
    let namespace = cluster.namespaces().get("n").await.unwrap();
    let (status, message) = condition(&namespace.data, "NamespaceContentRemaining").unwrap();
    assert_eq!(
        (status.as_str(), message.contains("configmaps. has 1")),
        ("True", true),
        "{message}"
    );
    assert_eq!(
        condition(&namespace.data, "NamespaceDeletionContentFailure")
            .unwrap()
            .0,
        "False"
    );
    let release = json!({"metadata": {"finalizers": null}});
    held.patch("held", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    gone(&cluster.namespaces(), "n").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_finalizers_of_the_namespace_stay() {
    let cluster = Cluster::start().await;
    create(
        &cluster.namespaces(),
        json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["example.com/mine", "kubernetes"]}}),
    )
    .await;
    cluster
        .namespaces()
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    eventually("only the other finalizer is left", || async {
        let namespace = cluster.namespaces().get("n").await.unwrap();
        namespace.data.pointer("/spec/finalizers") == Some(&json!(["example.com/mine"]))
    })
    .await;
    cluster.stop().await;
}
