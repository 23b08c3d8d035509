//! Globs in the dialect of gobwas/glob, which Argo CD uses for projects, RBAC policies and customizations.
//!
//! `*` stands for any characters but a separator, `**` for any at all, `?` for one that is no separator, `[a-z]`,
//! `[abc]` and `[!a]` for one of a set, `{a,b}` for either, and a backslash for what follows it. Without separators `*`
//! and `**` are the same. Patterns become regular expressions, so that matching takes linear time whatever a tenant
//! writes. The crate must not know what is matched.

use regex::Regex;

/// The longest pattern that is read; longer ones are refused, as no name they could match is as long.
pub const MAX_PATTERN: usize = 4096;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Glob(Regex);

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadGlob(&'static str);

impl std::fmt::Display for BadGlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadGlob {}

impl Glob {
    /// Compiles a pattern; `separators` are the characters that `*` and `?` do not cross.
    pub fn new(pattern: &str, separators: &[char]) -> Result<Self, BadGlob> {
        if pattern.len() > MAX_PATTERN {
            return Err(BadGlob("the pattern is longer than 4096 bytes"));
        }
        let mut source = String::with_capacity(pattern.len() * 2 + 8);
        source.push_str("(?s)^");
        translate(pattern, separators, &mut source)?;
        source.push('$');
        match regex::RegexBuilder::new(&source).size_limit(1 << 20).build() {
            Ok(regex) => Ok(Self(regex)),
            Err(_) => Err(BadGlob("the pattern is too complex")),
        }
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Whether a text matches a pattern without separators. What is no pattern matches nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_between(pattern, text, &[])
}

/// Whether a text matches a pattern with separators. What is no pattern matches nothing.
pub fn matches_between(pattern: &str, text: &str, separators: &[char]) -> bool {
    // Most patterns are plain names or `*`: no expression need be compiled for them.
    if pattern == "*" && separators.is_empty() || pattern == "**" {
        return true;
    }
    if !pattern.contains(['*', '?', '[', '{', '\\']) {
        return pattern == text;
    }
    Glob::new(pattern, separators).is_ok_and(|glob| glob.matches(text))
}

fn translate(pattern: &str, separators: &[char], source: &mut String) -> Result<(), BadGlob> {
    let within = match separators {
        [] => ".".to_owned(),
        some => {
            let mut set = String::from("[^");
            some.iter().for_each(|c| push_in_class(*c, &mut set));
            set.push(']');
            set
        }
    };
    let mut chars = pattern.chars().peekable();
    let mut open = 0usize;
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.next_if_eq(&'*').is_some() => source.push_str(".*"),
            '*' => {
                source.push_str(&within);
                source.push('*');
            }
            '?' => source.push_str(&within),
            '[' => class(&mut chars, source)?,
            '{' => {
                open += 1;
                source.push_str("(?:");
            }
            '}' if open > 0 => {
                open -= 1;
                source.push(')');
            }
            ',' if open > 0 => source.push('|'),
            '\\' => {
                let escaped = chars.next().ok_or(BadGlob("the pattern ends in a backslash"))?;
                push_plain(escaped, source);
            }
            plain => push_plain(plain, source),
        }
    }
    if open > 0 {
        return Err(BadGlob("a `{` is not closed"));
    }
    Ok(())
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, source: &mut String) -> Result<(), BadGlob> {
    source.push('[');
    if chars.next_if_eq(&'!').is_some() {
        source.push('^');
    }
    let mut members = 0;
    loop {
        let c = chars.next().ok_or(BadGlob("a `[` is not closed"))?;
        match c {
            ']' if members > 0 => break,
            ']' => return Err(BadGlob("a `[` holds nothing")),
            '-' if members > 0 && chars.peek().is_some_and(|next| *next != ']') => source.push('-'),
            '\\' => push_in_class(chars.next().ok_or(BadGlob("a `[` is not closed"))?, source),
            plain => push_in_class(plain, source),
        }
        members += 1;
    }
    source.push(']');
    Ok(())
}

fn push_in_class(c: char, source: &mut String) {
    if !c.is_alphanumeric() {
        source.push('\\');
    }
    source.push(c);
}

fn push_plain(c: char, source: &mut String) {
    source.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_gobwas_does() {
        let cases: &[(&str, &str, &[char], bool)] = &[
            ("*", "a/b", &[], true),
            ("*", "a/b", &['/'], false),
            ("**", "a/b", &['/'], true),
            ("", "", &[], true),
            ("", "a", &[], false),
            ("https://github.com/*/*", "https://github.com/a/b", &['/'], true),
            ("https://github.com/*", "https://github.com/a/b", &['/'], false),
            ("a?c", "abc", &[], true),
            ("a?c", "a/c", &['/'], false),
            ("[a-c]x", "bx", &[], true),
            ("[!a-c]x", "bx", &[], false),
            ("[!a-c]x", "zx", &[], true),
            ("{dev,prod}-*", "prod-1", &[], true),
            ("{dev,prod}-*", "test-1", &[], false),
            ("a.b", "aXb", &[], false),
            (r"a\*", "a*", &[], true),
            (r"a\*", "ab", &[], false),
            ("[a", "a", &[], false),
            ("{a", "a", &[], false),
            ("*.crossplane.io/*", "rds.aws.crossplane.io/Instance", &[], true),
            ("a*\n*", "a\n", &[], true),
        ];
        for (pattern, text, separators, expected) in cases {
            let got = matches_between(pattern, text, separators);
            assert_eq!(got, *expected, "{pattern:?} on {text:?} with {separators:?}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let stars = "*a".repeat(2000);
        assert!(!matches(&stars, &"a".repeat(1000)));
        assert!(Glob::new(&"{".repeat(4000), &[]).is_err());
        assert!(Glob::new(&"a".repeat(MAX_PATTERN + 1), &[]).is_err());
    }
}
