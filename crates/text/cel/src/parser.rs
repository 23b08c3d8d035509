//! A precedence-climbing parser with bounded recursion.
//!
//! Macros are expanded while parsing, as CEL prescribes, so that later passes see one looping construct only.

mod copy;
mod macros;

use std::sync::Arc;

use crate::ast::{Call, Entry, Expr, ExprKind, Literal};
use crate::lexer::{Spanned, Token, tokenize};
use crate::limits::{MAX_EXPRESSION_CODE_POINTS, MAX_NESTING, MAX_TREE_DEPTH};
use crate::source::{CompileError, error_at};

/// Optional macros that a caller may switch on beside Kubernetes' own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParseOptions {
    pub(crate) bindings: bool,
    pub(crate) math: bool,
}

/// The tree and how many ids it uses.
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) ids: u32,
}

/// Parses and expands macros.
pub(crate) fn parse(source: &str, options: ParseOptions) -> Result<Parsed, CompileError> {
    if source.chars().nth(MAX_EXPRESSION_CODE_POINTS).is_some() {
        let size = source.chars().count();
        let message = format!(
            "expression code point size exceeds limit: size: {size}, limit {MAX_EXPRESSION_CODE_POINTS}"
        );
        return Err(CompileError {
            line: 1,
            column: 1,
            message,
            snippet: "".into(),
        });
    }
    let tokens = tokenize(source).map_err(|e| error_at(source, e.position, e.message))?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        nesting: 0,
        frames: 0,
        next_id: 0,
        options,
    };
    let root = parser.expression().and_then(|root| match parser.peek() {
        Token::End => Ok(root),
        token => Err(parser.left_over(token)),
    });
    match root {
        Ok(root) => Ok(Parsed {
            root,
            ids: parser.next_id,
        }),
        Err(error) => Err(error_at(source, error.position, error.message)),
    }
}

/// A mistake before its line and column are known.
struct ParseError {
    position: u32,
    message: String,
}

type Parse<T> = Result<T, ParseError>;

struct Parser<'t> {
    tokens: &'t [Spanned],
    at: usize,
    nesting: usize,
    frames: usize,
    next_id: u32,
    options: ParseOptions,
}

/// Operators after an operand, by precedence.
fn binary_operator(token: &Token) -> Option<(u8, &'static str)> {
    Some(match token {
        Token::Punct("?") => (0, "_?_:_"),
        Token::Punct("||") => (1, "_||_"),
        Token::Punct("&&") => (2, "_&&_"),
        Token::Punct("<") => (3, "_<_"),
        Token::Punct("<=") => (3, "_<=_"),
        Token::Punct(">=") => (3, "_>=_"),
        Token::Punct(">") => (3, "_>_"),
        Token::Punct("==") => (3, "_==_"),
        Token::Punct("!=") => (3, "_!=_"),
        Token::Ident(name) if &**name == "in" => (3, "@in"),
        Token::Punct("+") => (4, "_+_"),
        Token::Punct("-") => (4, "_-_"),
        Token::Punct("*") => (5, "_*_"),
        Token::Punct("/") => (5, "_/_"),
        Token::Punct("%") => (5, "_%_"),
        _ => return None,
    })
}

/// What may start an expression, as upstream's parser puts it.
const EXPRESSION: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, \
                          IDENTIFIER}";

/// How many nodes a tree may have; macros that copy their arguments could otherwise double it again and again.
const MAX_NODES: u32 = 200_000;

/// How many operands may be open at once; brackets alone take one each, operators of rising precedence more.
const MAX_FRAMES: usize = 2 * MAX_NESTING;

