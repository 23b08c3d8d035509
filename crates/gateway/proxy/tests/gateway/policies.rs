//! Guards between route and backend: what they say is done, and what they fail at is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Guard, Judgement, Passage, Refusal, Step, Verdict};
use fairway_gateway_proxy::{AccessLog, Guards, Options, Probe, ProbeRequest, StageKind};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, http_table, listener_key, options, rule, rule_key};

/// Lets `key: good` through, and tells the backend who it was.
#[derive(Default)]
struct Keys {
    asked: AtomicUsize,
    later: bool,
}

impl Keys {
    fn verdict(&self, asked: &Asked<'_>) -> Verdict {
        if !asked.probe {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        if asked.headers.get("key").is_some_and(|key| key == "good") {
            Verdict::Allow(Passage {
                withheld: Arc::new([
                    HeaderName::from_static("x-user"),
                    HeaderName::from_static("x-role"),
                ]),
                request_headers: vec![(HeaderName::from_static("x-user"), "alice".parse().unwrap())],
                response_headers: vec![(HeaderName::from_static("x-left"), "9".parse().unwrap())],
                told: vec![("user", "alice".into())],
                standing: None,
            })
        } else {
            Verdict::Deny(Refusal {
                status: StatusCode::UNAUTHORIZED,
                headers: vec![(
                    HeaderName::from_static("www-authenticate"),
                    "key".parse().unwrap(),
                )],
                body: Bytes::from_static(b"no key"),
                by: "AuthPolicy/team/keys".into(),
                why: format!(
                    "no good key from {} for {}{}",
                    asked.client, asked.host, asked.uri
                ),
            })
        }
    }
}

impl Guard for Keys {
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a> {
        if self.later {
            return Judgement::Later(Box::pin(async move {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                self.verdict(asked)
            }));
        }
        Judgement::Now(self.verdict(asked))
    }

    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        Box::pin(async move {
            let step = Step {
                what: "AuthPolicy/team/keys".into(),
                seen: format!("key = {:?}", asked.headers.get("key")),
                passes: None,
            };
            (self.verdict(asked), vec![step])
        })
    }
}

/// Believes what headers say of where a request came from, as policies' expressions do.
struct Origins;

impl Origins {
    fn verdict(asked: &Asked<'_>) -> Verdict {
        let of = |name: &str| {
            let all = asked.headers.get_all(name).iter();
            let all: Vec<&str> = all.map(|value| value.to_str().unwrap()).collect();
            all.join(",")
        };
        Verdict::Deny(Refusal {
            status: StatusCode::FORBIDDEN,
            headers: Vec::new(),
            body: Bytes::new(),
            by: "AuthPolicy/team/origins".into(),
            why: format!(
                "for={} proto={} real={} forwarded={} alike={} id={}",
                of("x-forwarded-for"),
                of("x-forwarded-proto"),
                of("x-real-ip"),
                of("forwarded"),
                of("x_forwarded_for"),
                of("x-request-id") == asked.id,
            ),
        })
    }
}

impl Guard for Origins {
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a> {
        Judgement::Now(Self::verdict(asked))
    }

    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        Box::pin(async move { (Self::verdict(asked), Vec::new()) })
    }
}

struct Panics;

impl Guard for Panics {
    fn judge<'a>(&'a self, _: &'a Asked<'a>) -> Judgement<'a> {
        panic!("a policy with a mistake")
    }

    fn explain<'a>(&'a self, _: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        panic!("a policy with a mistake")
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Scene {
    backend: Backend,
    rig: Rig,
    keys: Arc<Keys>,
    lines: Lines,
}

