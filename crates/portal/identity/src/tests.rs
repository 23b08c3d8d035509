//! The provider as browsers meet it, in front of an API that follows a script.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_controller::fake::Script;
use fairway_portal_realm::directory::{Fed, ROOT};
use fairway_portal_realm::session::Kind;
use fairway_portal_realm::{Session, grant, params, secret, time};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::realms::now;
use crate::{Body, Options, Provider, Realms, password};

const BASE: &str = "https://id.example";
const FORM: &str = "0123456789012345678901234567890123456789012";
const SESSIONS: &str = "/apis/fairway.dev/v1alpha1/sessions";
const CREDENTIALS: &str = "/apis/fairway.dev/v1alpha1/credentials";

/// Root's realm with one user, and three attempts.
fn realms() -> Arc<Realms> {
    let realms = Arc::<Realms>::default();
    realms.write(|all| {
        let settings = json!({"spec": {"lockoutAttempts": 3, "lockoutSeconds": 300}});
        all.take(Fed::Realm, ROOT, "realm", Some(&settings));
        let alice = json!({"metadata": {"uid": "u-1"}, "spec": {}});
        all.take(Fed::User, ROOT, "alice", Some(&alice));
    });
    realms
}

fn provider(script: &Script, realms: Arc<Realms>) -> Arc<Provider> {
    let options = Options {
        base: BASE.to_owned(),
        portal: "https://portal.example".to_owned(),
        realms,
        clients: script.clients(),
    };
    Provider::new(options).unwrap()
}

async fn send(provider: &Provider, cookies: &str, fields: &[(&str, &str)]) -> Response<Body> {
    let token = secret::form_token(FORM);
    let fields = fields.iter().copied().chain([("form_token", token.as_str())]);
    let body = Full::new(Bytes::from(params::query(fields)));
    let request = Request::post(format!("{BASE}/realms/root/device"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("cookie", format!("__Host-fairway-form={FORM}; {cookies}"))
        .body(body.map_err(|never| match never {}).boxed_unsync())
        .unwrap();
    let address = IpAddr::from(Ipv4Addr::new(192, 0, 2, 1));
    provider.serve(request, address).await
}

async fn sign_in(provider: &Provider, user: &str, password: &str) -> StatusCode {
    let fields = [("username", user), ("password", password), ("user_code", "x")];
    send(provider, "", &fields).await.status()
}

fn credential() -> Value {
    let hash = password::hash("correct horse battery").unwrap();
    json!({"metadata": {"name": "user.alice"}, "spec": {"passwordHash": hash}})
}

/// What is done aside, and nobody waits for.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn a_lockout_outlives_the_process() {
    let mut script = Script::new().in_any_order();
    let credential = credential();
    for _ in 0..3 {
        script = script.expect(
            "GET",
            &format!("{CREDENTIALS}/user.alice"),
            200,
            credential.clone(),
        );
    }
    script = script.expect("POST", SESSIONS, 201, json!({}));
    let first = provider(&script, realms());
    for _ in 0..3 {
        assert_eq!(sign_in(&first, "alice", "wrong").await, StatusCode::BAD_REQUEST);
    }
    for _ in 0..3 {
        let right = sign_in(&first, " Alice", "correct horse battery").await;
        assert_eq!(right, StatusCode::TOO_MANY_REQUESTS);
    }
    settled().await;
    let made = script.finish();
    let lock = made.iter().find(|call| call.method == "POST").unwrap();
    // Another process sees the same objects, and asks nobody.
    let again = realms();
    let name = lock.body["metadata"]["name"].as_str().unwrap();
    again.write(|all| all.take(Fed::Session, ROOT, name, Some(&lock.body)));
    let silent = Script::new();
    let second = provider(&silent, again);
    let right = sign_in(&second, "alice", "correct horse battery").await;
    assert_eq!(right, StatusCode::TOO_MANY_REQUESTS);
    silent.finish();
}

#[tokio::test]
async fn guesses_at_names_that_nobody_has_write_nothing() {
    let mut script = Script::new();
    for _ in 0..3 {
        script = script.refuse("GET", &format!("{CREDENTIALS}/user.bob"), 404, "NotFound");
    }
    let provider = provider(&script, realms());
    for _ in 0..3 {
        assert_eq!(sign_in(&provider, "bob", "wrong").await, StatusCode::BAD_REQUEST);
    }
    let fourth = sign_in(&provider, "bob", "wrong").await;
    assert_eq!(fourth, StatusCode::TOO_MANY_REQUESTS);
    settled().await;
    script.finish();
}

#[tokio::test]
async fn guesses_at_the_same_moment_are_counted_like_others() {
    let mut script = Script::new().in_any_order();
    let credential = credential();
    for _ in 0..24 {
        script = script.expect(
            "GET",
            &format!("{CREDENTIALS}/user.alice"),
            200,
            credential.clone(),
        );
    }
    script = script.expect("POST", SESSIONS, 201, json!({}));
    let provider = provider(&script, realms());
    let guesses: Vec<_> = (0..24)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move { sign_in(&provider, "alice", "wrong").await })
        })
        .collect();
    let mut compared = 0;
    for guess in guesses {
        compared += usize::from(guess.await.unwrap() == StatusCode::BAD_REQUEST);
    }
    // As many are compared at once as there are cores.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(
        (3..3 + cores).contains(&compared),
        "{compared} guesses on {cores} cores"
    );
}

#[tokio::test]
async fn codes_of_devices_are_not_guessed_by_deciding() {
    let name = format!("s{}", "0a".repeat(16));
    let realms = realms();
    let session = Session {
        kind: Kind::Browser,
        user: "alice".to_owned(),
        user_uid: "u-1".to_owned(),
        secret_digest: secret::digest("secret"),
        expires_at: time::write(now() + 600),
        ..Session::default()
    };
    let session = json!({"metadata": {"name": name}, "spec": session});
    realms.write(|all| all.take(Fed::Session, ROOT, &name, Some(&session)));
    let mut script = Script::new();
    for _ in 0..15 {
        script = script
            .expect("GET", &format!("{SESSIONS}/{name}"), 200, session.clone())
            .expect_prefix("GET", &format!("{SESSIONS}/s"), 404, json!({"code": 404}));
    }
    script = script.expect("GET", &format!("{SESSIONS}/{name}"), 200, session.clone());
    let provider = provider(&script, realms);
    let cookie = format!(
        "{}={}",
        crate::sign_in::session_cookie("root"),
        grant::join(&name, "secret")
    );
    let fields = [("decision", "allow"), ("user_code", "BCDF-GHJK")];
    for _ in 0..15 {
        let answer = send(&provider, &cookie, &fields).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    }
    let answer = send(&provider, &cookie, &fields).await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    script.finish();
}
