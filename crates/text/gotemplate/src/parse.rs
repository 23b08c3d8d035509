//! From tokens to templates, with Go's error messages.
// tidy: long: the rules of the grammar call each other in a circle

pub(crate) mod number;

use std::sync::Arc;

use crate::ast::{
    Branch, Command, Declared, Invocation, List, Node, Operand, OperandKind, Pipe, Pos, Template,
};
use crate::error::ParseError;
use crate::functions::Functions;
use crate::lex::{Keyword, Kind, Token, lex};
use crate::text::{quote, unquote};

/// How deep actions and parentheses may be nested. People nest ten; the parser's stack bears many more.
const MAX_NESTING: usize = 100;
/// The longest text of one file.
const MAX_TEXT: usize = 32 * 1024 * 1024;

/// Reads the text of a file. The first template is the file itself, those that it defines follow.
pub fn parse(name: &str, text: &str, functions: &Functions) -> Result<Vec<Arc<Template>>, ParseError> {
    let fault = |message: String| ParseError::new(name, 1, message);
    if text.len() > MAX_TEXT {
        return Err(fault(format!(
            "the template has {} bytes, more than the limit of {MAX_TEXT}",
            text.len()
        )));
    }
    let mut parser = Parser {
        file: name.into(),
        text: text.into(),
        tokens: lex(text),
        at: 0,
        furthest: 0,
        action_line: 0,
        nesting: 0,
        functions,
        defined: Vec::new(),
    };
    parser.file_body()?;
    Ok(parser.defined.into_iter().map(Arc::new).collect())
}

struct Parser<'a> {
    file: Arc<str>,
    text: Arc<str>,
    tokens: Vec<Token>,
    at: usize,
    /// The last token that was looked at; errors name its line.
    furthest: usize,
    /// The line on which the action at hand began; 0 outside of actions.
    action_line: u32,
    nesting: usize,
    functions: &'a Functions,
    defined: Vec<Template>,
}

/// The variables in sight, and how many places they need at most.
struct Scope {
    /// Names, and whether they have a value yet: not within the pipeline that gives it to them.
    names: Vec<(Arc<str>, bool)>,
    slots: usize,
    ranges: usize,
}

impl Scope {
    fn new() -> Self {
        Self {
            names: vec![("$".into(), true)],
            slots: 1,
            ranges: 0,
        }
    }

    fn declare(&mut self, name: &str) -> usize {
        self.names.push((name.into(), false));
        self.slots = self.slots.max(self.names.len());
        self.names.len() - 1
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.names
            .iter()
            .rposition(|(known, ready)| *ready && &**known == name)
    }

    fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|(known, _)| &**known == name)
    }

    /// From here on, the variables of a pipeline have their values.
    fn settle(&mut self, pipe: &Pipe) {
        for variable in &pipe.variables {
            if let Some((_, ready)) = variable.slot.and_then(|slot| self.names.get_mut(slot)) {
                *ready = true;
            }
        }
    }
}

/// What ended a list of nodes.
enum End {
    End,
    Else,
}

enum Parsed {
    Node(Node),
    End(End),
}

type Result1<T> = Result<T, ParseError>;

