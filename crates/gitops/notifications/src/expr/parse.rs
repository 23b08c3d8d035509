//! From words to a tree. What binds how strongly is as in the original, also where it surprises: `not a == b` is `(not a) == b`.
// tidy: long: the grammar of one language, whose rules call each other

use super::builtins::Builtin;
use super::lex::{Token, tokens};
use super::{ExprError, MAX_DEPTH, MAX_NESTING, error};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Name(String),
    /// What a closure is applied to: `#`, or `#index`, `#acc`.
    Pointer(String),
    Member {
        of: Box<Node>,
        at: Box<Node>,
        is_optional: bool,
    },
    /// Up to where `?.` gives up.
    Chain(Box<Node>),
    Slice(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
    Call(Box<Node>, Vec<Node>),
    Builtin(Builtin, Vec<Node>),
    Closure(Box<Node>),
    Not(Box<Node>),
    Minus(Box<Node>),
    Plus(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// `a < b < c`, which is `a < b and b < c`.
    Ordered(Box<Node>, Vec<(Operator, Node)>),
    Choice(Box<[Node; 3]>),
    /// `a ?: b`, which is `a ? a : b`.
    Either(Box<Node>, Box<Node>),
    Let(String, Box<Node>, Box<Node>),
    /// The value of the last one.
    Sequence(Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Differs,
    Less,
    More,
    LessOrEqual,
    MoreOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

/// Signs, what they mean, and how strongly they bind.
const OPERATORS: [(&str, Operator, u16); 24] = [
    ("or", Operator::Or, 10),
    ("||", Operator::Or, 10),
    ("and", Operator::And, 15),
    ("&&", Operator::And, 15),
    ("==", Operator::Equal, 20),
    ("!=", Operator::Differs, 20),
    ("<", Operator::Less, 20),
    (">", Operator::More, 20),
    ("<=", Operator::LessOrEqual, 20),
    (">=", Operator::MoreOrEqual, 20),
    ("in", Operator::In, 20),
    ("matches", Operator::Matches, 20),
    ("contains", Operator::Contains, 20),
    ("startsWith", Operator::StartsWith, 20),
    ("endsWith", Operator::EndsWith, 20),
    ("..", Operator::Range, 25),
    ("+", Operator::Add, 30),
    ("-", Operator::Subtract, 30),
    ("*", Operator::Multiply, 60),
    ("/", Operator::Divide, 60),
    ("%", Operator::Modulo, 60),
    ("**", Operator::Power, 100),
    ("^", Operator::Power, 100),
    ("??", Operator::Coalesce, 500),
];

const NOT: u16 = 50;
const SIGN: u16 = 90;

impl Operator {
    fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Less | Self::More | Self::LessOrEqual | Self::MoreOrEqual
        )
    }

    fn can_be_negated(self) -> bool {
        matches!(
            self,
            Self::In | Self::Matches | Self::Contains | Self::StartsWith | Self::EndsWith
        )
    }
}

/// A tree and how deep it is.
type Tree = (Node, u32);

/// Reads an expression; also says whether it asks the clock.
pub(super) fn parse(text: &str) -> Result<(Node, bool), ExprError> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        nesting: 0,
        closures: 0,
        asks_clock: false,
    };
    let (node, _) = parser.sequence()?;
    match parser.peek() {
        None => Ok((node, parser.asks_clock)),
        Some(token) => error(format!("unexpected token {}", token.shown())),
    }
}

