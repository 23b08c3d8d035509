//! The provider as browsers meet it, in front of an API that follows a script.

mod account;
mod apart;
mod browsers;
mod external;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairway_controller::fake::Script;
use fairway_outbound::AllowedHosts;
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
        entries: script.clients(),
        allowed_hosts: AllowedHosts::parse("loopback").unwrap(),
    };
    Provider::new(options).unwrap()
}

async fn send(provider: &Provider, cookies: &str, fields: &[(&str, &str)]) -> Response<Body> {
    send_to(provider, "device", cookies, fields).await
}

async fn send_to(provider: &Provider, path: &str, cookies: &str, fields: &[(&str, &str)]) -> Response<Body> {
    let token = secret::form_token(FORM);
    let fields = fields.iter().copied().chain([("form_token", token.as_str())]);
    let body = Full::new(Bytes::from(params::query(fields)));
    let request = Request::post(format!("{BASE}/realms/root/{path}"))
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

/// Signs alice in for the command line, as a browser does.
async fn sign_in_for_a_program(provider: &Provider) -> String {
    let asked = params::query([
        ("response_type", "code"),
        ("client_id", "fairway"),
        ("redirect_uri", "http://127.0.0.1:9/callback"),
        ("scope", "openid"),
        ("state", "x"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
    ]);
    let fields = [("username", "alice"), ("password", "correct horse battery")];
    let answer = send_to(provider, &format!("authorize?{asked}"), "", &fields).await;
    assert!(answer.status().is_redirection(), "{}", answer.status());
    answer.headers()["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_sign_in_writes_both_sessions_and_is_noted_once_a_minute() {
    for (noted, is_written) in [(None, true), (Some(now() - 70), true), (Some(now() - 5), false)] {
        let mut script = Script::new()
            .in_any_order()
            .expect("GET", &format!("{CREDENTIALS}/user.alice"), 200, credential())
            .expect("POST", SESSIONS, 201, json!({}))
            .expect("POST", SESSIONS, 201, json!({}));
        if is_written {
            let path = "/apis/fairway.dev/v1alpha1/users/alice/status";
            script = script.expect("PATCH", path, 200, json!({}));
        }
        let realms = realms();
        if let Some(noted) = noted {
            let alice =
                json!({"metadata": {"uid": "u-1"}, "spec": {}, "status": {"lastSignIn": time::write(noted)}});
            realms.write(|all| all.take(Fed::User, ROOT, "alice", Some(&alice)));
        }
        let provider = provider(&script, realms);
        let location = sign_in_for_a_program(&provider).await;
        settled().await;
        let made = script.finish();
        let sessions: Vec<&Value> = made
            .iter()
            .filter(|call| call.method == "POST")
            .map(|call| &call.body)
            .collect();
        let of = |is_browser: bool| {
            let kind = |it: &&&Value| (it["spec"]["kind"] == "Browser") == is_browser;
            *sessions.iter().find(kind).unwrap()
        };
        let (browser, grant) = (of(true), of(false));
        assert_eq!(grant["spec"]["browser"], browser["metadata"]["name"]);
        let name = grant["metadata"]["name"].as_str().unwrap();
        assert!(location.contains(&format!("code={name}")), "{location}");
    }
}

#[tokio::test]
async fn without_sessions_nobody_is_signed_in() {
    let script = Script::new()
        .expect("GET", &format!("{CREDENTIALS}/user.alice"), 200, credential())
        .refuse("POST", SESSIONS, 500, "InternalError")
        .refuse("POST", SESSIONS, 500, "InternalError");
    let provider = provider(&script, realms());
    let fields = [("username", "alice"), ("password", "correct horse battery")];
    let asked = "authorize?response_type=code&client_id=fairway&redirect_uri=http://127.0.0.1:9/callback&scope=openid\
        &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";
    let answer = send_to(&provider, asked, "", &fields).await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers();
    assert!(headers.get("location").is_none() && headers.get("set-cookie").is_none());
    settled().await;
    script.finish();
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

#[tokio::test]
async fn who_is_in_the_same_process_need_not_call() {
    let realms = realms();
    let provider = provider(&Script::new(), Arc::clone(&realms));
    let at = |path: &str| provider.published(&format!("{BASE}{path}"));
    let found = at("/realms/root/.well-known/openid-configuration").unwrap();
    assert_eq!(found["issuer"], format!("{BASE}/realms/root"));
    assert_eq!(at("/realms/root/jwks"), Some(json!({"keys": []})));
    assert_eq!(found["jwks_uri"], format!("{BASE}/realms/root/jwks"));
    for path in [
        "/realms/none/jwks",
        "/realms/root/token",
        "/realms/root",
        "/jwks",
        "",
    ] {
        assert_eq!(at(path), None, "{path}");
    }
    assert_eq!(
        provider.published("https://id.example.org/realms/root/jwks"),
        None
    );

    let session = Session {
        user: "alice".to_owned(),
        expires_at: time::write(now() + 60),
        ..Session::default()
    };
    let session = json!({"spec": session});
    realms.write(|all| all.take(Fed::Session, ROOT, "s1", Some(&session)));
    let claims = |issuer: &str, session: &str| json!({"iss": issuer, "sub": "u-1", "sid": session});
    let ours = format!("{BASE}/realms/root");
    for (claims, lapses, reason) in [
        (claims(&ours, "s1"), false, "signed in"),
        (claims(&ours, "s2"), true, "signed out"),
        (
            claims(&format!("{BASE}/realms/none"), "s1"),
            true,
            "no such realm",
        ),
        (
            claims("https://other.example", "s2"),
            false,
            "somebody else's token",
        ),
        (json!({}), false, "nobody's token"),
    ] {
        assert_eq!(realms.lapsed(&claims, now()).is_some(), lapses, "{reason}");
    }
}

/// Whether there is such a user must not be told by the time that an answer takes. What takes the time is counted: hashes, and questions
/// to the API.
#[tokio::test]
async fn who_is_unknown_costs_as_much_as_who_is_known() {
    let hash = password::hash("correct horse battery").unwrap();
    let cases = [
        (
            "known, wrong password",
            "alice",
            Some(json!({"passwordHash": hash})),
        ),
        ("known, no password", "alice", Some(json!({}))),
        (
            "known, one-time codes only",
            "alice",
            Some(json!({"totpSeed": "GEZDGNBVGY3TQOJQ"})),
        ),
        (
            "known, a hash that cannot be read",
            "alice",
            Some(json!({"passwordHash": "$2b$x"})),
        ),
        ("known, no credential", "alice", None),
        ("disabled", "carol", Some(json!({"passwordHash": hash}))),
        ("leaving", "dave", Some(json!({"passwordHash": hash}))),
        ("unknown", "bob", None),
        (
            "unknown, left behind",
            "erin",
            Some(json!({"passwordHash": hash})),
        ),
        ("no name at all", "no name/at all", None),
        ("empty", "", None),
    ];
    for (what, user, credential) in cases {
        let asked = match user {
            "" | "no name/at all" => "no.such.user",
            name => name,
        };
        let path = format!("{CREDENTIALS}/user.{asked}");
        let script = match credential {
            Some(spec) => Script::new().expect(
                "GET",
                &path,
                200,
                json!({"metadata": {"name": asked}, "spec": spec}),
            ),
            None => Script::new().refuse("GET", &path, 404, "NotFound"),
        };
        let realms = realms();
        realms.write(|all| {
            let disabled = json!({"metadata": {"uid": "u-3"}, "spec": {"disabled": true}});
            all.take(Fed::User, ROOT, "carol", Some(&disabled));
            let leaving = json!({"metadata": {"uid": "u-4", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
            all.take(Fed::User, ROOT, "dave", Some(&leaving));
        });
        let provider = provider(&script, realms);
        assert_eq!(
            sign_in(&provider, user, "wrong").await,
            StatusCode::BAD_REQUEST,
            "{what}"
        );
        script.finish();
        let costs = provider.hasher.costs.lock().unwrap().clone();
        assert_eq!(costs, [(19_456, 2, 1)], "{what}");
    }
}

async fn begin_device(provider: &Provider, address: [u8; 4]) -> StatusCode {
    let body = Full::new(Bytes::from(params::query([
        ("client_id", "fairway"),
        ("scope", "openid"),
    ])));
    let request = Request::post(format!("{BASE}/realms/root/device_authorization"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.map_err(|never| match never {}).boxed_unsync())
        .unwrap();
    provider.serve(request, IpAddr::from(address)).await.status()
}

#[tokio::test]
async fn one_address_cannot_take_all_places_of_devices() {
    use fairway_portal_realm::device::MAX_OF_ADDRESS;
    let mut script = Script::new().in_any_order();
    for _ in 0..=MAX_OF_ADDRESS {
        script = script.expect("POST", SESSIONS, 201, json!({}));
    }
    let provider = provider(&script, realms());
    for _ in 0..MAX_OF_ADDRESS {
        assert_eq!(begin_device(&provider, [192, 0, 2, 1]).await, StatusCode::OK);
    }
    for _ in 0..3 {
        let refused = begin_device(&provider, [192, 0, 2, 1]).await;
        assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(begin_device(&provider, [192, 0, 2, 2]).await, StatusCode::OK);
    script.finish();
}

mod departures {
    use fairway_portal_realm::directory::duties::FINALIZER;

    use super::*;
    use crate::departures::attend;
    use crate::objects::Objects;

    const USERS: &str = "/apis/fairway.dev/v1alpha1/users";
    const GROUPS: &str = "/apis/fairway.dev/v1alpha1/groups";

    fn alice(finalizers: &[&str], is_leaving: bool) -> Value {
        let mut alice = json!({
            "metadata": {"name": "alice", "uid": "u-1", "resourceVersion": "7", "finalizers": finalizers}, "spec": {},
        });
        if is_leaving {
            alice["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        alice
    }

    #[tokio::test]
    async fn a_new_user_is_held_beside_whoever_else_holds_him() {
        let realms = Realms::default();
        let read = alice(&["example.com/mine"], false);
        realms.take(Fed::User, ROOT, "alice", Some(&read));
        let script = Script::new()
            .expect("GET", &format!("{USERS}/alice"), 200, read)
            .expect("PATCH", &format!("{USERS}/alice"), 200, json!({}));
        let chore = realms.read(|all| all.chores(1)).remove(0);
        let done = attend(&realms, &Objects::new(script.clients()), &chore).await;
        assert!(done.unwrap());
        let called = script.finish();
        let metadata = &called[1].body["metadata"];
        assert_eq!(metadata["finalizers"], json!(["example.com/mine", FINALIZER]));
        assert_eq!(metadata["resourceVersion"], "7");
    }

    #[tokio::test]
    async fn what_is_under_the_name_goes_before_the_name_is_free() {
        let realms = Realms::default();
        let staff = json!({"metadata": {"name": "staff", "resourceVersion": "3"}, "spec": {"members": ["alice", "bob"]}});
        realms.take(Fed::Group, ROOT, "staff", Some(&staff));
        let read = alice(&[FINALIZER], true);
        realms.take(Fed::User, ROOT, "alice", Some(&read));
        let script = Script::new()
            .expect("DELETE", &format!("{CREDENTIALS}/user.alice"), 200, json!({}))
            .expect("GET", &format!("{GROUPS}/staff"), 200, staff)
            .expect("PATCH", &format!("{GROUPS}/staff"), 200, json!({}))
            .expect("GET", &format!("{USERS}/alice"), 200, read)
            .expect("PATCH", &format!("{USERS}/alice"), 200, json!({}));
        let chore = realms.read(|all| all.chores(1)).remove(0);
        let done = attend(&realms, &Objects::new(script.clients()), &chore).await;
        assert!(done.unwrap());
        let called = script.finish();
        assert_eq!(called[2].body["spec"]["members"], json!(["bob"]));
        assert_eq!(called[4].body["metadata"]["finalizers"], json!([]));
    }

    #[tokio::test]
    async fn as_long_as_something_is_left_the_name_is_not_free() {
        let realms = Realms::default();
        realms.take(Fed::User, ROOT, "alice", Some(&alice(&[FINALIZER], true)));
        let script = Script::new().refuse(
            "DELETE",
            &format!("{CREDENTIALS}/user.alice"),
            500,
            "InternalError",
        );
        let chore = realms.read(|all| all.chores(1)).remove(0);
        assert!(
            attend(&realms, &Objects::new(script.clients()), &chore)
                .await
                .is_err()
        );
        script.finish();
    }
}
