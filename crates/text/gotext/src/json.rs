//! JSON as `encoding/json` writes it: keys sorted by bytes, numbers in Go's notation, and, unless told otherwise, characters
//! that mean something in a web page escaped.

use std::fmt::Write;

use serde_json::Value;

/// What becomes of `<`, `>` and `&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Html {
    /// They are escaped, as `json.Marshal` does.
    #[default]
    Escaped,
    /// They stay.
    Raw,
}

/// Writes a value.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, None, 0);
    out
}

/// Writes a value over several lines, indented by two spaces.
pub fn to_string_pretty(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, Some(2), 0);
    out
}

/// Appends a string in its quotes.
pub fn push_string(out: &mut String, text: &str, html: Html) {
    out.push('"');
    push_escaped(out, text, html);
    out.push('"');
}

/// Appends bytes as a string in its quotes; each byte that is no text is written as an escape.
pub fn push_bytes(out: &mut String, bytes: &[u8], html: Html) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        push_escaped(out, chunk.valid(), html);
        for _ in chunk.invalid() {
            out.push_str("\\ufffd");
        }
    }
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str, html: Html) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '<' | '>' | '&' if html == Html::Raw => out.push(c),
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing into a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// A finite float: without an exponent unless it is very large or very small.
pub fn float(value: f64) -> String {
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

fn write(value: &Value, out: &mut String, indent: Option<usize>, depth: usize) {
    match value {
        Value::String(text) => push_string(out, text, Html::Escaped),
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
            push_string(out, key, Html::Escaped);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Html, float, push_bytes, push_string, to_string, to_string_pretty};

    #[test]
    fn values_as_go_writes_them() {
        let value = json!({"b": "<a&b>\n", "a": [1, 2.5, null, 1e22], "é": "\u{2028}"});
        assert_eq!(
            to_string(&value),
            "{\"a\":[1,2.5,null,1e+22],\"b\":\"\\u003ca\\u0026b\\u003e\\n\",\"é\":\"\\u2028\"}"
        );
        assert_eq!(
            to_string_pretty(&json!({"b": [], "a": [true]})),
            "{\n  \"a\": [\n    true\n  ],\n  \"b\": []\n}"
        );
    }

    #[test]
    fn strings_may_keep_their_html() {
        let mut out = String::new();
        push_string(&mut out, "<a href=\"x\">\x08\x01", Html::Raw);
        assert_eq!(out, r#""<a href=\"x\">\b\u0001""#);
        out.clear();
        push_bytes(&mut out, b"<\xff", Html::Escaped);
        assert_eq!(out, r#""\u003c\ufffd""#);
    }

    #[test]
    fn floats_have_an_exponent_only_far_from_one() {
        for (value, want) in [
            (0.0, "0"),
            (100.0, "100"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (-2.5e-9, "-2.5e-9"),
        ] {
            assert_eq!(float(value), want);
        }
    }
}