impl Parser<'_> {
    fn error<T>(&self, message: impl Into<String>) -> Result1<T> {
        let line = self.tokens.get(self.furthest).map_or(1, |token| token.line);
        Err(ParseError::new(&self.file, line, message.into()))
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn peek(&mut self) -> Token {
        self.furthest = self.furthest.max(self.at);
        // The list ends with a token at which the parser stops.
        self.tokens[self.at].clone()
    }

    fn peek_kind(&mut self) -> &Kind {
        self.furthest = self.furthest.max(self.at);
        &self.tokens[self.at].kind
    }

    fn skip_space(&mut self) {
        while *self.peek_kind() == Kind::Space {
            self.at += 1;
        }
    }

    fn next_non_space(&mut self) -> Token {
        self.skip_space();
        self.next()
    }

    fn value(&self, token: &Token) -> &str {
        &self.text[token.start..token.end]
    }

    /// A token as messages show it.
    fn show(&self, token: &Token) -> String {
        match &token.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Error(message) => message.clone(),
            Kind::Keyword(_) | Kind::Dot | Kind::Nil => format!("<{}>", self.value(token)),
            _ => {
                let text = self.value(token);
                match text.char_indices().nth(10) {
                    Some((end, _)) if text.len() > 10 => format!("{}...", quote(&text.as_bytes()[..end])),
                    _ => quote(text.as_bytes()),
                }
            }
        }
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Result1<T> {
        let Kind::Error(message) = &token.kind else {
            return self.error(format!("unexpected {} in {context}", self.show(token)));
        };
        let mut extra = String::new();
        if self.action_line != 0 && self.action_line != token.line {
            extra = format!(" in action started at {}:{}", self.file, self.action_line);
            if message.ends_with(" action") {
                extra.drain(.." in action".len());
            }
        }
        self.error(format!("{message}{extra}"))
    }

    fn expect(&mut self, kind: &Kind, context: &str) -> Result1<Token> {
        let token = self.next_non_space();
        if token.kind != *kind {
            return self.unexpected(&token, context);
        }
        Ok(token)
    }

    fn enter(&mut self) -> Result1<()> {
        if self.nesting >= MAX_NESTING {
            return self.error(format!(
                "max expression depth exceeded: more than {MAX_NESTING} nested levels"
            ));
        }
        self.nesting += 1;
        Ok(())
    }

    fn define(&mut self, name: &str, root: List, slots: usize) -> Result1<()> {
        let template = Template {
            name: name.into(),
            file: self.file.clone(),
            text: self.text.clone(),
            root,
            slots,
        };
        match self.defined.iter().position(|known| &*known.name == name) {
            None => self.defined.push(template),
            Some(at) if self.defined[at].is_blank() => self.defined[at] = template,
            Some(_) if template.is_blank() => {}
            Some(_) => {
                let name = quote(name.as_bytes());
                return self.error(format!("template: multiple definition of template {name}"));
            }
        }
        Ok(())
    }

    fn file_body(&mut self) -> Result1<()> {
        let mut scope = Scope::new();
        let mut root = List::new();
        while *self.peek_kind() != Kind::Eof {
            if *self.peek_kind() == Kind::LeftDelim {
                let mark = self.at;
                self.next();
                if self.next_non_space().kind == Kind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.at = mark;
            }
            match self.text_or_action(&mut scope)? {
                Parsed::Node(node) => root.push(node),
                Parsed::End(End::End) => return self.error("unexpected {{end}}"),
                Parsed::End(End::Else) => return self.error("unexpected {{else}}"),
            }
        }
        let name = self.file.clone();
        self.define(&name, root, scope.slots)?;
        // Whoever executes the file asks for the first one.
        if let Some(own) = self.defined.iter().position(|known| known.name == name) {
            self.defined.swap(0, own);
        }
        Ok(())
    }

    fn string(&mut self, token: &Token) -> Result1<Vec<u8>> {
        match unquote(self.value(token)) {
            Some(text) => Ok(text),
            None => self.error("invalid syntax"),
        }
    }

    fn name(&mut self, token: &Token, context: &str) -> Result1<Arc<str>> {
        match token.kind {
            Kind::Str | Kind::RawStr => {
                let text = self.string(token)?;
                Ok(crate::text::lossy(&text).into())
            }
            _ => self.unexpected(token, context),
        }
    }

    fn definition(&mut self) -> Result1<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        let name = self.name(&token, CONTEXT)?;
        self.expect(&Kind::RightDelim, CONTEXT)?;
        let mut scope = Scope::new();
        let root = self.body_to_end(&mut scope, CONTEXT)?;
        self.define(&name, root, scope.slots)
    }

    fn body_to_end(&mut self, scope: &mut Scope, context: &str) -> Result1<List> {
        match self.list(scope)? {
            (root, End::End) => Ok(root),
            (_, End::Else) => self.error(format!("unexpected {{{{else}}}} in {context}")),
        }
    }

    fn list(&mut self, scope: &mut Scope) -> Result1<(List, End)> {
        let mut list = List::new();
        loop {
            self.skip_space();
            if *self.peek_kind() == Kind::Eof {
                return self.error("unexpected EOF");
            }
            match self.text_or_action(scope)? {
                Parsed::Node(node) => list.push(node),
                Parsed::End(end) => return Ok((list, end)),
            }
        }
    }

    fn text_or_action(&mut self, scope: &mut Scope) -> Result1<Parsed> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Parsed::Node(Node::Text(pos(token.start), pos(token.end)))),
            Kind::LeftDelim => {
                self.action_line = token.line;
                let parsed = self.action(scope);
                if parsed.is_ok() {
                    self.action_line = 0;
                }
                parsed
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self, scope: &mut Scope) -> Result1<Parsed> {
        let mark = self.at;
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Keyword(Keyword::Block) => self.block(scope)?,
            Kind::Keyword(word @ (Keyword::Break | Keyword::Continue)) => self.leave_range(word, scope)?,
            Kind::Keyword(Keyword::Else) => {
                self.skip_space();
                if !matches!(self.peek_kind(), Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.expect(&Kind::RightDelim, "else")?;
                }
                return Ok(Parsed::End(End::Else));
            }
            Kind::Keyword(Keyword::End) => {
                self.expect(&Kind::RightDelim, "end")?;
                return Ok(Parsed::End(End::End));
            }
            Kind::Keyword(Keyword::If) => Node::If(self.control("if", scope)?),
            Kind::Keyword(Keyword::Range) => Node::Range(self.control("range", scope)?),
            Kind::Keyword(Keyword::With) => Node::With(self.control("with", scope)?),
            Kind::Keyword(Keyword::Template) => {
                const CONTEXT: &str = "template clause";
                let token = self.next_non_space();
                let name = self.name(&token, CONTEXT)?;
                self.skip_space();
                let pipe = match self.peek_kind() {
                    Kind::RightDelim => {
                        self.next();
                        None
                    }
                    _ => Some(self.pipeline(CONTEXT, &Kind::RightDelim, scope)?),
                };
                Node::Template(Invocation {
                    pos: pos(token.start),
                    name,
                    pipe,
                })
            }
            _ => {
                self.at = mark;
                Node::Action(self.pipeline("command", &Kind::RightDelim, scope)?)
            }
        };
        Ok(Parsed::Node(node))
    }

    fn leave_range(&mut self, word: Keyword, scope: &Scope) -> Result1<Node> {
        let (context, node) = match word {
            Keyword::Break => ("{{break}}", Node::Break),
            _ => ("{{continue}}", Node::Continue),
        };
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(&token, context);
        }
        if scope.ranges == 0 {
            return self.error(format!("{context} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn block(&mut self, scope: &mut Scope) -> Result1<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, &Kind::RightDelim, scope)?;
        let mut inner = Scope::new();
        self.enter()?;
        let root = self.body_to_end(&mut inner, CONTEXT)?;
        self.nesting -= 1;
        self.define(&name, root, inner.slots)?;
        Ok(Node::Template(Invocation {
            pos: pos(token.start),
            name,
            pipe: Some(pipe),
        }))
    }

    fn control(&mut self, context: &str, scope: &mut Scope) -> Result1<Branch> {
        self.enter()?;
        let mark = scope.names.len();
        let pipe = self.pipeline(context, &Kind::RightDelim, scope)?;
        let in_range = usize::from(context == "range");
        scope.ranges += in_range;
        let (list, end) = self.list(scope)?;
        scope.ranges -= in_range;
        let otherwise = match end {
            End::End => None,
            End::Else => Some(self.otherwise(context, scope)?),
        };
        scope.names.truncate(mark);
        self.nesting -= 1;
        Ok(Branch {
            pipe,
            list,
            otherwise,
        })
    }

    fn otherwise(&mut self, context: &str, scope: &mut Scope) -> Result1<List> {
        match (context, self.peek_kind()) {
            ("if", Kind::Keyword(Keyword::If)) => {
                self.next();
                Ok(vec![Node::If(self.control("if", scope)?)])
            }
            ("with", Kind::Keyword(Keyword::With)) => {
                self.next();
                Ok(vec![Node::With(self.control("with", scope)?)])
            }
            _ => match self.list(scope)? {
                (list, End::End) => Ok(list),
                (_, End::Else) => self.error("expected end; found {{else}}"),
            },
        }
    }

    fn pipeline(&mut self, context: &str, end: &Kind, scope: &mut Scope) -> Result1<Pipe> {
        self.skip_space();
        let mut pipe = Pipe {
            pos: pos(self.peek().start),
            assigns: false,
            variables: Vec::new(),
            commands: Vec::new(),
        };
        self.declarations(&mut pipe, context, scope)?;
        loop {
            self.skip_space();
            let kind = self.peek_kind();
            if kind == end {
                self.next();
                self.check_pipeline(&pipe, context)?;
                scope.settle(&pipe);
                return Ok(pipe);
            }
            match kind {
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawStr
                | Kind::Str
                | Kind::Variable
                | Kind::LeftParen => pipe.commands.push(self.command(scope)?),
                _ => {
                    let token = self.next();
                    return self.unexpected(&token, context);
                }
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str, scope: &mut Scope) -> Result1<()> {
        let mut names: Vec<Arc<str>> = Vec::new();
        loop {
            self.skip_space();
            if *self.peek_kind() != Kind::Variable {
                break;
            }
            let mark = self.at;
            let variable = self.next();
            self.skip_space();
            let next = self.peek();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next();
                    pipe.assigns = next.kind == Kind::Assign;
                    names.push(self.value(&variable).into());
                    break;
                }
                Kind::Char if self.value(&next) == "," => {
                    self.next();
                    names.push(self.value(&variable).into());
                    if context != "range" || names.len() > 1 {
                        return self.error(format!("too many declarations in {context}"));
                    }
                    self.skip_space();
                    if !matches!(
                        self.peek_kind(),
                        Kind::Variable | Kind::RightDelim | Kind::RightParen
                    ) {
                        return self.error("range can only initialize variables");
                    }
                }
                _ => {
                    self.at = mark;
                    break;
                }
            }
        }
        for name in names {
            let slot = match pipe.assigns {
                true => scope.find(&name),
                false => Some(scope.declare(&name)),
            };
            if slot.is_none() {
                scope.declare(&name);
            }
            pipe.variables.push(Declared { name, slot });
        }
        Ok(())
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Result1<()> {
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (at, command) in pipe.commands.iter().enumerate().skip(1) {
            if let Some(
                OperandKind::Bool(_)
                | OperandKind::Dot
                | OperandKind::Nil
                | OperandKind::Number(_)
                | OperandKind::Str { .. },
            ) = command.args.first().map(|first| &first.kind)
            {
                return self.error(format!("non executable command in pipeline stage {}", at + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self, scope: &mut Scope) -> Result1<Command> {
        self.skip_space();
        let mut command = Command {
            pos: pos(self.peek().start),
            args: Vec::new(),
        };
        loop {
            self.skip_space();
            if let Some(operand) = self.operand(scope)? {
                command.args.push(operand);
            }
            match self.peek_kind() {
                Kind::Space => {
                    self.next();
                    continue;
                }
                Kind::RightDelim | Kind::RightParen => {}
                Kind::Pipe => {
                    self.next();
                }
                _ => {
                    let token = self.next();
                    return self.unexpected(&token, "operand");
                }
            }
            break;
        }
        if command.args.is_empty() {
            return self.error("empty command");
        }
        Ok(command)
    }

    fn operand(&mut self, scope: &mut Scope) -> Result1<Option<Operand>> {
        let Some(mut operand) = self.term(scope)? else {
            return Ok(None);
        };
        if *self.peek_kind() != Kind::Field {
            return Ok(Some(operand));
        }
        let start = pos(self.peek().start);
        let mut names: Vec<Arc<str>> = Vec::new();
        while *self.peek_kind() == Kind::Field {
            let token = self.next();
            names.push(self.value(&token)[1..].into());
        }
        match &mut operand.kind {
            OperandKind::Field(fields) | OperandKind::Variable { fields, .. } => {
                fields.append(&mut names);
                operand.pos = start;
            }
            OperandKind::Bool(_)
            | OperandKind::Str { .. }
            | OperandKind::Number(_)
            | OperandKind::Nil
            | OperandKind::Dot => {
                let shown = quote(operand.to_string().as_bytes());
                return self.error(format!("unexpected . after term {shown}"));
            }
            _ => {
                let kind = OperandKind::Chain {
                    start: Box::new(operand),
                    fields: names,
                };
                return Ok(Some(Operand { pos: start, kind }));
            }
        }
        Ok(Some(operand))
    }

    fn term(&mut self, scope: &mut Scope) -> Result1<Option<Operand>> {
        self.skip_space();
        let token = self.peek();
        let kind = match token.kind {
            Kind::Identifier => {
                self.next();
                let name = self.value(&token);
                match self.functions.find(name) {
                    Some(index) => OperandKind::Function {
                        name: name.into(),
                        index,
                    },
                    None => return self.error(format!("function {} not defined", quote(name.as_bytes()))),
                }
            }
            Kind::Dot => OperandKind::Dot,
            Kind::Nil => OperandKind::Nil,
            Kind::Variable => {
                self.next();
                let name: Arc<str> = self.value(&token).into();
                if !scope.knows(&name) {
                    return self.error(format!("undefined variable {}", quote(name.as_bytes())));
                }
                OperandKind::Variable {
                    slot: scope.find(&name),
                    name,
                    fields: Vec::new(),
                }
            }
            Kind::Field => OperandKind::Field(vec![self.value(&token)[1..].into()]),
            Kind::Bool => OperandKind::Bool(self.value(&token) == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                self.next();
                match number::read(self.value(&token), &token.kind) {
                    Ok(number) => OperandKind::Number(number),
                    Err(message) => return self.error(message),
                }
            }
            Kind::LeftParen => {
                self.next();
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", &Kind::RightParen, scope)?;
                self.nesting -= 1;
                let kind = OperandKind::Pipe(Box::new(pipe));
                return Ok(Some(Operand {
                    pos: pos(token.start),
                    kind,
                }));
            }
            Kind::Str | Kind::RawStr => {
                self.next();
                let value = self.string(&token)?;
                OperandKind::Str {
                    quoted: self.value(&token).into(),
                    value: value.into(),
                }
            }
            _ => return Ok(None),
        };
        if !matches!(
            token.kind,
            Kind::Identifier
                | Kind::Variable
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Number
                | Kind::Str
                | Kind::RawStr
        ) {
            self.next();
        }
        Ok(Some(Operand {
            pos: pos(token.start),
            kind,
        }))
    }
}

/// Texts are shorter than 4 GiB: [`MAX_TEXT`].
fn pos(at: usize) -> Pos {
    Pos::try_from(at).unwrap_or(Pos::MAX)
}
