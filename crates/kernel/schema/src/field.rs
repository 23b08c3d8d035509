//! Paths to fields and what can be wrong with them, in Kubernetes' words.
//!
//! Every validator of the kernel returns a list of [`FieldError`]s; the API server turns the list into the `causes` of a
//! `Status` with code 422. The texts are those that kubectl users know from upstream.

use std::fmt;

/// A text in double quotes, as every message has it.
pub use fairway_text_gotext::strings::quoted;
use serde_json::Value;

/// The path of a field: `spec.ports[0].name`, `metadata.labels[app]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// A path that begins with this field.
    pub fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// The empty path: the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A field below this one.
    #[must_use]
    pub fn child(&self, field: &str) -> Self {
        if self.0.is_empty() {
            Self::new(field)
        } else {
            Self(format!("{}.{field}", self.0))
        }
    }

    /// An element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// A value of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// What is wrong; the names are the `reason`s of upstream's status causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The referenced thing does not exist.
    NotFound,
    /// The field must be set.
    Required,
    /// The value occurs twice.
    Duplicate,
    /// The value is malformed.
    Invalid,
    /// The value is not one of the allowed ones.
    NotSupported,
    /// The value is well-formed but not allowed here.
    Forbidden,
    /// The value is too long.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// Something failed on our side.
    InternalError,
    /// The value has the wrong type.
    TypeInvalid,
}

impl ErrorKind {
    /// The machine-readable reason, as in `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::InternalError => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::InternalError => "Internal error",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where.
    pub path: Path,
    /// The offending value, where showing it helps.
    pub value: Option<Value>,
    /// Why it is wrong, and what would be right.
    pub detail: String,
}

impl FieldError {
    fn make(kind: ErrorKind, path: &Path, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.clone(),
            value,
            detail: detail.into(),
        }
    }

    /// The field must be set.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(ErrorKind::Required, path, None, detail)
    }

    /// The value is malformed.
    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::make(ErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::make(ErrorKind::TypeInvalid, path, Some(value.into()), detail)
    }

    /// The value occurs twice.
    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::make(ErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// The referenced thing does not exist.
    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::make(ErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// The value is not allowed here.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(ErrorKind::Forbidden, path, None, detail)
    }

    /// The value is not one of the supported ones.
    pub fn not_supported(path: &Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let mut sorted: Vec<String> = supported.iter().map(|s| quoted(s)).collect();
        sorted.sort();
        Self::make(
            ErrorKind::NotSupported,
            path,
            Some(value.into()),
            format!("supported values: {}", sorted.join(", ")),
        )
    }

    /// The value is not one of the supported ones, which are listed in the order given.
    pub fn not_supported_in_order<'a>(
        path: &Path,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let quoted: Vec<String> = supported.into_iter().map(quoted).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::make(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// The value is malformed, but too large or too obvious to be shown.
    pub fn invalid_without_value(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(ErrorKind::Invalid, path, None, detail)
    }

    /// Something failed on our side.
    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::make(ErrorKind::InternalError, path, None, detail)
    }

    /// The value is longer than `max` bytes.
    pub fn too_long(path: &Path, max: usize) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::make(
            ErrorKind::TooLong,
            path,
            None,
            format!("may not be more than {max} {unit}"),
        )
    }

    /// The list has more than `max` items.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::make(
            ErrorKind::TooMany,
            path,
            Some(actual.into()),
            format!("must have at most {max} {unit}"),
        )
    }

    /// What goes into `details.causes[].message`: everything but the path.
    pub fn body(&self) -> String {
        let title = self.kind.title();
        let mut text = match &self.value {
            Some(v) if v.is_array() || v.is_object() => format!("{title}: {}", go_json(v)),
            Some(Value::String(s)) => format!("{title}: {}", quoted(s)),
            Some(v) => format!("{title}: {v}"),
            None => title.to_owned(),
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// JSON as upstream writes it: safe to be put into a web page.
fn go_json(v: &Value) -> String {
    let text = v.to_string();
    if !text.contains(['<', '>', '&']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}
