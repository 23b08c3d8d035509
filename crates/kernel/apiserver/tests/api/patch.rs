//! The four kinds of patch, ownership of fields, and the doors `status` and `scale`.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Server, config_map, deployment, is_refusal, version};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// A patch whose result is no object of the kind: 400 or 422, by what is wrong with it.
const UNFIT: u16 = 0;

fn applied(path: &str, manager: &str) -> String {
    format!("{path}?fieldManager={manager}")
}

#[tokio::test]
async fn each_kind_of_patch_does_what_its_standard_says() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d");
    let containers = |object: &Value| -> Vec<String> {
        object["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let second = json!({"name": "e", "image": "registry.test/e:1"});
    let template = json!({"spec": {"template": {"spec": {"containers": [second]}}}});
    let stored = admin.patch("strategic", &path, &template).await.expect(200);
    assert_eq!(
        containers(&stored),
        ["e", "c"],
        "a strategic patch merges containers by name"
    );
    let stored = admin.patch("merge", &path, &template).await.expect(200);
    assert_eq!(containers(&stored), ["e"], "a merge patch replaces lists");
    let operations = json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 4},
        {"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}},
        {"op": "copy", "from": "/metadata/labels/a~1b", "path": "/metadata/labels/d"},
        {"op": "remove", "path": "/metadata/labels/a~1b"},
    ]);
    let stored = admin.patch("json", &path, &operations).await.expect(200);
    assert_eq!(
        (&stored["spec"]["replicas"], &stored["metadata"]["labels"]),
        (&json!(4), &json!({"d": "c"}))
    );
}

#[tokio::test]
async fn patches_are_refused_for_the_right_reason() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let cases: [(&str, Value, u16, &str); 12] = [
        (
            "json",
            json!([{"op": "test", "path": "/data/k", "value": "other"}]),
            422,
            "the test fails",
        ),
        (
            "json",
            json!([{"op": "remove", "path": "/data/none"}]),
            422,
            "nothing to remove",
        ),
        (
            "json",
            json!([{"op": "replace", "path": "/none/k", "value": 1}]),
            422,
            "nowhere to write",
        ),
        (
            "json",
            json!([{"op": "walk", "path": "/data"}]),
            422,
            "no such operation",
        ),
        ("json", json!({"data": {}}), 400, "not a list of operations"),
        (
            "json",
            json!([{"op": "replace", "path": "/data/k", "value": 5}]),
            UNFIT,
            "the result cannot be decoded",
        ),
        (
            "json",
            json!([{"op": "replace", "path": "", "value": []}]),
            UNFIT,
            "the result is not an object",
        ),
        ("merge", json!([]), 400, "not an object"),
        (
            "merge",
            json!({"data": "text"}),
            UNFIT,
            "the result cannot be decoded",
        ),
        (
            "merge",
            json!({"metadata": {"name": "b"}}),
            400,
            "the name is in the URL",
        ),
        (
            "merge",
            json!({"metadata": {"resourceVersion": "1"}}),
            409,
            "a version in the patch is a condition",
        ),
        ("strategic", json!("text"), 400, "not an object"),
    ];
    for (kind, patch, code, why) in cases {
        let reply = admin.patch(kind, &path, &patch).await;
        let fits = reply.code == code || (code == UNFIT && matches!(reply.code, 400 | 422));
        assert!(fits, "{} {kind} {patch}: {why}: {}", reply.code, reply.text());
        assert_eq!(reply.json()["kind"], "Status", "{why}");
    }
    let unknown = admin
        .patch("strategic", &path, &json!({"data": {"$patch": "explode"}}))
        .await;
    assert_eq!(
        unknown.expect(500)["message"],
        "unknown patch type: explode in map: map[$patch:explode]",
        "upstream has no better code for it"
    );
    let reply = admin.send(Method::PATCH, &path, "application/json", "{}").await;
    reply.refused(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    admin
        .patch("merge", &format!("{CONFIG_MAPS}/none"), &json!({}))
        .await
        .refused(404, "NotFound", "none");
    let reply = admin
        .patch(
            "merge",
            &format!("{path}?force=true"),
            &json!({"data": {"k": "w"}}),
        )
        .await;
    reply.refused(422, "Invalid", "force");
    assert_eq!(
        admin.get(&path).await.expect(200)["data"],
        json!({"k": "v"}),
        "nothing was changed"
    );
}

#[tokio::test]
async fn apply_creates_then_changes_and_removes_what_it_no_longer_names() {
    let server = Server::start().await;
    let admin = server.admin();
    let path = applied(&format!("{CONFIG_MAPS}/a"), "one");
    let mut wanted = config_map("a");
    wanted["data"] = json!({"x": "1", "y": "1"});
    let made = admin.patch("apply", &path, &wanted).await.expect(201);
    let managed = &made["metadata"]["managedFields"];
    assert_eq!(
        (&managed[0]["manager"], &managed[0]["operation"]),
        (&json!("one"), &json!("Apply"))
    );
    let same = admin.patch("apply", &path, &wanted).await.expect(200);
    assert_eq!(
        version(&same),
        version(&made),
        "applying the same again writes nothing"
    );
    wanted["data"] = json!({"x": "2"});
    let stored = admin.patch("apply", &path, &wanted).await.expect(200);
    assert_eq!(
        stored["data"],
        json!({"x": "2"}),
        "what it owned alone and no longer names goes"
    );
}

