//! Splits an expression into tokens, with string escapes and numbers already decoded.

use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Ident(Arc<str>),
    /// A `` `quoted` `` field name, allowed only after a dot.
    QuotedIdent(Arc<str>),
    Int(u64),
    /// Kept apart from `Int` because a hexadecimal literal prints differently in errors; value as for `Int`.
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    Punct(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub(crate) token: Token,
    /// Offset in code points.
    pub(crate) position: u32,
}

/// A lexical mistake: where and what.
pub(crate) struct LexError {
    pub(crate) position: u32,
    pub(crate) message: String,
}

const PUNCTUATION: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}",
];

struct Lexer<'s> {
    rest: &'s str,
    position: u32,
}

/// Turns the source into tokens, the last of which is `End`.
pub(crate) fn tokenize(source: &str) -> Result<Vec<Spanned>, LexError> {
    let mut lexer = Lexer {
        rest: source,
        position: 0,
    };
    let mut tokens = Vec::with_capacity(source.len() / 3 + 1);
    loop {
        lexer.skip_blank();
        let position = lexer.position;
        let token = lexer.next_token()?;
        let end = token == Token::End;
        tokens.push(Spanned { token, position });
        if end {
            return Ok(tokens);
        }
    }
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        self.position += 1;
        Some(character)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(prefix) else {
            return false;
        };
        self.rest = rest;
        self.position += prefix.chars().count() as u32;
        true
    }

    fn error<T>(&self, position: u32, message: impl Into<String>) -> Result<T, LexError> {
        Err(LexError {
            position,
            message: message.into(),
        })
    }

    fn skip_blank(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r' | '\x0c') => {
                    self.bump();
                }
                Some('/') if self.rest.starts_with("//") => {
                    while !matches!(self.peek(), None | Some('\n')) {
                        self.bump();
                    }
                }
                _ => return,
            }
        }
    }

    fn next_token(&mut self) -> Result<Token, LexError> {
        let start = self.position;
        let Some(first) = self.peek() else {
            return Ok(Token::End);
        };
        if let Some((raw, bytes, skip)) = string_prefix(self.rest) {
            for _ in 0..skip {
                self.bump();
            }
            return self.string(raw, bytes, start);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let length = self
                .rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .count();
            let name: Arc<str> = self.rest[..length].into();
            self.rest = &self.rest[length..];
            self.position += length as u32;
            return Ok(Token::Ident(name));
        }
        if first.is_ascii_digit()
            || (first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            return self.number(start);
        }
        if first == '`' {
            return self.quoted_ident(start);
        }
        for punct in PUNCTUATION {
            if self.eat(punct) {
                return Ok(Token::Punct(punct));
            }
        }
        // Where a longer operator could have begun, ANTLR's lexer has read on, and shows what it read.
        let length = if matches!(first, '=' | '&' | '|') { 2 } else { 1 };
        let seen: String = self.rest.chars().take(length).collect();
        self.error(
            start,
            format!("Syntax error: token recognition error at: '{seen}'"),
        )
    }

    fn quoted_ident(&mut self, start: u32) -> Result<Token, LexError> {
        self.bump();
        let length = self
            .rest
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' '))
            .count();
        let name = &self.rest[..length];
        if length == 0 || !self.rest[length..].starts_with('`') {
            return self.error(start, "Syntax error: token recognition error at: '`'");
        }
        self.rest = &self.rest[length + 1..];
        self.position += length as u32 + 1;
        Ok(Token::QuotedIdent(name.into()))
    }

    fn number(&mut self, start: u32) -> Result<Token, LexError> {
        if self.rest.starts_with("0x") || self.rest.starts_with("0X") {
            let digits = self.rest[2..].bytes().take_while(u8::is_ascii_hexdigit).count();
            let text = &self.rest[2..2 + digits];
            let value = u64::from_str_radix(text, 16);
            self.advance(2 + digits);
            let unsigned = self.eat("u") || self.eat("U");
            return match value {
                Ok(value) if unsigned => Ok(Token::Uint(value)),
                Ok(value) => Ok(Token::Int(value)),
                Err(_) => self.error(
                    start,
                    if unsigned {
                        "invalid uint literal"
                    } else {
                        "invalid int literal"
                    },
                ),
            };
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut length = digits(self.rest);
        let mut double = false;
        if self.rest[length..].starts_with('.') && digits(&self.rest[length + 1..]) > 0 {
            length += 1 + digits(&self.rest[length + 1..]);
            double = true;
        }
        let exponent = &self.rest[length..];
        if exponent.starts_with(['e', 'E']) {
            let sign = usize::from(exponent[1..].starts_with(['+', '-']));
            let count = digits(&exponent[1 + sign..]);
            if count > 0 {
                length += 1 + sign + count;
                double = true;
            }
        }
        let text = self.rest[..length].to_owned();
        self.advance(length);
        if double {
            return match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Token::Double(value)),
                _ => self.error(start, "invalid double literal"),
            };
        }
        let unsigned = self.eat("u") || self.eat("U");
        match text.parse::<u64>() {
            Ok(value) if unsigned => Ok(Token::Uint(value)),
            Ok(value) => Ok(Token::Int(value)),
            Err(_) => self.error(
                start,
                if unsigned {
                    "invalid uint literal"
                } else {
                    "invalid int literal"
                },
            ),
        }
    }

    fn advance(&mut self, ascii: usize) {
        self.rest = &self.rest[ascii..];
        self.position += ascii as u32;
    }

    fn string(&mut self, raw: bool, bytes: bool, start: u32) -> Result<Token, LexError> {
        let delimiter = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|d| self.rest.starts_with(d))
            .unwrap_or("\"");
        let source = self.rest;
        self.eat(delimiter);
        let mut out = Vec::new();
        loop {
            if self.eat(delimiter) {
                break;
            }
            let at = self.position;
            match self.bump() {
                None => {
                    return self.unterminated(source, start);
                }
                Some('\n' | '\r') if delimiter.len() == 1 => {
                    return self.unterminated(source, start);
                }
                Some('\r') => {
                    // Line ends are normalised in triple-quoted strings.
                    self.eat("\n");
                    out.push(b'\n');
                }
                Some('\\') if !raw => self.escape(bytes, at, &mut out)?,
                Some(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if bytes {
            return Ok(Token::Bytes(out.into()));
        }
        match String::from_utf8(out) {
            Ok(text) => Ok(Token::String(text.into())),
            Err(_) => self.error(start, "invalid string literal"),
        }
    }

    fn unterminated<T>(&self, source: &str, start: u32) -> Result<T, LexError> {
        let seen: String = source
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(64)
            .collect();
        self.error(
            start,
            format!("Syntax error: token recognition error at: '{seen}'"),
        )
    }

    fn escape(&mut self, bytes: bool, at: u32, out: &mut Vec<u8>) -> Result<(), LexError> {
        let simple = match self.bump() {
            Some('a') => 0x07,
            Some('b') => 0x08,
            Some('f') => 0x0c,
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('v') => 0x0b,
            Some(c @ ('\\' | '\'' | '"' | '`' | '?')) => c as u8,
            Some('x' | 'X') => return self.code(2, 16, bytes, at, out),
            Some('u') if !bytes => return self.code(4, 16, bytes, at, out),
            Some('U') if !bytes => return self.code(8, 16, bytes, at, out),
            Some(c @ '0'..='3') => {
                // Octal escapes have exactly three digits; the first is already consumed.
                self.rest = {
                    let mut rest = self.rest.chars();
                    let (Some(b @ '0'..='7'), Some(d @ '0'..='7')) = (rest.next(), rest.next()) else {
                        return self.error(at, "unable to unescape octal sequence in string");
                    };
                    let value = (c as u32 - 48) * 64 + (b as u32 - 48) * 8 + (d as u32 - 48);
                    push_code(value, bytes, out);
                    rest.as_str()
                };
                self.position += 2;
                return Ok(());
            }
            _ => return self.error(at, "unable to unescape string"),
        };
        out.push(simple);
        Ok(())
    }

    fn code(
        &mut self,
        digits: usize,
        radix: u32,
        bytes: bool,
        at: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), LexError> {
        let Some(value) = self
            .rest
            .get(..digits)
            .and_then(|text| u32::from_str_radix(text, radix).ok())
        else {
            return self.error(at, "unable to unescape string");
        };
        if char::from_u32(value).is_none() {
            return self.error(at, "invalid unicode code point");
        }
        self.advance(digits);
        push_code(value, bytes, out);
        Ok(())
    }
}

fn push_code(value: u32, bytes: bool, out: &mut Vec<u8>) {
    if bytes {
        out.push(value as u8);
    } else if let Some(character) = char::from_u32(value) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// If a string literal starts here: whether it is raw, whether it is bytes, and how long its prefix is.
fn string_prefix(text: &str) -> Option<(bool, bool, usize)> {
    let mut raw = false;
    let mut bytes = false;
    for (index, byte) in text.bytes().take(3).enumerate() {
        match byte {
            b'"' | b'\'' => return Some((raw, bytes, index)),
            b'r' | b'R' if !raw => raw = true,
            b'b' | b'B' if !bytes && !raw => bytes = true,
            _ => return None,
        }
    }
    None
}
