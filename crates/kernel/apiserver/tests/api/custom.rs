//! Custom resources: definitions that come, change, conflict and go, and what becomes of their objects.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{Client, DEFINITIONS, Server, definition, names, version};

const WIDGETS: &str = "/apis/test.dev/v1/namespaces/default/widgets";

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

fn crd_path(plural: &str) -> String {
    format!("{DEFINITIONS}/{plural}.test.dev")
}

fn condition<'v>(crd: &'v Value, kind: &str) -> &'v Value {
    crd["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["type"] == kind)
        .unwrap_or(&Value::Null)
}

async fn define(admin: &Client, spec: &Value) -> Value {
    admin
        .post(DEFINITIONS, &definition("widgets", "Widget", spec))
        .await
        .expect(201)
}

#[tokio::test]
async fn a_definition_serves_from_the_moment_it_is_acknowledged() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.get(WIDGETS).await.no_page();
    let crd = define(
        &admin,
        &json!({"type": "object", "properties": {"size": {"type": "integer"}}}),
    )
    .await;
    for kind in ["NamesAccepted", "Established"] {
        assert_eq!(condition(&crd, kind)["status"], "True", "{crd}");
    }
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["status"]["acceptedNames"]["plural"], "widgets");
    let made = admin
        .post(WIDGETS, &widget("w", &json!({"size": 3})))
        .await
        .expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    let found = admin.get("/apis/test.dev/v1").await.expect(200);
    let resources: Vec<_> = found["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].clone())
        .collect();
    assert_eq!(resources, ["widgets", "widgets/status"]);
    let openapi = admin.get("/openapi/v3/apis/test.dev/v1").await.expect(200);
    assert!(
        openapi["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
            .any(|k| k.ends_with("Widget"))
    );
}

#[tokio::test]
async fn objects_are_pruned_defaulted_and_checked() {
    let server = Server::start().await;
    let admin = server.admin();
    let schema = json!({
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "parts": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    define(&admin, &schema).await;
    let made = admin
        .post(
            WIDGETS,
            &widget("a", &json!({"size": 1, "weight": 5, "free": {"any": [1]}})),
        )
        .await;
    assert_eq!(
        made.expect(201)["spec"],
        json!({"size": 1, "colour": "red", "free": {"any": [1]}})
    );
    assert!(
        made.warnings()[0].contains("unknown field \\\"spec.weight\\\""),
        "{:?}",
        made.warnings()
    );
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let refused = admin
        .post(&strict, &widget("b", &json!({"size": 1, "weight": 5})))
        .await;
    refused.refused(400, "BadRequest", "unknown field \"spec.weight\"");
    for (spec, field, reason, why) in [
        (json!({}), "spec.size", "FieldValueRequired", "missing"),
        (json!({"size": 0}), "spec.size", "FieldValueInvalid", "too small"),
        (json!({"size": 11}), "spec.size", "FieldValueInvalid", "too large"),
        (json!({"size": "1"}), "spec.size", "FieldValueTypeInvalid", "text"),
        (
            json!({"size": 1.5}),
            "spec.size",
            "FieldValueTypeInvalid",
            "not whole",
        ),
        (
            json!({"size": 1, "colour": "green"}),
            "spec.colour",
            "FieldValueNotSupported",
            "not one of them",
        ),
        (
            json!({"size": 1, "name": "A"}),
            "spec.name",
            "FieldValueInvalid",
            "does not match",
        ),
        (
            json!({"size": 1, "name": "abcdef"}),
            "spec.name",
            "FieldValueTooLong",
            "too long",
        ),
        (
            json!({"size": 1, "parts": ["x", "x"]}),
            "spec.parts[1]",
            "FieldValueDuplicate",
            "twice in a set",
        ),
    ] {
        let refused = admin.post(WIDGETS, &widget("b", &spec)).await;
        let status = refused.refused(422, "Invalid", "Widget.test.dev \"b\" is invalid");
        let cause = &status["details"]["causes"][0];
        assert_eq!(
            (&cause["field"], &cause["reason"]),
            (&json!(field), &json!(reason)),
            "{why}: {status}"
        );
    }
    assert_eq!(names(&admin.get(WIDGETS).await.expect(200)), ["a"]);
}

#[tokio::test]
async fn a_later_schema_counts_when_an_older_object_is_read() {
    let server = Server::start().await;
    let admin = server.admin();
    let crd = define(
        &admin,
        &json!({"type": "object", "properties": {"old": {"type": "string"}}}),
    )
    .await;
    admin
        .post(WIDGETS, &widget("w", &json!({"old": "x"})))
        .await
        .expect(201);
    let mut changed = crd.clone();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({
        "new": {"type": "string", "default": "given"},
    });
    admin.put(&crd_path("widgets"), &changed).await.expect(200);
    let expected = json!({"new": "given"});
    assert_eq!(
        admin.get(&format!("{WIDGETS}/w")).await.expect(200)["spec"],
        expected
    );
    assert_eq!(admin.get(WIDGETS).await.expect(200)["items"][0]["spec"], expected);
    let mut watch = admin.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(
        watch.next().await.unwrap()["object"]["spec"],
        expected,
        "lists and watches see the same"
    );
    let kernel = server.restarted().await;
    drop(kernel);
}

#[tokio::test]
async fn versions_share_their_objects() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut crd = definition(
        "widgets",
        "Widget",
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    let crd = admin.post(DEFINITIONS, &crd).await.expect(201);
    let v2 = WIDGETS.replace("v1", "v2");
    let mut object = widget("w", &json!({"a": 1}));
    object["apiVersion"] = "test.dev/v2".into();
    let made = admin.post(&v2, &object).await.expect(201);
    assert_eq!(
        made["apiVersion"], "test.dev/v2",
        "an answer is in the version of its request"
    );
    let read = admin.get(&format!("{WIDGETS}/w")).await.expect(200);
    assert_eq!(
        (&read["apiVersion"], &read["spec"], version(&read)),
        (&json!("test.dev/v1"), &json!({"a": 1}), version(&made))
    );
    assert_eq!(
        admin.get(&v2).await.expect(200)["items"][0]["apiVersion"],
        "test.dev/v2"
    );
    let mut watch = admin
        .watch(&format!("{v2}?watch=1&resourceVersion={}", version(&made)))
        .await;
    admin
        .patch("merge", &format!("{WIDGETS}/w"), &json!({"spec": {"a": 2}}))
        .await
        .expect(200);
    let event = watch.next().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["apiVersion"]),
        (&json!("MODIFIED"), &json!("test.dev/v2"))
    );

    let mut moved = admin.get(&crd_path("widgets")).await.expect(200);
    moved["spec"]["versions"][0]["storage"] = false.into();
    moved["spec"]["versions"][1]["storage"] = true.into();
    let moved = admin.put(&crd_path("widgets"), &moved).await.expect(200);
    assert_eq!(
        moved["status"]["storedVersions"],
        json!(["v1", "v2"]),
        "both may lie in the store now"
    );
    let read = admin.get(&format!("{WIDGETS}/w")).await.expect(200);
    assert_eq!(
        (&read["apiVersion"], &read["spec"]["a"]),
        (&json!("test.dev/v1"), &json!(2))
    );
    assert_eq!(
        admin.get(&format!("{v2}/w")).await.expect(200)["apiVersion"],
        "test.dev/v2",
        "written as v1, read as v2"
    );
    let mut dropped = moved.clone();
    dropped["spec"]["versions"].as_array_mut().unwrap().remove(0);
    let refused = admin.put(&crd_path("widgets"), &dropped).await;
    refused.refused(422, "Invalid", "status.storedVersions");

    let mut unserved = moved.clone();
    unserved["spec"]["versions"][0]["served"] = false.into();
    admin.put(&crd_path("widgets"), &unserved).await.expect(200);
    admin.get(WIDGETS).await.no_page();
    admin.get(&v2).await.expect(200);
    let _ = crd;
}

#[tokio::test]
async fn status_is_a_door_of_its_own() {
    let server = Server::start().await;
    let admin = server.admin();
    define(
        &admin,
        &json!({"type": "object", "properties": {"size": {"type": "integer"}}}),
    )
    .await;
    let mut object = widget("w", &json!({"size": 1}));
    object["status"] = json!({"ready": true});
    let made = admin.post(WIDGETS, &object).await.expect(201);
    assert!(made.get("status").is_none());
    let one = format!("{WIDGETS}/w");
    let patch = json!({"spec": {"size": 9}, "status": {"ready": true}, "metadata": {"labels": {"a": "b"}}});
    let stored = admin
        .patch("merge", &format!("{one}/status"), &patch)
        .await
        .expect(200);
    assert_eq!(
        (
            &stored["spec"]["size"],
            &stored["status"]["ready"],
            &stored["metadata"]["generation"]
        ),
        (&json!(1), &json!(true), &json!(1))
    );
    assert!(stored["metadata"].get("labels").is_none());
    let stored = admin
        .patch("merge", &one, &json!({"spec": {"size": 2}, "status": null}))
        .await
        .expect(200);
    assert_eq!(
        (&stored["status"]["ready"], &stored["metadata"]["generation"]),
        (&json!(true), &json!(2))
    );
    admin.patch("strategic", &one, &json!({})).await.refused(
        415,
        "UnsupportedMediaType",
        "application/apply-patch+yaml",
    );
}

#[tokio::test]
async fn names_are_given_once() {
    let server = Server::start().await;
    let admin = server.admin();
    define(&admin, &json!({"type": "object"})).await;
    let mut rival = definition("wodgets", "Widget", &json!({"type": "object"}));
    rival["spec"]["names"]["singular"] = "wodget".into();
    let rival = admin.post(DEFINITIONS, &rival).await.expect(201);
    assert_eq!(condition(&rival, "NamesAccepted")["status"], "False", "{rival}");
    assert_eq!(
        condition(&rival, "NamesAccepted")["reason"],
        "ListKindConflict",
        "the last conflict is the one that is told"
    );
    assert_ne!(condition(&rival, "Established")["status"], "True");
    admin
        .get("/apis/test.dev/v1/namespaces/default/wodgets")
        .await
        .no_page();
    admin.get(WIDGETS).await.expect(200);
}

#[tokio::test]
async fn wrong_definitions_are_refused() {
    let server = Server::start().await;
    let admin = server.admin();
    let good = definition("widgets", "Widget", &json!({"type": "object"}));
    let change = |at: &str, value: Value| {
        let mut crd = good.clone();
        *crd.pointer_mut(at).unwrap() = value;
        crd
    };
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    for (crd, words, why) in [
        (
            change("/metadata/name", json!("other.test.dev")),
            "metadata.name",
            "the name is made of plural and group",
        ),
        (change("/spec/group", json!("")), "spec.group", "no group"),
        (
            change("/spec/scope", json!("Galaxy")),
            "spec.scope",
            "no such scope",
        ),
        (change("/spec/versions", json!([])), "spec.versions", "no version"),
        (
            change("/spec/versions/0/storage", json!(false)),
            "storage",
            "nothing is stored",
        ),
        (
            change("/spec/versions/0/schema", json!({})),
            "openAPIV3Schema",
            "no schema",
        ),
        (
            change(schema, json!({"type": "string"})),
            "openAPIV3Schema",
            "not an object",
        ),
        (
            change(&format!("{schema}/properties/spec"), json!({"properties": {}})),
            "type",
            "no type",
        ),
        (
            change(
                &format!("{schema}/properties/spec"),
                json!({"type": "object", "default": 5}),
            ),
            "default",
            "a default that does not fit",
        ),
        (
            change("/spec/names/kind", json!("no kind!")),
            "spec.names.kind",
            "not a name",
        ),
    ] {
        let refused = admin.post(DEFINITIONS, &crd).await;
        assert_eq!(refused.code, 422, "{why}: {}", refused.text());
        assert!(refused.text().contains(words), "{why}: {}", refused.text());
    }
}

#[tokio::test]
async fn deep_schemas_and_deep_objects_are_bounded() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut schema = json!({"type": "string"});
    for _ in 0..45 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let reply = admin
        .post(DEFINITIONS, &definition("deeps", "Deep", &schema))
        .await;
    assert!(reply.code < 500, "{}", reply.text());
    define(
        &admin,
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    )
    .await;
    let mut value = json!(1);
    for _ in 0..90 {
        value = json!({"a": value});
    }
    let made = admin.post(WIDGETS, &widget("deep", &value)).await;
    assert_eq!(made.code, 201, "{}", made.text());
    admin.get(&format!("{WIDGETS}/deep")).await.expect(200);
    // Each copy puts the object into its own innermost part, so that the depth doubles.
    let mut operations = Vec::new();
    let mut depth = 90;
    for _ in 0..10 {
        operations
            .push(json!({"op": "copy", "from": "/spec", "path": format!("/spec{}", "/a".repeat(depth))}));
        depth *= 2;
    }
    let reply = admin
        .patch("json", &format!("{WIDGETS}/deep"), &json!(operations))
        .await;
    reply.refused(422, "Invalid", "nest deeper");
    // And here the width doubles.
    let operations: Vec<Value> = (0..40)
        .map(|i| json!({"op": "copy", "from": "/spec", "path": format!("/spec/x{i}")}))
        .collect();
    let reply = admin
        .patch("json", &format!("{WIDGETS}/deep"), &json!(operations))
        .await;
    assert!(
        (400..500).contains(&reply.code),
        "{} {}",
        reply.code,
        &reply.text()[..200.min(reply.text().len())]
    );
    let mut nested = json!({"z": 1});
    for _ in 0..60 {
        nested = json!({"a": nested});
    }
    for _ in 0..3 {
        let operations =
            json!([{"op": "add", "path": format!("/spec{}/b", "/a".repeat(80)), "value": nested}]);
        let reply = admin.patch("json", &format!("{WIDGETS}/deep"), &operations).await;
        assert!(reply.code < 500, "{} {}", reply.code, reply.text());
        let read = admin.get(&format!("{WIDGETS}/deep")).await;
        assert_eq!(read.code, 200, "what is stored can be read");
        admin.get(WIDGETS).await.expect(200);
    }
}

