//! What judging costs: `cargo run --release -p fairway-gateway-gatekeeper --example cost`.
//!
//! Prints nanoseconds of processor time a request for an API key, a token that is known, one that is seen first, a rate limit, and all
//! of it together.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use fairway_gateway_gatekeeper::{
    Cluster, Gatekeeper, NoRealms, Outside, Review, RuleGuard, RulePlan, Settings, Web,
};
use fairway_gateway_guard::{Asked, Guard as _, Judgement, Verdict};
use fairway_gateway_policy::auth::{self, SecretRef};
use fairway_gateway_policy::effective::Effective;
use fairway_gateway_policy::limit;
use fairway_gateway_policy::object::{Kind, Policy};
use fairway_gateway_routes::table::{ListenerKey, RuleKey};
use fairway_outbound::{Message, Reply};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

const NOW: u128 = 1_780_000_000_000_000_000;
const ROUNDS: u32 = 200_000;

/// The issuer's documents, and nobody else.
struct World(BTreeMap<String, Value>);

impl Web for World {
    fn send(&self, message: Message) -> BoxFuture<'static, Result<Reply, String>> {
        let page = self.0.get(&message.url).map(ToString::to_string);
        async move {
            Ok(Reply {
                status: 200,
                body: page.ok_or("nobody")?.into(),
            })
        }
        .boxed()
    }
}

impl Cluster for World {
    fn secret(&self, _: SecretRef) -> BoxFuture<'static, Result<Value, String>> {
        async { Err("there are none".to_owned()) }.boxed()
    }

    fn review(&self, _: Review) -> BoxFuture<'static, Result<Value, String>> {
        async { Err("nobody reviews".to_owned()) }.boxed()
    }
}

struct Request {
    uri: Uri,
    headers: HeaderMap,
}

impl Request {
    fn new(authorization: &str) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "shop.example.com"),
            ("user-agent", "curl/8.0"),
            ("accept", "*/*"),
            ("x-request-id", "6e2b1f9c"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert("authorization", authorization.parse().unwrap());
        Self {
            uri: Uri::from_static("/toys/7?color=red"),
            headers,
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            method: &Method::GET,
            uri: &self.uri,
            host: "shop.example.com",
            scheme: "https",
            version: Version::HTTP_11,
            headers: &self.headers,
            client: IpAddr::from([10, 0, 0, 9]),
            client_port: 4711,
            id: "6e2b1f9c",
            now: NOW,
            probe: false,
        }
    }

    async fn passes(&self, guard: &RuleGuard) -> bool {
        let asked = self.asked();
        let verdict = match guard.judge(&asked) {
            Judgement::Now(verdict) => verdict,
            Judgement::Later(later) => later.await,
        };
        matches!(verdict, Verdict::Allow(_))
    }
}

fn effective(kind: Kind, spec: &Value) -> Effective {
    let object = json!({"metadata": {"name": "p", "namespace": "team"}, "spec": spec});
    let policy = Policy::read("root", kind, &object);
    Effective {
        sources: vec![policy.key.clone()],
        rules: policy.rules,
        broken: vec![],
    }
}

fn plan(auth: Option<&Value>, limits: Option<&Value>) -> RulePlan {
    let path = RuleKey {
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
    };
    RulePlan {
        auth: auth.map(|spec| {
            let plan = auth::compile(
                &effective(Kind::AuthPolicy, spec),
                &[],
                &auth::Settings::default(),
            );
            assert_eq!(plan.problems, []);
            Arc::new(plan)
        }),
        limits: limits.map(|spec| {
            let plan = limit::compile(&effective(Kind::RateLimitPolicy, spec), &path);
            assert_eq!(plan.problems, []);
            Arc::new(plan)
        }),
    }
}

/// Nanoseconds that this thread has worked.
fn cpu() -> u128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u128::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u128::try_from(time.tv_nsec).unwrap()
}

