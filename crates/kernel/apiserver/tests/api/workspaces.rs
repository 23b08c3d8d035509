//! Workspaces as the API shows them: each complete, none visible from another.

use serde_json::{Value, json};

use crate::harness::{Client, Server, names};

const A: &str = "aaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbb";

/// A workspace that is ready, below another, as the controllers would make it.
pub(crate) async fn workspace(server: &Server, parent: &str, name: &str, id: &str) {
    let admin = server.admin();
    let clusters = format!("/clusters/{id}/apis/core.kcp.io/v1alpha1/logicalclusters");
    let object = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {"name": "cluster", "annotations": {"internal.tenancy.kcp.io/type": "root:universal"}},
        "spec": {"owner": {"cluster": parent, "name": name, "resource": "workspaces", "uid": "u",
                           "apiVersion": "tenancy.kcp.io/v1alpha1"}},
    });
    admin.post(&clusters, &object).await.expect(201);
    let ready = json!({"status": {"phase": "Ready"}});
    admin
        .patch("merge", &format!("{clusters}/cluster/status"), &ready)
        .await
        .expect(200);
    let named = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"cluster": id, "URL": format!("https://kernel.test/clusters/{id}"),
                 "type": {"name": "universal", "path": "root"}},
    });
    let workspaces = format!("/clusters/{parent}/apis/tenancy.kcp.io/v1alpha1/workspaces");
    admin.post(&workspaces, &named).await.expect(201);
    let namespaces = format!("/clusters/{id}/api/v1/namespaces");
    admin
        .post(&namespaces, &json!({"metadata": {"name": "default"}}))
        .await
        .expect(201);
}

async fn two() -> Server {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    workspace(&server, "root", "b", B).await;
    server
}

