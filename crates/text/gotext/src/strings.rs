//! Text as Go has it: bytes that are usually UTF-8, its quoted form, and what its `unicode` package says of characters.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

/// Bytes as text, with one replacement character for each byte that is none, as Go's loops over strings have it.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut out = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                out.push_str(chunk.valid());
                out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
            }
            Cow::Owned(out)
        }
    }
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols, and the ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    static PRINTABLE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]").ok());
    let mut buffer = [0; 4];
    PRINTABLE
        .as_ref()
        .is_some_and(|printable| printable.is_match(c.encode_utf8(&mut buffer)))
}

/// How Go quotes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    /// `strconv.Quote`
    Print,
    /// `strconv.QuoteToASCII`
    Ascii,
}

/// Bytes in quotes as `strconv.Quote`, and `%q`, write them.
pub fn quote(bytes: &[u8]) -> String {
    quote_with(bytes, '"', Quoting::Print)
}

/// [`quote`] for what is known to be text.
pub fn quoted(text: &str) -> String {
    quote(text.as_bytes())
}

/// Text in quotes of another kind.
pub fn quote_with(bytes: &[u8], mark: char, quoting: Quoting) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    push_with(&mut out, bytes, mark, quoting);
    out
}

/// Appends what [`quoted`] gives.
pub fn push_quoted(out: &mut String, text: &str) {
    push_with(out, text.as_bytes(), '"', Quoting::Print);
}

fn push_with(out: &mut String, bytes: &[u8], mark: char, quoting: Quoting) {
    out.push(mark);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            escape_into(out, c, mark, quoting);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push(mark);
}

/// A list as `%q` prints a `[]string`: `["a" "b"]`.
pub fn quote_list(items: &[String]) -> String {
    let mut out = String::from("[");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        push_quoted(&mut out, item);
    }
    out.push(']');
    out
}

fn escape_into(out: &mut String, c: char, mark: char, quoting: Quoting) {
    if c == mark || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if (c.is_ascii() || quoting == Quoting::Print) && is_print(c) {
        out.push(c);
        return;
    }
    let _ = match c {
        '\x07' => out.write_str("\\a"),
        '\x08' => out.write_str("\\b"),
        '\x0c' => out.write_str("\\f"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\x0b' => out.write_str("\\v"),
        '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", u32::from(c)),
        c if u32::from(c) > 0xffff => write!(out, "\\U{:08x}", u32::from(c)),
        c => write!(out, "\\u{:04x}", u32::from(c)),
    };
}

/// What quoted text means, as `strconv.Unquote` has it; none where it is no valid literal.
pub fn unquote(quoted: &str) -> Option<Vec<u8>> {
    let mark = quoted.chars().next()?;
    let inner = quoted.strip_prefix(mark)?.strip_suffix(mark)?;
    if mark == '`' {
        let without_returns = inner.bytes().filter(|&byte| byte != b'\r').collect();
        return (!inner.contains('`')).then_some(without_returns);
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while !rest.is_empty() {
        let (piece, after) = unquote_char(rest, mark)?;
        match piece {
            Piece::Byte(byte) => out.push(byte),
            Piece::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = after;
    }
    Some(out)
}

/// What one character of a literal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A byte of its own, which need not be UTF-8.
    Byte(u8),
    /// A character.
    Char(char),
}

/// Reads one character or escape of a literal and gives the rest.
pub fn unquote_char(text: &str, mark: char) -> Option<(Piece, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == mark || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Piece::Char(first), chars.as_str()));
    }
    let kind = chars.next()?;
    let rest = chars.as_str();
    let simple = |c: char| Some((Piece::Char(c), rest));
    let digits = |count: usize, radix: u32| {
        let digits = rest.get(..count)?;
        let valid = digits.chars().all(|c| c.is_digit(radix));
        let value = valid.then(|| u32::from_str_radix(digits, radix).ok()).flatten()?;
        Some((value, &rest[count..]))
    };
    match kind {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' if kind == mark => simple(kind),
        'x' => digits(2, 16).map(|(value, rest)| (Piece::Byte(value as u8), rest)),
        'u' | 'U' => {
            let (value, rest) = digits(if kind == 'u' { 4 } else { 8 }, 16)?;
            Some((Piece::Char(char::from_u32(value)?), rest))
        }
        '0'..='7' => {
            let octal = text.get(1..4)?;
            let valid = octal.chars().all(|c| c.is_digit(8));
            let value = valid.then(|| u32::from_str_radix(octal, 8).ok()).flatten()?;
            Some((Piece::Byte(u8::try_from(value).ok()?), &text[4..]))
        }
        _ => None,
    }
}

/// Go's `unicode.IsSpace`.
pub fn is_space(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\x0b' | '\x0c' | '\r' | ' ' | '\u{85}' | '\u{a0}'
    ) || (c > '\u{ff}' && c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::{quote, quote_list, quoted};

    #[test]
    fn quotes_as_go_does() {
        for (text, want) in [
            ("plain", r#""plain""#),
            ("say \"hi\"", r#""say \"hi\"""#),
            ("back\\slash", r#""back\\slash""#),
            ("line\nbreak\ttab\x00nul\x7f", r#""line\nbreak\ttab\x00nul\x7f""#),
            ("żółw", r#""żółw""#),
            ("\u{200b}", r#""\u200b""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quoted(text), want);
        }
        assert_eq!(quote(b"\xff"), r#""\xff""#);
        assert_eq!(quote_list(&["a".into(), "b c".into()]), r#"["a" "b c"]"#);
        assert_eq!(quote_list(&[]), "[]");
    }
}
