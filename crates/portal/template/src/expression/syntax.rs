//! Expressions, read into trees in the order of precedence that Nunjucks has.
//!
//! A tree has a height that is known when it is made and bounded, so that working it out cannot exhaust the stack.

use super::error::{Error, Fault};
use super::lexer::{Token, tokens};
use super::value::Value;

/// The highest tree.
const MAX_HEIGHT: u16 = 100;
/// How deeply brackets may be nested; each is some twenty calls of the parser.
const MAX_NESTING: usize = 24;

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    height: u16,
    pub(super) expression: Expression,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Literal(Value),
    Name(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Member(Box<Node>, Box<Node>),
    Call(Box<Node>, Arguments),
    Filter(Box<Node>, String, Arguments),
    /// `is` and `is not`.
    Test(Box<Node>, String, Vec<Node>, bool),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// Condition, then, else.
    Choice(Box<Node>, Box<Node>, Option<Box<Node>>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Node>,
    pub(super) named: Vec<(String, Node)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    In,
    NotIn,
    Like,
    Unlike,
    Same,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Join,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

impl Expression {
    fn node(self) -> Result<Node, Error> {
        let each = |nodes: &[Node]| nodes.iter().map(|node| node.height).max().unwrap_or(0);
        let of_arguments = |arguments: &Arguments| {
            let named = arguments.named.iter().map(|(_, node)| node.height).max();
            each(&arguments.positional).max(named.unwrap_or(0))
        };
        let below = match &self {
            Self::Literal(_) | Self::Name(_) => 0,
            Self::List(items) => each(items),
            Self::Map(entries) => entries
                .iter()
                .map(|(key, value)| key.height.max(value.height))
                .max()
                .unwrap_or(0),
            Self::Member(left, right) | Self::Binary(_, left, right) => left.height.max(right.height),
            Self::Call(of, arguments) | Self::Filter(of, _, arguments) => {
                of.height.max(of_arguments(arguments))
            }
            Self::Test(of, _, arguments, _) => of.height.max(each(arguments)),
            Self::Unary(_, of) => of.height,
            Self::Choice(condition, then, other) => condition
                .height
                .max(then.height)
                .max(other.as_ref().map_or(0, |node| node.height)),
        };
        match below >= MAX_HEIGHT {
            true => Err(Error::new(Fault::TooLarge(format!(
                "the expression is nested more than {MAX_HEIGHT} deep"
            )))),
            false => Ok(Node {
                height: below + 1,
                expression: self,
            }),
        }
    }
}

impl Node {
    /// A variable by its name, which need not be one that can be written.
    pub(super) fn variable(name: &str) -> Result<Self, Error> {
        Expression::Name(name.to_owned()).node()
    }
}

/// Reads one expression.
pub(super) fn expression(source: &str) -> Result<Node, Error> {
    let mut parser = Parser::new(source)?;
    let node = parser.expression()?;
    parser.end()?;
    Ok(node)
}

/// A reader of words.
pub(super) struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
}

/// Operators of one level, weaker ones first, as Nunjucks has them.
const LEVELS: [&[(&str, Binary)]; 9] = [
    &[
        ("===", Binary::Same),
        ("!==", Binary::Different),
        ("==", Binary::Like),
        ("!=", Binary::Unlike),
        ("<=", Binary::LessOrEqual),
        (">=", Binary::GreaterOrEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("~", Binary::Join)],
    &[("+", Binary::Add)],
    &[("-", Binary::Subtract)],
    &[("*", Binary::Multiply)],
    &[("/", Binary::Divide)],
    &[("//", Binary::FloorDivide)],
    &[("%", Binary::Remainder)],
    &[("**", Binary::Power)],
];

impl Parser {
    pub(super) fn new(source: &str) -> Result<Self, Error> {
        Ok(Self {
            tokens: tokens(source)?,
            at: 0,
            nesting: 0,
        })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == name)
    }

    pub(super) fn eat_sign(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    pub(super) fn eat_name(&mut self, name: &str) -> bool {
        let is = self.is_name(name);
        self.at += usize::from(is);
        is
    }

    pub(super) fn name(&mut self) -> Result<String, Error> {
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name)
            }
            other => Err(Error::syntax(format!(
                "a name is expected, not {}",
                said(other.as_ref())
            ))),
        }
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Error> {
        match self.eat_sign(sign) {
            true => Ok(()),
            false => Err(Error::syntax(format!(
                "{sign:?} is expected, not {}",
                said(self.peek())
            ))),
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn end(&self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            found => Err(Error::syntax(format!("{} is not expected here", said(found)))),
        }
    }

    pub(super) fn expression(&mut self) -> Result<Node, Error> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Error::new(Fault::TooLarge(format!(
                "brackets are nested more than {MAX_NESTING} deep"
            ))));
        }
        let node = self.choice();
        self.nesting -= 1;
        node
    }

    fn choice(&mut self) -> Result<Node, Error> {
        let mut node = self.or()?;
        while self.eat_name("if") {
            let condition = self.or()?;
            let other = match self.eat_name("else") {
                true => Some(Box::new(self.or()?)),
                false => None,
            };
            node = Expression::Choice(Box::new(condition), Box::new(node), other).node()?;
        }
        Ok(node)
    }

    fn or(&mut self) -> Result<Node, Error> {
        let mut node = self.and()?;
        while self.eat_name("or") {
            node = binary(Binary::Or, node, self.and()?)?;
        }
        Ok(node)
    }

    fn and(&mut self) -> Result<Node, Error> {
        let mut node = self.not()?;
        while self.eat_name("and") {
            node = binary(Binary::And, node, self.not()?)?;
        }
        Ok(node)
    }

    fn not(&mut self) -> Result<Node, Error> {
        let mut count = 0_usize;
        while self.eat_name("not") {
            count += 1;
        }
        let mut node = self.containment()?;
        // Two of them make a truth value of it, more change nothing.
        for _ in 0..count.min(2 + count % 2) {
            node = Expression::Unary(Unary::Not, Box::new(node)).node()?;
        }
        Ok(node)
    }

    fn containment(&mut self) -> Result<Node, Error> {
        let mut node = self.test()?;
        loop {
            let negated = self.is_name("not")
                && matches!(self.tokens.get(self.at + 1), Some(Token::Name(next)) if next == "in");
            self.at += usize::from(negated);
            if !self.eat_name("in") {
                return Ok(node);
            }
            let operator = if negated { Binary::NotIn } else { Binary::In };
            node = binary(operator, node, self.test()?)?;
        }
    }

    fn test(&mut self) -> Result<Node, Error> {
        let node = self.level(0)?;
        if !self.eat_name("is") {
            return Ok(node);
        }
        let negated = self.eat_name("not");
        let name = self.name()?;
        let arguments = match self.is_sign("(") {
            true => self.arguments()?.positional,
            false => Vec::new(),
        };
        Expression::Test(Box::new(node), name, arguments, negated).node()
    }

    fn level(&mut self, level: usize) -> Result<Node, Error> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary(true);
        };
        let mut node = self.level(level + 1)?;
        loop {
            let found = operators.iter().find(|(sign, _)| self.is_sign(sign));
            let Some((_, operator)) = found else {
                return Ok(node);
            };
            self.at += 1;
            node = binary(*operator, node, self.level(level + 1)?)?;
        }
    }

    fn unary(&mut self, with_filters: bool) -> Result<Node, Error> {
        let sign = match self.peek() {
            Some(Token::Sign("-")) => Some(Unary::Minus),
            Some(Token::Sign("+")) => Some(Unary::Plus),
            _ => None,
        };
        let node = match sign {
            Some(sign) => {
                self.at += 1;
                self.nesting += 1;
                if self.nesting > MAX_NESTING {
                    return Err(Error::new(Fault::TooLarge("too many signs in a row".to_owned())));
                }
                let node = self.unary(false)?;
                self.nesting -= 1;
                Expression::Unary(sign, Box::new(node)).node()?
            }
            None => self.primary()?,
        };
        match with_filters {
            true => self.filters(node),
            false => Ok(node),
        }
    }

    fn filters(&mut self, mut node: Node) -> Result<Node, Error> {
        while self.eat_sign("|") {
            let mut name = self.name()?;
            while self.eat_sign(".") {
                name = format!("{name}.{}", self.name()?);
            }
            let arguments = match self.is_sign("(") {
                true => self.arguments()?,
                false => Arguments::default(),
            };
            node = Expression::Filter(Box::new(node), name, arguments).node()?;
        }
        Ok(node)
    }

    /// A filter without what it is applied to: `{% filter upper %}`.
    pub(super) fn filter_of(&mut self, node: Node) -> Result<Node, Error> {
        let name = self.name()?;
        let arguments = match self.is_sign("(") {
            true => self.arguments()?,
            false => Arguments::default(),
        };
        let node = Expression::Filter(Box::new(node), name, arguments).node()?;
        self.filters(node)
    }

    pub(super) fn arguments(&mut self) -> Result<Arguments, Error> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        while !self.eat_sign(")") {
            let is_named = matches!(self.peek(), Some(Token::Name(_)))
                && matches!(self.tokens.get(self.at + 1), Some(Token::Sign("=")));
            if is_named {
                let name = self.name()?;
                self.expect("=")?;
                let value = self.expression()?;
                arguments.named.push((name, value));
            } else {
                arguments.positional.push(self.expression()?);
            }
            if !self.eat_sign(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Node, Error> {
        let token = self.peek().cloned();
        self.at += 1;
        let node = match token {
            Some(Token::Text(text)) => Expression::Literal(Value::text(text)).node()?,
            Some(Token::Number(number)) => Expression::Literal(Value::Number(number)).node()?,
            Some(Token::Pattern(source, flags)) => {
                Expression::Literal(Value::Pattern(source.into(), flags.into())).node()?
            }
            Some(Token::Name(name)) => match name.as_str() {
                "true" => Expression::Literal(Value::Bool(true)),
                "false" => Expression::Literal(Value::Bool(false)),
                "none" | "null" => Expression::Literal(Value::Null),
                _ => Expression::Name(name),
            }
            .node()?,
            Some(Token::Sign("(")) => {
                let first = self.expression()?;
                let mut items = vec![first];
                while self.eat_sign(",") && !self.is_sign(")") {
                    items.push(self.expression()?);
                }
                self.expect(")")?;
                match items.len() {
                    1 => items.swap_remove(0),
                    _ => Expression::List(items).node()?,
                }
            }
            Some(Token::Sign("[")) => {
                let mut items = Vec::new();
                while !self.eat_sign("]") {
                    items.push(self.expression()?);
                    if !self.eat_sign(",") {
                        self.expect("]")?;
                        break;
                    }
                }
                Expression::List(items).node()?
            }
            Some(Token::Sign("{")) => {
                let mut entries = Vec::new();
                while !self.eat_sign("}") {
                    let key = match self.peek().cloned() {
                        // A bare word before a colon is a key, not a variable.
                        Some(Token::Name(name)) => {
                            self.at += 1;
                            Expression::Literal(Value::text(name)).node()?
                        }
                        _ => self.expression()?,
                    };
                    self.expect(":")?;
                    entries.push((key, self.expression()?));
                    if !self.eat_sign(",") {
                        self.expect("}")?;
                        break;
                    }
                }
                Expression::Map(entries).node()?
            }
            other => {
                return Err(Error::syntax(format!(
                    "{} is not expected here",
                    said(other.as_ref())
                )));
            }
        };
        self.postfix(node)
    }

    fn postfix(&mut self, mut node: Node) -> Result<Node, Error> {
        loop {
            if self.is_sign("(") {
                let arguments = self.arguments()?;
                node = Expression::Call(Box::new(node), arguments).node()?;
            } else if self.eat_sign(".") {
                let name = self.name()?;
                let key = Expression::Literal(Value::text(name)).node()?;
                node = Expression::Member(Box::new(node), Box::new(key)).node()?;
            } else if self.eat_sign("[") {
                let key = self.expression()?;
                self.expect("]")?;
                node = Expression::Member(Box::new(node), Box::new(key)).node()?;
            } else {
                return Ok(node);
            }
        }
    }
}

fn binary(operator: Binary, left: Node, right: Node) -> Result<Node, Error> {
    Expression::Binary(operator, Box::new(left), Box::new(right)).node()
}

fn said(token: Option<&Token>) -> String {
    match token {
        None => "the end".to_owned(),
        Some(Token::Name(name)) => format!("{name:?}"),
        Some(Token::Number(number)) => format!("{number}"),
        Some(Token::Text(text)) => format!("the text {text:?}"),
        Some(Token::Pattern(source, _)) => format!("r/{source}/"),
        Some(Token::Sign(sign)) => format!("{sign:?}"),
    }
}
