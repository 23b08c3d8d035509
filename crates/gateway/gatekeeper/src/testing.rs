//! What the tests of this crate share: a web and a cluster that answer from tables, requests, and an issuer with real keys.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use fairway_gateway_guard::{Asked, Guard as _, Judgement, Step, Verdict};
use fairway_gateway_policy::auth::SecretRef;
use fairway_gateway_policy::effective::Effective;
use fairway_gateway_policy::object::{Kind, Policy};
use fairway_gateway_policy::{auth, limit};
use fairway_gateway_routes::table::{ListenerKey, RuleKey};
use fairway_outbound::{Message, Reply};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::lock;
use crate::outside::{Cluster, Outside, Realms, Review, Web};
use crate::{Gatekeeper, RuleGuard, RulePlan, Settings};

/// Seconds since 1970 that requests come at.
pub(crate) const NOW: i64 = 1_780_000_000;

/// Everybody else: answers by address, reviews by token or user.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) pages: Mutex<HashMap<String, (u16, Value)>>,
    pub(crate) asked: Mutex<Vec<Message>>,
    pub(crate) reviews: Mutex<Vec<Review>>,
    pub(crate) count: AtomicUsize,
    /// What realms of the installation publish.
    pub(crate) realms: Mutex<HashMap<String, Value>>,
    /// Sessions of those realms that have ended.
    pub(crate) ended: Mutex<Vec<String>>,
}

impl World {
    pub(crate) fn page(&self, url: &str, status: u16, body: Value) {
        lock(&self.pages).insert(url.to_owned(), (status, body));
    }

    pub(crate) fn outside(self: &Arc<Self>) -> Outside {
        Outside {
            web: self.clone(),
            cluster: self.clone(),
            realms: self.clone(),
        }
    }
}

impl Web for World {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Reply, String>> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let page = lock(&self.pages).get(&message.url).cloned();
        lock(&self.asked).push(message);
        async move {
            tokio::task::yield_now().await;
            let (status, body) = page.ok_or("nobody answers")?;
            let body = match body {
                Value::String(text) => text.into_bytes(),
                other => other.to_string().into_bytes(),
            };
            Ok(Reply {
                status,
                body: body.into(),
            })
        }
        .boxed()
    }
}

impl Realms for World {
    fn document(&self, url: &str) -> Option<Value> {
        lock(&self.realms).get(url).cloned()
    }

    fn lapsed(&self, claims: &Value, _: i64) -> Option<&'static str> {
        let is_over = (lock(&self.ended).iter()).any(|it| claims["sid"] == it.as_str());
        is_over.then_some("the session has ended")
    }
}

impl Cluster for World {
    fn secret(&self, secret: SecretRef) -> BoxFuture<'static, Result<Value, String>> {
        let fields = match secret.name.as_str() {
            "shared" => Ok(json!({"token": STANDARD.encode("hush")})),
            "client" => Ok(json!({"clientID": STANDARD.encode("me"), "clientSecret": STANDARD.encode("pw")})),
            name => Err(format!("there is no Secret {name}")),
        };
        async move { fields }.boxed()
    }

    fn review(&self, review: Review) -> BoxFuture<'static, Result<Value, String>> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let is_away = [&review.spec["token"], &review.spec["user"]].contains(&&json!("nobody-answers"));
        let status = match review.kind {
            "TokenReview" if review.spec["token"] == "sa-token" => {
                json!({"authenticated": true, "user": {"username": "system:serviceaccount:a:b"}})
            }
            "TokenReview" => json!({"authenticated": false}),
            _ => json!({"allowed": review.spec["user"] == "alice", "reason": "RBAC"}),
        };
        lock(&self.reviews).push(review);
        async move {
            tokio::task::yield_now().await;
            match is_away {
                true => Err("the API server is away".to_owned()),
                false => Ok(status),
            }
        }
        .boxed()
    }
}

/// An issuer that signs with a key of its own.
pub(crate) struct Issuer {
    key: EcdsaKeyPair,
    pub(crate) id: &'static str,
}

impl Issuer {
    pub(crate) fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).unwrap();
        Self { key, id }
    }

    pub(crate) fn jwks(&self) -> Value {
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": self.id, "x": B64.encode(x), "y": B64.encode(y)}]})
    }

    /// Publishes itself at `https://issuer`.
    pub(crate) fn publish(&self, world: &World) {
        world.page(
            "https://issuer/.well-known/openid-configuration",
            200,
            json!({"issuer": "https://issuer", "jwks_uri": "https://issuer/jwks", "userinfo_endpoint": "https://issuer/me"}),
        );
        world.page("https://issuer/jwks", 200, self.jwks());
    }

    /// Publishes itself at the same place, as a realm of the installation.
    pub(crate) fn publish_here(&self, world: &World) {
        let mut realms = lock(&world.realms);
        realms.insert(
            "https://issuer/.well-known/openid-configuration".to_owned(),
            json!({"issuer": "https://issuer", "jwks_uri": "https://issuer/jwks"}),
        );
        realms.insert("https://issuer/jwks".to_owned(), self.jwks());
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", B64.encode(signature.as_ref()))
    }

    pub(crate) fn token(&self, claims: Value) -> String {
        let mut claims = claims;
        if claims.get("iss").is_none() {
            claims["iss"] = json!("https://issuer");
        }
        if claims.get("exp").is_none() {
            claims["exp"] = json!(NOW + 60);
        }
        self.sign(&json!({"alg": "ES256", "kid": self.id}), &claims)
    }
}

