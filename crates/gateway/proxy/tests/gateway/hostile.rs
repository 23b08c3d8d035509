//! Requests that must not pass: each is answered with its status, and the backend never hears of it.

use std::time::Duration;

use fairway_gateway_proxy::{Guards, Limits, Options, Timeouts};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, http_table, options, rule};

/// What comes back, and how many requests the backend sees.
const SHAPES: &[(&str, u16, usize, &str)] = &[
    ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, 1, "an ordinary one"),
    (
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        1,
        "an empty line before it",
    ),
    (
        "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        1,
        "absolute form, the same host",
    ),
    ("GET / HTTP/1.0\r\n\r\n", 200, 1, "an old client"),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
        200,
        1,
        "a length twice, the same",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        200,
        1,
        "chunked",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        400,
        0,
        "both lengths",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        0,
        "both, the other way",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        400,
        0,
        "two lengths",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 5\r\n\r\nabcde",
        400,
        0,
        "two lengths in one",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd",
        400,
        0,
        "a sign",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x4\r\n\r\nabcd",
        400,
        0,
        "a prefix",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        400,
        0,
        "a negative length",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n",
        400,
        0,
        "an empty length",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        400,
        0,
        "a length that overflows",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
        0,
        "an unknown coding",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        501,
        0,
        "nearly chunked",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        501,
        0,
        "two codings",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        400,
        0,
        "a space before the colon",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n",
        400,
        0,
        "a control character",
    ),
    (
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        0,
        "chunked before it existed",
    ),
    ("GET / HTTP/1.1\nHost: a\n\n", 400, 0, "bare line feeds"),
    (
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        400,
        0,
        "one bare line feed",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\rZ: w\r\n\r\n",
        400,
        0,
        "a bare carriage return",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n",
        400,
        0,
        "a folded line",
    ),
    (
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        400,
        0,
        "a first line that is folded",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        400,
        0,
        "a header without a colon",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n",
        400,
        0,
        "a header without a name",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        400,
        0,
        "NUL in a value",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nX y: z\r\n\r\n",
        400,
        0,
        "a space in a name",
    ),
    ("GET / HTTP/1.1\r\n\r\n", 400, 0, "no Host"),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        400,
        0,
        "Host twice",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        400,
        0,
        "two hosts",
    ),
    ("GET / HTTP/1.1\r\nHost: \r\n\r\n", 400, 0, "an empty Host"),
    ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400, 0, "two hosts in one"),
    ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, 0, "a path in Host"),
    ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400, 0, "a user in Host"),
    (
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "target and Host differ",
    ),
    (
        "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "a user in the target",
    ),
    ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, "a fragment"),
    ("GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, "a backslash"),
    (
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "a space in the target",
    ),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, "two spaces"),
    ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, "a tab"),
    (
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "a target without a slash",
    ),
    (
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "the server itself",
    ),
    (
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        405,
        0,
        "a forward proxy",
    ),
    (
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "a method that is none",
    ),
    (
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        505,
        0,
        "a version that comes otherwise",
    ),
    (
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        505,
        0,
        "a version that does not exist",
    ),
    ("GET /\r\n\r\n", 400, 0, "no version"),
    (
        "GET /../etc HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "out of the root",
    ),
    (
        "GET /a/%2e%2e/%2e%2e/etc HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "out of the root, encoded",
    ),
    (
        "GET /a/..%2fetc HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        0,
        "a hidden dot segment",
    ),
    ("GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n", 400, 0, "an encoded NUL"),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\na",
        417,
        0,
        "an expectation",
    ),
    (
        "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
        400,
        0,
        "TLS where none is spoken",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn shapes() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    for (request, status, seen, reason) in SHAPES {
        let before = backend.seen();
        let answer = raw::send(rig.door, request.as_bytes()).await;
        let answers = answer.matches("HTTP/1.").count();
        assert_eq!(
            (raw::status(&answer), backend.seen() - before, answers),
            (*status, *seen, 1),
            "{reason}: {request:?} was answered {answer:?}"
        );
        if *status != 200 {
            assert!(
                answer.contains("connection: close"),
                "{reason}: what follows cannot be trusted"
            );
        }
    }
    assert!(rig.metric("fairway_gateway_bad_requests_total") >= 40);
}

/// Why HTTP/1 is not left to hyper: what it takes for a request, and repairs without a word, is refused above.
#[tokio::test(flavor = "multi_thread")]
async fn what_hyper_would_accept() {
    let hyper = Backend::start("hyper").await;
    for (request, reason) in [
        ("GET / HTTP/1.1\nHost: a\n\n", "bare line feeds"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "both lengths",
        ),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "two hosts"),
        (
            "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "target and Host differ",
        ),
    ] {
        let answer = raw::send(hyper.address, request.as_bytes()).await;
        assert_eq!(
            raw::status(&answer),
            200,
            "hyper has become stricter: {reason}: {answer}"
        );
    }
}

