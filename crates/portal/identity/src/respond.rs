//! Answers: JSON for programs, pages for people, and the headers that keep both from being misused.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tracing::warn;

/// Any error of a connection.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What every answer says: kept by nobody, shown in no frame, guessed to be nothing else, told to nobody.
const HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
];

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into())
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Nothing but headers.
pub(crate) fn nothing() -> Response<Body> {
    answer(StatusCode::NO_CONTENT, "text/plain; charset=utf-8", Bytes::new())
}

/// For a program.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    answer(status, "application/json", value.to_string())
}

/// What everybody may know and keep for a while: keys and addresses.
pub(crate) fn public(value: &Value) -> Response<Body> {
    let mut response = json(StatusCode::OK, value);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    headers.insert("access-control-allow-origin", HeaderValue::from_static("*"));
    response
}

/// The error of a program (RFC 6749, section 5.2).
pub(crate) fn error(status: StatusCode, error: &str, description: &str) -> Response<Body> {
    json(status, &json!({"error": error, "error_description": description}))
}

/// Something of ours failed: the log says what, the answer does not.
pub(crate) fn failed(failure: &(dyn std::error::Error + 'static)) -> Response<Body> {
    let source = failure.source().map(ToString::to_string).unwrap_or_default();
    warn!(%failure, source, "a request for sign-in failed");
    let why = "the server could not do it; try again, and look into its log if it stays so";
    error(StatusCode::INTERNAL_SERVER_ERROR, "server_error", why)
}

/// A page. Its forms may lead to the place named, beside here.
pub(crate) fn page(status: StatusCode, html: String, leads_to: Option<&str>) -> Response<Body> {
    let mut response = answer(status, "text/html; charset=utf-8", html);
    let more = leads_to.map(|origin| format!(" {origin}")).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; font-src 'self'; form-action 'self'{more}; frame-ancestors 'none'; base-uri 'none'"
    );
    let policy = HeaderValue::from_str(&policy);
    let policy = policy.unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    response.headers_mut().insert("content-security-policy", policy);
    response
}

/// The style of pages.
pub(crate) fn style(css: &'static str) -> Response<Body> {
    let mut response = answer(StatusCode::OK, "text/css; charset=utf-8", css);
    let keep = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, keep);
    response
}

/// Sends a browser elsewhere, with GET whatever it came with.
pub(crate) fn redirect(to: &str) -> Response<Body> {
    let Ok(to) = HeaderValue::from_str(to) else {
        return error(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "the address cannot be gone to",
        );
    };
    let mut response = answer(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Bytes::new());
    response.headers_mut().insert(LOCATION, to);
    response
}

/// Sets a cookie.
pub(crate) fn with_cookie(mut response: Response<Body>, cookie: &str) -> Response<Body> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
