//! APIs that one workspace offers and another binds: what the consumer gets, and what the provider sees.
//!
//! The controllers are not here; their part, the status of exports and bindings, is written as they would write it.

use serde_json::{Value, json};

use crate::harness::{Client, Server, names};
use crate::workspaces::{enthrone, workspace};

const PROVIDER: &str = "pppppppppppppppp";
const A: &str = "aaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbb";
const IDENTITY: &str = "0123456789abcdef0123456789abcdef";

fn at(id: &str, path: &str) -> String {
    format!("/clusters/{id}{path}")
}

/// Through the export's door.
fn door(consumer: &str, path: &str) -> String {
    format!("/services/apiexport/{PROVIDER}/boats/clusters/{consumer}{path}")
}

const APIS: &str = "/apis/apis.kcp.io/v1alpha2";

fn schema(name: &str, field: &str) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": name},
        "spec": {
            "group": "sea.io", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {field: {"type": "integer"}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
            }],
        },
    })
}

async fn export(server: &Server, claims: &Value) {
    let admin = server.admin();
    let schemas = at(PROVIDER, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas");
    admin
        .post(&schemas, &schema("v1.boats.sea.io", "size"))
        .await
        .expect(201);
    let object = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "boats"},
        "spec": {
            "resources": [{"group": "sea.io", "name": "boats", "schema": "v1.boats.sea.io", "storage": {"crd": {}}}],
            "permissionClaims": claims,
        },
    });
    let exports = at(PROVIDER, &format!("{APIS}/apiexports"));
    admin.post(&exports, &object).await.expect(201);
    let status = json!({"status": {"identityHash": IDENTITY}});
    admin
        .patch("merge", &format!("{exports}/boats/status"), &status)
        .await
        .expect(200);
}

async fn bind(server: &Server, id: &str, answers: Value) {
    let admin = server.admin();
    let object = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "boats"},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "boats"}}, "permissionClaims": answers},
    });
    let bindings = at(id, &format!("{APIS}/apibindings"));
    admin.post(&bindings, &object).await.expect(201);
    bound_to(server, id, "v1.boats.sea.io").await;
}

/// What the controller writes when a binding is bound.
async fn bound_to(server: &Server, id: &str, schema: &str) {
    let admin = server.admin();
    let path = at(
        PROVIDER,
        &format!("/apis/apis.kcp.io/v1alpha1/apiresourceschemas/{schema}"),
    );
    let uid = admin.get(&path).await.expect(200)["metadata"]["uid"].clone();
    let status = json!({"status": {"phase": "Bound", "apiExportClusterName": PROVIDER, "boundResources": [
        {"group": "sea.io", "resource": "boats", "storageVersions": ["v1"],
         "schema": {"name": schema, "UID": uid, "identityHash": IDENTITY}}]}});
    let path = at(id, &format!("{APIS}/apibindings/boats/status"));
    admin.patch("merge", &path, &status).await.expect(200);
}

async fn sea(claims: Value) -> Server {
    let server = Server::start().await;
    for (name, id) in [("provider", PROVIDER), ("a", A), ("b", B)] {
        workspace(&server, "root", name, id).await;
    }
    enthrone(&server, PROVIDER, "pat").await;
    export(&server, &claims).await;
    server
}

