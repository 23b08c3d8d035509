//! Cuts a template's text into tokens, by Go's rules: which spaces trim markers take away, what ends a word, and what
//! each mistake is called.

use memchr::memmem::Finder;

use crate::ast::Span;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What is wrong, the lexer says.
    Error,
    Eof,
    Text,
    LeftDelim,
    RightDelim,
    Space,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    Char,
    CharConstant,
    Complex,
    Number,
    Str,
    RawStr,
    Bool,
    Dot,
    Nil,
    Field,
    Variable,
    Identifier,
    Keyword(Keyword),
}

/// Words with a meaning of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";

/// The text, cut up to somewhere. Tokens are made an action at a time: those of a whole text would take several times the
/// memory of the text.
pub(crate) struct Lexer<'t> {
    input: &'t str,
    bytes: &'t [u8],
    pos: usize,
    start: usize,
    parens: usize,
    left: Finder<'static>,
    tokens: Vec<Token>,
    /// What the last token is wrong about, if it is an error.
    message: String,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Which bytes are letters, digits and underscores.
static WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize;
        byte += 1;
    }
    table
};

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn trims_left(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'-') && bytes.get(1).is_some_and(|&byte| is_space(byte))
}

fn trims_right(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|&byte| is_space(byte)) && bytes.get(1) == Some(&b'-')
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(input: &'t str) -> Self {
        Self {
            input,
            bytes: input.as_bytes(),
            pos: 0,
            start: 0,
            parens: 0,
            left: Finder::new(LEFT),
            tokens: Vec::new(),
            message: String::new(),
        }
    }

    /// The tokens at hand. The last one of a text is its end or an error.
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// What is wrong where the last token is an error.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn rest(&self) -> &'t [u8] {
        &self.bytes[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        match self.bytes.get(self.pos) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            Some(_) => self.input[self.pos..].chars().next(),
            None => None,
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// What was read so far is no part of a token.
    fn ignore(&mut self) {
        self.start = self.pos;
    }

    fn emit(&mut self, kind: Kind) {
        self.tokens.push(Token {
            kind,
            span: Span::new(self.start, self.pos),
        });
        self.start = self.pos;
    }

    fn error(&mut self, message: impl Into<String>) {
        self.message = message.into();
        self.emit(Kind::Error);
    }

    /// Puts the tokens up to the end of the next action in the place of those at hand.
    #[inline(never)]
    pub(crate) fn advance(&mut self) {
        self.tokens.clear();
        loop {
            let Some(length) = self.left.find(self.rest()) else {
                self.pos = self.bytes.len();
                if self.pos > self.start {
                    self.emit(Kind::Text);
                }
                self.emit(Kind::Eof);
                return;
            };
            if length > 0 {
                let delimiter = self.pos + length;
                let trims = trims_left(&self.bytes[delimiter + LEFT.len()..]);
                let text = &self.bytes[self.start..delimiter];
                let kept = match trims {
                    true => text
                        .iter()
                        .rposition(|&byte| !is_space(byte))
                        .map_or(0, |last| last + 1),
                    false => text.len(),
                };
                self.pos = self.start + kept;
                if kept > 0 {
                    self.emit(Kind::Text);
                }
                self.pos = delimiter;
                self.ignore();
            }
            if self.left_delim() {
                return;
            }
        }
    }

    /// False after a comment, which leaves no token.
    fn left_delim(&mut self) -> bool {
        self.pos += LEFT.len();
        let marker = if trims_left(self.rest()) { 2 } else { 0 };
        if self.rest()[marker..].starts_with(b"/*") {
            self.pos += marker;
            self.ignore();
            return !self.comment();
        }
        self.emit(Kind::LeftDelim);
        self.pos += marker;
        self.ignore();
        self.parens = 0;
        self.action();
        true
    }

    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest[2..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    /// False after an error.
    fn comment(&mut self) -> bool {
        self.pos += 2;
        let Some(length) = memchr::memmem::find(self.rest(), b"*/") else {
            self.error("unclosed comment");
            return false;
        };
        self.pos += length + 2;
        let Some(trims) = self.at_right_delim() else {
            self.error("comment ends before closing delimiter");
            return false;
        };
        self.pos += RIGHT.len() + if trims { 2 } else { 0 };
        self.skip_trimmed(trims);
        self.ignore();
        true
    }

    fn skip_trimmed(&mut self, trims: bool) {
        if trims {
            self.skip_spaces();
        }
    }

    fn skip_spaces(&mut self) {
        while self.bytes.get(self.pos).is_some_and(|&byte| is_space(byte)) {
            self.pos += 1;
        }
    }

    fn right_delim(&mut self, trims: bool) {
        if trims {
            self.pos += 2;
            self.ignore();
        }
        self.pos += RIGHT.len();
        self.emit(Kind::RightDelim);
        self.skip_trimmed(trims);
        self.ignore();
    }

    /// The inside of an action, up to and with its right delimiter or an error.
    fn action(&mut self) {
        loop {
            let Some(&byte) = self.bytes.get(self.pos) else {
                return self.error("unclosed action");
            };
            let fine = match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.skip_spaces();
                    // The last one may belong to a trim marker.
                    if self.rest().starts_with(b"-}}") {
                        self.pos -= 1;
                        if self.pos > self.start {
                            self.emit(Kind::Space);
                        }
                        return self.end_action(true);
                    }
                    self.put(Kind::Space)
                }
                b'}' if self.rest().starts_with(RIGHT) => return self.end_action(false),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.identifier(),
                b'.' if !self.bytes.get(self.pos + 1).is_some_and(u8::is_ascii_digit) => {
                    self.pos += 1;
                    self.field_or_variable(Kind::Field)
                }
                b'$' => {
                    self.pos += 1;
                    self.field_or_variable(Kind::Variable)
                }
                b'.' | b'+' | b'-' | b'0'..=b'9' => self.number(),
                _ => self.mark(),
            };
            if !fine {
                return;
            }
        }
    }

    fn end_action(&mut self, trims: bool) {
        match self.parens {
            0 => self.right_delim(trims),
            _ => self.error("unclosed left paren"),
        }
    }

    /// A character that is neither a space nor part of a word, a number or a field; or one beyond ASCII.
    fn mark(&mut self) -> bool {
        match self.next().unwrap_or_default() {
            '=' => self.put(Kind::Assign),
            ':' => match self.next() {
                Some('=') => self.put(Kind::Declare),
                _ => {
                    self.error("expected :=");
                    false
                }
            },
            '|' => self.put(Kind::Pipe),
            '"' => self.quoted(b'"', Kind::Str, "unterminated quoted string"),
            '\'' => self.quoted(b'\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_quoted(),
            '(' => {
                self.parens += 1;
                self.put(Kind::LeftParen)
            }
            ')' => match self.parens.checked_sub(1) {
                Some(rest) => {
                    self.parens = rest;
                    self.put(Kind::RightParen)
                }
                None => {
                    self.error("unexpected right paren");
                    false
                }
            },
            c if is_word(c) => {
                self.pos -= c.len_utf8();
                self.identifier()
            }
            ' '..='~' => self.put(Kind::Char),
            c => {
                self.error(format!("unrecognized character in action: {}", unicode_name(c)));
                false
            }
        }
    }

    fn put(&mut self, kind: Kind) -> bool {
        self.emit(kind);
        true
    }

    fn at_terminator(&self) -> bool {
        match self.bytes.get(self.pos) {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'.' | b',' | b'|' | b':' | b')' | b'(') => true,
            Some(b'}') => self.rest().starts_with(RIGHT),
            Some(_) => false,
        }
    }

    fn bad_character(&mut self) -> bool {
        let c = self.peek().unwrap_or(char::REPLACEMENT_CHARACTER);
        self.error(format!("bad character {}", unicode_name(c)));
        false
    }

    fn skip_word(&mut self) {
        loop {
            let rest = self.rest();
            self.pos += rest
                .iter()
                .position(|&byte| !WORD[usize::from(byte)])
                .unwrap_or(rest.len());
            match self.peek() {
                Some(c) if !c.is_ascii() && is_word(c) => self.pos += c.len_utf8(),
                _ => return,
            }
        }
    }

    fn identifier(&mut self) -> bool {
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        let kind = match &self.input[self.start..self.pos] {
            "block" => Kind::Keyword(Keyword::Block),
            "break" => Kind::Keyword(Keyword::Break),
            "continue" => Kind::Keyword(Keyword::Continue),
            "define" => Kind::Keyword(Keyword::Define),
            "else" => Kind::Keyword(Keyword::Else),
            "end" => Kind::Keyword(Keyword::End),
            "if" => Kind::Keyword(Keyword::If),
            "range" => Kind::Keyword(Keyword::Range),
            "template" => Kind::Keyword(Keyword::Template),
            "with" => Kind::Keyword(Keyword::With),
            "nil" => Kind::Nil,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.put(kind)
    }

    fn field_or_variable(&mut self, kind: Kind) -> bool {
        if self.at_terminator() {
            return match kind {
                Kind::Variable => self.put(kind),
                _ => self.put(Kind::Dot),
            };
        }
        self.skip_word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.put(kind)
    }

    /// A string that ends on its line, of which the opening mark has been read.
    fn quoted(&mut self, mark: u8, kind: Kind, unterminated: &str) -> bool {
        // None of the bytes that matter here is part of a longer character.
        while let Some(&byte) = self.bytes.get(self.pos) {
            match byte {
                b'\n' => break,
                b'\\' if matches!(self.bytes.get(self.pos + 1), None | Some(b'\n')) => break,
                b'\\' => self.pos += 2,
                byte => {
                    self.pos += 1;
                    if byte == mark {
                        return self.put(kind);
                    }
                }
            }
        }
        self.error(unterminated);
        false
    }

    fn raw_quoted(&mut self) -> bool {
        let Some(length) = memchr::memchr(b'`', self.rest()) else {
            self.pos = self.bytes.len();
            self.error("unterminated raw quoted string");
            return false;
        };
        self.pos += length + 1;
        self.put(Kind::RawStr)
    }

    fn accept(&mut self, valid: &str) -> bool {
        let accepted = self.peek().is_some_and(|c| valid.contains(c));
        if accepted {
            self.pos += 1;
        }
        accepted
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn number(&mut self) -> bool {
        let fine = self.scan_number();
        let complex = fine && matches!(self.peek(), Some('+' | '-'));
        if !fine || (complex && !(self.scan_number() && self.input[..self.pos].ends_with('i'))) {
            let text = crate::text::quote(&self.bytes[self.start..self.pos]);
            self.error(format!("bad number syntax: {text}"));
            return false;
        }
        self.put(if complex { Kind::Complex } else { Kind::Number })
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => self.accept("eE"),
            23 => self.accept("pP"),
            _ => false,
        };
        if exponent {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_word) {
            self.next();
            return false;
        }
        true
    }
}

/// A character as Go's `%#U` prints it.
fn unicode_name(c: char) -> String {
    let code = u32::from(c);
    match crate::text::is_print(c) {
        true => format!("U+{code:04X} '{c}'"),
        false => format!("U+{code:04X}"),
    }
}
