//! Sessions: a cookie or header that leads back to the endpoint where they began. It says nothing of addresses to whoever does
//! not have the key.

use fairway_gateway_routes::table::{Affinity, ClusterKey, Endpoint};
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use ring::hmac;

pub(crate) struct Marks(hmac::Key);

impl Marks {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// What a session at `endpoint` is marked with.
    pub(crate) fn of(&self, cluster: &ClusterKey, endpoint: &Endpoint) -> String {
        let tag = hmac::sign(&self.0, format!("{cluster:?} {endpoint:?}").as_bytes());
        tag.as_ref()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The mark that a request came with.
pub(crate) fn mark<'a>(affinity: &Affinity, headers: &'a HeaderMap) -> Option<&'a str> {
    if affinity.by_header {
        return headers.get(affinity.name.as_str())?.to_str().ok();
    }
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == affinity.name)
        .map(|(_, value)| value)
}

/// How the client is told.
pub(crate) fn tell(affinity: &Affinity, mark: &str, secure: bool, headers: &mut HeaderMap) {
    if affinity.by_header {
        if let (Ok(name), Ok(value)) = (
            http::HeaderName::from_bytes(affinity.name.as_bytes()),
            HeaderValue::from_str(mark),
        ) {
            headers.insert(name, value);
        }
        return;
    }
    let age = affinity
        .lifetime
        .map(|lifetime| format!("; Max-Age={}", lifetime.as_secs()));
    let cookie = format!(
        "{}={mark}; Path=/; HttpOnly; SameSite=Lax{}{}",
        affinity.name,
        if secure { "; Secure" } else { "" },
        age.unwrap_or_default()
    );
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        headers.append(http::header::SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn cookies_come_back() {
        let by_cookie = Affinity {
            name: "sid".into(),
            by_header: false,
            lifetime: Some(Duration::from_secs(60)),
        };
        let mut told = HeaderMap::new();
        tell(&by_cookie, "abc", true, &mut told);
        assert_eq!(
            told["set-cookie"],
            "sid=abc; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=60"
        );
        for (cookies, expected, reason) in [
            ("sid=abc", Some("abc"), "alone"),
            ("a=b; sid=abc; c=d", Some("abc"), "among others"),
            ("asid=abc", None, "another name"),
            ("sid", None, "no value"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookies.parse().unwrap());
            assert_eq!(mark(&by_cookie, &headers), expected, "{reason}");
        }
    }

    #[test]
    fn marks_differ_by_endpoint_and_key() {
        let key = ClusterKey {
            workspace: "root".into(),
            namespace: "a".into(),
            service: "b".into(),
            port: 1,
            via: String::new(),
        };
        let at = |port: u16| Endpoint::Address(([10, 0, 0, 1], port).into());
        let (one, other) = (Marks::new(&[1; 32]), Marks::new(&[2; 32]));
        assert_eq!(one.of(&key, &at(1)), one.of(&key, &at(1)));
        assert_ne!(one.of(&key, &at(1)), one.of(&key, &at(2)));
        assert_ne!(one.of(&key, &at(1)), other.of(&key, &at(1)));
    }
}
