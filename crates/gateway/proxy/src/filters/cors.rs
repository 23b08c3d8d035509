//! Which pages of other sites may read answers. A preflight is answered here and never forwarded.

use fairway_gateway_routes::table::Cors;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::body::Body;

/// The answer to a preflight, if the request is one.
pub(crate) fn preflight(cors: &Cors, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    let wanted = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    let origin = headers.get(ORIGIN)?;
    if *method != Method::OPTIONS {
        return None;
    }
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let out = response.headers_mut();
    vary(out);
    // A site that is not let in gets an answer without permission, and its browser stops there.
    if !allows(cors, origin) {
        return Some(response);
    }
    out.insert(ACCESS_CONTROL_ALLOW_ORIGIN, shown_origin(cors, origin));
    if cors.credentials {
        out.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if let Some(methods) = list(&cors.methods, cors.credentials, Some(wanted)) {
        out.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    }
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
    if let Some(allowed) = list(&cors.headers, cors.credentials, asked) {
        out.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    out.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(cors.max_age));
    Some(response)
}

/// What other answers to a request from `origin` say.
pub(crate) fn permit(cors: &Cors, origin: &HeaderValue, out: &mut HeaderMap) {
    vary(out);
    if !allows(cors, origin) {
        return;
    }
    out.insert(ACCESS_CONTROL_ALLOW_ORIGIN, shown_origin(cors, origin));
    if cors.credentials {
        out.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if let Ok(expose) = HeaderValue::from_str(&cors.expose.join(", "))
        && !cors.expose.is_empty()
    {
        out.insert(ACCESS_CONTROL_EXPOSE_HEADERS, expose);
    }
}

/// Answers differ by origin, and caches must know.
fn vary(out: &mut HeaderMap) {
    out.append(VARY, HeaderValue::from_static("origin"));
}

/// `*` may not be combined with credentials; the origin itself may.
fn shown_origin(cors: &Cors, origin: &HeaderValue) -> HeaderValue {
    if !cors.credentials && cors.origins.iter().any(|allowed| allowed == "*") {
        HeaderValue::from_static("*")
    } else {
        origin.clone()
    }
}

/// `*` means anything, which with credentials must be spelt out: then it is what was asked for.
fn list(allowed: &[String], credentials: bool, asked: Option<&HeaderValue>) -> Option<HeaderValue> {
    if allowed.iter().any(|one| one == "*") {
        return if credentials {
            asked.cloned()
        } else {
            Some(HeaderValue::from_static("*"))
        };
    }
    if allowed.is_empty() {
        return None;
    }
    HeaderValue::from_str(&allowed.join(", ")).ok()
}

fn allows(cors: &Cors, origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let origin = origin.to_ascii_lowercase();
    cors.origins
        .iter()
        .any(|allowed| fits(&allowed.to_ascii_lowercase(), &origin))
}

/// `https://*.example.com` matches any name below, however deep.
fn fits(allowed: &str, origin: &str) -> bool {
    match allowed.split_once('*') {
        None => allowed == origin,
        Some(("", "")) => true,
        Some((before, after)) => {
            origin.len() > before.len() + after.len()
                && origin.starts_with(before)
                && origin.ends_with(after)
                // The star stands for labels of a host name and nothing else.
                && origin[before.len()..origin.len() - after.len()]
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        for (allowed, origin, expected) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://A.Example", true),
            ("https://a.example", "http://a.example", false),
            ("https://*.example", "https://a.b.example", true),
            ("https://*.example", "https://example", false),
            ("https://*.example", "https://evil.test/.example", false),
            ("https://*.example", "https://a.example.evil", false),
            ("*", "null", true),
        ] {
            let cors = Cors {
                origins: vec![allowed.into()],
                ..Cors::default()
            };
            assert_eq!(
                allows(&cors, &origin.parse().unwrap()),
                expected,
                "{allowed} {origin}"
            );
        }
    }

    #[test]
    fn preflights() {
        let cors = Cors {
            origins: vec!["https://a.example".into()],
            credentials: true,
            methods: vec!["*".into()],
            headers: vec!["x-a".into(), "x-b".into()],
            expose: vec![],
            max_age: 5,
        };
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, "https://a.example".parse().unwrap());
        assert!(
            preflight(&cors, &Method::OPTIONS, &headers).is_none(),
            "an ordinary OPTIONS"
        );
        headers.insert(ACCESS_CONTROL_REQUEST_METHOD, "PUT".parse().unwrap());
        assert!(preflight(&cors, &Method::GET, &headers).is_none(), "not OPTIONS");
        let answer = preflight(&cors, &Method::OPTIONS, &headers).unwrap();
        let told = answer.headers();
        assert_eq!(
            told["access-control-allow-methods"], "PUT",
            "a star with credentials is spelt out"
        );
        assert_eq!(told["access-control-allow-headers"], "x-a, x-b");
        assert_eq!(told["access-control-max-age"], "5");
        headers.insert(ORIGIN, "https://evil.example".parse().unwrap());
        let answer = preflight(&cors, &Method::OPTIONS, &headers).unwrap();
        assert!(
            !answer.headers().contains_key("access-control-allow-origin"),
            "not let in"
        );
    }
}
