//! Watches: where they begin, what selectors make of changes, bookmarks, and how they end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{CONFIG_MAPS, Client, Server, config_map, labelled, push_out_of_window, shown, version};

fn watch_path(query: &str) -> String {
    format!("{CONFIG_MAPS}?watch=true{query}")
}

async fn touch(admin: &Client, name: &str, value: &str) -> Value {
    admin
        .patch(
            "merge",
            &format!("{CONFIG_MAPS}/{name}"),
            &json!({"data": {"k": value}}),
        )
        .await
        .expect(200)
}

async fn label(admin: &Client, name: &str, value: &Value) -> Value {
    let patch = json!({"metadata": {"labels": {"colour": value}}});
    admin
        .patch("merge", &format!("{CONFIG_MAPS}/{name}"), &patch)
        .await
        .expect(200)
}

#[tokio::test]
async fn a_watch_goes_on_where_a_list_ended() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("before")).await.expect(201);
    let list = admin.get(CONFIG_MAPS).await.expect(200);
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut watch = admin
        .watch(&watch_path(&format!("&resourceVersion={}", version(&list))))
        .await;
    touch(&admin, "a", "1").await;
    admin.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    let mut last = version(&list).parse::<u64>().unwrap();
    for expected in ["ADDED a", "MODIFIED a", "DELETED a"] {
        let event = watch.next().await.unwrap();
        assert_eq!(shown(&event), expected);
        let at: u64 = version(&event["object"]).parse().unwrap();
        assert!(at > last, "each event has a later version than the one before");
        last = at;
    }
    assert_eq!(
        last,
        server.revision().await,
        "a deletion has the version of the deletion"
    );
    assert!(watch.is_quiet().await);
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_what_there_is() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in ["a", "b"] {
        admin.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    for query in ["", "&resourceVersion=0"] {
        let mut watch = admin.watch(&watch_path(query)).await;
        assert_eq!(watch.steps(2).await, ["ADDED a", "ADDED b"], "{query}");
        touch(&admin, "b", query).await;
        assert_eq!(watch.step().await, "MODIFIED b");
    }
    let mut one = admin.watch(&format!("{CONFIG_MAPS}/b?watch=1")).await;
    assert_eq!(one.step().await, "ADDED b");
    touch(&admin, "a", "other").await;
    assert!(one.is_quiet().await, "a watch of one object sees that object");
    let mut old_form = admin.watch("/api/v1/watch/namespaces/default/configmaps/b").await;
    assert_eq!(old_form.step().await, "ADDED b");
    let mut everywhere = admin
        .watch("/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Da")
        .await;
    assert_eq!(everywhere.step().await, "ADDED a");
}

#[tokio::test]
async fn selectors_turn_changes_into_arrivals_and_departures() {
    let server = Server::start().await;
    let admin = server.admin();
    admin
        .post(CONFIG_MAPS, &labelled("red", "colour", "red"))
        .await
        .expect(201);
    admin
        .post(CONFIG_MAPS, &labelled("blue", "colour", "blue"))
        .await
        .expect(201);
    let from = server.revision().await;
    let mut live = admin.watch(&watch_path("&labelSelector=colour%3Dred")).await;
    assert_eq!(live.step().await, "ADDED red");
    label(&admin, "blue", &json!("red")).await;
    touch(&admin, "blue", "x").await;
    let left = label(&admin, "blue", &json!("green")).await;
    touch(&admin, "blue", "unseen").await;
    label(&admin, "blue", &json!("red")).await;
    admin.delete(&format!("{CONFIG_MAPS}/blue")).await.expect(200);
    admin
        .post(CONFIG_MAPS, &labelled("green", "colour", "green"))
        .await
        .expect(201);
    admin.delete(&format!("{CONFIG_MAPS}/green")).await.expect(200);
    label(&admin, "red", &Value::Null).await;
    let expected = [
        "ADDED blue",
        "MODIFIED blue",
        "DELETED blue",
        "ADDED blue",
        "DELETED blue",
        "DELETED red",
    ];
    let mut replayed = admin
        .watch(&watch_path(&format!(
            "&resourceVersion={from}&labelSelector=colour%3Dred"
        )))
        .await;
    for (name, watch) in [("live", &mut live), ("replayed", &mut replayed)] {
        for (i, step) in expected.iter().enumerate() {
            let event = watch.next().await.unwrap();
            assert_eq!(shown(&event), *step, "{name} {i}");
            if i == 2 {
                assert_eq!(
                    event["object"]["metadata"]["labels"]["colour"], "red",
                    "as it was when it last matched"
                );
                assert_eq!(
                    version(&event["object"]),
                    version(&left),
                    "at the version of the change"
                );
            }
        }
        assert!(watch.is_quiet().await, "{name}");
    }
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = Server::start().await;
    let admin = server.admin();
    for name in ["a", "b"] {
        admin.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = admin.watch(&watch_path(query)).await;
    assert_eq!(watch.steps(2).await, ["ADDED a", "ADDED b"]);
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert_eq!(
        bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert_eq!(version(&bookmark["object"]), server.revision().await.to_string());
    touch(&admin, "a", "1").await;
    assert_eq!(watch.step().await, "MODIFIED a");

    let none = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = admin.watch(&watch_path(none)).await;
    touch(&admin, "b", "1").await;
    assert_eq!(watch.step().await, "MODIFIED b", "nothing but what follows");
    let empty = format!("/api/v1/namespaces/kube-public/configmaps?watch=true{query}");
    assert_eq!(
        admin.watch(&empty).await.next().await.unwrap()["type"],
        "BOOKMARK",
        "also when there is nothing"
    );

    for wrong in [
        "&sendInitialEvents=true",
        "&resourceVersionMatch=NotOlderThan",
        "&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=5",
    ] {
        admin
            .get(&watch_path(wrong))
            .await
            .refused(422, "Invalid", "resourceVersionMatch");
    }
}

#[tokio::test]
async fn the_forms_of_events() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let table = admin.with("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let mut watch = table.watch(&watch_path(query)).await;
    let first = watch.next().await.unwrap();
    assert_eq!(
        (&first["type"], &first["object"]["kind"]),
        (&json!("ADDED"), &json!("Table"))
    );
    assert!(
        first["object"]["columnDefinitions"].is_array(),
        "the first event brings the columns"
    );
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    let meta = admin.with(
        "accept",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    );
    let mut watch = meta.watch(&watch_path(query)).await;
    for word in ["ADDED", "BOOKMARK"] {
        let event = watch.next().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["kind"]),
            (&json!(word), &json!("PartialObjectMetadata"))
        );
        assert!(event["object"].get("data").is_none());
    }
}

