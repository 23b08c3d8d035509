//! What an explanation says of a request, and what becomes of the same request when it is sent.

use std::sync::Arc;

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Guard, Judgement, Passage, Refusal, Step, Verdict};
use fairway_gateway_proxy::{Guards, ProbeRequest, Stage, StageKind};
use fairway_gateway_routes::table::{
    Action, Backend as To, Door, Endpoint, Entry, Filter, HeaderChanges, HeaderMatch, HostPattern, Listener,
    ListenerKey, Match, Names, PathChange, Retry, Rule, Table, Timeouts, ValueMatch,
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::backend::Backend;
use crate::raw;
use crate::rig::{
    Rig, cluster, filtered, http_table, listener, listener_key, options, prefix, rule, rule_key, to,
};

/// Where the inner listener is, so that nobody comes to it but through the outer one.
const INNER: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2)), 0);

fn header(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// Says who it is, and refuses what has no key.
struct Doorman;

impl Doorman {
    fn verdict(asked: &Asked<'_>) -> Verdict {
        if asked.headers.contains_key("key") {
            return Verdict::Allow(Passage {
                withheld: Arc::new([header("x-user")]),
                request_headers: vec![(header("x-user"), "alice".parse().unwrap())],
                ..Passage::default()
            });
        }
        Verdict::Deny(Refusal {
            status: StatusCode::UNAUTHORIZED,
            headers: Vec::new(),
            body: Bytes::new(),
            by: "AuthPolicy/team/keys".into(),
            why: "no key".to_owned(),
        })
    }
}

impl Guard for Doorman {
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a> {
        Judgement::Now(Self::verdict(asked))
    }

    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        let verdict = Self::verdict(asked);
        let step = Step {
            what: "AuthPolicy/team/keys".into(),
            seen: "a key".into(),
            passes: Some(matches!(verdict, Verdict::Allow(_))),
        };
        Box::pin(async move { (verdict, vec![step]) })
    }
}

/// An outer listener that changes requests in three ways, and an inner one that tells them apart by what was changed.
fn table(backend: &Backend) -> Table {
    let inner_key = ListenerKey {
        gateway: "inner".into(),
        ..listener_key()
    };
    let to_web = |name: &str| Rule {
        key: rule_key(name),
        ..rule("web")
    };
    let when = |path: &str, name: &'static str, value: &str, rule: Rule| Entry {
        matches: Match {
            headers: vec![HeaderMatch {
                name: header(name),
                value: ValueMatch::Exact(value.to_owned()),
            }],
            ..prefix(path)
        },
        rule: Arc::new(rule),
    };
    let mut routes = Names::default();
    let plain = |path: &str, name: &str| Entry {
        matches: prefix(path),
        rule: Arc::new(to_web(name)),
    };
    let entries = vec![
        plain("/shop", "by-the-old-path"),
        plain("/v2", "by-the-new-path"),
        when("/", "x-user", "alice", to_web("by-the-policy")),
        when("/", "x-tier", "gold", to_web("by-the-filter")),
        when("/", "x-backend", "one", to_web("by-the-backends-filter")),
        plain("/forged", "by-nothing"),
    ];
    routes.insert(HostPattern::Any, Arc::new(entries));
    let inner = Listener {
        key: inner_key.clone(),
        routes,
    };
    let set = |name: &'static str, value: &str| {
        Filter::RequestHeaders(HeaderChanges {
            set: vec![(header(name), value.parse().unwrap())],
            ..HeaderChanges::default()
        })
    };
    let rewrite = Filter::Rewrite {
        hostname: Some("internal.example".to_owned()),
        path: Some(PathChange::Prefix("/v2".to_owned())),
    };
    let through = |name: &str, filters: Vec<Filter>| Rule {
        key: rule_key(name),
        timeouts: Timeouts {
            request: Some(std::time::Duration::from_secs(5)),
            backend_request: None,
        },
        retry: Some(Retry {
            attempts: 2,
            codes: vec![503],
            backoff: std::time::Duration::from_millis(25),
        }),
        ..filtered("inner", filters)
    };
    let by_backend = Rule {
        action: Action::Forward(vec![To {
            filters: vec![set("x-backend", "one")],
            ..to("inner")
        }]),
        ..through("backend", vec![])
    };
    let rules = vec![
        ("/shop", through("rewritten", vec![rewrite])),
        ("/tier", through("filtered", vec![set("x-tier", "gold")])),
        ("/keys", through("guarded", vec![])),
        ("/forged", through("guarded", vec![])),
        ("/backend", by_backend),
        ("/loop", through("loop", vec![])),
    ];
    let mut ours = cluster("inner", &[]);
    ours.endpoints = vec![Endpoint::Listener(inner_key)];
    let mut table = http_table(rules, vec![ours, cluster("web", &[backend.address])]);
    let mut names = Names::default();
    names.insert(HostPattern::Any, Arc::new(inner));
    table.doors.insert(INNER, Door::Http(names));
    table
}

