//! Answers, and errors in the JSON that Backstage's clients read.

use bytes::Bytes;
use fairway_controller::Failure;
use fairway_controller::error::status;
use fairway_portal_entity::InputError;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::Body;

/// What is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    content: Option<Bytes>,
    link: Option<String>,
}

impl Answer {
    pub(crate) fn ok(value: &Value) -> Self {
        Self::with(StatusCode::OK, value)
    }

    pub(crate) fn created(value: &Value) -> Self {
        Self::with(StatusCode::CREATED, value)
    }

    pub(crate) fn with(status: StatusCode, value: &Value) -> Self {
        Self {
            status,
            content: Some(value.to_string().into()),
            link: None,
        }
    }

    /// JSON that is written already.
    pub(crate) fn text(text: String) -> Self {
        Self {
            status: StatusCode::OK,
            content: Some(text.into()),
            link: None,
        }
    }

    pub(crate) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            content: None,
            link: None,
        }
    }

    /// With the address of the next page.
    pub(crate) fn next(mut self, address: Option<String>) -> Self {
        self.link = address.map(|address| format!("<{address}>; rel=\"next\""));
        self
    }

    pub(crate) fn response(self) -> Response<Body> {
        let mut response = response(self.status, self.content);
        if let Some(link) = self.link.and_then(|link| HeaderValue::from_str(&link).ok()) {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

fn response(status: StatusCode, content: Option<Bytes>) -> Response<Body> {
    let is_json = content.is_some();
    let body = Full::new(content.unwrap_or_default());
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if is_json {
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/json; charset=utf-8"),
        );
    }
    // Entities hold what people wrote: nobody keeps them, and no browser takes them for a page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Why a request is not answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    name: &'static str,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, name: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            name,
            message,
        }
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InputError", message)
    }

    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "AuthenticationError", message)
    }

    pub(crate) fn not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "NotAllowedError", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "ConflictError", message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailableError",
            message,
        )
    }

    pub(crate) fn broken(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Error", message)
    }

    /// What the API says of an object that it does not take.
    pub(crate) fn of(failure: &Failure) -> Self {
        let code = match failure {
            Failure::Api { source, .. } => status(source).map(|status| status.code),
            _ => None,
        };
        let message = failure.sentence();
        match code {
            Some(400 | 422) => Self::input(message),
            Some(403) => Self::not_allowed(message),
            Some(404) => Self::not_found(message),
            Some(409) => Self::conflict(message),
            _ => super::broken("asking the API", &message),
        }
    }

    pub(crate) fn response(self, method: &Method, url: &str) -> Response<Body> {
        let content = json!({
            "error": {"name": self.name, "message": self.message},
            "request": {"method": method.as_str(), "url": url},
            "response": {"statusCode": self.status.as_u16()},
        });
        let mut response = response(self.status, Some(content.to_string().into()));
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"Fairway\"");
            response
                .headers_mut()
                .insert(http::header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        Self::input(error.0)
    }
}
