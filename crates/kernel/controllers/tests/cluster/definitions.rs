//! CRDs: removal with objects, collection of and through custom objects, names that become free.

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, a_while, create, eventually, gone};

fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": scope,
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// A custom object says what it is: the server has no type to take it for.
fn widget(metadata: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata})
}

fn definitions(cluster: &Cluster) -> Api<DynamicObject> {
    cluster.api(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "",
    )
}

fn condition(crd: &DynamicObject, kind: &str) -> Option<(String, String)> {
    let list = crd.data.pointer("/status/conditions")?.as_array()?;
    let found = list.iter().find(|c| c["type"] == kind)?;
    Some((
        found["status"].as_str()?.to_owned(),
        found["reason"].as_str()?.to_owned(),
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_goes_after_its_objects() {
    let cluster = Cluster::start().await;
    let crds = definitions(&cluster);
    create(&crds, definition("widgets", "Widget", "Namespaced")).await;
    cluster.namespace("n").await;
    let widgets = cluster.api("example.com/v1", "Widget", "widgets", "n");
    create(&widgets, widget(&json!({"name": "free"}))).await;
    create(
        &widgets,
        widget(&json!({"name": "held", "finalizers": ["example.com/hold"]})),
    )
    .await;
    let elsewhere = cluster.api("example.com/v1", "Widget", "widgets", "default");
    create(&elsewhere, widget(&json!({"name": "other"}))).await;
    crds.delete("widgets.example.com", &DeleteParams::default())
        .await
        .unwrap();
    gone(&widgets, "free").await;
    gone(&elsewhere, "other").await;
    a_while().await;
    let terminating = condition(&crds.get("widgets.example.com").await.unwrap(), "Terminating").unwrap();
    assert_eq!(
        terminating,
        ("True".to_owned(), "InstanceDeletionInProgress".to_owned())
    );
    let release = json!({"metadata": {"finalizers": null}});
    widgets
        .patch("held", &PatchParams::default(), &Patch::Merge(release))
        .await
        .unwrap();
    gone(&crds, "widgets.example.com").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_objects_own_and_are_owned() {
    let cluster = Cluster::start().await;
    create(
        &definitions(&cluster),
        definition("widgets", "Widget", "Namespaced"),
    )
    .await;
    cluster.namespace("n").await;
    let widgets = cluster.api("example.com/v1", "Widget", "widgets", "n");
    let config_maps = cluster.config_maps("n");
    let owner = create(&widgets, widget(&json!({"name": "w"}))).await;
    let reference = |kind: &str, version: &str, owner: &DynamicObject| json!([{"apiVersion": version, "kind": kind, "name": owner.metadata.name, "uid": owner.metadata.uid}]);
    let of_widget = reference("Widget", "example.com/v1", &owner);
    let owned = create(
        &config_maps,
        json!({"metadata": {"name": "c", "ownerReferences": of_widget}}),
    )
    .await;
    let of_config_map = reference("ConfigMap", "v1", &owned);
    create(
        &widgets,
        widget(&json!({"name": "v", "ownerReferences": of_config_map})),
    )
    .await;
    widgets.delete("w", &DeleteParams::default()).await.unwrap();
    gone(&config_maps, "c").await;
    gone(&widgets, "v").await;
    // A namespace takes its custom objects along.
    create(&widgets, widget(&json!({"name": "left"}))).await;
    cluster
        .namespaces()
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    gone(&widgets, "left").await;
    gone(&cluster.namespaces(), "n").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_become_free_are_given_away() {
    let cluster = Cluster::start().await;
    let crds = definitions(&cluster);
    create(&crds, definition("widgets", "Widget", "Cluster")).await;
    create(&crds, definition("gadgets", "Widget", "Cluster")).await;
    let waiting = crds.get("gadgets.example.com").await.unwrap();
    assert_eq!(condition(&waiting, "NamesAccepted").unwrap().0, "False");
    crds.delete("widgets.example.com", &DeleteParams::default())
        .await
        .unwrap();
    gone(&crds, "widgets.example.com").await;
    eventually("the waiting one is established", || async {
        let crd = crds.get("gadgets.example.com").await.unwrap();
        condition(&crd, "Established").is_some_and(|(status, _)| status == "True")
    })
    .await;
    let gadgets = cluster.api("example.com/v1", "Widget", "gadgets", "");
    eventually("it is served", || async {
        gadgets.list(&kube::api::ListParams::default()).await.is_ok()
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_no_version_serves_are_removed_too() {
    let cluster = Cluster::start().await;
    let crds = definitions(&cluster);
    create(&crds, definition("widgets", "Widget", "Namespaced")).await;
    let widgets = cluster.api("example.com/v1", "Widget", "widgets", "default");
    create(&widgets, widget(&json!({"name": "w"}))).await;
    let mut hidden = definition("widgets", "Widget", "Namespaced")["spec"]["versions"].clone();
    hidden[0]["served"] = false.into();
    let patch = Patch::Merge(json!({"spec": {"versions": hidden}}));
    crds.patch("widgets.example.com", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert!(widgets.get("w").await.is_err(), "it is not served any more");
    assert_eq!(cluster.stored_below("/example.com/widgets/").await, 1);
    crds.delete("widgets.example.com", &DeleteParams::default())
        .await
        .unwrap();
    gone(&crds, "widgets.example.com").await;
    assert_eq!(cluster.stored_below("/example.com/widgets/").await, 0);
    cluster.stop().await;
}
