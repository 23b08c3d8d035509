//! Strings as Go's `%q` prints them, because Kubernetes' messages are compared by people and by tests.

use std::fmt::Write;

/// Quotes `text` as Go's `%q` verb does.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Quotes a list as Go prints a `[]string` with `%q`: `["a" "b"]`.
pub(crate) fn go_quote_list(items: &[String]) -> String {
    let mut out = String::from("[");
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(' ');
        }
        push_quoted(&mut out, item);
    }
    out.push(']');
    out
}

pub(crate) fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            // Writing into a String cannot fail.
            c if c.is_ascii_control() => drop(write!(out, "\\x{:02x}", c as u32)),
            c if c.is_ascii() || is_printable(c) => out.push(c),
            c if (c as u32) < 0x1_0000 => drop(write!(out, "\\u{:04x}", c as u32)),
            c => drop(write!(out, "\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
}

/// Rust escapes the same characters that Go calls unprintable, and combining marks besides, which are rare in names.
fn is_printable(c: char) -> bool {
    c.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::{go_quote, go_quote_list};

    #[test]
    fn quotes_as_go_does() {
        for (text, want) in [
            ("plain", r#""plain""#),
            ("say \"hi\"", r#""say \"hi\"""#),
            ("back\\slash", r#""back\\slash""#),
            ("line\nbreak\ttab\x00nul\x7f", r#""line\nbreak\ttab\x00nul\x7f""#),
            ("żółw", r#""żółw""#),
            ("\u{200b}", r#""\u200b""#),
        ] {
            assert_eq!(go_quote(text), want);
        }
        assert_eq!(go_quote_list(&["a".into(), "b c".into()]), r#"["a" "b c"]"#);
        assert_eq!(go_quote_list(&[]), "[]");
    }
}
