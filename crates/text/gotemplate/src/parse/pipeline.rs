//! Pipelines: what stands within an action, from declarations down to single operands.

use std::sync::OnceLock;

use super::scope::Scope;
use super::{Parser, Result1, close, last, number};
use crate::ast::{Command, Declared, Literal, Node, Operand, OperandKind, Pipe, PipeId, Shown, Span};
use crate::lex::{Kind, Token};
use crate::text::quote;

impl<'t> Parser<'t> {
    /// An action that is a pipeline.
    pub(super) fn pipeline_action(&mut self, scope: &mut Scope<'t>) -> Result1<Node> {
        let (pipes, commands) = (self.code.pipes.len(), self.code.commands.len());
        let (operands, literals) = (self.code.operands.len(), self.code.literals.len());
        let id = self.pipeline("command", Kind::RightDelim, scope)?;
        // Charts write the braces of other template languages as strings, by the thousand. Such an action is text.
        let pipe = self.code.pipe(id);
        if let ([], [command]) = (self.code.variables(pipe), self.code.commands(pipe))
            && let [operand] = self.code.args(command)
            && let OperandKind::Str(at) = operand.kind
            && let literal = &self.code.literals[at as usize]
            && literal.value.get().is_none()
        {
            let content = literal.content;
            self.code.pipes.truncate(pipes);
            self.code.commands.truncate(commands);
            self.code.operands.truncate(operands);
            self.code.literals.truncate(literals);
            return Ok(Node::Literal(content));
        }
        Ok(Node::Action(id))
    }

    pub(super) fn pipeline(&mut self, context: &str, end: Kind, scope: &mut Scope<'t>) -> Result1<PipeId> {
        self.skip_space();
        let mut pipe = Pipe {
            pos: self.peek().span.start,
            assigns: false,
            variables: Span::default(),
            commands: Span::default(),
        };
        self.declarations(&mut pipe, context, scope)?;
        let from = self.open_commands.len();
        loop {
            self.skip_space();
            let kind = self.peek_kind();
            if kind == end {
                self.next();
                pipe.commands = close(&mut self.open_commands, from, &mut self.code.commands);
                self.check_pipeline(&pipe, context)?;
                scope.settle(self.code.variables(&pipe));
                self.code.pipes.push(pipe);
                return Ok(last(&self.code.pipes));
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
                | Kind::LeftParen => {
                    let command = self.command(scope)?;
                    self.open_commands.push(command);
                }
                _ => {
                    let token = self.next();
                    return self.unexpected(token, context);
                }
            }
        }
    }

