//! YAML, TOML and JSON from and to values, as the tools that use Go's templates offer them.
//!
//! Reading is forgiving: what cannot be read becomes a map or list with the error's text, because a template cannot
//! catch errors. All numbers are floats, as Go reads them into an empty interface.

mod toml_read;
mod toml_write;
mod yaml_pretty;

use fairway_text_yaml as yaml;
use serde_json::Value as Json;

use crate::arg;
use crate::error::Fault;
use crate::functions::{Func, Param};
use crate::json_text::{Style, floats, read, write};
use crate::machine::Machine;
use crate::value::{Entries, Value, to_json};

use Param::{Any, Str};

type Answer = Result<Value, Fault>;

/// `toYaml` and its kin.
pub const TABLE: &[Func] = &[
    Func::new("toYaml", &[Any], to_yaml),
    Func::new("fromYaml", &[Str], |machine, args| {
        Ok(map_or_error(from_yaml(
            machine,
            args,
            "map[string]interface {}",
            Json::is_object,
        )?))
    }),
    Func::new("fromYamlArray", &[Str], |machine, args| {
        Ok(list_or_error(from_yaml(
            machine,
            args,
            "[]interface {}",
            Json::is_array,
        )?))
    }),
    Func::new("toJson", &[Any], |_, args| {
        Ok(write(arg::any(args, 0), Style::default())
            .unwrap_or_default()
            .into())
    }),
    Func::new("fromJson", &[Str], |_, args| {
        let value = read(arg::bytes(args, 0)).and_then(|value| match value {
            Value::Map(_) | Value::Nil => Ok(value),
            other => Err(mismatch(json_kind(&other), "map[string]interface {}")),
        });
        Ok(map_or_error(value))
    }),
    Func::new("fromJsonArray", &[Str], |_, args| {
        let value = read(arg::bytes(args, 0)).and_then(|value| match value {
            Value::List(_) | Value::Nil => Ok(value),
            other => Err(mismatch(json_kind(&other), "[]interface {}")),
        });
        Ok(list_or_error(value))
    }),
    Func::new("toYamlPretty", &[Any], |machine, args| {
        let text = yaml_pretty::write(arg::any(args, 0)).unwrap_or_default();
        machine.spend_bytes(text.len())?;
        Ok(text.into())
    }),
    Func::new("fromToml", &[Str], |machine, args| {
        // Each table of a list copies the list.
        machine.spend_bytes(arg::bytes(args, 0).len().saturating_mul(64))?;
        Ok(map_or_error(toml_read::read(&arg::text(args, 0))))
    }),
    Func::new("toToml", &[Any], |_, args| {
        let text = toml_write::write(arg::any(args, 0)).unwrap_or_else(|error| error);
        Ok(text.into())
    }),
];

fn to_yaml(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let text = yaml_text(arg::any(args, 0));
    machine.spend_bytes(text.len())?;
    Ok(text.into())
}

/// A value as `sigs.k8s.io/yaml` writes it, without the line feed at the end; empty if it has no such form.
pub fn yaml_text(value: &Value) -> String {
    let Ok(json) = to_json(value) else {
        return String::new();
    };
    let mut text = yaml::to_string(&json);
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// What go-yaml says of a text that is no YAML. It does not name the first line.
pub fn yaml_fault(error: &yaml::Error) -> String {
    match error.line {
        Some(1) => format!("yaml: {}", error.problem),
        _ => error.to_string(),
    }
}

fn mismatch(found: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "number",
    }
}

/// The outer error is a bound that was hit, the inner one is the author's.
fn from_yaml(
    machine: &mut Machine<'_>,
    args: &[Value],
    wanted: &str,
    fits: fn(&Json) -> bool,
) -> Result<Result<Value, String>, Fault> {
    let text = arg::text(args, 0);
    machine.spend_bytes(text.len().saturating_mul(4))?;
    let limits = yaml::Limits {
        bytes: 32 * 1024 * 1024,
        ..yaml::Limits::default()
    };
    Ok(match yaml::from_str(&text, limits) {
        Err(error) => Err(format!("error converting YAML to JSON: {}", yaml_fault(&error))),
        Ok(Json::Null) => Ok(Value::Nil),
        Ok(json) if fits(&json) => Ok(floats(&json)),
        Ok(json) => {
            let reason = mismatch(json_kind(&floats(&json)), wanted);
            Err(format!("error unmarshaling JSON: while decoding JSON: {reason}"))
        }
    })
}

fn map_or_error(value: Result<Value, String>) -> Value {
    match value {
        Ok(Value::Nil) => Value::map(Entries::new()),
        Ok(value) => value,
        Err(error) => Value::map(Entries::from([(b"Error".as_slice().into(), Value::from(error))])),
    }
}

fn list_or_error(value: Result<Value, String>) -> Value {
    match value {
        Ok(Value::Nil) => Value::list(Vec::new()),
        Ok(value) => value,
        Err(error) => Value::list(vec![Value::from(error)]),
    }
}

#[cfg(test)]
mod tests;
