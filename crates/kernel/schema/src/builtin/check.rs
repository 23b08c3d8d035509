//! Decoding of built-in objects, as Go's decoder would do it: types are checked, what is unknown is dropped.
//!
//! Upstream decodes a request into Go structs and encodes them again to store them. That refuses values of the wrong
//! type, silently loses fields that the structs do not have (or reports them, as `fieldValidation` asks), and treats
//! null as absent. One pass over the JSON value does the same here, in place.

use serde_json::Value;
use thiserror::Error;

use super::kinds::KindInfo;
use super::scalar::{self, Refusal};
use super::table::Format;
use super::types::{Types, types};
use crate::json_type;
use crate::shape::{Map, ShapeId};

/// What to do about fields that a type does not have; they are dropped in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// Report them (`fieldValidation` Warn and Strict).
    Report,
    /// Say nothing (`fieldValidation` Ignore).
    Ignore,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// Paths of the fields that the type does not have, such as `spec.containers[0].foo`; at most a hundred.
    pub unknown: Vec<String>,
    /// Values that cannot be decoded, the first one first; upstream reports only that one. At most a hundred.
    pub errors: Vec<DecodeError>,
}

/// A value that cannot be decoded; the API server answers with code 400.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct DecodeError {
    /// Where, with indices: `spec.containers[0].image`.
    pub path: String,
    /// What is wrong, in the words of Go's decoder.
    pub message: String,
}

const JSON_SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Upstream reports at most that many; it also bounds what a hostile object can make us collect.
const LIMIT: usize = 100;

/// Checks an object of a built-in kind and drops from it what Go's decoder would drop.
pub fn check(kind: &KindInfo, object: &mut Value, unknown: UnknownFields) -> CheckResult {
    check_shape(kind.shape, object, unknown)
}

/// Like [`check`], for any built-in type: objects of subresources, options.
pub fn check_shape(shape: ShapeId, value: &mut Value, unknown: UnknownFields) -> CheckResult {
    let mut checker = Checker {
        types: types(),
        report: unknown == UnknownFields::Report,
        path: Vec::new(),
        owner: "",
        result: CheckResult::default(),
    };
    checker.value(shape, value);
    checker.result
}

enum Step {
    Field(&'static str),
    Index(usize),
    Key(String),
}

struct Checker {
    types: &'static Types,
    report: bool,
    path: Vec<Step>,
    /// The Go type of the innermost struct, for messages.
    owner: &'static str,
    result: CheckResult,
}

impl Checker {
    fn value(&mut self, id: ShapeId, value: &mut Value) {
        match self.types.format(id) {
            Some(Format::SchemaOr) => return self.schema_or(value),
            Some(format) => return self.scalar(format, value),
            None => {}
        }
        let types = self.types;
        let atom = types.shapes.get(id);
        match (value, &atom.map, &atom.list) {
            (Value::Object(object), Some(map), _) => match map.element {
                Some(element) => self.map(element, object),
                None => self.structure(id, map, object),
            },
            (Value::Array(items), _, Some(list)) => self.list(list.element, items),
            (other, ..) => self.mismatch(json_type(other), &self.go_type(id)),
        }
    }

    /// Go decodes what may stand in place of a JSON schema in a function of its own, which is never strict.
    fn schema_or(&mut self, value: &mut Value) {
        let Some(schema) = self.types.shapes.named(JSON_SCHEMA) else {
            return;
        };
        let report = std::mem::replace(&mut self.report, false);
        match value {
            Value::Object(_) => self.value(schema, value),
            Value::Array(items) => {
                items
                    .iter_mut()
                    .filter(|i| i.is_object())
                    .for_each(|item| self.value(schema, item));
            }
            _ => {}
        }
        self.report = report;
    }

    fn scalar(&mut self, format: Format, value: &mut Value) {
        match scalar::normalise(format, value) {
            Ok(()) => {}
            Err(Refusal::Type(found, wanted)) => self.mismatch(&found, wanted),
            Err(Refusal::Text(reason)) => self.error(reason),
        }
    }

