//! Workspaces from their creation to their end, as their users see them.

use std::collections::BTreeSet;

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::harness::{Cluster, View, a_while, eventually, gone, there};

/// An object with its kind, which custom kinds want to be told.
pub(crate) fn typed(api: &Api<DynamicObject>, mut object: Value) -> DynamicObject {
    let (prefix, plural) = api.resource_url().rsplit_once('/').unwrap();
    let kind = match plural {
        "workspaces" => "Workspace",
        "workspacetypes" => "WorkspaceType",
        "apibindings" => "APIBinding",
        "apiexports" => "APIExport",
        "apiresourceschemas" => "APIResourceSchema",
        _ => "",
    };
    if !kind.is_empty() {
        object["kind"] = json!(kind);
        object["apiVersion"] = json!(prefix.trim_start_matches("/apis/"));
    }
    serde_json::from_value(object).unwrap()
}

pub(crate) async fn create(api: &Api<DynamicObject>, object: Value) -> DynamicObject {
    let object = typed(api, object);
    api.create(&PostParams::default(), &object).await.unwrap()
}

pub(crate) fn workspaces(place: &View) -> Api<DynamicObject> {
    place.api("tenancy.kcp.io/v1alpha1", "Workspace", "workspaces", "")
}

fn types(place: &View) -> Api<DynamicObject> {
    place.api("tenancy.kcp.io/v1alpha1", "WorkspaceType", "workspacetypes", "")
}

fn logical_clusters(place: &View) -> Api<DynamicObject> {
    place.api("core.kcp.io/v1alpha1", "LogicalCluster", "logicalclusters", "")
}

pub(crate) fn bindings(place: &View) -> Api<DynamicObject> {
    place.api("apis.kcp.io/v1alpha2", "APIBinding", "apibindings", "")
}

fn definitions(place: &View) -> Api<DynamicObject> {
    let kind = "CustomResourceDefinition";
    place.api("apiextensions.k8s.io/v1", kind, "customresourcedefinitions", "")
}

fn published(place: &View) -> Api<DynamicObject> {
    let kind = "PublishedResource";
    place.api("syncagent.kcp.io/v1alpha1", kind, "publishedresources", "")
}

/// Waits until a workspace is ready, and says under which id.
pub(crate) async fn ready(api: &Api<DynamicObject>, name: &str) -> String {
    eventually(&format!("{name} is ready"), || async {
        api.get(name).await.unwrap().data["status"]["phase"] == "Ready"
    })
    .await;
    let workspace = api.get(name).await.unwrap();
    workspace.data["spec"]["cluster"].as_str().unwrap().to_owned()
}

/// A workspace that is ready: its id.
pub(crate) async fn make(place: &View, name: &str, kind: Option<&str>) -> String {
    let api = workspaces(place);
    let spec = kind.map_or(json!({}), |kind| json!({"type": {"name": kind}}));
    create(&api, json!({"metadata": {"name": name}, "spec": spec})).await;
    ready(&api, name).await
}

