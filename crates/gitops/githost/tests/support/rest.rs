//! Calls of the REST API, without a socket.

use bytes::Bytes;
use fairway_gitops_githost::transport::full;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::place::Place;

pub(crate) struct Said {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
    pub body: Value,
}

/// Calls the API as a user.
pub(crate) async fn call(place: &Place, user: &str, method: &str, path: &str, body: Value) -> Said {
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(format!("http://git.fairway.localhost/api/v1/{path}"));
    if !user.is_empty() {
        request = request.header("authorization", format!("token {user}"));
    }
    let content = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let response = place.host.serve(request.body(full(content)).unwrap()).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Said {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        bytes,
    }
}

/// The same as one who may write, and it must succeed.
pub(crate) async fn ok(place: &Place, method: &str, path: &str, body: Value) -> Value {
    let said = call(place, "writer", method, path, body).await;
    assert!(
        (200..300).contains(&said.status),
        "{method} {path}: {} {}",
        said.status,
        said.body
    );
    said.body
}
