//! Answers and errors in Backstage's shape.

use bytes::Bytes;
use fairway_controller::Failure;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::Body;

pub(super) fn body(content: impl Into<Bytes>) -> Body {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub(super) fn json(status: u16, value: &Value) -> Response<Body> {
    let mut answer = Response::new(body(value.to_string()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Problem {
    status: u16,
    name: &'static str,
    message: String,
    errors: Option<Vec<Value>>,
}

impl Problem {
    fn new(status: u16, name: &'static str, message: &str) -> Self {
        Self {
            status,
            name,
            message: message.to_owned(),
            errors: None,
        }
    }

    pub(super) fn input(message: &str) -> Self {
        Self::new(400, "InputError", message)
    }

    pub(super) fn errors(errors: Vec<Value>) -> Self {
        Self {
            errors: Some(errors),
            ..Self::new(400, "InputError", "the answers are not good")
        }
    }

    pub(super) fn unauthenticated() -> Self {
        Self::new(
            401,
            "AuthenticationError",
            "a token is needed that is valid in this workspace",
        )
    }

    pub(super) fn forbidden(message: &str) -> Self {
        Self::new(403, "NotAllowedError", message)
    }

    pub(super) fn not_found(message: &str) -> Self {
        Self::new(404, "NotFoundError", message)
    }

    pub(super) fn busy(most: usize) -> Self {
        let why = format!(
            "{most} streams of events are open, and there are no more; ask for .../events instead, or later"
        );
        Self::new(503, "ServiceUnavailableError", &why)
    }

    /// What the Kubernetes API says.
    pub(super) fn api(failure: &Failure) -> Self {
        let said = failure.sentence();
        match () {
            () if failure.is_conflict() => Self::new(409, "ConflictError", &said),
            () if said.contains("forbidden") => Self::forbidden(&said),
            () if said.contains("denied the request") => Self::input(&said),
            () => Self::new(500, "Error", &said),
        }
    }

    pub(super) fn response(self, method: &Method, path: &str) -> Response<Body> {
        if let Some(errors) = &self.errors {
            return json(self.status, &json!({ "errors": errors }));
        }
        let value = json!({
            "error": {"name": self.name, "message": self.message},
            "request": {"method": method.as_str(), "url": path}, "response": {"statusCode": self.status},
        });
        json(self.status, &value)
    }
}