async fn measure(what: &str, guard: &RuleGuard, requests: &[Request], rounds: u32) {
    let start = cpu();
    for round in 0..rounds {
        assert!(
            requests[round as usize % requests.len()].passes(guard).await,
            "{what}"
        );
    }
    println!("{what:<48} {:>7} ns", (cpu() - start) / u128::from(rounds));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let jwks =
        json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": B64.encode(x), "y": B64.encode(y)}]});
    let token = |number: u32| {
        let claims = json!({"iss": "https://issuer", "sub": format!("user-{number}"), "exp": 1_790_000_000,
            "iat": 1_780_000_000, "aud": ["toys"], "preferred_username": "alice", "email": "alice@example.com",
            "groups": ["dev", "ops"], "realm_access": {"roles": ["offline_access", "uma_authorization"]}});
        let header = json!({"alg": "ES256", "kid": "k", "typ": "JWT"});
        let message = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let signature = key.sign(&random, message.as_bytes()).unwrap();
        Request::new(&format!("Bearer {message}.{}", B64.encode(signature.as_ref())))
    };
    let pages = [
        (
            "https://issuer/.well-known/openid-configuration".to_owned(),
            json!({"issuer": "https://issuer", "jwks_uri": "https://issuer/jwks"}),
        ),
        ("https://issuer/jwks".to_owned(), jwks),
    ];
    let world = Arc::new(World(pages.into()));
    let outside = Outside {
        web: world.clone(),
        cluster: world,
        realms: Arc::new(NoRealms),
    };
    let gatekeeper = Gatekeeper::new(outside, Settings::default());
    let secrets = (0..1000).map(|number| {
        json!({"kind": "Secret", "metadata": {"name": format!("user-{number}"), "namespace": "team", "labels": {
                "authorino.kuadrant.io/managed-by": "authorino", "app": "toys"},
                "annotations": {"secret.kuadrant.io/user-id": format!("user-{number}")}},
            "data": {"api_key": STANDARD.encode(format!("a-key-of-thirty-two-characters-{number}"))}})
    });
    gatekeeper.set_secrets("root", secrets.collect());
    let keys = json!({"rules": {"authentication": {"k": {"apiKey": {"selector": {"matchLabels": {"app": "toys"}}},
        "credentials": {"authorizationHeader": {"prefix": "APIKEY"}}}}}});
    let tokens = json!({"rules": {"authentication": {"t": {"jwt": {"issuerUrl": "https://issuer"}}}}});
    let most = 4_000_000_000_u64;
    let one = json!({"limits": {"all": {"rates": [{"limit": most, "window": "1h"}]}}});
    let by_user = json!({"limits": {"by-user": {"rates": [{"limit": most, "window": "1h"}],
        "when": [{"predicate": "request.method == 'GET'"}],
        "counters": [{"expression": "auth.identity.metadata.annotations['secret.kuadrant.io/user-id']"}]}}});
    let by_sub = json!({"limits": {"by-sub": {"rates": [{"limit": most, "window": "1h"}],
        "counters": [{"expression": "auth.identity.sub"}]}}});
    let mut full = keys.clone();
    full["rules"]["authorization"] = json!({"get": {"patternMatching": {"patterns": [
        {"predicate": "request.method == 'GET' && request.url_path.startsWith('/toys')"}]}}});
    full["rules"]["response"] = json!({"success": {"headers": {"x-user": {"plain": {
        "expression": "auth.identity.metadata.annotations['secret.kuadrant.io/user-id']"}}}}});
    let guard = |auth: Option<&Value>, limits: Option<&Value>| gatekeeper.guard(plan(auth, limits)).0;

    let with_keys: Vec<Request> = (0..1000)
        .map(|number| Request::new(&format!("APIKEY a-key-of-thirty-two-characters-{number}")))
        .collect();
    measure("no policy", &guard(None, None), &with_keys, ROUNDS).await;
    measure("API key", &guard(Some(&keys), None), &with_keys, ROUNDS).await;
    measure("rate limit", &guard(None, Some(&one)), &with_keys, ROUNDS).await;
    measure(
        "API key + rate limit",
        &guard(Some(&keys), Some(&one)),
        &with_keys,
        ROUNDS,
    )
    .await;
    measure(
        "API key + rate limit by user (CEL)",
        &guard(Some(&keys), Some(&by_user)),
        &with_keys,
        ROUNDS,
    )
    .await;
    measure(
        "API key + CEL + header + rate limit by user",
        &guard(Some(&full), Some(&by_user)),
        &with_keys,
        ROUNDS,
    )
    .await;

    let judged = guard(Some(&tokens), None);
    let many: Vec<Request> = (0..20_000).map(token).collect();
    measure("JWT, the first (keys are fetched)", &judged, &many[..1], 1).await;
    measure("JWT, seen first (ES256)", &judged, &many[1..], 19_999).await;
    measure("JWT, known", &judged, &many[19_000..19_500], ROUNDS).await;
    measure(
        "JWT, known + rate limit by subject",
        &guard(Some(&tokens), Some(&by_sub)),
        &many[19_000..19_500],
        ROUNDS,
    )
    .await;
}
