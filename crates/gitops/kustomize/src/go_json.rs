//! JSON as Go writes it: keys sorted by bytes, and characters that mean something in HTML escaped.

use serde_json::Value;

/// Writes a value.
pub(crate) fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, None, 0);
    out
}

/// Writes a value over several lines, indented by two spaces.
pub(crate) fn to_string_pretty(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, Some(2), 0);
    out
}

fn write(value: &Value, out: &mut String, indent: Option<usize>, depth: usize) {
    match value {
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            let entries = items.iter().map(|item| (None, item)).collect::<Vec<_>>();
            container(('[', ']'), &entries, out, indent, depth);
        }
        Value::Object(fields) => {
            let mut entries: Vec<_> = fields.iter().map(|(key, value)| (Some(key), value)).collect();
            entries.sort_by_key(|(key, _)| *key);
            container(('{', '}'), &entries, out, indent, depth);
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => out.push_str(&self::float(float)),
            None => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

fn container(
    (open, close): (char, char),
    entries: &[(Option<&String>, &Value)],
    out: &mut String,
    indent: Option<usize>,
    depth: usize,
) {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent * depth));
        }
    };
    out.push(open);
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        line(out, depth + 1);
        if let Some(key) = key {
            string(key, out);
            out.push(':');
            if indent.is_some() {
                out.push(' ');
            }
        }
        write(value, out, indent, depth + 1);
    }
    if !entries.is_empty() {
        line(out, depth);
    }
    out.push(close);
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Without an exponent unless the number is very large or very small.
fn float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => text,
        };
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::to_string;

    #[test]
    fn as_go_writes() {
        let value = json!({"b": "<a&b>\n", "a": [1, 2.5, null, 1e22], "é": "\u{2028}"});
        assert_eq!(
            to_string(&value),
            "{\"a\":[1,2.5,null,1e+22],\"b\":\"\\u003ca\\u0026b\\u003e\\n\",\"é\":\"\\u2028\"}"
        );
    }
}
