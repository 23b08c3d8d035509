//! Backends that fail: tried elsewhere, left out, and never asked for more than they can carry.

use std::net::SocketAddr;
use std::time::Duration;

use fairway_gateway_proxy::{Balance, Breaker, Guards, HealthCheck, Limits, Options, Outliers, Timeouts};
use fairway_gateway_routes::table::{BackendProtocol, BackendTls, Retry, Rule};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, http_table, options, rule};
use crate::tls::{Authority, secure_backend};

/// An address where nobody listens.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Accepts, reads, answers what it is told to once for each connection, and closes.
async fn scripted(answers: Vec<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut answers = answers.into_iter().cycle();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answers.next().unwrap().as_bytes()).await;
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_listen_is_passed_over_and_left_out() {
    let backend = Backend::start("web").await;
    let options = Options {
        balance: Balance::RoundRobin,
        outliers: Outliers {
            failures: 2,
            base: Duration::from_secs(60),
            ..Outliers::default()
        },
        ..options()
    };
    let gone = nobody().await;
    let table = http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[gone, backend.address])],
    );
    let rig = Rig::with(table, &Guards::default(), options);
    for _ in 0..20 {
        assert_eq!(raw::status(&raw::get(rig.door, "/").await), 200);
    }
    assert_eq!(rig.metric("fairway_gateway_upstream_ejections_total"), 1);
    assert_eq!(
        rig.metric("fairway_gateway_upstream_connect_failures_total"),
        2,
        "not asked any more after that"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn retries() {
    let flaky = "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
    let fine = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let retried = |attempts| Rule {
        retry: Some(Retry {
            attempts,
            codes: vec![503],
            backoff: Duration::from_millis(5),
        }),
        ..rule("web")
    };
    for (answers, attempts, method, body, status, reason) in [
        (vec![flaky, fine], 1, "GET", "", 200, "the second time it works"),
        (vec![flaky, fine], 1, "POST", "hello", 200, "with its body"),
        (vec![flaky, flaky, fine], 1, "GET", "", 503, "once is not enough"),
        (vec![flaky, flaky, fine], 2, "GET", "", 200, "twice is"),
        (vec!["", fine], 1, "GET", "", 200, "no answer at all"),
        (
            vec!["", fine],
            1,
            "POST",
            "x",
            502,
            "what may have been done is not done again",
        ),
        (vec!["SSH-2.0\r\n\r\n"], 0, "GET", "", 502, "not HTTP"),
        (
            vec!["HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
            0,
            "GET",
            "",
            502,
            "an answer with two ends",
        ),
    ] {
        let address = scripted(answers).await;
        let rig = Rig::new(http_table(
            vec![("/", retried(attempts))],
            vec![cluster("web", &[address])],
        ));
        let answer = raw::ask(rig.door, method, "/", &[("host", "a")], body).await;
        assert_eq!(raw::status(&answer), status, "{reason}: {answer}");
    }
}

/// A backend closes a connection that was kept: nobody notices.
#[tokio::test(flavor = "multi_thread")]
async fn kept_connections_that_died() {
    let backend = Backend::start("web").await;
    let (address, table) = (
        backend.address,
        http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]),
    );
    let options = Options {
        workers: Some(1),
        ..options()
    };
    let rig = Rig::with(table, &Guards::default(), options);
    for _ in 0..5 {
        assert_eq!(raw::status(&raw::get(rig.door, "/").await), 200);
    }
    assert_eq!(
        backend.connections.load(std::sync::atomic::Ordering::SeqCst),
        1,
        "one connection was enough"
    );
    drop(backend);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let _backend = Backend::at("again", address).await;
    let answer = raw::ask(rig.door, "POST", "/", &[("host", "a")], "x").await;
    assert!(answer.contains("x-backend: again"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_an_endpoint_may_carry() {
    let backend = Backend::start("web").await;
    let options = Options {
        limits: Limits {
            breaker: Breaker {
                requests: 4,
                connections: 2,
                pending: 1,
                idle: 4,
            },
            ..Limits::default()
        },
        timeouts: Timeouts {
            connect: Duration::from_secs(2),
            ..Timeouts::default()
        },
        ..options()
    };
    let table = http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]);
    let rig = Rig::with(table, &Guards::default(), options);
    let all = futures::future::join_all((0..8).map(|_| raw::get(rig.door, "/slow/300"))).await;
    let mut codes: Vec<u16> = all.iter().map(|answer| raw::status(answer)).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [200, 200, 200, 503, 503, 503, 503, 503],
        "two at a time, one waits, the rest is told"
    );
    assert!(rig.metric("fairway_gateway_upstream_overflows_total") >= 5);
    assert_eq!(
        raw::status(&raw::get(rig.door, "/").await),
        200,
        "and then it goes on"
    );
}

