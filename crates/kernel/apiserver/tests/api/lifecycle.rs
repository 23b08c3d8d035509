//! Doors for those who have work to do in a workspace before it is ready or before it goes, and what else decides who gets
//! in: required groups, and being offline.
//!
//! The controllers are not here; what a LogicalCluster says of itself is written as they would write it.

use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::lifecycle::{Stage, Worker};
use serde_json::{Value, json};

use crate::harness::{Client, Server, names};
use crate::workspaces::{enthrone, workspace};

const TYPES: &str = "tttttttttttttttt";
const A: &str = "aaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbb";
const CLUSTERS: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn at(id: &str, path: &str) -> String {
    format!("/clusters/{id}{path}")
}

fn door(stage: Stage, id: &str, path: &str) -> String {
    format!("/services/{}/{TYPES}:slow/clusters/{id}{path}", stage.service())
}

/// Lets a user use a verb on something in a workspace.
async fn grant(server: &Server, id: &str, user: &str, verb: &str, resource: &str) {
    let name = format!("{user}-{verb}");
    let role = json!({"metadata": {"name": name}, "rules": [
        {"apiGroups": ["tenancy.kcp.io"], "resources": [resource], "verbs": [verb]}]});
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    let admin = server.admin();
    admin
        .post(&at(id, &format!("{RBAC}/clusterroles")), &role)
        .await
        .expect(201);
    let path = at(id, &format!("{RBAC}/clusterrolebindings"));
    admin.post(&path, &binding).await.expect(201);
}

/// A workspace of ann's that waits for a worker.
async fn waiting(server: &Server, name: &str, id: &str, phase: &str, field: &str, workers: &[&str]) {
    let admin = server.admin();
    let worker = |named: &str| Worker {
        stage: if field == "initializers" {
            Stage::Initializing
        } else {
            Stage::Terminating
        },
        cluster: ClusterId::parse(named.split(':').next().unwrap()).unwrap(),
        type_name: named.rsplit(':').next().unwrap().to_owned(),
    };
    let labels: serde_json::Map<String, Value> = workers
        .iter()
        .map(|named| worker(named).label())
        .map(|(key, value)| (key, value.into()))
        .chain([("tenancy.kcp.io/phase".to_owned(), json!(phase))])
        .collect();
    let object = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": "cluster", "labels": labels, "finalizers": ["core.kcp.io/logicalcluster-deletion"],
            "annotations": {"internal.tenancy.kcp.io/type": "root:universal"}},
        "spec": {"createdBy": {"username": "ann", "groups": ["sailors"]},
            "owner": {"cluster": "root", "name": name, "resource": "workspaces", "uid": "u",
                      "apiVersion": "tenancy.kcp.io/v1alpha1"}},
    });
    let clusters = at(id, CLUSTERS);
    admin.post(&clusters, &object).await.expect(201);
    let status = json!({"status": {"phase": phase, field: workers}});
    let path = format!("{clusters}/cluster/status");
    admin.patch("merge", &path, &status).await.expect(200);
    let default = json!({"metadata": {"name": "default"}});
    admin
        .post(&at(id, "/api/v1/namespaces"), &default)
        .await
        .expect(201);
    enthrone(server, id, "ann").await;
}

/// A workspace with a type whose initializer is `tttttttttttttttt:slow`, and pat, who may do its work.
async fn start(spec: Value) -> Server {
    let server = Server::start().await;
    workspace(&server, "root", "types", TYPES).await;
    let kind = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType",
        "metadata": {"name": "slow"}, "spec": spec});
    let path = at(TYPES, "/apis/tenancy.kcp.io/v1alpha1/workspacetypes");
    server.admin().post(&path, &kind).await.expect(201);
    for stage in Stage::ALL {
        grant(&server, TYPES, "pat", stage.verb(), "workspacetypes").await;
    }
    server
}

async fn put_map(client: &Client, path: &str, name: &str, code: u16) {
    client
        .post(path, &json!({"metadata": {"name": name}}))
        .await
        .expect(code);
}

