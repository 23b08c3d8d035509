//! From bytes to the head of a backend's answer, and heads back to bytes.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};

use super::head::{self, MOST_HEADERS};

/// How long the body of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
    /// To the end of the connection.
    Close,
}

#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) framing: Framing,
    /// The connection can be used again.
    pub(crate) keep_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the backend's answer is not HTTP: {0}")]
pub(crate) struct BadAnswer(&'static str);

/// Takes the head of a final answer (or of 101) from the front of `buffer`; interim ones are skipped. None: more is needed.
pub(crate) fn read(
    buffer: &mut BytesMut,
    longest: usize,
    method: &Method,
) -> Result<Option<Head>, BadAnswer> {
    loop {
        let Some(at) = memchr::memmem::find(buffer, b"\r\n\r\n") else {
            if buffer.len() > longest {
                return Err(BadAnswer("its head is too long"));
            }
            return Ok(None);
        };
        if at > longest {
            return Err(BadAnswer("its head is too long"));
        }
        let bytes = buffer.split_to(at + 4).freeze();
        let head = parse(&bytes, method)?;
        if head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS {
            continue;
        }
        return Ok(Some(head));
    }
}

fn parse(bytes: &Bytes, method: &Method) -> Result<Head, BadAnswer> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(BadAnswer("it has too many headers")),
        _ => return Err(BadAnswer("its head is malformed")),
    }
    let (Some(code), Some(version)) = (response.code, response.version) else {
        return Err(BadAnswer("its first line is incomplete"));
    };
    let status = StatusCode::from_u16(code).map_err(|_| BadAnswer("its status is not a status"))?;
    let mut map = HeaderMap::with_capacity(response.headers.len() + 4);
    for header in response.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| BadAnswer("a header's name is malformed"))?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(header.value))
            .map_err(|_| BadAnswer("a header's value is malformed"))?;
        map.append(name, value);
    }
    let framing = framing(&map, status, method)?;
    let mut keep_alive = version == 1 && framing != Framing::Close;
    for value in map.get_all(CONNECTION) {
        for option in value.as_bytes().split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                keep_alive = false;
            } else if version == 0 && option.eq_ignore_ascii_case(b"keep-alive") {
                keep_alive = framing != Framing::Close;
            }
        }
    }
    Ok(Head {
        status,
        headers: map,
        framing,
        keep_alive,
    })
}

fn framing(headers: &HeaderMap, status: StatusCode, method: &Method) -> Result<Framing, BadAnswer> {
    if status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
        || *method == Method::HEAD
    {
        return Ok(Framing::None);
    }
    let length = head::length(headers).map_err(|()| BadAnswer("Content-Length is malformed or differs"))?;
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), length) {
        (None, None) => Ok(Framing::Close),
        (None, Some(0)) => Ok(Framing::None),
        (None, Some(length)) => Ok(Framing::Length(length)),
        (Some(_), Some(_)) => Err(BadAnswer("both Content-Length and Transfer-Encoding")),
        (Some(coding), None)
            if codings.next().is_none() && coding.as_bytes().eq_ignore_ascii_case(b"chunked") =>
        {
            Ok(Framing::Chunked)
        }
        _ => Err(BadAnswer("a transfer coding that is not chunked")),
    }
}

/// The status line of an answer to a client.
pub(crate) fn write_status(out: &mut BytesMut, version: Version, status: StatusCode) {
    out.extend_from_slice(if version == Version::HTTP_10 {
        b"HTTP/1.0 "
    } else {
        b"HTTP/1.1 "
    });
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(status.canonical_reason().unwrap_or("Unknown").as_bytes());
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_header(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_headers(out: &mut BytesMut, headers: &HeaderMap) {
    for (name, value) in headers {
        write_header(out, name.as_str().as_bytes(), value.as_bytes());
    }
}

pub(crate) fn write_length(out: &mut BytesMut, length: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut left = length;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    write_header(out, b"content-length", &digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        use Framing::{Chunked, Close, Length, None as Empty};
        for (bytes, method, expected, reason) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                "GET",
                Some((200, Length(5), true)),
                "a length",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
                "HEAD",
                Some((200, Empty, true)),
                "HEAD has no body",
            ),
            (
                "HTTP/1.1 204 No\r\n\r\n",
                "GET",
                Some((204, Empty, true)),
                "nor has 204",
            ),
            (
                "HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n",
                "GET",
                Some((304, Empty, true)),
                "nor has 304",
            ),
            (
                "HTTP/1.1 200 OK\r\n\r\n",
                "GET",
                Some((200, Close, false)),
                "to the end of the connection",
            ),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n",
                "GET",
                Some((200, Length(1), false)),
                "an old server",
            ),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n",
                "GET",
                Some((200, Length(1), true)),
                "an old server that stays",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
                "GET",
                Some((200, Chunked, false)),
                "chunked, and goes",
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                "GET",
                Some((200, Empty, true)),
                "interim answers are skipped",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                "GET",
                None,
                "both lengths",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                "GET",
                None,
                "two lengths",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                "GET",
                None,
                "an unknown coding",
            ),
            ("SSH-2.0-OpenSSH\r\n\r\n", "GET", None, "not HTTP at all"),
        ] {
            let mut buffer = BytesMut::from(bytes);
            let read = read(&mut buffer, 1000, &Method::from_bytes(method.as_bytes()).unwrap());
            let got = read
                .ok()
                .flatten()
                .map(|head| (head.status.as_u16(), head.framing, head.keep_alive));
            assert_eq!(got, expected, "{reason}");
        }
        assert!(
            read(&mut BytesMut::from(&b"x".repeat(2000)[..]), 1000, &Method::GET).is_err(),
            "bounded"
        );
    }

    #[test]
    fn lengths_are_decimal() {
        for length in [0, 7, 10, 1234, u64::MAX] {
            let mut out = BytesMut::new();
            write_length(&mut out, length);
            assert_eq!(&out[..], format!("content-length: {length}\r\n").as_bytes());
        }
    }
}