#[tokio::test]
async fn a_compacted_version_is_gone() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let from = server.revision().await;
    for i in 0..100 {
        touch(&admin, "a", &i.to_string()).await;
    }
    push_out_of_window(&admin).await;
    let mut watch = admin
        .watch(&watch_path(&format!("&resourceVersion={from}")))
        .await;
    for i in 0..100 {
        let event = watch.next().await.unwrap();
        assert_eq!(
            event["object"]["data"]["k"],
            i.to_string(),
            "history beyond the window comes from the store"
        );
    }
    touch(&admin, "a", "live").await;
    assert_eq!(
        watch.next().await.unwrap()["object"]["data"]["k"],
        "live",
        "and goes over into the present"
    );
    touch(&admin, "a", "again").await;
    assert_eq!(watch.next().await.unwrap()["object"]["data"]["k"], "again");

    server.compact(server.revision().await).await;
    let mut watch = admin
        .watch(&watch_path(&format!("&resourceVersion={from}")))
        .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    let status = &event["object"];
    assert_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(410), &json!("Expired"))
    );
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("too old resource version")
    );
    assert_eq!(watch.next().await, None, "the stream ends after an error");
}

#[tokio::test]
async fn history_from_the_store_knows_selectors() {
    let server = Server::start().await;
    let admin = server.admin();
    admin
        .post(CONFIG_MAPS, &labelled("a", "colour", "blue"))
        .await
        .expect(201);
    let from = server.revision().await;
    label(&admin, "a", &json!("red")).await;
    label(&admin, "a", &json!("green")).await;
    push_out_of_window(&admin).await;
    admin.delete(&format!("{CONFIG_MAPS}/a")).await.expect(200);
    admin
        .post(CONFIG_MAPS, &labelled("a", "colour", "red"))
        .await
        .expect(201);
    let mut watch = admin
        .watch(&watch_path(&format!(
            "&resourceVersion={from}&labelSelector=colour%3Dred"
        )))
        .await;
    assert_eq!(watch.steps(3).await, ["ADDED a", "DELETED a", "ADDED a"]);
}

#[tokio::test]
async fn a_slow_watcher_is_closed_and_resumes_without_a_gap() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let mut watch = admin
        .watch(&watch_path(&format!(
            "&resourceVersion={}",
            server.revision().await
        )))
        .await;
    touch(&admin, "a", "0").await;
    let mut last = watch.next().await.unwrap();
    for i in 1..=1_500 {
        touch(&admin, "a", &i.to_string()).await;
    }
    let mut seen = 0;
    while let Some(event) = watch.next().await {
        seen += 1;
        assert_eq!(
            event["object"]["data"]["k"],
            seen.to_string(),
            "what was queued is in order"
        );
        last = event;
    }
    assert!(seen < 1_500, "the queue is bounded");
    let mut again = admin
        .watch(&watch_path(&format!(
            "&resourceVersion={}",
            version(&last["object"])
        )))
        .await;
    for i in seen + 1..=1_500 {
        assert_eq!(again.next().await.unwrap()["object"]["data"]["k"], i.to_string());
    }
}

