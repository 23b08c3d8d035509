//! Working out: from trees and variables to values and texts, within a budget.
//!
//! Every step costs, and so does every byte that is made; whoever wrote the template cannot make the process wait or swell.

use std::sync::Arc;

use super::document::{FILTERED, Part};
use super::error::{Error, Fault};
use super::syntax::{Arguments, Binary, Expression, Node, Unary};
use super::value::Value;
use super::{filters, methods, tests};

/// How much one text may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps.
    pub steps: u64,
    /// Bytes of values and texts that are made on the way.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 500_000,
            bytes: 16 << 20,
        }
    }
}

/// How deeply macros may call each other.
const MAX_CALLS: usize = 6;
/// How many items `range` may have.
const MAX_RANGE: usize = 100_000;

/// What is left to spend.
pub(super) struct Budget {
    steps: u64,
    bytes: u64,
}

impl Budget {
    pub(super) fn steps(&mut self, count: usize) -> Result<(), Error> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.steps = self
            .steps
            .checked_sub(count)
            .ok_or_else(|| Error::new(Fault::TooLarge("the template takes too many steps".to_owned())))?;
        Ok(())
    }

    /// To be asked before something of this size is made.
    pub(super) fn bytes(&mut self, count: usize) -> Result<(), Error> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes = self
            .bytes
            .checked_sub(count)
            .ok_or_else(|| Error::new(Fault::TooLarge("the template makes too much text".to_owned())))?;
        Ok(())
    }

    /// Pays for a value that was made.
    pub(super) fn made(&mut self, value: Value) -> Result<Value, Error> {
        self.bytes(value.weight())?;
        Ok(value)
    }
}

/// Arguments by place and by name.
type Given<'p> = (Vec<Value>, Vec<(&'p str, Value)>);
/// A macro.
type Macro<'p> = (&'p str, &'p [(String, Option<Node>)], &'p [Part]);

/// Variables and what is left to spend.
pub(super) struct Evaluator<'p> {
    variables: &'p [(Arc<str>, Value)],
    scopes: Vec<Scope>,
    macros: Vec<Macro<'p>>,
    calls: usize,
    pub(super) budget: Budget,
}

#[derive(Default)]
struct Scope {
    names: Vec<(String, Value)>,
    /// A macro does not write what is outside of it.
    is_closed: bool,
}

impl<'p> Evaluator<'p> {
    pub(super) fn new(variables: &'p [(Arc<str>, Value)], limits: Limits) -> Self {
        Self {
            variables,
            scopes: vec![Scope::default()],
            macros: Vec::new(),
            calls: 0,
            budget: Budget {
                steps: limits.steps,
                bytes: limits.bytes,
            },
        }
    }

