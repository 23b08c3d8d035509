//! HTTP/2 on either side, and gRPC's trailers through.

use std::time::Duration;

use bytes::Bytes;
use fairway_gateway_guard::{Asked, Guard, Judgement, Refusal, Step, Verdict};
use fairway_gateway_proxy::{Guards, Options, Timeouts};
use fairway_gateway_routes::table::{self, BackendProtocol};
use futures::future::BoxFuture;
use http::{HeaderName, Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, http_table, options, rule, rule_key};

fn table(backend: &Backend, protocol: BackendProtocol) -> table::Table {
    let mut web = cluster("web", &[backend.address]);
    web.protocol = protocol;
    http_table(vec![("/", rule("web"))], vec![web])
}

type Connection = http2::Connection<TokioIo<TcpStream>, Full<Bytes>, TokioExecutor>;

/// A client's connection, to be driven by the test.
async fn connect(rig: &Rig) -> (http2::SendRequest<Full<Bytes>>, Connection) {
    let stream = TcpStream::connect(rig.door).await.unwrap();
    http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn from_and_to_http2() {
    for protocol in [BackendProtocol::Http1, BackendProtocol::Http2] {
        let backend = Backend::start("web").await;
        let rig = Rig::new(table(&backend, protocol));
        let (mut sender, connection) = connect(&rig).await;
        tokio::spawn(connection);
        let request = |path: &str, body: &'static str| {
            Request::post(format!("http://a.example{path}"))
                .version(Version::HTTP_2)
                .header("te", "trailers")
                .body(Full::new(Bytes::from_static(body.as_bytes())))
                .unwrap()
        };
        let answer = sender.send_request(request("/x", "hello")).await.unwrap();
        assert_eq!(answer.status(), 200);
        let text =
            String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
        assert!(
            text.contains("web POST /x") && text.contains("body: 5 hello") && text.contains("te: trailers"),
            "{text}"
        );
        let named = if protocol == BackendProtocol::Http2 {
            "authority: a.example"
        } else {
            "host: a.example"
        };
        assert!(text.contains(named), "{text}");
        let answer = sender.send_request(request("/trailers", "")).await.unwrap();
        let collected = answer.into_body().collect().await.unwrap();
        if protocol == BackendProtocol::Http2 {
            assert_eq!(
                collected.trailers().unwrap()["grpc-status"],
                "0",
                "gRPC tells its status at the end"
            );
        }
        assert_eq!(collected.to_bytes(), "message");
        // Many at a time, on one connection.
        let all = (0..50).map(|at| {
            let mut sender = sender.clone();
            let request = request(&format!("/{at}"), "x");
            async move { sender.send_request(request).await.unwrap().status() }
        });
        assert!(
            futures::future::join_all(all)
                .await
                .iter()
                .all(|status| *status == 200)
        );
        // Old clients reach the same backend.
        let answer = raw::ask(rig.door, "POST", "/y", &[("host", "b.example")], "abc").await;
        assert!(
            answer.contains("web POST /y") && answer.contains("body: 3 abc"),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_requests_ends() {
    let backend = Backend::start("web").await;
    let options = Options {
        timeouts: Timeouts {
            keep_alive: Duration::from_millis(300),
            ..Timeouts::default()
        },
        ..options()
    };
    let rig = Rig::with(
        table(&backend, BackendProtocol::Http1),
        &Guards::default(),
        options,
    );
    let (mut sender, connection) = connect(&rig).await;
    // It answers pings, as a client does that means to stay for ever.
    let ended = tokio::spawn(connection);
    let request = Request::get("http://a.example/slow/1000").version(Version::HTTP_2);
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200, "a request that lasts is no idleness");
    answer.into_body().collect().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
    assert!(ended.is_ok(), "it is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_over_http2() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(table(&backend, BackendProtocol::Http1));
    let (mut sender, connection) = connect(&rig).await;
    tokio::spawn(connection);
    for (uri, hosts, status, reason) in [
        ("http://a.example/", &[][..], 200, "an ordinary one"),
        (
            "http://a.example/",
            &["a.example"],
            200,
            "authority and Host agree",
        ),
        (
            "http://a.example/",
            &["b.example"],
            400,
            "authority and Host differ",
        ),
        (
            "http://a.example/",
            &["a.example", "b.example"],
            400,
            "a second Host",
        ),
        (
            "http://a.example/",
            &["a.example", "a.example"],
            400,
            "the same Host twice",
        ),
        ("http://a.example/../x", &[], 400, "out of the root"),
        ("http://a.example/%00", &[], 400, "an encoded NUL"),
    ] {
        let before = backend.seen();
        let mut request = Request::get(uri).version(Version::HTTP_2);
        for host in hosts {
            request = request.header("host", *host);
        }
        let answer = sender
            .send_request(request.body(Full::new(Bytes::new())).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), status, "{reason}");
        assert_eq!(backend.seen() - before, usize::from(status == 200), "{reason}");
    }
}

/// Refuses with the status that the request asks for.
struct Refuses;

impl Refuses {
    fn verdict(asked: &Asked<'_>) -> Verdict {
        let status = asked.headers["refuse"].to_str().unwrap().parse().unwrap();
        Verdict::Deny(Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            headers: vec![(HeaderName::from_static("x-why"), "policy".parse().unwrap())],
            body: Bytes::from_static(b"50% too much\n"),
            by: "AuthPolicy/team/calls".into(),
            why: "it was asked for".into(),
        })
    }
}

impl Guard for Refuses {
    fn judge<'a>(&'a self, asked: &'a Asked<'a>) -> Judgement<'a> {
        Judgement::Now(Self::verdict(asked))
    }

    fn explain<'a>(&'a self, asked: &'a Asked<'a>) -> BoxFuture<'a, (Verdict, Vec<Step>)> {
        Box::pin(async move { (Self::verdict(asked), Vec::<Step>::new()) })
    }
}

