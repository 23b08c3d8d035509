//! Rules for branches through Gitea's API, as plain `git` meets them, and revisions as archives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/api.rs"]
mod api;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/place.rs"]
mod place;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "support/rest.rs"]
mod rest;

use place::Place;
use rest::{call, ok};
use serde_json::{Value, json};

#[tokio::test]
async fn branches_are_protected_and_revisions_archived() {
    let place = Place::start().await;
    place.api.user("writer", &["get app", "update app"]);
    place.api.repository("app", json!({}));
    let url = place.url("writer", "app");
    place.run("work", &format!("git init -q -b main . && echo x > x && git add . && git commit -qm x && git push -q {url} main")).await;
    let at = "repos/root/app/branch_protections";
    let made = ok(&place, "POST", at, json!({"rule_name": "main"})).await;
    assert_eq!(
        (&made["rule_name"], &made["enable_push"]),
        (&json!("main"), &json!(false))
    );
    assert_eq!(
        call(&place, "writer", "POST", at, json!({"rule_name": "main"}))
            .await
            .status,
        403
    );
    let refused = call(
        &place,
        "writer",
        "POST",
        at,
        json!({"rule_name": "x", "required_approvals": 2}),
    )
    .await;
    assert_eq!(refused.status, 422);
    let said = place
        .refused(
            "work",
            &format!("git commit -q --allow-empty -m y && git push {url} main"),
        )
        .await;
    assert!(said.contains("pull request"), "{said}");
    ok(
        &place,
        "PATCH",
        &format!("{at}/main"),
        json!({"enable_push": true}),
    )
    .await;
    place.run("work", &format!("git push -q {url} main")).await;
    ok(&place, "POST", at, json!({"rule_name": "release/*", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": ["somebody"]})).await;
    assert_eq!(
        ok(&place, "GET", &format!("{at}/release/*"), Value::Null).await["push_whitelist_usernames"],
        json!(["somebody"])
    );
    place
        .refused("work", &format!("git push {url} main:release/1"))
        .await;
    assert_eq!(
        call(
            &place,
            "writer",
            "DELETE",
            &format!("{at}/release/*"),
            Value::Null
        )
        .await
        .status,
        204
    );
    assert_eq!(
        ok(&place, "GET", at, Value::Null).await.as_array().unwrap().len(),
        1
    );
    assert_eq!(
        call(&place, "writer", "DELETE", &format!("{at}/nothing"), Value::Null)
            .await
            .status,
        404
    );

    let archive = call(
        &place,
        "writer",
        "GET",
        "repos/root/app/archive/main.tar.gz",
        Value::Null,
    )
    .await;
    assert_eq!((archive.status, &archive.bytes[..2]), (200, &b"\x1f\x8b"[..]));
    std::fs::write(place.path("a.tgz"), &archive.bytes).unwrap();
    assert_eq!(place.run("work", "tar tzf ../a.tgz").await, "app/\napp/x");
    for (path, status) in [("archive/main.rar", 422), ("archive/none.zip", 404)] {
        let said = call(
            &place,
            "writer",
            "GET",
            &format!("repos/root/app/{path}"),
            Value::Null,
        )
        .await;
        assert_eq!(said.status, status, "{path}");
    }
}