async fn boat(client: &Client, path: &str, name: &str) {
    let object =
        json!({"apiVersion": "sea.io/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"size": 3}});
    client.post(path, &object).await.expect(201);
}

const BOATS: &str = "/apis/sea.io/v1/namespaces/default/boats";

#[tokio::test]
async fn a_binding_brings_the_kinds_and_its_end_takes_them() {
    let server = sea(json!([])).await;
    let admin = server.admin();
    assert_eq!(admin.get(&at(A, BOATS)).await.code, 404, "no binding, no kind");
    bind(&server, A, json!([])).await;
    boat(&admin, &at(A, BOATS), "ark").await;
    assert_eq!(
        admin.get(&at(B, BOATS)).await.code,
        404,
        "nor in another workspace"
    );
    assert_eq!(
        admin.get(&at(PROVIDER, BOATS)).await.code,
        404,
        "nor at the provider's"
    );
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.io"},
        "spec": {"group": "sea.io", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let refused = admin.post(&at(A, crds), &crd).await.expect(403);
    assert!(
        refused["message"].as_str().unwrap().contains("bound by"),
        "{refused}"
    );
    admin.post(&at(B, crds), &crd).await.expect(201);
    boat(&admin, &at(B, BOATS), "raft").await;
    assert_eq!(
        names(&admin.get(&at(A, "/apis/sea.io/v1/boats")).await.expect(200)),
        ["ark"]
    );
    let document = admin.get(&at(A, "/openapi/v3/apis/sea.io/v1")).await.expect(200);
    assert!(document["components"]["schemas"]["io.sea.v1.Boat"].is_object());
    // The same after a restart.
    let again = server.restarted().await;
    assert!(again.apis.of(A).find("sea.io", "v1", "boats").is_some());
    let path = at(A, &format!("{APIS}/apibindings/boats"));
    admin.delete(&path).await.expect(200);
    assert_eq!(
        admin.get(&at(A, BOATS)).await.code,
        200,
        "until its objects are gone"
    );
    let gone = json!({"metadata": {"finalizers": null}});
    admin.patch("merge", &path, &gone).await.expect(200);
    assert_eq!(admin.get(&at(A, BOATS)).await.code, 404);
}

#[tokio::test]
async fn bound_kinds_follow_the_exports_schema() {
    let server = sea(json!([])).await;
    let admin = server.admin();
    bind(&server, A, json!([])).await;
    boat(&admin, &at(A, BOATS), "ark").await;
    let schemas = at(PROVIDER, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas");
    admin
        .post(&schemas, &schema("v2.boats.sea.io", "length"))
        .await
        .expect(201);
    let change = json!([{"op": "replace", "path": "/spec/resources/0/schema", "value": "v2.boats.sea.io"}]);
    let path = at(PROVIDER, &format!("{APIS}/apiexports/boats"));
    admin.patch("json", &path, &change).await.expect(200);
    bound_to(&server, A, "v2.boats.sea.io").await;
    let ark = admin.get(&at(A, &format!("{BOATS}/ark"))).await.expect(200);
    assert_eq!(
        ark["spec"],
        json!({}),
        "what the new schema does not have is not shown"
    );
    let object = json!({"apiVersion": "sea.io/v1", "kind": "Boat", "metadata": {"name": "new"}, "spec": {"length": 9}});
    let made = admin.post(&at(A, BOATS), &object).await.expect(201);
    assert_eq!(made["spec"], json!({"length": 9}));
    let immutable = json!({"spec": {"group": "other.io"}});
    admin
        .patch("merge", &format!("{schemas}/v2.boats.sea.io"), &immutable)
        .await
        .expect(422);
}

#[tokio::test]
async fn a_provider_sees_its_consumers_objects_and_nothing_else() {
    let server = sea(json!([])).await;
    let (admin, pat) = (server.admin(), server.user("pat", &[]));
    bind(&server, A, json!([])).await;
    bind(&server, B, json!([])).await;
    let mut watch = pat
        .watch(&format!(
            "{}?watch=1&resourceVersion=0",
            door("*", "/apis/sea.io/v1/boats")
        ))
        .await;
    boat(&admin, &at(A, BOATS), "same").await;
    boat(&admin, &at(B, BOATS), "same").await;
    for home in [A, B] {
        let event = watch.next().await.unwrap();
        assert_eq!(event["object"]["metadata"]["annotations"]["kcp.io/cluster"], home);
    }
    let list = pat.get(&door("*", "/apis/sea.io/v1/boats")).await.expect(200);
    assert_eq!(names(&list), ["same", "same"]);
    let status = json!({"status": {"afloat": true}});
    pat.patch("merge", &door(A, &format!("{BOATS}/same/status")), &status)
        .await
        .expect(200);
    let own = admin.get(&at(A, &format!("{BOATS}/same"))).await.expect(200);
    assert_eq!(own["status"]["afloat"], true);
    assert!(admin.get(&at(B, &format!("{BOATS}/same"))).await.expect(200)["status"].is_null());
    boat(&pat, &door(B, BOATS), "gift").await;
    assert_eq!(
        names(&admin.get(&at(B, BOATS)).await.expect(200)),
        ["gift", "same"]
    );
    // Neither the consumer's other objects, nor its workspace itself.
    for (path, code) in [
        (door(A, "/api/v1/configmaps"), 403),
        (door("*", "/api/v1/configmaps"), 404),
        (door(A, "/api/v1/namespaces"), 403),
        (door(A, "/apis/apis.kcp.io/v1alpha2/apiexports"), 403),
        (door(PROVIDER, BOATS), 403),
        (door("root", BOATS), 403),
        (at(A, BOATS), 403),
        (at(A, "/api/v1/configmaps"), 403),
        ("/clusters/*/apis/sea.io/v1/boats".to_owned(), 403),
        (
            format!("/services/apiexport/{PROVIDER}/nothing/clusters/*/apis/sea.io/v1/boats"),
            404,
        ),
        (
            format!("/services/apiexport/{A}/boats/clusters/*/apis/sea.io/v1/boats"),
            403,
        ),
        (
            "/services/apiexport/nowhere/boats/clusters/*/apis/sea.io/v1/boats".to_owned(),
            403,
        ),
    ] {
        assert_eq!(pat.get(&path).await.code, code, "{path}");
    }
    let groups = pat.get(&door("*", "/apis")).await.expect(200);
    let shown: Vec<&str> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|g| g["name"].as_str())
        .collect();
    assert_eq!(shown, ["sea.io", "apis.kcp.io"]);
    // The bindings to it can be read, and only those.
    let bindings = pat
        .get(&door("*", &format!("{APIS}/apibindings")))
        .await
        .expect(200);
    assert_eq!(names(&bindings), ["boats", "boats"]);
    assert_eq!(
        pat.delete(&door(A, &format!("{APIS}/apibindings/boats")))
            .await
            .code,
        403
    );
    // Somebody else is not the provider.
    let eve = server.user("eve", &[]);
    eve.get(&door("*", "/apis/sea.io/v1/boats")).await.expect(403);
}

#[tokio::test]
async fn a_claim_opens_what_the_consumer_accepts() {
    let claims = json!([
        {"group": "", "resource": "configmaps", "verbs": ["*"]},
        {"group": "", "resource": "secrets", "verbs": ["get", "list"]},
    ]);
    let server = sea(claims).await;
    let (admin, pat) = (server.admin(), server.user("pat", &[]));
    bind(&server, A, json!([
        {"group": "", "resource": "configmaps", "verbs": ["*"], "state": "Accepted", "selector": {"matchLabels": {"for": "boats"}}},
        {"group": "", "resource": "secrets", "verbs": ["get", "list"], "state": "Rejected", "selector": {"matchAll": true}},
    ])).await;
    bind(&server, B, json!([])).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for id in [A, B] {
        for (name, labels) in [("chart", json!({"for": "boats"})), ("diary", json!({}))] {
            let map = json!({"metadata": {"name": name, "labels": labels}});
            admin.post(&at(id, maps), &map).await.expect(201);
        }
    }
    let seen = pat.get(&door("*", "/api/v1/configmaps")).await.expect(200);
    assert_eq!(
        names(&seen),
        ["chart"],
        "of the one who accepted, what the selector names"
    );
    pat.get(&door(A, &format!("{maps}/chart"))).await.expect(200);
    pat.get(&door(A, &format!("{maps}/diary"))).await.expect(404);
    pat.get(&door(B, &format!("{maps}/chart"))).await.expect(403);
    pat.get(&door(A, "/api/v1/namespaces/default/secrets"))
        .await
        .expect(403);
    // What the provider writes falls under the claim.
    let made = pat
        .post(&door(A, maps), &json!({"metadata": {"name": "log"}}))
        .await
        .expect(201);
    assert_eq!(made["metadata"]["labels"]["for"], "boats");
    let wrong = json!({"metadata": {"name": "log2", "labels": {"for": "me"}}});
    pat.post(&door(A, maps), &wrong).await.expect(403);
    let theft = json!({"data": {"k": "stolen"}});
    pat.patch("merge", &door(A, &format!("{maps}/diary")), &theft)
        .await
        .expect(404);
    pat.delete(&door(A, &format!("{maps}/diary"))).await.expect(404);
    pat.delete(&door(A, maps)).await.expect(200);
    assert_eq!(
        names(&admin.get(&at(A, maps)).await.expect(200)),
        ["diary"],
        "only what it sees"
    );
    // Nobody lets a provider in by a label.
    let label = seen["items"][0]["metadata"]["labels"].as_object().unwrap();
    let (key, value) = label
        .iter()
        .find(|(k, _)| k.starts_with("claimed.internal.apis.kcp.io/"))
        .unwrap();
    let forged = json!({"metadata": {"name": "bait", "labels": {key: value}}});
    let made = admin.post(&at(B, maps), &forged).await.expect(201);
    assert!(made["metadata"]["labels"].is_null(), "{made}");
}

#[tokio::test]
async fn to_apply_through_an_export_is_to_create_where_nothing_is() {
    let claims = json!([
        {"group": "", "resource": "configmaps", "verbs": ["*"]},
        {"group": "", "resource": "secrets", "verbs": ["get", "patch", "update"]},
    ]);
    let server = sea(claims).await;
    let (admin, pat) = (server.admin(), server.user("pat", &[]));
    bind(&server, A, json!([
        {"group": "", "resource": "configmaps", "verbs": ["*"], "state": "Accepted", "selector": {"matchAll": true}},
        {"group": "", "resource": "secrets", "verbs": ["get", "patch", "update"], "state": "Accepted", "selector": {"matchAll": true}},
    ])).await;
    let applied =
        |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
    let to = |path: &str| door(A, &format!("{path}/x?fieldManager=pat"));
    for (path, object, code) in [
        (BOATS, applied("sea.io/v1", "Boat"), 201),
        (BOATS, applied("sea.io/v1", "Boat"), 200),
        (
            "/api/v1/namespaces/default/configmaps",
            applied("v1", "ConfigMap"),
            201,
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            applied("v1", "ConfigMap"),
            200,
        ),
        // Nobody agreed that it makes Secrets.
        ("/api/v1/namespaces/default/secrets", applied("v1", "Secret"), 403),
    ] {
        assert_eq!(pat.patch("apply", &to(path), &object).await.code, code, "{path}");
    }
    let secrets = "/api/v1/namespaces/default/secrets";
    let theirs = json!({"metadata": {"name": "x"}, "stringData": {"k": "v"}});
    admin.post(&at(A, secrets), &theirs).await.expect(201);
    let changed = pat.patch("apply", &to(secrets), &applied("v1", "Secret")).await;
    changed.expect(200);
}

#[tokio::test]
async fn to_bind_needs_the_providers_leave() {
    let server = sea(json!([])).await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    let binding = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "boats"},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "boats"}}},
    });
    let bindings = at(A, &format!("{APIS}/apibindings"));
    let refused = ann.post(&bindings, &binding).await.expect(403);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("no permission to bind"),
        "{refused}"
    );
    // To act as somebody else at home changes nothing abroad.
    ann.with("impersonate-user", "pat")
        .post(&bindings, &binding)
        .await
        .expect(403);
    let role = json!({"metadata": {"name": "bind"}, "rules": [
        {"apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": ["boats"], "verbs": ["bind"]}]});
    let grant = json!({"metadata": {"name": "bind"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bind"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    server
        .admin()
        .post(&at(PROVIDER, &format!("{rbac}/clusterroles")), &role)
        .await
        .expect(201);
    server
        .admin()
        .post(&at(PROVIDER, &format!("{rbac}/clusterrolebindings")), &grant)
        .await
        .expect(201);
    ann.post(&bindings, &binding).await.expect(201);
    // What was bound is for the controller to say.
    let status = json!({"status": {"phase": "Bound", "apiExportClusterName": PROVIDER}});
    ann.patch("merge", &format!("{bindings}/boats/status"), &status)
        .await
        .expect(403);
    let older = ann
        .get(&at(A, "/apis/apis.kcp.io/v1alpha1/apibindings/boats"))
        .await
        .expect(200);
    assert_eq!(older["apiVersion"], "apis.kcp.io/v1alpha1");
}

#[tokio::test]
async fn a_providers_policy_bounds_its_consumers() {
    let server = sea(json!([])).await;
    let admin = server.admin();
    bind(&server, A, json!([])).await;
    enthrone(&server, A, "ann").await;
    let ann = server.user("ann", &[]);
    boat(&ann, &at(A, BOATS), "first").await;
    let policy = json!({"spec": {"maximalPermissionPolicy": {"local": {}}}});
    let path = at(PROVIDER, &format!("{APIS}/apiexports/boats"));
    admin.patch("merge", &path, &policy).await.expect(200);
    ann.get(&at(A, BOATS)).await.expect(403);
    let role = json!({"metadata": {"name": "max"}, "rules": [
        {"apiGroups": ["sea.io"], "resources": ["boats"], "verbs": ["get", "list"]}]});
    let grant = json!({"metadata": {"name": "max"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "max"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                      "name": "apis.kcp.io:binding:system:authenticated"}]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    admin
        .post(&at(PROVIDER, &format!("{rbac}/clusterroles")), &role)
        .await
        .expect(201);
    admin
        .post(&at(PROVIDER, &format!("{rbac}/clusterrolebindings")), &grant)
        .await
        .expect(201);
    ann.get(&at(A, BOATS)).await.expect(200);
    ann.delete(&at(A, &format!("{BOATS}/first"))).await.expect(403);
}

#[tokio::test]
async fn selectable_fields_of_a_bound_kind() {
    let server = sea(json!([])).await;
    let admin = server.admin();
    let mut chosen = schema("v2.boats.sea.io", "size");
    chosen["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.size"}]);
    let schemas = at(PROVIDER, "/apis/apis.kcp.io/v1alpha1/apiresourceschemas");
    admin.post(&schemas, &chosen).await.expect(201);
    let change = json!([{"op": "replace", "path": "/spec/resources/0/schema", "value": "v2.boats.sea.io"}]);
    let path = at(PROVIDER, &format!("{APIS}/apiexports/boats"));
    admin.patch("json", &path, &change).await.expect(200);
    bind(&server, A, json!([])).await;
    bound_to(&server, A, "v2.boats.sea.io").await;
    for (name, size) in [("ark", 300), ("raft", 3)] {
        let object = json!({"apiVersion": "sea.io/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"size": size}});
        admin.post(&at(A, BOATS), &object).await.expect(201);
    }
    for base in [at(A, BOATS), door("*", "/apis/sea.io/v1/boats")] {
        let chosen = admin
            .get(&format!("{base}?fieldSelector=spec.size%3D3"))
            .await
            .expect(200);
        assert_eq!(names(&chosen), ["raft"], "{base}");
        let wrong = format!("{base}?fieldSelector=spec.colour%3Dred");
        admin.get(&wrong).await.expect(400);
    }
}

#[tokio::test]
async fn openapi_of_an_exports_virtual_workspace() {
    let server = sea(json!([{"group": "", "resource": "configmaps", "verbs": ["*"]}])).await;
    let pat = server.user("pat", &[]);
    bind(&server, A, json!([])).await;
    for consumer in ["*", A] {
        let index = pat.get(&door(consumer, "/openapi/v3")).await.expect(200);
        let mut paths: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
        paths.sort();
        assert!(paths.iter().any(|it| *it == "apis/sea.io/v1"), "{paths:?}");
        assert!(!paths.iter().any(|it| it.starts_with("apis/apps")), "{paths:?}");
        let document = pat
            .get(&door(consumer, "/openapi/v3/apis/sea.io/v1"))
            .await
            .expect(200);
        let boat = &document["components"]["schemas"]["io.sea.v1.Boat"]["properties"];
        assert!(boat["spec"]["properties"]["size"].is_object(), "{boat}");
    }
}

#[tokio::test]
async fn definitions_and_workspaces_can_be_claimed() {
    let all = |group: &str, resource: &str| json!({"group": group, "resource": resource, "verbs": ["*"]});
    let claims = [
        all("apiextensions.k8s.io", "customresourcedefinitions"),
        all("tenancy.kcp.io", "workspaces"),
        all("core.kcp.io", "logicalclusters"),
    ];
    let server = sea(json!(claims)).await;
    let (admin, pat) = (server.admin(), server.user("pat", &[]));
    let answers = claims.map(|mut claim| {
        claim["state"] = json!("Accepted");
        claim["selector"] = json!({"matchAll": true});
        claim
    });
    bind(&server, A, json!(answers)).await;
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let crd = json!({"metadata": {"name": "sails.sea.io"}, "spec": {
        "group": "sea.io", "scope": "Cluster", "names": {"plural": "sails", "kind": "Sail"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    pat.post(&door(A, crds), &crd).await.expect(201);
    admin.get(&at(A, "/apis/sea.io/v1/sails")).await.expect(200);
    assert_eq!(
        names(&pat.get(&door("*", crds)).await.expect(200)),
        ["sails.sea.io"]
    );
    pat.get(&door(A, "/apis/sea.io/v1/sails")).await.expect(403);
    pat.post(&door(B, crds), &crd).await.expect(403);
    // Workspaces, but none that was made by somebody else's hand.
    let workspaces = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
    let child =
        json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "c"}});
    let made = pat.post(&door(A, workspaces), &child).await.expect(201);
    assert_eq!(made["metadata"]["annotations"]["kcp.io/cluster"], A);
    let mut elsewhere = child.clone();
    elsewhere["metadata"]["name"] = json!("d");
    elsewhere["spec"] = json!({"cluster": B});
    pat.post(&door(A, workspaces), &elsewhere).await.expect(403);
    // What a workspace is, is the system's to say, whatever was claimed.
    let cluster = door(A, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
    let inactive = json!({"metadata": {"annotations": {"core.kcp.io/inactive": "true"}}});
    assert!(pat.patch("merge", &cluster, &inactive).await.code >= 400);
    assert!(pat.delete(&cluster).await.code >= 400);
}
