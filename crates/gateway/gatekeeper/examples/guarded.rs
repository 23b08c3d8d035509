//! A proxy in front of one backend with policies, to be measured: `guarded LISTEN BACKEND WORKERS POLICY [TOKENS]`.
//!
//! The first line that it prints is the `Authorization` header that passes: with `all` it is a token, which the rule for keys was
//! asked about before. With `jwt`, `TOKENS` is a file that many of them are
//! written to, a line each, for those who want to send one that was never seen.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "shared/issuer.rs"]
mod issuer;

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_fabric::PlainTcp;
use fairway_gateway_gatekeeper::{Gatekeeper, Settings};
use fairway_gateway_guard::Guard;
use fairway_gateway_proxy::{Guards, Options, Proxy};
use fairway_gateway_routes as routes;
use fairway_gateway_routes::table::{Door, Entry, RuleKey, Table};
use issuer::{Issuer, plan};
use serde_json::{Value, json};

/// Tokens that are written: more than are remembered, so that one that comes again is as new.
const TOKENS: u32 = 20_000;
const KEY: &str = "a-key-of-thirty-two-characters-7";

fn token(issuer: &Issuer, number: u32) -> String {
    issuer.token(
        &json!({"iss": "https://issuer", "sub": format!("user-{number}"), "exp": 4_000_000_000_u64,
            "iat": 1_780_000_000, "aud": ["toys"], "preferred_username": "alice", "email": "alice@example.com",
            "groups": ["dev", "ops"]}),
    )
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
    let gatekeeper = Gatekeeper::new(issuer.outside(), Settings::default());
    let secret = json!({"kind": "Secret", "metadata": {"name": "user", "namespace": "team", "labels": {
            "authorino.kuadrant.io/managed-by": "authorino", "app": "toys"},
            "annotations": {"secret.kuadrant.io/user-id": "user"}},
        "data": {"api_key": STANDARD.encode(KEY)}});
    gatekeeper.set_secrets("root", vec![secret]);
    let (table, rule) = table(door.parse().unwrap(), backend.parse().unwrap());
    let (auth, limits) = specs(policy);
    let (guard, problems) = gatekeeper.guard(plan(&rule, auth.as_ref(), limits.as_ref()));
    assert_eq!(problems, []);
    let mut guards = Guards::default();
    guards.insert(rule, guard as Arc<dyn Guard>);
    if let [file, ..] = rest {
        let tokens: Vec<String> = (0..TOKENS).map(|number| token(&issuer, number)).collect();
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
        "jwt" | "all" => println!("{}", token(&issuer, TOKENS)),
        _ => println!("APIKEY {KEY}"),
    }
    std::future::pending::<()>().await;
}