/// Lets a user do everything inside a workspace.
pub(crate) async fn enthrone(server: &Server, id: &str, user: &str) {
    let binding = json!({
        "metadata": {"name": "workspace-admin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let path = format!("/clusters/{id}/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
    server.admin().post(&path, &binding).await.expect(201);
}

fn in_workspace(id: &str, path: &str) -> String {
    format!("/clusters/{id}{path}")
}

async fn put_map(client: &Client, id: &str, name: &str, value: &str) -> Value {
    let path = in_workspace(id, "/api/v1/namespaces/default/configmaps");
    let map = json!({"metadata": {"name": name}, "data": {"k": value}});
    client.post(&path, &map).await.expect(201)
}

#[tokio::test]
async fn a_workspace_is_reached_by_path_and_by_id() {
    let server = two().await;
    workspace(&server, A, "team", "cccccccccccccccc").await;
    let admin = server.admin();
    put_map(&admin, "cccccccccccccccc", "m", "deep").await;
    for named in [
        "cccccccccccccccc",
        "root:a:team",
        "aaaaaaaaaaaaaaaa:team",
        "root%3Aa%3Ateam",
    ] {
        let path = in_workspace(named, "/api/v1/namespaces/default/configmaps/m");
        let map = admin.get(&path).await.expect(200);
        assert_eq!(map["data"]["k"], "deep", "{named}");
        assert_eq!(
            map["metadata"]["annotations"]["kcp.io/cluster"],
            "cccccccccccccccc"
        );
    }
    for named in [
        "root:team",
        "root:a:nobody",
        "dddddddddddddddd",
        "",
        "root:",
        ":root",
        "root::a",
        "..",
        "%2A",
    ] {
        let path = in_workspace(named, "/api/v1/namespaces/default/configmaps/m");
        let answer = admin.get(&path).await;
        assert!(matches!(answer.code, 403..=405), "{named}: {}", answer.code);
    }
}

#[tokio::test]
async fn objects_of_one_name_live_side_by_side() {
    let server = two().await;
    let admin = server.admin();
    for (id, value) in [("root", "r"), (A, "a"), (B, "b")] {
        put_map(&admin, id, "same", value).await;
    }
    for (id, value) in [("root", "r"), (A, "a"), (B, "b")] {
        let path = in_workspace(id, "/api/v1/configmaps");
        let list = admin.get(&path).await.expect(200);
        assert_eq!(names(&list), ["same"], "{id}");
        assert_eq!(list["items"][0]["data"]["k"], value);
    }
    let everywhere = admin.get("/clusters/*/api/v1/configmaps").await.expect(200);
    let mut homes: Vec<&str> = (everywhere["items"].as_array().unwrap().iter())
        .map(|m| {
            m["metadata"]["annotations"]["kcp.io/cluster"]
                .as_str()
                .unwrap_or("root")
        })
        .collect();
    homes.sort_unstable();
    assert_eq!(homes, [A, B, "root"]);
    let by_name = "?fieldSelector=metadata.name%3Dsame%2Cmetadata.namespace%3Ddefault";
    let by_name = admin
        .get(&format!("/clusters/*/api/v1/configmaps{by_name}"))
        .await
        .expect(200);
    assert_eq!(
        names(&by_name),
        ["same"; 3],
        "a name is one object of each workspace"
    );
    let plain = admin
        .get("/api/v1/namespaces/default/configmaps/same")
        .await
        .expect(200);
    assert!(
        plain["metadata"]["annotations"].is_null(),
        "root is as Kubernetes is"
    );
    admin
        .delete(&in_workspace(A, "/api/v1/namespaces/default/configmaps/same"))
        .await
        .expect(200);
    assert_eq!(
        names(&admin.get("/clusters/*/api/v1/configmaps").await.expect(200)).len(),
        2
    );
}

#[tokio::test]
async fn nobody_can_say_that_an_object_lives_elsewhere() {
    let server = two().await;
    let admin = server.admin();
    let lie = json!({"metadata": {"name": "m", "annotations": {"kcp.io/cluster": B}}});
    let home = |object: &Value| object["metadata"]["annotations"]["kcp.io/cluster"].clone();
    for (id, truth) in [("root", "root"), (A, A)] {
        let maps = in_workspace(id, "/api/v1/namespaces/default/configmaps");
        let made = admin.post(&maps, &lie).await.expect(201);
        assert_eq!(home(&made), truth);
        let named = format!("{maps}/m");
        for (kind, body) in [
            (
                "merge",
                json!({"metadata": {"annotations": {"kcp.io/cluster": B}}}),
            ),
            (
                "json",
                json!([{"op": "replace", "path": "/metadata/annotations/kcp.io~1cluster", "value": B}]),
            ),
            (
                "strategic",
                json!({"metadata": {"annotations": {"kcp.io/cluster": B}}}),
            ),
        ] {
            let changed = admin.patch(kind, &named, &body).await.expect(200);
            assert_eq!(home(&changed), truth, "{id} {kind}");
        }
        let mut applied = lie.clone();
        applied["apiVersion"] = "v1".into();
        applied["kind"] = "ConfigMap".into();
        let path = format!("{named}?fieldManager=x&force=true");
        assert_eq!(
            home(&admin.patch("apply", &path, &applied).await.expect(200)),
            truth
        );
        let lie = json!({"metadata": {"name": "n", "annotations": {"kcp.io/cluster": B}}});
        let dry = admin.post(&format!("{maps}?dryRun=All"), &lie).await.expect(201);
        assert_eq!(home(&dry), truth);
    }
}

fn widgets(version: &str, field: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.x.io"},
        "spec": {
            "group": "x.io", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {field: {"type": "integer"}}}},
            }],
        },
    })
}

