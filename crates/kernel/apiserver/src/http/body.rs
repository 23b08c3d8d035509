//! Request bodies, bounded, and the type of response bodies.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use fairway_kernel_schema::json_type;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::status::ApiError;

/// Errors of a body's stream.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// What is sent.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
/// What is received.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// Upstream's limit on a request's body.
pub const MAX_BODY: usize = 3 * 1024 * 1024;
/// How deep JSON and YAML may nest.
pub const MAX_DEPTH: usize = 100;

/// A body that is there already.
pub fn full(bytes: impl Into<Bytes>) -> ResponseBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A body that keeps something until it has been handed over, or given up.
pub fn keeping<T: Send + 'static>(body: ResponseBody, kept: T) -> ResponseBody {
    Keeping {
        body,
        _kept: Box::new(kept),
    }
    .boxed_unsync()
}

struct Keeping<T> {
    body: ResponseBody,
    _kept: Box<T>,
}

impl<T> Body for Keeping<T> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a whole body, up to the limit.
pub async fn read(mut body: RequestBody) -> Result<Bytes, ApiError> {
    let mut collected = BytesMut::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| ApiError::bad_request(format!("the request's body broke off: {e}")))?;
        let Ok(data) = frame.into_data() else { continue };
        let so_far = first.as_ref().map_or(0, Bytes::len) + collected.len();
        if so_far + data.len() > MAX_BODY {
            return Err(ApiError::too_large(MAX_BODY));
        }
        // Nearly every body is a single frame, which needs no copy.
        match first.take() {
            None if collected.is_empty() => first = Some(data),
            None => collected.extend_from_slice(&data),
            Some(start) => {
                collected.extend_from_slice(&start);
                collected.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| collected.freeze()))
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/json`, also where nothing is said.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, for built-in kinds.
    Protobuf,
}

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// What bodies with objects of custom resources may be written in.
pub const ACCEPTED_OF_CUSTOM: &str = "application/json, application/yaml";

/// The format of a request's body.
pub fn format(headers: &HeaderMap) -> Result<BodyFormat, ApiError> {
    match media_type(headers) {
        "" | "application/json" => Ok(BodyFormat::Json),
        "application/yaml" => Ok(BodyFormat::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyFormat::Protobuf),
        _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
    }
}

/// The `Content-Type` without its parameters.
pub fn media_type(headers: &HeaderMap) -> &str {
    headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .map_or("", |v| v.split(';').next().unwrap_or("").trim())
}

/// A body, parsed, and what is to be said of keys that occur twice in it.
#[derive(Debug)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Complaints, as strict clients hear them.
    pub duplicates: Vec<String>,
}

/// Parses a body.
pub fn parse(bytes: &[u8], format: BodyFormat) -> Result<Parsed, ApiError> {
    match format {
        BodyFormat::Json => fairway_text_yaml::parse_json(bytes, MAX_DEPTH)
            .map(|(value, duplicates)| Parsed {
                value,
                duplicates: duplicates.iter().map(ToString::to_string).collect(),
            })
            .map_err(|e| {
                let fault = fairway_text_yaml::json_fault(bytes).unwrap_or_else(|| e.to_string());
                ApiError::bad_request(format!("couldn't get version/kind; json parse error: {fault}"))
            }),
        BodyFormat::Yaml => parse_yaml(bytes),
        BodyFormat::Protobuf => fairway_kernel_protobuf::decode(bytes)
            .map(|value| Parsed {
                value,
                duplicates: Vec::new(),
            })
            .map_err(|e| ApiError::bad_request(e.to_string())),
    }
}

/// The start of a body, for messages: as text if it looks like JSON, else in hexadecimal.
pub fn summary(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    match bytes {
        [] => "<empty>".to_owned(),
        [b'{', ..] if bytes.len() > SHOWN => format!("{} ...", String::from_utf8_lossy(&bytes[..SHOWN])),
        [b'{', ..] => String::from_utf8_lossy(bytes).into_owned(),
        _ => {
            let hex: String = bytes.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect();
            if bytes.len() > SHOWN {
                format!("{hex} ...")
            } else {
                hex
            }
        }
    }
}

/// Why the kind and version of an object cannot be read off it.
pub fn identity_fault(value: &Value) -> Option<String> {
    const STRUCT: &str = "Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                          Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let cannot = |found: &str, target: &str| {
        Some(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into {target}"
        ))
    };
    let Value::Object(fields) = value else {
        return match value {
            Value::Null => None,
            other => cannot(json_type(other), STRUCT),
        };
    };
    for field in ["apiVersion", "kind"] {
        match fields.get(field) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                let target = format!("Go struct field .{field} of type string");
                return cannot(json_type(other), &target);
            }
        }
    }
    let version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or("");
    (version.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {version}"))
}

fn parse_yaml(bytes: &[u8]) -> Result<Parsed, ApiError> {
    let wrong = |e: &dyn std::fmt::Display| ApiError::bad_request(e.to_string());
    let text = std::str::from_utf8(bytes).map_err(|e| wrong(&e))?;
    let limits = fairway_text_yaml::Limits {
        depth: MAX_DEPTH,
        ..fairway_text_yaml::Limits::default()
    };
    let document = fairway_text_yaml::from_str_with(text, limits, fairway_text_yaml::Resolution::Yaml11)
        .map_err(|e| wrong(&e))?;
    // Go's library has one error for all of them.
    let lines: String = document.duplicates.iter().map(|d| format!("\n  {d}")).collect();
    let complaint = (!lines.is_empty()).then(|| format!("yaml: unmarshal errors:{lines}"));
    Ok(Parsed {
        value: document.value,
        duplicates: complaint.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn format_of(content_type: &'static str) -> Result<BodyFormat, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        format(&headers).map_err(|e| e.code)
    }

    #[test]
    fn formats_go_by_the_media_type() {
        assert_eq!(format(&HeaderMap::new()).ok(), Some(BodyFormat::Json));
        assert_eq!(format_of("application/json; charset=utf-8"), Ok(BodyFormat::Json));
        assert_eq!(
            format_of("application/vnd.kubernetes.protobuf"),
            Ok(BodyFormat::Protobuf)
        );
        assert_eq!(format_of("application/cbor"), Err(415));
    }

    #[test]
    fn protobuf_is_read_as_json() {
        let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01x";
        let parsed = parse(body, BodyFormat::Protobuf).unwrap();
        let expected =
            serde_json::json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}});
        assert_eq!(parsed.value, expected);
        assert_eq!(parse(b"{}", BodyFormat::Protobuf).unwrap_err().code, 400);
    }
}