#[tokio::test]
async fn watches_end_in_time() {
    let server = Server::start().await;
    let admin = server.admin();
    let started = Instant::now();
    let mut watch = admin.watch(&watch_path("&timeoutSeconds=1")).await;
    // A busy watch ends as punctually as an idle one.
    let busy = {
        let admin = admin.clone();
        tokio::spawn(async move {
            admin.post(CONFIG_MAPS, &config_map("busy")).await.expect(201);
            let until = Instant::now() + Duration::from_millis(1_500);
            let mut i = 0;
            while Instant::now() < until {
                i += 1;
                touch(&admin, "busy", &i.to_string()).await;
            }
        })
    };
    while watch.next().await.is_some() {}
    let lasted = started.elapsed();
    busy.await.unwrap();
    assert!(
        lasted >= Duration::from_millis(950) && lasted < Duration::from_millis(2_500),
        "{lasted:?}"
    );

    let mut watch = admin
        .watch(&watch_path("&timeoutSeconds=18446744073709551615"))
        .await;
    assert_eq!(
        watch.step().await,
        "ADDED busy",
        "a time beyond all clocks is a long time, not a crash"
    );
    let mut watch = admin
        .watch(&watch_path("&timeoutSeconds=9223372036854775807"))
        .await;
    assert_eq!(watch.step().await, "ADDED busy");
    assert_eq!(admin.get(&watch_path("&timeoutSeconds=soon")).await.code, 400);

    let mut watch = admin.watch(&watch_path("")).await;
    assert_eq!(watch.step().await, "ADDED busy");
    server.kernel.shut_down();
    assert_eq!(
        watch.step().await,
        "END",
        "a server that ends lets its watchers go"
    );
}

#[tokio::test]
async fn a_watch_of_a_removed_kind_ends() {
    let server = Server::start().await;
    let admin = server.admin();
    let crd = crate::harness::definition("gadgets", "Gadget", &json!({"type": "object"}));
    admin.post(crate::harness::DEFINITIONS, &crd).await.expect(201);
    let path = "/apis/test.dev/v1/namespaces/default/gadgets";
    admin
        .post(
            path,
            &json!({"apiVersion": "test.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}}),
        )
        .await
        .expect(201);
    let mut watch = admin.watch(&format!("{path}?watch=true")).await;
    assert_eq!(watch.step().await, "ADDED g");
    let crd = format!("{}/gadgets.test.dev", crate::harness::DEFINITIONS);
    admin.delete(&crd).await.expect(200);
    // The controller that empties the kind is a client of the server; here the test does its work.
    admin.delete(path).await.expect(200);
    assert_eq!(watch.step().await, "DELETED g");
    admin
        .patch("merge", &crd, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    assert_eq!(watch.step().await, "END");
    admin.get(path).await.no_page();
}

#[tokio::test]
async fn many_watchers_see_the_same() {
    let server = Server::start().await;
    let admin = server.admin();
    let from = server.revision().await;
    let mut watchers = Vec::new();
    for _ in 0..50 {
        watchers.push(
            admin
                .watch(&watch_path(&format!("&resourceVersion={from}")))
                .await,
        );
    }
    let writers = (0..4).map(|w| {
        let admin = admin.clone();
        async move {
            for i in 0..25 {
                admin
                    .post(CONFIG_MAPS, &config_map(&format!("w{w}-{i}")))
                    .await
                    .expect(201);
            }
        }
    });
    futures::future::join_all(writers).await;
    let expected = watchers[0].steps(100).await;
    assert_eq!(
        expected.iter().collect::<std::collections::BTreeSet<_>>().len(),
        100
    );
    for watcher in &mut watchers[1..] {
        assert_eq!(watcher.steps(100).await, expected);
    }
}

/// Bookmarks come every twenty seconds, and these pass for real: the store's threads know no other clock.
#[tokio::test]
async fn a_settled_watch_is_told_how_far_it_is() {
    let server = Server::start().await;
    let admin = server.admin();
    let mut told = admin.watch(&watch_path("&allowWatchBookmarks=true")).await;
    let mut untold = admin.watch(&watch_path("")).await;
    // Changes of other kinds move the store on, and nothing of these watches shows it but bookmarks.
    let elsewhere = "/api/v1/namespaces/default/serviceaccounts";
    admin
        .post(elsewhere, &json!({"metadata": {"name": "s"}}))
        .await
        .expect(201);
    let moved_on = server.revision().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let bookmark = told.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert!(
        bookmark["object"]["metadata"]["annotations"].is_null(),
        "{bookmark}"
    );
    let revision: u64 = version(&bookmark["object"]).parse().unwrap();
    assert!(revision >= moved_on, "{revision} is before {moved_on}");
    // A watch can begin where a bookmark says.
    admin.post(CONFIG_MAPS, &config_map("late")).await.expect(201);
    let query = format!("&resourceVersion={revision}");
    assert_eq!(admin.watch(&watch_path(&query)).await.step().await, "ADDED late");
    assert_eq!(untold.step().await, "ADDED late", "who does not ask is not told");
}
