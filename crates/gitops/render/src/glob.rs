//! Patterns of files as Argo CD's `directory.include` and `exclude` have them: `*` also crosses directories, `{a,b}` is either.

use regex::Regex;

use crate::error::Error;

/// The longest pattern: longer ones are mistakes.
const MAX: usize = 1024;

/// A pattern, compiled.
#[derive(Debug)]
pub(crate) struct Glob(Regex);

impl Glob {
    pub(crate) fn new(pattern: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Error::Pattern {
            pattern: pattern.chars().take(80).collect(),
            why: why.to_owned(),
        };
        if pattern.len() > MAX {
            return Err(refuse("it is longer than 1024 characters"));
        }
        let mut out = String::from("^");
        let mut depth = 0usize;
        let mut chars = pattern.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => {
                    while chars.peek() == Some(&'*') {
                        chars.next();
                    }
                    out.push_str(".*");
                }
                '?' => out.push('.'),
                '{' => {
                    depth += 1;
                    out.push_str("(?:");
                }
                '}' if depth > 0 => {
                    depth -= 1;
                    out.push(')');
                }
                ',' if depth > 0 => out.push('|'),
                '[' => class(&mut chars, &mut out).ok_or_else(|| refuse("a '[' is not closed"))?,
                '\\' => {
                    let literal = chars.next().ok_or_else(|| refuse("it ends with a '\\'"))?;
                    out.push_str(&regex::escape(&literal.to_string()));
                }
                literal => out.push_str(&regex::escape(&literal.to_string())),
            }
        }
        if depth > 0 {
            return Err(refuse("a '{' is not closed"));
        }
        out.push('$');
        Regex::new(&out)
            .map(Self)
            .map_err(|error| refuse(&error.to_string()))
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if matches!(chars.peek(), Some('!' | '^')) {
        chars.next();
        out.push('^');
    }
    loop {
        match chars.next()? {
            ']' => {
                out.push(']');
                return Some(());
            }
            '-' => out.push('-'),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, path, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "dir/a.yaml", true),
            ("{a,b}.yaml", "b.yaml", true),
            ("{a,b}.yaml", "c.yaml", false),
            ("{*.yml,*.yaml}", "x/y.yml", true),
            ("config-[0-9].json", "config-3.json", true),
            ("config-[!0-9].json", "config-3.json", false),
            ("**/secret?.yaml", "a/secret1.yaml", true),
            ("a+b.yaml", "a+b.yaml", true),
            ("a.yaml", "axyaml", false),
        ] {
            assert_eq!(
                Glob::new(pattern).unwrap().matches(path),
                expected,
                "{pattern} {path}"
            );
        }
        for wrong in ["{a", "[a", "a\\"] {
            assert!(Glob::new(wrong).is_err(), "{wrong}");
        }
    }
}
