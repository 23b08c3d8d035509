//! The calls that the controller makes, and those that it does not.

use fairway_controller::fake::{Failing, Script};
use fairway_controller::{ObjectKey, Outcome, Reconcile as _, WorkspaceId};
use serde_json::{Value, json};

use super::NamespaceDeletion;

const NAMESPACE: &str = "/api/v1/namespaces/n";

fn namespace(deleting: bool, finalizers: &[&str]) -> Value {
    let time = deleting.then_some("2026-01-01T00:00:00Z");
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "5", "deletionTimestamp": time},
        "spec": {"finalizers": finalizers}, "status": {"phase": "Terminating"},
    })
}

/// Discovery with pods, one kind that can be deleted as a collection, and one that cannot.
fn discovered(script: Script) -> Script {
    let resource = |plural: &str, kind: &str, verbs: &[&str]| json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": verbs});
    let every = ["delete", "deletecollection", "get", "list", "watch"];
    let core = json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
        resource("pods", "Pod", &every), resource("configmaps", "ConfigMap", &every),
        resource("bindings", "Binding", &["create"]),
    ]}]}]});
    let groups = json!({"items": [{"metadata": {"name": "e.x"}, "versions": [{"version": "v1", "resources": [
        resource("widgets", "Widget", &["delete", "list"]),
    ]}]}]});
    script
        .expect("GET", "/api", 200, core)
        .expect("GET", "/apis", 200, groups)
}

fn list(names: &[&str], finalizers: &[&str]) -> Value {
    let items: Vec<Value> = names
        .iter()
        .map(|n| json!({"metadata": {"name": n, "finalizers": finalizers}}))
        .collect();
    json!({"metadata": {"resourceVersion": "9"}, "items": items})
}

async fn reconcile(script: &Script) -> Result<Outcome, String> {
    let controller = NamespaceDeletion {
        clients: script.clients(),
    };
    let key = ObjectKey::new(&WorkspaceId::root(), "", "n");
    controller
        .reconcile(&key)
        .await
        .map_err(|failure| failure.sentence())
}

#[tokio::test]
async fn what_is_not_being_deleted_is_left_alone() {
    for (code, answer) in [
        (
            404,
            json!({"status": "Failure", "code": 404, "reason": "NotFound", "message": "no"}),
        ),
        (200, namespace(false, &["kubernetes"])),
        (200, namespace(true, &["example.com/other"])),
    ] {
        let script = Script::new().expect("GET", NAMESPACE, code, answer);
        assert_eq!(reconcile(&script).await, Ok(Outcome::Done));
        script.finish();
    }
}

#[tokio::test]
async fn content_goes_kind_by_kind_and_the_namespace_last() {
    let empty = list(&[], &[]);
    let ok = json!({"kind": "Status", "status": "Success"});
    let script = discovered(Script::new().in_any_order().expect(
        "GET",
        NAMESPACE,
        200,
        namespace(true, &["kubernetes", "example.com/x"]),
    ))
    .expect("GET", "/api/v1/namespaces/n/pods?", 200, empty.clone())
    .expect("GET", "/api/v1/namespaces/n/configmaps?", 200, list(&["a"], &[]))
    .expect("DELETE", "/api/v1/namespaces/n/configmaps?", 200, ok.clone())
    .expect("GET", "/api/v1/namespaces/n/configmaps?", 200, empty.clone())
    .expect(
        "GET",
        "/apis/e.x/v1/namespaces/n/widgets?",
        200,
        list(&["w"], &[]),
    )
    .expect("DELETE", "/apis/e.x/v1/namespaces/n/widgets/w?", 200, ok)
    .expect("GET", "/apis/e.x/v1/namespaces/n/widgets?", 200, empty)
    .expect("PUT", "/api/v1/namespaces/n/finalize?", 200, namespace(true, &[]));
    assert_eq!(reconcile(&script).await, Ok(Outcome::Done));
    let calls = script.finish();
    let collection = calls
        .iter()
        .find(|c| c.method == "DELETE" && c.uri.ends_with("configmaps?"))
        .unwrap();
    let last = calls.last().unwrap();
    assert_eq!(collection.body["propagationPolicy"], "Background");
    assert_eq!(last.body["spec"]["finalizers"], json!(["example.com/x"]));
    assert_eq!(
        last.body["metadata"]["resourceVersion"], "5",
        "somebody else's change is not lost"
    );
}

#[tokio::test]
async fn pods_come_first() {
    let held = list(&["p"], &["example.com/hold"]);
    let ok = json!({"kind": "Status", "status": "Success"});
    let script = discovered(Script::new().expect("GET", NAMESPACE, 200, namespace(true, &["kubernetes"])))
        .expect("GET", "/api/v1/namespaces/n/pods?", 200, held.clone())
        .expect("DELETE", "/api/v1/namespaces/n/pods?", 200, ok)
        .expect("GET", "/api/v1/namespaces/n/pods?", 200, held)
        .expect(
            "PUT",
            "/api/v1/namespaces/n/status?",
            200,
            namespace(true, &["kubernetes"]),
        );
    assert_eq!(reconcile(&script).await, Ok(Outcome::Poll));
    let conditions = script.finish().pop().unwrap().body["status"]["conditions"].clone();
    let held: Vec<&Value> = conditions
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["status"] == "True")
        .map(|c| &c["type"])
        .collect();
    assert_eq!(
        held,
        ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"]
    );
}

#[tokio::test]
async fn without_discovery_nothing_is_finalized() {
    let script = Script::new()
        .expect("GET", NAMESPACE, 200, namespace(true, &["kubernetes"]))
        .refuse("GET", "/api", 503, "ServiceUnavailable")
        .expect(
            "PUT",
            "/api/v1/namespaces/n/status?",
            200,
            namespace(true, &["kubernetes"]),
        );
    let problem = reconcile(&script).await.unwrap_err();
    assert!(problem.contains("discover the kinds"), "{problem}");
    script.finish();
}

#[tokio::test]
async fn a_server_that_refuses_is_named() {
    let controller = NamespaceDeletion {
        clients: Failing::with(403, "Forbidden").clients(),
    };
    let failure = controller
        .reconcile(&ObjectKey::new(&WorkspaceId::root(), "", "n"))
        .await
        .unwrap_err();
    assert_eq!(
        failure.sentence(),
        "could not read the namespace: refused: Forbidden"
    );
}
