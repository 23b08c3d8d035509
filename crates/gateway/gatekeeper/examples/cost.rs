//! What judging costs: `cargo run --release -p fairway-gateway-gatekeeper --example cost`.
//!
//! Prints nanoseconds of processor time a request for an API key, a token that is known, one that is seen first, a rate limit, and all
//! of it together.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "shared/issuer.rs"]
mod issuer;

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_gateway_gatekeeper::{Gatekeeper, RuleGuard, Settings};
use fairway_gateway_guard::{Asked, Guard as _, Judgement, Verdict};
use fairway_gateway_routes::table::{ListenerKey, RuleKey};
use http::{HeaderMap, HeaderValue, Method, Uri, Version};
use issuer::{Issuer, plan};
use serde_json::{Value, json};

const NOW: u128 = 1_780_000_000_000_000_000;
const ROUNDS: u32 = 200_000;

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
            door: ([192, 0, 2, 1], 443).into(),
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

fn rule() -> RuleKey {
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
    let issuer = Issuer::new();
    let token = |number: u32| {
        Request::new(&issuer.token(&json!({"iss": "https://issuer", "sub": format!("user-{number}"), "exp": 1_790_000_000,
            "iat": 1_780_000_000, "aud": ["toys"], "preferred_username": "alice", "email": "alice@example.com",
            "groups": ["dev", "ops"], "realm_access": {"roles": ["offline_access", "uma_authorization"]}})))
    };
    let gatekeeper = Gatekeeper::new(issuer.outside(), Settings::default());
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
    let guard =
        |auth: Option<&Value>, limits: Option<&Value>| gatekeeper.guard(plan(&rule(), auth, limits)).0;

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