/// An upgrade to HTTP/2 would open a way to the backend that no policy sees.
#[tokio::test(flavor = "multi_thread")]
async fn http2_is_not_smuggled_by_an_upgrade() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                   HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n";
    let answer = raw::send(rig.door, request.as_bytes()).await;
    assert_eq!(raw::status(&answer), 200, "{answer}");
    assert!(
        !answer.contains("h2c") && !answer.contains("http2-settings"),
        "{answer}"
    );
}

/// What is wrong is found only in the body: the backend may see the head, but never a whole request, and the client is told.
#[tokio::test(flavor = "multi_thread")]
async fn broken_bodies() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, reason) in [
        ("2\r\nabc\r\n0\r\n\r\n", "data longer than its chunk"),
        ("zz\r\nab\r\n0\r\n\r\n", "a size that is none"),
        ("2\nab\n0\n\n", "bare line feeds"),
        ("2\r\nab\r\n0\r\nx y\r\n\r\n", "a trailer that is none"),
        ("fffffffffffffffff\r\nab\r\n0\r\n\r\n", "a size that overflows"),
    ] {
        // The second request must never be seen as one.
        let request = format!("{head}{body}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = raw::send(rig.door, request.as_bytes()).await;
        assert_eq!(raw::status(&answer), 400, "{reason}: {answer}");
        assert!(
            !answer.contains("smuggled") && answer.matches("HTTP/1.").count() == 1,
            "{reason}: {answer}"
        );
    }
}

fn small() -> Options {
    Options {
        limits: Limits {
            request_head: 4096,
            headers: 20,
            connections: 3,
            ..Limits::default()
        },
        timeouts: Timeouts {
            request_head: Duration::from_millis(300),
            keep_alive: Duration::from_millis(600),
            body_idle: Duration::from_millis(300),
            ..Timeouts::default()
        },
        ..options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_and_slowness() {
    let backend = Backend::start("web").await;
    let table = http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]);
    let rig = Rig::with(table, &Guards::default(), small());
    let long = "x".repeat(5000);
    let many = "x: y\r\n".repeat(30);
    for (request, status, reason) in [
        (
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
            414,
            "a long line",
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"),
            431,
            "a long header",
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"),
            431,
            "many headers",
        ),
        (
            "GET / HTTP/1.1\r\nHost".to_owned(),
            408,
            "a head that does not end",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc".to_owned(),
            408,
            "a body that does not end",
        ),
    ] {
        let answer = raw::send(rig.door, request.as_bytes()).await;
        assert_eq!(raw::status(&answer), status, "{reason}: {answer}");
    }
    // Nobody speaks: the connection ends without a word.
    let mut silent = TcpStream::connect(rig.door).await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(raw::read(&mut silent).await, "");
    let open: Vec<_> = futures::future::join_all((0..3).map(|_| TcpStream::connect(rig.door))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answer = raw::send(rig.door, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer, "", "one connection too many is turned away");
    assert_eq!(rig.metric("fairway_gateway_connections_refused_total"), 1);
    drop(open);
}

/// Somebody who opens as many connections as there are leaves some to others.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_does_not_take_all_connections() {
    let backend = Backend::start("web").await;
    let table = http_table(vec![("/", rule("web"))], vec![cluster("web", &[backend.address])]);
    let options = Options {
        limits: Limits {
            connections: 6,
            connections_per_client: Some(2),
            ..Limits::default()
        },
        ..options()
    };
    let rig = Rig::with(table, &Guards::default(), options);
    let from = async |address: [u8; 4]| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((address, 0).into()).unwrap();
        let mut stream = socket.connect(rig.door).await.unwrap();
        let sent = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut head = [0; 12];
        let read = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await;
        (sent.is_ok() && read.is_ok_and(|read| read > 0), stream)
    };
    let (greedy, modest) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let first = from(greedy).await;
    let second = from(greedy).await;
    let third = from(greedy).await;
    let other = from(modest).await;
    assert_eq!(
        [first.0, second.0, third.0, other.0],
        [true, true, false, true],
        "the third of one client is turned away, and nobody else"
    );
    assert_eq!(
        rig.metric("fairway_gateway_connections_refused_by_client_total"),
        1
    );
    drop((first, second, third));
    let mut again = false;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        again = from(greedy).await.0;
        if again {
            break;
        }
    }
    assert!(again, "what has ended does not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_a_row_stay_apart() {
    let backend = Backend::start("web").await;
    let rig = Rig::new(http_table(
        vec![("/", rule("web"))],
        vec![cluster("web", &[backend.address])],
    ));
    let mut stream = TcpStream::connect(rig.door).await.unwrap();
    let requests = "GET /one HTTP/1.1\r\nHost: a\r\n\r\n\
                    POST /two HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
                    POST /three HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nz\r\n0\r\n\r\n\
                    GET /status/204 HTTP/1.1\r\nHost: a\r\n\r\n\
                    GET /four HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(requests.as_bytes()).await.unwrap();
    let answer = raw::read(&mut stream).await;
    for expected in [
        "web GET /one",
        "web POST /two",
        "body: 3 abc",
        "web POST /three",
        "body: 1 z",
        "web GET /four",
    ] {
        assert!(answer.contains(expected), "{expected} is missing: {answer}");
    }
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 5, "{answer}");
    assert_eq!(backend.seen(), 5);
}
