//! Webhooks: asked for through Gitea's API, fired by plain `git` and by the API, delivered over HTTP to a receiver that
//! checks them, again after failures and restarts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/api.rs"]
mod api;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/place.rs"]
mod place;
#[path = "support/receiver.rs"]
mod receiver;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/rest.rs"]
mod rest;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairway_controller::{ClientFactory, Manager, Metrics, Shutdown, ShutdownTrigger};
use fairway_gitops_githost::{Host, start_deliveries};
use place::Place;
use receiver::{Received, Receiver};
use rest::{call, ok};
use ring::hmac;
use serde_json::{Value, json};

const SECRET: &str = "s3cret";

async fn place() -> Place {
    let place = Place::start().await;
    place.api.user("writer", &["get app", "update app"]);
    place.api.user("reader", &["get app"]);
    place.api.repository("app", json!({"private": true}));
    place
}

/// Delivers until the trigger is pulled.
fn deliver(place: &Place, host: &Arc<Host>) -> (ShutdownTrigger, tokio::task::JoinHandle<()>) {
    let (trigger, shutdown) = Shutdown::new();
    let api = place.api.clone();
    let clients = ClientFactory::plain(move |_| api.client("root"));
    let mut manager = Manager::new(clients, Arc::new(Metrics::default()), shutdown);
    start_deliveries(&mut manager, host);
    (trigger, tokio::spawn(manager.run()))
}

fn hook(url: &str, events: &[&str]) -> Value {
    json!({"type": "gitea", "active": true, "events": events, "authorization_header": "Bearer me",
           "config": {"url": url, "content_type": "json", "secret": SECRET}})
}

fn assert_signed(received: &Received) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let expected: String = hmac::sign(&key, &received.body)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(received.header("x-gitea-signature"), expected);
    assert_eq!(
        received.header("x-hub-signature-256"),
        format!("sha256={expected}")
    );
    assert_eq!(received.header("authorization"), "Bearer me");
    assert_eq!(received.header("x-gitea-delivery").len(), 36);
}

const FIRST: &str = "git init -q -b main . && echo one > one && git add . && git commit -qm one";

