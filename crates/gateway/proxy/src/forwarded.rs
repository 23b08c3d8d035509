//! What backends are told of where a request came from. What clients say of it themselves is thrown away, unless the options
//! say that something in front of the proxy writes it.

use bytes::Bytes;
use http::header::{FORWARDED, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::chance;
use crate::options::Trust;
use crate::peer::Peer;

static FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static THEIR_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
static PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
static REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
static TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// What is written for every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writes<'a> {
    pub(crate) trust: &'a Trust,
    pub(crate) traces: bool,
    pub(crate) forwarded: bool,
}

/// Of an identifier that comes from outside.
const LONGEST_ID: usize = 128;

/// The name of this request, in logs and for backends.
pub(crate) fn id(headers: &HeaderMap, trust: &Trust) -> HeaderValue {
    if *trust == Trust::Everybody {
        let theirs = headers
            .get(&REQUEST_ID)
            .filter(|id| (1..=LONGEST_ID).contains(&id.len()));
        if let Some(id) = theirs.filter(|id| id.as_bytes().iter().all(u8::is_ascii_graphic)) {
            return id.clone();
        }
    }
    let (high, low) = (chance::next(), chance::next());
    // The form of a random UUID (RFC 9562, version 4), which is what tools expect.
    let number =
        (u128::from(high) << 64 | u128::from(low)) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (0x2 << 62);
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut left = number;
    for at in (0..36).rev().filter(|at| !matches!(at, 8 | 13 | 18 | 23)) {
        text[at] = DIGITS[(left & 15) as usize];
        left >>= 4;
    }
    HeaderValue::from_maybe_shared(Bytes::copy_from_slice(&text)).unwrap_or(HeaderValue::from_static("-"))
}

pub(crate) fn write(headers: &mut HeaderMap, peer: &Peer, id: &HeaderValue, writes: Writes<'_>) {
    let host = headers.get(HOST).cloned();
    match writes.trust {
        Trust::Nobody => {
            if headers.keys().any(tells_origin) {
                headers.remove(FORWARDED);
                headers.remove(&PREFIX);
                headers.remove(&REAL_IP);
                remove_lookalikes(headers);
            }
            headers.insert(&FOR, peer.forwarded_for.clone());
            headers.insert(&PROTO, HeaderValue::from_static(peer.scheme()));
            headers.insert(&PORT, peer.forwarded_port.clone());
            match host {
                Some(host) => headers.insert(&THEIR_HOST, host),
                None => headers.remove(&THEIR_HOST),
            };
        }
        Trust::Everybody => {
            headers.append(&FOR, peer.forwarded_for.clone());
            headers
                .entry(&PROTO)
                .or_insert(HeaderValue::from_static(peer.scheme()));
            headers
                .entry(&PORT)
                .or_insert_with(|| peer.forwarded_port.clone());
            if let Some(host) = host {
                headers.entry(&THEIR_HOST).or_insert(host);
            }
        }
    }
    if writes.forwarded {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if let Ok(value) = HeaderValue::from_str(&forwarded(peer, host)) {
            headers.append(FORWARDED, value);
        }
    }
    headers.insert(&REQUEST_ID, id.clone());
    trace(headers, writes.traces);
}

/// Quick, and rather too often than too seldom.
fn tells_origin(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "x-real-ip") || name.contains('_')
}

/// `X_Forwarded_For` is `X-Forwarded-For` to servers that make variables of headers.
fn remove_lookalikes(headers: &mut HeaderMap) {
    let alike: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            let plain = name.as_str().replace('_', "-");
            plain != name.as_str()
                && (plain.starts_with("x-forwarded-")
                    || matches!(&*plain, "x-real-ip" | "x-request-id" | "forwarded"))
        })
        .cloned()
        .collect();
    for name in alike {
        headers.remove(name);
    }
}

fn forwarded(peer: &Peer, host: Option<&str>) -> String {
    let client = match peer.client.ip() {
        std::net::IpAddr::V4(address) => address.to_string(),
        std::net::IpAddr::V6(address) => format!("\"[{address}]\""),
    };
    let host = host.map(|host| format!(";host=\"{host}\"")).unwrap_or_default();
    format!("for={client}{host};proto={}", peer.scheme())
}