/// Clients of gRPC do not read HTTP's status: what the gateway itself says is told as they expect it.
#[tokio::test(flavor = "multi_thread")]
async fn own_answers_to_calls() {
    let backend = Backend::start("web").await;
    let named = |name| table::Rule {
        key: rule_key(name),
        ..rule("web")
    };
    let slow = table::Rule {
        timeouts: table::Timeouts {
            request: Some(Duration::from_millis(100)),
            backend_request: None,
        },
        ..named("slow")
    };
    let rules = vec![
        ("/refused", named("refused")),
        ("/none", rule("none")),
        ("/slow", slow),
        ("/status", named("open")),
    ];
    let mut guards = Guards::default();
    guards.insert(rule_key("refused"), std::sync::Arc::new(Refuses));
    let clusters = vec![cluster("web", &[backend.address]), cluster("none", &[])];
    let rig = Rig::with(http_table(rules, clusters), &guards, options());
    let (mut sender, connection) = connect(&rig).await;
    tokio::spawn(connection);
    const CALL: &str = "application/grpc";
    for (path, kind, refuse, status, code, message, reason) in [
        ("/refused", CALL, 401, 200, "16", "50%25 too much", "a stranger"),
        (
            "/refused",
            "application/grpc+proto",
            403,
            200,
            "7",
            "50%25 too much",
            "not allowed",
        ),
        ("/refused", CALL, 429, 200, "14", "50%25 too much", "too many"),
        ("/refused", CALL, 302, 302, "", "", "a redirection is none"),
        ("/refused", "application/json", 401, 401, "", "", "no call"),
        ("/nowhere", CALL, 0, 200, "12", "Not Found", "no route"),
        ("/none", CALL, 0, 200, "14", "Service Unavailable", "no backend"),
        ("/slow/2000", CALL, 0, 200, "4", "Gateway Timeout", "too slow"),
        (
            "/status/503",
            CALL,
            0,
            503,
            "",
            "",
            "what a backend says is its own",
        ),
    ] {
        let request = Request::post(format!("http://a.example{path}"))
            .version(Version::HTTP_2)
            .header("content-type", kind)
            .header("te", "trailers")
            .header("refuse", refuse);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let header = |name: &str| {
            answer
                .headers()
                .get(name)
                .map_or("", |value| value.to_str().unwrap())
        };
        assert_eq!(
            (
                answer.status().as_u16(),
                header("grpc-status"),
                header("grpc-message")
            ),
            (status, code, message),
            "{reason}"
        );
        let by_policy = if path == "/refused" { "policy" } else { "" };
        assert_eq!(header("x-why"), by_policy, "{reason}");
        if !code.is_empty() {
            assert_eq!(header("content-type"), CALL, "{reason}");
            assert!(
                answer.into_body().collect().await.unwrap().to_bytes().is_empty(),
                "{reason}"
            );
        }
    }
}
