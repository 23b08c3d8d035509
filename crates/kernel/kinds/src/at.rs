//! Where a validator is, without allocating: most objects are right, so paths become text only for errors.
//!
//! [`At`] is a linked path on the stack; [`Errors`] turns it into a [`FieldError`] when something is wrong.

use std::fmt;

use fairway_kernel_schema::field::{ErrorKind, FieldError, Path};
use serde_json::Value;

/// A position in an object.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> At<'a> {
    /// A position that begins with this field, or these, joined by dots; empty for the object itself.
    pub const fn new(field: &'a str) -> Self {
        Self {
            parent: None,
            step: Step::Field(field),
        }
    }

    /// A field below this one.
    pub fn field<'b>(&'b self, field: &'b str) -> At<'b> {
        At {
            parent: Some(self),
            step: Step::Field(field),
        }
    }

    /// An element of this list.
    pub fn index(&self, index: usize) -> At<'_> {
        At {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// A value of this map.
    pub fn key<'b>(&'b self, key: &'b str) -> At<'b> {
        At {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    /// The position as the path that users see.
    pub fn path(&self) -> Path {
        let above = self.parent.map_or_else(Path::root, At::path);
        match self.step {
            Step::Field("") => above,
            Step::Field(name) => above.child(name),
            Step::Index(index) => above.index(index),
            Step::Key(key) => above.key(key),
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().fmt(f)
    }
}

/// What a validator found; each method notes one kind of mistake.
#[derive(Debug, Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    /// Nothing found yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many mistakes were found.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All that was found.
    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }

    /// Adds an error made elsewhere.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// The field must be set.
    pub fn required(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.0.push(FieldError::required(&at.path(), detail));
    }

    /// The value is malformed.
    pub fn invalid(&mut self, at: &At<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.0.push(FieldError::invalid(&at.path(), value, detail));
    }

    /// The value is malformed, but is better not shown.
    pub fn invalid_unshown(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.0.push(FieldError {
            kind: ErrorKind::Invalid,
            path: at.path(),
            value: None,
            detail: detail.into(),
        });
    }

    /// The value has these faults.
    pub fn all_invalid(&mut self, at: &At<'_>, value: &str, details: Vec<String>) {
        for detail in details {
            self.invalid(at, value, detail);
        }
    }

    /// The value is not allowed here.
    pub fn forbidden(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.0.push(FieldError::forbidden(&at.path(), detail));
    }

    /// The value is not one of the supported ones.
    pub fn not_supported(&mut self, at: &At<'_>, value: impl Into<Value>, supported: &[&str]) {
        // In the caller's order, which is upstream's; most of its lists are sorted, some are not.
        let quoted: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        self.0.push(FieldError {
            kind: ErrorKind::NotSupported,
            path: at.path(),
            value: Some(value.into()),
            detail: format!("supported values: {}", quoted.join(", ")),
        });
    }

    /// The value occurs twice.
    pub fn duplicate(&mut self, at: &At<'_>, value: impl Into<Value>) {
        self.0.push(FieldError::duplicate(&at.path(), value));
    }

    /// The referenced thing does not exist.
    pub fn not_found(&mut self, at: &At<'_>, value: impl Into<Value>) {
        self.0.push(FieldError::not_found(&at.path(), value));
    }

    /// The referenced thing does not exist; the detail says where it was looked for.
    pub fn not_found_because(&mut self, at: &At<'_>, value: impl Into<Value>, detail: String) {
        let error = FieldError::not_found(&at.path(), value);
        self.0.push(FieldError { detail, ..error });
    }

    /// The value is longer than `max` bytes.
    pub fn too_long(&mut self, at: &At<'_>, max: usize) {
        self.0.push(FieldError::too_long(&at.path(), max));
    }

    /// The list has more than `max` items.
    pub fn too_many(&mut self, at: &At<'_>, actual: usize, max: usize) {
        self.0.push(FieldError::too_many(&at.path(), actual, max));
    }

    /// Something failed on our side.
    pub fn internal(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.0.push(FieldError {
            kind: ErrorKind::InternalError,
            path: at.path(),
            value: None,
            detail: detail.into(),
        });
    }

    /// A required string that must be one of a set.
    pub fn one_of(&mut self, at: &At<'_>, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(at, value, supported);
        }
    }

    /// A string that must be set, and one of a set.
    pub fn required_one_of(&mut self, at: &At<'_>, value: &str, supported: &[&str]) {
        if value.is_empty() {
            self.required(at, "");
        } else {
            self.one_of(at, value, supported);
        }
    }

    /// Number fields of a struct that must not be negative where they are set.
    pub fn none_negative(&mut self, at: &At<'_>, obj: &Value, keys: &[&str]) {
        for key in keys {
            self.non_negative(&at.field(key), crate::read::int(obj, key).unwrap_or(0));
        }
    }

    /// A string field that must be set.
    pub fn require_text(&mut self, at: &At<'_>, obj: &Value, key: &str) {
        if crate::read::text(obj, key).is_empty() {
            self.required(&at.field(key), "");
        }
    }

    /// A number that must not be negative.
    pub fn non_negative(&mut self, at: &At<'_>, value: i64) {
        if value < 0 {
            self.invalid(at, value, NOT_NEGATIVE);
        }
    }

    /// A value that may never change once set.
    pub fn immutable(&mut self, at: &At<'_>, new: Option<&Value>, old: Option<&Value>) {
        if !crate::read::same(new, old) {
            self.invalid(at, new.cloned().unwrap_or(Value::Null), FIELD_IMMUTABLE);
        }
    }
}

/// What immutable fields answer.
pub const FIELD_IMMUTABLE: &str = "field is immutable";
/// What numbers below zero answer.
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What amounts of nothing or less answer.
pub const QUANTITY_NOT_POSITIVE: &str = "must be greater than zero";
/// What numbers below one answer.
pub const NOT_POSITIVE: &str = "must be greater than 0";
