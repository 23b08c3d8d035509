//! Labels of repositories and pull requests through Gitea's REST API.

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
async fn pull_requests_have_labels() {
    let place = Place::start().await;
    place
        .api
        .user("writer", &["get app", "update app", "create app", "delete app"]);
    place.api.user("reader", &["get app"]);
    place.api.repository("app", json!({}));
    let at = |path: &str| format!("repos/root/app/{path}");
    let url = place.url("writer", "app");
    place.run("w", &format!("git init -q -b main . && echo a > f && git add . && git commit -qm base && git push -q {url} main && git checkout -qb work && echo b > f && git commit -qam work && git push -q {url} work")).await;
    let red = ok(
        &place,
        "POST",
        &at("labels"),
        json!({"name": "preview", "color": "#FF0000", "description": "d"}),
    )
    .await;
    assert_eq!(
        (&red["id"], &red["color"], &red["exclusive"]),
        (&json!(1), &json!("ff0000"), &json!(false))
    );
    ok(
        &place,
        "POST",
        &at("labels"),
        json!({"name": "bug", "color": "00ff00"}),
    )
    .await;
    for (body, code) in [
        (json!({"name": "x"}), 422),
        (json!({"name": " ", "color": "#000000"}), 422),
        (json!({"name": "x", "color": "green"}), 422),
    ] {
        assert_eq!(
            call(&place, "writer", "POST", &at("labels"), body.clone())
                .await
                .status,
            code,
            "{body}"
        );
    }
    assert_eq!(
        call(
            &place,
            "reader",
            "POST",
            &at("labels"),
            json!({"name": "x", "color": "000000"})
        )
        .await
        .status,
        403
    );
    let names = |list: &Value| -> Vec<String> {
        let all = list.as_array().unwrap().iter();
        all.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        names(&ok(&place, "GET", &at("labels"), Value::Null).await),
        ["bug", "preview"]
    );
    let changed = ok(&place, "PATCH", &at("labels/2"), json!({"name": "defect"})).await;
    assert_eq!(
        (&changed["name"], &changed["color"]),
        (&json!("defect"), &json!("00ff00"))
    );

    let open = json!({"title": "Work", "base": "main", "head": "work", "labels": [1]});
    let made = ok(&place, "POST", &at("pulls"), open).await;
    assert_eq!(names(&made["labels"]), ["preview"]);
    let more = ok(
        &place,
        "POST",
        &at("issues/1/labels"),
        json!({"labels": ["defect"]}),
    )
    .await;
    assert_eq!(names(&more), ["preview", "defect"]);
    for (labels, count) in [("1", 1), ("1,2", 1), ("3", 0), ("", 1)] {
        let found = ok(&place, "GET", &at(&format!("pulls?labels={labels}")), Value::Null).await;
        assert_eq!(found.as_array().unwrap().len(), count, "{labels}");
    }
    let others = ok(&place, "PUT", &at("issues/1/labels"), json!({"labels": [2]})).await;
    assert_eq!(names(&others), ["defect"]);
    assert_eq!(
        call(
            &place,
            "writer",
            "PUT",
            &at("issues/1/labels"),
            json!({"labels": [7]})
        )
        .await
        .status,
        404
    );
    let edited = ok(&place, "PATCH", &at("pulls/1"), json!({"labels": [1, 2, 2]})).await;
    assert_eq!(names(&edited["labels"]), ["preview", "defect"]);
    ok(&place, "DELETE", &at("issues/1/labels/2"), Value::Null).await;
    assert_eq!(
        names(&ok(&place, "GET", &at("issues/1/labels"), Value::Null).await),
        ["preview"]
    );

    // Those who look at pull requests in this process see them by name; a label that goes is nobody's any more.
    let seen = place.host.open_pulls("root", "app").await.unwrap().unwrap();
    assert_eq!(seen[0].labels, ["preview"]);
    ok(&place, "DELETE", &at("labels/1"), Value::Null).await;
    assert!(
        ok(&place, "GET", &at("pulls/1"), Value::Null).await["labels"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        call(&place, "writer", "GET", &at("labels/1"), Value::Null)
            .await
            .status,
        404
    );
    ok(&place, "PUT", &at("issues/1/labels"), json!({"labels": [2]})).await;
    ok(&place, "DELETE", &at("issues/1/labels"), Value::Null).await;
    assert!(
        ok(&place, "GET", &at("issues/1/labels"), Value::Null)
            .await
            .as_array()
            .unwrap()
            .is_empty()
    );
}
