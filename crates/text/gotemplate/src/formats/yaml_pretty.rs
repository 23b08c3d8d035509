//! `toYamlPretty`: YAML as go-yaml 3 writes it with an indent of two, where lists are indented under their keys.

use fairway_text_yaml as yaml;
use serde_json::Value as Json;

use crate::text::lossy;
use crate::value::{Value, to_json};

const MAX_DEPTH: usize = 200;

/// A value as YAML without the line feed at the end; none if it is nested too deeply.
pub(super) fn write(value: &Value) -> Option<String> {
    let mut out = String::new();
    block(&mut out, value, 0, 0)?;
    Some(out)
}

fn indent(out: &mut String, column: usize) {
    out.extend(std::iter::repeat_n(' ', column));
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Map(map) => !map.is_empty(),
        Value::List(list) => !list.items.is_empty(),
        _ => false,
    }
}

/// Writes at a column; the first line's indent has been written already.
fn block(out: &mut String, value: &Value, column: usize, depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match value {
        Value::Map(map) if !map.is_empty() => {
            let mut entries = map.entries();
            entries.sort_by(|left, right| yaml::compare_keys(&lossy(&left.0), &lossy(&right.0)));
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push('\n');
                    indent(out, column);
                }
                out.push_str(&scalar(&Value::Str(key.clone()), column)?);
                out.push(':');
                match is_block(value) {
                    true => {
                        out.push('\n');
                        indent(out, column + 2);
                    }
                    false => out.push(' '),
                }
                block(out, value, column + 2, depth + 1)?;
            }
        }
        Value::List(list) if !list.items.is_empty() => {
            for (at, item) in list.items.iter().enumerate() {
                if at > 0 {
                    out.push('\n');
                    indent(out, column);
                }
                out.push_str("- ");
                block(out, item, column + 2, depth + 1)?;
            }
        }
        // A block of text is indented under the key, which stands two columns to the left.
        other => out.push_str(&scalar(other, column.saturating_sub(2))?),
    }
    Some(())
}

fn scalar(value: &Value, column: usize) -> Option<String> {
    if let Value::Float(float) = value {
        return Some(crate::fmt::float(*float));
    }
    let json: Json = to_json(value).ok()?;
    let text = yaml::to_string(&json);
    let lines = text.strip_suffix('\n').unwrap_or(&text);
    let mut out = String::with_capacity(lines.len());
    for (at, line) in lines.split('\n').enumerate() {
        if at > 0 {
            out.push('\n');
            if !line.is_empty() {
                indent(&mut out, column);
            }
        }
        out.push_str(line);
    }
    Some(out)
}
