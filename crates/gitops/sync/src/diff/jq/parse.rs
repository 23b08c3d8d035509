//! Text to syntax tree, by recursive descent.

use serde_json::Value;

/// The deepest nesting of an expression.
const MAX_DEPTH: usize = 64;
/// The longest expression.
const MAX_LENGTH: usize = 4096;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// `.`
    Here,
    /// `..`
    Everything,
    Literal(Value),
    /// `.a`, `.["a"]`, `.[expression]`
    Get(Box<Node>, Box<Node>),
    /// `.[a:b]`
    Slice(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
    /// `.[]`
    Each(Box<Node>),
    /// `?`
    Try(Box<Node>),
    Pipe(Box<Node>, Box<Node>),
    Comma(Box<Node>, Box<Node>),
    /// `//`
    Alternative(Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    /// `[a]`
    Collect(Option<Box<Node>>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Call(&'static str, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Functions and how many arguments they take.
const FUNCTIONS: &[(&str, &[usize])] = &[
    ("all", &[0, 1]),
    ("any", &[0, 1]),
    ("arrays", &[0]),
    ("ascii_downcase", &[0]),
    ("ascii_upcase", &[0]),
    ("booleans", &[0]),
    ("contains", &[1]),
    ("empty", &[0]),
    ("endswith", &[1]),
    ("first", &[0, 1]),
    ("getpath", &[1]),
    ("has", &[1]),
    ("inside", &[1]),
    ("keys", &[0]),
    ("last", &[0, 1]),
    ("length", &[0]),
    ("ltrimstr", &[1]),
    ("map", &[1]),
    ("not", &[0]),
    ("nulls", &[0]),
    ("numbers", &[0]),
    ("objects", &[0]),
    ("recurse", &[0]),
    ("rtrimstr", &[1]),
    ("scalars", &[0]),
    ("select", &[1]),
    ("split", &[1]),
    ("startswith", &[1]),
    ("strings", &[0]),
    ("test", &[1, 2]),
    ("to_entries", &[0]),
    ("tonumber", &[0]),
    ("tostring", &[0]),
    ("type", &[0]),
    ("values", &[0]),
];

type Parsed<T> = Result<T, (usize, String)>;

pub(super) fn parse(text: &str) -> Parsed<Node> {
    if text.len() > MAX_LENGTH {
        return Err((MAX_LENGTH, "longer than 4096 bytes".to_owned()));
    }
    let mut parser = Parser {
        text: text.as_bytes(),
        source: text,
        at: 0,
        depth: 0,
    };
    let node = parser.pipe()?;
    parser.space();
    match parser.at == parser.text.len() {
        true => Ok(node),
        false => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    source: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn pipe(&mut self) -> Parsed<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((self.at, "nested too deeply".to_owned()));
        }
        let mut stages = vec![self.comma()?];
        while self.take("|") {
            stages.push(self.comma()?);
        }
        self.depth -= 1;
        Ok(chain(stages, Node::Pipe))
    }

    fn comma(&mut self) -> Parsed<Node> {
        let mut parts = vec![self.alternative()?];
        while self.take(",") {
            parts.push(self.alternative()?);
        }
        Ok(chain(parts, Node::Comma))
    }

    fn alternative(&mut self) -> Parsed<Node> {
        let mut parts = vec![self.or()?];
        while self.take("//") {
            parts.push(self.or()?);
        }
        Ok(chain(parts, Node::Alternative))
    }

    fn or(&mut self) -> Parsed<Node> {
        let mut parts = vec![self.and()?];
        while self.take_word("or") {
            parts.push(self.and()?);
        }
        Ok(chain(parts, Node::Or))
    }

    fn and(&mut self) -> Parsed<Node> {
        let mut parts = vec![self.comparison()?];
        while self.take_word("and") {
            parts.push(self.comparison()?);
        }
        Ok(chain(parts, Node::And))
    }

    fn comparison(&mut self) -> Parsed<Node> {
        const OPERATORS: &[(&str, Comparison)] = &[
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let left = self.postfix()?;
        for (text, operator) in OPERATORS {
            if self.take(text) {
                let right = self.postfix()?;
                return Ok(Node::Compare(*operator, left.into(), right.into()));
            }
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Parsed<Node> {
        let mut node = self.primary()?;
        loop {
            if self.take("?") {
                node = Node::Try(node.into());
            } else if self.peek() == Some(b'[') {
                node = self.brackets(node)?;
            } else if self.peek() == Some(b'.') && self.text.get(self.at + 1) != Some(&b'.') {
                self.at += 1;
                node = self.field(node)?;
            } else {
                return Ok(node);
            }
        }
    }

    /// What may follow a dot.
    fn field(&mut self, of: Node) -> Parsed<Node> {
        match self.text.get(self.at) {
            Some(b'"') => {
                let name = self.string()?;
                Ok(Node::Get(of.into(), Node::Literal(name.into()).into()))
            }
            Some(b'[') => self.brackets(of),
            Some(c) if c.is_ascii_alphabetic() || *c == b'_' => {
                let name = Node::Literal(self.word().into());
                Ok(Node::Get(of.into(), name.into()))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn brackets(&mut self, of: Node) -> Parsed<Node> {
        self.expect("[")?;
        if self.take("]") {
            return Ok(Node::Each(of.into()));
        }
        if self.take(":") {
            let end = self.pipe()?;
            self.expect("]")?;
            return Ok(Node::Slice(of.into(), None, Some(end.into())));
        }
        let first = self.pipe()?;
        if self.take(":") {
            if self.take("]") {
                return Ok(Node::Slice(of.into(), Some(first.into()), None));
            }
            let end = self.pipe()?;
            self.expect("]")?;
            return Ok(Node::Slice(of.into(), Some(first.into()), Some(end.into())));
        }
        self.expect("]")?;
        Ok(Node::Get(of.into(), first.into()))
    }

    fn primary(&mut self) -> Parsed<Node> {
        match self.peek() {
            Some(b'.') if self.take("..") => Ok(Node::Everything),
            Some(b'.') => {
                self.at += 1;
                match self.text.get(self.at) {
                    Some(c) if *c == b'"' || *c == b'_' || c.is_ascii_alphabetic() => self.field(Node::Here),
                    _ => Ok(Node::Here),
                }
            }
            Some(b'"') => Ok(Node::Literal(self.string()?.into())),
            Some(b'(') => {
                self.at += 1;
                let node = self.pipe()?;
                self.expect(")")?;
                Ok(node)
            }
            Some(b'[') => {
                self.at += 1;
                if self.take("]") {
                    return Ok(Node::Collect(None));
                }
                let node = self.pipe()?;
                self.expect("]")?;
                Ok(Node::Collect(Some(node.into())))
            }
            Some(c) if c.is_ascii_digit() || c == b'-' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == b'_' => self.word_or_call(),
            _ => Err(self.unexpected()),
        }
    }

    fn word_or_call(&mut self) -> Parsed<Node> {
        let start = self.at;
        let word = self.word();
        match word.as_str() {
            "true" => return Ok(Node::Literal(true.into())),
            "false" => return Ok(Node::Literal(false.into())),
            "null" => return Ok(Node::Literal(Value::Null)),
            "if" => return self.condition(),
            _ => {}
        }
        let mut arguments = Vec::new();
        if self.text.get(self.at) == Some(&b'(') {
            self.at += 1;
            arguments.push(self.pipe()?);
            while self.take(";") {
                arguments.push(self.pipe()?);
            }
            self.expect(")")?;
        }
        let known = FUNCTIONS.iter().find(|(name, _)| *name == word);
        match known {
            Some((name, counts)) if counts.contains(&arguments.len()) => Ok(Node::Call(name, arguments)),
            Some(_) => Err((
                start,
                format!("{word} does not take {} arguments", arguments.len()),
            )),
            None => Err((
                start,
                format!(
                    "{word} is not understood here; a path expression may walk, select, compare and test"
                ),
            )),
        }
    }

    fn condition(&mut self) -> Parsed<Node> {
        let condition = self.pipe()?;
        if !self.take_word("then") {
            return Err(self.unexpected());
        }
        let yes = self.pipe()?;
        let no = match (self.take_word("elif"), self.take_word("else")) {
            (true, _) => return Ok(Node::If(condition.into(), yes.into(), self.condition()?.into())),
            (false, true) => self.pipe()?,
            (false, false) => Node::Here,
        };
        if !self.take_word("end") {
            return Err(self.unexpected());
        }
        Ok(Node::If(condition.into(), yes.into(), no.into()))
    }

    fn number(&mut self) -> Parsed<Node> {
        let start = self.at;
        self.at += usize::from(self.text[self.at] == b'-');
        while self
            .text
            .get(self.at)
            .is_some_and(|c| c.is_ascii_digit() || b".eE+-".contains(c))
        {
            self.at += 1;
        }
        match serde_json::from_str::<Value>(&self.source[start..self.at]) {
            Ok(number) => Ok(Node::Literal(number)),
            Err(_) => Err((start, "no number".to_owned())),
        }
    }

    /// A string, which is written as in JSON; interpolation is not.
    fn string(&mut self) -> Parsed<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                None => return Err((start, "the string does not end".to_owned())),
                Some(b'\\') => self.at += 2,
                Some(b'"') => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let text = self.source.get(start..self.at).unwrap_or_default();
        serde_json::from_str(text).map_err(|_| {
            (
                start,
                "the string has an escape that is not understood".to_owned(),
            )
        })
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_')
        {
            self.at += 1;
        }
        self.source[start..self.at].to_owned()
    }

    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.get(self.at).copied()
    }

    fn take(&mut self, text: &str) -> bool {
        self.space();
        let rest = &self.text[self.at..];
        // `|` is not `|=`, and `/` alone is not `//`.
        let taken = rest.starts_with(text.as_bytes()) && !(text == "|" && rest.get(1) == Some(&b'='));
        self.at += if taken { text.len() } else { 0 };
        taken
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.space();
        let rest = &self.text[self.at..];
        let ends = rest
            .get(word.len())
            .is_none_or(|c| !c.is_ascii_alphanumeric() && *c != b'_');
        let taken = rest.starts_with(word.as_bytes()) && ends;
        self.at += if taken { word.len() } else { 0 };
        taken
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        match self.take(text) {
            true => Ok(()),
            false => Err((self.at, format!("expected {text:?}"))),
        }
    }

    fn unexpected(&mut self) -> (usize, String) {
        let reason = match self.source.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => format!("{c:?} is not understood here"),
            None => "the expression ends too early".to_owned(),
        };
        (self.at, reason)
    }
}

/// Joins parts, the last ones first.
fn chain(mut parts: Vec<Node>, join: fn(Box<Node>, Box<Node>) -> Node) -> Node {
    let mut node = parts.pop().unwrap_or(Node::Here);
    while let Some(before) = parts.pop() {
        node = join(before.into(), node.into());
    }
    node
}
