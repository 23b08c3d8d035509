//! Pipelines, commands, fields and calls.

use super::{At, Outcome, Slot, State};
use crate::ast::{Command, Number, Operand, OperandKind, PipeId, Shown, Span, field_names};
use crate::functions::{Func, Param};
use crate::machine::MissingKey;
use crate::text::lossy;
use crate::value::{ANY_MAP, Elem, IntType, UintType, Value};

/// A value, and whether its type is an interface.
struct Boxed(Value, bool);

impl Boxed {
    fn type_name(&self) -> &'static str {
        match self.1 {
            true => "interface {}",
            false => self.0.type_name(),
        }
    }
}

impl<'t> State<'_, '_, 't> {
    pub(super) fn pipeline(&mut self, dot: &Value, boxed: bool, id: PipeId) -> Outcome<Value> {
        let code = self.code;
        let pipe = code.pipe(id);
        self.at = At::Pipe(pipe);
        let mut last = None;
        for command in code.commands(pipe) {
            let value = self.command(dot, boxed, command, last)?;
            // An interface gives way to what is in it, and an empty one to nothing.
            last = Some(if let Value::Nil = value {
                Value::Invalid
            } else {
                value
            });
        }
        let value = last.unwrap_or_default();
        for variable in code.variables(pipe) {
            let slot = Slot {
                value: value.clone(),
                boxed: false,
            };
            self.store(variable, slot)?;
        }
        Ok(value)
    }

    fn command(
        &mut self,
        dot: &Value,
        boxed: bool,
        command: &'t Command,
        last: Option<Value>,
    ) -> Outcome<Value> {
        self.spend()?;
        let code = self.code;
        let Some((first, rest)) = code.args(command).split_first() else {
            return self.error("empty command");
        };
        match first.kind {
            OperandKind::Field => {
                self.at = At::Operand(first);
                let start = Boxed(dot.clone(), boxed);
                return Ok(self.fields(dot, boxed, start, first, first.text, rest, last)?.0);
            }
            OperandKind::Chain(start) => {
                self.at = At::Operand(first);
                let start = self.chain_start(dot, boxed, first, &code.operands[start as usize])?;
                return Ok(self.fields(dot, boxed, start, first, first.text, rest, last)?.0);
            }
            OperandKind::Function(index) => {
                self.at = At::Operand(first);
                return self.function(dot, boxed, index, At::Command(command), rest, last);
            }
            OperandKind::Pipe(pipe) => {
                self.not_a_function(first, rest, last.as_ref())?;
                return self.pipeline(dot, boxed, pipe);
            }
            OperandKind::Variable { slot, name_end } => {
                self.at = At::Operand(first);
                let start = self.variable(first, slot, name_end)?;
                let fields = Span {
                    start: name_end,
                    ..first.text
                };
                if fields.is_empty() {
                    self.not_a_function(first, rest, last.as_ref())?;
                    return Ok(start.0);
                }
                return Ok(self.fields(dot, boxed, start, first, fields, rest, last)?.0);
            }
            _ => {}
        }
        self.at = At::Operand(first);
        self.not_a_function(first, rest, last.as_ref())?;
        match first.kind {
            OperandKind::Bool(value) => Ok(Value::Bool(value)),
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => self.error("nil is not a command"),
            OperandKind::Number(at) => self.ideal(first, at),
            OperandKind::Str(at) => Ok(Value::Str(code.literal(at))),
            _ => self.error(format!("can't evaluate command \"{}\"", self.shown(first))),
        }
    }

    fn not_a_function(&self, first: &Operand, rest: &[Operand], last: Option<&Value>) -> Outcome<()> {
        if rest.is_empty() && last.is_none() {
            return Ok(());
        }
        self.error(format!(
            "can't give argument to non-function {}",
            self.shown(first)
        ))
    }

    fn shown(&self, operand: &Operand) -> String {
        Shown::operand(self.code, operand)
    }

    fn variable(&self, operand: &Operand, slot: Option<u32>, name_end: u32) -> Outcome<Boxed> {
        match slot.and_then(|slot| self.machine.frame.get(self.base + slot as usize)) {
            Some(slot) => Ok(Boxed(slot.value.clone(), slot.boxed)),
            None => {
                let name = Span {
                    end: name_end,
                    ..operand.text
                };
                let name = lossy(self.code.slice(name));
                self.error(format!("undefined variable: {name}"))
            }
        }
    }

