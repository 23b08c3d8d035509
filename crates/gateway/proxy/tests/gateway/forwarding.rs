//! What backends get, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use fairway_gateway_routes::table::{
    Action, Affinity, Backend as To, Cors, Endpoint, Filter, HeaderChanges, HostPattern, Listener,
    ListenerKey, Mirror, Names, PathChange, Redirect, Rule, Target, Timeouts,
};
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, cluster_key, filtered, http_table, listener, listener_key, rule, to};

fn changes(set: &[(&'static str, &str)], remove: &[&'static str]) -> HeaderChanges {
    HeaderChanges {
        set: set
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect(),
        add: Vec::new(),
        remove: remove
            .iter()
            .map(|name| http::HeaderName::from_static(name))
            .collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_cleaned_and_completed() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let headers = [
        ("host", "a.example:8080"),
        ("x-forwarded-for", "10.1.1.1"),
        ("x-forwarded-proto", "https"),
        ("keep-alive", "5"),
        ("te", "trailers, gzip"),
        ("proxy-authorization", "secret"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("tracestate", "a=b"),
        ("x-mine", "kept"),
    ];
    let answer = raw::ask(rig.door, "POST", "/a//b/./c?q=1", &headers, "hello").await;
    for expected in [
        "web POST /a/b/c?q=1",
        "host: a.example:8080",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: http\n",
        "x-forwarded-host: a.example:8080",
        &format!("x-forwarded-port: {}", rig.door.port()),
        "x-request-id: ",
        "te: trailers\n",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate: a=b",
        "x-mine: kept",
        "content-length: 5",
        "body: 5 hello",
        "x-backend: web",
    ] {
        assert!(answer.contains(expected), "{expected:?} is missing in {answer}");
    }
    for absent in ["10.1.1.1", "secret", "keep-alive", "x-hop"] {
        assert!(!answer.contains(absent), "{absent:?} got through: {answer}");
    }
    let head = raw::ask(rig.door, "HEAD", "/big/5", &[("host", "a")], "").await;
    assert!(
        head.contains("content-length: 5") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn filters() {
    let backend = Backend::start("web").await;
    let rewrite = Filter::Rewrite {
        hostname: Some("inner.example".into()),
        path: Some(PathChange::Prefix("/new".into())),
    };
    let redirect = Redirect {
        scheme: Some("https".into()),
        hostname: None,
        path: None,
        port: None,
        status: 301,
    };
    let cors = Cors {
        origins: vec!["https://site.example".into()],
        methods: vec!["GET".into(), "PUT".into()],
        max_age: 7,
        ..Cors::default()
    };
    let redirected = Rule {
        action: Action::Answered,
        ..filtered("web", vec![Filter::Redirect(redirect)])
    };
    let rules = vec![
        (
            "/headers",
            filtered(
                "web",
                vec![
                    Filter::RequestHeaders(changes(&[("x-set", "1")], &["x-gone"])),
                    Filter::ResponseHeaders(changes(&[("x-told", "2")], &["x-backend"])),
                ],
            ),
        ),
        ("/old", filtered("web", vec![rewrite])),
        ("/elsewhere", redirected),
        ("/cors", filtered("web", vec![Filter::Cors(cors)])),
    ];
    let rig = Rig::new(http_table(rules, vec![cluster("web", &[backend.address])]));
    let origin = ("origin", "https://site.example");
    let preflight = [("host", "a"), origin, ("access-control-request-method", "PUT")];
    for (method, path, headers, expected, absent, reason) in [
        (
            "GET",
            "/headers",
            vec![("host", "a"), ("x-gone", "yes")],
            vec!["x-set: 1", "x-told: 2"],
            "x-backend",
            "headers",
        ),
        (
            "GET",
            "/old/x?q",
            vec![("host", "a")],
            vec!["GET /new/x?q", "host: inner.example", "x-forwarded-host: a"],
            "/old",
            "a rewrite",
        ),
        (
            "GET",
            "/elsewhere/x",
            vec![("host", "b.example")],
            vec!["301", "location: https://b.example/elsewhere/x"],
            "x-backend",
            "a redirection",
        ),
        (
            "OPTIONS",
            "/cors",
            preflight.to_vec(),
            vec!["204", "access-control-allow-methods: GET, PUT", "max-age: 7"],
            "x-backend",
            "a preflight",
        ),
        (
            "GET",
            "/cors",
            vec![("host", "a"), origin],
            vec!["200", "access-control-allow-origin: https://site.example"],
            "allow-methods",
            "another origin",
        ),
        (
            "GET",
            "/nothing",
            vec![("host", "a")],
            vec!["404"],
            "x-backend",
            "no route",
        ),
    ] {
        let answer = raw::ask(rig.door, method, path, &headers, "").await;
        for expected in expected {
            assert!(
                answer.contains(expected),
                "{reason}: {expected:?} is missing in {answer}"
            );
        }
        assert!(!answer.contains(absent), "{reason}: {absent:?} in {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_mirrors_and_broken_references() {
    let (one, two, mirror) = (
        Backend::start("one").await,
        Backend::start("two").await,
        Backend::start("mirror").await,
    );
    let broken = To {
        target: Target::Broken("Service team/gone does not exist".into()),
        ..to("one")
    };
    let weighted = |weight, name| To { weight, ..to(name) };
    let with = |name, backends: Vec<To>| Rule {
        action: Action::Forward(backends),
        ..rule(name)
    };
    let mirrored = Mirror {
        to: to("mirror"),
        denominator: 1,
        numerator: 1,
    };
    let rules = vec![
        (
            "/split",
            with(
                "one",
                vec![weighted(3, "one"), weighted(1, "two"), weighted(0, "mirror")],
            ),
        ),
        ("/broken", with("one", vec![broken.clone()])),
        ("/half", with("one", vec![weighted(1, "one"), broken])),
        ("/none", with("one", vec![])),
        ("/zero", with("one", vec![weighted(0, "one")])),
        ("/empty", with("one", vec![to("empty")])),
        ("/mirror", filtered("one", vec![Filter::Mirror(mirrored)])),
    ];
    let clusters = vec![
        cluster("one", &[one.address]),
        cluster("two", &[two.address]),
        cluster("mirror", &[mirror.address]),
        cluster("empty", &[]),
    ];
    let rig = Rig::new(http_table(rules, clusters));
    for _ in 0..200 {
        assert_eq!(raw::status(&raw::get(rig.door, "/split").await), 200);
    }
    assert!((120..180).contains(&one.seen()), "three of four: {}", one.seen());
    assert_eq!(
        (one.seen() + two.seen(), mirror.seen()),
        (200, 0),
        "and none to a weight of zero"
    );
    for (path, status) in [("/broken", 500), ("/none", 500), ("/zero", 500), ("/empty", 503)] {
        assert_eq!(raw::status(&raw::get(rig.door, path).await), status, "{path}");
    }
    let mut half = [0, 0];
    for _ in 0..100 {
        half[usize::from(raw::status(&raw::get(rig.door, "/half").await) == 500)] += 1;
    }
    assert!(half.iter().all(|count| (25..75).contains(count)), "{half:?}");
    let answer = raw::ask(rig.door, "POST", "/mirror", &[("host", "a")], "twice").await;
    assert!(
        answer.contains("one POST /mirror") && answer.contains("body: 5 twice"),
        "{answer}"
    );
    for _ in 0..100 {
        if mirror.seen() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(mirror.seen(), 1, "the copy arrives");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_stay() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    let sticky = Rule {
        affinity: Some(Affinity {
            name: "sid".into(),
            by_header: false,
            lifetime: None,
        }),
        ..rule("web")
    };
    let rig = Rig::new(http_table(
        vec![("/", sticky)],
        vec![cluster("web", &[one.address, two.address])],
    ));
    let first = raw::get(rig.door, "/").await;
    let cookie = first
        .split("set-cookie: ")
        .nth(1)
        .and_then(|rest| rest.split(';').next())
        .unwrap()
        .to_owned();
    let backend = if first.contains("x-backend: one") {
        "x-backend: one"
    } else {
        "x-backend: two"
    };
    for _ in 0..20 {
        let answer = raw::ask(rig.door, "GET", "/", &[("host", "a"), ("cookie", &cookie)], "").await;
        assert!(
            answer.contains(backend) && !answer.contains("set-cookie"),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timeouts() {
    let backend = Backend::start("web").await;
    let within = |request: Option<u64>, backend: Option<u64>| Rule {
        timeouts: Timeouts {
            request: request.map(Duration::from_millis),
            backend_request: backend.map(Duration::from_millis),
        },
        ..rule("web")
    };
    let rewritten = Rule {
        filters: vec![Filter::Rewrite {
            hostname: None,
            path: Some(PathChange::Full("/slow/300".into())),
        }],
        ..within(Some(100), None)
    };
    let rules = vec![
        ("/request", rewritten),
        ("/slow", within(None, Some(100))),
        ("/", within(Some(5000), Some(5000))),
    ];
    let rig = Rig::new(http_table(rules, vec![cluster("web", &[backend.address])]));
    assert_eq!(raw::status(&raw::get(rig.door, "/request").await), 504);
    assert_eq!(raw::status(&raw::get(rig.door, "/slow/300").await), 504);
    assert_eq!(raw::status(&raw::get(rig.door, "/big/100000").await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_and_streamed_bodies() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let answer = raw::get(rig.door, "/big/3000000").await;
    assert_eq!(answer.split("\r\n\r\n").nth(1).map(str::len), Some(3_000_000));
    let body = "y".repeat(2_000_000);
    let answer = raw::ask(rig.door, "PUT", "/", &[("host", "a")], &body).await;
    assert!(
        answer.contains("body: 2000000 yyyy"),
        "{}",
        &answer[..answer.len().min(500)]
    );
    // Chunked, with a wait for permission.
    let mut stream = TcpStream::connect(rig.door).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    for _ in 0..100 {
        stream.write_all(b"3e8\r\n").await.unwrap();
        stream.write_all(&[b'z'; 1000]).await.unwrap();
        stream.write_all(b"\r\n").await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let answer = raw::read(&mut stream).await;
    assert!(
        answer.contains("body: 100000 zzz") && !answer.contains("expect"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrades_and_websockets() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let mut stream = TcpStream::connect(rig.door).await.unwrap();
    // What the client says before it has the answer belongs to the new protocol.
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nearly")
        .await
        .unwrap();
    let answer = raw::read(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 101 ") && answer.contains("upgrade: shout"),
        "{answer}"
    );
    assert!(answer.ends_with("EARLY"), "{answer}");
    let url = format!("ws://{}/chat", rig.door);
    let stream = TcpStream::connect(rig.door).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    for word in ["hello", "again"] {
        socket
            .send(tokio_tungstenite::tungstenite::Message::text(word))
            .await
            .unwrap();
        let reply = socket.next().await.unwrap().unwrap();
        assert_eq!(reply.into_text().unwrap().as_str(), word.to_uppercase());
    }
}

/// A backend that is another listener of ours: no connection between, and no circles.
#[tokio::test(flavor = "multi_thread")]
async fn listeners_behind_listeners() {
    let backend = Backend::start("web").await;
    let inner_key = ListenerKey {
        gateway: "inner".into(),
        ..listener_key()
    };
    let inner = Listener {
        key: inner_key.clone(),
        ..listener(vec![("/loop", rule("inner")), ("/", rule("web"))])
    };
    let outer = listener(vec![("/", rule("inner"))]);
    let mut names = Names::default();
    names.insert(HostPattern::Any, Arc::new(outer));
    names.insert(HostPattern::Wildcard("inner.example".into()), Arc::new(inner));
    let mut through = cluster("inner", &[]);
    through.endpoints = vec![Endpoint::Listener(inner_key)];
    assert_eq!(through.key, cluster_key("inner"));
    let mut table = http_table(vec![], vec![through, cluster("web", &[backend.address])]);
    table.doors = [(
        crate::rig::ANYWHERE,
        fairway_gateway_routes::table::Door::Http(names),
    )]
    .into();
    let rig = Rig::new(table);
    for (host, path, status, reason) in [
        ("a.inner.example", "/x", 200, "directly"),
        (
            "b.example",
            "/x",
            404,
            "a host that the inner listener is not for",
        ),
        ("a.inner.example", "/loop", 508, "in circles"),
    ] {
        let answer = raw::ask(rig.door, "GET", path, &[("host", host)], "").await;
        assert_eq!(raw::status(&answer), status, "{reason}: {answer}");
    }
}
