//! Bodies for the log: what was sent and what was answered, read again as far as the policy asks for it.
//!
//! A body of more than [`MAX_OBJECT`] bytes is not kept; the line says so with upstream's annotation. The limit is
//! upstream's for whole events.

use std::io::Read;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};

use super::policy::{Level, Verdict};
use crate::http::body::{self, BodyFormat, ResponseBody, full};

/// Largest body that is kept.
pub const MAX_OBJECT: usize = 100 * 1024;

/// How a request was answered.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The answer's code.
    pub code: u16,
    /// What a `Status` says beyond its code.
    pub details: Option<Map<String, Value>>,
    /// The answer, if it is kept.
    pub object: Option<Value>,
    /// Whether something was too large to be kept.
    pub truncated: bool,
}

impl Outcome {
    /// An answer of which nothing but the code is kept.
    pub fn of_code(code: u16) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// The server failed while it was at it.
    pub fn panicked(reason: &str) -> Self {
        let details = json!({
            "status": "Failure", "reason": "InternalError", "message": format!("APIServer panic'd: {reason}"),
        });
        Self {
            code: 500,
            details: details.as_object().cloned(),
            ..Self::default()
        }
    }
}

/// Reads an answer as far as the log needs it. What was read is put back.
pub(crate) async fn answer(response: &mut Response<ResponseBody>, verdict: Verdict) -> Outcome {
    let mut outcome = Outcome::of_code(response.status().as_u16());
    let wanted = verdict.level == Level::RequestResponse;
    if !wanted && outcome.code < 400 {
        return outcome;
    }
    // Only what is there already: a watch, or a list that is strung together while it is sent, has no exact size.
    let small = response
        .body()
        .size_hint()
        .exact()
        .is_some_and(|n| n <= MAX_OBJECT as u64);
    if !small {
        outcome.truncated = wanted;
        return outcome;
    }
    let body = std::mem::replace(response.body_mut(), full(Bytes::new()));
    let Ok(collected) = body.collect().await else {
        return outcome;
    };
    let bytes = collected.to_bytes();
    *response.body_mut() = full(bytes.clone());
    let Some(mut object) = read(response.headers(), &bytes) else {
        return outcome;
    };
    if object["kind"] == "Status" && object["apiVersion"] == "v1" {
        let kept = ["status", "message", "reason", "details"];
        let fields = kept
            .iter()
            .filter_map(|f| Some(((*f).to_owned(), object.get(*f)?.clone())));
        outcome.details = Some(fields.collect());
    }
    if wanted {
        if verdict.omit_managed_fields {
            drop_managed_fields(&mut object);
        }
        outcome.object = Some(object);
    }
    outcome
}

/// What was sent, and whether it was too large to be kept.
pub(crate) fn request(headers: &HeaderMap, bytes: &Bytes, verdict: Verdict) -> (Option<Value>, bool) {
    if verdict.level < Level::Request || bytes.is_empty() {
        return (None, false);
    }
    if bytes.len() > MAX_OBJECT {
        return (None, true);
    }
    let mut object = read(headers, bytes);
    if verdict.omit_managed_fields
        && let Some(object) = &mut object
    {
        drop_managed_fields(object);
    }
    (object, false)
}

fn read(headers: &HeaderMap, bytes: &Bytes) -> Option<Value> {
    let mut plain = Vec::new();
    let bytes = match headers.get(CONTENT_ENCODING) {
        None => bytes.as_ref(),
        Some(encoding) if encoding == "gzip" => {
            let decoder = flate2::read::GzDecoder::new(bytes.as_ref());
            decoder.take(MAX_OBJECT as u64 + 1).read_to_end(&mut plain).ok()?;
            plain.as_slice()
        }
        Some(_) => return None,
    };
    let media = headers.get(CONTENT_TYPE).map_or(Some(""), |v| v.to_str().ok())?;
    let media = media.split(';').next().unwrap_or("").trim();
    let format = match media {
        _ if media.ends_with("yaml") => BodyFormat::Yaml,
        "" => BodyFormat::Json,
        _ if media.ends_with("json") => BodyFormat::Json,
        "application/vnd.kubernetes.protobuf" => BodyFormat::Protobuf,
        _ => return None,
    };
    body::parse(bytes, format).ok().map(|parsed| parsed.value)
}

/// From an object, the items of a list, and the objects of a table's rows.
fn drop_managed_fields(object: &mut Value) {
    fn from_one(object: &mut Value) {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
    }
    from_one(object);
    for item in object
        .get_mut("items")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        from_one(item);
    }
    for row in object
        .get_mut("rows")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(object) = row.get_mut("object") {
            from_one(object);
        }
    }
}
