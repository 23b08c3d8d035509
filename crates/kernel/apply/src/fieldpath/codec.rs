//! The `FieldsV1` format: a set of paths as a tree of JSON objects.
//!
//! A key is `f:<name>`, `k:<key fields as JSON>`, `v:<value as JSON>` or `i:<index>`; `.` says that the parent itself is
//! in the set where that is not plain from its having no children.

use std::fmt::Write;

use serde_json::{Map, Number, Value};
use thiserror::Error;

use super::set::{Part, SetBuilder};
use super::{FieldName, KeyField, PathElement, Set};

/// Why a `FieldsV1` document is not one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldsError {
    /// A node is not an object.
    #[error("expected an object below {0:?}")]
    NotAnObject(String),
    /// A key is too short to be one.
    #[error("key must be 2 characters long: {0:?}")]
    Short(String),
    /// A key has no colon at its second place.
    #[error("missing colon: {0}")]
    MissingColon(String),
    /// The part of a key after the colon cannot be read.
    #[error("parsing {0:?} as path element: {1}")]
    Content(String, String),
}

impl Set {
    /// Reads the `FieldsV1` format. Kinds of path elements that are not known are left out.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        Ok(read(fields, "")?.children)
    }

    /// Writes the `FieldsV1` format.
    pub fn to_fields_v1(&self) -> Value {
        write(self, false)
    }
}

fn read(fields: &Value, key: &str) -> Result<Part, FieldsError> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => {
            return Ok(Part {
                member: true,
                children: Set::new(),
            });
        }
        _ => return Err(FieldsError::NotAnObject(key.to_owned())),
    };
    let mut member = false;
    let mut children = SetBuilder::default();
    for (key, value) in map {
        if key == "." {
            member = true;
        } else if let Some(element) = parse_element(key)? {
            children.push(|| element, read(value, key)?);
        }
    }
    let children = children.finish();
    Ok(Part {
        member: member || children.is_empty(),
        children,
    })
}

fn write(set: &Set, with_self: bool) -> Value {
    let mut map = Map::with_capacity(set.nodes.len() + usize::from(with_self));
    if with_self && !set.is_empty() {
        map.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for node in &set.nodes {
        map.insert(format_element(&node.element), write(&node.children, node.member));
    }
    Value::Object(map)
}

/// Reads one key; `None` if its kind is not known.
pub(crate) fn parse_element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let kind = match key.as_bytes() {
        [kind, b':', ..] => *kind,
        [_, _, ..] => return Err(FieldsError::MissingColon(key.to_owned())),
        _ => return Err(FieldsError::Short(key.to_owned())),
    };
    let content = key.get(2..).unwrap_or_default();
    let unreadable = |error: &dyn std::fmt::Display| FieldsError::Content(key.to_owned(), error.to_string());
    Ok(match kind {
        b'f' => Some(PathElement::field(content)),
        b'v' => {
            let value = serde_json::from_str(content).map_err(|e| unreadable(&e))?;
            Some(PathElement::Value(Box::new(value)))
        }
        b'k' => {
            let fields: Map<String, Value> = serde_json::from_str(content).map_err(|e| unreadable(&e))?;
            let mut fields: Vec<KeyField> = fields
                .into_iter()
                .map(|(name, value)| KeyField {
                    name: FieldName::new(&name),
                    value,
                })
                .collect();
            fields.sort_by(|l, r| l.name.cmp(&r.name));
            Some(PathElement::Key(fields.into()))
        }
        b'i' => Some(PathElement::Index(content.parse().map_err(|e| unreadable(&e))?)),
        _ => None,
    })
}

/// Writes one key.
pub(crate) fn format_element(element: &PathElement) -> String {
    let mut out = String::with_capacity(24);
    match element {
        PathElement::Field(name) => {
            out.push_str("f:");
            out.push_str(name.as_str());
        }
        PathElement::Key(fields) => {
            out.push_str("k:{");
            for (i, field) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(&mut out, field.name.as_str(), false);
                out.push(':');
                write_json(&mut out, &field.value);
            }
            out.push('}');
        }
        PathElement::Value(value) => {
            out.push_str("v:");
            write_json(&mut out, value);
        }
        PathElement::Index(index) => {
            out.push_str("i:");
            out.push_str(&index.to_string());
        }
    }
    out
}

