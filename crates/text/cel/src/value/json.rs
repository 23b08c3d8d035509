//! Reading JSON as CEL values, through a declaration where there is one, and writing results back.

use serde_json::{Number, Value as Json};

use super::time::{Duration, Timestamp};
use super::{List, Map, Str, Value};
use crate::decl::{DeclKind, DeclType};
use crate::error::Error;
use crate::library::base64;

impl<'a> Value<'a> {
    /// Reads JSON. With a declaration, data that does not match it is an error.
    pub fn from_json(json: &'a Json, decl: Option<&'a DeclType>) -> Result<Value<'a>, Error> {
        let Some(decl) = decl else {
            return Ok(dynamic(json));
        };
        let mismatch = |wanted: &str| {
            Err(Error::invalid(format!(
                "invalid data, expected {wanted}, got {}",
                kind(json)
            )))
        };
        match (&decl.kind, json) {
            (_, Json::Null) if decl.nullable => Ok(Value::Null),
            (_, Json::Null) => Err(Error::invalid(
                "invalid data, got null for schema with nullable=false",
            )),
            (DeclKind::IntOrString, Json::String(text)) => Ok(Value::String(Str::Borrowed(text))),
            (DeclKind::IntOrString, Json::Number(number)) => match number.as_i64() {
                Some(value) => Ok(Value::Int(value)),
                None => mismatch("XIntOrString value to be either a string or integer"),
            },
            (DeclKind::IntOrString, _) => mismatch("XIntOrString value to be either a string or integer"),
            (DeclKind::Object(_) | DeclKind::Map(_), Json::Object(map)) => {
                Ok(Value::Map(Map::Json(map, Some(decl))))
            }
            (DeclKind::Object(_) | DeclKind::Map(_), _) => {
                mismatch("a map for the provided schema with type=object")
            }
            (DeclKind::List { .. }, Json::Array(items)) => Ok(Value::List(List::Json(items, Some(decl)))),
            (DeclKind::List { .. }, _) => mismatch("an array for the provided schema with type=array"),
            (DeclKind::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
            (DeclKind::Bool, _) => mismatch("bool"),
            (DeclKind::Int, Json::Number(number)) => match number.as_i64() {
                Some(value) => Ok(Value::Int(value)),
                None => mismatch("int"),
            },
            (DeclKind::Int, _) => mismatch("int"),
            (DeclKind::Number, Json::Number(number)) => {
                Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            (DeclKind::Number, _) => mismatch("float"),
            (format, Json::String(text)) => formatted(format, text),
            _ => mismatch("string"),
        }
    }

    /// The value as JSON, if JSON can express it.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Uint(value) => Json::from(*value),
            Value::Double(value) => Json::Number(Number::from_f64(*value)?),
            Value::String(text) => Json::from(text.as_str()),
            Value::Bytes(bytes) => Json::from(base64::encode(bytes)),
            Value::Duration(duration) => Json::from(duration.to_string()),
            Value::Timestamp(timestamp) => Json::from(timestamp.to_string()),
            Value::List(list) => {
                let items = list.iter().map(|item| item.ok()?.to_json());
                Json::Array(items.collect::<Option<_>>()?)
            }
            Value::Map(Map::Json(map, _)) => Json::Object((*map).clone()),
            Value::Map(map) => {
                let mut object = serde_json::Map::new();
                for key in map.keys() {
                    let value = map.get(&key).ok()??.to_json()?;
                    object.insert(super::collection::show_key(&key), value);
                }
                Json::Object(object)
            }
            Value::Optional(Some(value)) => value.to_json()?,
            Value::Optional(None) | Value::Type(_) | Value::Opaque(_) => return None,
        })
    }
}

fn dynamic(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Str::Borrowed(text)),
        Json::Array(items) => Value::List(List::Json(items, None)),
        Json::Object(map) => Value::Map(Map::Json(map, None)),
    }
}

fn formatted<'a>(format: &DeclKind, text: &'a str) -> Result<Value<'a>, Error> {
    match format {
        DeclKind::Duration => Duration::parse_lenient(text)
            .map(Value::Duration)
            .ok_or_else(|| Error::invalid(format!("Invalid duration {text}"))),
        DeclKind::Date => Timestamp::parse_date(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Error::invalid(format!("Invalid date formatted string {text}"))),
        DeclKind::DateTime => Timestamp::parse_lenient(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Error::invalid(format!("Invalid date-time formatted string {text}"))),
        DeclKind::Bytes => base64::decode(text)
            .map(|bytes| Value::Bytes(bytes.into()))
            .ok_or_else(|| Error::invalid(format!("Invalid byte formatted string {text}"))),
        _ => Ok(Value::String(Str::Borrowed(text))),
    }
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "float64",
        Json::Number(_) => "int64",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}
