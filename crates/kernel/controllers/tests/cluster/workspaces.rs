//! Workspaces beside each other: the same names in all of them, one watch for each kind, and nothing that passes from one
//! to another.

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::harness::{Cluster, View, a_while, create, eventually, gone, owned, there};

const A: &str = "2a8f0a9b1c3d4e5f";
const B: &str = "2b8f0a9b1c3d4e5f";

async fn delete(api: &Api<DynamicObject>, name: &str, policy: PropagationPolicy) {
    let params = DeleteParams {
        propagation_policy: Some(policy),
        ..DeleteParams::default()
    };
    api.delete(name, &params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_goes_alone() {
    let cluster = Cluster::start().await;
    let (a, b) = (cluster.workspace(A).await, cluster.workspace(B).await);
    for place in [&a, &b, &*cluster] {
        place.namespace("n").await;
        let config_maps = place.config_maps("n");
        create(&config_maps, json!({"metadata": {"name": "c"}})).await;
        there(&config_maps, "kube-root-ca.crt").await;
        there(
            &place.api("v1", "ServiceAccount", "serviceaccounts", "n"),
            "default",
        )
        .await;
    }
    let ca = a.config_maps("n").get("kube-root-ca.crt").await.unwrap();
    assert_eq!(ca.metadata.annotations.unwrap()["kcp.io/cluster"], A);
    a.namespaces()
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    gone(&a.namespaces(), "n").await;
    a_while().await;
    for place in [&b, &*cluster] {
        let namespace = place.namespaces().get("n").await.unwrap();
        assert!(namespace.metadata.deletion_timestamp.is_none());
        assert_eq!(
            place
                .config_maps("n")
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .len(),
            2
        );
    }
    // The name is free again there, and what belongs into a namespace comes anew.
    a.namespace("n").await;
    there(&a.config_maps("n"), "kube-root-ca.crt").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_count_only_at_home() {
    let cluster = Cluster::start().await;
    let (a, b) = (cluster.workspace(A).await, cluster.workspace(B).await);
    let mut owners = Vec::new();
    for place in [&a, &b] {
        place.namespace("n").await;
        let api = place.config_maps("n");
        let owner = create(&api, json!({"metadata": {"name": "owner"}})).await;
        create(&api, owned("child", &[(&owner, true)])).await;
        owners.push(owner);
    }
    let (in_a, in_b) = (a.config_maps("n"), b.config_maps("n"));
    // One in B claims the owner in A, would go with it and would hold it up. That owner is absent here.
    create(&in_b, owned("thief", &[(&owners[0], true)])).await;
    gone(&in_b, "thief").await;
    let mut two = owned("both", &[(&owners[0], true), (&owners[1], false)]);
    two["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create(&in_b, two).await;
    eventually("only the owner at home is left", || async {
        let both = in_b.get("both").await.unwrap();
        let left = both.metadata.owner_references.unwrap_or_default();
        left.len() == 1 && Some(&left[0].uid) == owners[1].metadata.uid.as_ref()
    })
    .await;
    delete(&in_a, "owner", PropagationPolicy::Foreground).await;
    gone(&in_a, "child").await;
    gone(&in_a, "owner").await;
    a_while().await;
    for name in ["owner", "child", "both"] {
        let object = in_b.get(name).await.unwrap();
        assert!(object.metadata.deletion_timestamp.is_none(), "{name}");
    }
    delete(&in_b, "owner", PropagationPolicy::Orphan).await;
    gone(&in_b, "owner").await;
    let child = in_b.get("child").await.unwrap();
    assert_eq!(child.metadata.owner_references.unwrap_or_default(), []);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_count_in_their_own_workspace() {
    let cluster = Cluster::start().await;
    let (a, b) = (cluster.workspace(A).await, cluster.workspace(B).await);
    let secrets = |place: &View| place.api("v1", "Secret", "secrets", "n");
    let quotas = |place: &View| place.api("v1", "ResourceQuota", "resourcequotas", "n");
    for (place, number) in [(&a, 1), (&b, 3)] {
        place.namespace("n").await;
        for number in 0..number {
            create(
                &secrets(place),
                json!({"metadata": {"name": format!("s{number}")}}),
            )
            .await;
        }
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "9"}}});
        create(&quotas(place), quota).await;
    }
    let uses = async |place: &View, want: &str| {
        eventually(&format!("{want} are used"), || async {
            quotas(place).get("q").await.unwrap().data["status"]["used"]["secrets"] == want
        })
        .await;
    };
    uses(&a, "1").await;
    uses(&b, "3").await;
    secrets(&b).delete("s0", &DeleteParams::default()).await.unwrap();
    uses(&b, "2").await;
    uses(&a, "1").await;
    cluster.stop().await;
}

fn widgets(field: &str) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {field: {"type": "string"}}}},
            }],
        },
    })
}

