//! The three patch formats of the API: JSON patch, JSON merge patch, strategic merge patch.
//!
//! All work on JSON values in the version of the request; the caller decodes, validates and converts the result. Errors
//! carry the status with which Kubernetes answers.

mod json_patch;
mod merge_patch;
mod strategic;

use thiserror::Error;

pub use json_patch::json_patch;
pub use merge_patch::merge_patch;
pub use strategic::strategic_merge_patch;

use serde_json::Value;

/// Why a patch was not applied.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is malformed.
    #[error("{0}")]
    BadRequest(String),
    /// The patch is too large.
    #[error("{0}")]
    TooLarge(String),
    /// The patch is well-formed but does not fit the object.
    #[error("{0}")]
    Unprocessable(String),
    /// The result would be larger than anything may be here. Kubernetes knows no such limit, so the words are our own.
    #[error("{0}")]
    Beyond(String),
    /// The object does not have the shape that the patch needs; Kubernetes has no better status for it.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::TooLarge(_) => 413,
            Self::Unprocessable(_) | Self::Beyond(_) => 422,
            Self::Internal(_) => 500,
        }
    }
}

/// The type that Go's decoder gives a value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints maps and lists.
pub fn go_text(value: &Value) -> String {
    go_print(value, &|scalar| match scalar {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// Maps and lists in Go's form, what is in them as `scalar` says.
fn go_print(value: &Value, scalar: &dyn Fn(&Value) -> String) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| go_print(item, scalar)).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| key.as_str());
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", go_print(value, scalar)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        other => scalar(other),
    }
}
