//! Answers of this server itself.

use bytes::Bytes;
use fairway_portal_identity::look;
use fairway_portal_realm::secret;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, LOCATION, SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use crate::Body;
use crate::assets::{self, Asked, Content, Keep};

/// 256 random bits as a text; none if the system gives none.
pub(crate) fn random() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(secret::text(&bytes))
}

/// A body that is there already.
pub(crate) fn full(content: impl Into<Bytes>) -> Body {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn answer(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(content));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// JSON for the application.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    answer(status, "application/json", value.to_string())
}

/// A refusal: to Kubernetes' clients a `Status`, to Backstage's their error, in one.
pub(crate) fn refuse(status: StatusCode, reason: &str, message: &str) -> Response<Body> {
    json(
        status,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
            "code": status.as_u16(), "error": {"name": reason, "message": message}, "response": {"statusCode": status.as_u16()},
        }),
    )
}

/// Nothing but a status.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// Sends a browser elsewhere.
pub(crate) fn redirect(to: &str) -> Response<Body> {
    let mut response = empty(StatusCode::SEE_OTHER);
    match HeaderValue::from_str(to) {
        Ok(to) => response.headers_mut().insert(LOCATION, to),
        Err(_) => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "BadRequest",
                "the address cannot be gone to",
            );
        }
    };
    response
}

/// Where the style of pages is.
const STYLE_PATH: &str = "/auth/style.css";

/// The style of pages.
pub(crate) fn style() -> Response<Body> {
    kept_an_hour(answer(StatusCode::OK, "text/css; charset=utf-8", look::STYLE))
}

/// The letters of the application, for pages that are not part of it; none if it was not built. Their place has no hash in its name.
pub(crate) fn font() -> Response<Body> {
    match assets::letters() {
        Some(file) => kept_an_hour(answer(StatusCode::OK, "font/woff2", file)),
        None => empty(StatusCode::NOT_FOUND),
    }
}

fn kept_an_hour(mut response: Response<Body>) -> Response<Body> {
    let keep = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, keep);
    response
}

/// A page with one sentence, and the way to try again. The sentence is ours; nothing of a stranger stands in it.
pub(crate) fn page(status: StatusCode, sentence: &str) -> Response<Body> {
    let content = format!(
        "<p role=\"alert\">{sentence}</p>\n<p><a class=\"button\" href=\"/auth/login\">Sign in</a></p>\n"
    );
    let html = look::page("Not signed in", STYLE_PATH, &content);
    answer(status, "text/html; charset=utf-8", html)
}

/// Only other methods are answered.
pub(crate) fn not_allowed(allowed: &'static str) -> Response<Body> {
    let why = format!("only {allowed} is answered here");
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", &why);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Sets a cookie.
pub(crate) fn with_cookie(mut response: Response<Body>, cookie: &str) -> Response<Body> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// A file of the application, or its page and the nonce in it.
pub(crate) fn application(request: &Request<Body>) -> (Response<Body>, Option<String>) {
    let is_head = request.method() == Method::HEAD;
    if !is_head && request.method() != Method::GET {
        return (not_allowed("GET, HEAD"), None);
    }
    let found = assets::find(Asked {
        path: request.uri().path(),
        accept_encoding: text(request.headers(), ACCEPT_ENCODING),
        if_none_match: text(request.headers(), IF_NONE_MATCH),
    });
    let is_page = found.kind.starts_with("text/html");
    let nonce = random().unwrap_or_default();
    let content = match found.content {
        Content::None => Bytes::new(),
        Content::File(bytes) => Bytes::from_static(bytes),
        Content::Page(pieces) => Bytes::from(pieces.join(nonce.as_str())),
    };
    let mut response = empty(found.status);
    let headers = response.headers_mut();
    let keep = match found.keep {
        Keep::Forever => "public, max-age=31536000, immutable",
        Keep::Ask => "no-cache",
        Keep::Not => "no-store",
    };
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    if let Some(tag) = found.tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        headers.insert(ETAG, tag);
    }
    if found.varies {
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if found.status != StatusCode::NOT_MODIFIED {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(found.kind));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(content.len()));
        if let Some(encoding) = found.encoding {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
    }
    if !is_head {
        *response.body_mut() = full(content);
    }
    (response, is_page.then_some(nonce))
}
