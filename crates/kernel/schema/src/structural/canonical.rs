//! A text that is equal exactly for equal values, for finding duplicates without comparing all pairs.

use serde_json::Value;

/// Appends the JSON text of a value with its keys in order.
pub(super) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(&String, &Value)> = object.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (name, value) in entries {
                write_string(name, out);
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::String(text) => write_string(text, out),
        other => out.push_str(&other.to_string()),
    }
}

/// A length and the text: no escaping needed to be unambiguous.
fn write_string(text: &str, out: &mut String) {
    out.push_str(&text.len().to_string());
    out.push('"');
    out.push_str(text);
}

pub(super) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// A copy with keys in order and whole numbers written as such, to be shown in an error.
pub(super) fn shown(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<(&String, &Value)> = object.iter().collect();
            entries.sort_unstable_by(|a, b| a.0.cmp(b.0));
            Value::Object(entries.into_iter().map(|(k, v)| (k.clone(), shown(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(shown).collect()),
        Value::Number(number) => match number.as_f64() {
            Some(f) if number.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => Value::from(f as i64),
            _ => value.clone(),
        },
        other => other.clone(),
    }
}
