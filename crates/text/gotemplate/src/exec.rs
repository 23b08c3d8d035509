//! Walks the nodes of a template. What a value is, and what an error says, follows Go's `text/template`, down to the
//! difference between no value and a nil one, and to which node is blamed.

mod eval;

use crate::ast::{Branch, Code, Command, Declared, Invocation, Node, Operand, Pipe, Shown, Span, Template};
use crate::error::{ExecError, Fault};
use crate::machine::Machine;
use crate::value::{Elem, Value};

/// A variable. Elements of a list of anything are boxed: their type is an interface until a pipeline unwraps them,
/// and messages say so.
#[derive(Clone, Default)]
pub(crate) struct Slot {
    pub(crate) value: Value,
    pub(crate) boxed: bool,
}

/// The node that is blamed for what goes wrong.
#[derive(Clone, Copy)]
enum At<'t> {
    Nothing,
    Action(&'t Pipe),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
    Invocation(&'t Invocation),
}

enum Flow {
    Next,
    Break,
    Continue,
}

type Outcome<T> = Result<T, Box<ExecError>>;

struct State<'m, 'a, 't> {
    machine: &'m mut Machine<'a>,
    template: &'t Template,
    code: &'t Code,
    at: At<'t>,
    /// Where this template's variables start.
    base: usize,
}

/// Executes a template; what it prints is added to the machine's output.
pub(crate) fn execute(machine: &mut Machine<'_>, template: &Template, data: &Value) -> Outcome<()> {
    let base = machine.frame.len();
    machine.frame.resize_with(base + template.slots, Slot::default);
    machine.frame[base].value = data.clone();
    let mut state = State {
        machine,
        template,
        code: &template.code,
        at: At::Nothing,
        base,
    };
    let result = match state.machine.descend() {
        Ok(()) => {
            let walked = state.walk(data, false, template.root);
            state.machine.depth -= 1;
            walked.map(|_| ())
        }
        Err(fault) => Err(state.fault(&fault)),
    };
    machine.frame.truncate(base);
    result
}

