//! Sign-in with another provider that tells whatever a test wants, and with browsers that are not the one that began.

mod upstream;

use fairway_portal_realm::Params;
use fairway_portal_realm::authorization::answer;

use super::*;
use upstream::{CLIENT, Upstream};

const PROVIDER_SECRET: &str = "/apis/fairway.dev/v1alpha1/credentials/provider.keycloak";
const PROGRAM: [(&str, &str); 7] = [
    ("response_type", "code"),
    ("client_id", "fairway"),
    ("redirect_uri", "http://127.0.0.1:9/callback"),
    ("scope", "openid"),
    ("state", "mine"),
    ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
    ("code_challenge_method", "S256"),
];

/// Root's realm with the provider, alice who is linked with its subject `1`, bob who is not, and carol who is disabled.
fn realms_with(issuer: &str) -> Arc<Realms> {
    let realms = realms();
    realms.write(|all| {
        let settings = json!({"spec": {"requireTOTP": true, "identityProviders": [{
            "name": "keycloak", "displayName": "Our <Keycloak>", "issuer": issuer, "clientID": CLIENT,
        }]}});
        all.take(Fed::Realm, ROOT, "realm", Some(&settings));
        for (name, subject, disabled) in [("alice", "1", false), ("bob", "", false), ("carol", "3", true)] {
            let user = json!({"metadata": {"uid": format!("u-{name}")}, "spec": {
                "disabled": disabled, "identity": {"issuer": issuer, "subject": subject},
            }});
            all.take(Fed::User, ROOT, name, Some(&user));
        }
    });
    realms
}

/// What the API is asked when a user who is known signs in for a program.
fn signing_in() -> Script {
    Script::new()
        .in_any_order()
        .refuse("GET", PROVIDER_SECRET, 404, "NotFound")
        .expect("POST", SESSIONS, 201, json!({}))
        .expect("POST", SESSIONS, 201, json!({}))
        .expect(
            "PATCH",
            "/apis/fairway.dev/v1alpha1/users/alice/status",
            200,
            json!({}),
        )
}

async fn get(provider: &Provider, path: &str, cookie: &str) -> Response<Body> {
    let body = Full::new(Bytes::new()).map_err(|never| match never {});
    let request = Request::get(format!("{BASE}/realms/root/{path}"))
        .header("cookie", cookie)
        .body(body.boxed_unsync())
        .unwrap();
    provider
        .serve(request, IpAddr::from(Ipv4Addr::new(192, 0, 2, 1)))
        .await
}