#[tokio::test]
async fn an_initializer_sees_what_waits_for_it_works_and_leaves() {
    let server = start(json!({"initializer": true})).await;
    let mine = format!("{TYPES}:slow");
    waiting(
        &server,
        "a",
        A,
        "Initializing",
        "initializers",
        &[&mine, "root:other"],
    )
    .await;
    waiting(&server, "b", B, "Initializing", "initializers", &["root:other"]).await;
    let (pat, eve) = (server.user("pat", &[]), server.user("eve", &[]));
    let first = |id: &str, path: &str| door(Stage::Initializing, id, path);
    // Over all workspaces: the LogicalClusters that wait, to be looked at.
    let list = pat.get(&first("*", CLUSTERS)).await.expect(200);
    assert_eq!(names(&list), ["cluster"]);
    assert_eq!(list["items"][0]["metadata"]["annotations"]["kcp.io/cluster"], A);
    let resources = pat
        .get(&first("*", "/apis/core.kcp.io/v1alpha1"))
        .await
        .expect(200);
    let shown = resources["resources"].as_array().unwrap().iter();
    let shown: Vec<&str> = shown.filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(shown, ["logicalclusters", "logicalclusters/status"]);
    let groups = pat.get(&first("*", "/apis")).await.expect(200);
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1);
    for path in ["/api/v1/configmaps", "/apis/tenancy.kcp.io/v1alpha1/workspaces"] {
        assert_eq!(pat.get(&first("*", path)).await.code, 404, "{path}");
    }
    pat.delete(&first("*", CLUSTERS)).await.expect(405);
    // Inside one that waits: its LogicalCluster, and the content as its creator.
    let cluster = first(A, &format!("{CLUSTERS}/cluster"));
    pat.get(&cluster).await.expect(200);
    put_map(&pat, &first(A, MAPS), "made", 201).await;
    let made = server
        .admin()
        .get(&at(A, &format!("{MAPS}/made")))
        .await
        .expect(200);
    assert_eq!(made["metadata"]["annotations"]["kcp.io/cluster"], A);
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = pat.post(&first(A, reviews), &who).await.expect(201);
    let who = &who["status"]["userInfo"];
    assert_eq!(who["username"], "ann");
    assert_eq!(
        who["extra"]["authentication.kcp.io/scopes"][0],
        format!("cluster:{A}"),
        "and only here"
    );
    // Nobody else, nowhere else, by no other name.
    for (client, path) in [
        (&eve, first("*", CLUSTERS)),
        (&eve, first(A, MAPS)),
        (&server.user("ann", &[]), first(A, MAPS)),
        (&server.anonymous(), first("*", CLUSTERS)),
        (&pat, first(B, MAPS)),
        (&pat, first(B, &format!("{CLUSTERS}/cluster"))),
        (&pat, first(TYPES, MAPS)),
        (&pat, first("root", MAPS)),
        (&pat, first("nowhere", MAPS)),
        (&pat, door(Stage::Terminating, A, MAPS)),
        (&pat, at(A, MAPS)),
        (
            &pat,
            format!("/services/initializingworkspaces/root:other/clusters/{B}{MAPS}"),
        ),
        (
            &pat,
            format!("/services/initializingworkspaces/nowhere:slow/clusters/*{CLUSTERS}"),
        ),
        (
            &pat,
            format!("/services/initializingworkspaces/slow/clusters/*{CLUSTERS}"),
        ),
    ] {
        assert!(matches!(client.get(&path).await.code, 403 | 404), "{path}");
    }
    // It takes its own name off, and nothing else.
    let status = format!("{cluster}/status");
    for wrong in [
        json!({"status": {"initializers": []}}),
        json!({"status": {"initializers": [mine]}}),
        json!({"status": {"phase": "Ready", "initializers": ["root:other"]}}),
        json!({"status": {"initializers": ["root:other"], "URL": "https://x"}}),
    ] {
        let refused = pat.patch("merge", &status, &wrong).await.expect(403);
        let why = refused["message"].as_str().unwrap();
        assert!(why.contains("only removing the"), "{wrong}: {why}");
    }
    pat.patch("merge", &cluster, &json!({"metadata": {"labels": {"x": "y"}}}))
        .await
        .expect(405);
    pat.delete(&cluster).await.expect(405);
    let mut watch = pat
        .watch(&format!("{}?watch=1&resourceVersion=0", first("*", CLUSTERS)))
        .await;
    assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
    let done = json!({"status": {"initializers": ["root:other"]}});
    pat.patch("merge", &status, &done).await.expect(200);
    pat.get(&cluster).await.expect(403);
    put_map(&pat, &first(A, MAPS), "late", 403).await;
    // As the controller will.
    let label = Worker {
        stage: Stage::Initializing,
        cluster: ClusterId::parse(TYPES).unwrap(),
        type_name: "slow".to_owned(),
    };
    let off = json!({"metadata": {"labels": {label.label().0: null}}});
    let path = at(A, &format!("{CLUSTERS}/cluster"));
    server.admin().patch("merge", &path, &off).await.expect(200);
    let seen = loop {
        let event = watch.next().await.unwrap();
        if event["type"] != "MODIFIED" {
            break event["type"].clone();
        }
    };
    assert_eq!(seen, "DELETED", "it waits no more");
    assert_eq!(names(&pat.get(&first("*", CLUSTERS)).await.expect(200)), [""; 0]);
}

