//! HTTP/2 that is wrong or slow: refused, never half forwarded, and nobody else suffers from it.

use std::time::Duration;

use fairway_gateway_proxy::{Guards, Options, Outliers, Timeouts};
use fairway_gateway_routes::table::BackendProtocol;

use crate::backend::Backend;
use crate::frames::{
    ACK, CONTINUATION, Client, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PRIORITISED,
    PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, head, literals,
};
use crate::raw;
use crate::recorder::{Recorder, recorded};
use crate::rig::{Rig, cluster, http_table, options, rule};

pub(crate) const SOON: Duration = Duration::from_secs(10);

/// What a client sends on stream one, and must not.
pub(crate) fn wrong() -> Vec<(&'static str, Vec<u8>)> {
    let bad = |more: &[(&str, &str)]| frame(HEADERS, END_HEADERS | END_STREAM, 1, &head("GET", "/bad", more));
    let raw = |headers: &[(&str, &str)]| frame(HEADERS, END_HEADERS | END_STREAM, 1, &literals(headers));
    let post = |more: &[(&str, &str)]| frame(HEADERS, END_HEADERS, 1, &head("POST", "/bad", more));
    let (method, scheme, path, authority) = (
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/bad"),
        (":authority", "a.example"),
    );
    let mut interleaved = frame(HEADERS, END_STREAM, 1, &head("GET", "/bad", &[])[..10]);
    interleaved.extend(frame(PING, 0, 0, &[0; 8]));
    interleaved.extend(frame(
        CONTINUATION,
        END_HEADERS,
        1,
        &head("GET", "/bad", &[])[10..],
    ));
    vec![
        ("upper case", bad(&[("X-Upper", "1")])),
        ("a header of HTTP/1", bad(&[("connection", "close")])),
        ("a coding of HTTP/1", bad(&[("transfer-encoding", "chunked")])),
        ("an upgrade", bad(&[("upgrade", "h2c")])),
        ("TE that is not trailers", bad(&[("te", "gzip")])),
        ("no path", raw(&[method, scheme, authority])),
        ("no method", raw(&[scheme, path, authority])),
        ("an empty path", raw(&[method, scheme, (":path", ""), authority])),
        ("a path twice", raw(&[method, scheme, path, path, authority])),
        (
            "a path after headers",
            raw(&[method, scheme, authority, ("a", "b"), path]),
        ),
        (
            "an unknown name",
            raw(&[method, scheme, path, authority, (":colour", "red")]),
        ),
        (
            "an answer's status",
            raw(&[method, scheme, path, authority, (":status", "200")]),
        ),
        ("a line end in a value", bad(&[("x", "a\r\ninjected: 1")])),
        ("a NUL in a value", bad(&[("x", "a\0b")])),
        ("a space in a name", bad(&[("a b", "c")])),
        ("another Host", bad(&[("host", "b.example")])),
        (
            "a user",
            raw(&[method, scheme, path, (":authority", "u@a.example")]),
        ),
        (
            "out of the root",
            raw(&[method, scheme, (":path", "/../bad"), authority]),
        ),
        ("a forward proxy", raw(&[(":method", "CONNECT"), authority])),
        (
            "two lengths",
            [
                post(&[("content-length", "3"), ("content-length", "4")]),
                frame(DATA, END_STREAM, 1, b"abc"),
            ]
            .concat(),
        ),
        (
            "more than its length",
            [
                post(&[("content-length", "3")]),
                frame(DATA, END_STREAM, 1, b"abcde"),
            ]
            .concat(),
        ),
        (
            "less than its length",
            [
                post(&[("content-length", "5")]),
                frame(DATA, END_STREAM, 1, b"abc"),
            ]
            .concat(),
        ),
        (
            "nothing of its length",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &head("POST", "/bad", &[("content-length", "5")]),
            ),
        ),
        (
            "given up in the middle",
            [
                post(&[]),
                frame(DATA, 0, 1, b"abc"),
                frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
            ]
            .concat(),
        ),
        (
            "a table that does not exist",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff, 0xff, 0xff, 0x7f]),
        ),
        (
            "a header that does not end",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0, 120, b'a']),
        ),
        (
            "a server's stream",
            frame(HEADERS, END_HEADERS | END_STREAM, 2, &head("GET", "/bad", &[])),
        ),
        (
            "no stream",
            frame(HEADERS, END_HEADERS | END_STREAM, 0, &head("GET", "/bad", &[])),
        ),
        ("data before a head", frame(DATA, END_STREAM, 1, b"abc")),
        ("data without a stream", frame(DATA, END_STREAM, 0, b"abc")),
        (
            "padding longer than its frame",
            frame(HEADERS, END_HEADERS | END_STREAM | PADDED, 1, &[200, 0]),
        ),
        ("a frame that is too large", frame(DATA, 0, 1, &[0; 16_385])),
        ("no more room", frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
        (
            "more room than there is",
            [
                frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
                frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            ]
            .concat(),
        ),
        (
            "the rest of nothing",
            frame(CONTINUATION, END_HEADERS, 1, &head("GET", "/bad", &[])),
        ),
        ("half a setting", frame(SETTINGS, 0, 0, &[0; 5])),
        (
            "a setting that cannot be",
            frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1]),
        ),
        (
            "an answer to settings with settings",
            frame(SETTINGS, ACK, 0, &[0, 3, 0, 0, 0, 1]),
        ),
        ("a short ping", frame(PING, 0, 0, &[0; 7])),
        (
            "a stream that hangs on itself",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM | PRIORITISED,
                1,
                &[&[0, 0, 0, 1, 5], &head("GET", "/bad", &[])[..]].concat(),
            ),
        ),
        (
            "a push by a client",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
        ),
        ("another frame within a head", interleaved),
        ("HTTP/1", b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_refused_and_never_forwarded() {
    let recorder = Recorder::start().await;
    for protocol in [BackendProtocol::Http1, BackendProtocol::Http2] {
        let rig = recorded(&recorder, protocol);
        for (reason, bytes) in wrong() {
            let mut client = Client::connect(rig.door, &[]).await;
            client.send(&bytes).await;
            let given_up = reason == "given up in the middle";
            let refused = |client: &Client| {
                let one = client.streams.get(&1);
                client.over || one.is_some_and(|one| one.reset || one.status.is_some())
            };
            let is_refused = given_up || client.until(SOON, refused).await;
            assert!(is_refused, "{protocol:?}: {reason}: nobody says anything");
            let told = client.streams.get(&1).and_then(|one| one.status);
            assert_ne!(told, Some(200), "{protocol:?}: {reason}");
            // On a connection that goes on, the next one is served as if nothing had been.
            if !client.over {
                client
                    .send(&frame(
                        HEADERS,
                        END_HEADERS | END_STREAM,
                        3,
                        &head("GET", "/next", &[]),
                    ))
                    .await;
                client
                    .until(SOON, |client| {
                        client.over || client.streams.get(&3).is_some_and(|it| it.ended)
                    })
                    .await;
                let next = client.streams.get(&3).cloned().unwrap_or_default();
                assert!(
                    client.over || next.status == Some(200),
                    "{protocol:?}: {reason}: {next:?}"
                );
            }
            assert_eq!(
                raw::status(&raw::get(rig.door, "/other").await),
                200,
                "{reason}: the next client"
            );
            let got = recorder.take();
            assert!(
                got.iter().all(|(path, body)| path != "/bad" && body.is_empty()),
                "{protocol:?}: {reason}: forwarded {got:?}"
            );
        }
    }
}

/// Browsers send each cookie as a header of its own. Backends over HTTP/1 know one header, and may read the first alone.
#[tokio::test(flavor = "multi_thread")]
async fn cookies_come_together() {
    let recorder = Recorder::start().await;
    for protocol in [BackendProtocol::Http1, BackendProtocol::Http2] {
        let rig = recorded(&recorder, protocol);
        let mut client = Client::connect(rig.door, &[]).await;
        let block = head(
            "GET",
            "/",
            &[
                ("cookie", "a=1"),
                ("x", "y"),
                ("cookie", "b=2; c=3"),
                ("cookie", "d=4"),
            ],
        );
        client
            .send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block))
            .await;
        assert!(
            client
                .until(SOON, |client| client.streams.get(&1).is_some_and(|it| it.ended))
                .await
        );
        let body = String::from_utf8_lossy(&client.streams[&1].body).into_owned();
        assert_eq!(body, "/ 0 a=1; b=2; c=3; d=4", "{protocol:?}");
    }
}