#[tokio::test]
async fn a_definition_with_objects_waits_for_them() {
    let server = Server::start().await;
    let admin = server.admin();
    define(&admin, &json!({"type": "object"})).await;
    admin.post(WIDGETS, &widget("w", &json!({}))).await.expect(201);
    let marked = admin.delete(&crd_path("widgets")).await.expect(200);
    assert!(
        marked["metadata"]["finalizers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|f| f == "customresourcecleanup.apiextensions.k8s.io")
    );
    admin.get(&format!("{WIDGETS}/w")).await.expect(200);
    admin.delete(WIDGETS).await.expect(200);
    admin
        .patch(
            "merge",
            &crd_path("widgets"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await
        .expect(200);
    admin.get(WIDGETS).await.no_page();
    let fresh = define(&admin, &json!({"type": "object"})).await;
    assert_ne!(fresh["metadata"]["uid"], marked["metadata"]["uid"]);
    assert_eq!(
        names(&admin.get(WIDGETS).await.expect(200)).len(),
        0,
        "a new definition begins empty"
    );
}

#[tokio::test]
async fn a_scale_of_its_own() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut crd = definition(
        "widgets",
        "Widget",
        &json!({"type": "object", "properties": {"size": {"type": "integer"}, "note": {"type": "string"}}}),
    );
    crd["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    admin.post(DEFINITIONS, &crd).await.expect(201);
    admin
        .post(WIDGETS, &widget("w", &json!({"size": 2})))
        .await
        .expect(201);
    let path = format!("{WIDGETS}/w/scale");
    assert_eq!(admin.get(&path).await.expect(200)["spec"]["replicas"], 2);
    admin
        .patch("merge", &path, &json!({"spec": {"replicas": 5}}))
        .await
        .expect(200);
    assert_eq!(
        admin.get(&format!("{WIDGETS}/w")).await.expect(200)["spec"]["size"],
        5
    );
    let reply = admin
        .patch(
            "merge",
            &format!("{WIDGETS}/w/status"),
            &json!({"status": {"size": "two"}}),
        )
        .await;
    assert!(reply.code == 200 || (400..500).contains(&reply.code));
    assert!(
        admin.get(&path).await.code < 500,
        "a status that is no number is nobody's crash"
    );
    admin.send(Method::PUT, &path, "application/json", "{}").await;
}

#[tokio::test]
async fn rules_in_cel_are_asked() {
    let server = Server::start().await;
    let admin = server.admin();
    let schema = json!({
        "type": "object",
        "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low must not be above high"}],
    });
    define(&admin, &schema).await;
    admin
        .post(WIDGETS, &widget("good", &json!({"low": 1, "high": 2})))
        .await
        .expect(201);
    let refused = admin
        .post(WIDGETS, &widget("bad", &json!({"low": 3, "high": 2})))
        .await;
    refused.refused(422, "Invalid", "low must not be above high");
}

#[tokio::test]
async fn objects_of_a_namespaced_definition_are_not_written_across_namespaces() {
    let server = Server::start().await;
    let admin = server.admin();
    define(&admin, &json!({"type": "object"})).await;
    let everywhere = "/apis/test.dev/v1/widgets";
    admin.get(everywhere).await.expect(200);
    // Not 405, as for built-in kinds.
    admin.delete(everywhere).await.no_page();
    admin.post(everywhere, &widget("w", &json!({}))).await.no_page();
}
