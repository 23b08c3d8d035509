//! Gitea's access tokens, and events of other Git hosts.

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

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_gitops_githost::seams::RemoteWatcher;
use fairway_gitops_githost::transport::full;
use http::Request;
use http_body_util::BodyExt as _;
use place::Place;
use rest::call;
use ring::hmac;
use serde_json::{Value, json};

const BOT: &str = "system:serviceaccount:default:bot";
const TOKENS: &str = "users/bot/tokens";

async fn place() -> Place {
    let place = Place::start().await;
    place.api.user(BOT, &["get app", "update app"]);
    place.api.user("person", &["get app"]);
    place.api.repository("app", json!({"private": true}));
    place
}

async fn token(place: &Place, name: &str, scopes: &[&str]) -> String {
    let made = call(
        place,
        BOT,
        "POST",
        TOKENS,
        json!({"name": name, "scopes": scopes}),
    )
    .await;
    assert_eq!(made.status, 201, "{}", made.body);
    made.body["sha1"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tokens_are_made_used_narrowed_and_revoked() {
    let place = place().await;
    let full_token = token(&place, "ci", &["write:repository", "read:user"]).await;
    let reading = token(&place, "reader", &["read:repository"]).await;
    // As git uses them, and as programs do.
    let first = "git init -q -b main . && echo one > one && git add . && git commit -qm one";
    let url = |token: &str| format!("http://bot:{token}@127.0.0.1:{}/root/app.git", place.port);
    place
        .run(
            "work",
            &format!("{first} && git push -q {} main", url(&full_token)),
        )
        .await;
    place
        .run(
            "work",
            &format!("git ls-remote {} | grep -q refs/heads/main", url(&reading)),
        )
        .await;
    let refused = place
        .refused("work", &format!("git push {} main:other", url(&reading)))
        .await;
    assert!(refused.contains("403"), "{refused}");
    assert_eq!(
        call(&place, &full_token, "GET", "user", Value::Null).await.body["login"],
        "bot"
    );
    assert_eq!(
        call(&place, &reading, "GET", "repos/root/app", Value::Null)
            .await
            .status,
        200
    );
    let branch = json!({"new_branch_name": "b"});
    let narrow = call(&place, &reading, "POST", "repos/root/app/branches", branch).await;
    assert_eq!(narrow.status, 403);

    // Shown without themselves.
    let listed = call(&place, BOT, "GET", TOKENS, Value::Null).await.body;
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"ci") && names.contains(&"reader") && names.len() == 2,
        "{listed}"
    );
    assert!(!listed.to_string().contains(&full_token));
    let last = &full_token[full_token.len() - 8..];
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .any(|token| token["token_last_eight"] == last),
        "{listed}"
    );

    // Wrong ones are refused, each with its reason.
    for (user, body, status, why) in [
        (
            BOT,
            json!({"name": "ci", "scopes": ["all"]}),
            400,
            "has been used",
        ),
        (BOT, json!({"name": "x", "scopes": []}), 400, "must have a scope"),
        (
            BOT,
            json!({"name": "x", "scopes": ["everything"]}),
            400,
            "not a scope",
        ),
        (
            BOT,
            json!({"name": "x", "scopes": ["public-only", "all"]}),
            400,
            "not served",
        ),
        (BOT, json!({"name": "", "scopes": ["all"]}), 422, "name"),
        ("person", json!({"name": "x", "scopes": ["all"]}), 403, "bot only"),
        (
            reading.as_str(),
            json!({"name": "x", "scopes": ["all"]}),
            403,
            "scope",
        ),
        ("", json!({"name": "x", "scopes": ["all"]}), 401, "token"),
    ] {
        let said = call(&place, user, "POST", TOKENS, body.clone()).await;
        assert_eq!(said.status, status, "{user} {body} {}", said.body);
        assert!(
            said.body["message"].as_str().unwrap().contains(why),
            "{body}: {}",
            said.body
        );
    }
    let of_a_person = call(
        &place,
        "person",
        "POST",
        "users/person/tokens",
        json!({"name": "x", "scopes": ["all"]}),
    )
    .await;
    assert_eq!(of_a_person.status, 422);
    // A token cannot make one that may do more.
    let own = token(&place, "own", &["write:user", "read:repository"]).await;
    let more = call(
        &place,
        &own,
        "POST",
        TOKENS,
        json!({"name": "more", "scopes": ["write:repository"]}),
    )
    .await;
    assert_eq!(more.status, 403);
    let less = call(
        &place,
        &own,
        "POST",
        TOKENS,
        json!({"name": "less", "scopes": ["read:repository"]}),
    )
    .await;
    assert_eq!(less.status, 201);

    // Deleted is revoked.
    assert_eq!(
        call(&place, BOT, "DELETE", &format!("{TOKENS}/ci"), Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(
        call(&place, &full_token, "GET", "repos/root/app", Value::Null)
            .await
            .status,
        401
    );
    place
        .refused("work", &format!("git ls-remote {}", url(&full_token)))
        .await;
    assert_eq!(
        call(&place, BOT, "DELETE", &format!("{TOKENS}/ci"), Value::Null)
            .await
            .status,
        404
    );
}

#[derive(Debug, Default)]
struct Reader(Mutex<Vec<(String, Vec<String>)>>);

impl RemoteWatcher for Reader {
    fn followers(&self, addresses: &[String]) -> Vec<String> {
        let reads = addresses
            .iter()
            .any(|address| address == "https://elsewhere.example/a/b.git");
        if reads {
            vec!["root".to_owned()]
        } else {
            Vec::new()
        }
    }

    fn wake(&self, workspace: &str, addresses: &[String]) -> usize {
        self.0
            .lock()
            .unwrap()
            .push((workspace.to_owned(), addresses.to_vec()));
        1
    }
}

async fn event(place: &Place, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = Request::post("http://git.fairway.localhost/api/webhook");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = place
        .host
        .serve(request.body(full(body.to_owned())).unwrap())
        .await;
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn events_wake_those_who_follow() {
    let place = place().await;
    let reader = Arc::new(Reader::default());
    place
        .host
        .add_remote_watcher(Arc::clone(&reader) as Arc<dyn RemoteWatcher>);
    let push =
        json!({"ref": "refs/heads/main", "repository": {"clone_url": "https://elsewhere.example/a/b.git"}})
            .to_string();
    let gitea = [("x-gitea-event", "push")];
    let woken = || reader.0.lock().unwrap().len();
    assert_eq!(event(&place, &gitea, &push).await.0, 200);
    assert_eq!(woken(), 1);
    // What nobody follows, what is no push, and what nobody sends.
    let other = push.replace("/a/b", "/a/c");
    assert_eq!(event(&place, &gitea, &other).await.0, 200);
    assert_eq!(event(&place, &[("x-gitea-event", "issues")], &push).await.0, 200);
    assert_eq!(event(&place, &[], &push).await.0, 400);
    assert_eq!(event(&place, &gitea, "payload=x").await.0, 400);
    assert_eq!(event(&place, &gitea, "{}").await.0, 400);
    assert_eq!(woken(), 1);
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(5 << 20));
    assert_eq!(event(&place, &gitea, &large).await.0, 400);

    // With a secret, only who knows it is heard.
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "argocd-secret"},
                        "data": {"webhook.gogs.secret": STANDARD.encode("key"), "webhook.gitlab.secret": STANDARD.encode("lab")}});
    let key = ("root".to_owned(), "argocd".to_owned(), "argocd-secret".to_owned());
    place.api.0.lock().unwrap().secrets.all.insert(key, secret);
    let (status, why) = event(&place, &gitea, &push).await;
    assert_eq!(status, 400, "{why}");
    assert!(why.contains("argocd-secret"), "{why}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"key"), push.as_bytes());
    let signature: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        event(&place, &[gitea[0], ("x-gitea-signature", &signature)], &push)
            .await
            .0,
        200
    );
    assert_eq!(
        event(
            &place,
            &[gitea[0], ("x-gitea-signature", &signature)],
            &other.replace("/a/c", "/a/b ")
        )
        .await
        .0,
        200
    );
    assert_eq!(woken(), 2);
    let lab = json!({"project": {"git_http_url": "https://elsewhere.example/a/b.git"}}).to_string();
    let header = ("x-gitlab-event", "Push Hook");
    assert_eq!(
        event(&place, &[header, ("x-gitlab-token", "lax")], &lab).await.0,
        400
    );
    assert_eq!(
        event(&place, &[header, ("x-gitlab-token", "lab")], &lab).await.0,
        200
    );
    assert_eq!(woken(), 3);
}