fn impatient() -> Options {
    Options {
        timeouts: Timeouts {
            body_idle: Duration::from_millis(300),
            ..Timeouts::default()
        },
        ..options()
    }
}

/// A body that does not come, and an answer that nobody takes.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients() {
    let backend = Backend::start("web").await;
    for protocol in [BackendProtocol::Http1, BackendProtocol::Http2] {
        let mut web = cluster("web", &[backend.address]);
        web.protocol = protocol;
        let table = http_table(vec![("/", rule("web"))], vec![web]);
        let rig = Rig::with(table, &Guards::default(), impatient());
        let mut client = Client::connect(rig.door, &[]).await;
        let block = head("POST", "/", &[("content-length", "9")]);
        client.send(&frame(HEADERS, END_HEADERS, 1, &block)).await;
        client.send(&frame(DATA, 0, 1, b"abc")).await;
        let answered = |client: &Client| {
            client
                .streams
                .get(&1)
                .is_some_and(|it| it.status.is_some() || it.reset)
        };
        assert!(
            client.until(SOON, answered).await,
            "{protocol:?}: it waits for the rest"
        );
        assert_ne!(client.streams[&1].status, Some(200), "{protocol:?}");
        assert!(!client.over, "{protocol:?}: only its stream ends");
        // No room for any answer, and pings are answered.
        let mut client = Client::connect(rig.door, &[0, 4, 0, 0, 0, 0]).await;
        client
            .send(&frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &head("GET", "/big/200000", &[]),
            ))
            .await;
        assert!(
            client.until(SOON, |client| client.over).await,
            "{protocol:?}: it is still there"
        );
        assert_eq!(client.streams[&1].status, Some(200));
    }
}

