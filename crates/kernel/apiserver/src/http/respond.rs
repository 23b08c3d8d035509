//! Turning answers into HTTP responses.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::Value;

use super::body::{ResponseBody, full};
use super::negotiate::Format;
use crate::status::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A response with these bytes.
pub fn bytes(code: u16, content_type: HeaderValue, body: Bytes) -> Response<ResponseBody> {
    let length = HeaderValue::from(body.len());
    let mut response = Response::new(full(body));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CONTENT_LENGTH, length);
    // Answers depend on who asks; no cache in between may keep them.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// JSON that has been serialised already.
pub fn json_bytes(code: u16, body: Bytes) -> Response<ResponseBody> {
    bytes(code, JSON, body)
}

/// Plain text.
pub fn text(code: u16, body: impl Into<Bytes>) -> Response<ResponseBody> {
    bytes(code, TEXT, body.into())
}

/// A value in the format that the client asked for.
pub fn value(code: u16, format: Format, value: &Value) -> Response<ResponseBody> {
    let (content_type, body) = encode(format, value);
    bytes(code, content_type, body)
}

/// A value as bytes, and their content type.
pub fn encode(format: Format, value: &Value) -> (HeaderValue, Bytes) {
    match format {
        Format::Json => (JSON, to_bytes(serde_json::to_vec(value))),
        Format::PrettyJson => (JSON, to_bytes(serde_json::to_vec_pretty(value))),
        Format::Yaml => (YAML, fairway_text_yaml::to_string(value).into()),
    }
}

fn to_bytes(encoded: serde_json::Result<Vec<u8>>) -> Bytes {
    // Values have only string keys, so serialising them cannot fail.
    encoded.unwrap_or_default().into()
}

/// A refusal.
pub fn error(format: Format, error: &ApiError) -> Response<ResponseBody> {
    if error.is_plain_text() {
        return text(error.code, error.message.clone());
    }
    let mut response = value(error.code, format, &error.to_status());
    if let Some(details) = &error.details
        && details.retry_after_seconds > 0
    {
        response
            .headers_mut()
            .insert(RETRY_AFTER, details.retry_after_seconds.into());
    }
    response
}

/// Characters of all warnings together that are sent whole.
const ALL_WARNINGS: usize = 4096;
/// Characters that are sent of each if there are more.
const ONE_OF_MANY_WARNINGS: usize = 256;

/// Adds what `Warning` headers tell people.
pub fn warn(response: &mut Response<ResponseBody>, warnings: &[String]) {
    // A warning may repeat what the client sent. As upstream does: all of it while that is little, else the beginnings.
    let all: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let (each, most) = if all > ALL_WARNINGS {
        (ONE_OF_MANY_WARNINGS, ALL_WARNINGS / ONE_OF_MANY_WARNINGS)
    } else {
        (usize::MAX, usize::MAX)
    };
    for warning in warnings.iter().take(most) {
        let mut quoted = String::with_capacity(warning.len() + 10);
        quoted.push_str("299 - \"");
        for c in warning.chars().take(each) {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c if c.is_control() => quoted.push(' '),
                c => quoted.push(c),
            }
        }
        quoted.push('"');
        if let Ok(header) = HeaderValue::from_bytes(quoted.as_bytes()) {
            response.headers_mut().append("warning", header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_cut_when_they_are_many() {
        let sent = |warnings: &[String]| -> Vec<usize> {
            let mut response = text(200, String::new());
            warn(&mut response, warnings);
            let headers = response.headers().get_all("warning");
            headers.iter().map(|h| h.len() - "299 - \"\"".len()).collect()
        };
        let long = "w".repeat(3_000);
        assert_eq!(sent(&[long.clone(), "short".to_owned()]), [3_000, 5]);
        assert_eq!(
            sent(&[long.clone(), "short".to_owned(), long.clone()]),
            [256, 5, 256]
        );
        assert_eq!(sent(&vec![long; 32]).len(), 16);
    }
}
