//! Tokens that are good, tokens that are not, and issuers that change or are away.

use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::json;

use super::*;
use crate::testing::{Issuer, NOW, World};

fn server(world: &Arc<World>) -> Arc<KeyServer> {
    let method = JwtMethod {
        keys: KeySource::Issuer("https://issuer".to_owned()),
        ttl: Duration::ZERO,
        timeout: Duration::from_secs(1),
    };
    // Without its own background task: what happens is then what the test does.
    Arc::new(KeyServer {
        method,
        web: world.clone(),
        realms: world.clone(),
        published: ArcSwapOption::empty(),
        generation: AtomicU64::new(0),
        tokens: Tokens::new(64),
        asking: tokio::sync::Mutex::default(),
        trouble: Mutex::default(),
    })
}

#[tokio::test]
async fn adversarial_tokens_are_refused() {
    let world = Arc::new(World::default());
    let (issuer, stranger) = (Issuer::new("k1"), Issuer::new("k1"));
    issuer.publish(&world);
    let server = server(&world);
    let good = issuer.token(json!({"sub": "alice"}));
    assert!(server.verify_later(&good, NOW).await.is_ok());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (header, payload) = signed.split_once('.').unwrap();
    let es256 = |claims: Value| issuer.token(claims);
    let forged =
        |header: Value, payload: &str| format!("{}.{payload}.{signature}", B64.encode(header.to_string()));
    let hmac = |secret: &[u8]| {
        let message = format!(
            "{}.{payload}",
            B64.encode(json!({"alg": "HS256", "kid": "k1"}).to_string())
        );
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        format!(
            "{message}.{}",
            B64.encode(ring::hmac::sign(&key, message.as_bytes()).as_ref())
        )
    };
    let root = B64.encode(json!({"iss": "https://issuer", "sub": "root", "exp": NOW + 60}).to_string());
    for (token, why) in [
        (String::new(), "nothing"),
        ("a.b.c".to_owned(), "no base64"),
        (format!("{header}.{payload}."), "no signature"),
        (
            forged(json!({"alg": "none"}), payload),
            "alg none with a signature",
        ),
        (
            format!("{}.{payload}.", B64.encode(r#"{"alg":"none"}"#)),
            "alg none",
        ),
        (
            format!("{}.{payload}.", B64.encode(r#"{"alg":"NoNe"}"#)),
            "alg NoNe",
        ),
        (
            hmac(issuer.jwks().to_string().as_bytes()),
            "HS256 with the published keys",
        ),
        (hmac(b""), "HS256 with nothing"),
        (format!("{header}.{root}.{signature}"), "another payload"),
        (
            stranger.token(json!({"sub": "alice"})),
            "another's key under the same name",
        ),
        (
            Issuer::new("k2").token(json!({"sub": "alice"})),
            "a key that nobody has",
        ),
        (
            es256(json!({"sub": "a", "iss": "https://other"})),
            "another issuer",
        ),
        (
            es256(json!({"sub": "a", "iss": "https://issuer/"})),
            "nearly the issuer",
        ),
        (es256(json!({"sub": "a", "exp": NOW})), "expired now"),
        (es256(json!({"sub": "a", "exp": NOW - 3600})), "expired"),
        (es256(json!({"sub": "a", "exp": "never"})), "no time"),
        (es256(json!({"sub": "a", "exp": null})), "no expiry"),
        (es256(json!({"sub": "a", "nbf": NOW + 301})), "not yet"),
        (
            issuer.sign(
                &json!({"alg": "ES256", "kid": "k1", "crit": ["x"]}),
                &json!({"iss": "https://issuer", "exp": NOW + 9}),
            ),
            "crit",
        ),
        (es256(json!({"sub": "x".repeat(40_000)})), "huge"),
        (format!("{good}.{good}"), "two in one"),
    ] {
        let refused = server.verify_later(&token, NOW).await;
        assert!(refused.is_err(), "{why}");
        assert!(!matches!(server.verify(&token, NOW), Proof::Good(_)), "{why}");
    }
    assert!(
        server
            .verify_later(&es256(json!({"nbf": NOW + 299})), NOW)
            .await
            .is_ok(),
        "within the leeway"
    );
}

#[tokio::test]
async fn verified_tokens_are_remembered_while_they_are_good() {
    let world = Arc::new(World::default());
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    old.publish(&world);
    let server = server(&world);
    let token = old.token(json!({"sub": "alice"}));
    assert!(
        matches!(server.verify(&token, NOW), Proof::Ask),
        "keys are not known yet"
    );
    assert!(server.verify_later(&token, NOW).await.is_ok());
    assert!(matches!(server.verify(&token, NOW), Proof::Good(_)));
    assert_eq!(server.tokens.len(), 1);
    assert!(
        matches!(server.verify(&token, NOW + 60), Proof::Bad(_)),
        "it expires, remembered or not"
    );
    // The issuer takes the key back.
    new.publish(&world);
    server.refresh(true).await;
    assert!(
        !matches!(server.verify(&token, NOW), Proof::Good(_)),
        "what a withdrawn key has signed is not good"
    );
    assert!(matches!(
        server.verify(&new.token(json!({"sub": "bob"})), NOW),
        Proof::Good(_)
    ));
    for number in 0..500 {
        let _ = server.verify(&new.token(json!({ "sub": number })), NOW);
    }
    assert!(server.tokens.len() <= 64, "{}", server.tokens.len());
    server.sweep(u128::try_from(NOW + 61).unwrap() * 1_000_000_000);
    assert_eq!(server.tokens.len(), 0);
}

#[tokio::test]
async fn strangers_cannot_make_us_call_somebody() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k");
    issuer.publish(&world);
    let server = server(&world);
    let token = issuer.token(json!({}));
    // Many at once ask once: discovery and keys.
    let all = futures::future::join_all((0..50).map(|_| server.verify_later(&token, NOW))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(world.count.load(Ordering::SeqCst), 2);
    for number in 0..50 {
        let unknown = Issuer::new("unknown").token(json!({ "n": number }));
        assert!(server.verify_later(&unknown, NOW).await.is_err());
    }
    assert_eq!(world.count.load(Ordering::SeqCst), 2, "the next read has to wait");
}

#[tokio::test]
async fn an_issuer_that_is_away_is_told_about_and_keeps_its_keys() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k");
    let server = server(&world);
    let token = issuer.token(json!({}));
    assert!(server.verify_later(&token, NOW).await.is_err(), "fails closed");
    assert!(
        server
            .trouble()
            .is_some_and(|trouble| trouble.contains("https://issuer"))
    );
    issuer.publish(&world);
    server.refresh(true).await;
    assert_eq!(server.trouble(), None);
    assert!(matches!(server.verify(&token, NOW), Proof::Good(_)));
    for (url, status, body, why) in [
        ("https://issuer/jwks", 500, json!({}), "an error"),
        ("https://issuer/jwks", 200, json!("text"), "no JSON"),
        ("https://issuer/jwks", 200, json!({"keys": []}), "no keys"),
        (
            "https://issuer/.well-known/openid-configuration",
            200,
            json!({"issuer": "https://evil", "jwks_uri": "x"}),
            "another issuer",
        ),
    ] {
        world.page(url, status, body);
        server.refresh(true).await;
        assert!(server.trouble().is_some(), "{why}");
        assert!(matches!(server.verify(&token, NOW), Proof::Good(_)), "{why}");
    }
}

#[tokio::test]
async fn another_key_under_the_same_name_is_read_once_in_a_pause() {
    let world = Arc::new(World::default());
    let (old, new) = (Issuer::new("k"), Issuer::new("k"));
    old.publish(&world);
    let server = server(&world);
    assert!(server.verify_later(&old.token(json!({})), NOW).await.is_ok());
    new.publish(&world);
    let (token, forged) = (new.token(json!({})), Issuer::new("k").token(json!({})));
    assert!(
        matches!(server.verify(&token, NOW), Proof::Bad(_)),
        "the keys were read a moment ago"
    );
    let long_ago = Instant::now().checked_sub(PAUSE);
    server.asking.lock().await.last = long_ago;
    assert!(matches!(server.verify(&token, NOW), Proof::Ask));
    assert!(server.verify_later(&token, NOW).await.is_ok());
    assert_eq!(world.count.load(Ordering::SeqCst), 4, "twice discovery and keys");
    // Strangers are told at once, and make us call once in a pause.
    for _ in 0..50 {
        let refused = server.verify_later(&forged, NOW).await.err();
        assert_eq!(refused.as_deref(), Some("the token's signature is wrong"));
    }
    assert_eq!(world.count.load(Ordering::SeqCst), 4);
    server.asking.lock().await.last = long_ago;
    for _ in 0..50 {
        assert!(server.verify_later(&forged, NOW).await.is_err());
    }
    assert_eq!(world.count.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn keys_that_are_not_supported_are_named() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k");
    issuer.publish(&world);
    let server = server(&world);
    let other = json!({"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA", "kid": "other"});
    world.page("https://issuer/jwks", 200, json!({"keys": [other]}));
    assert!(server.verify_later(&issuer.token(json!({})), NOW).await.is_err());
    assert!(server.trouble().is_some_and(|why| why.contains("EC P-521")));
    let mut both = issuer.jwks();
    both["keys"].as_array_mut().unwrap().push(other);
    world.page("https://issuer/jwks", 200, both);
    server.refresh(true).await;
    let refused = server
        .verify_later(&Issuer::new("other").token(json!({})), NOW)
        .await;
    assert_eq!(
        refused.err().as_deref(),
        Some("no key of the issuer fits the token; it has keys that are not supported: EC P-521")
    );
}

#[tokio::test]
async fn a_token_that_was_verified_ends_with_its_session() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k1");
    issuer.publish(&world);
    let server = server(&world);
    let tokens = ["s1", "s2"].map(|session| issuer.token(json!({"sub": "alice", "sid": session})));
    for token in &tokens {
        assert!(server.verify_later(token, NOW).await.is_ok());
        assert!(matches!(server.verify(token, NOW), Proof::Good(_)));
    }
    lock(&world.ended).push("s1".to_owned());
    let never_seen = issuer.token(json!({"sub": "alice", "sid": "s1", "jti": "another"}));
    for (token, expected) in [
        (&tokens[0], Some("the session has ended")),
        (&never_seen, Some("the session has ended")),
        (&tokens[1], None),
    ] {
        let refused = match server.verify(token, NOW) {
            Proof::Good(_) => None,
            Proof::Bad(why) => Some(why),
            Proof::Ask => Some("the keys are known".to_owned()),
        };
        assert_eq!(refused.as_deref(), expected);
        assert_eq!(server.verify_later(token, NOW).await.err().as_deref(), expected);
    }
    lock(&world.ended).clear();
    assert!(
        matches!(server.verify(&tokens[0], NOW), Proof::Good(_)),
        "whoever is let in again is let in at once"
    );
}

#[tokio::test]
async fn a_realm_of_the_installation_is_not_called() {
    let world = Arc::new(World::default());
    let issuer = Issuer::new("k1");
    issuer.publish_here(&world);
    let jwks = lock(&world.realms).insert("https://issuer/jwks".to_owned(), json!({"keys": []}));
    let server = server(&world);
    let token = issuer.token(json!({"sub": "alice"}));
    let refused = server.verify_later(&token, NOW).await;
    assert_eq!(
        refused.err().as_deref(),
        Some("no key of the issuer fits the token")
    );
    assert_eq!(server.trouble(), None, "nobody has signed in yet");
    // Keys are made with the first sign-in, whose token counts at once.
    lock(&world.realms).insert("https://issuer/jwks".to_owned(), jwks.unwrap());
    assert!(server.verify_later(&token, NOW).await.is_ok());
    assert_eq!(world.count.load(Ordering::SeqCst), 0, "somebody was called");
}
