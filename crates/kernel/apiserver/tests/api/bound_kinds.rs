//! Kinds that workspaces bind, in bad moments: the schema goes, and a definition comes at the same time as a binding.

use fairway_kernel_store::{KeyRange, Range};
use serde_json::{Value, json};

use crate::harness::{Server, names};
use crate::workspaces::workspace;

const PROVIDER: &str = "pppppppppppppppp";
const A: &str = "aaaaaaaaaaaaaaaa";
const IDENTITY: &str = "0123456789abcdef0123456789abcdef";
const BOATS: &str = "/apis/sea.io/v1/namespaces/default/boats";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BINDING: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
const SCHEMAS: &str = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas";

fn at(id: &str, path: &str) -> String {
    format!("/clusters/{id}{path}")
}

/// A provider's schema, and a workspace that has bound it, as the controllers would have written it.
async fn bound() -> Server {
    let server = Server::start().await;
    workspace(&server, "root", "provider", PROVIDER).await;
    workspace(&server, "root", "a", A).await;
    let admin = server.admin();
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": "v1.boats.sea.io"},
        "spec": {
            "group": "sea.io", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"type": "object", "properties": {"size": {"type": "integer"}}}}],
        },
    });
    let made = admin.post(&at(PROVIDER, SCHEMAS), &schema).await.expect(201);
    let binding = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "boats"},
        "spec": {"reference": {"export": {"path": "root:provider", "name": "boats"}}},
    });
    admin.post(&at(A, BINDING), &binding).await.expect(201);
    let status = json!({"status": {"phase": "Bound", "apiExportClusterName": PROVIDER, "boundResources": [
        {"group": "sea.io", "resource": "boats", "storageVersions": ["v1"],
         "schema": {"name": "v1.boats.sea.io", "UID": made["metadata"]["uid"], "identityHash": IDENTITY}}]}});
    let path = at(A, &format!("{BINDING}/boats/status"));
    admin.patch("merge", &path, &status).await.expect(200);
    server
}

async fn copies(server: &Server) -> usize {
    let all = Range {
        keys: KeyRange::prefix(b"!schema/"),
        revision: None,
        limit: 0,
        keys_only: true,
        count_only: false,
    };
    server.store.range(all).await.unwrap().kvs.len()
}

#[tokio::test]
async fn a_schema_that_goes_leaves_what_is_bound() {
    let server = bound().await;
    let admin = server.admin();
    let boat = json!({"apiVersion": "sea.io/v1", "kind": "Boat", "metadata": {"name": "ark"}, "size": 3});
    admin.post(&at(A, BOATS), &boat).await.expect(201);
    admin
        .delete(&at(PROVIDER, &format!("{SCHEMAS}/v1.boats.sea.io")))
        .await
        .expect(200);
    assert_eq!(names(&admin.get(&at(A, BOATS)).await.expect(200)), ["ark"]);
    assert_eq!(copies(&server).await, 1);
    // A server that starts now has never seen the schema, and still knows what a boat is.
    let again = server.restarted().await;
    let registry = again.apis.of(A);
    let def = registry.find("sea.io", "v1", "boats").unwrap();
    assert_eq!(def.kind, "Boat");
    // When nobody needs it any more, the copy goes.
    let path = at(A, &format!("{BINDING}/boats"));
    admin.delete(&path).await.expect(200);
    let gone = json!({"metadata": {"finalizers": null}});
    admin.patch("merge", &path, &gone).await.expect(200);
    assert_eq!(copies(&server).await, 1);
    let again = server.restarted().await;
    assert!(again.apis.of(A).find("sea.io", "v1", "boats").is_none());
    assert_eq!(copies(&server).await, 0);
}

#[tokio::test]
async fn a_schema_that_nobody_uses_leaves_nothing() {
    let server = bound().await;
    let admin = server.admin();
    let mut other: Value = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": {"name": "v1.rafts.sea.io"},
        "spec": {"group": "sea.io", "scope": "Namespaced",
            "names": {"plural": "rafts", "singular": "raft", "kind": "Raft", "listKind": "RaftList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}]},
    });
    admin.post(&at(PROVIDER, SCHEMAS), &other).await.expect(201);
    let path = at(PROVIDER, &format!("{SCHEMAS}/v1.rafts.sea.io"));
    admin.delete(&path).await.expect(200);
    assert_eq!(copies(&server).await, 0);
    // One that an export offers may be bound at this very moment.
    other["metadata"]["name"] = json!("v2.rafts.sea.io");
    admin.post(&at(PROVIDER, SCHEMAS), &other).await.expect(201);
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "rafts"},
        "spec": {"resources": [{"group": "sea.io", "name": "rafts", "schema": "v2.rafts.sea.io", "storage": {"crd": {}}}]},
    });
    let exports = at(PROVIDER, "/apis/apis.kcp.io/v1alpha2/apiexports");
    admin.post(&exports, &export).await.expect(201);
    let path = at(PROVIDER, &format!("{SCHEMAS}/v2.rafts.sea.io"));
    admin.delete(&path).await.expect(200);
    assert_eq!(copies(&server).await, 1);
}

/// A definition, and somebody who takes the same resource for a binding as the controller does: he writes himself into the
/// list of the workspace and then looks for definitions. Whoever is first, never do both believe that they have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_and_a_binding_never_both_win() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    let (mut defined, mut taken) = (0, 0);
    for round in 0..40 {
        let group = format!("g{round}.io");
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("boats.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        });
        let (definer, binder) = (server.admin(), server.admin());
        let define = tokio::spawn(async move { definer.post(&at(A, CRDS), &crd).await.code });
        let take = tokio::spawn(async move {
            let path = at(A, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster");
            let cluster = binder.get(&path).await.expect(200);
            let key = "internal.apis.kcp.io/resource-bindings";
            let held = cluster["metadata"]["annotations"][key].as_str().unwrap_or("{}");
            let mut held: Value = serde_json::from_str(held).unwrap();
            held[format!("boats.{group}")] = json!({"n": "boats"});
            let patch = json!({"metadata": {
                "resourceVersion": cluster["metadata"]["resourceVersion"],
                "annotations": {key: held.to_string()},
            }});
            let written = binder.patch("merge", &path, &patch).await.code == 200;
            let list = binder.get(&at(A, CRDS)).await.expect(200);
            written && !names(&list).contains(&format!("boats.{group}"))
        });
        let (code, taken_now) = (define.await.unwrap(), take.await.unwrap());
        assert!(code == 201 || code == 403, "round {round}: {code}");
        assert!(!(code == 201 && taken_now), "round {round}: both have it");
        defined += usize::from(code == 201);
        taken += usize::from(taken_now);
    }
    assert_eq!(defined + taken, 40, "and never does nobody get it");
}
