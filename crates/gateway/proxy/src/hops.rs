//! Headers that belong to one connection and not to the message: they end here, in both directions.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
static HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// How many headers `Connection` may name.
const MOST_NAMED: usize = 16;

/// Removes what belongs to the connection. Whether the client takes trailers is kept, because gRPC asks for it.
pub(crate) fn remove(headers: &mut HeaderMap) {
    // Most messages have none, and looking at the names that there are is cheaper than looking for each that might be.
    if !headers.keys().any(is_hop) {
        return;
    }
    if headers.contains_key(CONNECTION) {
        let plain = |value: &HeaderValue| {
            let value = value.as_bytes();
            value.eq_ignore_ascii_case(b"keep-alive") || value.eq_ignore_ascii_case(b"close")
        };
        let mut values = headers.get_all(CONNECTION).iter();
        if !(values.next().is_some_and(plain) && values.next().is_none()) {
            remove_named(headers);
        }
        headers.remove(CONNECTION);
    }
    if headers.contains_key(TE) {
        let trailers = headers
            .get_all(TE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|coding| coding.trim().eq_ignore_ascii_case("trailers"));
        headers.remove(TE);
        if trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
    }
    headers.remove(UPGRADE);
    headers.remove(TRANSFER_ENCODING);
    headers.remove(&KEEP_ALIVE);
    headers.remove(&PROXY_CONNECTION);
    headers.remove(&HTTP2_SETTINGS);
    headers.remove(PROXY_AUTHENTICATE);
    headers.remove(PROXY_AUTHORIZATION);
}

fn is_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "te"
            | "upgrade"
            | "transfer-encoding"
            | "keep-alive"
            | "proxy-connection"
            | "http2-settings"
            | "proxy-authenticate"
            | "proxy-authorization"
    )
}

fn remove_named(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        // A message must not be robbed of what says where it goes or where it ends.
        .filter(|name| name != HOST && name != CONTENT_LENGTH && name != TE)
        .take(MOST_NAMED)
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// What says where a message ends or where it goes has no place in trailers.
pub(crate) fn belongs_in_head(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH
        || *name == TRANSFER_ENCODING
        || *name == HOST
        || *name == TRAILER
        || *name == TE
        || *name == CONNECTION
        || *name == UPGRADE
        || *name == http::header::AUTHORIZATION
        || *name == http::header::COOKIE
        || *name == http::header::SET_COOKIE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_here() {
        for (before, after, reason) in [
            ("connection=close accept=a", "accept=a", "the usual one"),
            ("connection=keep-alive keep-alive=5", "", "its parameters go, too"),
            (
                "connection=close,x-mine x-mine=1 x=2",
                "x=2",
                "what it names goes",
            ),
            (
                "connection=host,content-length host=a content-length=1",
                "content-length=1 host=a",
                "not what routes",
            ),
            ("te=gzip,trailers", "te=trailers", "only trailers are understood"),
            ("te=gzip", "", "and nothing else is"),
            (
                "upgrade=websocket connection=upgrade",
                "",
                "an upgrade is made again if it is meant",
            ),
            (
                "proxy-authorization=secret proxy-connection=a transfer-encoding=chunked",
                "",
                "not for backends",
            ),
        ] {
            let mut headers = HeaderMap::new();
            for header in before.split(' ') {
                let (name, value) = header.split_once('=').unwrap();
                headers.append(
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    value.parse().unwrap(),
                );
            }
            remove(&mut headers);
            let mut left: Vec<String> = headers
                .iter()
                .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
                .collect();
            left.sort();
            assert_eq!(left.join(" "), after, "{reason}");
        }
    }
}
