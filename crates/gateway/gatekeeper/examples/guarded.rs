//! A proxy in front of one backend with policies, to be measured: `guarded LISTEN BACKEND WORKERS POLICY [TOKENS]`.
//!
//! The first line that it prints is the `Authorization` header that passes: with `all` it is a token, which the rule for keys was
//! asked about before. With `jwt`, `TOKENS` is a file that many of them are
//! written to, a line each, for those who want to send one that was never seen.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use fairway_fabric::PlainTcp;
use fairway_gateway_gatekeeper::{Cluster, Gatekeeper, NoRealms, Outside, Review, RulePlan, Settings, Web};
use fairway_gateway_guard::Guard;
use fairway_gateway_policy::auth::{self, SecretRef};
use fairway_gateway_policy::effective::Effective;
use fairway_gateway_policy::limit;
use fairway_gateway_policy::object::{Kind, Policy};
use fairway_gateway_proxy::{Guards, Options, Proxy};
use fairway_gateway_routes as routes;
use fairway_gateway_routes::table::{Door, Entry, RuleKey, Table};
use fairway_outbound::{Message, Reply};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// Tokens that are written: more than are remembered, so that one that comes again is as new.
const TOKENS: u32 = 20_000;
const KEY: &str = "a-key-of-thirty-two-characters-7";

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

/// An issuer and its tokens.
struct Issuer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Self { key, random }
    }

    fn world(&self) -> Arc<World> {
        let (x, y) = self.key.public_key().as_ref()[1..].split_at(32);
        let key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": B64.encode(x), "y": B64.encode(y)});
        let pages = [
            (
                "https://issuer/.well-known/openid-configuration".to_owned(),
                json!({"issuer": "https://issuer", "jwks_uri": "https://issuer/jwks"}),
            ),
            ("https://issuer/jwks".to_owned(), json!({"keys": [key]})),
        ];
        Arc::new(World(pages.into()))
    }

    fn token(&self, number: u32) -> String {
        let claims = json!({"iss": "https://issuer", "sub": format!("user-{number}"), "exp": 4_000_000_000_u64,
            "iat": 1_780_000_000, "aud": ["toys"], "preferred_username": "alice", "email": "alice@example.com",
            "groups": ["dev", "ops"]});
        let header = json!({"alg": "ES256", "kid": "k", "typ": "JWT"});
        let message = format!(
            "{}.{}",
            B64.encode(header.to_string()),
            B64.encode(claims.to_string())
        );
        let signature = self.key.sign(&self.random, message.as_bytes()).unwrap();
        format!("Bearer {message}.{}", B64.encode(signature.as_ref()))
    }
}

/// What a policy says, by the name of its case.
fn specs(policy: &str) -> (Option<Value>, Option<Value>) {
    let keys = json!({"rules": {"authentication": {"k": {"apiKey": {"selector": {"matchLabels": {"app": "toys"}}},
        "credentials": {"authorizationHeader": {"prefix": "APIKEY"}}}}}});
    let tokens = json!({"rules": {"authentication": {"t": {"jwt": {"issuerUrl": "https://issuer"}}}}});
    let most = 4_000_000_000_u64;
    let limit = json!({"limits": {"all": {"rates": [{"limit": most, "window": "1h"}]}}});
    let by_user = json!({"limits": {"by-user": {"rates": [{"limit": most, "window": "1h"}],
        "when": [{"predicate": "request.method == 'GET'"}],
        "counters": [{"expression": "auth.identity.sub"}]}}});
    let mut full = keys.clone();
    full["rules"]["authentication"]["t"] = tokens["rules"]["authentication"]["t"].clone();
    full["rules"]["authentication"]["t"]["priority"] = json!(1);
    full["rules"]["authorization"] = json!({"get": {"patternMatching": {"patterns": [
        {"predicate": "request.method == 'GET' && request.url_path.startsWith('/')"}]}}});
    full["rules"]["response"] = json!({"success": {"headers": {"x-user": {"plain": {
        "expression": "auth.identity.sub"}}}}});
    match policy {
        "key" => (Some(keys), None),
        "jwt" => (Some(tokens), None),
        "limit" => (None, Some(limit)),
        "key-limit" => (Some(keys), Some(limit)),
        "all" => (Some(full), Some(by_user)),
        other => panic!("{other:?} is none of key, jwt, limit, key-limit, all"),
    }
}

