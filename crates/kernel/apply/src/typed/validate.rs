//! Whether a value fits its shape.

use fairway_kernel_schema::shape::{List, ListRelationship, Map as MapShape, Scalar, ShapeId, Shapes};
use serde_json::{Map, Value};

use super::item::{item_key, number};
use super::{Form, INVALID_ATOM, Typed, ValidationErrors, form};
use crate::fieldpath::PathElement;

/// Whether the items of sets and associative lists must differ in their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Objects that were stored may have them.
    Allow,
    /// Configurations that are applied may not.
    Refuse,
}

impl Typed<'_, '_> {
    /// Whether the value fits its shape.
    pub fn validate(&self, duplicates: Duplicates) -> Result<(), ValidationErrors> {
        self.validate_except(duplicates, &[])
    }

    /// Like [`Typed::validate`], but does not look at the value under the path `skip`.
    pub(crate) fn validate_except(
        &self,
        duplicates: Duplicates,
        skip: &[&str],
    ) -> Result<(), ValidationErrors> {
        let mut walk = Walk {
            shapes: self.shapes,
            duplicates,
            errors: ValidationErrors::default(),
        };
        walk.value(self.shape, &self.value, skip);
        walk.errors.into_result(())
    }
}

struct Walk<'a> {
    shapes: &'a Shapes,
    duplicates: Duplicates,
    errors: ValidationErrors,
}

impl<'a> Walk<'a> {
    fn value(&mut self, shape: ShapeId, value: &Value, skip: &[&str]) {
        match form(self.shapes.get(shape), Some(value)) {
            Some(Form::Scalar(scalar)) => {
                if let Some(error) = scalar_error(scalar, Some(value)) {
                    self.errors.add(error);
                }
            }
            Some(Form::Map(map)) => match value {
                Value::Object(fields) => self.map(map, fields, skip),
                Value::Null => {}
                other => self.errors.add(format!("expected map, got {}", go_debug(other))),
            },
            Some(Form::List(list)) => match value {
                Value::Array(items) => self.list(list, items),
                Value::Null => {}
                other => self.errors.add(format!("expected list, got {}", go_debug(other))),
            },
            None => self.errors.add(INVALID_ATOM),
        }
    }

    fn map(&mut self, map: &MapShape, fields: &Map<String, Value>, skip: &[&str]) {
        for (key, value) in fields {
            let below = match skip.split_first() {
                Some((first, [])) if first == key => continue,
                Some((first, rest)) if first == key => rest,
                _ => &[],
            };
            let mark = self.errors.mark();
            match map.shape_of(key) {
                Some(shape) => self.value(shape, value, below),
                None => self.errors.add("field not declared in schema"),
            }
            self.errors.prefix_since(mark, || PathElement::field(key));
        }
    }

    fn list(&mut self, list: &'a List, items: &[Value]) {
        if list.relationship == ListRelationship::Atomic {
            for (index, item) in items.iter().enumerate() {
                let mark = self.errors.mark();
                self.value(list.element, item, &[]);
                self.errors
                    .prefix_since(mark, || PathElement::Index(index as i64));
            }
            return;
        }
        let mut keys = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item_key(self.shapes, list, item) {
                Ok(key) => keys.push(key),
                Err(error) => {
                    self.errors.add(format!("element {index}: {error}"));
                    return;
                }
            }
        }
        let (numbers, count) = number(&keys);
        let mut seen = vec![false; count];
        for ((item, key), number) in items.iter().zip(&keys).zip(numbers) {
            if std::mem::replace(&mut seen[number], true) && self.duplicates == Duplicates::Refuse {
                self.errors
                    .add(format!("duplicate entries for key {}", key.to_element()));
            }
            let mark = self.errors.mark();
            self.value(list.element, item, &[]);
            self.errors.prefix_since(mark, || key.to_element());
        }
    }
}

/// Why a value is not such a scalar. No value, and null, are any scalar.
pub(super) fn scalar_error(scalar: Scalar, value: Option<&Value>) -> Option<String> {
    let value = value?;
    let (fits, expected) = match scalar {
        Scalar::Numeric => (value.is_number(), "numeric (int or float)"),
        Scalar::String => (value.is_string(), "string"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::Untyped => (!value.is_object() && !value.is_array(), "any scalar"),
    };
    (!fits && !value.is_null()).then(|| match scalar {
        Scalar::Numeric => format!("expected {expected}, got {}", go_type(value)),
        _ => format!("expected {expected}, got {}", go_debug(value)),
    })
}

/// The name that Go gives to the type of a decoded value; clients have seen it in messages for years.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn go_debug(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{value}}}")
}