/// Words that may not be identifiers, now or later.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)].token
    }

    fn position(&self) -> u32 {
        self.tokens[self.at.min(self.tokens.len() - 1)].position
    }

    fn bump(&mut self) -> u32 {
        let position = self.position();
        self.at += 1;
        position
    }

    fn eat(&mut self, punct: &str) -> Option<u32> {
        matches!(self.peek(), Token::Punct(p) if *p == punct).then(|| self.bump())
    }

    fn expect(&mut self, punct: &'static str) -> Parse<u32> {
        match self.eat(punct) {
            Some(position) => Ok(position),
            None => Err(ParseError {
                position: self.position(),
                message: format!("Syntax error: missing '{punct}' at '{}'", shown(self.peek())),
            }),
        }
    }

    /// Something follows the expression. ANTLR, whose words these are, forgives one token by leaving it out.
    fn left_over(&self, token: &Token) -> ParseError {
        let single = matches!(
            self.tokens.get(self.at + 1).map(|t| &t.token),
            Some(Token::End) | None
        );
        if !single {
            return self.unexpected(token, "<EOF>");
        }
        ParseError {
            position: self.position(),
            message: format!(
                "Syntax error: extraneous input '{}' expecting <EOF>",
                shown(token)
            ),
        }
    }

    fn unexpected(&self, token: &Token, wanted: &str) -> ParseError {
        let found = shown(token);
        let message = format!("Syntax error: mismatched input '{found}' expecting {wanted}");
        ParseError {
            position: self.position(),
            message,
        }
    }

    fn node(&mut self, position: u32, kind: ExprKind) -> Parse<Expr> {
        let below = match &kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => 0,
            ExprKind::Select { operand, .. } => operand.depth,
            ExprKind::Call(call) => {
                let args = call.args.iter().map(|a| a.depth).max().unwrap_or(0);
                args.max(call.target.as_ref().map_or(0, |t| t.depth))
            }
            ExprKind::List { elements, .. } => elements.iter().map(|e| e.depth).max().unwrap_or(0),
            ExprKind::Map(entries) => entries
                .iter()
                .map(|e| e.key.depth.max(e.value.depth))
                .max()
                .unwrap_or(0),
            ExprKind::Struct { fields, .. } => fields.iter().map(|f| f.1.depth).max().unwrap_or(0),
            ExprKind::Comprehension(c) => [&c.range, &c.accu_init, &c.condition, &c.step, &c.result]
                .iter()
                .map(|e| e.depth)
                .max()
                .unwrap_or(0),
        };
        if below >= MAX_TREE_DEPTH {
            return Err(too_deep(position));
        }
        if self.next_id >= MAX_NODES {
            return Err(ParseError {
                position,
                message: "expression is too large".into(),
            });
        }
        let id = self.next_id;
        self.next_id += 1;
        Ok(Expr {
            id,
            position,
            depth: below + 1,
            kind,
        })
    }

    fn call(&mut self, position: u32, function: &str, args: Vec<Expr>) -> Parse<Expr> {
        self.node(
            position,
            ExprKind::Call(Call {
                function: function.into(),
                target: None,
                args,
            }),
        )
    }

    fn literal(&mut self, position: u32, literal: Literal) -> Parse<Expr> {
        self.node(position, ExprKind::Literal(literal))
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= MAX_NESTING {
            return Err(too_deep(self.position()));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    fn expression(&mut self) -> Parse<Expr> {
        self.nested(|p| p.binary(0))
    }

    /// Precedence climbing from the ternary (0) to multiplication (5). Every call takes stack, so every call counts.
    fn binary(&mut self, minimum: u8) -> Parse<Expr> {
        if self.frames >= MAX_FRAMES {
            return Err(too_deep(self.position()));
        }
        self.frames += 1;
        let mut left = self.unary()?;
        while let Some((precedence, function)) = binary_operator(self.peek()) {
            if precedence < minimum {
                break;
            }
            left = self.operation(left, precedence, function)?;
        }
        self.frames -= 1;
        Ok(left)
    }

    fn operation(&mut self, left: Expr, precedence: u8, function: &'static str) -> Parse<Expr> {
        let position = self.bump();
        let mut args = vec![left];
        if function == "_?_:_" {
            args.push(self.binary(1)?);
            self.expect(":")?;
            args.push(self.expression()?);
        } else {
            args.push(self.binary(precedence + 1)?);
        }
        // `a && b && c` becomes one call with three terms: no depth for long chains, and one loop at run time.
        while precedence <= 2
            && matches!(binary_operator(self.peek()), Some((1..=2, next)) if next == function)
        {
            self.bump();
            args.push(self.binary(precedence + 1)?);
        }
        self.call(position, function, args)
    }

    fn unary(&mut self) -> Parse<Expr> {
        for (punct, function) in [("!", "!_"), ("-", "-_")] {
            let Some(position) = self.eat(punct) else { continue };
            let mut count = 1;
            // A minus before a number belongs to the number, or i64::MIN could not be written.
            let number = |p: &Self| punct == "-" && matches!(p.peek(), Token::Int(_) | Token::Double(_));
            if number(self) {
                self.at -= 1;
                return self.member();
            }
            while self.eat(punct).is_some() {
                if number(self) {
                    self.at -= 1;
                    break;
                }
                count += 1;
            }
            let operand = self.member()?;
            // Pairs cancel out, as upstream has it.
            return if count % 2 == 0 {
                Ok(operand)
            } else {
                self.call(position, function, vec![operand])
            };
        }
        self.member()
    }

    /// Frames of the recursion are kept small: this and `primary` only choose, the work is done elsewhere.
    fn member(&mut self) -> Parse<Expr> {
        let mut operand = self.primary()?;
        loop {
            operand = match self.peek() {
                Token::Punct(".") => self.selection(operand)?,
                Token::Punct("[") => self.index(operand)?,
                Token::Punct("{") if is_struct_name(&operand) => self.structure(&operand)?,
                _ => return Ok(operand),
            };
        }
    }

    fn selection(&mut self, operand: Expr) -> Parse<Expr> {
        let position = self.bump();
        let optional = self.eat("?").is_some();
        let (field, plain) = match self.peek() {
            Token::Ident(name) if &**name != "in" && !is_literal_word(name) => (name.clone(), true),
            Token::QuotedIdent(name) => (name.clone(), false),
            token => {
                let message = format!("Syntax error: no viable alternative at input '.{}'", shown(token));
                return Err(ParseError {
                    position: self.position(),
                    message,
                });
            }
        };
        self.bump();
        if optional {
            let name = self.literal(position, Literal::String(field))?;
            return self.call(position, "_?._", vec![operand, name]);
        }
        if plain && let Some(open) = self.eat("(") {
            let args = self.arguments(")")?;
            return self.member_call(open, field, operand, args);
        }
        self.node(
            position,
            ExprKind::Select {
                operand: Box::new(operand),
                field,
                test: false,
            },
        )
    }

    fn index(&mut self, operand: Expr) -> Parse<Expr> {
        let position = self.bump();
        let function = if self.eat("?").is_some() { "_[?_]" } else { "_[_]" };
        let index = self.expression()?;
        self.expect("]")?;
        self.call(position, function, vec![operand, index])
    }

    fn arguments(&mut self, close: &'static str) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.eat(close).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.eat(",").is_none() {
                self.expect(close)?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        match self.peek() {
            Token::Punct("(") => self.parenthesized(),
            Token::Punct("[") => self.list(),
            Token::Punct("{") => self.map(),
            Token::Punct(".") => {
                self.bump();
                match self.peek() {
                    Token::Ident(name) => self.identifier(name, "."),
                    token => Err(self.unexpected(token, "IDENTIFIER")),
                }
            }
            Token::Ident(name) if !is_literal_word(name) => self.identifier(name, ""),
            _ => self.scalar(),
        }
    }

    fn parenthesized(&mut self) -> Parse<Expr> {
        self.bump();
        let inner = self.expression()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn scalar(&mut self) -> Parse<Expr> {
        let position = self.position();
        let negative = self.eat("-").is_some();
        let token = self.peek();
        let literal = match token {
            Token::Int(value) => {
                let value = if negative {
                    0i64.checked_sub_unsigned(*value)
                } else {
                    i64::try_from(*value).ok()
                };
                let invalid = || ParseError {
                    position,
                    message: "invalid int literal".into(),
                };
                Literal::Int(value.ok_or_else(invalid)?)
            }
            Token::Double(value) => Literal::Double(if negative { -value } else { *value }),
            _ if negative => return Err(self.unexpected(token, EXPRESSION)),
            Token::Uint(value) => Literal::Uint(*value),
            Token::String(text) => Literal::String(text.clone()),
            Token::Bytes(bytes) => Literal::Bytes(bytes.clone()),
            Token::Ident(name) if &**name == "null" => Literal::Null,
            Token::Ident(name) if is_literal_word(name) => Literal::Bool(&**name == "true"),
            token => return Err(self.unexpected(token, EXPRESSION)),
        };
        self.bump();
        self.literal(position, literal)
    }

    fn identifier(&mut self, name: &Arc<str>, prefix: &str) -> Parse<Expr> {
        let position = self.bump();
        if &**name == "in" || is_literal_word(name) {
            self.at -= 1;
            return Err(self.unexpected(self.peek(), "IDENTIFIER"));
        }
        if RESERVED.contains(&&**name) {
            return Err(ParseError {
                position,
                message: format!("reserved identifier: {name}"),
            });
        }
        let name: Arc<str> = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}{name}").into()
        };
        if let Some(open) = self.eat("(") {
            let args = self.arguments(")")?;
            return self.global_call(open, name, args);
        }
        self.node(position, ExprKind::Ident(name))
    }

    fn list(&mut self) -> Parse<Expr> {
        let position = self.bump();
        let (mut elements, mut optional) = (Vec::new(), Vec::new());
        while self.eat("]").is_none() {
            optional.push(self.eat("?").is_some());
            elements.push(self.expression()?);
            if self.eat(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        if !optional.contains(&true) {
            optional.clear();
        }
        self.node(position, ExprKind::List { elements, optional })
    }

    fn map(&mut self) -> Parse<Expr> {
        let position = self.bump();
        let mut entries = Vec::new();
        while self.eat("}").is_none() {
            let optional = self.eat("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry { key, value, optional });
            if self.eat(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(position, ExprKind::Map(entries))
    }

    fn structure(&mut self, name: &Expr) -> Parse<Expr> {
        let position = self.bump();
        let type_name: Arc<str> = name.qualified_name().unwrap_or_default().into();
        let mut fields = Vec::new();
        while self.eat("}").is_none() {
            let optional = self.eat("?").is_some();
            let (Token::Ident(field) | Token::QuotedIdent(field)) = self.peek() else {
                return Err(self.unexpected(self.peek(), "IDENTIFIER"));
            };
            self.bump();
            self.expect(":")?;
            let value = self.expression()?;
            fields.push((field.clone(), value, optional));
            if self.eat(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(position, ExprKind::Struct { type_name, fields })
    }
}

/// A token as errors show it.
fn shown(token: &Token) -> String {
    match token {
        Token::End => "<EOF>".to_owned(),
        Token::Ident(name) => name.to_string(),
        Token::QuotedIdent(name) => format!("`{name}`"),
        Token::Int(value) => value.to_string(),
        Token::Uint(value) => format!("{value}u"),
        Token::Double(value) => value.to_string(),
        Token::String(text) => format!("\"{text}\""),
        Token::Bytes(_) => "bytes".to_owned(),
        Token::Punct(punct) => (*punct).to_owned(),
    }
}

fn is_literal_word(name: &str) -> bool {
    matches!(name, "true" | "false" | "null")
}

/// Only `a.b.C { ... }` builds an object; anything else before a brace is a mistake reported by the caller.
fn is_struct_name(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Ident(_) => true,
        ExprKind::Select {
            operand, test: false, ..
        } => is_struct_name(operand),
        _ => false,
    }
}

fn too_deep(position: u32) -> ParseError {
    ParseError {
        position,
        message: format!("expression recursion limit exceeded: {MAX_NESTING}"),
    }
}
