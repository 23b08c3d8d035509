//! A guard with the real way out: an issuer and a metadata server on loopback, spoken to over HTTP, where that is allowed.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use fairway_gateway_gatekeeper::{
    Cluster, Gatekeeper, NoRealms, Outside, Review, RuleGuard, RulePlan, Settings,
};
use fairway_gateway_guard::{Asked, Guard as _, Judgement, Verdict};
use fairway_gateway_policy::auth::{self, SecretRef};
use fairway_gateway_policy::effective::Effective;
use fairway_gateway_policy::object::{Kind, Policy};
use fairway_outbound::{AllowedHosts, Outbound};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Uri, Version};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

struct Nobody;

impl Cluster for Nobody {
    fn secret(&self, _: SecretRef) -> BoxFuture<'static, Result<Value, String>> {
        async { Err("there are none".to_owned()) }.boxed()
    }

    fn review(&self, _: Review) -> BoxFuture<'static, Result<Value, String>> {
        async { Err("nobody reviews".to_owned()) }.boxed()
    }
}

/// Serves an issuer with one key, and `/geo`. How often it was asked.
async fn serve(key: &EcdsaKeyPair) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let jwks =
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": B64.encode(x), "y": B64.encode(y)}]});
    let configuration = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/jwks")});
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut asked = vec![0; 4096];
            let length = stream.read(&mut asked).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
            let body = match asked.split(' ').nth(1) {
                Some("/.well-known/openid-configuration") => configuration.to_string(),
                Some("/jwks") => jwks.to_string(),
                Some("/geo") => json!({"country": "DE"}).to_string(),
                _ => "?".to_owned(),
            };
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (issuer, count)
}

fn token(key: &EcdsaKeyPair, issuer: &str, expires: u64) -> String {
    let header = B64.encode(json!({"alg": "ES256", "kid": "k"}).to_string());
    let claims = B64.encode(json!({"iss": issuer, "sub": "alice", "exp": expires}).to_string());
    let message = format!("{header}.{claims}");
    let signature = key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
    format!("{message}.{}", B64.encode(signature.as_ref()))
}

fn guard(hosts: &str, issuer: &str) -> Arc<RuleGuard> {
    let object = json!({"metadata": {"name": "api", "namespace": "team"}, "spec": {"rules": {
        "authentication": {"tokens": {"jwt": {"issuerUrl": issuer}}},
        "metadata": {"geo": {"http": {"url": format!("{issuer}/geo")}, "cache": {"key": {"value": "all"}}}},
        "authorization": {"here": {"patternMatching": {"patterns": [{"predicate": "auth.metadata.geo.country == 'DE'"}]}}}}}});
    let policy = Policy::read("root", Kind::AuthPolicy, &object);
    let effective = Effective {
        sources: vec![policy.key.clone()],
        rules: policy.rules,
        broken: vec![],
    };
    let outbound = Outbound::new(AllowedHosts::parse(hosts).unwrap());
    let gatekeeper = Gatekeeper::new(
        Outside::new(Arc::new(outbound), Arc::new(Nobody), Arc::new(NoRealms)),
        Settings::default(),
    );
    let plan = auth::compile(&effective, &[], &auth::Settings::default());
    let (guard, problems) = gatekeeper.guard(RulePlan {
        auth: Some(Arc::new(plan)),
        limits: None,
    });
    assert_eq!(problems, []);
    guard
}

/// The status, and whether somebody had to be asked.
async fn judged(guard: &RuleGuard, token: &str, now: u64) -> (u16, bool) {
    let uri = Uri::from_static("/");
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let asked = Asked {
        method: &Method::GET,
        uri: &uri,
        host: "shop.example.com",
        scheme: "https",
        version: Version::HTTP_11,
        headers: &headers,
        client: IpAddr::from([127, 0, 0, 1]),
        client_port: 1,
        door: ([192, 0, 2, 1], 443).into(),
        id: "r",
        now: u128::from(now) * 1_000_000_000,
        probe: false,
    };
    let (verdict, waited) = match guard.judge(&asked) {
        Judgement::Now(verdict) => (verdict, false),
        Judgement::Later(later) => (later.await, true),
    };
    match verdict {
        Verdict::Allow(_) => (200, waited),
        Verdict::Deny(refusal) => (refusal.status.as_u16(), waited),
    }
}

#[tokio::test]
async fn an_issuer_is_found_and_believed_where_requests_may_go() {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let (issuer, count) = serve(&key).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let good = token(&key, &issuer, now + 60);

    let open = guard("loopback", &issuer);
    assert_eq!(
        judged(&open, &good, now).await,
        (200, true),
        "discovery, keys and metadata over HTTP"
    );
    assert_eq!(
        judged(&open, &good, now).await,
        (200, false),
        "and then from memory"
    );
    assert_eq!(
        judged(&open, &token(&key, &issuer, now - 1), now).await.0,
        401,
        "expired"
    );
    assert_eq!(
        judged(&open, &token(&key, "http://evil", now + 60), now).await.0,
        401,
        "of another"
    );
    let asked = count.load(Ordering::SeqCst);

    // A tenant's policy must not make the platform speak to its own neighbours.
    let shut = guard("external", &issuer);
    assert_eq!(judged(&shut, &good, now).await, (401, true));
    assert!(
        shut.troubles(now)[0].contains("not among the hosts"),
        "{:?}",
        shut.troubles(now)
    );
    assert_eq!(count.load(Ordering::SeqCst), asked, "nobody was asked");
}
