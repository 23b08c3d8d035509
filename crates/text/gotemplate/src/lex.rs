//! Cuts a template's text into tokens, by Go's rules: which spaces trim markers take away, what ends a word, and what
//! each mistake is called.

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Error(String),
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The line it starts on, counted from 1.
    pub(crate) line: u32,
}

const LEFT: &str = "{{";
const RIGHT: &str = "}}";

/// All tokens of a text; the last one is the end or an error.
pub(crate) fn lex(input: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        input,
        pos: 0,
        start: 0,
        line: 1,
        start_line: 1,
        parens: 0,
        tokens: Vec::with_capacity(input.len() / 8),
    };
    lexer.text();
    lexer.tokens
}

struct Lexer<'a> {
    input: &'a str,
    pos: usize,
    start: usize,
    line: u32,
    start_line: u32,
    parens: usize,
    tokens: Vec<Token>,
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|&byte| byte == b'\n').count()).unwrap_or(u32::MAX)
}

pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn trims_left(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first() == Some(&b'-') && bytes.get(1).is_some_and(|&byte| is_space(char::from(byte)))
}

fn trims_right(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&byte| is_space(char::from(byte))) && bytes.get(1) == Some(&b'-')
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn ignore(&mut self) {
        self.line += newlines(&self.input[self.start..self.pos]);
        self.begin();
    }

    fn begin(&mut self) {
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn emit(&mut self, kind: Kind) {
        self.tokens.push(Token {
            kind,
            start: self.start,
            end: self.pos,
            line: self.start_line,
        });
        self.begin();
    }

    fn error(&mut self, message: impl Into<String>) {
        self.emit(Kind::Error(message.into()));
    }

    /// Text up to an action, and the actions, until the end.
    fn text(&mut self) {
        loop {
            let Some(length) = memchr::memmem::find(self.rest().as_bytes(), LEFT.as_bytes()) else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.line += newlines(&self.input[self.start..self.pos]);
                    self.emit(Kind::Text);
                }
                self.emit(Kind::Eof);
                return;
            };
            if length > 0 {
                let delimiter = self.pos + length;
                let trims = trims_left(&self.input[delimiter + LEFT.len()..]);
                let text = &self.input[self.start..delimiter];
                let kept = if trims {
                    text.trim_end_matches(is_space).len()
                } else {
                    text.len()
                };
                self.pos = self.start + kept;
                self.line += newlines(&self.input[self.start..self.pos]);
                if kept > 0 {
                    self.emit(Kind::Text);
                }
                self.pos = delimiter;
                self.ignore();
            }
            if !self.left_delim() {
                return;
            }
        }
    }

    /// False after an error.
    fn left_delim(&mut self) -> bool {
        self.pos += LEFT.len();
        let marker = if trims_left(self.rest()) { 2 } else { 0 };
        // The marker is ASCII and a space, so this is a character boundary.
        if self.input[self.pos + marker..].starts_with("/*") {
            self.pos += marker;
            self.ignore();
            return self.comment();
        }
        self.emit(Kind::LeftDelim);
        self.pos += marker;
        self.ignore();
        self.parens = 0;
        self.action()
    }

    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest[2..].starts_with(RIGHT) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn comment(&mut self) -> bool {
        self.pos += 2;
        let Some(length) = self.rest().find("*/") else {
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
            let rest = self.rest();
            self.pos += rest.len() - rest.trim_start_matches(is_space).len();
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

    /// The inside of an action, up to and with its right delimiter. False after an error.
    fn action(&mut self) -> bool {
        loop {
            if let Some(trims) = self.at_right_delim() {
                if self.parens > 0 {
                    self.error("unclosed left paren");
                    return false;
                }
                self.right_delim(trims);
                return true;
            }
            let Some(c) = self.next() else {
                self.error("unclosed action");
                return false;
            };
            let fine = match c {
                c if is_space(c) => {
                    if let Some(trims) = self.space() {
                        self.right_delim(trims);
                        return true;
                    }
                    true
                }
                '=' => self.put(Kind::Assign),
                ':' => match self.next() {
                    Some('=') => self.put(Kind::Declare),
                    _ => {
                        self.error("expected :=");
                        false
                    }
                },
                '|' => self.put(Kind::Pipe),
                '"' => self.quoted('"', Kind::Str, "unterminated quoted string"),
                '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
                '`' => self.raw_quoted(),
                '$' => self.field_or_variable(Kind::Variable),
                '.' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                    self.field_or_variable(Kind::Field)
                }
                '.' | '+' | '-' | '0'..='9' => {
                    self.pos -= 1;
                    self.number()
                }
                c if is_word(c) => {
                    self.pos -= c.len_utf8();
                    self.identifier()
                }
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
                ' '..='~' => self.put(Kind::Char),
                c => {
                    self.error(format!("unrecognized character in action: {}", unicode_name(c)));
                    false
                }
            };
            if !fine {
                return false;
            }
        }
    }

    fn put(&mut self, kind: Kind) -> bool {
        self.emit(kind);
        true
    }

    /// Spaces, of which the first has been read. Gives the trimming of a right delimiter that follows at once.
    fn space(&mut self) -> Option<bool> {
        let mut count = 1;
        while self.peek().is_some_and(is_space) {
            self.next();
            count += 1;
        }
        // The last space may belong to a trim marker.
        let last = &self.input[self.pos - 1..];
        if trims_right(last) && last[2..].starts_with(RIGHT) {
            self.pos -= 1;
            if last.starts_with('\n') {
                self.line -= 1;
            }
            if count == 1 {
                return Some(true);
            }
        }
        self.emit(Kind::Space);
        None
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None => true,
            Some(c) if is_space(c) => true,
            Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with(RIGHT),
        }
    }

    fn bad_character(&mut self) -> bool {
        let c = self.peek().unwrap_or(char::REPLACEMENT_CHARACTER);
        self.error(format!("bad character {}", unicode_name(c)));
        false
    }

    fn skip_word(&mut self) {
        while self.peek().is_some_and(is_word) {
            self.next();
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

    fn quoted(&mut self, mark: char, kind: Kind, unterminated: &str) -> bool {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        self.error(unterminated);
                        return false;
                    }
                }
                None | Some('\n') => {
                    self.error(unterminated);
                    return false;
                }
                Some(c) if c == mark => return self.put(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> bool {
        loop {
            match self.next() {
                None => {
                    self.error("unterminated raw quoted string");
                    return false;
                }
                Some('`') => return self.put(Kind::RawStr),
                Some(_) => {}
            }
        }
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
            let text = crate::text::quote(&self.input.as_bytes()[self.start..self.pos]);
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
