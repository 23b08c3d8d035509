//! create, get and update: codes, reasons and what is left behind; dry runs, strictness, many writers.

use http::Method;
use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Server, config_map, deployment, names, version};

fn at(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

#[tokio::test]
async fn create_fills_in_what_the_server_knows() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let meta = &made["metadata"];
    assert_eq!(meta["namespace"], "default");
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert!(meta["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(version(&made), server.revision().await.to_string());
    assert_eq!(
        admin.get(&at("a")).await.expect(200),
        made,
        "a read gives what the write gave"
    );
    admin.post(CONFIG_MAPS, &config_map("a")).await.refused(
        409,
        "AlreadyExists",
        "configmaps \"a\" already exists",
    );
}

#[tokio::test]
async fn create_is_refused_for_the_right_reason() {
    let server = Server::start().await;
    let admin = server.admin();
    let cases: [(&str, Value, u16, &str, &str, &str); 10] = [
        (
            CONFIG_MAPS,
            json!({"metadata": {}}),
            422,
            "Invalid",
            "name or generateName is required",
            "no name",
        ),
        (
            CONFIG_MAPS,
            config_map("Not_Valid"),
            422,
            "Invalid",
            "RFC 1123",
            "capital letters",
        ),
        (
            CONFIG_MAPS,
            json!({"metadata": {"name": "x", "resourceVersion": "1"}}),
            500,
            // As upstream, which has no better code for it.
            "",
            "resourceVersion should not be set on objects to be created",
            "a version of what does not exist",
        ),
        (
            CONFIG_MAPS,
            json!({"metadata": {"name": "x", "namespace": "other"}}),
            400,
            "BadRequest",
            "namespace",
            "another namespace than the URL's",
        ),
        (
            CONFIG_MAPS,
            json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "x"}}),
            400,
            "BadRequest",
            "Secret",
            "another kind",
        ),
        (
            CONFIG_MAPS,
            json!({"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "x"}}),
            400,
            "BadRequest",
            "v2",
            "another version",
        ),
        (
            CONFIG_MAPS,
            json!({"metadata": {"name": "x"}, "data": {"k": 1}}),
            400,
            "BadRequest",
            "cannot be handled as a ConfigMap",
            "a number where text belongs",
        ),
        (
            CONFIG_MAPS,
            json!({"metadata": "x"}),
            400,
            "BadRequest",
            "cannot be handled as a ConfigMap",
            "metadata is not an object",
        ),
        (
            "/api/v1/namespaces/nowhere/configmaps",
            config_map("x"),
            404,
            "NotFound",
            "namespaces \"nowhere\" not found",
            "no such namespace",
        ),
        (
            "/api/v1/configmaps",
            config_map("x"),
            405,
            "MethodNotAllowed",
            "",
            "a namespaced kind outside of a namespace",
        ),
    ];
    for (path, body, code, reason, words, why) in cases {
        println!("{why}");
        admin.post(path, &body).await.refused(code, reason, words);
    }
    let list = admin.get(CONFIG_MAPS).await.expect(200);
    assert!(!names(&list).contains(&"x".to_owned()), "nothing was left behind");
}

#[tokio::test]
async fn generated_names_differ_and_keep_their_beginning() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let made = admin
            .post(CONFIG_MAPS, &json!({"metadata": {"generateName": "job-"}}))
            .await
            .expect(201);
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("job-") && name.len() == 9, "{name}");
        assert!(seen.insert(name));
    }
    let long = "l".repeat(250);
    let made = admin
        .post(CONFIG_MAPS, &json!({"metadata": {"generateName": long}}))
        .await
        .expect(201);
    assert!(
        made["metadata"]["name"].as_str().unwrap().len() <= 253,
        "a long beginning is cut to leave room"
    );
}