    fn variable(&self, name: &str) -> Option<Value> {
        let inner = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.names.iter().rev().find(|(known, _)| known == name));
        if let Some((_, value)) = inner {
            return Some(value.clone());
        }
        let outer = self.variables.iter().find(|(known, _)| **known == *name);
        outer.map(|(_, value)| value.clone())
    }

    /// Sets a variable where it is known, else in the innermost scope.
    fn assign(&mut self, name: &str, value: Value) {
        for scope in self.scopes.iter_mut().rev() {
            if let Some(known) = scope.names.iter_mut().find(|(known, _)| known == name) {
                known.1 = value;
                return;
            }
            if scope.is_closed {
                break;
            }
        }
        self.declare(name, value);
    }

    fn declare(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.push((name.to_owned(), value));
        }
    }

    /// What a text comes to.
    pub(super) fn print(&mut self, parts: &'p [Part], out: &mut String) -> Result<(), Error> {
        for part in parts {
            self.budget.steps(1)?;
            match part {
                Part::Plain(text) => self.write(text, out)?,
                Part::Print(line, node) => {
                    let value = self.value(node).map_err(|error| error.at(*line))?;
                    self.write(&value.printed(), out)?;
                }
                Part::If(line, branches, other) => {
                    let mut chosen = other;
                    for (condition, body) in branches {
                        if self.value(condition).map_err(|error| error.at(*line))?.is_true() {
                            chosen = body;
                            break;
                        }
                    }
                    self.print(chosen, out)?;
                }
                Part::For(line, names, over, body, other) => {
                    let over = self.value(over).map_err(|error| error.at(*line))?;
                    self.repeat(names, &over, body, other, out)
                        .map_err(|error| error.at(*line))?;
                }
                Part::Set(line, names, node) => {
                    let value = self.value(node).map_err(|error| error.at(*line))?;
                    for name in names {
                        self.assign(name, value.clone());
                    }
                }
                Part::SetBlock(_, name, body) => {
                    let text = self.printed(body)?;
                    self.assign(name, Value::text(text));
                }
                Part::Macro(_, name, parameters, body) => self.macros.push((name, parameters, body)),
                Part::Filter(line, node, body) => {
                    let text = self.printed(body)?;
                    self.scopes.push(Scope {
                        names: vec![(FILTERED.to_owned(), Value::text(text))],
                        is_closed: false,
                    });
                    let value = self.value(node).map_err(|error| error.at(*line));
                    self.scopes.pop();
                    self.write(&value?.printed(), out)?;
                }
            }
        }
        Ok(())
    }

    fn printed(&mut self, body: &'p [Part]) -> Result<String, Error> {
        let mut text = String::new();
        self.print(body, &mut text)?;
        Ok(text)
    }

    fn write(&mut self, text: &str, out: &mut String) -> Result<(), Error> {
        self.budget.bytes(text.len())?;
        out.push_str(text);
        Ok(())
    }

    fn repeat(
        &mut self,
        names: &'p [String],
        over: &Value,
        body: &'p [Part],
        other: &'p [Part],
        out: &mut String,
    ) -> Result<(), Error> {
        let items: Vec<Vec<Value>> = match over {
            Value::List(items) => items
                .iter()
                .map(|item| match (names.len(), item) {
                    (1, _) => vec![item.clone()],
                    (count, Value::List(parts)) => (0..count)
                        .map(|at| parts.get(at).cloned().unwrap_or(Value::Undefined))
                        .collect(),
                    _ => vec![item.clone()],
                })
                .collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| match names.len() {
                    1 => vec![Value::Text(Arc::clone(key))],
                    _ => vec![Value::Text(Arc::clone(key)), value.clone()],
                })
                .collect(),
            // Nunjucks walks through nothing else, and says nothing.
            _ => Vec::new(),
        };
        if items.is_empty() {
            return self.print(other, out);
        }
        let count = items.len();
        self.budget.bytes(count.saturating_mul(64))?;
        for (at, values) in items.into_iter().enumerate() {
            let position = [
                ("index", Value::count(at + 1)),
                ("index0", Value::count(at)),
                ("revindex", Value::count(count - at)),
                ("revindex0", Value::count(count - at - 1)),
                ("first", Value::Bool(at == 0)),
                ("last", Value::Bool(at + 1 == count)),
                ("length", Value::count(count)),
            ];
            let position = position.into_iter().map(|(name, value)| (Arc::from(name), value));
            let mut scope = Scope::default();
            scope
                .names
                .push(("loop".to_owned(), Value::Map(position.collect())));
            scope.names.extend(
                names
                    .iter()
                    .cloned()
                    .zip(values.into_iter().chain(std::iter::repeat(Value::Undefined))),
            );
            self.scopes.push(scope);
            let printed = self.print(body, out);
            self.scopes.pop();
            printed?;
        }
        Ok(())
    }

    /// What an expression comes to.
    pub(super) fn value(&mut self, node: &'p Node) -> Result<Value, Error> {
        self.budget.steps(1)?;
        match &node.expression {
            Expression::Literal(value) => Ok(value.clone()),
            Expression::Name(name) => Ok(self.variable(name).unwrap_or(Value::Undefined)),
            Expression::List(items) => {
                let values: Result<Vec<Value>, Error> = items.iter().map(|item| self.value(item)).collect();
                self.budget.made(Value::list(values?))
            }
            Expression::Map(entries) => {
                let mut values = Vec::new();
                for (key, value) in entries {
                    let key = self.value(key)?.shown();
                    values.push((key, self.value(value)?));
                }
                self.budget.made(Value::map(values))
            }
            Expression::Member(of, key) => {
                let of = self.value(of)?;
                let key = self.value(key)?;
                if let Value::Map(entries) = &of {
                    self.budget.steps(entries.len() / 8)?;
                }
                if let Value::Text(text) = &of {
                    self.budget.steps(text.len() / 8)?;
                }
                Ok(of.member(&key))
            }
            Expression::Call(of, arguments) => self.call(of, arguments),
            Expression::Filter(of, name, arguments) => {
                let of = self.value(of)?;
                let (positional, named) = self.arguments(arguments)?;
                filters::apply(&mut self.budget, name, &of, &positional, &named)
            }
            Expression::Test(of, name, arguments, negated) => {
                let of = self.value(of)?;
                let arguments: Result<Vec<Value>, Error> =
                    arguments.iter().map(|it| self.value(it)).collect();
                Ok(Value::Bool(tests::holds(name, &of, &arguments?)? != *negated))
            }
            Expression::Unary(sign, of) => {
                let of = self.value(of)?;
                Ok(match sign {
                    Unary::Not => Value::Bool(!of.is_true()),
                    Unary::Minus => Value::Number(-of.number()),
                    Unary::Plus => Value::Number(of.number()),
                })
            }
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right),
            Expression::Choice(condition, then, other) => match (self.value(condition)?.is_true(), other) {
                (true, _) => self.value(then),
                (false, Some(other)) => self.value(other),
                // As Nunjucks has it: nothing at all, which prints as nothing.
                (false, None) => Ok(Value::text("")),
            },
        }
    }

    fn arguments(&mut self, arguments: &'p Arguments) -> Result<Given<'p>, Error> {
        let positional: Result<Vec<Value>, Error> =
            arguments.positional.iter().map(|node| self.value(node)).collect();
        let mut named = Vec::new();
        for (name, node) in &arguments.named {
            named.push((name.as_str(), self.value(node)?));
        }
        Ok((positional?, named))
    }

    fn call(&mut self, of: &'p Node, arguments: &'p Arguments) -> Result<Value, Error> {
        let (positional, named) = self.arguments(arguments)?;
        match &of.expression {
            Expression::Member(object, key) => {
                let (object, key) = (self.value(object)?, self.value(key)?);
                methods::call(&mut self.budget, &object, &key.shown(), &positional)
            }
            Expression::Name(name) => {
                let known = self.macros.iter().rev().find(|(known, ..)| known == name);
                match (known.copied(), name.as_str()) {
                    (Some(known), _) => self.expand(known, positional, &named),
                    (None, "range") => self.range(&positional),
                    _ => Err(Error::failed(format!("there is no function called {name:?}"))),
                }
            }
            _ => Err(Error::failed("only functions and methods can be called")),
        }
    }

    fn expand(
        &mut self,
        (name, parameters, body): Macro<'p>,
        positional: Vec<Value>,
        named: &[(&str, Value)],
    ) -> Result<Value, Error> {
        if self.calls >= MAX_CALLS {
            return Err(Error::new(Fault::TooLarge(format!(
                "macros call each other more than {MAX_CALLS} deep, {name} last"
            ))));
        }
        let mut given = positional.into_iter();
        let mut scope = Scope {
            is_closed: true,
            ..Scope::default()
        };
        for (parameter, default) in parameters {
            let by_name = named.iter().find(|(known, _)| known == parameter);
            let value = match (given.next(), by_name, default) {
                (Some(value), ..) => value,
                (None, Some((_, value)), _) => value.clone(),
                (None, None, Some(default)) => self.value(default)?,
                (None, None, None) => Value::Undefined,
            };
            scope.names.push((parameter.clone(), value));
        }
        self.scopes.push(scope);
        self.calls += 1;
        let printed = self.printed(body);
        self.calls -= 1;
        self.scopes.pop();
        Ok(Value::text(printed?))
    }

    fn range(&mut self, arguments: &[Value]) -> Result<Value, Error> {
        let numbers: Vec<f64> = arguments.iter().map(Value::number).collect();
        let (start, end, step) = match numbers[..] {
            [end] => (0.0, end, 1.0),
            [start, end] => (start, end, 1.0),
            [start, end, step] => (start, end, step),
            _ => return Err(Error::failed("range takes one to three numbers")),
        };
        let is_sound = start.is_finite() && end.is_finite() && step.is_finite() && step != 0.0;
        let count = ((end - start) / step).ceil().max(0.0);
        let Some(count) = Value::Number(count)
            .index()
            .filter(|count| is_sound && *count <= MAX_RANGE)
        else {
            return Err(Error::failed(format!(
                "range wants numbers, a step that is not 0, and at most {MAX_RANGE} items"
            )));
        };
        self.budget.bytes(count.saturating_mul(16))?;
        let items = (0..count).map(|at| Value::Number(start + step * Value::count(at).number()));
        Ok(Value::list(items.collect()))
    }

    fn binary(&mut self, operator: Binary, left: &'p Node, right: &'p Node) -> Result<Value, Error> {
        let left = self.value(left)?;
        // What decides alone is the answer.
        match operator {
            Binary::Or if left.is_true() => return Ok(left),
            Binary::And if !left.is_true() => return Ok(left),
            _ => {}
        }
        let right = self.value(right)?;
        let compared =
            |holds: fn(std::cmp::Ordering) -> bool| Value::Bool(left.compare(&right).is_some_and(holds));
        Ok(match operator {
            Binary::Or | Binary::And => right,
            Binary::In => Value::Bool(contains(&right, &left)?),
            Binary::NotIn => Value::Bool(!contains(&right, &left)?),
            Binary::Like => Value::Bool(left.is_like(&right)),
            Binary::Unlike => Value::Bool(!left.is_like(&right)),
            Binary::Same => Value::Bool(left.is_same(&right)),
            Binary::Different => Value::Bool(!left.is_same(&right)),
            Binary::Less => compared(std::cmp::Ordering::is_lt),
            Binary::LessOrEqual => compared(std::cmp::Ordering::is_le),
            Binary::Greater => compared(std::cmp::Ordering::is_gt),
            Binary::GreaterOrEqual => compared(std::cmp::Ordering::is_ge),
            Binary::Join => self.joined(&left, &right)?,
            Binary::Add => match (&left, &right) {
                (
                    Value::Number(_) | Value::Bool(_) | Value::Null | Value::Undefined,
                    Value::Number(_) | Value::Bool(_) | Value::Null | Value::Undefined,
                ) => Value::Number(left.number() + right.number()),
                _ => self.joined(&left, &right)?,
            },
            Binary::Subtract => Value::Number(left.number() - right.number()),
            Binary::Multiply => Value::Number(left.number() * right.number()),
            Binary::Divide => Value::Number(left.number() / right.number()),
            Binary::FloorDivide => Value::Number((left.number() / right.number()).floor()),
            Binary::Remainder => Value::Number(left.number() % right.number()),
            Binary::Power => Value::Number(left.number().powf(right.number())),
        })
    }

    fn joined(&mut self, left: &Value, right: &Value) -> Result<Value, Error> {
        self.budget.bytes(left.weight() + right.weight())?;
        let (left, right) = (left.shown(), right.shown());
        Ok(Value::text(format!("{left}{right}")))
    }
}

fn contains(within: &Value, sought: &Value) -> Result<bool, Error> {
    match within {
        Value::List(items) => Ok(items.iter().any(|item| item.is_same(sought))),
        Value::Text(text) => Ok(text.contains(&*sought.shown())),
        Value::Map(entries) => Ok(entries.iter().any(|(key, _)| **key == *sought.shown())),
        _ => Err(Error::failed(format!(
            "\"in\" cannot look for {:?} in {:?}",
            sought.shown(),
            within.shown()
        ))),
    }
}
