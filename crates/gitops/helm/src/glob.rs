//! Two kinds of patterns: Go's `filepath.Match`, and those of the library gobwas/glob that `.Files.Glob` takes.

/// A pattern of Go's `filepath.Match`. Matched by hand: `.helmignore` compares each file of a chart with each rule.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// A name.
    Name(String),
    /// A star and how names end: with names, most of the rules that people write.
    Ending(String),
    Other(Vec<Token>),
}

#[derive(Debug, Clone)]
pub(crate) enum Token {
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
        let plain = |tokens: &[Token]| -> Option<String> {
            let plain = tokens.iter().map(|token| match token {
                Token::Char(c) => Some(*c),
                _ => None,
            });
            plain.collect()
        };
        Some(match tokens.split_first() {
            Some((Token::Star, ending)) if plain(ending).is_some() => {
                Self::Ending(plain(ending).unwrap_or_default())
            }
            _ => match plain(&tokens) {
                Some(name) => Self::Name(name),
                None => Self::Other(tokens),
            },
        })
    }

    /// Whether it describes the whole of a name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Ending(ending) => name.strip_suffix(ending).is_some_and(|rest| !rest.contains('/')),
            Self::Other(tokens) => matches_tokens(tokens, name),
        }
    }
}

fn matches_tokens(tokens: &[Token], name: &str) -> bool {
    let (mut at, mut token) = (0, 0);
    // Where to go on if the last star takes one more character.
    let mut retry: Option<(usize, usize)> = None;
    let character = |at: usize| name[at..].chars().next();
    loop {
        match (character(at), tokens.get(token)) {
            (_, Some(Token::Star)) => {
                retry = Some((at, token));
                token += 1;
                continue;
            }
            (None, None) => return true,
            (Some(c), Some(own)) if own.takes(c) => {
                at += c.len_utf8();
                token += 1;
                continue;
            }
            _ => {}
        }
        match retry.and_then(|(start, star)| Some((start, star, character(start)?))) {
            Some((start, star, c)) if c != '/' => {
                at = start + c.len_utf8();
                retry = Some((at, star));
                token = star + 1;
            }
            _ => return false,
        }
    }
}

/// A pattern of gobwas/glob with `/` between the parts: `**` crosses them, `{a,b}` chooses.
pub(crate) struct Glob(Option<fairway_text_glob::Glob>);

impl Glob {
    /// A pattern that is none matches everything, as in Helm.
    pub(crate) fn new(pattern: &str) -> Self {
        Self(fairway_text_glob::Glob::new(pattern, &['/']).ok())
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|glob| glob.matches(name))
    }
}

#[cfg(test)]
mod tests {
    use super::{Glob, Pattern};

    #[test]
    fn patterns_match_as_go_matches_them() {
        let cases: &[(&str, &str, Option<bool>)] = &[
            ("*.bak", "a.bak", Some(true)),
            ("*.bak", "d/a.bak", Some(false)),
            ("*.bak", "a.bakk", Some(false)),
            ("*", "a", Some(true)),
            ("*", "d/a", Some(false)),
            (".git", ".git", Some(true)),
            (".git", ".gitx", Some(false)),
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