pub(crate) fn condition(object: &DynamicObject, kind: &str) -> Value {
    let all = object.data["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|it| it["type"] == kind);
    found.cloned().unwrap_or(Value::Null)
}

/// Lets a user work with workspaces of the root.
async fn admit(cluster: &Cluster, user: &str) {
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "tenant"}, "rules": [
        {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspaces"], "verbs": ["create", "delete", "get", "list", "watch"]},
    ]});
    create(&cluster.api(rbac, "ClusterRole", "clusterroles", ""), role).await;
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tenant"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let api = cluster.api(rbac, "ClusterRoleBinding", "clusterrolebindings", "");
    create(&api, binding).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_makes_uses_and_deletes_a_workspace() {
    let cluster = Cluster::start().await;
    admit(&cluster, "ann").await;
    let ann = cluster.seen_by("ann", &[], "root");
    let id = make(&ann, "acme", None).await;
    let made = workspaces(&ann).get("acme").await.unwrap();
    assert_eq!(
        made.data["spec"]["type"],
        json!({"name": "organization", "path": "root"})
    );
    assert_eq!(
        made.data["spec"]["URL"],
        "https://192.0.2.7:6443/clusters/root:acme"
    );
    assert_eq!(made.metadata.labels.unwrap()["tenancy.kcp.io/phase"], "Ready");
    let owner = &made.metadata.annotations.unwrap()["experimental.tenancy.kcp.io/owner"];
    assert_eq!(
        owner, "{\"username\":\"ann\"}",
        "groups are nobody's business any more"
    );
    // She is administrator inside, and only inside.
    let inside = cluster.seen_by("ann", &[], &id);
    there(&inside.config_maps("default"), "kube-root-ca.crt").await;
    there(
        &inside.api("v1", "ServiceAccount", "serviceaccounts", "default"),
        "default",
    )
    .await;
    inside.namespace("n").await;
    create(&inside.config_maps("n"), json!({"metadata": {"name": "c"}})).await;
    assert!(
        ann.config_maps("default")
            .list(&ListParams::default())
            .await
            .is_err()
    );
    let bob = cluster.seen_by("bob", &[], &id);
    assert!(bob.config_maps("n").list(&ListParams::default()).await.is_err());
    // What every workspace has at once.
    let none = published(&inside).list(&ListParams::default()).await.unwrap();
    assert_eq!(none.items.len(), 0);
    // A workspace in the workspace; an organisation's children are universal.
    let team = make(&inside, "team", None).await;
    let deep = cluster.seen_by("ann", &[], &team);
    create(
        &deep.config_maps("default"),
        json!({"metadata": {"name": "deep"}}),
    )
    .await;
    let url = workspaces(&inside).get("team").await.unwrap().data["spec"]["URL"].clone();
    assert_eq!(url, "https://192.0.2.7:6443/clusters/root:acme:team");
    let itself = logical_clusters(&deep).get("cluster").await.unwrap();
    assert_eq!(
        itself.metadata.annotations.unwrap()["kcp.io/path"],
        "root:acme:team"
    );
    // She cannot delete a workspace from within, and can from outside; everything goes along.
    let refused = logical_clusters(&inside)
        .delete("cluster", &DeleteParams::default())
        .await;
    assert!(refused.is_err());
    workspaces(&ann)
        .delete("acme", &DeleteParams::default())
        .await
        .unwrap();
    gone(&workspaces(&ann), "acme").await;
    for id in [&id, &team] {
        let left = cluster.stored_in(id).await;
        assert_eq!(left, [""; 0], "nothing is left in the store");
    }
    // The name is free again.
    let again = make(&ann, "acme", None).await;
    assert_ne!(again, id);
    let anew = cluster.seen_by("ann", &[], &again);
    assert!(anew.namespaces().get_opt("n").await.unwrap().is_none());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn root_has_what_every_workspace_has() {
    let mut cluster = Cluster::start().await;
    eventually("the kinds of the system are served in root", || async {
        published(&cluster).list(&ListParams::default()).await.is_ok()
    })
    .await;
    let bound = bindings(&cluster).list(&ListParams::default()).await.unwrap();
    assert_eq!(bound.items.len(), 1);
    let id = make(&cluster, "a", Some("universal")).await;
    let inside = cluster.at(&id);
    let found = bindings(&inside).list(&ListParams::default()).await.unwrap();
    let name = found.items[0].metadata.name.clone().unwrap();
    // What a type maintains comes back.
    bindings(&inside)
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    eventually("the binding is made again", || async {
        let now = bindings(&inside).get_opt(&name).await.unwrap();
        now.is_some_and(|now| {
            now.metadata.uid != found.items[0].metadata.uid && now.data["status"]["phase"] == "Bound"
        })
    })
    .await;
    // A restart changes nothing.
    a_while().await;
    let version = |it: DynamicObject| it.metadata.resource_version;
    let before = (
        version(workspaces(&cluster).get("a").await.unwrap()),
        version(logical_clusters(&inside).get("cluster").await.unwrap()),
        version(bindings(&inside).get(&name).await.unwrap()),
    );
    cluster.stop_controllers().await;
    cluster.start_controllers();
    let other = make(&cluster, "b", Some("universal")).await;
    assert_ne!(other, id);
    a_while().await;
    let after = (
        version(workspaces(&cluster).get("a").await.unwrap()),
        version(logical_clusters(&inside).get("cluster").await.unwrap()),
        version(bindings(&inside).get(&name).await.unwrap()),
    );
    assert_eq!(before, after);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_types_own_initializer_is_waited_for() {
    let cluster = Cluster::start().await;
    let kind = json!({"metadata": {"name": "slow"}, "spec": {
        "initializer": true, "extend": {"with": [{"name": "universal", "path": "root"}]},
        "defaultChildWorkspaceType": {"name": "universal", "path": "root"},
    }});
    create(&types(&cluster), kind).await;
    let api = workspaces(&cluster);
    let spec = json!({"type": {"name": "slow"}});
    for name in ["kept", "dropped"] {
        create(&api, json!({"metadata": {"name": name}, "spec": spec})).await;
        eventually("it waits", || async {
            let it = api.get(name).await.unwrap();
            it.data["status"]["phase"] == "Initializing"
                && it.data["status"]["initializers"] == json!(["root:slow"])
        })
        .await;
    }
    let waiting = api.get("kept").await.unwrap();
    let told = condition(&waiting, "WorkspaceInitialized");
    assert_eq!(told["reason"], "InitializerExists");
    assert_eq!(told["message"], "Initializers still exist: [root:slow]");
    let id = waiting.data["spec"]["cluster"].as_str().unwrap();
    let inside = cluster.at(id);
    assert!(
        inside.namespaces().get_opt("default").await.unwrap().is_some(),
        "the rest is done"
    );
    // Deletion does not wait for what has not been initialized.
    api.delete("dropped", &DeleteParams::default()).await.unwrap();
    gone(&api, "dropped").await;
    // Whoever initializes it takes his name off.
    let done = Patch::Merge(json!({"status": {"initializers": []}}));
    logical_clusters(&inside)
        .patch_status("cluster", &PatchParams::default(), &done)
        .await
        .unwrap();
    ready(&api, "kept").await;
    assert_eq!(
        condition(&api.get("kept").await.unwrap(), "WorkspaceInitialized")["status"],
        "True"
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminator_is_waited_for_and_finalizers_hold() {
    let cluster = Cluster::start().await;
    let kind = json!({"metadata": {"name": "careful"}, "spec": {
        "terminator": true, "extend": {"with": [{"name": "universal", "path": "root"}]},
    }});
    create(&types(&cluster), kind).await;
    let api = workspaces(&cluster);
    let id = make(&cluster, "w", Some("careful")).await;
    let inside = cluster.at(&id);
    let crd = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}],
    }});
    create(&definitions(&inside), crd).await;
    let widgets = inside.api("example.com/v1", "Widget", "widgets", "");
    let held = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    create(&widgets, held).await;
    api.delete("w", &DeleteParams::default()).await.unwrap();
    eventually("the terminator is waited for", || async {
        api.get("w").await.unwrap().data["status"]["phase"] == "Terminating"
    })
    .await;
    a_while().await;
    assert!(
        widgets
            .get("held")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none(),
        "nothing is deleted before"
    );
    let done = Patch::Merge(json!({"status": {"terminators": []}}));
    logical_clusters(&inside)
        .patch_status("cluster", &PatchParams::default(), &done)
        .await
        .unwrap();
    eventually("the workspace says what holds it", || async {
        let told = condition(&api.get("w").await.unwrap(), "WorkspaceContentDeleted");
        let message = told["message"].as_str().unwrap_or_default();
        told["reason"] == "SomeResourcesRemain"
            && message.contains("example.com/hold in 1 resource instances")
    })
    .await;
    assert_eq!(api.get("w").await.unwrap().data["status"]["phase"], "Deleting");
    let new = serde_json::from_value(json!({"metadata": {"name": "late"}})).unwrap();
    let late = inside.namespaces().create(&PostParams::default(), &new).await;
    assert!(late.unwrap_err().to_string().contains("being deleted"));
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    widgets
        .patch("held", &PatchParams::default(), &free)
        .await
        .unwrap();
    gone(&api, "w").await;
    assert_eq!(cluster.stored_in(&id).await, [""; 0]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_is_told() {
    let cluster = Cluster::start().await;
    let api = workspaces(&cluster);
    let refused = async |name: &str, kind: &str, word: &str| {
        let object = json!({"metadata": {"name": name}, "spec": {"type": {"name": kind}}});
        let object = typed(&api, object);
        let error = api.create(&PostParams::default(), &object).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    };
    refused("a", "nothing", "cannot be resolved").await;
    refused("a", "root", "cannot have any parent").await;
    // A type whose API does not exist: the workspace waits, says so, and goes on when it comes.
    let kind = json!({"metadata": {"name": "early"}, "spec": {
        "defaultAPIBindings": [{"path": "root", "export": "later"}],
    }});
    create(&types(&cluster), kind).await;
    create(
        &api,
        json!({"metadata": {"name": "w"}, "spec": {"type": {"name": "early"}}}),
    )
    .await;
    eventually("it waits", || async {
        api.get("w").await.unwrap().data["status"]["phase"] == "Initializing"
    })
    .await;
    let id = api.get("w").await.unwrap().data["spec"]["cluster"].clone();
    let inside = cluster.at(id.as_str().unwrap());
    let told = || async {
        let cluster = logical_clusters(&inside).get("cluster").await.unwrap();
        condition(&cluster, "APIBindingsInitialized")
    };
    eventually("it says what for", || async {
        told().await["reason"] == "WaitingOnAPIBindings"
    })
    .await;
    assert_eq!(told().await["message"], "APIExport root:later not found");
    let exports = cluster.api("apis.kcp.io/v1alpha2", "APIExport", "apiexports", "");
    create(&exports, json!({"metadata": {"name": "later"}, "spec": {}})).await;
    ready(&api, "w").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_controller_with_one_watch_serves_a_hundred_workspaces() {
    let cluster = Cluster::start().await;
    let first = make(&cluster, "w0", Some("universal")).await;
    a_while().await;
    let before = cluster.watches();
    let api = workspaces(&cluster);
    for number in 1..100 {
        create(
            &api,
            json!({"metadata": {"name": format!("w{number}")}, "spec": {"type": {"name": "universal"}}}),
        )
        .await;
    }
    let mut ids = BTreeSet::from([first.clone()]);
    for number in 1..100 {
        ids.insert(ready(&api, &format!("w{number}")).await);
    }
    assert_eq!(ids.len(), 100);
    let last = ready(&api, "w99").await;
    for id in [&first, &last] {
        let place = cluster.at(id);
        let config_maps = place.config_maps("default");
        let owner = create(&config_maps, json!({"metadata": {"name": "owner"}})).await;
        create(&config_maps, crate::harness::owned("same", &[(&owner, false)])).await;
    }
    cluster
        .at(&last)
        .config_maps("default")
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    gone(&cluster.at(&last).config_maps("default"), "same").await;
    assert!(
        cluster
            .at(&first)
            .config_maps("default")
            .get_opt("same")
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(cluster.watches(), before, "workspaces add no watch");
    cluster.stop().await;
}