fn plan(rule: &RuleKey, auth: Option<Value>, limits: Option<Value>) -> RulePlan {
    let effective = |kind: Kind, spec: Value| {
        let object = json!({"metadata": {"name": "p", "namespace": "team"}, "spec": spec});
        let policy = Policy::read("root", kind, &object);
        Effective {
            sources: vec![policy.key.clone()],
            rules: policy.rules,
            broken: vec![],
        }
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
            let plan = limit::compile(&effective(Kind::RateLimitPolicy, spec), rule);
            assert_eq!(plan.problems, []);
            Arc::new(plan)
        }),
    }
}

/// The table of a Gateway with one route, as a build makes it.
fn table(door: SocketAddr, backend: SocketAddr) -> (Table, RuleKey) {
    let mut observed = routes::Observed::default();
    let meta = |name: &str| json!({"namespace": "team", "name": name});
    let objects = [
        (
            routes::Kind::Gateway,
            json!({"metadata": meta("web"), "spec": {"gatewayClassName": "fairway", "listeners": [
                {"name": "http", "port": door.port(), "protocol": "HTTP"}]}}),
        ),
        (
            routes::Kind::HttpRoute,
            json!({"metadata": meta("shop"), "spec": {"parentRefs": [{"name": "web"}], "rules": [
                {"backendRefs": [{"name": "backend", "port": 80}]}]}}),
        ),
        (
            routes::Kind::Service,
            json!({"metadata": meta("backend"), "spec": {"ports": [{"port": 80}]}}),
        ),
        (
            routes::Kind::EndpointSlice,
            json!({"metadata": {"namespace": "team", "name": "s", "labels": {"kubernetes.io/service-name": "backend"}},
                "addressType": "IPv4", "endpoints": [{"addresses": [backend.ip()]}], "ports": [{"port": backend.port()}]}),
        ),
    ];
    for (kind, object) in &objects {
        observed.put("root", *kind, object);
    }
    let settings = routes::Settings {
        classes: [("fairway".to_owned(), routes::settings::CONTROLLER.to_owned())].into(),
        ..routes::Settings::default()
    };
    let table = routes::build(&observed, &settings).table;
    let entry = |door: &Door| match door {
        Door::Http(names) => {
            let listener = names.iter().next().unwrap().1;
            let (_, entries) = listener.routes.iter().next().unwrap();
            entries.first().map(|entry: &Entry| entry.rule.key.clone())
        }
        _ => None,
    };
    let rule = table.doors.values().find_map(entry).unwrap();
    (table, rule)
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, door, backend, workers, policy, rest @ ..] = arguments.as_slice() else {
        panic!("usage: guarded LISTEN BACKEND WORKERS POLICY [TOKENS]");
    };
    let issuer = Issuer::new();
    let world = issuer.world();
    let outside = Outside {
        web: world.clone(),
        cluster: world,
        realms: Arc::new(NoRealms),
    };
    let gatekeeper = Gatekeeper::new(outside, Settings::default());
    let secret = json!({"kind": "Secret", "metadata": {"name": "user", "namespace": "team", "labels": {
            "authorino.kuadrant.io/managed-by": "authorino", "app": "toys"},
            "annotations": {"secret.kuadrant.io/user-id": "user"}},
        "data": {"api_key": STANDARD.encode(KEY)}});
    gatekeeper.set_secrets("root", vec![secret]);
    let (table, rule) = table(door.parse().unwrap(), backend.parse().unwrap());
    let (auth, limits) = specs(policy);
    let (guard, problems) = gatekeeper.guard(plan(&rule, auth, limits));
    assert_eq!(problems, []);
    let mut guards = Guards::default();
    guards.insert(rule, guard as Arc<dyn Guard>);
    if let [file, ..] = rest {
        let tokens: Vec<String> = (0..TOKENS).map(|number| issuer.token(number)).collect();
        std::fs::write(file, tokens.join("\n")).unwrap();
    }
    let options = Options {
        workers: Some(workers.parse().unwrap()),
        ..Options::default()
    };
    let proxy = Proxy::start(options, Arc::new(PlainTcp::default())).unwrap();
    let applied = proxy.serve(Arc::new(table), &guards);
    assert!(applied.is_whole(), "{applied:?}");
    match policy.as_str() {
        "jwt" | "all" => println!("{}", issuer.token(TOKENS)),
        _ => println!("APIKEY {KEY}"),
    }
    std::future::pending::<()>().await;
}