/// A trace that began outside goes on; one that is malformed is not passed on (Trace Context, 4.3).
fn trace(headers: &mut HeaderMap, starts: bool) {
    let known = headers
        .get(&TRACE_PARENT)
        .map(|value| is_trace_parent(value.as_bytes()));
    if known == Some(true) {
        return;
    }
    if known == Some(false) {
        headers.remove(&TRACE_PARENT);
        headers.remove(&TRACE_STATE);
    }
    if !starts {
        return;
    }
    // Zero is not an identifier.
    let trace = (u128::from(chance::next()) << 64 | u128::from(chance::next())).max(1);
    let parent = chance::next().max(1);
    if let Ok(value) = HeaderValue::from_str(&format!("00-{trace:032x}-{parent:016x}-00")) {
        headers.insert(&TRACE_PARENT, value);
    }
}

/// The identifier of a request's trace, if it has one.
pub(crate) fn trace_of(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(&TRACE_PARENT)?.to_str().ok()?;
    value.get(3..35)
}

fn is_trace_parent(value: &[u8]) -> bool {
    let hex = |bytes: &[u8]| bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let some = |bytes: &[u8]| bytes.iter().any(|byte| *byte != b'0');
    value.len() >= 55
        && (value.len() == 55 || (!value.starts_with(b"00") && value[55] == b'-'))
        && hex(&value[..2])
        && &value[..2] != b"ff"
        && [2, 35, 52].iter().all(|at| value[*at] == b'-')
        && hex(&value[3..35])
        && some(&value[3..35])
        && hex(&value[36..52])
        && some(&value[36..52])
        && hex(&value[53..55])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(secure: bool) -> Peer {
        let name = secure.then(|| Some("a.example".to_owned()));
        Peer::new(
            ([192, 0, 2, 7], 5000).into(),
            ([0, 0, 0, 0], 443).into(),
            443,
            name,
        )
    }

    fn written(before: &[(&str, &str)], trust: &Trust, secure: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in before {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let id = id(&headers, trust);
        let writes = Writes {
            trust,
            traces: false,
            forwarded: true,
        };
        write(&mut headers, &peer(secure), &id, writes);
        headers
    }

    #[test]
    fn nobody_is_believed() {
        let headers = written(
            &[
                ("host", "a.example:443"),
                ("x-forwarded-for", "10.0.0.1"),
                ("x_forwarded_for", "10.0.0.2"),
                ("x-forwarded-proto", "http"),
                ("x-forwarded-host", "evil"),
                ("forwarded", "for=10.0.0.3"),
                ("x-real-ip", "10.0.0.4"),
                ("x-request-id", "mine"),
            ],
            &Trust::Nobody,
            true,
        );
        let text: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect();
        let text = text.join("\n");
        assert!(
            !text.contains("10.0.0.") && !text.contains("evil") && !text.contains("mine"),
            "{text}"
        );
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["x-forwarded-host"], "a.example:443");
        assert_eq!(headers["x-forwarded-port"], "443");
        assert_eq!(
            headers["forwarded"],
            "for=192.0.2.7;host=\"a.example:443\";proto=https"
        );
        assert_eq!(headers["x-request-id"].len(), 36);
    }

    #[test]
    fn who_is_believed_is_continued() {
        let before = [
            ("host", "a"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-request-id", "mine"),
        ];
        let headers = written(&before, &Trust::Everybody, false);
        let all: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
        assert_eq!(all, ["10.0.0.1", "192.0.2.7"]);
        assert_eq!(
            (
                headers["x-forwarded-proto"].to_str().unwrap(),
                headers["x-request-id"].to_str().unwrap()
            ),
            ("https", "mine")
        );
    }

    #[test]
    fn traces() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (parent, starts, expected, reason) in [
            (Some(good), true, Some(true), "goes on"),
            (
                Some("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
                false,
                None,
                "zero is none",
            ),
            (Some("garbage"), true, Some(false), "malformed begins anew"),
            (Some("garbage"), false, None, "or is dropped"),
            (None, true, Some(false), "begins"),
            (None, false, None, "nothing is made up"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(parent) = parent {
                headers.insert("traceparent", parent.parse().unwrap());
            }
            trace(&mut headers, starts);
            let found = headers.get("traceparent");
            assert_eq!(found.map(|value| value == good), expected, "{reason}");
            assert!(
                found.is_none_or(|value| is_trace_parent(value.as_bytes())),
                "{reason}"
            );
        }
    }

    #[test]
    fn ids_are_uuids() {
        let id = id(&HeaderMap::new(), &Trust::Nobody);
        let id = id.to_str().unwrap();
        assert!(
            id.len() == 36 && &id[14..15] == "4" && "89ab".contains(&id[19..20]),
            "{id}"
        );
    }
}
