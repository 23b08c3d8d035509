//! APIs that one workspace offers and others take: from the export over the binding to its end.

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, View, a_while, eventually, gone};
use crate::tenancy::{bindings, condition, create, make};

pub(crate) fn exports(place: &View) -> Api<DynamicObject> {
    place.api("apis.kcp.io/v1alpha2", "APIExport", "apiexports", "")
}

pub(crate) fn schemas(place: &View) -> Api<DynamicObject> {
    let kind = "APIResourceSchema";
    place.api("apis.kcp.io/v1alpha1", kind, "apiresourceschemas", "")
}

fn slices(place: &View) -> Api<DynamicObject> {
    let kind = "APIExportEndpointSlice";
    place.api("apis.kcp.io/v1alpha1", kind, "apiexportendpointslices", "")
}

pub(crate) fn boats(place: &View) -> Api<DynamicObject> {
    place.api("sea.io/v1", "Boat", "boats", "default")
}

pub(crate) fn schema(name: &str, field: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "group": "sea.io", "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {field: {"type": "integer"}}}}}}],
    }})
}

pub(crate) fn export(name: &str, schema: &str, claims: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "resources": [{"group": "sea.io", "name": "boats", "schema": schema, "storage": {"crd": {}}}],
        "permissionClaims": claims,
    }})
}

pub(crate) fn binding(name: &str, path: &str, export: &str, answers: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "reference": {"export": {"path": path, "name": export}}, "permissionClaims": answers,
    }})
}

pub(crate) async fn bound(place: &View, name: &str) -> DynamicObject {
    let api = bindings(place);
    eventually(&format!("{name} is bound"), || async {
        let it = api.get(name).await.unwrap();
        it.data["status"]["phase"] == "Bound" && condition(&it, "Ready")["status"] == "True"
    })
    .await;
    api.get(name).await.unwrap()
}

async fn patch(api: &Api<DynamicObject>, name: &str, change: Value) {
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(change)).await.unwrap();
}

pub(crate) async fn boat(place: &View, name: &str, spec: Value) -> DynamicObject {
    let object = json!({"apiVersion": "sea.io/v1", "kind": "Boat", "metadata": {"name": name}, "spec": spec});
    create(&boats(place), object).await
}