    fn structure(&mut self, id: ShapeId, map: &'static Map, object: &mut serde_json::Map<String, Value>) {
        let outer = std::mem::replace(&mut self.owner, self.types.name(id));
        let mut dropped = false;
        for (key, child) in object.iter_mut() {
            let Some(field) = map.field(key) else {
                dropped = true;
                self.unknown(key);
                continue;
            };
            if child.is_null() {
                dropped = true;
                continue;
            }
            self.path.push(Step::Field(field.name.as_ref()));
            self.value(field.shape, child);
            self.path.pop();
        }
        if dropped {
            object.retain(|key, child| !child.is_null() && map.field(key).is_some());
        }
        self.owner = outer;
    }

    fn map(&mut self, element: ShapeId, object: &mut serde_json::Map<String, Value>) {
        // Most maps hold plain text, where a path is needed only if something is wrong.
        let text = self.types.format(element) == Some(Format::String);
        for (key, child) in object.iter_mut() {
            if text && child.is_string() {
                continue;
            }
            if child.is_null() {
                *child = self.zero(element);
                continue;
            }
            self.path.push(Step::Key(key.clone()));
            self.value(element, child);
            self.path.pop();
        }
    }

    fn list(&mut self, element: ShapeId, items: &mut [Value]) {
        for (index, item) in items.iter_mut().enumerate() {
            if item.is_null() {
                *item = self.zero(element);
                continue;
            }
            self.path.push(Step::Index(index));
            self.value(element, item);
            self.path.pop();
        }
    }

    /// What null is inside a list or map: Go keeps the place and puts the zero value there.
    fn zero(&self, id: ShapeId) -> Value {
        let atom = self.types.shapes.get(id);
        match self.types.format(id) {
            Some(format) => scalar::zero(format).unwrap_or(Value::Null),
            None if atom.map.as_ref().is_some_and(|m| m.element.is_none()) => {
                Value::Object(serde_json::Map::new())
            }
            None => Value::Null,
        }
    }

    fn unknown(&mut self, key: &str) {
        if self.report && self.result.unknown.len() < LIMIT {
            let path = self.indexed_path();
            self.result.unknown.push(if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            });
        }
    }

    fn mismatch(&mut self, found: &str, wanted: &str) {
        let target = if self.owner.is_empty() {
            "Go value".to_owned()
        } else {
            let fields: Vec<&str> = self
                .path
                .iter()
                .filter_map(|step| match step {
                    Step::Field(name) => Some(*name),
                    Step::Index(_) | Step::Key(_) => None,
                })
                .collect();
            format!("Go struct field {}.{}", self.owner, fields.join("."))
        };
        self.error(format!(
            "json: cannot unmarshal {found} into {target} of type {wanted}"
        ));
    }

    fn error(&mut self, message: String) {
        if self.result.errors.len() < LIMIT {
            let path = self.indexed_path();
            self.result.errors.push(DecodeError { path, message });
        }
    }

    fn indexed_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Field(name) => push_name(&mut path, name),
                Step::Key(name) => push_name(&mut path, name),
            }
        }
        path
    }

    /// A type in Go's words.
    fn go_type(&self, id: ShapeId) -> String {
        let atom = self.types.shapes.get(id);
        if let Some(format) = self.types.format(id) {
            return match format {
                Format::Double => "float64".to_owned(),
                Format::Boolean => "bool".to_owned(),
                Format::Bytes => "[]uint8".to_owned(),
                Format::Int32 | Format::Int64 | Format::String => format.name().to_owned(),
                Format::Time => "v1.Time".to_owned(),
                Format::MicroTime => "v1.MicroTime".to_owned(),
                Format::Quantity => "resource.Quantity".to_owned(),
                Format::IntOrString => "intstr.IntOrString".to_owned(),
                Format::Raw => "runtime.RawExtension".to_owned(),
                Format::Object | Format::Any | Format::SchemaOr => "map[string]interface {}".to_owned(),
            };
        }
        if let Some(list) = &atom.list {
            return format!("[]{}", self.go_type(list.element));
        }
        match atom.map.as_ref().and_then(|map| map.element) {
            Some(element) => format!("map[string]{}", self.go_type(element)),
            None => {
                let mut words = self.types.full_name(id).rsplit('.');
                let (name, package) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                format!("{package}.{name}")
            }
        }
    }
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests;
