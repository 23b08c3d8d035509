//! Answers.

use fairway_apiservice::{Body, empty, full};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::refusal::Refusal;

/// Nothing to tell but that it was taken up, or done.
pub(crate) fn done(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}

pub(crate) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(full(value.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

pub(crate) fn png(picture: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(full(picture));
    let png = HeaderValue::from_static("image/png");
    response.headers_mut().insert(header::CONTENT_TYPE, png);
    response
}

pub(crate) fn text(text: String) -> Response<Body> {
    let mut response = Response::new(full(text));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    let status = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if refusal.is_text {
        let mut response = text(refusal.message.clone());
        *response.status_mut() = status;
        return response;
    }
    json(status, &refusal.status())
}