/// JSON as Go writes it: keys sorted, `<`, `>` and `&` escaped, floating-point numbers in its notation.
pub(crate) fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(out, key, true);
                out.push(':');
                write_json(out, value);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    let written = match (number.is_f64(), number.as_f64()) {
        (true, Some(float)) => {
            let size = float.abs();
            if size != 0.0 && !(1e-6..1e21).contains(&size) {
                // Go writes an exponent of at least two digits, and a plus sign.
                let text = format!("{float:e}");
                match text.split_once('e') {
                    Some((digits, exponent)) => {
                        let (sign, exponent) = match exponent.strip_prefix('-') {
                            Some(rest) => ('-', rest),
                            None => ('+', exponent),
                        };
                        write!(out, "{digits}e{sign}{exponent:0>2}")
                    }
                    None => write!(out, "{text}"),
                }
            } else {
                write!(out, "{float}")
            }
        }
        _ => write!(out, "{number}"),
    };
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

fn write_string(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' if !escape_html => out.push_str("\\u0008"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' if !escape_html => out.push_str("\\u000c"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if escape_html => escape(out, c),
            '\u{2028}' | '\u{2029}' if escape_html => escape(out, c),
            c if u32::from(c) < 0x20 => escape(out, c),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn escape(out: &mut String, c: char) {
    let written = write!(out, "\\u{:04x}", u32::from(c));
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_and_writes_the_canonical_form() {
        let canonical = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:containers": {
                    "k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:image": {}},
                    "k:{\"name\":\"b\",\"port\":80}": {".": {}, "f:name": {}}
                },
                "f:finalizers": {"v:\"x\"": {}, "v:true": {}},
                "f:order": {"i:-1": {}, "i:2": {}}
            }
        });
        let set = Set::from_fields_v1(&canonical).unwrap();
        assert_eq!(
            serde_json::to_string(&set.to_fields_v1()).unwrap(),
            serde_json::to_string(&canonical).unwrap()
        );
    }

    #[test]
    fn puts_other_forms_into_the_canonical_one() {
        for (given, canonical) in [
            (json!({"f:b": {}, "f:a": {}}), r#"{"f:a":{},"f:b":{}}"#),
            (json!({"f:a": {".": {}}}), r#"{"f:a":{}}"#),
            (json!({"f:a": null}), r#"{"f:a":{}}"#),
            (json!({"f:a": {"z:future": {}}}), r#"{"f:a":{}}"#),
            (
                json!({"k:{\"b\": 1, \"a\": \"<\"}": {}}),
                r#"{"k:{\"a\":\"\\u003c\",\"b\":1}":{}}"#,
            ),
            (json!({"v:1": {}, "v:1.0": {}}), r#"{"v:1":{}}"#),
            (json!({"v:1e30": {}, "v:0.5": {}}), r#"{"v:0.5":{},"v:1e+30":{}}"#),
            (json!({}), "{}"),
        ] {
            let set = Set::from_fields_v1(&given).unwrap();
            assert_eq!(
                serde_json::to_string(&set.to_fields_v1()).unwrap(),
                canonical,
                "{given}"
            );
        }
    }

    #[test]
    fn refuses_what_is_not_a_set() {
        for (given, reason) in [
            (json!({"f": {}}), "key must be 2 characters long"),
            (json!({"name": {}}), "missing colon"),
            (json!({"i:x": {}}), "invalid digit"),
            (json!({"v:": {}}), "EOF"),
            (json!({"v:1 2": {}}), "trailing"),
            (json!({"k:[]": {}}), "as path element"),
            (json!({"f:a": 1}), "expected an object"),
            (json!([]), "expected an object"),
        ] {
            let error = Set::from_fields_v1(&given).unwrap_err().to_string();
            assert!(error.contains(reason), "{given}: {error}");
        }
    }
}
