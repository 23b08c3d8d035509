//! What `is` can be followed by.

use super::error::Error;
use super::value::Value;

/// Whether a test holds.
pub(super) fn holds(name: &str, of: &Value, arguments: &[Value]) -> Result<bool, Error> {
    let first = arguments.first().unwrap_or(&Value::Undefined);
    let compared = |holds: fn(std::cmp::Ordering) -> bool| of.compare(first).is_some_and(holds);
    Ok(match name {
        "defined" => !matches!(of, Value::Undefined),
        "undefined" => matches!(of, Value::Undefined),
        "none" | "null" => matches!(of, Value::Null),
        "truthy" => of.is_true(),
        "falsy" => !of.is_true(),
        "even" => of.number() % 2.0 == 0.0,
        "odd" => (of.number() % 2.0).abs() == 1.0,
        "divisibleby" => of.number() % first.number() == 0.0,
        "equalto" | "eq" | "sameas" => of.is_same(first),
        "ne" => !of.is_same(first),
        "gt" | "greaterthan" => compared(std::cmp::Ordering::is_gt),
        "ge" => compared(std::cmp::Ordering::is_ge),
        "lt" | "lessthan" => compared(std::cmp::Ordering::is_lt),
        "le" => compared(std::cmp::Ordering::is_le),
        "lower" => matches!(of, Value::Text(text) if text.to_lowercase() == **text),
        "upper" => matches!(of, Value::Text(text) if text.to_uppercase() == **text),
        "number" => matches!(of, Value::Number(_)),
        "string" => matches!(of, Value::Text(_)),
        "iterable" => matches!(of, Value::Text(_) | Value::List(_)),
        "mapping" => matches!(of, Value::Map(_)),
        "callable" | "escaped" => false,
        other => return Err(Error::failed(format!("there is no test called {other:?}"))),
    })
}