#[tokio::test]
async fn pushes_pulls_and_comments_are_told() {
    let place = place().await;
    let receiver = Receiver::start().await;
    let (_trigger, _running) = deliver(&place, &place.host);
    let all = ["push", "create", "delete", "pull_request"];
    let made = ok(
        &place,
        "POST",
        "repos/root/app/hooks",
        hook(&receiver.url(), &all),
    )
    .await;
    assert_eq!(
        (&made["id"], &made["config"]["url"]),
        (&json!(1), &json!(receiver.url()))
    );
    assert!(!made.to_string().contains(SECRET), "{made}");

    let url = place.url("writer", "app");
    place
        .run("work", &format!("{FIRST} && git push -q {url} main"))
        .await;
    let seen = receiver.wait(2).await;
    let of = |event: &str| {
        seen.iter()
            .find(|received| received.event() == event)
            .unwrap()
            .clone()
    };
    let (create, push) = (of("create"), of("push"));
    for received in &seen {
        assert_signed(received);
    }
    let head = place.run("work", "git rev-parse HEAD").await;
    let told = create.json();
    assert_eq!(
        (&told["ref"], &told["ref_type"], &told["sha"]),
        (&json!("main"), &json!("branch"), &json!(head))
    );
    let told = push.json();
    assert_eq!(
        (&told["ref"], &told["after"]),
        (&json!("refs/heads/main"), &json!(head))
    );
    assert_eq!(told["before"], "0".repeat(40));
    assert_eq!(
        (&told["total_commits"], &told["commits"][0]["added"]),
        (&json!(1), &json!(["one"]))
    );
    assert_eq!(
        (&told["head_commit"]["id"], &told["head_commit"]["message"]),
        (&json!(head), &json!("one\n"))
    );
    assert_eq!(
        (&told["repository"]["full_name"], &told["pusher"]["login"]),
        (&json!("root/app"), &json!("writer"))
    );
    assert_eq!(told["repository"]["clone_url"], place.url("", "app"));

    // A branch with a change, a pull request for it, a comment, another commit, the merge, the end of the branch.
    place.run("work", &format!("git checkout -qb feature && echo two > one && git mv one 'ö two' && echo x > x && git add . && git commit -qm two && git push -q {url} feature")).await;
    let pull = ok(
        &place,
        "POST",
        "repos/root/app/pulls",
        json!({"title": "T", "base": "main", "head": "feature"}),
    )
    .await;
    ok(
        &place,
        "POST",
        "repos/root/app/issues/1/comments",
        json!({"body": "hello"}),
    )
    .await;
    place
        .run(
            "work",
            &format!("git commit -q --allow-empty -m three && git push -q {url} feature"),
        )
        .await;
    ok(&place, "PATCH", "repos/root/app/pulls/1", json!({"title": "U"})).await;
    ok(
        &place,
        "POST",
        "repos/root/app/pulls/1/merge",
        json!({"Do": "merge", "delete_branch_after_merge": true}),
    )
    .await;
    assert_eq!(pull["number"], 1);
    // create+push, opened, commented, push+synchronized, edited, push of main, closed, delete
    let seen = receiver.wait(2 + 2 + 1 + 1 + 2 + 1 + 1 + 1 + 1).await;
    let told: Vec<(String, Value)> = seen
        .iter()
        .map(|received| (received.event().to_owned(), received.json()))
        .collect();
    let find = |event: &str, action: &str| {
        let found = told
            .iter()
            .find(|(name, body)| name == event && (action.is_empty() || body["action"] == action));
        found
            .unwrap_or_else(|| panic!("{event} {action}: {told:#?}"))
            .1
            .clone()
    };
    let branch = told
        .iter()
        .find(|(_, body)| body["ref"] == "refs/heads/feature" && body["total_commits"] == 1)
        .unwrap();
    assert_eq!(branch.1["commits"][0]["added"], json!(["x", "ö two"]));
    assert_eq!(branch.1["commits"][0]["removed"], json!(["one"]));
    let opened = find("pull_request", "opened");
    assert_eq!(
        (&opened["number"], &opened["pull_request"]["head"]["ref"]),
        (&json!(1), &json!("feature"))
    );
    assert_eq!(
        find("pull_request", "synchronized")["pull_request"]["state"],
        "open"
    );
    assert_eq!(
        find("pull_request", "edited")["changes"],
        json!({"title": {"from": "T"}})
    );
    let closed = find("pull_request", "closed");
    assert_eq!(
        (
            &closed["pull_request"]["merged"],
            &closed["pull_request"]["title"]
        ),
        (&json!(true), &json!("U"))
    );
    let comment = find("issue_comment", "created");
    assert_eq!(
        (
            &comment["comment"]["body"],
            &comment["is_pull"],
            &comment["issue"]["number"]
        ),
        (&json!("hello"), &json!(true), &json!(1))
    );
    let deleted = find("delete", "");
    assert_eq!(
        (&deleted["ref"], &deleted["ref_type"]),
        (&json!("feature"), &json!("branch"))
    );
    let sync = seen
        .iter()
        .find(|received| received.header("x-gitea-event-type") == "pull_request_sync");
    assert_eq!(sync.unwrap().header("x-github-event"), "pull_request");
    // Nothing waits any more.
    let outbox = place.path("repositories/root/app.git/fairway/outbox");
    let begun = Instant::now();
    while std::fs::read_dir(&outbox).unwrap().count() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn hooks_are_kept_changed_tried_and_removed() {
    let place = place().await;
    let receiver = Receiver::start().await;
    let (_trigger, _running) = deliver(&place, &place.host);
    let at = "repos/root/app/hooks";
    for (user, status) in [("reader", 403), ("", 401)] {
        assert_eq!(call(&place, user, "GET", at, Value::Null).await.status, status);
        assert_eq!(
            call(&place, user, "POST", at, hook(&receiver.url(), &[]))
                .await
                .status,
            status
        );
    }
    let wrong = call(
        &place,
        "writer",
        "POST",
        at,
        json!({"type": "slack", "config": {}}),
    )
    .await;
    assert_eq!(wrong.status, 422);
    ok(&place, "POST", at, hook(&receiver.url(), &["push"])).await;
    ok(&place, "POST", at, hook(&receiver.url(), &["create"])).await;
    assert_eq!(
        ok(&place, "GET", at, Value::Null).await.as_array().unwrap().len(),
        2
    );
    // The secret is in a Secret and nowhere else.
    {
        let known = place.api.0.lock().unwrap();
        let (key, secret) = known.secrets.all.iter().next().unwrap();
        assert_eq!(
            (key.1.as_str(), key.2.as_str()),
            ("default", "fairway-git-hooks-app")
        );
        assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "Repository");
    }
    let edited = ok(
        &place,
        "PATCH",
        &format!("{at}/2"),
        json!({"active": false, "events": ["push"]}),
    )
    .await;
    assert_eq!(
        (&edited["active"], &edited["events"]),
        (&json!(false), &json!(["push"]))
    );

    place
        .run(
            "work",
            &format!("{FIRST} && git push -q {} main", place.url("writer", "app")),
        )
        .await;
    receiver.wait(1).await;
    assert_eq!(
        call(&place, "writer", "POST", &format!("{at}/1/tests"), Value::Null)
            .await
            .status,
        204
    );
    let seen = receiver.wait(2).await;
    assert_signed(&seen[1]);
    assert_eq!(seen[1].json()["commits"].as_array().unwrap().len(), 1);

    // What was sent is remembered, and can be sent again.
    let begun = Instant::now();
    let history = loop {
        let history = ok(&place, "GET", &format!("{at}/1/deliveries"), Value::Null).await;
        if history.as_array().unwrap().len() == 2 {
            break history;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{history}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(
        (&history[0]["status_code"], &history[0]["event"]),
        (&json!(200), &json!("push"))
    );
    let id = history[1]["id"].to_string();
    let one = ok(&place, "GET", &format!("{at}/1/deliveries/{id}"), Value::Null).await;
    assert_eq!(one["response"], "thanks");
    let again = call(
        &place,
        "writer",
        "POST",
        &format!("{at}/1/deliveries/{id}/attempts"),
        Value::Null,
    )
    .await;
    assert_eq!(again.status, 202);
    let seen = receiver.wait(3).await;
    assert_eq!(seen[2].body, seen[0].body);
    assert_ne!(
        seen[2].header("x-gitea-delivery"),
        seen[0].header("x-gitea-delivery")
    );

    assert_eq!(
        call(&place, "writer", "DELETE", &format!("{at}/1"), Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(
        call(&place, "writer", "GET", &format!("{at}/1"), Value::Null)
            .await
            .status,
        404
    );
    // A number is not given twice.
    assert_eq!(
        ok(&place, "POST", at, hook(&receiver.url(), &["push"])).await["id"],
        3
    );
}

#[tokio::test]
async fn a_delivery_survives_failures_and_restarts() {
    let place = place().await;
    let receiver = Receiver::start().await;
    ok(
        &place,
        "POST",
        "repos/root/app/hooks",
        hook(&receiver.url(), &["push"]),
    )
    .await;
    let url = place.url("writer", "app");
    // Nobody delivers yet: what is acknowledged waits on disk.
    place
        .run("work", &format!("{FIRST} && git push -q {url} main"))
        .await;
    let outbox = place.path("repositories/root/app.git/fairway/outbox");
    assert_eq!(std::fs::read_dir(&outbox).unwrap().count(), 1);
    assert!(receiver.seen().is_empty());

    // Another process finds it. The first attempt fails, and so does the second, after a pause; it ends before the third.
    receiver.answers(&[503, 500]);
    let (trigger, running) = deliver(&place, &place.again());
    receiver.wait(2).await;
    trigger.shut_down();
    running.await.unwrap();
    assert_eq!(std::fs::read_dir(&outbox).unwrap().count(), 1);
    let kept = std::fs::read_dir(&outbox)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let kept: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    assert_eq!(kept["attempts"], 2);

    // With the next process it arrives.
    let (_trigger, _running) = deliver(&place, &place.again());
    let seen = receiver.wait(3).await;
    assert!(
        seen.iter()
            .all(|one| one.header("x-gitea-delivery") == seen[0].header("x-gitea-delivery"))
    );
    let begun = Instant::now();
    while std::fs::read_dir(&outbox).unwrap().count() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let history = ok(&place, "GET", "repos/root/app/hooks/1/deliveries", Value::Null).await;
    assert_eq!(
        (&history[0]["attempts"], &history[0]["status"]),
        (&json!(3), &json!("OK"))
    );
}

#[tokio::test]
async fn hooks_go_only_where_they_may() {
    let place = Place::start_with("external").await;
    place.api.user("writer", &["get app", "update app"]);
    place.api.repository("app", json!({}));
    let receiver = Receiver::start().await;
    let (_trigger, _running) = deliver(&place, &place.host);
    ok(
        &place,
        "POST",
        "repos/root/app/hooks",
        hook(&receiver.url(), &["push"]),
    )
    .await;
    place
        .run(
            "work",
            &format!("{FIRST} && git push -q {} main", place.url("writer", "app")),
        )
        .await;
    let begun = Instant::now();
    loop {
        let history = ok(&place, "GET", "repos/root/app/hooks/1/deliveries", Value::Null).await;
        if history[0]["status"] == "failed" {
            let one = ok(&place, "GET", "repos/root/app/hooks/1/deliveries/1", Value::Null).await;
            assert!(
                one["response"]
                    .as_str()
                    .unwrap()
                    .contains("--webhook-allowed-hosts"),
                "{one}"
            );
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{history}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(receiver.seen().is_empty());
}
