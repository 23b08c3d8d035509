//! What is served has its APIService, which comes and goes with what it stands for.

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, create, eventually, gone, there};

fn definition(group: &str) -> Value {
    json!({
        "metadata": {"name": format!("boats.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

fn services(cluster: &Cluster) -> Api<DynamicObject> {
    cluster.api("apiregistration.k8s.io/v1", "APIService", "apiservices", "")
}

async fn is_available(api: &Api<DynamicObject>, name: &str, status: &str, reason: &str) {
    eventually(&format!("{name} is {reason}"), || async {
        let found = api.get_opt(name).await.unwrap();
        found.is_some_and(|found| {
            let condition = &found.data["status"]["conditions"][0];
            condition["type"] == "Available" && condition["status"] == status && condition["reason"] == reason
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_served_version_is_registered() {
    let cluster = Cluster::start().await;
    let api = services(&cluster);
    for name in ["v1.", "v1.apps", "v2.autoscaling", "v1.rbac.authorization.k8s.io"] {
        is_available(&api, name, "True", "Local").await;
    }
    let list = api.list(&ListParams::default()).await.unwrap();
    assert!(
        list.items
            .iter()
            .all(|s| s.metadata.name.as_deref() != Some("v1.apiregistration.k8s.io"))
    );
    println!("{} APIServices", list.items.len());

    let crds = cluster.api(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "",
    );
    create(&crds, definition("harbour.example.com")).await;
    is_available(&api, "v1alpha1.harbour.example.com", "True", "Local").await;
    crds.delete("boats.harbour.example.com", &DeleteParams::default())
        .await
        .unwrap();
    gone(&api, "v1alpha1.harbour.example.com").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_changes_is_put_right_and_what_is_his_stays() {
    let cluster = Cluster::start().await;
    let api = services(&cluster);
    there(&api, "v1.apps").await;
    api.delete("v1.apps", &DeleteParams::default()).await.unwrap();
    is_available(&api, "v1.apps", "True", "Local").await;
    let change = json!({"spec": {"groupPriorityMinimum": 5}});
    api.patch("v1.apps", &PatchParams::default(), &Patch::Merge(&change))
        .await
        .unwrap();
    eventually("the priority is put right", || async {
        api.get("v1.apps").await.unwrap().data["spec"]["groupPriorityMinimum"] == 17_800
    })
    .await;
    create(
        &api,
        json!({
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {
                "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true, "service": {"name": "metrics-server", "namespace": "kube-system"},
            },
        }),
    )
    .await;
    is_available(&api, "v1beta1.metrics.k8s.io", "False", "NotProxied").await;
    cluster.stop().await;
}