impl<'t> State<'_, '_, 't> {
    fn error<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err(self.fault(&Fault::Message(message.into())))
    }

    /// The error at the node at hand.
    fn fault(&self, fault: &Fault) -> Box<ExecError> {
        let code = self.code;
        let (pos, context) = match self.at {
            At::Nothing => (0, String::new()),
            At::Action(pipe) => (pipe.pos, format!("{{{{{}}}}}", Shown::pipe(code, pipe))),
            At::Pipe(pipe) => (pipe.pos, Shown::pipe(code, pipe)),
            At::Command(command) => (command.pos, Shown::command(code, command)),
            At::Operand(operand) => (operand.pos, Shown::operand(code, operand)),
            At::Invocation(invocation) => (invocation.pos, Shown::invocation(code, invocation)),
        };
        Box::new(ExecError {
            location: code.location(pos),
            template: crate::text::quote(self.template.name.as_bytes()),
            context,
            message: fault.to_string(),
        })
    }

    fn spend(&mut self) -> Outcome<()> {
        self.machine.spend(1).map_err(|fault| self.fault(&fault))
    }

    fn walk(&mut self, dot: &Value, boxed: bool, list: Span) -> Outcome<Flow> {
        let code = self.code;
        for node in &code.nodes[list.range()] {
            self.spend()?;
            match node {
                Node::Text(span) | Node::Literal(span) => {
                    let printed = self.machine.print(code.slice(*span));
                    printed.map_err(|fault| self.fault(&fault))?;
                }
                Node::Action(id) => {
                    let pipe = code.pipe(*id);
                    self.at = At::Action(pipe);
                    let value = self.pipeline(dot, boxed, *id)?;
                    if pipe.variables.is_empty() {
                        self.at = At::Action(pipe);
                        self.print(&value)?;
                    }
                }
                Node::If(branch) => {
                    let condition = self.pipeline(dot, boxed, branch.pipe)?;
                    let flow = match condition.truth() {
                        true => self.walk(dot, boxed, branch.list)?,
                        false => self.otherwise(dot, boxed, branch)?,
                    };
                    if !matches!(flow, Flow::Next) {
                        return Ok(flow);
                    }
                }
                Node::With(branch) => {
                    let value = self.pipeline(dot, boxed, branch.pipe)?;
                    let flow = match value.truth() {
                        true => self.walk(&value, false, branch.list)?,
                        false => self.otherwise(dot, boxed, branch)?,
                    };
                    if !matches!(flow, Flow::Next) {
                        return Ok(flow);
                    }
                }
                Node::Range(branch) => {
                    let flow = self.range(dot, boxed, branch)?;
                    if !matches!(flow, Flow::Next) {
                        return Ok(flow);
                    }
                }
                Node::Template(at) => self.invoke(dot, boxed, &code.invocations[*at as usize])?,
                Node::Break => return Ok(Flow::Break),
                Node::Continue => return Ok(Flow::Continue),
            }
        }
        Ok(Flow::Next)
    }

    fn otherwise(&mut self, dot: &Value, boxed: bool, branch: &Branch) -> Outcome<Flow> {
        self.walk(dot, boxed, branch.otherwise)
    }

    fn invoke(&mut self, dot: &Value, boxed: bool, invocation: &'t Invocation) -> Outcome<()> {
        self.at = At::Invocation(invocation);
        let Some(template) = self.machine.find(&invocation.name) else {
            let name = crate::text::quote(invocation.name.as_bytes());
            return self.error(format!("template {name} not defined"));
        };
        let data = match invocation.pipe {
            Some(pipe) => self.pipeline(dot, boxed, pipe)?,
            None => Value::Invalid,
        };
        execute(self.machine, &template, &data)
    }

    fn range(&mut self, dot: &Value, boxed: bool, branch: &Branch) -> Outcome<Flow> {
        let value = self.pipeline(dot, boxed, branch.pipe)?;
        let mut count = 0_usize;
        match &value {
            Value::Invalid | Value::Nil => {}
            Value::List(list) => {
                let boxed = list.ty.elem == Elem::Any;
                for (at, item) in list.items.iter().enumerate() {
                    count += 1;
                    if let Flow::Break = self.iteration(branch, Value::int(at as i64), item, boxed)? {
                        break;
                    }
                }
            }
            Value::Bytes(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    count += 1;
                    let item = Value::Uint(crate::value::UintType::Uint8, u64::from(*byte));
                    if let Flow::Break = self.iteration(branch, Value::int(at as i64), &item, false)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                let boxed = map.ty().elem == Elem::Any;
                // A copy: the body may change the map.
                for (key, item) in map.entries() {
                    count += 1;
                    if let Flow::Break = self.iteration(branch, Value::Str(key), &item, boxed)? {
                        break;
                    }
                }
            }
            other => {
                let shown = crate::fmt::print_bounded(other);
                return self.error(format!("range can't iterate over {shown}"));
            }
        }
        match count {
            0 => self.otherwise(dot, boxed, branch),
            _ => Ok(Flow::Next),
        }
    }

    fn iteration(&mut self, branch: &Branch, key: Value, item: &Value, boxed: bool) -> Outcome<Flow> {
        self.spend()?;
        let element = Slot {
            value: item.clone(),
            boxed,
        };
        let index = Slot {
            value: key,
            boxed: false,
        };
        let code = self.code;
        match code.variables(code.pipe(branch.pipe)) {
            [] => {}
            [one] => self.store(one, element)?,
            [first, second, ..] => {
                self.store(first, index)?;
                self.store(second, element)?;
            }
        }
        self.walk(item, boxed, branch.list)
    }

    fn store(&mut self, variable: &Declared, slot: Slot) -> Outcome<()> {
        match variable
            .slot
            .and_then(|at| self.machine.frame.get_mut(self.base + at as usize))
        {
            Some(place) => {
                *place = slot;
                Ok(())
            }
            None => {
                let name = crate::text::lossy(self.code.slice(variable.name));
                self.error(format!("undefined variable: {name}"))
            }
        }
    }

    fn print(&mut self, value: &Value) -> Outcome<()> {
        let printed = match value {
            Value::Str(text) => self.machine.print(text),
            Value::Invalid | Value::Nil => self.machine.print(b"<no value>"),
            other => crate::fmt::print(other)
                .map_err(Fault::Message)
                .and_then(|text| self.machine.print(&text)),
        };
        printed.map_err(|fault| self.fault(&fault))
    }
}
