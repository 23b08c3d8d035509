//! Two kinds of patterns: Go's `filepath.Match`, and those of the library gobwas/glob that `.Files.Glob` takes.

use regex::bytes::Regex;

/// Whether a pattern can be used at all.
pub(crate) fn is_valid_pattern(pattern: &str) -> bool {
    translate(pattern).is_some()
}

/// Go's `filepath.Match`; a pattern that is none matches nothing.
pub(crate) fn file_match(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?', '[', '\\']) {
        return pattern == name;
    }
    let regex = translate(pattern).and_then(|expression| Regex::new(&expression).ok());
    regex.is_some_and(|regex| regex.is_match(name.as_bytes()))
}

fn translate(pattern: &str) -> Option<String> {
    let mut out = String::from("(?s)^");
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                let rest = chars.as_str();
                let (class, length) = class(rest, '^')?;
                out.push_str(&class);
                chars = rest[length..].chars();
            }
            '\\' => out.push_str(&regex::escape(&chars.next()?.to_string())),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push('$');
    Some(out)
}

/// A class without its opening bracket, and its length with the closing one.
fn class(text: &str, negation: char) -> Option<(String, usize)> {
    let mut out = String::from("[");
    let mut chars = text.char_indices().peekable();
    if chars.peek().is_some_and(|(_, c)| *c == negation) {
        chars.next();
        out.push('^');
    }
    let mut empty = true;
    loop {
        let (at, c) = chars.next()?;
        match c {
            ']' if !empty => {
                out.push(']');
                return Some((out, at + 1));
            }
            ']' => return None,
            '-' if !empty => out.push('-'),
            '\\' => {
                let (_, escaped) = chars.next()?;
                out.push_str(&regex::escape(&escaped.to_string()));
            }
            '[' | '&' | '~' | '^' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        empty = false;
    }
}

/// A pattern of gobwas/glob with `/` between the parts: `**` crosses them, `{a,b}` chooses.
pub(crate) struct Glob(Option<Regex>);

impl Glob {
    /// A pattern that is none matches everything, as in Helm.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(glob_expression(pattern).and_then(|expression| Regex::new(&expression).ok()))
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|regex| regex.is_match(name.as_bytes()))
    }
}

fn glob_expression(pattern: &str) -> Option<String> {
    let mut out = String::from("(?s)^");
    let mut rest = pattern;
    let mut open = 0;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = after;
        match c {
            '*' => match after.strip_prefix('*') {
                Some(after) => {
                    out.push_str(".*");
                    rest = after;
                }
                None => out.push_str("[^/]*"),
            },
            '?' => out.push_str("[^/]"),
            '[' => {
                let (class, length) = class(after, '!')?;
                out.push_str(&class);
                rest = &after[length..];
            }
            '{' => {
                open += 1;
                out.push_str("(?:");
            }
            '}' if open > 0 => {
                open -= 1;
                out.push(')');
            }
            ',' if open > 0 => out.push('|'),
            '\\' => {
                let escaped = after.chars().next()?;
                out.push_str(&regex::escape(&escaped.to_string()));
                rest = &after[escaped.len_utf8()..];
            }
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push('$');
    (open == 0).then_some(out)
}