#[tokio::test]
async fn two_appliers_conflict_unless_one_forces() {
    let server = Server::start().await;
    let admin = server.admin();
    let one = format!("{CONFIG_MAPS}/a");
    let mut wanted = config_map("a");
    wanted["data"] = json!({"shared": "1", "mine": "1"});
    admin
        .patch("apply", &applied(&one, "first"), &wanted)
        .await
        .expect(201);
    wanted["data"] = json!({"shared": "2"});
    let refused = admin.patch("apply", &applied(&one, "second"), &wanted).await;
    let status = refused.refused(409, "Conflict", "conflict with \"first\"");
    let cause = &status["details"]["causes"][0];
    assert_eq!(
        (&cause["reason"], &cause["field"]),
        (&json!("FieldManagerConflict"), &json!(".data.shared"))
    );
    let forced = admin
        .patch(
            "apply",
            &format!("{}&force=true", applied(&one, "second")),
            &wanted,
        )
        .await
        .expect(200);
    assert_eq!(forced["data"], json!({"shared": "2", "mine": "1"}));

    wanted["data"] = json!({"mine": "1"});
    let stored = admin
        .patch("apply", &applied(&one, "first"), &wanted)
        .await
        .expect(200);
    assert_eq!(
        stored["data"]["shared"], "2",
        "it belongs to the second now, so the first cannot remove it"
    );
    wanted["data"] = json!({"mine": "1", "shared": "2"});
    let shared = admin
        .patch("apply", &applied(&one, "first"), &wanted)
        .await
        .expect(200);
    assert_eq!(shared["data"]["shared"], "2", "the same value is no conflict");
    wanted["data"] = json!({});
    let stored = admin
        .patch("apply", &applied(&one, "second"), &wanted)
        .await
        .expect(200);
    assert_eq!(
        stored["data"]["shared"], "2",
        "a field with two owners stays when one lets go"
    );
}

#[tokio::test]
async fn an_update_takes_ownership_from_an_applier() {
    let server = Server::start().await;
    let admin = server.admin().with("user-agent", "tool/1.0");
    let one = format!("{CONFIG_MAPS}/a");
    admin
        .patch("apply", &applied(&one, "first"), &config_map("a"))
        .await
        .expect(201);
    let stored = admin
        .patch("merge", &one, &json!({"data": {"k": "changed"}}))
        .await
        .expect(200);
    let managers: Vec<&str> = stored["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["manager"].as_str().unwrap())
        .collect();
    assert!(managers.contains(&"tool"), "{managers:?}");
    let refused = admin
        .patch("apply", &applied(&one, "first"), &config_map("a"))
        .await;
    refused.refused(409, "Conflict", "conflict with \"tool\"");
    let cleared = admin
        .patch("merge", &one, &json!({"metadata": {"managedFields": [{}]}}))
        .await
        .expect(200);
    assert!(
        cleared["metadata"].get("managedFields").is_none(),
        "an empty entry resets ownership"
    );
}

#[tokio::test]
async fn apply_is_read_strictly() {
    let server = Server::start().await;
    let admin = server.admin();
    let one = format!("{CONFIG_MAPS}/a");
    admin
        .patch("apply", &one, &config_map("a"))
        .await
        .refused(422, "Invalid", "fieldManager");
    let path = applied(&one, "m");
    let cases: [(Value, u16, &str); 8] = [
        (
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}}),
            400,
            "no apiVersion",
        ),
        (
            json!({"apiVersion": "v1", "metadata": {"name": "a"}}),
            400,
            "no kind",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
            400,
            "another kind",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}),
            400,
            "another name",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}),
            400,
            "another namespace",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}),
            400,
            "ownership is the server's",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "x"}}),
            409,
            "a uid of what is not there",
        ),
        (json!(["x"]), 400, "not an object"),
    ];
    for (body, code, why) in cases {
        let reply = admin.patch("apply", &path, &body).await;
        assert_eq!(reply.code, code, "{body}: {why}: {}", reply.text());
    }
    let number =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": 7}});
    let reply = admin.patch("apply", &path, &number).await;
    assert!(
        is_refusal(&reply),
        "a number where text belongs: {}",
        reply.text()
    );
    let long = applied(&one, &"m".repeat(129));
    admin
        .patch("apply", &long, &config_map("a"))
        .await
        .refused(422, "Invalid", "fieldManager");
    let reply = admin
        .send(Method::PATCH, &path, "application/apply-patch+yaml", "a: [")
        .await;
    reply.refused(400, "BadRequest", "error decoding YAML");
    admin.get(&one).await.expect(404);
}