/// A provider with an export, and a consumer.
async fn sea(claims: Value) -> (Cluster, View, View) {
    let cluster = Cluster::start().await;
    let provider = make(&cluster, "provider", Some("universal")).await;
    let consumer = make(&cluster, "consumer", Some("universal")).await;
    let (provider, consumer) = (cluster.at(&provider), cluster.at(&consumer));
    create(&schemas(&provider), schema("v1.boats.sea.io", "size")).await;
    create(&exports(&provider), export("boats", "v1.boats.sea.io", &claims)).await;
    (cluster, provider, consumer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_brings_follows_and_takes_along() {
    let (cluster, provider, consumer) = sea(json!([])).await;
    eventually("the export has an identity and a slice", || async {
        let export = exports(&provider).get("boats").await.unwrap();
        export.data["status"]["identityHash"].is_string()
            && condition(&export, "IdentityValid")["status"] == "True"
            && slices(&provider).get_opt("boats").await.unwrap().is_some()
    })
    .await;
    let secret = provider
        .api("v1", "Secret", "secrets", "kcp-system")
        .get("boats")
        .await;
    assert!(secret.unwrap().data["data"]["key"].is_string());
    let slice = slices(&provider).get("boats").await.unwrap();
    assert!(slice.data["status"]["endpoints"].is_null(), "nobody is bound yet");

    create(
        &bindings(&consumer),
        binding("b", "root:provider", "boats", &json!([])),
    )
    .await;
    bound(&consumer, "b").await;
    boat(&consumer, "ark", json!({"size": 3})).await;
    eventually("the slice leads to the consumers", || async {
        let slice = slices(&provider).get("boats").await.unwrap();
        let url = slice.data["status"]["endpoints"][0]["url"].clone();
        url.as_str().is_some_and(|it| {
            it.starts_with("https://192.0.2.7:6443/services/apiexport/") && it.ends_with("/boats")
        })
    })
    .await;
    // The schema changes, and the consumer's kind with it.
    create(&schemas(&provider), schema("v2.boats.sea.io", "length")).await;
    let next = export("boats", "v2.boats.sea.io", &json!([]));
    patch(&exports(&provider), "boats", json!({"spec": next["spec"]})).await;
    eventually("the new schema is bound", || async {
        let it = bindings(&consumer).get("b").await.unwrap();
        it.data["status"]["boundResources"][0]["schema"]["name"] == "v2.boats.sea.io"
    })
    .await;
    let made = boat(&consumer, "long", json!({"length": 9})).await;
    assert_eq!(made.data["spec"], json!({"length": 9}));
    // A schema that is not there is told; what is bound stays.
    let broken = export("boats", "v3.boats.sea.io", &json!([]));
    patch(&exports(&provider), "boats", json!({"spec": broken["spec"]})).await;
    eventually("the missing schema is told", || async {
        let told = condition(&bindings(&consumer).get("b").await.unwrap(), "APIExportValid");
        told["message"]
            .as_str()
            .is_some_and(|it| it.contains("v3.boats.sea.io"))
    })
    .await;
    boats(&consumer).get("ark").await.unwrap();
    create(&schemas(&provider), schema("v3.boats.sea.io", "length")).await;
    eventually("it is found when it comes", || async {
        let it = bindings(&consumer).get("b").await.unwrap();
        condition(&it, "APIExportValid")["status"] == "True"
    })
    .await;
    // The end of the binding is held by an object's finalizer, and takes the objects along.
    patch(
        &boats(&consumer),
        "ark",
        json!({"metadata": {"finalizers": ["sea.io/anchor"]}}),
    )
    .await;
    bindings(&consumer)
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the binding says what holds it", || async {
        let told = condition(
            &bindings(&consumer).get("b").await.unwrap(),
            "BindingResourceDeleteSuccess",
        );
        told["message"]
            .as_str()
            .is_some_and(|it| it.contains("sea.io/anchor in 1 resource instances"))
    })
    .await;
    assert!(boats(&consumer).get_opt("long").await.unwrap().is_none());
    patch(
        &boats(&consumer),
        "ark",
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    gone(&bindings(&consumer), "b").await;
    assert!(
        boats(&consumer).list(&ListParams::default()).await.is_err(),
        "served no more"
    );
    eventually("nobody is bound any more", || async {
        slices(&provider).get("boats").await.unwrap().data["status"]["endpoints"].is_null()
    })
    .await;
    // Bound again, it begins anew.
    create(
        &bindings(&consumer),
        binding("b", "root:provider", "boats", &json!([])),
    )
    .await;
    bound(&consumer, "b").await;
    assert_eq!(
        boats(&consumer)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_vanishes_leaves_what_it_brought() {
    let (cluster, provider, consumer) = sea(json!([])).await;
    create(
        &bindings(&consumer),
        binding("b", "root:provider", "boats", &json!([])),
    )
    .await;
    bound(&consumer, "b").await;
    boat(&consumer, "ark", json!({"size": 3})).await;
    exports(&provider)
        .delete("boats", &DeleteParams::default())
        .await
        .unwrap();
    eventually("it is told", || async {
        let told = condition(&bindings(&consumer).get("b").await.unwrap(), "APIExportValid");
        told["reason"] == "APIExportNotFound"
    })
    .await;
    assert_eq!(
        bindings(&consumer).get("b").await.unwrap().data["status"]["phase"],
        "Bound"
    );
    boats(&consumer).get("ark").await.unwrap();
    // Another export of that name is not the one that was bound.
    provider
        .api("v1", "Secret", "secrets", "kcp-system")
        .delete("boats", &DeleteParams::default())
        .await
        .unwrap();
    gone(&slices(&provider), "boats").await;
    create(
        &exports(&provider),
        export("boats", "v1.boats.sea.io", &json!([])),
    )
    .await;
    eventually("the impostor is told", || async {
        let told = condition(&bindings(&consumer).get("b").await.unwrap(), "APIExportValid");
        told["reason"] == "IdentityMismatch"
    })
    .await;
    boats(&consumer).get("ark").await.unwrap();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_first_holds_a_kind() {
    let (cluster, provider, consumer) = sea(json!([])).await;
    create(
        &exports(&provider),
        export("other", "v1.boats.sea.io", &json!([])),
    )
    .await;
    create(
        &bindings(&consumer),
        binding("first", "root:provider", "boats", &json!([])),
    )
    .await;
    bound(&consumer, "first").await;
    create(
        &bindings(&consumer),
        binding("second", "root:provider", "other", &json!([])),
    )
    .await;
    eventually("the conflict is told", || async {
        let told = condition(
            &bindings(&consumer).get("second").await.unwrap(),
            "InitialBindingCompleted",
        );
        told["reason"] == "NamingConflicts"
            && told["message"]
                .as_str()
                .is_some_and(|it| it.contains("boats.sea.io by APIBinding \"first\""))
    })
    .await;
    let crds = consumer.api(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "",
    );
    let crd = json!({"metadata": {"name": "boats.sea.io"}, "spec": {
        "group": "sea.io", "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }});
    let object: DynamicObject = serde_json::from_value(crd.clone()).unwrap();
    let refused = crds.create(&kube::api::PostParams::default(), &object).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("bound by APIBinding \"first\"")
    );
    // When the first goes, the second has its turn.
    bindings(&consumer)
        .delete("first", &DeleteParams::default())
        .await
        .unwrap();
    bound(&consumer, "second").await;
    bindings(&consumer)
        .delete("second", &DeleteParams::default())
        .await
        .unwrap();
    gone(&bindings(&consumer), "second").await;
    // And a definition holds a kind as well.
    create(&crds, crd).await;
    create(
        &bindings(&consumer),
        binding("third", "root:provider", "boats", &json!([])),
    )
    .await;
    eventually("the conflict with a definition is told", || async {
        let told = condition(
            &bindings(&consumer).get("third").await.unwrap(),
            "InitialBindingCompleted",
        );
        told["message"]
            .as_str()
            .is_some_and(|it| it.contains("by a CustomResourceDefinition"))
    })
    .await;
    crds.delete("boats.sea.io", &DeleteParams::default())
        .await
        .unwrap();
    bound(&consumer, "third").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_follow_consent() {
    let claims = json!([{"group": "", "resource": "configmaps", "verbs": ["*"]}]);
    let (cluster, _, consumer) = sea(claims).await;
    let maps = consumer.config_maps("default");
    create(&maps, json!({"metadata": {"name": "before"}})).await;
    let answer = |state: &str| json!([{"group": "", "resource": "configmaps", "verbs": ["*"], "state": state, "selector": {"matchAll": true}}]);
    let labelled = async |name: &str| {
        let labels = maps.get(name).await.unwrap().metadata.labels.unwrap_or_default();
        labels
            .keys()
            .any(|key| key.starts_with("claimed.internal.apis.kcp.io/"))
    };
    create(
        &bindings(&consumer),
        binding("b", "root:provider", "boats", &answer("Rejected")),
    )
    .await;
    let rejected = bound(&consumer, "b").await;
    assert!(rejected.data["status"]["appliedPermissionClaims"].is_null());
    a_while().await;
    assert!(!labelled("before").await);
    patch(
        &bindings(&consumer),
        "b",
        json!({"spec": {"permissionClaims": answer("Accepted")}}),
    )
    .await;
    eventually("what was there before is opened", || async {
        labelled("before").await
    })
    .await;
    eventually("the claim is applied", || async {
        let it = bindings(&consumer).get("b").await.unwrap();
        it.data["status"]["appliedPermissionClaims"].is_array()
    })
    .await;
    create(&maps, json!({"metadata": {"name": "after"}})).await;
    assert!(labelled("after").await);
    patch(
        &bindings(&consumer),
        "b",
        json!({"spec": {"permissionClaims": answer("Rejected")}}),
    )
    .await;
    eventually("it is closed again", || async {
        !labelled("before").await && !labelled("after").await
    })
    .await;
    patch(
        &bindings(&consumer),
        "b",
        json!({"spec": {"permissionClaims": answer("Accepted")}}),
    )
    .await;
    eventually("and opened", || async { labelled("after").await }).await;
    // The end of the binding closes it for good.
    bindings(&consumer)
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    gone(&bindings(&consumer), "b").await;
    assert!(!labelled("before").await && !labelled("after").await);
    // Consent to what was not asked for is told, and opens nothing.
    let wrong = json!([{"group": "", "resource": "secrets", "verbs": ["*"], "state": "Accepted", "selector": {"matchAll": true}}]);
    create(
        &bindings(&consumer),
        binding("c", "root:provider", "boats", &wrong),
    )
    .await;
    eventually("it is told", || async {
        let told = condition(
            &bindings(&consumer).get("c").await.unwrap(),
            "PermissionClaimsValid",
        );
        told["reason"] == "InvalidPermissionClaims"
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_in_the_identity_secret_is_noticed() {
    let (cluster, provider, _) = sea(json!([])).await;
    let exports = exports(&provider);
    let identity = async |status: &str| {
        eventually(&format!("IdentityValid is {status}"), || async {
            let export = exports.get("boats").await.unwrap();
            condition(&export, "IdentityValid")["status"] == status
        })
        .await;
    };
    identity("True").await;
    let secrets = provider.api("v1", "Secret", "secrets", "kcp-system");
    let key = secrets.get("boats").await.unwrap().data["data"]["key"].clone();
    patch(&secrets, "boats", json!({"data": {"key": "YW5vdGhlcg=="}})).await;
    identity("False").await;
    patch(&secrets, "boats", json!({"data": {"key": key}})).await;
    identity("True").await;
    cluster.stop().await;
}
