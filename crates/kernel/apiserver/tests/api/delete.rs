//! delete and deletecollection: preconditions, finalizers, propagation, selectors.

use serde_json::json;

use crate::harness::{CONFIG_MAPS, Server, config_map, labelled, names, version};

fn at(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

#[tokio::test]
async fn delete_asks_the_preconditions() {
    let server = Server::start().await;
    let admin = server.admin();
    let made = admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let (uid, seen) = (made["metadata"]["uid"].clone(), version(&made));
    for (preconditions, words) in [
        (json!({"uid": "another"}), "another"),
        (json!({"resourceVersion": "1"}), "ResourceVersion in"),
        (json!({"uid": uid, "resourceVersion": "1"}), "ResourceVersion in"),
    ] {
        admin
            .delete_with(&at("a"), &json!({"preconditions": preconditions}))
            .await
            .refused(409, "Conflict", words);
    }
    let options = json!({"preconditions": {"uid": uid, "resourceVersion": seen}});
    let status = admin.delete_with(&at("a"), &options).await.expect(200);
    assert_eq!(
        (&status["status"], &status["details"]["uid"]),
        (&json!("Success"), &uid)
    );
    admin
        .delete(&at("a"))
        .await
        .refused(404, "NotFound", "configmaps \"a\" not found");
}

#[tokio::test]
async fn delete_options_are_read_strictly() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    for (options, code, why) in [
        (json!({"propagationPolicy": "Sideways"}), 422, "no such policy"),
        (
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
            422,
            "said twice",
        ),
        (json!({"kind": "ConfigMap"}), 400, "another kind"),
        (json!(["All"]), 400, "not an object"),
        (json!("All"), 400, "not an object"),
        (
            json!({"preconditions": {"uid": 5}}),
            400,
            "a number where text belongs",
        ),
        (
            json!({"gracePeriodSeconds": "soon"}),
            400,
            "text where a number belongs",
        ),
        (json!({"dryRun": ["Some"]}), 422, "no such dry run"),
        (json!({"dryRun": "All"}), 400, "not a list"),
    ] {
        let reply = admin.delete_with(&at("a"), &options).await;
        assert_eq!(reply.code, code, "{options}: {why}: {}", reply.text());
    }
    admin.get(&at("a")).await.expect(200);
    let query = format!("{}?propagationPolicy=Nonsense", at("a"));
    assert_eq!(
        admin.delete(&query).await.code,
        422,
        "the query is read like the body"
    );
    let query = format!("{}?gracePeriodSeconds=soon", at("a"));
    assert_eq!(admin.delete(&query).await.code, 400);
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_goes() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut held = config_map("a");
    held["metadata"]["finalizers"] = json!(["test.dev/one", "test.dev/two"]);
    admin.post(CONFIG_MAPS, &held).await.expect(201);
    let marked = admin.delete(&at("a")).await.expect(200);
    assert_eq!(
        marked["kind"], "ConfigMap",
        "the object is answered as long as it is there"
    );
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let again = admin.delete(&at("a")).await.expect(200);
    assert_eq!(
        version(&again),
        version(&marked),
        "a second delete changes nothing"
    );
    admin
        .post(CONFIG_MAPS, &held)
        .await
        .refused(409, "AlreadyExists", "");

    let more = json!({"metadata": {"finalizers": ["test.dev/one", "test.dev/two", "test.dev/three"]}});
    let refused = admin.patch("merge", &at("a"), &more).await;
    assert_eq!(
        refused.code,
        422,
        "no finalizer is added to what is being deleted: {}",
        refused.text()
    );
    let one = json!({"metadata": {"finalizers": ["test.dev/two"]}});
    admin.patch("merge", &at("a"), &one).await.expect(200);
    admin
        .patch("merge", &at("a"), &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    admin.get(&at("a")).await.expect(404);
}

#[tokio::test]
async fn propagation_becomes_a_finalizer() {
    let server = Server::start().await;
    let admin = server.admin();
    for (policy, expected) in [
        ("Orphan", Some("orphan")),
        ("Foreground", Some("foregroundDeletion")),
        ("Background", None),
    ] {
        admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
        let answer = admin
            .delete_with(&at("a"), &json!({"propagationPolicy": policy}))
            .await
            .expect(200);
        match expected {
            Some(finalizer) => {
                assert_eq!(answer["metadata"]["finalizers"], json!([finalizer]), "{policy}");
                admin
                    .patch("merge", &at("a"), &json!({"metadata": {"finalizers": null}}))
                    .await
                    .expect(200);
            }
            None => assert_eq!(answer["status"], "Success", "{policy}"),
        }
        admin.get(&at("a")).await.expect(404);
    }
}

#[tokio::test]
async fn a_collection_is_deleted_as_it_is_selected() {
    let server = Server::start().await;
    let admin = server.admin();
    server.namespace("other").await;
    let elsewhere = "/api/v1/namespaces/other/configmaps";
    for name in ["a", "b", "c"] {
        let label = if name == "c" { "keep" } else { "drop" };
        admin
            .post(CONFIG_MAPS, &labelled(name, "do", label))
            .await
            .expect(201);
        admin
            .post(elsewhere, &labelled(name, "do", label))
            .await
            .expect(201);
    }
    let dry = format!("{CONFIG_MAPS}?labelSelector=do%3Ddrop&dryRun=All");
    assert_eq!(names(&admin.delete(&dry).await.expect(200)), ["a", "b"]);
    assert_eq!(
        names(&admin.get(CONFIG_MAPS).await.expect(200)),
        ["a", "b", "c"],
        "a dry run deletes nothing"
    );
    let gone = admin
        .delete(&format!("{CONFIG_MAPS}?labelSelector=do%3Ddrop"))
        .await
        .expect(200);
    assert_eq!(names(&gone), ["a", "b"]);
    assert_eq!(names(&admin.get(CONFIG_MAPS).await.expect(200)), ["c"]);
    admin
        .delete(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Dc"))
        .await
        .expect(200);
    assert_eq!(names(&admin.get(CONFIG_MAPS).await.expect(200)).len(), 0);
    assert_eq!(
        names(&admin.get(elsewhere).await.expect(200)).len(),
        3,
        "other namespaces are left alone"
    );
}