/// Clients that break off their requests must not make the gateway think that the backend is ill.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_give_up_eject_nobody() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    for protocol in [BackendProtocol::Http1, BackendProtocol::Http2] {
        let mut web = cluster("web", &[one.address, two.address]);
        web.protocol = protocol;
        let options = Options {
            outliers: Outliers {
                failures: 1,
                base: Duration::from_secs(60),
                ..Outliers::default()
            },
            ..impatient()
        };
        let rig = Rig::with(
            http_table(vec![("/", rule("web"))], vec![web]),
            &Guards::default(),
            options,
        );
        for way in 0..3 {
            for _ in 0..4 {
                let mut client = Client::connect(rig.door, &[]).await;
                let before = one.seen() + two.seen();
                let block = head("POST", "/", &[("content-length", "9")]);
                client.send(&frame(HEADERS, END_HEADERS, 1, &block)).await;
                client.send(&frame(DATA, 0, 1, b"abc")).await;
                let begun = tokio::time::Instant::now();
                while one.seen() + two.seen() == before && begun.elapsed() < SOON {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                match way {
                    0 => client.send(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await,
                    1 => client.send(&frame(DATA, END_STREAM, 1, b"d")).await,
                    _ => {}
                }
                if way > 0 {
                    client
                        .until(SOON, |client| {
                            client.over
                                || client
                                    .streams
                                    .get(&1)
                                    .is_some_and(|it| it.reset || it.status.is_some())
                        })
                        .await;
                } else {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            }
        }
        assert_eq!(
            rig.metric("fairway_gateway_upstream_ejections_total"),
            0,
            "{protocol:?}"
        );
    }
}

/// HPACK's way to write a length over 126.
fn long(name: &str, length: usize) -> Vec<u8> {
    let mut block = vec![0, u8::try_from(name.len()).unwrap()];
    block.extend(name.as_bytes());
    block.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    block.push(u8::try_from(rest).unwrap());
    block.extend(vec![b'x'; length]);
    block
}

/// A head in frames of 16 KiB, the last of which ends it or does not.
fn in_pieces(block: &[u8], ends: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count = block.chunks(16_000).count();
    for (at, piece) in block.chunks(16_000).enumerate() {
        let kind = if at == 0 { HEADERS } else { CONTINUATION };
        let mut flags = if at == 0 { END_STREAM } else { 0 };
        if ends && at + 1 == count {
            flags |= END_HEADERS;
        }
        bytes.extend(frame(kind, flags, 1, piece));
    }
    bytes
}

/// Heads that are too large, in one header and in many, and such that go on for ever.
#[tokio::test(flavor = "multi_thread")]
async fn huge_heads_are_refused() {
    let recorder = Recorder::start().await;
    let rig = recorded(&recorder, BackendProtocol::Http1);
    let start = head("GET", "/bad", &[]);
    let one = [&start[..], &long("x-long", 100_000)].concat();
    let many: Vec<u8> = (0..200).fold(start.clone(), |mut block, at| {
        block.extend(literals(&[(format!("x-{at}"), "1".to_owned())]));
        block
    });
    // A header that is written once and then named by a number costs the sender a byte.
    let mut bomb = start.clone();
    bomb.extend([0x40, 6]);
    bomb.extend(b"x-bomb");
    bomb.extend(&long("", 3000)[2..]);
    bomb.extend(vec![0xbe; 4000]);
    for (bytes, reason) in [
        (in_pieces(&one, true), "one header of 100 KB"),
        (in_pieces(&many, true), "200 headers"),
        (in_pieces(&bomb, true), "12 MB out of 8 KB"),
    ] {
        let mut client = Client::connect(rig.door, &[]).await;
        client.send(&bytes).await;
        let refused = |client: &Client| {
            let one = client.streams.get(&1);
            client.over || one.is_some_and(|one| one.reset || one.status.is_some())
        };
        assert!(
            client.until(SOON, refused).await,
            "{reason}: nobody says anything"
        );
        let told = client.streams.get(&1).and_then(|one| one.status);
        assert_ne!(told, Some(200), "{reason}");
        assert_eq!(
            raw::status(&raw::get(rig.door, "/other").await),
            200,
            "{reason}: the next client"
        );
        let got = recorder.take();
        assert!(got.iter().all(|(path, _)| path != "/bad"), "{reason}: forwarded");
    }
}

/// Pieces of a head without an end: the connection is given up long before they fill a memory.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_continuations_is_cut_off() {
    let recorder = Recorder::start().await;
    let rig = recorded(&recorder, BackendProtocol::Http1);
    for (piece, reason) in [
        (literals(&[("x-a", "b".repeat(100))]), "small"),
        (Vec::new(), "empty"),
    ] {
        let mut client = Client::connect(rig.door, &[]).await;
        client
            .send(&frame(HEADERS, END_STREAM, 1, &head("GET", "/bad", &[])))
            .await;
        let pieces: Vec<u8> = frame(CONTINUATION, 0, 1, &piece).repeat(1000);
        for _ in 0..200 {
            client.send(&pieces).await;
            if client.until(Duration::from_millis(1), |client| client.over).await {
                break;
            }
        }
        assert!(
            client.until(SOON, |client| client.over).await,
            "{reason}: it goes on"
        );
        assert_eq!(
            raw::status(&raw::get(rig.door, "/other").await),
            200,
            "{reason}: the next client"
        );
        assert!(
            recorder.take().iter().all(|(path, _)| path != "/bad"),
            "{reason}: forwarded"
        );
    }
}

