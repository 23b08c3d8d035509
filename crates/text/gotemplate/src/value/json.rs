//! Between template values and JSON values.

use serde_json::{Number, Value as Json};

use super::{Entries, Map, Struct, Value};
use crate::text::lossy;

/// How deep values may be nested where they are walked; more is a cycle or an attack.
const MAX_DEPTH: usize = 200;

/// A value from JSON. Floats stay floats and integers become `int64`: whoever reads a file as Go does turns all
/// numbers into floats first.
pub fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::int64(value),
            None => Value::Float(number.as_f64().unwrap_or(0.0)),
        },
        Json::String(text) => Value::str(text),
        Json::Array(items) => Value::list(items.iter().map(from_json).collect()),
        Json::Object(fields) => Value::Map(map_from_json(fields)),
    }
}

/// The same for an object.
pub fn map_from_json(fields: &serde_json::Map<String, Json>) -> Map {
    let entries: Entries = fields
        .iter()
        .map(|(key, value)| (key.as_bytes().into(), from_json(value)))
        .collect();
    Map::new(entries)
}

/// A value as Go's `encoding/json` sees it; an error where it has no JSON form.
pub fn to_json(value: &Value) -> Result<Json, String> {
    convert(value, MAX_DEPTH)
}

fn convert(value: &Value, depth: usize) -> Result<Json, String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!(
            "json: unsupported value: encountered a cycle or more than {MAX_DEPTH} nested levels"
        ));
    };
    Ok(match value {
        Value::Invalid | Value::Nil => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(_, value) | Value::Duration(value) => (*value).into(),
        Value::Uint(_, value) => (*value).into(),
        Value::Float(value) => match Number::from_f64(*value) {
            Some(number) => Json::Number(number),
            None => {
                return Err(format!(
                    "json: unsupported value: {}",
                    crate::fmt::float_g(*value)
                ));
            }
        },
        Value::Str(text) => Json::String(lossy(text).into_owned()),
        Value::Bytes(bytes) => {
            use base64::Engine;
            Json::String(base64::engine::general_purpose::STANDARD.encode(bytes))
        }
        Value::List(list) => {
            let items: Result<Vec<Json>, String> =
                list.items.iter().map(|item| convert(item, depth)).collect();
            Json::Array(items?)
        }
        Value::Map(map) => map.with(|entries| {
            let mut fields = serde_json::Map::with_capacity(entries.len());
            for (key, value) in entries {
                fields.insert(lossy(key).into_owned(), convert(value, depth)?);
            }
            Ok::<_, String>(Json::Object(fields))
        })?,
        Value::Struct(value) if value.ty.is_text => Json::String(value.text()),
        Value::Struct(value) => structure(value, depth)?,
        Value::Time(time) => Json::String(time.rfc3339_nano()),
    })
}

fn structure(value: &Struct, depth: usize) -> Result<Json, String> {
    let mut fields = serde_json::Map::new();
    for (field, content) in value.ty.fields.iter().zip(&value.fields) {
        if field.json.is_empty() || (field.omit_empty && !content.truth()) {
            continue;
        }
        fields.insert(field.json.to_owned(), convert(content, depth)?);
    }
    Ok(Json::Object(fields))
}
