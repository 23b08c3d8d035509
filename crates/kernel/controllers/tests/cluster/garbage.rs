//! Garbage collection: background, foreground, orphan, and claims that are not true.

use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use serde_json::json;

use crate::harness::{Cluster, a_while, create, eventually, gone, owned, there};

fn policy(policy: PropagationPolicy) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(policy),
        ..DeleteParams::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_deletion_takes_the_whole_chain() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let api = cluster.config_maps("n");
    let owner = create(&api, json!({"metadata": {"name": "owner"}})).await;
    let other = create(&api, json!({"metadata": {"name": "other"}})).await;
    let child = create(&api, owned("child", &[(&owner, false)])).await;
    create(&api, owned("grandchild", &[(&child, false)])).await;
    create(&api, owned("shared", &[(&owner, false), (&other, false)])).await;
    a_while().await;
    assert!(
        api.get_opt("grandchild").await.unwrap().is_some(),
        "nothing goes while its owner is there"
    );
    api.delete("owner", &policy(PropagationPolicy::Background))
        .await
        .unwrap();
    gone(&api, "child").await;
    gone(&api, "grandchild").await;
    eventually("the shared one loses only the reference", || async {
        let shared = api.get("shared").await.unwrap();
        shared
            .metadata
            .owner_references
            .is_some_and(|refs| refs.len() == 1 && refs[0].name == "other")
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreground_deletion_waits_for_those_who_block() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let api = cluster.config_maps("n");
    let owner = create(&api, json!({"metadata": {"name": "owner"}})).await;
    let mut blocking = owned("blocking", &[(&owner, true)]);
    blocking["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&api, blocking).await;
    create(&api, owned("free", &[(&owner, false)])).await;
    a_while().await;
    api.delete("owner", &policy(PropagationPolicy::Foreground))
        .await
        .unwrap();
    gone(&api, "free").await;
    a_while().await;
    let waiting = api.get("owner").await.unwrap();
    assert_eq!(waiting.metadata.finalizers.unwrap(), ["foregroundDeletion"]);
    assert!(
        api.get("blocking")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );
    let release = json!({"metadata": {"finalizers": null}});
    api.patch("blocking", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    gone(&api, "blocking").await;
    gone(&api, "owner").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreground_chain_goes_from_the_leaves_and_circles_end() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let api = cluster.config_maps("n");
    let top = create(&api, json!({"metadata": {"name": "top"}})).await;
    let middle = create(&api, owned("middle", &[(&top, true)])).await;
    create(&api, owned("leaf", &[(&middle, true)])).await;
    // A circle: first and second own each other.
    let first = create(&api, json!({"metadata": {"name": "first"}})).await;
    let second = create(&api, owned("second", &[(&first, true)])).await;
    let back = owned("first", &[(&second, true)]);
    api.patch("first", &PatchParams::default(), &Patch::Merge(back))
        .await
        .unwrap();
    a_while().await;
    api.delete("top", &policy(PropagationPolicy::Foreground))
        .await
        .unwrap();
    api.delete("first", &policy(PropagationPolicy::Foreground))
        .await
        .unwrap();
    for name in ["leaf", "middle", "top", "second", "first"] {
        gone(&api, name).await;
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_stay_and_are_free() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let api = cluster.config_maps("n");
    let owner = create(&api, json!({"metadata": {"name": "owner"}})).await;
    create(&api, owned("child", &[(&owner, true)])).await;
    api.delete("owner", &policy(PropagationPolicy::Orphan))
        .await
        .unwrap();
    gone(&api, "owner").await;
    a_while().await;
    let child = api.get("child").await.unwrap();
    assert_eq!(child.metadata.owner_references.unwrap_or_default(), []);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_are_checked() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    cluster.namespace("m").await;
    let api = cluster.config_maps("n");
    let mut owner = create(&api, json!({"metadata": {"name": "owner"}})).await;
    create(&api, owned("true-claim", &[(&owner, false)])).await;
    // The same owner, claimed from a namespace where it is not.
    let elsewhere = cluster.config_maps("m");
    create(&elsewhere, owned("misplaced", &[(&owner, false)])).await;
    gone(&elsewhere, "misplaced").await;
    // A name that is taken by another object.
    owner.metadata.uid = Some("00000000-0000-0000-0000-000000000000".to_owned());
    create(&api, owned("wrong-uid", &[(&owner, false)])).await;
    gone(&api, "wrong-uid").await;
    // An object of the cluster cannot be owned from within a namespace: it stays, and is told.
    let roles = cluster.api("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "");
    create(&roles, owned("of-the-cluster", &[(&owner, false)])).await;
    let events = cluster.api("v1", "Event", "events", "default");
    eventually("an event tells", || async {
        let list = events.list(&kube::api::ListParams::default()).await.unwrap();
        list.iter().any(|e| {
            e.data["reason"] == "OwnerRefInvalidNamespace"
                && e.data["involvedObject"]["name"] == "of-the-cluster"
        })
    })
    .await;
    assert!(roles.get_opt("of-the-cluster").await.unwrap().is_some());
    assert!(api.get_opt("true-claim").await.unwrap().is_some());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_while_nobody_looked_is_made_good() {
    let mut cluster = Cluster::start().await;
    cluster.namespace("n").await;
    cluster.namespace("empty").await;
    let api = cluster.config_maps("n");
    let owner = create(&api, json!({"metadata": {"name": "owner"}})).await;
    let waits = create(&api, json!({"metadata": {"name": "waits"}})).await;
    create(&api, owned("child", &[(&owner, false)])).await;
    create(&api, owned("blocking", &[(&waits, true)])).await;
    cluster.stop_controllers().await;
    api.delete("owner", &policy(PropagationPolicy::Background))
        .await
        .unwrap();
    api.delete("waits", &policy(PropagationPolicy::Foreground))
        .await
        .unwrap();
    cluster
        .namespaces()
        .delete("empty", &DeleteParams::default())
        .await
        .unwrap();
    cluster.namespace("late").await;
    a_while().await;
    assert!(
        api.get_opt("child").await.unwrap().is_some(),
        "nobody is there to collect it"
    );
    cluster.start_controllers();
    for name in ["child", "blocking", "waits"] {
        gone(&api, name).await;
    }
    gone(&cluster.namespaces(), "empty").await;
    there(&cluster.config_maps("late"), "kube-root-ca.crt").await;
    cluster.stop().await;
}