fn asks(path: &str, headers: &[(&'static str, &str)]) -> ProbeRequest {
    let mut given = HeaderMap::new();
    for (name, value) in headers {
        given.insert(header(name), value.parse().unwrap());
    }
    ProbeRequest {
        method: Method::GET,
        uri: format!("http://a.example:0{path}").parse().unwrap(),
        headers: given,
        client: None,
    }
}

fn rules(stages: &[Stage]) -> Vec<&str> {
    let routes = stages
        .iter()
        .filter(|it| it.kind == StageKind::Route && it.passes == Some(true));
    routes
        .map(|it| {
            it.what
                .trim_start_matches("HTTPRoute team/")
                .trim_end_matches(" rule 0")
        })
        .collect()
}

/// What filters and policies change on the way, the next listener sees changed.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_listener_sees_what_became_of_the_request() {
    let backend = Backend::start("web").await;
    let mut guards = Guards::default();
    guards.insert(rule_key("guarded"), Arc::new(Doorman));
    let rig = Rig::with(table(&backend), &guards, options());
    let key = ("key", "good");
    for (path, headers, expected, status, seen) in [
        (
            "/shop/x",
            &[][..],
            &["rewritten", "by-the-new-path"][..],
            200,
            "GET /v2/x",
        ),
        ("/tier", &[], &["filtered", "by-the-filter"], 200, "x-tier: gold"),
        (
            "/keys",
            &[key],
            &["guarded", "by-the-policy"],
            200,
            "x-user: alice",
        ),
        ("/keys", &[], &["guarded"], 401, ""),
        ("/keys", &[("x-user", "alice")], &["guarded"], 401, ""),
        (
            "/backend",
            &[],
            &["backend", "by-the-backends-filter"],
            200,
            "x-backend: one",
        ),
        ("/loop", &[], &["loop"], 404, ""),
    ] {
        let told = rig.proxy.explain(&asks(path, headers)).await;
        assert_eq!(rules(&told.stages), expected, "{path}: {told:#?}");
        let ends = told.stages.iter().filter(|it| it.passes == Some(false)).count();
        assert_eq!(
            ends,
            usize::from(status != 200),
            "{path}: it ends once: {told:#?}"
        );
        let mut sent = vec![("host", "a.example")];
        sent.extend(headers);
        let answer = raw::ask(rig.door, "GET", path, &sent, "").await;
        assert_eq!(raw::status(&answer), status, "{path}: {answer}");
        assert_eq!(
            told.status,
            (status != 200).then_some(status),
            "{path}: {told:#?}"
        );
        assert!(answer.contains(seen), "{path}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_filters_make_of_a_request_is_told() {
    let backend = Backend::start("web").await;
    let rig = Rig::with(table(&backend), &Guards::default(), options());
    let told = rig.proxy.explain(&asks("/shop/x", &[])).await;
    let seen = |kind: StageKind, what: &str| {
        let found = told
            .stages
            .iter()
            .find(|it| it.kind == kind && it.what.starts_with(what));
        found.map(|it| it.seen.clone()).unwrap_or_default()
    };
    let rewrite = seen(StageKind::Filter, "URLRewrite");
    assert!(
        rewrite.ends_with("now host \"internal.example\", path /v2/x"),
        "{rewrite}"
    );
    let patience = seen(StageKind::Backend, "timeouts");
    assert_eq!(
        patience,
        "the whole answer may take 5s\n2 more attempts after no answer or one of 503, the first 25ms later"
    );
    let told = rig.proxy.explain(&asks("/backend", &[])).await;
    let to_inner = told
        .stages
        .iter()
        .find(|it| it.what.contains("team/inner"))
        .unwrap();
    assert!(
        to_inner
            .seen
            .contains("RequestHeaderModifier of this backend: of what backends get: sets x-backend")
            && to_inner
                .seen
                .contains("asked with host \"a.example:0\", path /backend"),
        "{}",
        to_inner.seen
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_are_told() {
    let own = ListenerKey {
        gateway: "round".into(),
        ..listener_key()
    };
    let mut ours = cluster("inner", &[]);
    ours.endpoints = vec![Endpoint::Listener(own.clone())];
    let mut names = Names::default();
    let round = Listener {
        key: own,
        ..listener(vec![("/", rule("inner"))])
    };
    names.insert(HostPattern::Any, Arc::new(round));
    let mut table = http_table(vec![], vec![ours]);
    table.doors.insert(crate::rig::ANYWHERE, Door::Http(names));
    let rig = Rig::new(table);
    let told = rig.proxy.explain(&asks("/", &[])).await;
    let answer = raw::get(rig.door, "/").await;
    assert_eq!((told.status, raw::status(&answer)), (Some(508), 508), "{told:#?}");
}
