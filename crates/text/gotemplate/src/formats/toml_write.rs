//! TOML as the Go library BurntSushi/toml writes it: keys in order, values before tables, tables indented.

use crate::text::lossy;
use crate::value::{Map, Value};

const MAX_DEPTH: usize = 100;

/// Writes a map; an error for anything that cannot stand at the top of a document.
pub(super) fn write(value: &Value) -> Result<String, String> {
    let Value::Map(map) = value else {
        return Err(match value {
            Value::Invalid | Value::Nil => "toml: cannot encode a nil value".to_owned(),
            _ => "toml: top-level values must be Go maps or structs".to_owned(),
        });
    };
    let mut out = String::new();
    table(&mut out, map, &mut Vec::new())?;
    Ok(out)
}

fn is_table(value: &Value) -> bool {
    match value {
        Value::Map(_) => true,
        Value::List(list) => {
            !list.items.is_empty() && list.items.iter().all(|item| matches!(item, Value::Map(_)))
        }
        _ => false,
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

fn table(out: &mut String, map: &Map, path: &mut Vec<String>) -> Result<(), String> {
    if path.len() > MAX_DEPTH {
        return Err(format!("toml: more than {MAX_DEPTH} nested tables"));
    }
    let entries = map.entries();
    let depth = path.len();
    for (key, value) in entries.iter().filter(|(_, value)| !is_table(value)) {
        if value.is_nil() {
            continue;
        }
        indent(out, depth);
        out.push_str(&key_text(&lossy(key)));
        out.push_str(" = ");
        inline(out, value, 0)?;
        out.push('\n');
    }
    for (key, value) in entries.iter().filter(|(_, value)| is_table(value)) {
        path.push(key_text(&lossy(key)));
        let depth = path.len() - 1;
        match value {
            Value::Map(inner) => {
                if path.len() == 1 && !out.is_empty() {
                    out.push('\n');
                }
                indent(out, depth);
                out.push_str(&format!("[{}]\n", path.join(".")));
                table(out, inner, path)?;
            }
            Value::List(list) => {
                for item in &list.items {
                    if let Value::Map(inner) = item {
                        if path.len() == 1 && !out.is_empty() {
                            out.push('\n');
                        }
                        indent(out, depth);
                        out.push_str(&format!("[[{}]]\n", path.join(".")));
                        table(out, inner, path)?;
                    }
                }
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

fn key_text(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    match bare {
        true => key.to_owned(),
        false => quoted(key),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\0'..='\x1f' | '\x7f' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn inline(out: &mut String, value: &Value, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("toml: more than {MAX_DEPTH} nested values"));
    }
    match value {
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(_, value) | Value::Duration(value) => out.push_str(&value.to_string()),
        Value::Uint(_, value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&float(*value)),
        Value::Str(text) => out.push_str(&quoted(&lossy(text))),
        Value::Time(time) => out.push_str(&time.format("2006-01-02T15:04:05Z07:00")),
        Value::Bytes(bytes) => {
            let items: Vec<String> = bytes.iter().map(u8::to_string).collect();
            out.push_str(&format!("[{}]", items.join(", ")));
        }
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                if item.is_nil() {
                    return Err("toml: cannot encode array with nil element".to_owned());
                }
                inline(out, item, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (at, (key, item)) in map.entries().iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                out.push_str(&key_text(&lossy(key)));
                out.push_str(" = ");
                inline(out, item, depth + 1)?;
            }
            out.push('}');
        }
        other => return Err(format!("toml: unsupported type: {}", other.type_name())),
    }
    Ok(())
}

/// A float always shows that it is one.
fn float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{value}");
    match text.contains(['.', 'e']) {
        true => text,
        false => format!("{text}.0"),
    }
}