#[tokio::test]
async fn paths_that_lead_nowhere() {
    let server = Server::start().await;
    let admin = server.admin();
    for (method, path, code, why) in [
        (
            Method::GET,
            "/api/v1/namespaces/default/configmaps/none",
            404,
            "no such object",
        ),
        (Method::GET, "/api/v1/nothings", 404, "no such resource"),
        (Method::GET, "/apis/apps/v9/deployments", 404, "no such version"),
        (
            Method::GET,
            "/api/v1/configmaps/x",
            404,
            "a namespaced object needs its namespace",
        ),
        (
            Method::GET,
            "/api/v1/namespaces/default/nodes/x",
            404,
            "a cluster-scoped object has none",
        ),
        (
            Method::GET,
            "/api/v1/namespaces/default/configmaps/a/status",
            404,
            "no such subresource",
        ),
        (
            Method::GET,
            "/clusters/elsewhere/api/v1/pods",
            403,
            "no such workspace, or none for this user: not even an administrator is told which",
        ),
        (Method::PUT, CONFIG_MAPS, 405, "a collection cannot be replaced"),
        (Method::PATCH, CONFIG_MAPS, 405, "nor patched"),
        (
            Method::POST,
            "/api/v1/namespaces/default/configmaps/a",
            405,
            "POST goes to the collection",
        ),
        (
            Method::DELETE,
            "/api/v1/configmaps",
            405,
            "deletion goes namespace by namespace",
        ),
        (Method::POST, "/version", 405, "there is nothing to create"),
        (Method::DELETE, "/", 405, "nor to delete"),
    ] {
        let reply = admin.send(method, path, "application/json", "{}").await;
        assert_eq!(reply.code, code, "{} ({why}): {}", reply.request, reply.text());
        assert_eq!(reply.json()["kind"], "Status", "{why}");
    }
    // Nobody claims these, so that nobody can say it in the words of the API.
    for path in [
        "/apis/none.dev/v1/things",
        "/apis/none.dev",
        "/nothing",
        "/openapi",
    ] {
        admin.get(path).await.no_page();
    }
}

