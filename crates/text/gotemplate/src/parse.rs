//! From tokens to templates, with Go's error messages.

pub(crate) mod number;
mod pipeline;
mod scope;

use std::borrow::Cow;
use std::sync::Arc;

use self::scope::Scope;
use crate::ast::{Branch, Code, Command, Invocation, Node, Operand, Pos, Span, Template};
use crate::error::ParseError;
use crate::functions::Functions;
use crate::lex::{Keyword, Kind, Lexer, Token};
use crate::text::{lossy, quote, unquote};

/// How deep actions and parentheses may be nested. People nest ten; the parser's stack bears many more.
const MAX_NESTING: usize = 100;
/// For how many actions there is room from the beginning.
const MAX_FORESEEN: usize = 4096;
/// The longest text of one file.
const MAX_TEXT: usize = 32 * 1024 * 1024;

/// Reads the text of a file. The first template is the file itself, those that it defines follow.
pub fn parse(name: &str, text: &str, functions: &Functions) -> Result<Vec<Arc<Template>>, ParseError> {
    parse_bytes(name, &text.as_bytes().into(), functions)
}

/// As [`parse`], with a text that the templates share with the caller. Bytes that are no UTF-8 are replaced.
pub fn parse_bytes(
    name: &str,
    bytes: &Arc<[u8]>,
    functions: &Functions,
) -> Result<Vec<Arc<Template>>, ParseError> {
    if bytes.len() > MAX_TEXT {
        let message = format!(
            "the template has {} bytes, more than the limit of {MAX_TEXT}",
            bytes.len()
        );
        return Err(ParseError::new(name, 1, message));
    }
    let text = lossy(bytes);
    let shared = match &text {
        Cow::Borrowed(_) => bytes.clone(),
        Cow::Owned(mended) => mended.as_bytes().into(),
    };
    // Counting them is cheaper than making room again and again. Who writes more than people do gets no room in advance.
    let actions = memchr::memmem::find_iter(bytes, b"{{").take(MAX_FORESEEN).count();
    let mut parser = Parser {
        text: &text,
        lexer: Lexer::new(&text),
        at: 0,
        furthest: 0,
        action: None,
        nesting: 0,
        functions,
        code: Code::new(name.into(), shared, actions),
        open_nodes: Vec::with_capacity(actions.min(64)),
        open_commands: Vec::with_capacity(actions.min(8)),
        open_operands: Vec::with_capacity(actions.min(16)),
        defined: Vec::new(),
    };
    parser.file_body()?;
    let Parser { code, defined, .. } = parser;
    let code = Arc::new(code);
    let template = |defined: Defined| {
        Arc::new(Template {
            name: defined.name,
            code: code.clone(),
            root: defined.root,
            slots: defined.slots,
        })
    };
    Ok(defined.into_iter().map(template).collect())
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The next of the tokens at hand.
    at: usize,
    /// The last token that was looked at; errors name its line.
    furthest: usize,
    /// Where the action at hand began; nowhere outside of actions.
    action: Option<Pos>,
    nesting: usize,
    functions: &'t Functions,
    code: Code,
    // Parts of lists that are not complete. They go into the code at once when they are, so that they lie side by side.
    open_nodes: Vec<Node>,
    open_commands: Vec<Command>,
    open_operands: Vec<Operand>,
    defined: Vec<Defined>,
}

/// A template that is complete.
struct Defined {
    name: Arc<str>,
    root: Span,
    slots: usize,
}

