//! Whole policies, from a request to a verdict.

mod explained;
mod issuers;
mod limits;
mod silence;
mod standing;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::testing::{Issuer, World, gatekeeper, plans, sent, status};
use crate::{Settings, lock};

fn keys() -> Value {
    json!({"rules": {"authentication": {"api-key": {
        "apiKey": {"selector": {"matchLabels": {"app": "toys"}}},
        "credentials": {"authorizationHeader": {"prefix": "APIKEY"}}}}}})
}

fn guard(world: &Arc<World>, auth: Option<&Value>, limits: Option<&Value>) -> Arc<RuleGuard> {
    // What a policy decides is asked here, and not how busy the machine is.
    let settings = Settings {
        rego_time: Duration::from_secs(1),
        ..Settings::default()
    };
    let gatekeeper = gatekeeper(world, settings);
    let (guard, problems) = gatekeeper.guard(plans(auth, limits));
    assert_eq!(problems, []);
    guard
}

fn now() -> u64 {
    u64::try_from(crate::testing::NOW).unwrap()
}

fn header<'a>(headers: &'a [(HeaderName, HeaderValue)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key == name)
        .and_then(|(_, value)| value.to_str().ok())
}

#[tokio::test]
async fn credentials_are_found_where_the_policy_says() {
    let world = Arc::new(World::default());
    for (credentials, request, expected) in [
        (
            json!({"authorizationHeader": {"prefix": "APIKEY"}}),
            "GET / | authorization: APIKEY IAMALICE",
            200,
        ),
        (
            json!({"authorizationHeader": {"prefix": "APIKEY"}}),
            "GET / | authorization: Bearer IAMALICE",
            401,
        ),
        (
            json!({"authorizationHeader": {"prefix": "APIKEY"}}),
            "GET / | authorization: APIKEYIAMALICE",
            401,
        ),
        (
            json!({"authorizationHeader": {"prefix": "APIKEY"}}),
            "GET / | authorization: APIKEY WRONG",
            401,
        ),
        (json!({"authorizationHeader": {"prefix": "APIKEY"}}), "GET /", 401),
        (json!({}), "GET / | authorization: Bearer IAMBOB", 200),
        (
            json!({"customHeader": {"name": "X-Key"}}),
            "GET / | x-key: IAMBOB",
            200,
        ),
        (
            json!({"queryString": {"name": "key"}}),
            "GET /a?b=c&key=IAMBOB",
            200,
        ),
        (
            json!({"queryString": {"name": "key"}}),
            "GET /a?nokey=IAMBOB",
            401,
        ),
        (
            json!({"cookie": {"name": "key"}}),
            "GET / | cookie: a=b; key=IAMBOB",
            200,
        ),
        (
            json!({"cookie": {"name": "key"}}),
            "GET / | cookie: akey=IAMBOB",
            401,
        ),
        // Twice is not at all: the backend might believe the other one.
        (
            json!({"authorizationHeader": {"prefix": "APIKEY"}}),
            "GET / | authorization: APIKEY IAMALICE | authorization: APIKEY IAMBOB",
            401,
        ),
        (
            json!({"authorizationHeader": {"prefix": "APIKEY"}}),
            "GET / | authorization: APIKEY IAMALICE | authorization: Basic cm9vdDpyb290",
            401,
        ),
        (
            json!({"customHeader": {"name": "X-Key"}}),
            "GET / | x-key: IAMBOB | x-key: IAMBOB",
            401,
        ),
        (
            json!({"queryString": {"name": "key"}}),
            "GET /a?key=IAMBOB&key=IAMALICE",
            401,
        ),
        (
            json!({"queryString": {"name": "key"}}),
            "GET /a?key=IAMBOB&k%65y",
            401,
        ),
        (
            json!({"cookie": {"name": "key"}}),
            "GET / | cookie: key=IAMBOB; key=IAMALICE",
            401,
        ),
        (
            json!({"cookie": {"name": "key"}}),
            "GET / | cookie: key=IAMBOB | cookie: a=b;key =IAMALICE",
            401,
        ),
        (
            json!({"cookie": {"name": "key"}}),
            "GET / | cookie: a=\u{e4} | cookie: key=IAMBOB",
            200,
        ),
    ] {
        let mut policy = keys();
        policy["rules"]["authentication"]["api-key"]["credentials"] = credentials.clone();
        let guard = guard(&world, Some(&policy), None);
        let (verdict, waited) = sent(request).judge(&guard).await;
        assert_eq!(
            (status(&verdict), waited),
            (expected, false),
            "{credentials} {request}"
        );
    }
}