#[tokio::test]
async fn a_type_may_bound_what_its_initializer_does() {
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "patch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["patch"]},
    ]);
    let server = start(json!({"initializer": true, "initializerPermissions": rules})).await;
    let mine = format!("{TYPES}:slow");
    waiting(&server, "a", A, "Initializing", "initializers", &[&mine]).await;
    let pat = server.user("pat", &[]);
    let first = |path: &str| door(Stage::Initializing, A, path);
    put_map(&pat, &first(MAPS), "made", 201).await;
    pat.get(&first(MAPS)).await.expect(200);
    pat.delete(&first(&format!("{MAPS}/made"))).await.expect(403);
    pat.get(&first("/api/v1/namespaces/default/secrets"))
        .await
        .expect(403);
    let role = json!({"metadata": {"name": "x"}, "rules": []});
    pat.post(&first(&format!("{RBAC}/clusterroles")), &role)
        .await
        .expect(403);
    // To apply what is not there is to create it.
    let applied = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "applied"}});
    let path = format!("{}/applied?fieldManager=pat", first(MAPS));
    pat.patch("apply", &path, &applied("ConfigMap")).await.expect(201);
    let path = first("/api/v1/namespaces/default/secrets/applied?fieldManager=pat");
    pat.patch("apply", &path, &applied("Secret")).await.expect(403);
    // Without its type nobody knows what it may do.
    let kind = at(TYPES, "/apis/tenancy.kcp.io/v1alpha1/workspacetypes/slow");
    server.admin().delete(&kind).await.expect(200);
    pat.get(&first(MAPS)).await.expect(403);
}

#[tokio::test]
async fn a_terminator_has_its_turn_when_the_workspace_goes() {
    let server = start(json!({"terminator": true})).await;
    let mine = format!("{TYPES}:slow");
    waiting(&server, "a", A, "Ready", "terminators", &[&mine]).await;
    let (admin, pat) = (server.admin(), server.user("pat", &[]));
    let last = |id: &str, path: &str| door(Stage::Terminating, id, path);
    pat.get(&last(A, MAPS)).await.expect(403);
    let none = pat.get(&last("*", CLUSTERS)).await.expect(200);
    assert_eq!(names(&none), [""; 0], "it is not deleted yet");
    admin
        .delete(&at(A, &format!("{CLUSTERS}/cluster")))
        .await
        .expect(200);
    // As the controller will.
    let phase = json!({"metadata": {"labels": {"tenancy.kcp.io/phase": "Terminating"}}});
    let path = at(A, &format!("{CLUSTERS}/cluster"));
    admin.patch("merge", &path, &phase).await.expect(200);
    assert_eq!(
        names(&pat.get(&last("*", CLUSTERS)).await.expect(200)),
        ["cluster"]
    );
    put_map(&pat, &last(A, MAPS), "farewell", 201).await;
    let status = last(A, &format!("{CLUSTERS}/cluster/status"));
    let done = json!({"status": {"terminators": null}});
    pat.patch("merge", &status, &done).await.expect(200);
    put_map(&pat, &last(A, MAPS), "late", 403).await;
    pat.get(&last(A, MAPS)).await.expect(403);
}

#[tokio::test]
async fn nobody_but_the_system_says_how_a_workspace_is() {
    let server = start(json!({})).await;
    enthrone(&server, TYPES, "tom").await;
    let tom = server.user("tom", &[]);
    let group = "/apis/tenancy.kcp.io/v1alpha1";
    let lie = json!({"status": {"virtualWorkspaces": [{"url": "https://evil"}]}});
    let path = at(TYPES, &format!("{group}/workspacetypes/slow/status"));
    tom.patch("merge", &path, &lie).await.expect(403);
    let child =
        json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "w"}});
    tom.post(&at(TYPES, &format!("{group}/workspaces")), &child)
        .await
        .expect(201);
    let lie = json!({"status": {"phase": "Ready"}});
    let path = at(TYPES, &format!("{group}/workspaces/w/status"));
    tom.patch("merge", &path, &lie).await.expect(403);
}