async fn text(answer: Response<Body>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn location(answer: &Response<Body>) -> (String, Params) {
    let whole = answer.headers()["location"].to_str().unwrap();
    let (place, query) = whole.split_once('?').unwrap();
    (place.to_owned(), Params::parse(query).unwrap())
}

/// The browser that everything here begins in.
fn own() -> String {
    format!("__Host-fairway-form={FORM}")
}

/// Begins a sign-in for a program; what the provider was told.
async fn begin(provider: &Provider, more: &[(&str, &str)]) -> Params {
    let asked = params::query(PROGRAM.into_iter().chain(more.iter().copied()));
    let answer = get(provider, &format!("external/keycloak?{asked}"), &own()).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{}", text(answer).await);
    location(&answer).1
}

async fn come_back(provider: &Provider, cookie: &str, pairs: &[(&str, &str)]) -> Response<Body> {
    let path = answer("external/keycloak/callback", pairs);
    get(provider, &path, cookie).await
}

#[tokio::test]
async fn whoever_the_provider_knows_is_signed_in_like_by_a_password() {
    let upstream = Upstream::start().await;
    let script = signing_in();
    let provider = provider(&script, realms_with(&upstream.issuer));
    let page = get(&provider, &format!("authorize?{}", params::query(PROGRAM)), "").await;
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.contains("form-action 'self' http://127.0.0.1:9;"),
        "{policy}"
    );
    let page = text(page).await;
    assert!(page.contains("Sign in with Our &lt;Keycloak&gt;</a>"), "{page}");
    assert!(
        page.contains("href=\"external/keycloak?response_type=code&amp;"),
        "{page}"
    );

    let asked = begin(&provider, &[]).await;
    for (name, value) in [
        ("client_id", CLIENT),
        (
            "redirect_uri",
            "https://id.example/realms/root/external/keycloak/callback",
        ),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(asked.text(name), value, "{name}");
    }
    upstream.will_say(json!({"sub": "1", "nonce": asked.text("nonce"), "auth_time": now() - 100}));
    let back = [
        ("code", "c"),
        ("state", asked.text("state")),
        ("iss", &upstream.issuer),
    ];
    let answer = come_back(&provider, &own(), &back).await;
    let (place, query) = location(&answer);
    assert_eq!(
        (place.as_str(), query.text("state")),
        ("http://127.0.0.1:9/callback", "mine")
    );
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-fairway-session-root="), "{cookie}");
    // The code came with what belongs to it, and no secret, since there is none.
    let redeemed = Params::parse(&upstream.redeemed()).unwrap();
    assert_eq!(
        secret::digest(redeemed.text("code_verifier")),
        asked.text("code_challenge")
    );
    assert_eq!((redeemed.text("code"), redeemed.text("client_id")), ("c", CLIENT));

    // A second time it is nothing, nor in a browser that has the session.
    for cookie in [own(), format!("{}; {cookie}", own())] {
        let again = come_back(&provider, &cookie, &back).await;
        assert_eq!(again.status(), StatusCode::BAD_REQUEST);
        assert!(again.headers().get("set-cookie").is_none());
    }
    settled().await;
    let made = script.finish();
    let browser = made
        .iter()
        .find(|it| it.body["spec"]["kind"] == "Browser")
        .unwrap();
    let session = &browser.body["spec"];
    assert_eq!(
        (&session["user"], &session["methods"]),
        (&json!("alice"), &json!(["external"]))
    );
    assert!(time::read(session["authenticatedAt"].as_str().unwrap()).unwrap() <= now() - 100);
}

