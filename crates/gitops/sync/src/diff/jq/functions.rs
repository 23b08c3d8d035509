//! What is computed from values on the way: order, truth, and functions that name no place.

use std::cmp::Ordering;

use serde_json::Value;

use super::JqError;
use super::parse::Comparison;

pub(super) fn fault<T>(message: String) -> Result<T, JqError> {
    Err(JqError::Run(message))
}

pub(super) fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn compare(operator: Comparison, left: &Value, right: &Value) -> bool {
    let order = order(left, right);
    match operator {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::Unequal => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    }
}

/// jq's order of all values.
fn order(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let pair = left.as_f64().zip(right.as_f64());
            pair.and_then(|(left, right)| left.partial_cmp(&right))
                .unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| order(left, right));
            pairs
                .into_iter()
                .find(|order| order.is_ne())
                .unwrap_or(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let sorted = |fields: &serde_json::Map<String, Value>| {
                let mut keys: Vec<String> = fields.keys().cloned().collect();
                keys.sort_unstable();
                keys
            };
            let (left_keys, right_keys) = (sorted(left), sorted(right));
            let by_keys = left_keys.cmp(&right_keys);
            let mut by_values = left_keys.iter().map(|key| order(&left[key], &right[key]));
            if by_keys.is_ne() {
                return by_keys;
            }
            by_values.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

/// Functions of values.
pub(super) fn function(name: &str, value: &Value, arguments: &[Value]) -> Result<Value, JqError> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        other => fault(format!("{name} needs strings, not {}", type_of(other))),
    };
    let argument = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
    Ok(match name {
        "not" => (!truthy(value)).into(),
        "type" => type_of(value).into(),
        "length" => match value {
            Value::Null => 0.into(),
            Value::String(text) => text.chars().count().into(),
            Value::Array(items) => items.len().into(),
            Value::Object(fields) => fields.len().into(),
            Value::Number(number) => Value::from(number.as_f64().unwrap_or_default().abs()),
            Value::Bool(_) => return fault("boolean has no length".to_owned()),
        },
        "keys" => match value {
            Value::Object(fields) => {
                let mut keys: Vec<&String> = fields.keys().collect();
                keys.sort_unstable();
                keys.into_iter().cloned().map(Value::from).collect()
            }
            Value::Array(items) => (0..items.len()).map(Value::from).collect(),
            other => return fault(format!("{} has no keys", type_of(other))),
        },
        "to_entries" => match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| serde_json::json!({"key": key, "value": value}))
                .collect(),
            other => return fault(format!("{} has no keys", type_of(other))),
        },
        "has" => match (value, argument(0)) {
            (Value::Object(fields), Value::String(key)) => fields.contains_key(key).into(),
            (Value::Array(items), Value::Number(index)) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                index.is_some_and(|index| index < items.len()).into()
            }
            (value, key) => return fault(format!("cannot check whether {} has {key}", type_of(value))),
        },
        "contains" => contains(value, argument(0)).into(),
        "inside" => contains(argument(0), value).into(),
        "startswith" => text(value)?.starts_with(&text(argument(0))?).into(),
        "endswith" => text(value)?.ends_with(&text(argument(0))?).into(),
        "ltrimstr" => match (value, argument(0)) {
            (Value::String(text), Value::String(prefix)) => text.strip_prefix(prefix).unwrap_or(text).into(),
            (value, _) => value.clone(),
        },
        "rtrimstr" => match (value, argument(0)) {
            (Value::String(text), Value::String(suffix)) => text.strip_suffix(suffix).unwrap_or(text).into(),
            (value, _) => value.clone(),
        },
        "split" => text(value)?.split(&text(argument(0))?).map(Value::from).collect(),
        "ascii_downcase" => text(value)?.to_ascii_lowercase().into(),
        "ascii_upcase" => text(value)?.to_ascii_uppercase().into(),
        "tostring" => match value {
            Value::String(text) => text.as_str().into(),
            other => other.to_string().into(),
        },
        "tonumber" => match value {
            Value::Number(_) => value.clone(),
            other => match serde_json::from_str::<Value>(&text(other)?) {
                Ok(number @ Value::Number(_)) => number,
                _ => return fault(format!("{other} is no number")),
            },
        },
        "test" => {
            let flags = arguments.get(1).and_then(Value::as_str).unwrap_or_default();
            let expression = regex::RegexBuilder::new(&text(argument(0))?)
                .case_insensitive(flags.contains('i'))
                .ignore_whitespace(flags.contains('x'))
                .size_limit(1 << 18)
                .build();
            match expression {
                Ok(expression) => expression.is_match(&text(value)?).into(),
                Err(error) => return fault(format!("test: {error}")),
            }
        }
        other => return fault(format!("{other} is not understood here")),
    })
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| value.get(key).is_some_and(|value| contains(value, part))),
        (Value::Array(value), Value::Array(part)) => part
            .iter()
            .all(|part| value.iter().any(|value| contains(value, part))),
        (Value::String(value), Value::String(part)) => value.contains(part.as_str()),
        (value, part) => order(value, part) == Ordering::Equal,
    }
}