fn rule_key() -> RuleKey {
    RuleKey {
        listener: ListenerKey {
            workspace: "root".into(),
            namespace: "infra".into(),
            gateway: "gw".into(),
            listener: "web".into(),
        },
        kind: "HTTPRoute",
        namespace: "team".into(),
        name: "shop".into(),
        rule: 0,
        section: None,
    }
}

fn effective(kind: Kind, name: &str, spec: &Value) -> Effective {
    let object = json!({"metadata": {"name": name, "namespace": "team"}, "spec": spec});
    let policy = Policy::read("root", kind, &object);
    assert_eq!(policy.invalid, None);
    Effective {
        sources: vec![policy.key.clone()],
        rules: policy.rules,
        broken: vec![],
    }
}

/// Plans from the `spec` of an AuthPolicy and of a RateLimitPolicy.
pub(crate) fn plans(auth: Option<&Value>, limits: Option<&Value>) -> RulePlan {
    let auth = auth.map(|spec| {
        let effective = effective(Kind::AuthPolicy, "api", spec);
        Arc::new(auth::compile(&effective, &[], &auth::Settings::default()))
    });
    let limits = limits.map(|spec| {
        let effective = effective(Kind::RateLimitPolicy, "slow", spec);
        Arc::new(limit::compile(&effective, &rule_key()))
    });
    RulePlan { auth, limits }
}

pub(crate) fn gatekeeper(world: &Arc<World>, settings: Settings) -> Gatekeeper {
    let gatekeeper = Gatekeeper::new(world.outside(), settings);
    let key = |name: &str, value: &str| {
        json!({"kind": "Secret", "metadata": {"name": name, "namespace": "team", "labels": {
                "authorino.kuadrant.io/managed-by": "authorino", "app": "toys"},
                "annotations": {"secret.kuadrant.io/user-id": name}},
            "data": {"api_key": STANDARD.encode(value)}})
    };
    gatekeeper.set_secrets("root", vec![key("alice", "IAMALICE"), key("bob", "IAMBOB")]);
    gatekeeper
}

/// A request: method, path and headers in one line: `GET /x?y | authorization: APIKEY z | x-a: b`.
pub(crate) struct Sent {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    pub(crate) now: u128,
    pub(crate) probe: bool,
}

pub(crate) fn sent(line: &str) -> Sent {
    let mut parts = line.split(" | ");
    let (method, uri) = parts.next().and_then(|first| first.split_once(' ')).unwrap();
    let mut headers = HeaderMap::new();
    for header in parts {
        let (name, value) = header.split_once(": ").unwrap();
        headers.append(
            HeaderName::try_from(name).unwrap(),
            HeaderValue::try_from(value).unwrap(),
        );
    }
    Sent {
        method: method.parse().unwrap(),
        uri: uri.parse().unwrap(),
        headers,
        now: u128::try_from(NOW).unwrap() * 1_000_000_000,
        probe: false,
    }
}

impl Sent {
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            method: &self.method,
            uri: &self.uri,
            host: "shop.example.com",
            scheme: "https",
            version: Version::HTTP_11,
            headers: &self.headers,
            client: IpAddr::from([10, 0, 0, 9]),
            client_port: 4711,
            door: ([192, 0, 2, 1], 443).into(),
            id: "r-1",
            now: self.now,
            probe: self.probe,
        }
    }

    /// What a guard says, and whether it had to wait.
    pub(crate) async fn judge(&self, guard: &RuleGuard) -> (Verdict, bool) {
        let asked = self.asked();
        match guard.judge(&asked) {
            Judgement::Now(verdict) => (verdict, false),
            Judgement::Later(later) => (later.await, true),
        }
    }

    pub(crate) async fn explain(&self, guard: &RuleGuard) -> (Verdict, Vec<Step>) {
        guard.explain(&self.asked()).await
    }
}

/// `200`, or a refusal's status.
pub(crate) fn status(verdict: &Verdict) -> u16 {
    match verdict {
        Verdict::Allow(_) => 200,
        Verdict::Deny(refusal) => refusal.status.as_u16(),
    }
}