/// A node over others of these depths.
fn over(node: Node, depths: impl IntoIterator<Item = u32>) -> Result<Tree, ExprError> {
    let depth = 1 + depths.into_iter().max().unwrap_or(0);
    match depth > MAX_DEPTH {
        true => error(format!("the expression is deeper than {MAX_DEPTH} levels")),
        false => Ok((node, depth)),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: u32,
    closures: u32,
    asks_clock: bool,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_it = self.is(sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn unexpected<T>(&self) -> Result<T, ExprError> {
        match self.peek() {
            Some(token) => error(format!("unexpected token {}", token.shown())),
            None => error("unexpected end of expression"),
        }
    }

    fn need(&mut self, sign: &str) -> Result<(), ExprError> {
        match self.take(sign) {
            true => Ok(()),
            false => self.unexpected(),
        }
    }

    fn name(&mut self) -> Result<String, ExprError> {
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name)
            }
            _ => self.unexpected(),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, ExprError>) -> Result<T, ExprError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return error(format!(
                "the expression is nested deeper than {MAX_NESTING} levels"
            ));
        }
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn sequence(&mut self) -> Result<Tree, ExprError> {
        let first = self.whole()?;
        if !self.is(";") {
            return Ok(first);
        }
        let (mut nodes, mut depth) = (vec![first.0], first.1);
        while self.take(";") {
            if self.peek().is_none() {
                break;
            }
            let (node, its_depth) = self.whole()?;
            nodes.push(node);
            depth = depth.max(its_depth);
        }
        over(Node::Sequence(nodes), [depth])
    }

    /// An expression of any strength.
    fn whole(&mut self) -> Result<Tree, ExprError> {
        self.deeper(|this| {
            if this.take("let") {
                let name = this.name()?;
                this.need("=")?;
                let (value, one) = this.whole()?;
                this.need(";")?;
                let (body, other) = this.sequence()?;
                return over(Node::Let(name, value.into(), body.into()), [one, other]);
            }
            if this.is("if") {
                return this.branches();
            }
            let condition = this.expression(0)?;
            this.choice(condition)
        })
    }

    fn branches(&mut self) -> Result<Tree, ExprError> {
        self.deeper(|this| {
            this.need("if")?;
            let (condition, one) = this.whole()?;
            this.need("{")?;
            let (yes, two) = this.sequence()?;
            this.need("}")?;
            this.need("else")?;
            let (no, three) = match this.is("if") {
                true => this.branches()?,
                false => {
                    this.need("{")?;
                    let no = this.sequence()?;
                    this.need("}")?;
                    no
                }
            };
            over(Node::Choice(Box::new([condition, yes, no])), [one, two, three])
        })
    }

    fn choice(&mut self, mut tree: Tree) -> Result<Tree, ExprError> {
        while self.take("?") {
            let (condition, depth) = tree;
            if self.take(":") {
                let (no, other) = self.whole()?;
                tree = over(Node::Either(condition.into(), no.into()), [depth, other])?;
                continue;
            }
            let (yes, one) = self.whole()?;
            self.need(":")?;
            let (no, other) = self.whole()?;
            tree = over(Node::Choice(Box::new([condition, yes, no])), [depth, one, other])?;
        }
        Ok(tree)
    }

    /// The operator that comes next, its strength, and whether `not` stands before it.
    fn operator(&self) -> Result<Option<(&'static str, Operator, u16, bool)>, ExprError> {
        let find = |token: Option<&Token>| match token {
            Some(Token::Sign(sign)) => OPERATORS.iter().find(|(known, ..)| known == sign).copied(),
            _ => None,
        };
        if self.is("not") {
            let negated =
                find(self.tokens.get(self.at + 1)).filter(|(_, operator, _)| operator.can_be_negated());
            return match negated {
                Some((sign, operator, strength)) => Ok(Some((sign, operator, strength, true))),
                None => self.unexpected(),
            };
        }
        Ok(find(self.peek()).map(|(sign, operator, strength)| (sign, operator, strength, false)))
    }

    fn expression(&mut self, least: u16) -> Result<Tree, ExprError> {
        let mut left = self.primary()?;
        let mut before = None;
        loop {
            if least == 0 && self.take("|") {
                left = self.piped(left)?;
                continue;
            }
            let Some((sign, operator, strength, is_negated)) = self.operator()? else {
                return Ok(left);
            };
            if strength < least {
                return Ok(left);
            }
            self.at += 1 + usize::from(is_negated);
            if before == Some(Operator::Coalesce) && operator != Operator::Coalesce {
                return error(format!(
                    "operator {sign:?} and ?? cannot be mixed: put one of them into parentheses"
                ));
            }
            before = Some(operator);
            if operator.is_comparison() {
                left = self.comparisons(left, operator, strength)?;
                continue;
            }
            let next = if operator == Operator::Power {
                strength
            } else {
                strength + 1
            };
            let (right, its_depth) = self.deeper(|this| this.expression(next))?;
            let (node, depth) = left;
            left = over(
                Node::Binary(operator, node.into(), right.into()),
                [depth, its_depth],
            )?;
            if is_negated {
                left = over(Node::Not(left.0.into()), [left.1])?;
            }
        }
    }

    /// One comparison, or several in a row.
    fn comparisons(
        &mut self,
        (first, depth): Tree,
        operator: Operator,
        strength: u16,
    ) -> Result<Tree, ExprError> {
        let (mut depths, mut operator) = (vec![depth], operator);
        let mut others = Vec::new();
        loop {
            let (right, depth) = self.deeper(|this| this.expression(strength + 1))?;
            depths.push(depth);
            others.push((operator, right));
            match self.operator()? {
                Some((_, next, _, false)) if next.is_comparison() => {
                    self.at += 1;
                    operator = next;
                }
                _ => return over(Node::Ordered(first.into(), others), depths),
            }
        }
    }

    /// `a | f(b)` is `f(a, b)`.
    fn piped(&mut self, first: Tree) -> Result<Tree, ExprError> {
        let name = self.name()?;
        let called = self.call(&name, Some(first))?;
        self.postfix(called)
    }

    fn primary(&mut self) -> Result<Tree, ExprError> {
        let unary = match self.peek() {
            Some(Token::Sign(sign @ ("not" | "!"))) => Some((*sign, NOT)),
            Some(Token::Sign(sign @ ("-" | "+"))) => Some((*sign, SIGN)),
            _ => None,
        };
        if let Some((sign, strength)) = unary {
            self.at += 1;
            let (inner, depth) = self.deeper(|this| this.expression(strength))?;
            let node = match sign {
                "-" => Node::Minus(inner.into()),
                "+" => Node::Plus(inner.into()),
                _ => Node::Not(inner.into()),
            };
            let tree = over(node, [depth])?;
            return self.postfix(tree);
        }
        if self.take("(") {
            let inner = self.sequence()?;
            self.need(")")?;
            return self.postfix(inner);
        }
        if self.closures > 0 && (self.is("#") || self.is(".")) {
            // With a dot, what follows is a member of the item.
            let name = match self.take("#") {
                true => self.name().unwrap_or_default(),
                false => String::new(),
            };
            let tree = over(Node::Pointer(name), [])?;
            return self.postfix(tree);
        }
        if self.take("::") {
            let name = self.name()?;
            let called = self.call(&name, None)?;
            return self.postfix(called);
        }
        self.secondary()
    }

    fn secondary(&mut self) -> Result<Tree, ExprError> {
        let token = self.peek().cloned();
        let simple = match &token {
            Some(Token::Int(number)) => Some(Node::Int(*number)),
            Some(Token::Float(number)) => Some(Node::Float(*number)),
            Some(Token::Name(name)) => match name.as_str() {
                "true" => Some(Node::Bool(true)),
                "false" => Some(Node::Bool(false)),
                "nil" => Some(Node::Nil),
                _ => None,
            },
            _ => None,
        };
        if let Some(node) = simple {
            self.at += 1;
            return over(node, []);
        }
        let tree = match token {
            Some(Token::Name(name)) => {
                self.at += 1;
                match self.is("(") {
                    true => self.call(&name, None)?,
                    false => over(Node::Name(name), [])?,
                }
            }
            Some(Token::Text(text)) => {
                self.at += 1;
                over(Node::Text(text), [])?
            }
            Some(Token::Sign("[")) => {
                self.at += 1;
                let (items, depth) = self.items("]", None)?;
                over(Node::List(items), [depth])?
            }
            Some(Token::Sign("{")) => self.map()?,
            _ => return self.unexpected(),
        };
        self.postfix(tree)
    }

    /// Expressions with commas between them, up to a bracket, after one that is given; and the greatest depth.
    fn items(&mut self, end: &str, first: Option<Tree>) -> Result<(Vec<Node>, u32), ExprError> {
        let (mut items, mut depth) = (Vec::new(), 0);
        if let Some((node, its_depth)) = first {
            items.push(node);
            depth = its_depth;
        }
        let mut is_first = true;
        while !self.take(end) {
            if !is_first {
                self.need(",")?;
                if self.take(end) {
                    break;
                }
            }
            is_first = false;
            let (node, its_depth) = self.whole()?;
            items.push(node);
            depth = depth.max(its_depth);
        }
        Ok((items, depth))
    }

    fn map(&mut self) -> Result<Tree, ExprError> {
        self.need("{")?;
        let (mut pairs, mut depth) = (Vec::new(), 0);
        while !self.take("}") {
            if !pairs.is_empty() {
                self.need(",")?;
                if self.take("}") {
                    break;
                }
            }
            let key = match self.peek().cloned() {
                Some(Token::Text(text) | Token::Name(text)) => Node::Text(text),
                Some(Token::Int(number)) => Node::Text(number.to_string()),
                Some(Token::Float(number)) => Node::Text(number.to_string()),
                Some(Token::Sign("(")) => {
                    let (key, its_depth) = self.whole()?;
                    depth = depth.max(its_depth);
                    self.at -= 1;
                    key
                }
                _ => {
                    return error(
                        "a key of a map is a text, a number, a name, or an expression in parentheses",
                    );
                }
            };
            self.at += 1;
            self.need(":")?;
            let (value, its_depth) = self.whole()?;
            depth = depth.max(its_depth);
            pairs.push((key, value));
        }
        over(Node::Map(pairs), [depth])
    }

    /// The call of a function by its name; the bracket is not taken yet.
    fn call(&mut self, name: &str, first: Option<Tree>) -> Result<Tree, ExprError> {
        self.asks_clock |= name == "now";
        self.need("(")?;
        let Some(builtin) = Builtin::named(name) else {
            let (arguments, depth) = self.items(")", first)?;
            return over(Node::Call(Node::Name(name.to_owned()).into(), arguments), [depth]);
        };
        let Some((least, most)) = builtin.closure() else {
            let (arguments, depth) = self.items(")", first)?;
            return over(Node::Builtin(builtin, arguments), [depth]);
        };
        let (mut arguments, mut depth) = (Vec::new(), 0);
        if let Some((node, its_depth)) = first {
            arguments.push(node);
            depth = its_depth;
        }
        let mut is_first = true;
        while arguments.len() < most && !self.is(")") {
            if !is_first {
                self.need(",")?;
                if self.is(")") {
                    break;
                }
            }
            is_first = false;
            let (node, its_depth) = match arguments.len() {
                1 => self.closure()?,
                _ => self.whole()?,
            };
            arguments.push(node);
            depth = depth.max(its_depth);
        }
        if arguments.len() < least {
            return error(format!("{name} wants at least {least} arguments"));
        }
        self.take(",");
        self.need(")")?;
        over(Node::Builtin(builtin, arguments), [depth])
    }

    fn closure(&mut self) -> Result<Tree, ExprError> {
        let has_braces = self.take("{");
        self.closures += 1;
        let inner = match has_braces {
            true => self.sequence(),
            false => self.whole(),
        };
        self.closures -= 1;
        let (inner, depth) = inner?;
        if has_braces {
            self.need("}")?;
        }
        over(Node::Closure(inner.into()), [depth])
    }

    fn postfix(&mut self, mut tree: Tree) -> Result<Tree, ExprError> {
        loop {
            let is_optional = self.take("?.");
            if is_optional && self.is("[") {
                tree = self.index(tree, true)?;
            } else if is_optional || self.take(".") {
                tree = self.member(tree, is_optional)?;
            } else if self.is("[") {
                tree = self.index(tree, false)?;
            } else {
                return Ok(tree);
            }
        }
    }

    fn member(&mut self, (of, depth): Tree, is_optional: bool) -> Result<Tree, ExprError> {
        let Some(name) = self.peek().and_then(Token::as_name).map(str::to_owned) else {
            return error("a name is expected after a dot");
        };
        self.at += 1;
        self.asks_clock |= name == "Now";
        // What follows `?.` belongs to what may be given up.
        let (of, is_chain) = match of {
            Node::Chain(inner) => (*inner, true),
            other => (other, false),
        };
        let at = Box::new(Node::Text(name));
        let mut tree = over(
            Node::Member {
                of: of.into(),
                at,
                is_optional,
            },
            [depth],
        )?;
        if self.take("(") {
            let (arguments, its_depth) = self.items(")", None)?;
            tree = over(Node::Call(tree.0.into(), arguments), [tree.1, its_depth])?;
        }
        match is_chain || is_optional {
            true => over(Node::Chain(tree.0.into()), [tree.1]),
            false => Ok(tree),
        }
    }

    fn index(&mut self, (of, depth): Tree, is_optional: bool) -> Result<Tree, ExprError> {
        self.need("[")?;
        let from = match self.is(":") {
            true => None,
            false => Some(self.whole()?),
        };
        if !self.take(":") {
            self.need("]")?;
            let Some((at, its_depth)) = from else {
                return self.unexpected();
            };
            let member = Node::Member {
                of: of.into(),
                at: at.into(),
                is_optional,
            };
            let tree = over(member, [depth, its_depth])?;
            return match is_optional {
                true => over(Node::Chain(tree.0.into()), [tree.1]),
                false => Ok(tree),
            };
        }
        let to = match self.is("]") {
            true => None,
            false => Some(self.whole()?),
        };
        self.need("]")?;
        let depths = [&from, &to]
            .into_iter()
            .flatten()
            .map(|tree| tree.1)
            .chain([depth]);
        let depths: Vec<u32> = depths.collect();
        let inner = |tree: Option<Tree>| tree.map(|(node, _)| Box::new(node));
        over(Node::Slice(of.into(), inner(from), inner(to)), depths)
    }
}
