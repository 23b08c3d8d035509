//! From a text to words.

use super::{ExprError, error};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    /// Operators, brackets, and words that are neither names of variables nor values.
    Sign(&'static str),
}

impl Token {
    /// What may stand after a dot or before the colon of a map: also words such as `in`.
    pub(super) fn as_name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Sign(word) if WORDS.contains(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("{text:?}"),
            Self::Sign(sign) => format!("{sign:?}"),
        }
    }
}

const WORDS: [&str; 11] = [
    "not",
    "in",
    "or",
    "and",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "let",
    "if",
    "else",
];

/// Longer ones first.
const SIGNS: [&str; 35] = [
    "?.", "??", "==", "!=", "<=", ">=", "&&", "||", "**", "..", "::", "+", "-", "*", "/", "%", "^", "(", ")",
    "[", "]", "{", "}", ",", ":", "?", ".", "<", ">", "!", "#", "|", ";", "=", "&",
];

fn is_letter(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn is_part(c: char) -> bool {
    is_letter(c) || c.is_numeric()
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExprError> {
    let mut found = Vec::new();
    let mut rest = skipped(text)?;
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' | '"' => quoted(rest, first)?,
            '`' => raw(rest)?,
            '0'..='9' => number(rest)?,
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => number(rest)?,
            _ if is_letter(first) => {
                let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                let token = match WORDS.iter().find(|known| **known == word) {
                    Some(known) => Token::Sign(known),
                    None => Token::Name(word.to_owned()),
                };
                (token, after)
            }
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Token::Sign(sign), &rest[sign.len()..]),
                None => return error(format!("unrecognized character {first:?}")),
            },
        };
        found.push(token);
        rest = skipped(after)?;
    }
    Ok(found)
}

/// What follows blanks and comments.
fn skipped(text: &str) -> Result<&str, ExprError> {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment
                .split_once('\n')
                .map_or("", |(_, after)| after)
                .trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            match comment.split_once("*/") {
                Some((_, after)) => rest = after.trim_start(),
                None => return error("unclosed comment"),
            }
        } else {
            return Ok(rest);
        }
    }
}

fn number(rest: &str) -> Result<(Token, &str), ExprError> {
    let radix = match rest.get(..2).unwrap_or("") {
        "0x" | "0X" => 16,
        "0o" | "0O" => 8,
        "0b" | "0B" => 2,
        _ => 10,
    };
    let run = |text: &str, start: usize| -> usize {
        let tail = text[start..].find(|c: char| !c.is_digit(radix) && c != '_');
        tail.map_or(text.len(), |length| start + length)
    };
    let start = if radix == 10 { 0 } else { 2 };
    let mut end = run(rest, start);
    let mut is_float = false;
    if radix == 10 {
        let after = &rest[end..];
        // Two dots are a range.
        if after.starts_with('.') && !after.starts_with("..") {
            is_float = true;
            end = run(rest, end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            is_float = true;
            let sign = rest[end + 1..].starts_with(['+', '-']);
            end = run(rest, end + 1 + usize::from(sign));
        }
    }
    let (written, after) = rest.split_at(end);
    if after.starts_with(is_part) {
        return error(format!(
            "bad number syntax: {written}{}",
            after.chars().next().unwrap_or(' ')
        ));
    }
    let digits = written.replace('_', "");
    let token = match is_float {
        true => digits
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(Token::Float),
        false => i64::from_str_radix(digits.get(start..).unwrap_or(""), radix)
            .ok()
            .map(Token::Int),
    };
    match token {
        Some(token) => Ok((token, after)),
        None => error(format!("{written} is not a number")),
    }
}

/// Within backquotes nothing is special but two of them, which are one.
fn raw(rest: &str) -> Result<(Token, &str), ExprError> {
    let mut text = String::new();
    let mut rest = &rest[1..];
    loop {
        let Some((before, after)) = rest.split_once('`') else {
            return error("a text has no end: a ` is missing");
        };
        text.push_str(before);
        match after.strip_prefix('`') {
            Some(more) => {
                text.push('`');
                rest = more;
            }
            None => return Ok((Token::Text(text), after)),
        }
    }
}

fn quoted(rest: &str, quote: char) -> Result<(Token, &str), ExprError> {
    let mut text = String::new();
    let mut rest = &rest[1..];
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            None | Some('\n') => return error(format!("a text has no end: a {quote} is missing")),
            Some(letter) if letter == quote => return Ok((Token::Text(text), letters.as_str())),
            Some('\\') => {
                let (letter, after) = escape(letters.as_str())?;
                text.push(letter);
                rest = after;
            }
            Some(letter) => {
                text.push(letter);
                rest = letters.as_str();
            }
        }
    }
}

/// What stands for a letter after a backslash.
fn escape(rest: &str) -> Result<(char, &str), ExprError> {
    let mut letters = rest.chars();
    let Some(letter) = letters.next() else {
        return error("a text ends in a backslash");
    };
    let after = letters.as_str();
    let simple = match letter {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '`' | '?' => letter,
        'u' if after.starts_with('{') => {
            let digits = after[1..]
                .split_once('}')
                .filter(|(digits, _)| (1..=6).contains(&digits.len()));
            return match digits {
                Some((digits, after)) => coded(digits, 16, after),
                None => error("\\u{ wants up to six digits and a }"),
            };
        }
        'x' | 'X' | 'u' | 'U' => {
            let count = match letter {
                'u' => 4,
                'U' => 8,
                _ => 2,
            };
            let digits = after.get(..count);
            return match digits {
                Some(digits) => coded(digits, 16, &after[count..]),
                None => error(format!("\\{letter} wants {count} digits")),
            };
        }
        '0'..='3' => {
            return match rest.get(..3) {
                Some(digits) => coded(digits, 8, &rest[3..]),
                None => error("an octal escape has three digits"),
            };
        }
        other => return error(format!("\\{other} is not an escape")),
    };
    Ok((simple, after))
}

fn coded<'t>(digits: &str, radix: u32, after: &'t str) -> Result<(char, &'t str), ExprError> {
    let is_sound = digits.chars().all(|c| c.is_digit(radix));
    let code = u32::from_str_radix(digits, radix)
        .ok()
        .filter(|code| is_sound && *code <= 0x0010_ffff);
    match code {
        Some(code) => Ok((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), after)),
        None => error(format!("{digits:?} is not the code of a letter")),
    }
}
