//! `pattern`: regular expressions in Go's dialect, compiled when first used and bounded in size.
//!
//! Schemas are written for RE2 as Go has it. Rust's engine has the same power and the same linear time, but reads a few
//! things differently: its classes `\d \w \s` and its `\b` know Unicode, and brackets, `&&` and `~~` have a meaning
//! inside of classes. The translation below takes those meanings away.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

/// Bound on the program that a pattern may compile to.
const SIZE_LIMIT: usize = 4 << 20;
/// Bound on the cache that matching may use, per thread.
const CACHE_LIMIT: usize = 512 << 10;
/// Go refuses larger repetition counts, which also bounds what hostile patterns can ask for.
const MAX_REPEAT: u32 = 1000;
/// No sensible pattern is longer.
const MAX_LENGTH: usize = 32 << 10;

/// A pattern and, once it was needed, its compiled form.
#[derive(Debug)]
pub(super) struct Pattern {
    source: Box<str>,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    pub(super) fn new(source: &str) -> Self {
        Self {
            source: source.into(),
            compiled: OnceLock::new(),
        }
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the text contains a match; the error says why the pattern is none.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, &str> {
        match self.compiled.get_or_init(|| compile(&self.source)) {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(reason) => Err(reason),
        }
    }
}

/// Compiles a Go regular expression; the error is one line.
pub(super) fn compile(source: &str) -> Result<Regex, String> {
    let translated = translate(source)?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(CACHE_LIMIT)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "error parsing regexp: expression too large when compiled".to_owned()
            }
            other => {
                let text = other.to_string();
                let reason = text.lines().last().unwrap_or_default();
                let reason = match reason.strip_prefix("error: ").unwrap_or(reason) {
                    "unclosed group" => "missing closing )",
                    "unopened group" => "unexpected )",
                    "repetition operator missing expression" => "missing argument to repetition operator",
                    other => other,
                };
                format!("error parsing regexp: {reason}: `{source}`")
            }
        })
}

/// Rewrites Go's syntax to Rust's where they differ.
fn translate(source: &str) -> Result<String, String> {
    if source.len() > MAX_LENGTH {
        return Err("error parsing regexp: expression too long".to_owned());
    }
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source;
    let mut before = Before::Other;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        let length = out.len();
        let mut operator = matches!(c, '*' | '+' | '?');
        rest = match c {
            '\\' => escape(tail, false, &mut out)?,
            '[' => class(tail, &mut out)?,
            '{' => {
                let after = repetition(tail, &mut out)?;
                operator = out[length..].starts_with('{');
                after
            }
            _ => {
                out.push(c);
                tail
            }
        };
        before = match (operator, before) {
            (false, _) => Before::Other,
            (true, Before::Other) => Before::Repetition,
            (true, Before::Repetition) if c == '?' => Before::LazyRepetition,
            (true, _) => {
                let found = &out[length..];
                return Err(format!(
                    "error parsing regexp: invalid nested repetition operator: `{found}`"
                ));
            }
        };
    }
    Ok(out)
}

/// What stands before a character, to refuse repetitions of repetitions as Go does.
#[derive(Clone, Copy)]
enum Before {
    Other,
    Repetition,
    LazyRepetition,
}

/// What follows a backslash.
fn escape<'a>(rest: &'a str, in_class: bool, out: &mut String) -> Result<&'a str, String> {
    let Some(c) = rest.chars().next() else {
        return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
    };
    let mut tail = &rest[c.len_utf8()..];
    match c {
        'd' => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        'w' => out.push_str(if in_class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
        's' => out.push_str(if in_class {
            "\\t\\n\\f\\r\\x20"
        } else {
            "[\\t\\n\\f\\r\\x20]"
        }),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str("[^\\t\\n\\f\\r\\x20]"),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        'Q' if !in_class => {
            let (literal, after) = tail.split_once("\\E").unwrap_or((tail, ""));
            out.push_str(&regex::escape(literal));
            tail = after;
        }
        '1'..='7' if tail.starts_with(|c: char| ('0'..='7').contains(&c)) => tail = octal(rest, out),
        '0' => tail = octal(rest, out),
        // Braces belong to the escape here: they are neither a repetition nor literal.
        'p' | 'P' | 'x' if tail.starts_with('{') => {
            let (name, after) = tail.split_at(tail.find('}').map_or(tail.len(), |i| i + 1));
            out.push('\\');
            out.push(c);
            out.push_str(name);
            tail = after;
        }
        // Escaped punctuation is itself in Go; in Rust `\<` and `\>` are word boundaries.
        '<' | '>' | '_' => out.push(c),
        _ if !c.is_ascii() => out.push(c),
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    Ok(tail)
}

fn octal<'a>(rest: &'a str, out: &mut String) -> &'a str {
    let digits = rest
        .bytes()
        .take(3)
        .take_while(|b| (b'0'..=b'7').contains(b))
        .count();
    let code = rest[..digits]
        .bytes()
        .fold(0_u32, |n, b| n * 8 + u32::from(b - b'0'));
    out.push_str(&format!("\\x{{{code:X}}}"));
    &rest[digits..]
}