    fn number(&self, at: u32) -> &'t Number {
        &self.code.numbers[at as usize]
    }

    fn ideal(&self, operand: &Operand, at: u32) -> Outcome<Value> {
        let text = lossy(self.code.slice(operand.text));
        let is_hex = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        let is_float = !is_hex && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P']);
        match self.number(at) {
            Number {
                float: Some(float), ..
            } if is_float => Ok(Value::Float(*float)),
            Number { int: Some(int), .. } => Ok(Value::int(*int)),
            _ => self.error(format!("{text} overflows int")),
        }
    }

    fn chain_start(
        &mut self,
        dot: &Value,
        boxed: bool,
        chain: &'t Operand,
        start: &'t Operand,
    ) -> Outcome<Boxed> {
        match start.kind {
            OperandKind::Nil => self.error(format!(
                "indirection through explicit nil in {}",
                self.shown(chain)
            )),
            OperandKind::Pipe(pipe) => {
                self.at = At::Operand(start);
                Ok(Boxed(self.pipeline(dot, boxed, pipe)?, false))
            }
            OperandKind::Function(index) => {
                self.at = At::Operand(start);
                let value = self.function(dot, boxed, index, At::Operand(start), &[], None)?;
                Ok(Boxed(value, false))
            }
            _ => self.error(format!("can't evaluate field of {}", self.shown(start))),
        }
    }

    /// Follows the fields; only the last one gets the arguments.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a field is evaluated with, none of which is a thing of its own"
    )]
    fn fields(
        &mut self,
        dot: &Value,
        boxed: bool,
        start: Boxed,
        node: &'t Operand,
        fields: Span,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Outcome<Boxed> {
        let mut receiver = start;
        let mut names = field_names(self.code.slice(fields));
        let Some(mut name) = names.next() else {
            return Ok(receiver);
        };
        for next in names {
            receiver = self.field(dot, boxed, &receiver, name, node, &[], None)?;
            name = next;
        }
        self.field(dot, boxed, &receiver, name, node, args, last)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a field is evaluated with, none of which is a thing of its own"
    )]
    fn field(
        &mut self,
        dot: &Value,
        boxed: bool,
        receiver: &Boxed,
        name: &[u8],
        node: &'t Operand,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Outcome<Boxed> {
        let has_args = !args.is_empty() || last.is_some();
        let methods: &'static [Func] = match &receiver.0 {
            Value::Invalid if self.machine.missing_key == MissingKey::Error => {
                return self.error(format!("nil data; no entry for key \"{}\"", lossy(name)));
            }
            Value::Invalid => return Ok(Boxed(Value::Invalid, false)),
            Value::Nil => {
                let name = lossy(name);
                return self.error(format!("nil pointer evaluating interface {{}}.{name}"));
            }
            Value::Map(map) => map.ty().methods,
            Value::List(list) => list.ty.methods,
            Value::Struct(value) => value.ty.methods,
            Value::Time(_) => crate::time::TIME_METHODS,
            Value::Duration(_) => crate::time::DURATION_METHODS,
            _ => &[],
        };
        if let Some(method) = methods.iter().find(|method| method.name.as_bytes() == name) {
            let value = self.call(
                dot,
                boxed,
                method,
                Some(&receiver.0),
                At::Operand(node),
                args,
                last,
            )?;
            return Ok(Boxed(value, false));
        }
        match &receiver.0 {
            Value::Struct(value) => {
                if let Some(field) = value.field(name) {
                    if has_args {
                        let name = lossy(name);
                        return self.error(format!("{name} has arguments but cannot be invoked as function"));
                    }
                    return Ok(Boxed(field.clone(), false));
                }
            }
            Value::Map(map) => {
                if has_args {
                    let name = lossy(name);
                    return self.error(format!("{name} is not a method but has arguments"));
                }
                let boxed = map.ty().elem == Elem::Any;
                return match map.get(name) {
                    Some(value) => Ok(Boxed(value, boxed)),
                    None => match self.machine.missing_key {
                        MissingKey::Invalid => Ok(Boxed(Value::Invalid, false)),
                        MissingKey::Zero => Ok(Boxed(map.ty().elem.zero(), boxed)),
                        MissingKey::Error => {
                            self.error(format!("map has no entry for key \"{}\"", lossy(name)))
                        }
                    },
                };
            }
            _ => {}
        }
        self.error(format!(
            "can't evaluate field {} in type {}",
            lossy(name),
            receiver.type_name()
        ))
    }

    fn function(
        &mut self,
        dot: &Value,
        boxed: bool,
        index: u32,
        node: At<'t>,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Outcome<Value> {
        let functions = self.machine.functions;
        let Some(function) = functions.get(index) else {
            return self.error("function is not in the table");
        };
        if index == functions.and || index == functions.or {
            return self.and_or(dot, boxed, function.name, index == functions.or, args, last);
        }
        self.call(dot, boxed, function, None, node, args, last)
    }

    /// The two functions that do not look at all of their arguments.
    fn and_or(
        &mut self,
        dot: &Value,
        boxed: bool,
        name: &str,
        is_or: bool,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Outcome<Value> {
        if args.is_empty() && last.is_none() {
            return self.error(format!("wrong number of args for {name}: want at least 1 got 0"));
        }
        let mut value = Value::Invalid;
        for arg in args {
            value = self.argument(dot, boxed, Param::Any, arg)?;
            if value.truth() == is_or {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what a call is evaluated with, none of which is a thing of its own"
    )]
    fn call(
        &mut self,
        dot: &Value,
        boxed: bool,
        function: &Func,
        receiver: Option<&Value>,
        node: At<'t>,
        args: &'t [Operand],
        last: Option<Value>,
    ) -> Outcome<Value> {
        let name = function.name;
        let given = args.len() + usize::from(last.is_some());
        let wanted = function.params.len();
        if function.variadic {
            if given < wanted - 1 {
                return self.error(format!(
                    "wrong number of args for {name}: want at least {} got {}",
                    wanted - 1,
                    args.len()
                ));
            }
        } else if given != wanted {
            return self.error(format!(
                "wrong number of args for {name}: want {wanted} got {given}"
            ));
        }
        let param = |at: usize| match function.params.get(at) {
            Some(param) => *param,
            None => function.params.last().copied().unwrap_or(Param::Any),
        };
        let mut values = Vec::with_capacity(given + usize::from(receiver.is_some()));
        values.extend(receiver.cloned());
        for (at, arg) in args.iter().enumerate() {
            values.push(self.argument(dot, boxed, param(at), arg)?);
        }
        if let Some(last) = last {
            values.push(self.validate(last, param(given - 1))?);
        }
        let made = (function.call)(self.machine, &values).and_then(|value| {
            // Each function bounds what it makes of a number; what it makes of its arguments is bounded here, so that text
            // which is doubled again and again ends.
            let size = match &value {
                Value::Str(text) | Value::Bytes(text) => text.len(),
                Value::List(list) => list.items.len() * size_of::<Value>(),
                _ => return Ok(value),
            };
            self.machine.spend_bytes(size).map(|()| value)
        });
        made.map_err(|fault| {
            self.at = node;
            let mut error = self.fault(&fault);
            error.message = format!("error calling {name}: {}", error.message);
            error
        })
    }

    /// Whether a parameter takes a value. Nothing becomes nil where that is possible.
    fn validate(&self, value: Value, param: Param) -> Outcome<Value> {
        match value {
            Value::Invalid if param.can_be_nil() => Ok(Value::Nil),
            Value::Invalid => self.error(format!("invalid value; expected {}", param.name())),
            value if param.accepts(&value) => Ok(match (param, value) {
                // Within the function it is what the parameter says.
                (Param::Map, Value::Map(map)) => Value::Map(map.retyped(&ANY_MAP)),
                (_, value) => value,
            }),
            value => self.error(format!(
                "wrong type for value; expected {}; got {}",
                param.name(),
                value.type_name()
            )),
        }
    }

    fn argument(&mut self, dot: &Value, boxed: bool, param: Param, node: &'t Operand) -> Outcome<Value> {
        self.at = At::Operand(node);
        let value = match node.kind {
            OperandKind::Dot => dot.clone(),
            OperandKind::Nil if param.can_be_nil() => return Ok(Value::Nil),
            OperandKind::Nil => return self.error(format!("cannot assign nil to {}", param.name())),
            OperandKind::Field => {
                let start = Boxed(dot.clone(), boxed);
                self.fields(dot, boxed, start, node, node.text, &[], None)?.0
            }
            OperandKind::Variable { slot, name_end } => {
                let start = self.variable(node, slot, name_end)?;
                let fields = Span {
                    start: name_end,
                    ..node.text
                };
                self.fields(dot, boxed, start, node, fields, &[], None)?.0
            }
            OperandKind::Pipe(pipe) => self.pipeline(dot, boxed, pipe)?,
            OperandKind::Function(index) => self.function(dot, boxed, index, At::Operand(node), &[], None)?,
            OperandKind::Chain(start) => {
                let start = &self.code.operands[start as usize];
                let start = self.chain_start(dot, boxed, node, start)?;
                self.fields(dot, boxed, start, node, node.text, &[], None)?.0
            }
            OperandKind::Bool(_) | OperandKind::Number(_) | OperandKind::Str(_) => {
                return self.literal(param, node);
            }
        };
        self.validate(value, param)
    }

    /// A literal takes the type of its parameter, if it can.
    fn literal(&self, param: Param, node: &Operand) -> Outcome<Value> {
        let value = match (param, node.kind) {
            (Param::Any, OperandKind::Number(at)) => return self.ideal(node, at),
            (Param::Any | Param::Bool, OperandKind::Bool(value)) => Some(Value::Bool(value)),
            (Param::Any | Param::Str, OperandKind::Str(at)) => Some(Value::Str(self.code.literal(at))),
            (param, OperandKind::Number(at)) => {
                let number = self.number(at);
                match param {
                    Param::Int => number.int.map(Value::int),
                    Param::Int64 => number.int.map(|int| Value::Int(IntType::Int64, int)),
                    Param::Duration => number.int.map(Value::Duration),
                    Param::Uint64 => number.uint.map(|uint| Value::Uint(UintType::Uint64, uint)),
                    Param::Float => number.float.map(Value::Float),
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(value) = value {
            return Ok(value);
        }
        let expected = match param {
            Param::Bool => "bool",
            Param::Str => "string",
            Param::Int | Param::Int64 | Param::Duration => "integer",
            Param::Uint64 => "unsigned integer",
            Param::Float => "float",
            _ => {
                let (shown, name) = (self.shown(node), param.name());
                return self.error(format!("can't handle {shown} for arg of type {name}"));
            }
        };
        self.error(format!("expected {expected}; found {}", self.shown(node)))
    }
}
