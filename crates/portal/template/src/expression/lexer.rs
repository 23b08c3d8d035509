//! Words of expressions.

use super::error::{Error, Fault};

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Number(f64),
    Text(String),
    Pattern(String, String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// Signs, longer ones before those that they begin with.
const SIGNS: [&str; 31] = [
    "===", "!==", "==", "!=", "<=", ">=", "//", "**", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|", "~",
    "+", "-", "*", "/", "%", "<", ">", "=", "&&", "||", "?", "!",
];
/// The longest expression.
pub(super) const MAX_TOKENS: usize = 20_000;

/// Splits an expression into words.
pub(super) fn tokens(source: &str) -> Result<Vec<Token>, Error> {
    let mut found = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        if found.len() >= MAX_TOKENS {
            return Err(Error::new(Fault::TooLarge(
                "the expression has too many words".to_owned(),
            )));
        }
        let (token, length) = if first == '"' || first == '\'' {
            quoted(rest, first)?
        } else if first == 'r' && rest[1..].starts_with('/') {
            pattern(rest)?
        } else if first.is_ascii_digit() {
            number(rest)?
        } else if first.is_alphabetic() || first == '_' || first == '$' {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
                .unwrap_or(rest.len());
            (Token::Name(rest[..end].to_owned()), end)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign =
                sign.ok_or_else(|| Error::syntax(format!("{first:?} is not expected in an expression")))?;
            (Token::Sign(sign), sign.len())
        };
        found.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn quoted(rest: &str, quote: char) -> Result<(Token, usize), Error> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, other)) => text.push(other),
                None => break,
            },
            c if c == quote => return Ok((Token::Text(text), at + 1)),
            c => text.push(c),
        }
    }
    Err(Error::syntax(format!(
        "a text that begins with {quote} does not end"
    )))
}

fn pattern(rest: &str) -> Result<(Token, usize), Error> {
    let mut source = String::new();
    let mut characters = rest.char_indices().skip(2);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                source.push(c);
                source.extend(characters.next().map(|(_, c)| c));
            }
            '/' => {
                let after = &rest[at + 1..];
                let end = after.find(|c| !"gimy".contains(c)).unwrap_or(after.len());
                return Ok((Token::Pattern(source, after[..end].to_owned()), at + 1 + end));
            }
            c => source.push(c),
        }
    }
    Err(Error::syntax(
        "a regular expression that begins with r/ does not end",
    ))
}

fn number(rest: &str) -> Result<(Token, usize), Error> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(rest);
    if rest[end..].starts_with('.') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end += 1 + digits(&rest[end + 1..]);
    }
    let text = &rest[..end];
    let number = text
        .parse()
        .map_err(|_| Error::syntax(format!("{text} is not a number")))?;
    Ok((Token::Number(number), end))
}