/// What follows an opening bracket, up to and with the closing one.
fn class<'a>(mut rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    let whole = rest;
    out.push('[');
    if let Some(tail) = rest.strip_prefix('^') {
        out.push('^');
        rest = tail;
    }
    if let Some(tail) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = tail;
    }
    // Whether a dash would begin the upper end of a range.
    let mut may_range = false;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        let after_literal = std::mem::replace(&mut may_range, c != '-');
        rest = match c {
            ']' => {
                out.push(']');
                return Ok(tail);
            }
            '-' if after_literal && !tail.starts_with(']') => {
                out.push('-');
                match tail.strip_prefix('-') {
                    Some(after) => {
                        out.push_str("\\-");
                        after
                    }
                    None => tail,
                }
            }
            '-' => {
                out.push_str("\\-");
                tail
            }
            '\\' => escape(tail, true, out)?,
            '[' => match tail.strip_prefix(':').and_then(|t| t.split_once(":]")) {
                Some((name, after)) if name.bytes().all(|b| b.is_ascii_lowercase() || b == b'^') => {
                    out.push_str("[:");
                    out.push_str(name);
                    out.push_str(":]");
                    after
                }
                _ => {
                    out.push_str("\\[");
                    tail
                }
            },
            '&' | '~' => {
                out.push('\\');
                out.push(c);
                tail
            }
            _ => {
                out.push(c);
                tail
            }
        };
    }
    Err(format!("error parsing regexp: missing closing ]: `[{whole}`"))
}

/// What follows an opening brace: a repetition count, or the brace is literal.
fn repetition<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, String> {
    let literal = |out: &mut String| {
        out.push_str("\\{");
        Ok(rest)
    };
    let Some((counts, after)) = rest.split_once('}') else {
        return literal(out);
    };
    let (low, high) = counts
        .split_once(',')
        .map_or((counts, None), |(l, h)| (l, Some(h)));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(low) || high.is_some_and(|h| !h.is_empty() && !digits(h)) {
        return literal(out);
    }
    let too_large = |s: &str| !s.is_empty() && s.parse::<u32>().map_or(true, |n| n > MAX_REPEAT);
    if too_large(low) || high.is_some_and(too_large) {
        return Err(format!(
            "error parsing regexp: invalid repeat count: `{{{counts}}}`"
        ));
    }
    out.push('{');
    out.push_str(counts);
    out.push('}');
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_dialect() {
        // (pattern, text, matches)
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{0661}", false), // Arabic digit: Go's \d is ASCII
            (r"^\w+$", "\u{e9}", false),
            (r"^[\w-]+$", "a-b", true),
            (r"^[^\s]+$", "a\u{a0}b", true),
            (r"^[\S]+$", "ab", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{x}$", "a{x}", true),
            (r"^a{2}$", "aa", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\<a\>$", "<a>", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^[+--]$", ",", true),
            (r"^[-a]$", "-", true),
            (r"^[a-]$", "-", true),
            (r"^[\w.-]+$", "a.-", true),
            (r"^[a-c-]$", "-", true),
            (r"^a+?$", "aa", true),
            (r"^[a\-z]+$", "-", true),
            (r"^\011$", "\t", true),
            (r"^(?i)AB$", "ab", true),
            (r"^(?P<x>a)$", "a", true),
            (r"^.$", "\u{1F600}", true),
            (r"^\p{Greek}$", "\u{3b1}", true),
            (r"^[\p{L}\x{41}]$", "A", true),
        ];
        for (pattern, text, matches) in cases {
            let regex = compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn refuses_what_go_refuses_and_what_is_too_large() {
        for pattern in [
            "(",
            "a**",
            "[a",
            "a{1001}",
            "a{1,1001}",
            r"\",
            "(?!a)",
            r"(a)\1",
            "((a{100}){100}){100}",
        ] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
        let long = "a".repeat(MAX_LENGTH + 1);
        assert!(compile(&long).is_err());
        assert!(Pattern::new("(").is_match("x").is_err());
    }
}