/// Whatever the backend speaks: it is asked as requests would be.
#[tokio::test(flavor = "multi_thread")]
async fn checks_find_who_is_ill() {
    let authority = Authority::new();
    let secure = secure_backend(&authority.issue("backend.example")).await;
    let well = Backend::start("well").await;
    let ill = scripted(vec!["HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"]).await;
    let tls = BackendTls {
        hostname: "backend.example".into(),
        names: Vec::new(),
        authorities: Some(authority.pem().into()),
    };
    for (protocol, tls, well, reason) in [
        (BackendProtocol::Http1, None, well.address, "HTTP/1.1"),
        (BackendProtocol::Http2, None, well.address, "HTTP/2"),
        (BackendProtocol::Http1, Some(tls), secure, "TLS"),
    ] {
        let options = Options {
            health: Some(HealthCheck {
                path: "/healthz".into(),
                interval: Duration::from_millis(50),
                timeout: Duration::from_secs(1),
                unhealthy: 2,
                healthy: 2,
            }),
            ..options()
        };
        let mut web = cluster("web", &[ill, well]);
        (web.protocol, web.tls) = (protocol, tls);
        let table = http_table(vec![("/", rule("web"))], vec![web]);
        let rig = Rig::with(table, &Guards::default(), options);
        let found = async {
            loop {
                let metrics = rig.proxy.metrics();
                let mut ups = metrics
                    .lines()
                    .filter(|line| line.starts_with("fairway_gateway_upstream_up{"));
                if ups.any(|line| line.contains(&ill.to_string()) && line.ends_with(" 0")) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(10), found).await;
        assert!(found.is_ok(), "{reason}: {}", rig.proxy.metrics());
        // Long enough for those that are well to be found ill by mistake.
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..20 {
            assert_eq!(raw::status(&raw::get(rig.door, "/").await), 200, "{reason}");
        }
        assert_eq!(
            rig.metric("fairway_gateway_upstream_connect_failures_total"),
            0,
            "{reason}: nobody was sent to the one that is ill"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_say_how_they_are_treated() {
    let well = Backend::start("well").await;
    let ill = scripted(vec!["HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"]).await;
    let mut checked = cluster("web", &[ill, well.address]);
    checked.traffic.health = Some(HealthCheck {
        path: "/healthz".into(),
        interval: Duration::from_millis(50),
        timeout: Duration::from_secs(1),
        unhealthy: 2,
        healthy: 2,
    });
    // Only checks may leave it out.
    checked.traffic.ejection.failures = Some(0);
    let mut narrow = cluster("narrow", &[well.address]);
    narrow.traffic.breaker.requests = Some(1);
    let rules = || vec![("/slow", rule("narrow")), ("/", rule("web"))];
    let rig = Rig::new(http_table(rules(), vec![checked, narrow]));
    let down = |rig: &Rig| {
        let text = rig.proxy.metrics();
        let mut lines = text.lines();
        lines.any(|line| line.starts_with("fairway_gateway_upstream_up{") && line.ends_with(" 0"))
    };
    let found = async {
        while !down(&rig) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found)
        .await
        .unwrap();
    for _ in 0..20 {
        assert_eq!(raw::status(&raw::get(rig.door, "/").await), 200);
    }
    let all = futures::future::join_all((0..3).map(|_| raw::get(rig.door, "/slow/300"))).await;
    let served = all.iter().filter(|answer| raw::status(answer) == 200).count();
    assert!((1..3).contains(&served), "one at a time: {all:?}");
    // Who does not ask for checks any more is not left out by them.
    let plain = vec![
        cluster("web", &[ill, well.address]),
        cluster("narrow", &[well.address]),
    ];
    assert!(rig.serve(http_table(rules(), plain)).is_whole());
    assert!(!down(&rig));
}
