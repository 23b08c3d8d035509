//! Our own answers as clients of gRPC read them: what is wrong is told by `grpc-status`, and HTTP's status is always 200.

use std::fmt::Write as _;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::body::Body;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The longest message in bytes, before what cannot stand in a header is encoded.
const LONGEST: usize = 1024;

/// On answers that no backend gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ours;

/// Whether a request is a call: `application/grpc`, `application/grpc+proto` and so on, and not gRPC-Web.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// Makes an answer of ours one that a call can end with. Redirections stay: nothing in gRPC stands for them.
pub(crate) fn translate(response: &mut Response<Body>) {
    let status = response.status();
    if response.extensions().get::<Ours>().is_none() || status.is_success() || status.is_redirection() {
        return;
    }
    let text = match response.body() {
        Body::Full(text) if !text.is_empty() => text.clone(),
        _ => status.canonical_reason().unwrap_or("error").into(),
    };
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(STATUS, code(status).into());
    if let Ok(message) = HeaderValue::try_from(encoded(&text)) {
        headers.insert(MESSAGE, message);
    }
    *response.status_mut() = StatusCode::OK;
    *response.body_mut() = Body::Empty;
}

/// By gRPC's own table ("HTTP to gRPC status code mapping"), which Envoy has, too; but for a time that is over there is a better
/// word than its "unavailable", which asks to be tried again.
fn code(status: StatusCode) -> u16 {
    match status.as_u16() {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 => 14,
        504 => 4,
        _ => 2,
    }
}

/// Percent-encoded, as gRPC has its messages.
fn encoded(text: &[u8]) -> String {
    let text = text.trim_ascii();
    let mut message = String::with_capacity(text.len());
    for byte in &text[..text.len().min(LONGEST)] {
        match byte {
            b'%' | 0..=0x1f | 0x7f.. => {
                let _ = write!(message, "%{byte:02X}");
            }
            _ => message.push(char::from(*byte)),
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_nothing_that_ends_a_header() {
        for (text, expected) in [
            ("Too Many Requests\n", "Too Many Requests"),
            ("a\r\nb: 100%", "a%0D%0Ab: 100%25"),
            ("zu spät", "zu sp%C3%A4t"),
        ] {
            assert_eq!(encoded(text.as_bytes()), expected);
        }
        assert_eq!(encoded(&[b'a'; 5000]).len(), LONGEST);
    }

    #[test]
    fn calls_are_told_by_their_type() {
        for (kind, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web", false),
            ("application/json", false),
        ] {
            let headers = [(CONTENT_TYPE, HeaderValue::from_static(kind))];
            assert_eq!(is_call(&headers.into_iter().collect()), expected, "{kind}");
        }
    }
}