/// Moves what was opened since there were `from` of them to where it stays.
fn close<T>(open: &mut Vec<T>, from: usize, closed: &mut Vec<T>) -> Span {
    let start = closed.len();
    closed.extend(open.drain(from..));
    Span::new(start, closed.len())
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

impl<'t> Parser<'t> {
    fn error<T>(&self, message: impl Into<String>) -> Result1<T> {
        let token = self.lexer.tokens().get(self.furthest);
        let line = self.line(token.map_or(0, |token| token.span.start));
        Err(ParseError::new(&self.code.file, line, message.into()))
    }

    /// The line of a position, counted from 1. Only errors ask.
    fn line(&self, pos: Pos) -> u32 {
        let before = &self.text.as_bytes()[..pos as usize];
        u32::try_from(memchr::memchr_iter(b'\n', before).count() + 1).unwrap_or(u32::MAX)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        // There is nothing after these.
        if !matches!(token.kind, Kind::Eof | Kind::Error) {
            self.at += 1;
        }
        token
    }

    fn peek(&mut self) -> Token {
        // Nobody goes back to before an action that has been read to its end.
        if self.at >= self.lexer.tokens().len() {
            self.lexer.advance();
            self.at = 0;
            self.furthest = 0;
        }
        self.furthest = self.furthest.max(self.at);
        self.lexer.tokens()[self.at]
    }

    fn peek_kind(&mut self) -> Kind {
        self.peek().kind
    }

    fn skip_space(&mut self) {
        while self.peek_kind() == Kind::Space {
            self.at += 1;
        }
    }

    fn next_non_space(&mut self) -> Token {
        self.skip_space();
        self.next()
    }

    fn value(&self, token: Token) -> &'t str {
        &self.text[token.span.range()]
    }

    /// A token as messages show it.
    fn show(&self, token: Token) -> String {
        match token.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Error => self.lexer.message().to_owned(),
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

    fn unexpected<T>(&self, token: Token, context: &str) -> Result1<T> {
        if token.kind != Kind::Error {
            return self.error(format!("unexpected {} in {context}", self.show(token)));
        }
        let message = self.lexer.message();
        let mut extra = String::new();
        let begun = self.action.map(|pos| self.line(pos));
        if let Some(begun) = begun.filter(|begun| *begun != self.line(token.span.start)) {
            extra = format!(" in action started at {}:{begun}", self.code.file);
            if message.ends_with(" action") {
                extra.drain(.." in action".len());
            }
        }
        self.error(format!("{message}{extra}"))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result1<Token> {
        let token = self.next_non_space();
        if token.kind != kind {
            return self.unexpected(token, context);
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

    fn define(&mut self, name: Arc<str>, root: Span, slots: usize) -> Result1<()> {
        let known = self.defined.iter().position(|known| known.name == name);
        let template = Defined { name, root, slots };
        match known {
            None => self.defined.push(template),
            Some(at) if self.code.is_blank(self.defined[at].root) => self.defined[at] = template,
            Some(_) if self.code.is_blank(root) => {}
            Some(_) => {
                let name = quote(template.name.as_bytes());
                return self.error(format!("template: multiple definition of template {name}"));
            }
        }
        Ok(())
    }

    fn file_body(&mut self) -> Result1<()> {
        let mut scope = Scope::new();
        let from = self.open_nodes.len();
        while self.peek_kind() != Kind::Eof {
            if self.peek_kind() == Kind::LeftDelim {
                let mark = self.at;
                self.next();
                if self.next_non_space().kind == Kind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.at = mark;
            }
            match self.text_or_action(&mut scope)? {
                Parsed::Node(node) => self.open_nodes.push(node),
                Parsed::End(End::End) => return self.error("unexpected {{end}}"),
                Parsed::End(End::Else) => return self.error("unexpected {{else}}"),
            }
        }
        let name = self.code.file.clone();
        let root = self.close_nodes(from);
        self.define(name.clone(), root, scope.slots)?;
        // Whoever executes the file asks for the first one.
        if let Some(own) = self.defined.iter().position(|known| known.name == name) {
            self.defined.swap(0, own);
        }
        Ok(())
    }

    fn close_nodes(&mut self, from: usize) -> Span {
        close(&mut self.open_nodes, from, &mut self.code.nodes)
    }

    fn string(&mut self, token: Token) -> Result1<Vec<u8>> {
        match unquote(self.value(token)) {
            Some(text) => Ok(text),
            None => self.error("invalid syntax"),
        }
    }

    fn name(&mut self, token: Token, context: &str) -> Result1<Arc<str>> {
        match token.kind {
            Kind::Str | Kind::RawStr => {
                let text = self.string(token)?;
                Ok(lossy(&text).into())
            }
            _ => self.unexpected(token, context),
        }
    }

    fn definition(&mut self) -> Result1<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next_non_space();
        let name = self.name(token, CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let mut scope = Scope::new();
        let root = self.body_to_end(&mut scope, CONTEXT)?;
        self.define(name, root, scope.slots)
    }

    fn body_to_end(&mut self, scope: &mut Scope<'t>, context: &str) -> Result1<Span> {
        match self.list(scope)? {
            (root, End::End) => Ok(root),
            (_, End::Else) => self.error(format!("unexpected {{{{else}}}} in {context}")),
        }
    }

    fn list(&mut self, scope: &mut Scope<'t>) -> Result1<(Span, End)> {
        let from = self.open_nodes.len();
        loop {
            self.skip_space();
            if self.peek_kind() == Kind::Eof {
                return self.error("unexpected EOF");
            }
            match self.text_or_action(scope)? {
                Parsed::Node(node) => self.open_nodes.push(node),
                Parsed::End(end) => return Ok((self.close_nodes(from), end)),
            }
        }
    }

    fn text_or_action(&mut self, scope: &mut Scope<'t>) -> Result1<Parsed> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Parsed::Node(Node::Text(token.span))),
            Kind::LeftDelim => {
                self.action = Some(token.span.start);
                let parsed = self.action(scope);
                if parsed.is_ok() {
                    self.action = None;
                }
                parsed
            }
            _ => self.unexpected(token, "input"),
        }
    }

    fn action(&mut self, scope: &mut Scope<'t>) -> Result1<Parsed> {
        let mark = self.at;
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Keyword(Keyword::Block) => self.block(scope)?,
            Kind::Keyword(word @ (Keyword::Break | Keyword::Continue)) => self.leave_range(word, scope)?,
            Kind::Keyword(Keyword::Else) => {
                self.skip_space();
                if !matches!(self.peek_kind(), Kind::Keyword(Keyword::If | Keyword::With)) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Parsed::End(End::Else));
            }
            Kind::Keyword(Keyword::End) => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Parsed::End(End::End));
            }
            Kind::Keyword(Keyword::If) => Node::If(self.control("if", scope)?),
            Kind::Keyword(Keyword::Range) => Node::Range(self.control("range", scope)?),
            Kind::Keyword(Keyword::With) => Node::With(self.control("with", scope)?),
            Kind::Keyword(Keyword::Template) => {
                const CONTEXT: &str = "template clause";
                let token = self.next_non_space();
                let name = self.name(token, CONTEXT)?;
                self.skip_space();
                let pipe = match self.peek_kind() {
                    Kind::RightDelim => {
                        self.next();
                        None
                    }
                    _ => Some(self.pipeline(CONTEXT, Kind::RightDelim, scope)?),
                };
                self.invocation(Invocation {
                    pos: token.span.start,
                    name,
                    pipe,
                })
            }
            _ => {
                self.at = mark;
                self.pipeline_action(scope)?
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
            return self.unexpected(token, context);
        }
        if scope.ranges == 0 {
            return self.error(format!("{context} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn block(&mut self, scope: &mut Scope<'t>) -> Result1<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.name(token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim, scope)?;
        let mut inner = Scope::new();
        self.enter()?;
        let root = self.body_to_end(&mut inner, CONTEXT)?;
        self.nesting -= 1;
        self.define(name.clone(), root, inner.slots)?;
        Ok(self.invocation(Invocation {
            pos: token.span.start,
            name,
            pipe: Some(pipe),
        }))
    }

    fn control(&mut self, context: &str, scope: &mut Scope<'t>) -> Result1<Branch> {
        self.enter()?;
        let mark = scope.names.len();
        let pipe = self.pipeline(context, Kind::RightDelim, scope)?;
        let in_range = usize::from(context == "range");
        scope.ranges += in_range;
        let (list, end) = self.list(scope)?;
        scope.ranges -= in_range;
        let otherwise = match end {
            End::End => Span::default(),
            End::Else => self.otherwise(context, scope)?,
        };
        scope.names.truncate(mark);
        self.nesting -= 1;
        Ok(Branch {
            pipe,
            list,
            otherwise,
        })
    }

    fn otherwise(&mut self, context: &str, scope: &mut Scope<'t>) -> Result1<Span> {
        let from = self.open_nodes.len();
        let node = match (context, self.peek_kind()) {
            ("if", Kind::Keyword(Keyword::If)) => {
                self.next();
                Node::If(self.control("if", scope)?)
            }
            ("with", Kind::Keyword(Keyword::With)) => {
                self.next();
                Node::With(self.control("with", scope)?)
            }
            _ => {
                return match self.list(scope)? {
                    (list, End::End) => Ok(list),
                    (_, End::Else) => self.error("expected end; found {{else}}"),
                };
            }
        };
        self.open_nodes.push(node);
        Ok(self.close_nodes(from))
    }

    fn invocation(&mut self, invocation: Invocation) -> Node {
        self.code.invocations.push(invocation);
        Node::Template(last(&self.code.invocations))
    }
}

/// The place of what was added last. Lists are shorter than texts: [`MAX_TEXT`].
fn last<T>(list: &[T]) -> u32 {
    u32::try_from(list.len().saturating_sub(1)).unwrap_or(u32::MAX)
}