#[tokio::test]
async fn update_is_compare_and_set() {
    let server = Server::start().await;
    let admin = server.admin();
    let first = admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut second = first.clone();
    second["data"]["k"] = "w".into();
    let stored = admin.put(&at("a"), &second).await.expect(200);
    assert_ne!(version(&stored), version(&first));
    assert_eq!(stored["metadata"]["uid"], first["metadata"]["uid"]);
    admin
        .put(&at("a"), &second)
        .await
        .refused(409, "Conflict", "the object has been modified");

    let unconditional = config_map("a");
    let stored = admin.put(&at("a"), &unconditional).await.expect(200);
    assert_eq!(
        stored["data"]["k"], "v",
        "a ConfigMap may be replaced without a version"
    );
    let again = admin.put(&at("a"), &unconditional).await.expect(200);
    assert_eq!(
        version(&again),
        version(&stored),
        "nothing changed, so nothing was written"
    );

    let mut other = unconditional.clone();
    other["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    admin
        .put(&at("a"), &other)
        .await
        .refused(409, "Conflict", "UID in precondition");
    admin.put(&at("a"), &config_map("b")).await.refused(
        400,
        "BadRequest",
        "does not match the name on the URL",
    );
    admin.put(&at("none"), &config_map("none")).await.refused(
        404,
        "NotFound",
        "configmaps \"none\" not found",
    );
}

#[tokio::test]
async fn some_kinds_insist_on_a_version() {
    let server = Server::start().await;
    let admin = server.admin();
    let crd = crate::harness::definition("widgets", "Widget", &json!({"type": "object"}));
    let made = admin.post(crate::harness::DEFINITIONS, &crd).await.expect(201);
    let path = format!("{}/widgets.test.dev", crate::harness::DEFINITIONS);
    admin
        .put(&path, &crd)
        .await
        .refused(422, "Invalid", "metadata.resourceVersion");
    admin.put(&path, &made).await.expect(200);
    let widgets = "/apis/test.dev/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "test.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
    admin.post(widgets, &widget).await.expect(201);
    admin.put(&format!("{widgets}/w"), &widget).await.refused(
        422,
        "Invalid",
        "must be specified for an update",
    );
}

#[tokio::test]
async fn a_kind_that_put_may_create_is_created_only_for_who_may() {
    let server = Server::start().await;
    let admin = server.admin();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    admin.put(&format!("{leases}/l"), &lease).await.expect(201);
    admin.put(&format!("{leases}/l"), &lease).await.refused(
        422,
        "Invalid",
        "must be specified for an update",
    );
}

#[tokio::test]
async fn what_the_server_owns_cannot_be_written() {
    let server = Server::start().await;
    let admin = server.admin();
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut wanted = deployment("d");
    wanted["status"] = json!({"replicas": 7});
    wanted["metadata"]["generation"] = 40.into();
    wanted["metadata"]["uid"] = "mine".into();
    wanted["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    wanted["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    let made = admin.post(path, &wanted).await.expect(201);
    let meta = &made["metadata"];
    assert_eq!(meta["generation"], 1);
    assert_ne!(meta["uid"], "mine");
    assert_ne!(meta["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert!(meta.get("deletionTimestamp").is_none());
    assert!(
        made["status"].get("replicas").is_none(),
        "status is written through its own door"
    );

    let one = format!("{path}/d");
    let mut through_status = made.clone();
    through_status["status"]["replicas"] = 3.into();
    through_status["spec"]["replicas"] = 9.into();
    let stored = admin
        .put(&format!("{one}/status"), &through_status)
        .await
        .expect(200);
    assert_eq!(stored["status"]["replicas"], 3);
    assert_eq!(stored["spec"]["replicas"], 2, "the status door leaves the spec");
    assert_eq!(stored["metadata"]["generation"], 1);

    let mut through_spec = stored.clone();
    through_spec["status"]["replicas"] = 8.into();
    through_spec["spec"]["replicas"] = 5.into();
    let stored = admin.put(&one, &through_spec).await.expect(200);
    assert_eq!(
        (&stored["status"]["replicas"], &stored["spec"]["replicas"]),
        (&json!(3), &json!(5))
    );
    assert_eq!(stored["metadata"]["generation"], 2);
}

#[tokio::test]
async fn dry_runs_answer_and_leave_nothing() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("there")).await.expect(201);
    let before = server.revision().await;
    let dry = |path: &str| format!("{path}?dryRun=All");
    let made = admin.post(&dry(CONFIG_MAPS), &config_map("a")).await.expect(201);
    assert!(made["metadata"]["uid"].is_string());
    admin
        .post(&dry(CONFIG_MAPS), &config_map("there"))
        .await
        .refused(409, "AlreadyExists", "there");
    let mut changed = config_map("there");
    changed["data"]["k"] = "x".into();
    assert_eq!(
        admin.put(&dry(&at("there")), &changed).await.expect(200)["data"]["k"],
        "x"
    );
    let patch = json!({"data": {"k": "y"}});
    assert_eq!(
        admin.patch("merge", &dry(&at("there")), &patch).await.expect(200)["data"]["k"],
        "y"
    );
    let apply = format!("{}&fieldManager=m", dry(&at("fresh")));
    let answer = admin.patch("apply", &apply, &config_map("fresh")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    admin.delete(&dry(&at("there"))).await.expect(200);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    admin
        .post("/api/v1/namespaces/default/services?dryRun=All", &service)
        .await
        .expect(201);
    admin
        .post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("a"))
        .await
        .refused(422, "Invalid", "dryRun");
    assert_eq!(server.revision().await, before, "not one write reached the store");
    assert_eq!(admin.get(&at("there")).await.expect(200)["data"]["k"], "v");
}

#[tokio::test]
async fn unknown_and_double_fields_are_told_as_wished() {
    let server = Server::start().await;
    let admin = server.admin();
    let body = r#"{"metadata":{"name":"NAME"},"data":{"k":"1","k":"2"},"colour":"red","metadata2":{}}"#;
    let with = |mode: &str, name: &str| {
        (
            format!("{CONFIG_MAPS}?fieldValidation={mode}"),
            body.replace("NAME", name),
        )
    };

    let (path, text) = with("Strict", "s");
    let refused = admin.send(Method::POST, &path, "application/json", text).await;
    let status = refused.refused(400, "BadRequest", "strict decoding error");
    for part in [
        "duplicate field \"data.k\"",
        "unknown field \"colour\"",
        "unknown field \"metadata2\"",
    ] {
        assert!(status["message"].as_str().unwrap().contains(part), "{status}");
    }
    let (path, text) = with("Warn", "w");
    let warned = admin.send(Method::POST, &path, "application/json", text).await;
    assert_eq!(warned.expect(201)["data"]["k"], "2", "the last one counts");
    assert_eq!(warned.warnings().len(), 3, "{:?}", warned.warnings());
    assert!(warned.warnings().iter().all(|w| w.starts_with("299 - \"")));
    let (path, text) = with("Ignore", "i");
    let ignored = admin.send(Method::POST, &path, "application/json", text).await;
    assert!(ignored.expect(201).get("colour").is_none());
    assert!(ignored.warnings().is_empty());
    let (path, text) = with("Perhaps", "p");
    admin
        .send(Method::POST, &path, "application/json", text)
        .await
        .refused(422, "Invalid", "fieldValidation");

    let default = admin
        .send(
            Method::POST,
            CONFIG_MAPS,
            "application/json",
            body.replace("NAME", "d"),
        )
        .await;
    assert_eq!(
        (default.code, default.warnings().len()),
        (201, 3),
        "without a word it warns"
    );
    let patch = json!({"colour": "blue"});
    let strict = format!("{}?fieldValidation=Strict", at("d"));
    let refused = admin.patch("merge", &strict, &patch).await;
    assert!(matches!(refused.code, 400 | 422), "{}", refused.text());
    assert!(
        refused.json()["message"]
            .as_str()
            .unwrap()
            .contains("unknown field \"colour\"")
    );
    let warned = admin.patch("merge", &at("d"), &patch).await;
    assert_eq!(
        (warned.code, warned.warnings().len()),
        (200, 1),
        "{:?}",
        warned.warnings()
    );
    let yaml = "metadata: {name: twice}\ndata:\n  k: a\n  k: b\n";
    let path = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    admin
        .send(Method::POST, &path, "application/yaml", yaml)
        .await
        .refused(400, "BadRequest", "k");
}

#[tokio::test]
async fn yaml_is_taken_like_json() {
    let server = Server::start().await;
    let admin = server.admin();
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: in-yaml\ndata:\n  k: 'on'\n  text: |\n    two\n    lines\n";
    let made = admin
        .send(Method::POST, CONFIG_MAPS, "application/yaml", yaml)
        .await
        .expect(201);
    assert_eq!(made["data"], json!({"k": "on", "text": "two\nlines\n"}));
    let other = admin.send(Method::POST, CONFIG_MAPS, "text/plain", yaml).await;
    other.refused(415, "UnsupportedMediaType", "application/json");
    let charset = "application/json; charset=utf-8";
    admin
        .send(Method::POST, CONFIG_MAPS, charset, config_map("c").to_string())
        .await
        .expect(201);
}

#[tokio::test]
async fn head_answers_without_a_body() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let reply = admin.send(Method::HEAD, &at("a"), "", "").await;
    assert_eq!((reply.code, reply.body.len()), (200, 0));
    let reply = admin.send(Method::HEAD, &at("none"), "", "").await;
    assert_eq!((reply.code, reply.body.len()), (404, 0));
}

#[tokio::test]
async fn many_writers_of_one_object_lose_no_update() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let writers = (0..16).map(|i| {
        let admin = admin.clone();
        async move {
            for j in 0..10 {
                let patch = json!({"data": {format!("w{i}-{j}"): "x"}});
                let reply = admin.patch("merge", &at("a"), &patch).await;
                assert_eq!(reply.code, 200, "{}", reply.text());
            }
        }
    });
    futures::future::join_all(writers).await;
    let stored = admin.get(&at("a")).await.expect(200);
    assert_eq!(
        stored["data"].as_object().unwrap().len(),
        161,
        "a patch without a version is tried again"
    );
}
