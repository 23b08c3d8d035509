//! Heads of requests, whole and in pieces. What is refused is a table of its own, with sockets (`tests/gateway/hostile.rs`).

use super::*;

fn read_all(bytes: &[u8], piece: usize) -> Result<Option<Head>, Bad> {
    let (mut buffer, mut scanned) = (BytesMut::new(), 0);
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        match read(&mut buffer, &mut scanned, 1000, 20)? {
            Read::Head(head) => return Ok(Some(*head)),
            Read::Partial => {}
            Read::Http2 => return Ok(None),
        }
    }
    Ok(None)
}

#[test]
fn what_a_head_says() {
    use Framing::{Chunked, Length, None as Empty};
    for (head, framing, keep, expects, upgrades, reason) in [
        (
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            Empty,
            true,
            false,
            false,
            "an ordinary one",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            Empty,
            false,
            false,
            false,
            "the last",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
            Empty,
            false,
            false,
            false,
            "the last, among others",
        ),
        ("GET / HTTP/1.0\r\n\r\n", Empty, false, false, false, "an old one"),
        (
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            Empty,
            true,
            false,
            false,
            "an old one that stays",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
            Length(5),
            true,
            false,
            false,
            "a length",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n",
            Chunked,
            true,
            false,
            false,
            "chunks",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n",
            Length(5),
            true,
            true,
            false,
            "waits",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
            Empty,
            true,
            false,
            false,
            "waits for nothing",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            Empty,
            true,
            false,
            true,
            "another protocol",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
            Empty,
            true,
            false,
            false,
            "HTTP/2 within would not be looked at",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket, TLS/1.2\r\n\r\n",
            Empty,
            true,
            false,
            false,
            "nor would TLS",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\n",
            Length(1),
            true,
            false,
            false,
            "not with a body",
        ),
    ] {
        for piece in [1, 7, 1000] {
            let got = read_all(head.as_bytes(), piece).unwrap().unwrap();
            assert_eq!(
                (got.framing, got.keep_alive, got.expects, got.upgrades),
                (framing, keep, expects, upgrades),
                "{reason}, by {piece}"
            );
        }
    }
}

#[test]
fn what_follows_stays_in_the_buffer() {
    let mut buffer = BytesMut::from("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET");
    assert!(matches!(read(&mut buffer, &mut 0, 1000, 20), Ok(Read::Head(_))));
    assert_eq!(&buffer[..], b"abcGET");
}

#[test]
fn bounds() {
    let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(2000));
    let large = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(2000));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "x: y\r\n".repeat(21));
    for (head, status) in [(long, 414), (large, 431), (many, 431)] {
        for piece in [100, 10_000] {
            assert_eq!(
                read_all(head.as_bytes(), piece).unwrap_err().status.as_u16(),
                status
            );
        }
    }
}

#[test]
fn http2_is_recognised() {
    let mut buffer = BytesMut::from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(matches!(read(&mut buffer, &mut 0, 1000, 20), Ok(Read::Http2)));
    assert_eq!(buffer.len(), 24, "and left for whoever speaks it");
}