#[tokio::test]
async fn apply_merges_lists_by_their_keys() {
    let server = Server::start().await;
    let admin = server.admin();
    let path = format!("{DEPLOYMENTS}/d");
    admin
        .patch("apply", &applied(&path, "base"), &deployment("d"))
        .await
        .expect(201);
    let sidecar = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": [{"name": "s", "image": "registry.test/s:1"}]}}},
    });
    let stored = admin
        .patch("apply", &applied(&path, "side"), &sidecar)
        .await
        .expect(200);
    let names: Vec<_> = stored["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].clone())
        .collect();
    assert_eq!(names, ["c", "s"]);
    let mut twice = sidecar.clone();
    twice["spec"]["template"]["spec"]["containers"] = json!([{"name": "s"}, {"name": "s"}]);
    let reply = admin.patch("apply", &applied(&path, "side"), &twice).await;
    assert!(is_refusal(&reply), "the same key twice: {}", reply.text());
}

#[tokio::test]
async fn status_is_applied_through_its_own_door() {
    let server = Server::start().await;
    let admin = server.admin();
    let path = format!("{DEPLOYMENTS}/d");
    let made = admin.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 50},
        "status": {"observedGeneration": 1, "replicas": 2},
    });
    let door = applied(&format!("{path}/status"), "controller");
    let stored = admin.patch("apply", &door, &status).await.expect(200);
    assert_eq!(
        (&stored["status"]["replicas"], &stored["spec"]["replicas"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(stored["metadata"]["generation"], made["metadata"]["generation"]);
    let entry = stored["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["manager"] == "controller")
        .unwrap()
        .clone();
    assert_eq!(entry["subresource"], "status");
    assert!(
        entry["fieldsV1"].get("f:spec").is_none(),
        "what the door does not change is not owned: {entry}"
    );
    let door = applied(&format!("{DEPLOYMENTS}/none/status"), "controller");
    let mut none = status.clone();
    none["metadata"]["name"] = "none".into();
    admin
        .patch("apply", &door, &none)
        .await
        .refused(404, "NotFound", "none");
}

#[tokio::test]
async fn scale_reads_and_writes_replicas_alone() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let mut scale = admin.get(&path).await.expect(200);
    assert_eq!(
        (&scale["kind"], &scale["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]["selector"]),
        (&json!(2), &json!("app=d"))
    );
    scale["spec"]["replicas"] = 6.into();
    let stored = admin.put(&path, &scale).await.expect(200);
    assert_eq!(stored["spec"]["replicas"], 6);
    let object = admin.get(&format!("{DEPLOYMENTS}/d")).await.expect(200);
    assert_eq!(
        (&object["spec"]["replicas"], &object["metadata"]["generation"]),
        (&json!(6), &json!(2))
    );
    admin
        .put(&path, &scale)
        .await
        .refused(409, "Conflict", "modified");
    let stored = admin
        .patch("merge", &path, &json!({"spec": {"replicas": 1}}))
        .await
        .expect(200);
    assert_eq!(stored["spec"]["replicas"], 1);
    let operations = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    assert_eq!(
        admin.patch("json", &path, &operations).await.expect(200)["spec"]["replicas"],
        3
    );
    for (body, code, why) in [
        (json!({"spec": {"replicas": -1}}), 422, "fewer than none"),
        (json!({"spec": {"replicas": "many"}}), 400, "not a number"),
        (json!({"spec": {"replicas": 1.5}}), 400, "not whole"),
        (
            json!({"spec": {"replicas": 3_000_000_000_u64}}),
            400,
            "more than 32 bits",
        ),
        (json!({"spec": "none"}), 400, "not an object"),
    ] {
        let reply = admin.patch("merge", &path, &body).await;
        assert_eq!(reply.code, code, "{body}: {why}: {}", reply.text());
    }
    admin.get(&format!("{CONFIG_MAPS}/x/scale")).await.expect(404);
}

#[tokio::test]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let before = server.revision().await;
    let path = format!("{CONFIG_MAPS}/a");
    admin.patch("merge", &path, &json!({})).await.expect(200);
    admin
        .patch("merge", &path, &json!({"data": {"k": "v"}}))
        .await
        .expect(200);
    admin
        .patch("strategic", &path, &json!({"data": {"k": "v"}}))
        .await
        .expect(200);
    admin.patch("json", &path, &json!([])).await.expect(200);
    assert_eq!(server.revision().await, before);
}

#[tokio::test]
async fn who_applies_a_scale_owns_the_replicas_behind_it() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = |replicas: i64| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
            "spec": {"replicas": replicas},
        })
    };
    admin.patch("apply", &path, &scale(5)).await.expect(422);
    let forced = format!("{}&force=true", applied(&path, "scaler"));
    let seen = admin.patch("apply", &forced, &scale(5)).await.expect(200);
    assert_eq!(seen["spec"]["replicas"], 5);
    let stored = admin.get(&format!("{DEPLOYMENTS}/d")).await.expect(200);
    let entry = stored["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["manager"] == "scaler")
        .expect("an entry of its own");
    assert_eq!(
        (&entry["operation"], &entry["subresource"]),
        (&json!("Apply"), &json!("scale"))
    );
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    admin
        .patch("apply", &applied(&path, "rival"), &scale(6))
        .await
        .expect(409);
    admin
        .patch("apply", &applied(&path, "scaler"), &scale(7))
        .await
        .expect(200);
}
