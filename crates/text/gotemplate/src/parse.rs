//! From tokens to templates, with Go's error messages.

pub(crate) mod number;
mod pipeline;
mod scope;

use std::sync::Arc;

use self::scope::Scope;
use crate::ast::{Branch, Invocation, List, Node, Pos, Template};
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
}

/// Texts are shorter than 4 GiB: [`MAX_TEXT`].
fn pos(at: usize) -> Pos {
    Pos::try_from(at).unwrap_or(Pos::MAX)
}