fn widget(name: &str, field: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", field: "x",
        "metadata": {"name": name, "ownerReferences": owners},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_kinds_of_one_name_live_and_go_separately() {
    let cluster = Cluster::start().await;
    let (a, b) = (cluster.workspace(A).await, cluster.workspace(B).await);
    let definitions = |place: &View| {
        let crd = "CustomResourceDefinition";
        place.api("apiextensions.k8s.io/v1", crd, "customresourcedefinitions", "")
    };
    let objects = |place: &View| place.api("example.com/v1", "Widget", "widgets", "n");
    for (place, field) in [(&a, "ofA"), (&b, "ofB")] {
        create(&definitions(place), widgets(field)).await;
        place.namespace("n").await;
        let owner = create(&objects(place), widget("owner", field, &json!([]))).await;
        let reference = json!([{
            "apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner.metadata.uid,
        }]);
        create(&objects(place), widget("child", field, &reference)).await;
        let config_map = json!({"metadata": {"name": "child", "ownerReferences": reference}});
        create(&place.config_maps("n"), config_map).await;
        // A quota that counts a custom kind counts this workspace's.
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/widgets.example.com": "9"}}});
        let quotas = place.api("v1", "ResourceQuota", "resourcequotas", "n");
        create(&quotas, quota).await;
        eventually("widgets are counted", || async {
            quotas.get("q").await.unwrap().data["status"]["used"]["count/widgets.example.com"] == "2"
        })
        .await;
    }
    // Ownership works through custom kinds, each in its workspace.
    delete(&objects(&b), "owner", PropagationPolicy::Background).await;
    gone(&objects(&b), "child").await;
    gone(&b.config_maps("n"), "child").await;
    create(&objects(&b), widget("stays", "ofB", &json!([]))).await;
    a_while().await;
    assert!(objects(&a).get_opt("child").await.unwrap().is_some());
    assert!(a.config_maps("n").get_opt("child").await.unwrap().is_some());
    // The definition in A takes its objects along, and what they own.
    definitions(&a)
        .delete("widgets.example.com", &DeleteParams::default())
        .await
        .unwrap();
    gone(&definitions(&a), "widgets.example.com").await;
    gone(&a.config_maps("n"), "child").await;
    assert!(
        objects(&a).list(&ListParams::default()).await.is_err(),
        "served no more"
    );
    let stays = objects(&b).get("stays").await.unwrap();
    assert_eq!(stays.data["ofB"], "x");
    assert!(definitions(&b).get("widgets.example.com").await.is_ok());
    // An owner of a kind that only the neighbour serves is unknown, which is no reason to delete anything.
    let foreign = json!({"metadata": {"name": "foreign", "ownerReferences": [{
        "apiVersion": "example.com/v1", "kind": "Widget", "name": "stays", "uid": stays.metadata.uid,
    }]}});
    cluster.namespace("n").await;
    create(&cluster.config_maps("n"), foreign).await;
    a_while().await;
    assert!(
        cluster
            .config_maps("n")
            .get_opt("foreign")
            .await
            .unwrap()
            .is_some()
    );
    // A namespace loses objects of custom kinds as well.
    b.namespaces()
        .delete("n", &DeleteParams::default())
        .await
        .unwrap();
    gone(&b.namespaces(), "n").await;
    assert!(
        objects(&b)
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_controllers_work_in_every_workspace() {
    let cluster = Cluster::with_event_ttl(std::time::Duration::from_secs(2)).await;
    let a = cluster.workspace(A).await;
    a.namespace("n").await;
    // Roles are gathered.
    let roles = a.api("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "");
    let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    create(
        &roles,
        json!({"metadata": {"name": "part", "labels": {"to": "all"}}, "rules": [rule]}),
    )
    .await;
    let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]});
    create(
        &roles,
        json!({"metadata": {"name": "all"}, "aggregationRule": selectors}),
    )
    .await;
    eventually("the rules are gathered", || async {
        roles.get("all").await.unwrap().data["rules"] == json!([rule])
    })
    .await;
    // A Secret gets a token that is good here and nowhere else.
    let secrets = a.api("v1", "Secret", "secrets", "n");
    there(&a.api("v1", "ServiceAccount", "serviceaccounts", "n"), "default").await;
    let secret = json!({
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token",
    });
    create(&secrets, secret).await;
    eventually("the Secret is filled", || async {
        secrets.get("t").await.unwrap().data["data"]["token"].is_string()
    })
    .await;
    let token = secrets.get("t").await.unwrap().data["data"]["token"].clone();
    let token = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        token.as_str().unwrap(),
    )
    .unwrap();
    let token = String::from_utf8(token).unwrap();
    assert_eq!(
        cluster.user_in(A, &token).as_deref(),
        Some("system:serviceaccount:n:default")
    );
    assert_eq!(cluster.user_in("root", &token), None);
    // A Job fails, and the event about it ends.
    let jobs = a.api("batch/v1", "Job", "jobs", "n");
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    create(
        &jobs,
        json!({"metadata": {"name": "j"}, "spec": {"template": pod}}),
    )
    .await;
    eventually("the Job fails", || async {
        let conditions = jobs.get("j").await.unwrap().data["status"]["conditions"].clone();
        conditions
            .as_array()
            .is_some_and(|all| all.iter().any(|c| c["type"] == "Failed"))
    })
    .await;
    let events = a.api("v1", "Event", "events", "n");
    let number = async || events.list(&ListParams::default()).await.unwrap().items.len();
    eventually("an event tells of it", || async { number().await == 1 }).await;
    eventually("the event ends", || async { number().await == 0 }).await;
    // A budget counts, and Endpoints are mirrored.
    let budgets = a.api("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "n");
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    create(&budgets, budget).await;
    eventually("the budget is counted", || async {
        budgets.get("b").await.unwrap().data["status"]["observedGeneration"] == 1
    })
    .await;
    let services = a.api("v1", "Service", "services", "n");
    create(
        &services,
        json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    let endpoints = json!({"metadata": {"name": "s"}, "subsets": [{
        "addresses": [{"ip": "192.0.2.9"}], "ports": [{"port": 80}],
    }]});
    create(&a.api("v1", "Endpoints", "endpoints", "n"), endpoints).await;
    let slices = a.api("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", "n");
    eventually("a slice mirrors them", || async {
        slices.list(&ListParams::default()).await.unwrap().items.len() == 1
    })
    .await;
    let own = async |place: &View, name: &str| place.config_maps("kube-system").get_opt(name).await.unwrap();
    assert!(
        own(&cluster, "extension-apiserver-authentication")
            .await
            .is_some()
    );
    assert!(
        own(&a, "extension-apiserver-authentication").await.is_none(),
        "of the server, not of each workspace"
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_one_watch_for_each_kind_however_many_workspaces_there_are() {
    let cluster = Cluster::start().await;
    let a = cluster.workspace(A).await;
    a.namespace("n").await;
    there(&a.config_maps("n"), "kube-root-ca.crt").await;
    let before = cluster.settled_watches().await;
    for number in 0..20 {
        let place = cluster.workspace(&format!("2c8f0a9b1c3d{number:04}")).await;
        place.namespace("n").await;
        let config_maps = place.config_maps("n");
        let owner = create(&config_maps, json!({"metadata": {"name": "owner"}})).await;
        create(&config_maps, owned("child", &[(&owner, false)])).await;
        there(&config_maps, "kube-root-ca.crt").await;
        there(
            &place.api("v1", "ServiceAccount", "serviceaccounts", "n"),
            "default",
        )
        .await;
        delete(&config_maps, "owner", PropagationPolicy::Background).await;
        gone(&config_maps, "child").await;
    }
    assert_eq!(cluster.watches(), before, "workspaces add no watch");
    let inside: Vec<_> = before
        .keys()
        .filter(|path| path.starts_with("/clusters/") && !path.starts_with("/clusters/*/"))
        .collect();
    assert!(inside.is_empty(), "{inside:?}");
    // The collector sees every kind once; some controllers look at a kind more closely besides.
    assert_eq!(before.get("/clusters/*/api/v1/limitranges"), Some(&1));
    assert!(before.values().all(|number| *number <= 4), "{before:?}");
    // A kind that a workspace defines is another kind, with a watch of its own.
    let crds = a.api(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "",
    );
    let crd = create(&crds, widgets("x")).await;
    let path = format!(
        "/clusters/*/apis/example.com/v1/widgets:{}",
        crd.metadata.uid.unwrap()
    );
    eventually("the new kind is watched", || async {
        cluster.watches().contains_key(&path)
    })
    .await;
    a_while().await;
    assert_eq!(cluster.watches().len(), before.len() + 1);
    cluster.stop().await;
}
