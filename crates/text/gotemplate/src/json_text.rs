//! JSON as Go's `encoding/json` writes it, and what it says of text that is none.

use std::fmt::Write;

use fairway_text_gotext::json::{self, Html};
use serde_json::Value as Json;

use crate::text::lossy;
use crate::value::Value;

/// How JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// What becomes of `<`, `>` and `&`.
    pub html: Html,
    /// Whether each value stands on a line of its own.
    pub pretty: bool,
}

const MAX_DEPTH: usize = 200;

/// Writes a value; an error where it has no JSON form.
pub fn write(value: &Value, style: Style) -> Result<String, String> {
    let mut writer = Writer {
        out: String::new(),
        style,
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer {
    out: String,
    style: Style,
}

impl Writer {
    fn line(&mut self, depth: usize) {
        if self.style.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "json: unsupported value: encountered a cycle or more than {MAX_DEPTH} nested levels"
            ));
        }
        match value {
            Value::Invalid | Value::Nil => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(_, value) | Value::Duration(value) => {
                let _ = write!(self.out, "{value}");
            }
            Value::Uint(_, value) => {
                let _ = write!(self.out, "{value}");
            }
            Value::Float(value) if value.is_finite() => self.out.push_str(&json::float(*value)),
            Value::Float(value) => {
                return Err(format!(
                    "json: unsupported value: {}",
                    crate::fmt::float_g(*value)
                ));
            }
            Value::Str(text) => self.bytes(text),
            Value::Bytes(bytes) => {
                use base64::Engine;
                self.text(&base64::engine::general_purpose::STANDARD.encode(bytes));
            }
            Value::Time(time) => self.text(&time.rfc3339_nano()),
            Value::List(list) => {
                self.out.push('[');
                for (at, item) in list.items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.line(depth + 1);
                    self.value(item, depth + 1)?;
                }
                if !list.items.is_empty() {
                    self.line(depth);
                }
                self.out.push(']');
            }
            Value::Map(map) => map.with(|entries| {
                let entries = entries.iter().map(|(key, value)| (lossy(key), value));
                self.object(entries, depth)
            })?,
            Value::Struct(structure) if structure.ty.is_text => {
                self.text(&structure.text());
            }
            Value::Struct(structure) => {
                let fields = structure.ty.fields.iter().zip(&structure.fields);
                let shown = fields
                    .filter(|(field, value)| !field.json.is_empty() && (!field.omit_empty || value.truth()));
                self.object(shown.map(|(field, value)| (field.json.into(), value)), depth)?;
            }
        }
        Ok(())
    }

    fn object<'a>(
        &mut self,
        entries: impl Iterator<Item = (std::borrow::Cow<'a, str>, &'a Value)>,
        depth: usize,
    ) -> Result<(), String> {
        self.out.push('{');
        let mut empty = true;
        for (key, value) in entries {
            if !empty {
                self.out.push(',');
            }
            empty = false;
            self.line(depth + 1);
            self.text(&key);
            self.out.push(':');
            if self.style.pretty {
                self.out.push(' ');
            }
            self.value(value, depth + 1)?;
        }
        if !empty {
            self.line(depth);
        }
        self.out.push('}');
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        json::push_bytes(&mut self.out, bytes, self.style.html);
    }
}

/// Reads JSON as Go does into an empty interface: all numbers become floats.
pub fn read(text: &[u8]) -> Result<Value, String> {
    let json: Json = serde_json::from_slice(text)
        .map_err(|error| fairway_text_yaml::json_fault(text).unwrap_or_else(|| error.to_string()))?;
    Ok(floats(&json))
}

/// A value from JSON in which every number is a float.
pub fn floats(json: &Json) -> Value {
    match json {
        Json::Number(number) => Value::Float(number.as_f64().unwrap_or(0.0)),
        Json::Array(items) => Value::list(items.iter().map(floats).collect()),
        Json::Object(fields) => Value::map(
            fields
                .iter()
                .map(|(key, value)| (key.as_bytes().into(), floats(value)))
                .collect(),
        ),
        other => crate::value::from_json(other),
    }
}
