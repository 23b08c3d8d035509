//! A quota's status tells what is used, soon after it has changed.

#![allow(clippy::needless_pass_by_value, reason = "the tests hand over JSON literals")]

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, create, eventually, there};

fn used(quota: &DynamicObject) -> Value {
    quota.data.pointer("/status/used").cloned().unwrap_or_default()
}

async fn uses(quotas: &Api<DynamicObject>, name: &str, want: Value) {
    let took = eventually(&format!("{name} uses {want}"), || async {
        used(&quotas.get(name).await.unwrap()) == want
    })
    .await;
    assert!(took.as_secs() < 10, "{took:?}");
}

fn quotas(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    cluster.api("v1", "ResourceQuota", "resourcequotas", namespace)
}

async fn delete(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_follows_what_comes_and_goes() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let (quotas, secrets) = (quotas(&cluster, "n"), cluster.api("v1", "Secret", "secrets", "n"));
    create(&secrets, json!({"metadata": {"name": "early"}})).await;
    create(
        &quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "2", "count/secrets": "9"}}}),
    )
    .await;
    uses(&quotas, "q", json!({"count/secrets": "1", "secrets": "1"})).await;
    create(&secrets, json!({"metadata": {"name": "late"}})).await;
    assert_eq!(
        used(&quotas.get("q").await.unwrap())["secrets"],
        "2",
        "charged at once"
    );
    let third: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "third"}})).unwrap();
    let refused = secrets.create(&PostParams::default(), &third).await.unwrap_err();
    assert!(refused.to_string().contains("exceeded quota: q"), "{refused}");
    delete(&secrets, "early").await;
    uses(&quotas, "q", json!({"count/secrets": "1", "secrets": "1"})).await;
    create(&secrets, json!({"metadata": {"name": "third"}})).await;

    let patch =
        Patch::Merge(json!({"spec": {"hard": {"secrets": "5", "count/secrets": null, "configmaps": "4"}}}));
    quotas.patch("q", &PatchParams::default(), &patch).await.unwrap();
    there(&cluster.config_maps("n"), "kube-root-ca.crt").await;
    uses(&quotas, "q", json!({"configmaps": "1", "secrets": "2"})).await;
    let quota = quotas.get("q").await.unwrap();
    assert_eq!(
        quota.data["status"]["hard"],
        json!({"configmaps": "4", "secrets": "5"})
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_end_and_kinds_that_come_later_are_counted() {
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let (quotas, pods) = (quotas(&cluster, "n"), cluster.api("v1", "Pod", "pods", "n"));
    let hard = json!({"pods": "2", "count/pods": "3", "requests.cpu": "1", "count/widgets.example.com": "1"});
    create(
        &quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}),
    )
    .await;
    uses(
        &quotas,
        "q",
        json!({"count/pods": "0", "pods": "0", "requests.cpu": "0"}),
    )
    .await;
    let pod = |name: &str| {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}});
        json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
    };
    create(&pods, pod("a")).await;
    create(&pods, pod("b")).await;
    uses(
        &quotas,
        "q",
        json!({"count/pods": "2", "pods": "2", "requests.cpu": "1"}),
    )
    .await;
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status("a", &PatchParams::default(), &ended)
        .await
        .unwrap();
    uses(
        &quotas,
        "q",
        json!({"count/pods": "2", "pods": "1", "requests.cpu": "500m"}),
    )
    .await;
    create(&pods, pod("c")).await;

    let definitions = cluster.api(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "",
    );
    let widgets = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    create(&definitions, widgets).await;
    let all = |widgets: &str| json!({"count/pods": "3", "count/widgets.example.com": widgets, "pods": "2", "requests.cpu": "1"});
    uses(&quotas, "q", all("0")).await;
    let widgets = cluster.api("example.com/v1", "Widget", "widgets", "n");
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    create(&widgets, widget).await;
    uses(&quotas, "q", all("1")).await;
    delete(&widgets, "w").await;
    uses(&quotas, "q", all("0")).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_while_nobody_counted_is_found_at_the_start() {
    let mut cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let (quotas, secrets) = (quotas(&cluster, "n"), cluster.api("v1", "Secret", "secrets", "n"));
    create(
        &quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "3"}}}),
    )
    .await;
    uses(&quotas, "q", json!({"secrets": "0"})).await;
    for name in ["a", "b"] {
        create(&secrets, json!({"metadata": {"name": name}})).await;
    }
    cluster.stop_controllers().await;
    delete(&secrets, "a").await;
    assert_eq!(
        used(&quotas.get("q").await.unwrap()),
        json!({"secrets": "2"}),
        "too high, never too low"
    );
    cluster.start_controllers();
    uses(&quotas, "q", json!({"secrets": "1"})).await;
    cluster.stop().await;
}

/// Creations and deletions without pause, while counts are written: what is used is never below what is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_count_overlooks_nothing() {
    const LIMIT: usize = 12;
    let cluster = Cluster::start().await;
    cluster.namespace("n").await;
    let (quotas, secrets) = (quotas(&cluster, "n"), cluster.api("v1", "Secret", "secrets", "n"));
    create(
        &quotas,
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": LIMIT.to_string()}}}),
    )
    .await;
    uses(&quotas, "q", json!({"secrets": "0"})).await;
    let writers = (0..6).map(|writer| {
        let secrets = secrets.clone();
        tokio::spawn(async move {
            for round in 0..30 {
                let name = format!("s{writer}-{round}");
                let secret: DynamicObject =
                    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
                if secrets.create(&PostParams::default(), &secret).await.is_ok() && round % 4 != 0 {
                    secrets.delete(&name, &DeleteParams::default()).await.unwrap();
                }
            }
        })
    });
    let writers = futures::future::join_all(writers);
    let watch = async {
        loop {
            let list = secrets.list(&kube::api::ListParams::default()).await.unwrap();
            assert!(list.items.len() <= LIMIT, "{} secrets", list.items.len());
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        done = writers => done.into_iter().for_each(|writer| writer.unwrap()),
        () = watch => unreachable!(),
    }
    let there = secrets
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items
        .len();
    uses(&quotas, "q", json!({"secrets": there.to_string()})).await;
    cluster.stop().await;
}