#[tokio::test]
async fn a_workspace_may_require_groups() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    enthrone(&server, A, "ann").await;
    let admin = server.admin();
    let required = |groups: Value| json!({"metadata": {"annotations": {"authorization.kcp.io/required-groups": groups}}});
    let cluster = at(A, &format!("{CLUSTERS}/cluster"));
    admin
        .patch("merge", &cluster, &required(json!("crew,sober;captains")))
        .await
        .expect(200);
    for (groups, code) in [
        (&[][..], 403),
        (&["crew"], 403),
        (&["crew", "sober"], 200),
        (&["captains"], 200),
        (&["crew,sober"], 403),
        (&["system:kcp:admin"], 200),
    ] {
        let ann = server.user("ann", groups);
        assert_eq!(ann.get(&at(A, MAPS)).await.code, code, "{groups:?}");
    }
    // Its own service accounts are not from outside.
    put_map(
        &admin,
        &at(A, "/api/v1/namespaces/default/serviceaccounts"),
        "bot",
        201,
    )
    .await;
    let path = at(A, "/api/v1/namespaces/default/serviceaccounts/bot/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = admin.post(&path, &request).await.expect(201)["status"]["token"].clone();
    let bot = server
        .anonymous()
        .with("authorization", &format!("Bearer {}", token.as_str().unwrap()));
    bot.get(&at(A, "/apis")).await.expect(200);
    // What is made inside requires the same, whatever its maker says; who rules it may ask for less.
    let captain = server.user("ann", &["captains"]);
    let group = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let child = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "w",
        "annotations": {"authorization.kcp.io/required-groups": "everybody"}}});
    let made = captain.post(&at(A, group), &child).await.expect(201);
    assert_eq!(
        made["metadata"]["annotations"]["authorization.kcp.io/required-groups"],
        "crew,sober;captains"
    );
    admin
        .patch("merge", &cluster, &required(Value::Null))
        .await
        .expect(200);
    server.user("ann", &[]).get(&at(A, MAPS)).await.expect(200);
}

#[tokio::test]
async fn a_workspace_may_be_offline() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    workspace(&server, "root", "b", B).await;
    enthrone(&server, A, "ann").await;
    let (admin, ann) = (server.admin(), server.user("ann", &[]));
    let cluster = at(A, &format!("{CLUSTERS}/cluster"));
    let inactive = |value: Value| json!({"metadata": {"annotations": {"core.kcp.io/inactive": value}}});
    ann.patch("merge", &cluster, &inactive(json!("true")))
        .await
        .expect(403);
    let mut watch = ann.watch(&format!("{}?watch=1", at(A, MAPS))).await;
    let mut other = admin.watch(&format!("{}?watch=1", at(B, MAPS))).await;
    admin
        .patch("merge", &cluster, &inactive(json!("true")))
        .await
        .expect(200);
    assert_eq!(watch.next().await, None, "an open watch ends");
    for client in [&admin, &ann] {
        let refused = client.get(&at(A, MAPS)).await.expect(403);
        assert_eq!(
            refused["message"],
            format!("logicalclusters.core.kcp.io {A:?} is forbidden: logical cluster is marked inactive")
        );
        put_map(client, &at(A, MAPS), "m", 403).await;
        client.get(&cluster).await.expect(200);
        client.get(&at(A, "/openapi/v3")).await.expect(200);
    }
    // A stranger learns nothing by it.
    let stranger = server.user("eve", &[]).get(&at(A, MAPS)).await.expect(403);
    assert!(
        stranger["message"]
            .as_str()
            .unwrap()
            .contains("does not exist or")
    );
    put_map(&admin, &at(B, MAPS), "m", 201).await;
    assert_eq!(
        other.next().await.unwrap()["type"],
        "ADDED",
        "the neighbour's goes on"
    );
    admin
        .patch("merge", &cluster, &inactive(Value::Null))
        .await
        .expect(200);
    put_map(&ann, &at(A, MAPS), "m", 201).await;
}
