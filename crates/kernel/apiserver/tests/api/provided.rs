//! Kinds that the program brings into every workspace, and definitions of the same name.

use serde_json::{Value, json};

use crate::harness::{DEFINITIONS, Server, names};
use crate::workspaces::workspace;

const A: &str = "aaaaaaaaaaaaaaaa";
const LANTERNS: &str = "/apis/harbour.dev/v1/namespaces/default/lanterns";
const SERVED_BY: &str = "fairway.dev/served-by";

fn at(path: &str) -> String {
    format!("/clusters/{A}{path}")
}

async fn start() -> Server {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    server
}

fn lantern(name: &str) -> Value {
    json!({"apiVersion": "harbour.dev/v1", "kind": "Lantern", "metadata": {"name": name},
           "spec": {"upper": {"colour": "red"}, "lower": {"colour": "green", "odd": 1}}})
}

/// A definition of the same name, in which lanterns are something else.
fn definition(served_by: Option<&str>) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lanterns.harbour.dev"},
        "spec": {
            "group": "harbour.dev", "scope": "Namespaced",
            "names": {"plural": "lanterns", "singular": "lantern", "kind": "Lantern"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"height": {"type": "integer"}}}}}],
        },
    });
    if let Some(served_by) = served_by {
        crd["metadata"]["annotations"] = json!({SERVED_BY: served_by});
    }
    crd
}

#[tokio::test]
async fn it_is_served_in_every_workspace_with_its_schema() {
    let server = start().await;
    let admin = server.admin();
    for prefix in [String::new(), format!("/clusters/{A}")] {
        let path = format!("{prefix}{LANTERNS}");
        let made = admin.post(&path, &lantern("pier")).await.expect(201);
        assert_eq!(made["spec"]["lower"], json!({"colour": "green"}), "pruned");
        let mut dark = lantern("dark");
        dark["spec"]["lower"] = json!({});
        admin
            .post(&path, &dark)
            .await
            .refused(422, "Invalid", "spec.lower.colour: Required value");
        let document = admin
            .get(&format!("{prefix}/openapi/v3/apis/harbour.dev/v1"))
            .await
            .expect(200);
        let schema = &document["components"]["schemas"]["dev.harbour.v1.Lantern"];
        assert_eq!(
            schema["properties"]["spec"]["properties"]["upper"]["required"],
            json!(["colour"])
        );
    }
    let all = admin
        .get("/clusters/*/apis/harbour.dev/v1/lanterns")
        .await
        .expect(200);
    assert_eq!(names(&all), ["pier", "pier"]);
}

#[tokio::test]
async fn a_definition_out_of_habit_changes_nothing() {
    let server = start().await;
    let admin = server.admin();
    admin.post(&at(LANTERNS), &lantern("pier")).await.expect(201);
    let reply = admin.post(&at(DEFINITIONS), &definition(None)).await;
    let made = reply.expect(201);
    let warning = reply.headers.get("warning").unwrap().to_str().unwrap();
    assert!(
        warning.contains("Fairway serves lanterns.harbour.dev in every workspace"),
        "{warning}"
    );
    assert_eq!(made["metadata"]["annotations"][SERVED_BY], "fairway");
    let established = made["status"]["conditions"].as_array().unwrap();
    assert!(
        established
            .iter()
            .any(|it| it["type"] == "Established" && it["status"] == "True"),
        "who waits for it goes on: {made}"
    );
    assert_eq!(names(&admin.get(&at(LANTERNS)).await.expect(200)), ["pier"]);
    admin.post(&at(LANTERNS), &lantern("mole")).await.expect(201);
    // Nobody turns it over afterwards.
    let path = at(&format!("{DEFINITIONS}/lanterns.harbour.dev"));
    let patch = json!({"metadata": {"annotations": {SERVED_BY: "definition"}}});
    let patched = admin.patch("merge", &path, &patch).await.expect(200);
    assert_eq!(patched["metadata"]["annotations"][SERVED_BY], "fairway");
    // It goes without taking anything along.
    admin.delete(&path).await.expect(200);
    admin
        .get(&path)
        .await
        .refused(404, "NotFound", "lanterns.harbour.dev");
    assert_eq!(
        names(&admin.get(&at(LANTERNS)).await.expect(200)),
        ["mole", "pier"]
    );
}

#[tokio::test]
async fn a_definition_that_says_so_takes_the_kind_over() {
    let server = start().await;
    let admin = server.admin();
    admin.post(LANTERNS, &lantern("elsewhere")).await.expect(201);
    let reply = admin
        .post(&at(DEFINITIONS), &definition(Some("definition")))
        .await;
    reply.expect(201);
    let warning = reply.headers.get("warning").unwrap().to_str().unwrap();
    assert!(
        warning.contains("does not act on lanterns.harbour.dev in this workspace"),
        "{warning}"
    );
    let own =
        json!({"apiVersion": "harbour.dev/v1", "kind": "Lantern", "metadata": {"name": "own"}, "height": 3});
    admin.post(&at(LANTERNS), &own).await.expect(201);
    let of_program = admin
        .get("/clusters/*/apis/harbour.dev/v1/lanterns")
        .await
        .expect(200);
    assert_eq!(
        names(&of_program),
        ["elsewhere"],
        "the program does not see the other kind"
    );
    let group = admin.get(&at("/apis/harbour.dev/v1")).await.expect(200);
    let mut resources: Vec<&str> = group["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    resources.sort_unstable();
    assert_eq!(
        resources,
        ["lanterns"],
        "once, and without the status of the other"
    );
    // A server that starts now finds it as it was.
    let again = server.restarted().await;
    let identity = |cluster: &str| {
        let registry = again.apis.of(cluster);
        registry
            .find("harbour.dev", "v1", "lanterns")
            .unwrap()
            .prefix
            .identity()
            .to_owned()
    };
    assert_eq!(identity("root"), "builtin");
    assert_ne!(identity(A), "builtin");
}

#[tokio::test]
async fn a_definition_does_not_hide_objects() {
    let server = start().await;
    let admin = server.admin();
    admin.post(&at(LANTERNS), &lantern("pier")).await.expect(201);
    admin
        .post(&at(DEFINITIONS), &definition(Some("definition")))
        .await
        .refused(
            403,
            "Forbidden",
            "this workspace has 1 lanterns.harbour.dev that Fairway serves",
        );
    admin.delete(&at(&format!("{LANTERNS}/pier"))).await.expect(200);
    admin
        .post(&at(DEFINITIONS), &definition(Some("definition")))
        .await
        .expect(201);
}