async fn scene() -> Scene {
    let backend = Backend::start("web").await;
    let mut guards = Guards::default();
    let keys = Arc::new(Keys::default());
    guards.insert(rule_key("keys"), Arc::clone(&keys) as Arc<dyn Guard>);
    guards.insert(
        rule_key("later"),
        Arc::new(Keys {
            later: true,
            ..Keys::default()
        }),
    );
    guards.insert(rule_key("panics"), Arc::new(Panics));
    guards.insert_missing(rule_key("missing"), "the key server has no certificate");
    let to_web = |name| fairway_gateway_routes::table::Rule {
        key: rule_key(name),
        ..rule("web")
    };
    let rules = vec![
        ("/keys", to_web("keys")),
        ("/later", to_web("later")),
        ("/panics", to_web("panics")),
        ("/missing", to_web("missing")),
        ("/sp%65lled", to_web("keys")),
        ("/", to_web("open")),
    ];
    let lines = Lines::default();
    let options = Options {
        access_log: Some(AccessLog::new(lines.clone())),
        ..options()
    };
    let rig = Rig::with(
        http_table(rules, vec![cluster("web", &[backend.address])]),
        &guards,
        options,
    );
    Scene {
        backend,
        rig,
        keys,
        lines,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts() {
    let Scene {
        backend, rig, lines, ..
    } = scene().await;
    for (path, key, status, seen, reason) in [
        ("/keys", "good", 200, 1, "a good key"),
        ("/keys", "bad", 401, 0, "a bad one"),
        ("/keys/../keys", "bad", 401, 0, "by a detour"),
        ("//keys", "bad", 401, 0, "by another"),
        ("/k%65ys", "bad", 401, 0, "spelled otherwise"),
        ("/k%65ys", "good", 200, 1, "spelled otherwise, with a good key"),
        ("/sp%65lled", "bad", 401, 0, "the rule spells it otherwise"),
        ("/spelled/x", "bad", 401, 0, "and is meant plain"),
        (
            "/%6bey%2573",
            "bad",
            200,
            1,
            "another path, whatever is behind it may make of it",
        ),
        ("/later", "good", 200, 1, "a good key, after a wait"),
        ("/later", "bad", 401, 0, "a bad one, after a wait"),
        ("/panics", "good", 500, 0, "a guard that panics"),
        ("/missing", "good", 500, 0, "a guard that is missing"),
        ("/open", "bad", 200, 1, "no guard"),
    ] {
        let before = backend.seen();
        // What may be a key is not for logs.
        let path = &format!("{path}?api_key=secret");
        let headers = [
            ("host", "a"),
            (
                "traceparent",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ),
            ("key", key),
            ("x-user", "forged"),
            ("x-role", "forged"),
            ("X_Role", "forged"),
        ];
        let answer = raw::ask(rig.door, "GET", path, &headers, "").await;
        assert_eq!(
            (raw::status(&answer), backend.seen() - before),
            (status, seen),
            "{reason}: {answer}"
        );
        if path.starts_with("/k%65ys") && status == 200 {
            assert!(answer.contains("web GET /keys"), "{reason}: {answer}");
        }
        if status == 200 && !path.starts_with("/open") && !path.starts_with("/%6bey%2573") {
            assert!(
                answer.contains("x-user: alice") && !answer.contains("forged"),
                "{reason}: {answer}"
            );
            assert!(answer.contains("x-left: 9"), "{reason}: {answer}");
        }
    }
    assert_eq!(
        rig.metric("fairway_gateway_policy_denials_total{policy=\"AuthPolicy/team/keys\"}"),
        7
    );
    assert_eq!(rig.metric("fairway_gateway_guard_failures_total"), 2);
    let judged = |route: &str, verdict: &str| {
        let labels = "workspace=\"root\",gateway=\"team/gate\",listener=\"http\"";
        let name = "fairway_gateway_policy_requests_total";
        rig.metric(&format!(
            "{name}{{{labels},route=\"HTTPRoute/team/{route}\",rule=\"0\",verdict=\"{verdict}\"}}"
        ))
    };
    assert_eq!((judged("keys", "allowed"), judged("keys", "denied")), (2, 6));
    assert_eq!((judged("later", "allowed"), judged("later", "denied")), (1, 1));
    assert_eq!((judged("panics", "failed"), judged("missing", "failed")), (1, 1));
    assert_eq!(judged("open", "allowed"), 0, "nobody judges there");
    let metrics = rig.proxy.metrics();
    assert!(
        metrics.contains("route=\"HTTPRoute/team/keys\",rule=\"0\",code=\"4xx\"} 6"),
        "{metrics}"
    );
    rig.proxy.shutdown(std::time::Duration::from_secs(5)).await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let logged: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(logged.len(), 14, "{text}");
    let paths: Vec<&str> = logged.iter().filter_map(|it| it["path"].as_str()).collect();
    assert!(
        paths.len() == 14 && paths.iter().all(|path| !path.contains('?')),
        "{paths:?}"
    );
    assert_eq!(logged[0]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(logged[0]["user"], "alice");
    assert_eq!(
        (logged[1]["status"].as_u64(), logged[1]["denied_by"].as_str()),
        (Some(401), Some("AuthPolicy/team/keys"))
    );
    assert_eq!(logged[0]["route"], "HTTPRoute/team/keys");
    assert!(
        logged[0]["upstream"].is_string() && logged[0]["duration_us"].is_u64(),
        "{text}"
    );
}

fn asks(path: &str, port: u16, key: Option<&'static str>) -> ProbeRequest {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        headers.insert("key", key.parse().unwrap());
    }
    ProbeRequest {
        method: Method::GET,
        uri: format!("http://a.example:{port}{path}").parse().unwrap(),
        headers,
        client: Some([192, 0, 2, 1].into()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_explanations_touch_nothing() {
    let Scene {
        backend, rig, keys, ..
    } = scene().await;
    let probe = |path: &'static str, key| rig.proxy.probe_here(asks(path, 80, key));
    match probe("/keys", None).await {
        Probe::Denied { rule, refusal } => {
            assert_eq!((rule, refusal.status.as_u16()), (rule_key("keys"), 401));
            assert!(
                refusal.why.contains("192.0.2.1") && refusal.why.contains("a.example"),
                "{}",
                refusal.why
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        probe("/keys", Some("good")).await,
        Probe::Allowed { .. }
    ));
    assert!(matches!(probe("/panics", None).await, Probe::Denied { refusal, .. } if refusal.status == 500));
    assert!(matches!(probe("/open", None).await, Probe::Allowed { .. }));
    assert!(matches!(probe("/%6beys", None).await, Probe::Denied { rule, .. } if rule == rule_key("keys")));
    assert!(matches!(probe("/../x", None).await, Probe::Malformed(_)));
    // The door is bound to any port; the table says 0.
    let told = rig.proxy.explain(&asks("/keys/x", 0, None)).await;
    let kinds: Vec<StageKind> = told.stages.iter().map(|stage| stage.kind).collect();
    use StageKind::{Backend as To, Door, Listener, Policy, Request, Route};
    assert_eq!(
        kinds,
        [Request, Door, Listener, Route, Policy, Policy],
        "{told:?}"
    );
    assert_eq!((told.status, told.rule), (Some(401), Some(rule_key("keys"))));
    let told = rig.proxy.explain(&asks("/keys/x", 0, Some("good"))).await;
    assert_eq!(told.stages.last().map(|stage| stage.kind), Some(To), "{told:?}");
    let told = rig.proxy.explain(&asks("/keys", 9, None)).await;
    assert_eq!(
        told.stages.last().and_then(|stage| stage.passes),
        Some(false),
        "{told:?}"
    );
    assert_eq!(
        (backend.seen(), keys.asked.load(Ordering::SeqCst)),
        (0, 0),
        "nothing was forwarded or counted"
    );
    assert_eq!(rig.metric("fairway_gateway_policy_denials_total{"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn guards_see_what_the_proxy_says_of_the_client() {
    let backend = Backend::start("web").await;
    let mut guards = Guards::default();
    guards.insert(rule_key("web"), Arc::new(Origins));
    let lines = Lines::default();
    let options = Options {
        access_log: Some(AccessLog::new(lines.clone())),
        ..options()
    };
    let table = http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]);
    let rig = Rig::with(table, &guards, options);
    let forged = [
        ("x-forwarded-for", "10.0.0.1"),
        ("x_forwarded_for", "10.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "10.0.0.3"),
        ("forwarded", "for=10.0.0.4"),
        ("x-request-id", "mine"),
    ];
    let believed = |client: &str| format!("for={client} proto=http real= forwarded= alike= id=true");
    let mut probe = asks("/", 80, None);
    for (name, value) in forged {
        probe.headers.insert(name, value.parse().unwrap());
    }
    match rig.proxy.probe_here(probe.clone()).await {
        Probe::Denied { refusal, .. } => assert_eq!(refusal.why, believed("192.0.2.1"), "a probe"),
        other => panic!("{other:?}"),
    }
    let told = rig
        .proxy
        .explain(&ProbeRequest {
            uri: "http://a.example:0/".parse().unwrap(),
            ..probe
        })
        .await;
    let seen = told.stages.last().map(|stage| stage.seen.clone()).unwrap();
    assert!(seen.ends_with(&believed("192.0.2.1")), "an explanation: {told:?}");
    let mut headers = vec![("host", "a.example")];
    headers.extend(forged);
    let answer = raw::ask(rig.door, "GET", "/", &headers, "").await;
    assert_eq!(raw::status(&answer), 403, "{answer}");
    rig.proxy.shutdown(std::time::Duration::from_secs(5)).await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains(&believed("127.0.0.1")), "a request: {text}");
}

trait ProbeHere {
    fn probe_here(&self, request: ProbeRequest) -> impl Future<Output = Probe>;
}

impl ProbeHere for fairway_gateway_proxy::Proxy {
    async fn probe_here(&self, request: ProbeRequest) -> Probe {
        self.probe(&listener_key(), &request).await
    }
}