#[tokio::test]
async fn kinds_of_one_name_and_different_schema_live_side_by_side() {
    let server = two().await;
    let admin = server.admin();
    for (id, field) in [(A, "size"), (B, "weight")] {
        let crds = in_workspace(id, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        admin.post(&crds, &widgets("v1", field)).await.expect(201);
        let path = in_workspace(id, "/apis/x.io/v1/widgets");
        let object = json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 1, "weight": 2});
        let made = admin.post(&path, &object).await.expect(201);
        let other = if field == "size" { "weight" } else { "size" };
        assert!(made[field].is_number() && made[other].is_null(), "{made}");
        let document = admin
            .get(&in_workspace(id, "/openapi/v3/apis/x.io/v1"))
            .await
            .expect(200);
        let schema = &document["components"]["schemas"]["io.x.v1.Widget"]["properties"];
        assert!(schema[field].is_object() && schema[other].is_null(), "{schema}");
    }
    for path in ["/apis/x.io/v1/widgets", "/apis/x.io/v1"] {
        assert_eq!(admin.get(path).await.code, 404, "{path}");
    }
    let groups = admin.get("/clusters/*/apis/x.io/v1").await.expect(200);
    let found: Vec<&str> = (groups["resources"].as_array().unwrap().iter())
        .filter_map(|r| r["name"].as_str())
        .collect();
    assert_eq!(found.len(), 2, "one for each identity: {found:?}");
    for resource in found {
        let list = admin
            .get(&format!("/clusters/*/apis/x.io/v1/{resource}"))
            .await
            .expect(200);
        assert_eq!(names(&list), ["w"], "{resource}");
    }
    // What one workspace removes, the other keeps.
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.x.io";
    admin.delete(&in_workspace(A, crd)).await.expect(200);
    admin
        .get(&in_workspace(B, "/apis/x.io/v1/widgets/w"))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_workspace_lets_in_whom_its_parent_or_its_own_roles_let_in() {
    let server = two().await;
    let (ann, bob) = (server.user("ann", &[]), server.user("bob", &[]));
    let maps = in_workspace(A, "/api/v1/namespaces/default/configmaps");
    // Nobody learns whether a workspace exists.
    for client in [&ann, &bob, &server.anonymous()] {
        let known = client.get(&maps).await.expect(403);
        let unknown = client
            .get(&in_workspace("nowhere", "/api/v1/configmaps"))
            .await
            .expect(403);
        assert_eq!(
            known["message"].as_str().unwrap().replace(A, "x"),
            unknown["message"].as_str().unwrap().replace("nowhere", "x")
        );
    }
    enthrone(&server, A, "ann").await;
    ann.get(&maps).await.expect(200);
    ann.get(&in_workspace(B, "/api/v1/configmaps")).await.expect(403);
    ann.get("/api/v1/configmaps").await.expect(403);
    ann.get("/clusters/*/api/v1/configmaps").await.expect(403);
    // The parent opens the door; what is inside is for the roles inside.
    let role = json!({"metadata": {"name": "enter-a"}, "rules": [
        {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspaces"], "resourceNames": ["a"], "verbs": ["access"]}]});
    let binding = json!({"metadata": {"name": "enter-a"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "enter-a"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    server
        .admin()
        .post(&format!("{rbac}/clusterroles"), &role)
        .await
        .expect(201);
    server
        .admin()
        .post(&format!("{rbac}/clusterrolebindings"), &binding)
        .await
        .expect(201);
    let refused = bob.get(&maps).await.expect(403);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("cannot list resource"),
        "{refused}"
    );
    bob.get(&in_workspace(A, "/apis")).await.expect(200);
    bob.get(&in_workspace(B, "/apis")).await.expect(403);
    let reader = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    ann.post(
        &in_workspace(A, &format!("{rbac}/namespaces/default/rolebindings")),
        &reader,
    )
    .await
    .expect(201);
    bob.get(&maps).await.expect(200);
    assert_eq!(
        names(
            &ann.get(&in_workspace(A, &format!("{rbac}/clusterroles")))
                .await
                .expect(200)
        ),
        Vec::<String>::new(),
        "default roles are inherited, not copied"
    );
}

#[tokio::test]
async fn a_service_account_is_known_at_home_only() {
    let server = two().await;
    let admin = server.admin();
    for id in ["root", A, B] {
        let accounts = in_workspace(id, "/api/v1/namespaces/default/serviceaccounts");
        admin
            .post(&accounts, &json!({"metadata": {"name": "bot"}}))
            .await
            .expect(201);
        let reader = json!({"metadata": {"name": "bot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}]});
        let path = in_workspace(id, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
        admin.post(&path, &reader).await.expect(201);
    }
    for home in ["root", A, B] {
        let path = in_workspace(home, "/api/v1/namespaces/default/serviceaccounts/bot/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = admin.post(&path, &request).await.expect(201)["status"]["token"].clone();
        let bot = server
            .anonymous()
            .with("authorization", &format!("Bearer {}", token.as_str().unwrap()));
        for id in ["root", A, B] {
            let code = if id == home { 200 } else { 401 };
            bot.get(&in_workspace(id, "/api/v1/configmaps"))
                .await
                .expect(code);
        }
        bot.get("/clusters/*/api/v1/configmaps").await.expect(401);
        bot.get(&in_workspace("nowhere", "/api/v1/configmaps"))
            .await
            .expect(401);
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let reviews = in_workspace(home, "/apis/authentication.k8s.io/v1/tokenreviews");
        let user = admin.post(&reviews, &review).await.expect(201)["status"]["user"].clone();
        let said = &user["extra"]["authentication.kcp.io/cluster-name"];
        assert_eq!(
            *said,
            if home == "root" {
                Value::Null
            } else {
                json!([home])
            }
        );
        let elsewhere = if home == A { B } else { A };
        let reviews = in_workspace(elsewhere, "/apis/authentication.k8s.io/v1/tokenreviews");
        let status = admin.post(&reviews, &review).await.expect(201)["status"].clone();
        assert_ne!(status["authenticated"], true, "{status}");
    }
}

#[tokio::test]
async fn who_rules_a_workspace_cannot_become_the_platform() {
    let server = two().await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    let apis = in_workspace(A, "/apis");
    ann.with("impersonate-user", "bob").get(&apis).await.expect(200);
    for group in [
        "system:masters",
        "system:kcp:logical-cluster-admin",
        "system:kcp:admin",
    ] {
        let raised = ann
            .with("impersonate-user", "bob")
            .with("impersonate-group", group);
        raised.get(&apis).await.expect(403);
    }
    let cluster = in_workspace(A, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
    ann.get(&cluster).await.expect(200);
    ann.delete(&cluster).await.expect(403);
    let claim = json!({"status": {"initializers": ["root:universal"]}});
    ann.patch("merge", &format!("{cluster}/status"), &claim)
        .await
        .expect(403);
    let owner = json!({"metadata": {"annotations": {"internal.tenancy.kcp.io/type": "root:root"}}});
    ann.patch("merge", &cluster, &owner).await.expect(403);
    let other = json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster"}});
    ann.post(
        "/clusters/eeeeeeeeeeeeeeee/apis/core.kcp.io/v1alpha1/logicalclusters",
        &other,
    )
    .await
    .expect(403);
}

#[tokio::test]
async fn policies_and_names_of_kinds_are_a_workspaces_own() {
    let server = two().await;
    let admin = server.admin();
    let policy = json!({"metadata": {"name": "none"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "false"}]}});
    let binding =
        json!({"metadata": {"name": "none"}, "spec": {"policyName": "none", "validationActions": ["Deny"]}});
    let group = "/apis/admissionregistration.k8s.io/v1";
    admin
        .post(
            &in_workspace(A, &format!("{group}/validatingadmissionpolicies")),
            &policy,
        )
        .await
        .expect(201);
    admin
        .post(
            &in_workspace(A, &format!("{group}/validatingadmissionpolicybindings")),
            &binding,
        )
        .await
        .expect(201);
    let map = json!({"metadata": {"name": "m"}});
    admin
        .post(&in_workspace(A, "/api/v1/namespaces/default/configmaps"), &map)
        .await
        .expect(422);
    admin
        .post(&in_workspace(B, "/api/v1/namespaces/default/configmaps"), &map)
        .await
        .expect(201);
    admin
        .post("/api/v1/namespaces/default/configmaps", &map)
        .await
        .expect(201);
}

#[tokio::test]
async fn a_full_workspace_takes_nothing_more() {
    let server = two().await;
    let admin = server.admin();
    enthrone(&server, A, "ann").await;
    let cluster = in_workspace(A, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
    let held = admin.get(&cluster).await.expect(200);
    assert!(held["metadata"]["annotations"].is_object());
    let ann = server.user("ann", &[]);
    for (limit, value) in [
        ("core.kcp.io/max-total-objects", "5"),
        ("core.kcp.io/max-total-bytes", "3000"),
    ] {
        let bound = json!({"metadata": {"annotations": {limit: value}}});
        ann.patch("merge", &cluster, &bound).await.expect(403);
        admin.patch("merge", &cluster, &bound).await.expect(200);
        let maps = in_workspace(A, "/api/v1/namespaces/default/configmaps");
        let mut made = 0;
        let refused = loop {
            let map = json!({"metadata": {"name": format!("m{made}")}, "data": {"k": "v".repeat(500)}});
            let reply = ann.post(&maps, &map).await;
            if reply.code != 201 {
                break reply.expect(403);
            }
            made += 1;
            assert!(made < 20, "{limit}");
        };
        assert!(made > 0, "{limit}");
        assert!(
            refused["message"]
                .as_str()
                .unwrap()
                .contains("delete objects to free up"),
            "{refused}"
        );
        put_map(&admin, B, &format!("free-{made}"), "b").await;
        // What goes makes room, and a change of what is there is always possible.
        let change = json!({"data": {"k": "w"}});
        ann.patch("merge", &format!("{maps}/m0"), &change)
            .await
            .expect(200);
        ann.delete(&maps).await.expect(200);
        put_map(&ann, A, "room", "v").await;
        ann.delete(&maps).await.expect(200);
        let unbound = json!({"metadata": {"annotations": {limit: null}}});
        admin.patch("merge", &cluster, &unbound).await.expect(200);
    }
    let again = server.restarted().await;
    assert_eq!(
        again.storage.cache.usage(A),
        server.kernel.storage.cache.usage(A),
        "a restart counts the same"
    );
}

#[tokio::test]
async fn over_all_workspaces_one_can_only_look() {
    let server = two().await;
    let admin = server.admin();
    let map = json!({"metadata": {"name": "m"}});
    admin
        .post("/clusters/*/api/v1/namespaces/default/configmaps", &map)
        .await
        .expect(405);
    admin
        .get("/clusters/*/api/v1/namespaces/default/configmaps")
        .await
        .expect(405);
    admin.delete("/clusters/*/api/v1/configmaps").await.expect(405);
    let mut watch = admin
        .watch("/clusters/*/api/v1/configmaps?watch=1&resourceVersion=0")
        .await;
    put_map(&admin, A, "m", "a").await;
    put_map(&admin, B, "m", "b").await;
    for home in [A, B] {
        let event = watch.next().await.unwrap();
        assert_eq!(
            event["object"]["metadata"]["annotations"]["kcp.io/cluster"], home,
            "{event}"
        );
    }
}

#[tokio::test]
async fn a_new_workspace_fits_its_parent_and_its_creator() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    let workspaces = in_workspace(A, "/apis/tenancy.kcp.io/v1alpha1/workspaces");
    let of = |name: &str, spec: Value| {
        json!({
            "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec,
        })
    };
    let made = ann.post(&workspaces, &of("w", json!({}))).await.expect(201);
    assert_eq!(made["spec"]["type"], json!({"name": "universal", "path": "root"}));
    assert!(
        made["metadata"]["annotations"]["experimental.tenancy.kcp.io/owner"]
            .as_str()
            .unwrap()
            .contains("\"ann\"")
    );
    for (spec, why) in [
        (
            json!({"type": {"name": "organization", "path": "root"}}),
            "only allows",
        ),
        (json!({"type": {"name": "nobody"}}), "cannot be resolved"),
        (json!({"cluster": B}), "privileged"),
    ] {
        let refused = ann.post(&workspaces, &of("x", spec.clone())).await.expect(403);
        assert!(
            refused["message"].as_str().unwrap().contains(why),
            "{spec}: {refused}"
        );
    }
    ann.post(&workspaces, &of("Nope", json!({}))).await.expect(422);
}