    fn declarations(&mut self, pipe: &mut Pipe, context: &str, scope: &mut Scope<'t>) -> Result1<()> {
        let mut names: [Option<Span>; 2] = [None; 2];
        loop {
            self.skip_space();
            if self.peek_kind() != Kind::Variable {
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
                    push(&mut names, variable.span);
                    break;
                }
                Kind::Char if self.value(next) == "," => {
                    self.next();
                    push(&mut names, variable.span);
                    if context != "range" || names[1].is_some() {
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
        let from = self.code.variables.len();
        for name in names.into_iter().flatten() {
            let text = &self.text[name.range()];
            let slot = match pipe.assigns {
                true => scope.find(text),
                false => Some(scope.declare(text)),
            };
            if slot.is_none() {
                scope.declare(text);
            }
            self.code.variables.push(Declared { name, slot });
        }
        pipe.variables = Span::new(from, self.code.variables.len());
        Ok(())
    }

    fn check_pipeline(&self, pipe: &Pipe, context: &str) -> Result1<()> {
        let commands = self.code.commands(pipe);
        if commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (at, command) in commands.iter().enumerate().skip(1) {
            if let Some(
                OperandKind::Bool(_)
                | OperandKind::Dot
                | OperandKind::Nil
                | OperandKind::Number(_)
                | OperandKind::Str(_),
            ) = self.code.args(command).first().map(|first| first.kind)
            {
                return self.error(format!("non executable command in pipeline stage {}", at + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self, scope: &mut Scope<'t>) -> Result1<Command> {
        self.skip_space();
        let pos = self.peek().span.start;
        let from = self.open_operands.len();
        loop {
            self.skip_space();
            if let Some(operand) = self.operand(scope)? {
                self.open_operands.push(operand);
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
                    return self.unexpected(token, "operand");
                }
            }
            break;
        }
        let args = close(&mut self.open_operands, from, &mut self.code.operands);
        if args.is_empty() {
            return self.error("empty command");
        }
        Ok(Command { pos, args })
    }

    fn operand(&mut self, scope: &mut Scope<'t>) -> Result1<Option<Operand>> {
        let Some(mut operand) = self.term(scope)? else {
            return Ok(None);
        };
        let mut fields = self.peek();
        if fields.kind != Kind::Field {
            return Ok(Some(operand));
        }
        // Nothing stands between them.
        while self.peek_kind() == Kind::Field {
            fields.span.end = self.next().span.end;
        }
        let pos = fields.span.start;
        match operand.kind {
            OperandKind::Field | OperandKind::Variable { .. } => {
                operand.text.end = fields.span.end;
                operand.pos = pos;
            }
            OperandKind::Bool(_)
            | OperandKind::Str(_)
            | OperandKind::Number(_)
            | OperandKind::Nil
            | OperandKind::Dot => {
                let shown = quote(Shown::operand(&self.code, &operand).as_bytes());
                return self.error(format!("unexpected . after term {shown}"));
            }
            _ => {
                self.code.operands.push(operand);
                return Ok(Some(Operand {
                    pos,
                    text: fields.span,
                    kind: OperandKind::Chain(last(&self.code.operands)),
                }));
            }
        }
        Ok(Some(operand))
    }

    fn term(&mut self, scope: &mut Scope<'t>) -> Result1<Option<Operand>> {
        self.skip_space();
        let token = self.peek();
        let kind = match token.kind {
            Kind::Identifier => {
                self.next();
                let name = self.value(token);
                match self.functions.find(name) {
                    Some(index) => OperandKind::Function(index),
                    None => return self.error(format!("function {} not defined", quote(name.as_bytes()))),
                }
            }
            Kind::Dot => {
                self.next();
                OperandKind::Dot
            }
            Kind::Nil => {
                self.next();
                OperandKind::Nil
            }
            Kind::Variable => {
                self.next();
                let name = self.value(token);
                if !scope.knows(name) {
                    return self.error(format!("undefined variable {}", quote(name.as_bytes())));
                }
                OperandKind::Variable {
                    slot: scope.find(name),
                    name_end: token.span.end,
                }
            }
            Kind::Field => {
                self.next();
                OperandKind::Field
            }
            Kind::Bool => {
                self.next();
                OperandKind::Bool(self.value(token) == "true")
            }
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                self.next();
                match number::read(self.value(token), token.kind) {
                    Ok(number) => self.code.numbers.push(number),
                    Err(message) => return self.error(message),
                }
                OperandKind::Number(last(&self.code.numbers))
            }
            Kind::LeftParen => {
                self.next();
                self.enter()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen, scope)?;
                self.nesting -= 1;
                OperandKind::Pipe(pipe)
            }
            Kind::Str | Kind::RawStr => {
                self.next();
                let literal = self.literal(token)?;
                self.code.literals.push(literal);
                OperandKind::Str(last(&self.code.literals))
            }
            _ => return Ok(None),
        };
        Ok(Some(Operand {
            pos: token.span.start,
            text: token.span,
            kind,
        }))
    }

    fn literal(&mut self, token: Token) -> Result1<Literal> {
        let special = if token.kind == Kind::Str { b'\\' } else { b'\r' };
        let stands_as_it_is = !self.value(token).as_bytes().contains(&special);
        let value = OnceLock::new();
        if !stands_as_it_is {
            let text = self.string(token)?;
            value.get_or_init(|| text.into());
        }
        Ok(Literal {
            content: Span {
                start: token.span.start + 1,
                end: token.span.end - 1,
            },
            value,
        })
    }
}

/// Puts a name into the first free place, or the last.
fn push(names: &mut [Option<Span>; 2], name: Span) {
    let at = usize::from(names[0].is_some());
    names[at] = Some(name);
}
