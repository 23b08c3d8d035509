//! Pipelines: what stands within an action, from declarations down to single operands.

use std::sync::Arc;

use super::scope::Scope;
use super::{Parser, Result1, number, pos};
use crate::ast::{Command, Declared, Operand, OperandKind, Pipe};
use crate::lex::Kind;
use crate::text::quote;

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: &Kind, scope: &mut Scope) -> Result1<Pipe> {
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
