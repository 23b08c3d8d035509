//! Bytes that nobody thought of at a door, judged by what the backend sees of them.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, http_table, rule};

/// How many requests a strict parser reads of what a client sent, one after the other: no backend may see more.
fn requests(sent: &[u8]) -> usize {
    let (mut rest, mut count) = (sent, 0);
    loop {
        rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        let Ok(httparse::Status::Complete(head)) = request.parse(rest) else {
            return count;
        };
        count += 1;
        let value = |name: &str| {
            let mut fitting = request
                .headers
                .iter()
                .filter(|header| header.name.eq_ignore_ascii_case(name));
            fitting.next().map(|header| header.value)
        };
        let is_last = request.version != Some(1) || value("connection").is_some();
        rest = &rest[head..];
        let body = match (value("transfer-encoding"), value("content-length")) {
            (None, None) => Some(rest),
            (None, Some(length)) => {
                let length = std::str::from_utf8(length)
                    .ok()
                    .and_then(|text| text.parse::<usize>().ok());
                length.and_then(|length| rest.get(length..))
            }
            (Some(_), None) => after_chunks(rest),
            // Not even the first is one.
            (Some(_), Some(_)) => return count - 1,
        };
        match body {
            Some(after) if !is_last => rest = after,
            _ => return count,
        }
    }
}

/// What follows a chunked body without trailers.
fn after_chunks(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(rest) else {
            return None;
        };
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        rest = rest.get(end..)?.strip_prefix(b"\r\n")?;
        if size == 0 {
            return Some(rest);
        }
    }
}

/// Random bytes at a door, some after a request that is whole: whatever they are, the proxy lives on, and the backend sees no
/// more requests than a strict parser reads.
#[test]
fn random_bytes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (backend, rig) = runtime.block_on(async {
        let backend = Backend::start("web").await;
        let rig = Rig::new(http_table(
            vec![("/", rule("web"))],
            vec![cluster("web", &[backend.address])],
        ));
        (backend, rig)
    });
    let first = prop_oneof![
        2 => Just(""),
        1 => Just("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        1 => Just("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
        1 => Just("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        1 => Just("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        1 => Just("POST /a HTTP/1.1\r\nHost: a\r\n"),
    ];
    let piece = prop_oneof![
        Just("GET / HTTP/1.1\r\n".to_owned()),
        Just("POST /a HTTP/1.1\r\n".to_owned()),
        Just("Host: a\r\n".to_owned()),
        Just("Content-Length: 3\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Connection: close\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("3\r\nabc\r\n0\r\n\r\n".to_owned()),
        Just("abc".to_owned()),
        "[ -~\r\n\t\0]{0,12}",
        "\\PC{0,4}",
    ];
    let pieces = proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat());
    let bytes = (first, pieces).prop_map(|(first, pieces)| format!("{first}{pieces}"));
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(64);
    let forwarded = std::cell::Cell::new(0);
    proptest!(ProptestConfig::with_cases(cases), |(bytes in bytes)| {
        let (answer, seen) = runtime.block_on(random(&rig, &backend, bytes.as_bytes()));
        let most = requests(bytes.as_bytes());
        prop_assert!(seen <= most, "{seen} requests reached the backend, and a strict parser reads {most}: {bytes:?}");
        prop_assert!(answer.is_empty() || answer.starts_with("HTTP/1."), "{answer:?}");
        forwarded.set(forwarded.get() + u32::from(seen > 0));
    });
    let forwarded = forwarded.get();
    assert!(forwarded >= cases / 4, "only {forwarded} of {cases} got anywhere");
    let answer = runtime.block_on(raw::get(rig.door, "/still"));
    assert_eq!(raw::status(&answer), 200, "it lives on");
}

/// Sends it; what came back, and how many requests the backend saw.
async fn random(rig: &Rig, backend: &Backend, bytes: &[u8]) -> (String, usize) {
    let before = backend.seen();
    let mut stream = TcpStream::connect(rig.door).await.unwrap();
    let _ = stream.write_all(bytes).await;
    // A client that leaves takes its requests with it, so it stays for a moment.
    tokio::time::sleep(Duration::from_millis(40)).await;
    let _ = stream.shutdown().await;
    let answer = raw::read(&mut stream).await;
    drop(stream);
    let mut seen = backend.seen();
    loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = backend.seen();
        if rig.proxy.connections() == 0 && now == seen {
            return (answer, seen - before);
        }
        seen = now;
    }
}

#[test]
fn the_strict_parser_is_strict() {
    for (sent, expected, reason) in [
        ("", 0, "nothing"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", 0, "half a head"),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1, "one"),
        ("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 2, "two"),
        (
            "GET / HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            1,
            "one, and what nobody reads",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            1,
            "one with a body",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n",
            2,
            "one after a body",
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            2,
            "after chunks",
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            1,
            "chunks that are none",
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
            0,
            "two lengths",
        ),
    ] {
        assert_eq!(requests(sent.as_bytes()), expected, "{reason}");
    }
}
