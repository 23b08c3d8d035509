//! Kinds that a workspace has from an export, in the eyes of the controllers: counted and owned where they are.

use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};

use crate::harness::{Cluster, View, a_while, eventually, gone};
use crate::shared_apis::{binding, boat, boats, bound, export, exports, schema, schemas};
use crate::tenancy::{bindings, create, make};

fn quotas(place: &View) -> Api<DynamicObject> {
    place.api("v1", "ResourceQuota", "resourcequotas", "default")
}

async fn counts(place: &View, want: &str) {
    eventually(&format!("{want} boats are counted"), || async {
        quotas(place).get("q").await.unwrap().data["status"]["used"]["count/boats.sea.io"] == want
    })
    .await;
}

fn owned_by(owner: &DynamicObject) -> Value {
    json!([{"apiVersion": "sea.io/v1", "kind": "Boat", "name": owner.metadata.name, "uid": owner.metadata.uid}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn are_counted_and_owned_in_their_own_workspace() {
    let cluster = Cluster::start().await;
    let provider = cluster.at(&make(&cluster, "provider", Some("universal")).await);
    create(&schemas(&provider), schema("v1.boats.sea.io", "size")).await;
    create(
        &exports(&provider),
        export("boats", "v1.boats.sea.io", &json!([])),
    )
    .await;
    let mut places = Vec::new();
    for name in ["a", "b"] {
        let place = cluster.at(&make(&cluster, name, Some("universal")).await);
        create(
            &bindings(&place),
            binding("b", "root:provider", "boats", &json!([])),
        )
        .await;
        bound(&place, "b").await;
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/boats.sea.io": "3", "configmaps": "9"}}});
        create(&quotas(&place), quota).await;
        // As upstream, nothing is let in before it is known what there is.
        counts(&place, "0").await;
        let owner = boat(&place, "owner", json!({"size": 1})).await;
        let dinghy = json!({"apiVersion": "sea.io/v1", "kind": "Boat",
            "metadata": {"name": "dinghy", "ownerReferences": owned_by(&owner)}});
        create(&boats(&place), dinghy).await;
        let log = json!({"metadata": {"name": "log", "ownerReferences": owned_by(&owner)}});
        create(&place.config_maps("default"), log).await;
        counts(&place, "2").await;
        places.push(place);
    }
    let (a, b) = (&places[0], &places[1]);
    // Same-named owners: one goes, with what is its own.
    boats(a).delete("owner", &DeleteParams::default()).await.unwrap();
    gone(&boats(a), "dinghy").await;
    gone(&a.config_maps("default"), "log").await;
    counts(a, "0").await;
    a_while().await;
    boats(b).get("dinghy").await.unwrap();
    b.config_maps("default").get("log").await.unwrap();
    counts(b, "2").await;
    // The limit holds, in each for itself.
    boat(b, "third", json!({"size": 3})).await;
    let fourth: DynamicObject = serde_json::from_value(
        json!({"apiVersion": "sea.io/v1", "kind": "Boat", "metadata": {"name": "fourth"}, "spec": {"size": 4}}),
    )
    .unwrap();
    let refused = boats(b).create(&kube::api::PostParams::default(), &fourth).await;
    assert!(refused.unwrap_err().to_string().contains("exceeded quota"));
    boat(a, "fourth", json!({"size": 4})).await;
    // Without its binding the kind is gone; the quota goes on with the rest.
    bindings(a).delete("b", &DeleteParams::default()).await.unwrap();
    gone(&bindings(a), "b").await;
    let before = quotas(a).get("q").await.unwrap().data["status"]["used"]["configmaps"].clone();
    let before: u32 = before.as_str().unwrap().parse().unwrap();
    let after = &(before + 1).to_string();
    create(&a.config_maps("default"), json!({"metadata": {"name": "more"}})).await;
    eventually("the rest is counted", || async {
        quotas(a).get("q").await.unwrap().data["status"]["used"]["configmaps"] == *after
    })
    .await;
    cluster.stop().await;
}