#[tokio::test]
async fn only_the_browser_that_began_comes_back() {
    let upstream = Upstream::start().await;
    let script = Script::new();
    let provider = provider(&script, realms_with(&upstream.issuer));
    let asked = begin(&provider, &[]).await;
    let state = asked.text("state");
    let other = format!("__Host-fairway-form={}", "x".repeat(43));
    for (cookie, state, why) in [
        ("", state, "no cookie"),
        (other.as_str(), state, "the browser of somebody else"),
        (&own(), "made-up", "a state that nobody drew"),
        (&own(), "", "no state"),
    ] {
        let answer = come_back(&provider, cookie, &[("code", "c"), ("state", state)]).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{why}");
    }
    // Looking does not use it up, and neither do other addresses.
    let body = Full::new(Bytes::new()).map_err(|never| match never {});
    let head = Request::head(format!(
        "{BASE}/realms/root/external/keycloak/callback?state={state}"
    ))
    .body(body.boxed_unsync())
    .unwrap();
    let head = provider.serve(head, IpAddr::from(Ipv4Addr::LOCALHOST)).await;
    assert_eq!(head.status(), StatusCode::METHOD_NOT_ALLOWED);
    for path in [
        "external/okta",
        "external/okta/callback",
        "external/keycloak/x",
        "external/",
    ] {
        assert_eq!(
            get(&provider, path, &own()).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    // It is still there, and the provider may refuse, in whatever words.
    let refused = [
        ("error", "access_denied"),
        ("error_description", "<b>"),
        ("state", state),
    ];
    let answer = come_back(&provider, &own(), &refused).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let page = text(answer).await;
    assert!(
        page.contains("Our &lt;Keycloak&gt; has not signed you in") && !page.contains("<b>"),
        "{page}"
    );
    assert!(
        page.contains("href=\"https://id.example/realms/root/authorize?response_type=code&amp;"),
        "{page}"
    );
    assert!(upstream.redeemed().is_empty());
    script.finish();
}

#[tokio::test]
async fn a_program_that_is_not_known_sends_nobody_to_a_provider() {
    let upstream = Upstream::start().await;
    let provider = provider(&Script::new(), realms_with(&upstream.issuer));
    let with = |name: &str, value: &str| {
        let pairs = PROGRAM.into_iter().filter(|(it, _)| *it != name);
        format!(
            "external/keycloak?{}",
            params::query(pairs.chain([(name, value)]))
        )
    };
    let evil = get(&provider, &with("redirect_uri", "https://evil.example/"), &own()).await;
    assert_eq!(evil.status(), StatusCode::BAD_REQUEST);
    let silent = get(&provider, &with("prompt", "none"), &own()).await;
    assert_eq!(location(&silent).1.text("error"), "login_required");
    let long = get(&provider, &with("x", &"y".repeat(10_000)), &own()).await;
    assert_eq!(long.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_a_token_must_say() {
    let upstream = Upstream::start().await;
    let realms = realms_with(&upstream.issuer);
    for (change, why) in [
        (json!({"nonce": "another"}), "the answer to another question"),
        (json!({"nonce": null}), "the answer to none"),
        (json!({"iss": "https://other.example"}), "another issuer"),
        (json!({"aud": "other"}), "for another program"),
        (
            json!({"aud": [CLIENT, "other"], "azp": "other"}),
            "asked for by another program",
        ),
        (json!({"exp": now() - 1}), "over"),
        (json!({"nbf": now() + 3_600}), "not yet"),
        (json!({"sub": ""}), "nobody"),
    ] {
        let script = Script::new().refuse("GET", PROVIDER_SECRET, 404, "NotFound");
        let provider = provider(&script, Arc::clone(&realms));
        let asked = begin(&provider, &[]).await;
        let mut said = json!({"sub": "1", "nonce": asked.text("nonce")});
        for (claim, value) in change.as_object().unwrap() {
            said[claim] = value.clone();
        }
        upstream.will_say(said);
        let back = [("code", "c"), ("state", asked.text("state"))];
        let answer = come_back(&provider, &own(), &back).await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY, "{why}");
        assert!(answer.headers().get("set-cookie").is_none(), "{why}");
        script.finish();
    }
}

#[tokio::test]
async fn a_hostile_provider_signs_nobody_in() {
    for (tell, why) in [
        (upstream::Tale::Unsigned, "without a signature"),
        (upstream::Tale::SharedSecret, "signed with what everybody knows"),
        (
            upstream::Tale::OtherKey,
            "signed with a key that it does not publish",
        ),
        (upstream::Tale::Endless, "an answer without end"),
        (upstream::Tale::NoToken, "no token"),
        (upstream::Tale::Nonsense, "no JSON"),
        (upstream::Tale::Elsewhere, "the code is to be sent elsewhere"),
        (upstream::Tale::Error, "an error"),
    ] {
        let upstream = Upstream::start().await;
        let script = Script::new().refuse("GET", PROVIDER_SECRET, 404, "NotFound");
        let provider = provider(&script, realms_with(&upstream.issuer));
        let asked = begin(&provider, &[]).await;
        upstream.will_say(json!({"sub": "1", "nonce": asked.text("nonce")}));
        upstream.will_lie(tell);
        let back = [("code", "c"), ("state", asked.text("state"))];
        let answer = come_back(&provider, &own(), &back).await;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY, "{why}");
        assert!(answer.headers().get("set-cookie").is_none(), "{why}");
        script.finish();
    }
}

#[tokio::test]
async fn who_is_not_let_in_is_told_what_an_administrator_does() {
    let upstream = Upstream::start().await;
    let realms = realms_with(&upstream.issuer);
    for (subject, name, told, remedy) in [
        ("3", "carol", "your user here is disabled", ""),
        (
            "9",
            "bob",
            "The name bob belongs to somebody here",
            "metadata: {name: bob}",
        ),
        (
            "9",
            "Alice",
            "The name alice belongs to somebody here",
            "metadata: {name: alice}",
        ),
        (
            "9",
            "admin",
            "The name admin belongs to somebody here",
            "metadata: {name: admin}",
        ),
        (
            "9",
            "<i>@x",
            "&quot;&lt;i&gt;@x&quot;, cannot be that of a user",
            "metadata: {name: NAME}",
        ),
    ] {
        let script = Script::new().refuse("GET", PROVIDER_SECRET, 404, "NotFound");
        let provider = provider(&script, Arc::clone(&realms));
        let asked = begin(&provider, &[]).await;
        upstream.will_say(json!({"sub": subject, "preferred_username": name, "nonce": asked.text("nonce")}));
        let back = [("code", "c"), ("state", asked.text("state"))];
        let answer = come_back(&provider, &own(), &back).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{name}");
        assert!(answer.headers().get("set-cookie").is_none(), "{name}");
        let page = text(answer).await;
        assert!(
            page.contains(told) && page.contains(remedy) && !page.contains("<i>"),
            "{page}"
        );
        let identity = "&quot;subject&quot;:&quot;9&quot;";
        assert_eq!(page.contains(identity), !remedy.is_empty(), "{page}");
        script.finish();
    }
}

#[tokio::test]
async fn who_must_prove_anew_who_he_is_does() {
    let upstream = Upstream::start().await;
    let realms = realms_with(&upstream.issuer);
    for (more, age, is_in) in [
        (("prompt", "login"), 600, false),
        (("prompt", "login"), 0, true),
        (("max_age", "60"), 600, false),
        (("max_age", "3600"), 600, true),
    ] {
        let script = match is_in {
            true => signing_in(),
            false => Script::new().refuse("GET", PROVIDER_SECRET, 404, "NotFound"),
        };
        let provider = provider(&script, Arc::clone(&realms));
        let asked = begin(&provider, &[more]).await;
        assert_eq!(asked.text(more.0), more.1);
        upstream.will_say(json!({"sub": "1", "nonce": asked.text("nonce"), "auth_time": now() - age}));
        let back = [("code", "c"), ("state", asked.text("state"))];
        let answer = come_back(&provider, &own(), &back).await;
        let expected = if is_in {
            StatusCode::SEE_OTHER
        } else {
            StatusCode::FORBIDDEN
        };
        assert_eq!(answer.status(), expected, "{more:?} {age}");
        settled().await;
        script.finish();
    }
}

#[tokio::test]
async fn a_device_goes_on_where_it_was() {
    let upstream = Upstream::start().await;
    let script = Script::new()
        .in_any_order()
        .expect(
            "GET",
            PROVIDER_SECRET,
            200,
            json!({"spec": {"clientSecret": "s e"}}),
        )
        .expect("POST", SESSIONS, 201, json!({}))
        .expect(
            "PATCH",
            "/apis/fairway.dev/v1alpha1/users/alice/status",
            200,
            json!({}),
        );
    let provider = provider(&script, realms_with(&upstream.issuer));
    let page = text(get(&provider, "device?user_code=BCDF-GHJK", "").await).await;
    assert!(
        page.contains("href=\"external/keycloak?user_code=BCDF-GHJK\""),
        "{page}"
    );
    let begun = get(&provider, "external/keycloak?user_code=BCDF-GHJK", "").await;
    // A browser that was never here gets what it is known by.
    let cookie = begun.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let (_, asked) = location(&begun);
    upstream.will_say(json!({"sub": "1", "nonce": asked.text("nonce")}));
    let back = [("code", "c"), ("state", asked.text("state"))];
    let answer = come_back(&provider, &cookie, &back).await;
    let (place, query) = location(&answer);
    assert_eq!(place, "https://id.example/realms/root/device");
    assert_eq!(query.text("user_code"), "BCDF-GHJK");
    assert_eq!(
        upstream.basic(),
        "Basic ZmFpcndheTpzK2U=",
        "the secret, encoded as in a form"
    );
    settled().await;
    script.finish();
}

#[tokio::test]
async fn providers_are_called_where_the_operator_lets_them_be() {
    let upstream = Upstream::start().await;
    let script = Script::new();
    let provider = Provider::new(Options {
        base: BASE.to_owned(),
        portal: "https://portal.example".to_owned(),
        realms: realms_with(&upstream.issuer),
        clients: script.clients(),
        entries: script.clients(),
        allowed_hosts: AllowedHosts::default(),
    })
    .unwrap();
    let asked = params::query(PROGRAM);
    let answer = get(&provider, &format!("external/keycloak?{asked}"), &own()).await;
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert_eq!(upstream.calls(), 0);
}
