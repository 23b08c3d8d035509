//! Two kinds of patterns: Go's `filepath.Match`, and those of the library gobwas/glob that `.Files.Glob` takes.

use regex::bytes::Regex;

/// A pattern of Go's `filepath.Match`. Matched by hand: `.helmignore` compares each file of a chart with each rule.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Vec<Token>);

#[derive(Debug, Clone)]
enum Token {
    /// Any characters but a slash.
    Star,
    /// One character but a slash.
    Any,
    Char(char),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => c != '/',
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

impl Pattern {
    /// None if it is no pattern.
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut chars = pattern.chars().peekable();
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' => Token::Star,
                '?' => Token::Any,
                '\\' => Token::Char(chars.next()?),
                '[' => {
                    let negated = chars.next_if_eq(&'^').is_some();
                    let mut ranges = Vec::new();
                    let one = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| match chars.next()? {
                        '\\' => chars.next(),
                        '-' | ']' => None,
                        c => Some(c),
                    };
                    while ranges.is_empty() || chars.next_if_eq(&']').is_none() {
                        let low = one(&mut chars)?;
                        let high = match chars.next_if_eq(&'-') {
                            Some(_) => one(&mut chars)?,
                            None => low,
                        };
                        ranges.push((low, high));
                    }
                    Token::Class { negated, ranges }
                }
                c => Token::Char(c),
            });
        }
        Some(Self(tokens))
    }

    /// Whether it describes the whole of a name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut token) = (0, 0);
        // Where to go on if the last star takes one more character.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match (name.get(at), self.0.get(token)) {
                (_, Some(Token::Star)) => {
                    retry = Some((at, token));
                    token += 1;
                    continue;
                }
                (None, None) => return true,
                (Some(c), Some(own)) if own.takes(*c) => {
                    at += 1;
                    token += 1;
                    continue;
                }
                _ => {}
            }
            match retry {
                Some((start, star)) if name.get(start).is_some_and(|c| *c != '/') => {
                    retry = Some((start + 1, star));
                    at = start + 1;
                    token = star + 1;
                }
                _ => return false,
            }
        }
    }
}

/// A class as an expression, without its opening bracket, and its length with the closing one.
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

#[cfg(test)]
mod tests {
    use super::{Glob, Pattern};

    #[test]
    fn patterns_match_as_go_matches_them() {
        let cases: &[(&str, &str, Option<bool>)] = &[
            ("*.bak", "a.bak", Some(true)),
            ("*.bak", "d/a.bak", Some(false)),
            ("a*b*c", "aXbYbZc", Some(true)),
            ("a*b*c", "aXbYbZ", Some(false)),
            ("templates/.?*", "templates/.x", Some(true)),
            ("templates/.?*", "templates/.", Some(false)),
            ("[a-c]?[^x]", "bzy", Some(true)),
            ("[a-c]?[^x]", "bzx", Some(false)),
            ("\\*", "*", Some(true)),
            ("[", "a", None),
            ("[]a]", "a", None),
            ("a\\", "a", None),
        ];
        for (pattern, name, expected) in cases {
            let found = Pattern::parse(pattern).map(|pattern| pattern.matches(name));
            assert_eq!(found, *expected, "{pattern} {name}");
        }
    }

    #[test]
    fn globs_cross_folders_and_choose() {
        let cases: &[(&str, &str, bool)] = &[
            ("conf/*", "conf/a.txt", true),
            ("conf/*", "conf/d/a.txt", false),
            ("conf/**", "conf/d/a.txt", true),
            ("**.yaml", "a/b.yaml", true),
            ("{a,b}/*.{x,y}", "b/f.y", true),
            ("{a,b}/*.{x,y}", "c/f.y", false),
            ("[!a]?", "bc", true),
            ("x[a-", "anything", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Glob::new(pattern).matches(name), *expected, "{pattern} {name}");
        }
    }
}