/// Requests that are taken back as soon as they are made (CVE-2023-44487): the connection ends, and nobody else waits.
#[tokio::test(flavor = "multi_thread")]
async fn rapid_resets_are_cut_off() {
    let backend = Backend::start("web").await;
    let web = cluster("web", &[backend.address]);
    let rig = Rig::new(http_table(vec![("/", rule("web"))], vec![web]));
    let mut client = Client::connect(rig.door, &[]).await;
    let mut stream = 1;
    while !client.over && stream < 40_000 {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            let block = head("GET", "/slow/1000", &[]);
            bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
            bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
            stream += 2;
        }
        client.send(&bytes).await;
        client.until(Duration::from_millis(1), |client| client.over).await;
    }
    assert!(
        client.until(SOON, |client| client.over).await,
        "after {stream} it goes on"
    );
    let begun = tokio::time::Instant::now();
    assert_eq!(raw::status(&raw::get(rig.door, "/other").await), 200);
    assert!(begun.elapsed() < SOON, "others wait for it");
}

/// A head that is begun and never ended holds its connection no longer than one over HTTP/1 would.
#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_never_ends_is_not_waited_for() {
    let recorder = Recorder::start().await;
    let web = cluster("web", &[recorder.address]);
    let options = Options {
        timeouts: Timeouts {
            request_head: Duration::from_millis(300),
            keep_alive: Duration::from_millis(600),
            drain: Duration::from_millis(300),
            ..Timeouts::default()
        },
        ..options()
    };
    let rig = Rig::with(
        http_table(vec![("/", rule("web"))], vec![web]),
        &Guards::default(),
        options,
    );
    let mut client = Client::connect(rig.door, &[]).await;
    client
        .send(&frame(HEADERS, END_STREAM, 1, &head("GET", "/bad", &[])))
        .await;
    assert!(
        client.until(SOON, |client| client.over).await,
        "it is still there"
    );
    assert!(recorder.take().is_empty());
}
