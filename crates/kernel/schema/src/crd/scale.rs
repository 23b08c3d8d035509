//! `/scale` of custom resources: where replicas stand in the object.

use serde_json::Value;

use super::{present, text};
use crate::field::{FieldError, Path};

/// The paths of the scale subresource, such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Wanted replicas.
    pub spec_replicas_path: String,
    /// Observed replicas.
    pub status_replicas_path: String,
    /// A label selector as text.
    pub label_selector_path: Option<String>,
}

/// The names between the dots of a path.
pub fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// A value on a path; the error says what is in the way.
fn find<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    let mut way = String::new();
    for step in steps(path) {
        way.push('.');
        way.push_str(step);
        match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(step) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            other => {
                let (shown, kind) = (crate::jsonpath::text(other), go_type(other));
                return Err(format!(
                    "{way} accessor error: {shown} is of the type {kind}, expected map[string]interface{{}}"
                ));
            }
        }
    }
    Ok(Some(value))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn wrong(path: &str, value: &Value, expected: &str) -> String {
    let way: Vec<&str> = steps(path).collect();
    let shown = if value.is_null() {
        "<nil>".to_owned()
    } else {
        crate::jsonpath::text(value)
    };
    format!(
        ".{} accessor error: {shown} is of the type {}, expected {expected}",
        way.join("."),
        go_type(value)
    )
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match find(object, path)? {
        None => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| wrong(path, value, "int64")),
    }
}

impl Scale {
    pub(super) fn parse(value: &Value) -> Self {
        Self {
            spec_replicas_path: text(value, "specReplicasPath").to_owned(),
            status_replicas_path: text(value, "statusReplicasPath").to_owned(),
            label_selector_path: present(value, "labelSelectorPath")
                .and_then(Value::as_str)
                .filter(|p| !p.is_empty())
                .map(str::to_owned),
        }
    }

    /// Wanted replicas of an object.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn spec_replicas(&self, object: &Value) -> Result<Option<i64>, String> {
        integer(object, &self.spec_replicas_path)
    }

    /// Observed replicas of an object.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn status_replicas(&self, object: &Value) -> Result<Option<i64>, String> {
        integer(object, &self.status_replicas_path)
    }

    /// The label selector of an object.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn label_selector<'a>(&self, object: &'a Value) -> Result<Option<&'a str>, String> {
        let Some(path) = &self.label_selector_path else {
            return Ok(None);
        };
        match find(object, path)? {
            None => Ok(None),
            Some(value) => value
                .as_str()
                .map(Some)
                .ok_or_else(|| wrong(path, value, "string")),
        }
    }

    /// Sets wanted replicas; objects on the way are created.
    ///
    /// # Errors
    /// Something that is no object stands on the way.
    pub fn set_spec_replicas(&self, object: &mut Value, replicas: i64) -> Result<(), String> {
        let mut value = object;
        for step in steps(&self.spec_replicas_path) {
            if value.is_null() {
                *value = Value::Object(serde_json::Map::new());
            }
            let kind = go_type(value);
            let map = value
                .as_object_mut()
                .ok_or_else(|| format!("{step} is in a {kind}"))?;
            value = map.entry(step).or_insert(Value::Null);
        }
        *value = replicas.into();
        Ok(())
    }

    /// What is wrong with the replicas of an object; `status_only` for updates of the status.
    pub fn validate(&self, object: &Value, status_only: bool) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut count = |path: &str, replicas: Result<Option<i64>, String>| {
            let at = Path::new(path);
            match replicas {
                Err(reason) => errors.push(FieldError::invalid(&at, 0, reason)),
                Ok(Some(n)) if n < 0 => {
                    errors.push(FieldError::invalid(&at, n, "should be a non-negative integer"));
                }
                Ok(Some(n)) if n > i64::from(i32::MAX) => {
                    let detail = format!("should be less than or equal to {}", i32::MAX);
                    errors.push(FieldError::invalid(&at, n, detail));
                }
                Ok(_) => {}
            }
        };
        if !status_only {
            count(&self.spec_replicas_path, self.spec_replicas(object));
        }
        count(&self.status_replicas_path, self.status_replicas(object));
        if let (Some(path), Err(reason)) = (&self.label_selector_path, self.label_selector(object)) {
            errors.push(FieldError::invalid(&Path::new(path), "", reason));
        }
        errors
    }
}