#[tokio::test]
async fn strangers_are_told_how_to_come_in() {
    let world = Arc::new(World::default());
    let guard = guard(&world, Some(&keys()), None);
    let (verdict, _) = sent("GET /").judge(&guard).await;
    let Verdict::Deny(refusal) = verdict else {
        panic!("nobody is nobody");
    };
    assert_eq!(refusal.by, "AuthPolicy/team/api");
    assert_eq!(
        header(&refusal.headers, "www-authenticate"),
        Some("APIKEY realm=\"api-key\"")
    );
    assert_eq!(
        header(&refusal.headers, "x-ext-auth-reason"),
        Some("credential not found")
    );
    assert!(refusal.body.is_empty());
}

#[tokio::test]
async fn keys_that_change_count_at_once() {
    let world = Arc::new(World::default());
    let gatekeeper = gatekeeper(&world, Settings::default());
    let (guard, _) = gatekeeper.guard(plans(Some(&keys()), None));
    let request = sent("GET / | authorization: APIKEY IAMALICE");
    assert_eq!(status(&request.judge(&guard).await.0), 200);
    gatekeeper.set_secrets("root", vec![]);
    assert_eq!(status(&request.judge(&guard).await.0), 401);
}

#[tokio::test]
async fn several_ways_in_are_tried_by_priority() {
    let world = Arc::new(World::default());
    let policy = json!({"rules": {
        "authentication": {
            "nobody": {"anonymous": {}, "priority": 1, "when": [{"predicate": "request.method == 'GET'"}]},
            "api-key": keys()["rules"]["authentication"]["api-key"],
            "accounts": {"kubernetesTokenReview": {"audiences": ["toys"]},
                         "when": [{"predicate": "'authorization' in request.headers && request.headers['authorization'].startsWith('Bearer')"}]}},
        "response": {"success": {"headers": {"x-who": {"json": {"properties": {
            "name": {"selector": "auth.identity.metadata.name"}, "user": {"selector": "auth.identity.user.username"},
            "anonymous": {"selector": "auth.identity.anonymous"}}}}}}}}});
    let guard = guard(&world, Some(&policy), None);
    for (request, expected, waits) in [
        (
            "GET / | authorization: APIKEY IAMBOB",
            Ok(r#"{"anonymous":null,"name":"bob","user":null}"#),
            false,
        ),
        (
            "GET / | authorization: Bearer sa-token",
            Ok(r#"{"anonymous":null,"name":null,"user":"system:serviceaccount:a:b"}"#),
            true,
        ),
        (
            "GET / | authorization: Bearer other",
            Ok(r#"{"anonymous":true,"name":null,"user":null}"#),
            true,
        ),
        (
            "GET /",
            Ok(r#"{"anonymous":true,"name":null,"user":null}"#),
            false,
        ),
        ("POST / | authorization: Bearer other", Err(401), true),
    ] {
        let (verdict, waited) = sent(request).judge(&guard).await;
        let found = match &verdict {
            Verdict::Allow(passage) => Ok(header(&passage.request_headers, "x-who").unwrap_or("")),
            Verdict::Deny(refusal) => Err(refusal.status.as_u16()),
        };
        assert_eq!((found, waited), (expected, waits), "{request}");
    }
}

#[tokio::test]
async fn others_are_asked_and_their_answers_remembered() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k");
    issuer.publish(&world);
    world.page("http://geo/10.0.0.9", 200, json!({"country": "DE"}));
    world.page("https://issuer/me", 200, json!({"email": "a@example.com"}));
    let policy = json!({"rules": {
        "authentication": {"tokens": {"jwt": {"issuerUrl": "https://issuer"}}},
        "metadata": {
            "geo": {"http": {"url": "http://geo/{source.address}", "sharedSecretRef": {"name": "shared", "key": "token"},
                             "headers": {"x-id": {"selector": "request.id"}}},
                    "cache": {"key": {"selector": "source.address"}, "ttl": 30}},
            "me": {"userInfo": {"identitySource": "tokens"}, "cache": {"key": {"expression": "auth.identity.sub"}}},
            "away": {"http": {"url": "http://away"}, "when": [{"predicate": "request.url_path == '/away'"}]}},
        "authorization": {
            "country": {"patternMatching": {"patterns": [{"predicate": "auth.metadata.geo.country == 'DE'"}]}},
            "mail": {"opa": {"rego": "allow { endswith(input.auth.metadata.me.email, \"@example.com\") }"}},
            "away": {"patternMatching": {"patterns": [{"predicate": "auth.metadata.away.x == 1"}]},
                     "when": [{"predicate": "request.url_path == '/away'"}]},
            "rbac": {"kubernetesSubjectAccessReview": {"user": {"selector": "auth.identity.sub"},
                     "resourceAttributes": {"resource": {"value": "toys"}, "verb": {"value": "get"}}},
                     "cache": {"key": {"selector": "auth.identity.sub"}}, "priority": 9}}}});
    let guard = guard(&world, Some(&policy), None);
    let as_user = |path: &str, sub: &str| {
        sent(&format!(
            "GET {path} | authorization: Bearer {}",
            issuer.token(json!({ "sub": sub }))
        ))
    };
    let alice = as_user("/", "alice");
    assert_eq!(status(&alice.judge(&guard).await.0), 200);
    let message = lock(&world.asked)
        .iter()
        .find(|m| m.url.starts_with("http://geo"))
        .cloned()
        .unwrap();
    assert_eq!(message.headers["authorization"], "Bearer hush");
    assert_eq!(message.headers["x-id"], "r-1");
    assert_eq!(
        lock(&world.reviews)[0].spec["resourceAttributes"]["resource"],
        "toys"
    );
    let (verdict, waited) = alice.judge(&guard).await;
    assert_eq!(
        (status(&verdict), waited),
        (200, false),
        "all of it is remembered"
    );
    let mut later = as_user("/", "alice");
    later.now += 31_000_000_000;
    assert!(later.judge(&guard).await.1, "for a while");
    assert_eq!(status(&as_user("/", "bob").judge(&guard).await.0), 403, "RBAC");
    assert_eq!(
        status(&as_user("/away", "alice").judge(&guard).await.0),
        403,
        "what is missing does not allow"
    );
}

#[tokio::test]
async fn refusals_are_what_the_policy_makes_them() {
    let world = Arc::new(World::default());
    let mut policy = keys();
    policy["rules"]["authorization"] =
        json!({"never": {"patternMatching": {"patterns": [{"predicate": "false"}]}}});
    policy["rules"]["response"] = json!({
        "unauthenticated": {"code": 302, "headers": {"location": {"expression": "'https://login?to=' + request.path"}},
                            "message": {"value": "log in"}},
        "unauthorized": {"code": 404, "body": {"selector": "no {auth.identity.metadata.name}"},
                         "headers": {"x-bad": {"value": "a\r\nset-cookie: b"}, "x-good": {"value": "c"}}}});
    let guard = guard(&world, Some(&policy), None);
    let refusal = |verdict| match verdict {
        Verdict::Deny(refusal) => refusal,
        Verdict::Allow(_) => panic!("nobody may"),
    };
    let stranger = refusal(sent("GET /a?b").judge(&guard).await.0);
    assert_eq!(stranger.status, 302);
    assert_eq!(
        header(&stranger.headers, "location"),
        Some("https://login?to=/a?b")
    );
    assert_eq!(header(&stranger.headers, "x-ext-auth-reason"), Some("log in"));
    assert_eq!(header(&stranger.headers, "www-authenticate"), None);
    let alice = refusal(
        sent("GET / | authorization: APIKEY IAMALICE")
            .judge(&guard)
            .await
            .0,
    );
    assert_eq!(
        (alice.status.as_u16(), alice.body.as_ref()),
        (404, &b"no alice"[..])
    );
    assert_eq!(header(&alice.headers, "x-bad"), None, "a header is one header");
    assert_eq!(header(&alice.headers, "x-good"), Some("c"));
}

#[tokio::test]
async fn a_policy_that_fails_lets_nobody_through() {
    let world = Arc::new(World::default());
    let anonymous = |rules: Value| {
        let mut rules = rules;
        rules["authentication"] = json!({"all": {"anonymous": {}}});
        json!({ "rules": rules })
    };
    let pattern = |predicate: &str| json!({"patternMatching": {"patterns": [{"predicate": predicate}]}});
    for (policy, expected, why) in [
        (anonymous(json!({})), 200, "everybody"),
        (
            anonymous(json!({"authorization": {"a": pattern("auth.identity.missing == 1")}})),
            403,
            "CEL that fails",
        ),
        (
            anonymous(
                json!({"authorization": {"a": {"patternMatching": {"patterns": [{"predicate": "true"}]}, "when": [{"predicate": "auth.identity.missing == 1"}]}}}),
            ),
            403,
            "a condition that fails",
        ),
        (
            json!({"when": [{"predicate": "auth.identity.missing == 1"}], "rules": {}}),
            500,
            "the policy's condition fails",
        ),
        (
            json!({"when": [{"predicate": "false"}], "rules": keys()["rules"]}),
            200,
            "it does not apply",
        ),
        (
            anonymous(json!({"authorization": {"a": pattern("(")}})),
            500,
            "CEL that does not compile",
        ),
        (
            anonymous(json!({"authorization": {"a": {"spicedb": {}}}})),
            500,
            "what is not supported",
        ),
        (
            anonymous(json!({"authorization": {"a": {"opa": {"rego": "allow {"}}}})),
            500,
            "Rego that does not compile",
        ),
        (
            anonymous(
                json!({"authorization": {"a": {"opa": {"rego": "allow { a := numbers.range(1, 100000); some i, j, k; a[i] + a[j] + a[k] == 1; input.request.method == \"GET\" }"}}}}),
            ),
            500,
            "Rego that takes too long already on its trial",
        ),
    ] {
        let gatekeeper = gatekeeper(&world, Settings::default());
        let (guard, _) = gatekeeper.guard(plans(Some(&policy), None));
        let (verdict, _) = sent("GET /").judge(&guard).await;
        assert_eq!(status(&verdict), expected, "{why}");
    }
}

#[tokio::test]
async fn nobody_else_writes_the_headers_of_a_policy() {
    let world = Arc::new(World::default());
    let long = "x".repeat(17 * 1024);
    let headers = json!({
        "x-good": {"plain": {"value": "yes"}},
        "x-error": {"plain": {"expression": "auth.identity.nothing.more"}},
        "x-lines": {"plain": {"value": "a\nb"}},
        "x-long": {"plain": {"value": long}},
        "x-never": {"plain": {"value": "yes"}, "when": [{"predicate": "request.method == 'PUT'"}]},
        "x-unknown": {"plain": {"value": "yes"}, "when": [{"predicate": "auth.identity.nothing.more == 1"}]}});
    let policy = json!({
        "when": [{"predicate": "request.method != 'HEAD'"}],
        "rules": {"authentication": {"all": {"anonymous": {}}}, "response": {"success": {"headers": headers}}}});
    let guard = guard(&world, Some(&policy), None);
    for (request, written, reason) in [
        (
            "GET / | x-error: forged",
            &["x-good"][..],
            "the others fail or do not apply",
        ),
        (
            "PUT / | x-error: forged",
            &["x-good", "x-never"],
            "one more applies",
        ),
        ("HEAD / | x-good: forged", &[], "the whole policy does not apply"),
    ] {
        let Verdict::Allow(passage) = sent(request).judge(&guard).await.0 else {
            panic!("{reason}: refused");
        };
        let names: Vec<&str> = passage
            .request_headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, written, "{reason}");
        let mut withheld: Vec<&str> = passage.withheld.iter().map(HeaderName::as_str).collect();
        withheld.sort_unstable();
        assert_eq!(
            withheld,
            ["x-error", "x-good", "x-lines", "x-long", "x-never", "x-unknown"],
            "{reason}"
        );
    }
}

#[tokio::test]
async fn probes_get_what_policies_promise_and_count_nothing() {
    let world = Arc::new(World::default());
    let limits = json!({"limits": {"l": {"rates": [{"limit": 1, "window": "1h"}],
        "when": [{"predicate": "auth.identity.metadata.name == 'alice'"}]}}});
    let gatekeeper = gatekeeper(&world, Settings::default());
    let (guard, _) = gatekeeper.guard(plans(Some(&keys()), Some(&limits)));
    for (request, expected) in [
        ("GET / | x-fairway-probe: AuthPolicy", 401),
        ("GET / | x-fairway-probe: RateLimitPolicy", 429),
        ("GET / | authorization: APIKEY IAMALICE", 200),
        ("GET / | authorization: APIKEY IAMALICE", 200),
    ] {
        let mut probe = sent(request);
        probe.probe = true;
        assert_eq!(status(&probe.judge(&guard).await.0), expected, "{request}");
    }
    assert_eq!(gatekeeper.counters(sent("GET /").now), []);
    let real = sent("GET / | x-fairway-probe: RateLimitPolicy | authorization: APIKEY IAMALICE");
    assert_eq!(
        status(&real.judge(&guard).await.0),
        200,
        "only a probe is a probe"
    );
    assert_eq!(gatekeeper.counters(real.now).len(), 1);
}

#[tokio::test]
async fn callbacks_are_sent_behind_the_answer() {
    let world = Arc::new(World::default());
    let mut policy = keys();
    policy["rules"]["callbacks"] = json!({"log": {"http": {"url": "http://log", "method": "POST",
        "bodyParameters": {"who": {"selector": "auth.identity.metadata.name"}}, "contentType": "application/json"}}});
    world.page("http://log", 200, json!({}));
    let guard = guard(&world, Some(&policy), None);
    let (verdict, waited) = sent("GET / | authorization: APIKEY IAMBOB").judge(&guard).await;
    assert_eq!((status(&verdict), waited), (200, false));
    for _ in 0..100 {
        if world.count.load(Ordering::SeqCst) > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(lock(&world.asked)[0].body.as_ref(), br#"{"who":"bob"}"#);
}

/// A policy that has turned out to be slow says the same as before, and is waited for instead of holding up whoever serves.
#[tokio::test]
async fn slow_rego_is_waited_for() {
    let world = Arc::new(World::default());
    let rego = "allow { input.request.method == \"GET\"; a := numbers.range(1, 150); some i, j; a[i] + a[j] == 300 }";
    let policy = json!({"rules": {
        "authentication": {"anybody": {"anonymous": {}}}, "authorization": {"slow": {"opa": {"rego": rego}}}}});
    let guard = guard(&world, Some(&policy), None);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let (verdict, waited) = sent("GET /").judge(&guard).await;
        assert_eq!(status(&verdict), 200);
        waits.push(waited);
    }
    assert_eq!((waits[0], waits[11]), (false, true), "{waits:?}");
    assert_eq!(status(&sent("POST /").judge(&guard).await.0), 403);
}
