//! The value of a tree, in a scope.

use std::cell::Cell;
use std::rc::Rc;

use fairway_text_gotemplate::sprig::regexes;
use fairway_text_gotemplate::value::{Entries, IntType};
use fairway_text_gotemplate::{Map, Value, time};

use super::builtins;
use super::numbers::number;
use super::operators::{arithmetic, boolean, fetch, is_equal, is_in, is_ordered, slice, text, type_name};
use super::parse::{Node, Operator};
use super::{ExprError, MAX_STEPS, error};
use crate::facts::Facts;
use crate::functions;

/// What compiling a pattern costs: it is done anew each time.
const PATTERN: usize = 500;

/// How deep a value may be nested that is printed.
const MAX_PRINTED: u32 = 100;

/// What names mean, and what functions may ask.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Variables: `app`, `context`, `time`, ...
    pub variables: &'a Map,
    /// What is known besides.
    pub facts: &'a Facts,
    /// What all evaluations together may still cost.
    pub steps: &'a Cell<u64>,
}

/// What is left of the steps.
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), ExprError> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        match self.0.checked_sub(steps) {
            Some(rest) => {
                self.0 = rest;
                Ok(())
            }
            None => {
                self.0 = 0;
                error(format!("evaluating takes more than {MAX_STEPS} steps"))
            }
        }
    }

    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), ExprError> {
        self.spend(bytes / 16)
    }
}

/// What a closure is applied to.
struct Item {
    value: Value,
    index: i64,
    accumulated: Option<Value>,
}

/// Why there is no value.
enum Stop {
    Error(ExprError),
    /// `?.` has met nothing.
    GivenUp,
}

impl From<ExprError> for Stop {
    fn from(error: ExprError) -> Self {
        Self::Error(error)
    }
}

type Outcome = Result<Value, Stop>;

pub(super) struct Evaluator<'a> {
    scope: Scope<'a>,
    pub(super) budget: Budget,
    items: Vec<Item>,
    lets: Vec<(&'a str, Value)>,
}

pub(super) fn eval<'a>(node: &'a Node, scope: &Scope<'a>) -> Result<Value, ExprError> {
    let granted = scope.steps.get().min(MAX_STEPS);
    let mut evaluator = Evaluator {
        scope: *scope,
        budget: Budget(granted),
        items: Vec::new(),
        lets: Vec::new(),
    };
    let value = evaluator.value(node).and_then(|value| {
        // Whoever prints it need not fear it.
        weigh(&value, &mut evaluator.budget, 0)?;
        Ok(value)
    });
    scope
        .steps
        .set(scope.steps.get() - (granted - evaluator.budget.0));
    value
}

/// Spends what printing a value costs: the same list may be in it any number of times.
pub(super) fn weigh(value: &Value, budget: &mut Budget, depth: u32) -> Result<(), ExprError> {
    budget.spend(1)?;
    match value {
        _ if depth > MAX_PRINTED => error(format!("the value is nested deeper than {MAX_PRINTED} levels")),
        Value::Str(text) | Value::Bytes(text) => budget.spend_bytes(text.len()),
        Value::List(list) => list
            .items
            .iter()
            .try_for_each(|item| weigh(item, budget, depth + 1)),
        Value::Map(map) => map.with(|entries| {
            entries
                .values()
                .try_for_each(|value| weigh(value, budget, depth + 1))
        }),
        _ => Ok(()),
    }
}

impl<'a> Evaluator<'a> {
    /// The value of a node that is not within a chain.
    pub(super) fn value(&mut self, node: &'a Node) -> Result<Value, ExprError> {
        match self.eval(node) {
            Ok(value) => Ok(value),
            Err(Stop::GivenUp) => Ok(Value::Nil),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    pub(super) fn facts(&self) -> &'a Facts {
        self.scope.facts
    }

    /// A closure's value for an item.
    pub(super) fn applied(
        &mut self,
        closure: &'a Node,
        value: &Value,
        index: usize,
        accumulated: Option<Value>,
    ) -> Result<Value, ExprError> {
        self.items.push(Item {
            value: value.clone(),
            index: i64::try_from(index).unwrap_or(i64::MAX),
            accumulated,
        });
        let found = self.value(closure);
        self.items.pop();
        found
    }

    fn eval(&mut self, node: &'a Node) -> Outcome {
        self.budget.spend(1)?;
        Ok(match node {
            Node::Nil => Value::Nil,
            Node::Bool(truth) => Value::Bool(*truth),
            Node::Int(int) => Value::Int(IntType::Int, *int),
            Node::Float(float) => Value::Float(*float),
            Node::Text(text) => Value::str(text),
            Node::List(items) => {
                let items = items.iter().map(|item| self.value(item));
                Value::list(items.collect::<Result<_, _>>()?)
            }
            Node::Map(pairs) => self.map(pairs)?,
            Node::Name(name) => self.name(name),
            Node::Pointer(name) => self.pointer(name)?,
            Node::Member { of, at, is_optional } => {
                let of = self.eval(of)?;
                if *is_optional && of.is_nil() {
                    return Err(Stop::GivenUp);
                }
                let at = self.value(at)?;
                fetch(&of, &at)?
            }
            Node::Chain(inner) => self.value(inner)?,
            Node::Slice(of, from, to) => {
                let of = self.eval(of)?;
                let from = from.as_ref().map(|from| self.value(from)).transpose()?;
                let to = to.as_ref().map(|to| self.value(to)).transpose()?;
                let made = slice(&of, from.as_ref(), to.as_ref())?;
                self.budget.spend(size(&made))?;
                made
            }
            Node::Call(function, arguments) => self.call(function, arguments)?,
            Node::Builtin(builtin, arguments) => builtins::call(self, *builtin, arguments)?,
            Node::Closure(inner) => self.value(inner)?,
            Node::Not(inner) => Value::Bool(!boolean(&self.value(inner)?)?),
            Node::Minus(inner) => match self.value(inner)? {
                Value::Int(ty, int) => Value::Int(ty, int.wrapping_neg()),
                Value::Float(float) => Value::Float(-float),
                other => return Ok(error(format!("invalid operation: - {}", type_name(&other)))?),
            },
            Node::Plus(inner) => {
                let value = self.value(inner)?;
                match number(&value) {
                    Some(_) => value,
                    None => return Ok(error(format!("invalid operation: + {}", type_name(&value)))?),
                }
            }
            Node::Binary(operator, left, right) => self.binary(*operator, left, right)?,
            Node::Ordered(first, others) => self.ordered(first, others)?,
            Node::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if boolean(&self.value(condition)?)? {
                    yes
                } else {
                    no
                };
                self.value(chosen)?
            }
            Node::Either(condition, no) => {
                let value = self.value(condition)?;
                if boolean(&value)? { value } else { self.value(no)? }
            }
            Node::Let(name, value, body) => {
                let value = self.value(value)?;
                self.lets.push((name.as_str(), value));
                let found = self.value(body);
                self.lets.pop();
                found?
            }
            Node::Sequence(nodes) => {
                let mut last = Value::Nil;
                for node in nodes {
                    last = self.value(node)?;
                }
                last
            }
        })
    }

    fn map(&mut self, pairs: &'a [(Node, Node)]) -> Result<Value, ExprError> {
        let mut entries = Entries::new();
        for (key, value) in pairs {
            let key = self.value(key)?;
            entries.insert(text(&key, "a key of a map")?.into(), self.value(value)?);
        }
        Ok(Value::map(entries))
    }

    /// A name that means nothing is nothing, as in the original.
    fn name(&self, name: &str) -> Value {
        if let Some((_, value)) = self.lets.iter().rev().find(|(known, _)| *known == name) {
            return value.clone();
        }
        match name {
            "$env" => Value::Map(self.scope.variables.clone()),
            _ => self.scope.variables.get(name.as_bytes()).unwrap_or(Value::Nil),
        }
    }

    fn pointer(&self, name: &str) -> Result<Value, ExprError> {
        match (self.items.last(), name) {
            (Some(item), "") => Ok(item.value.clone()),
            (Some(item), "index") => Ok(Value::int(item.index)),
            (
                Some(Item {
                    accumulated: Some(value),
                    ..
                }),
                "acc",
            ) => Ok(value.clone()),
            _ => error(format!("#{name} means nothing here")),
        }
    }

    fn binary(&mut self, operator: Operator, left: &'a Node, right: &'a Node) -> Result<Value, ExprError> {
        let one = self.value(left)?;
        match operator {
            Operator::And if !boolean(&one)? => return Ok(one),
            Operator::Or if boolean(&one)? => return Ok(one),
            Operator::Coalesce if !one.is_nil() => return Ok(one),
            Operator::And | Operator::Or | Operator::Coalesce => return self.value(right),
            _ => {}
        }
        let other = self.value(right)?;
        let truth = match operator {
            Operator::Equal => is_equal(&one, &other, &mut self.budget)?,
            Operator::Differs => !is_equal(&one, &other, &mut self.budget)?,
            Operator::In => is_in(&one, &other, &mut self.budget)?,
            Operator::Matches | Operator::Contains | Operator::StartsWith | Operator::EndsWith => {
                self.is_found(operator, &one, &other)?
            }
            Operator::Range => return self.range(&one, &other),
            _ => {
                let made = arithmetic(operator, &one, &other)?;
                self.budget.spend(size(&made))?;
                return Ok(made);
            }
        };
        Ok(Value::Bool(truth))
    }

    fn ordered(&mut self, first: &'a Node, others: &'a [(Operator, Node)]) -> Result<Value, ExprError> {
        let mut left = self.value(first)?;
        for (operator, right) in others {
            let right = self.value(right)?;
            self.budget.spend(size(&left).min(size(&right)))?;
            if !is_ordered(*operator, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// Of nothing, nothing is found.
    fn is_found(&mut self, operator: Operator, one: &Value, other: &Value) -> Result<bool, ExprError> {
        if one.is_nil() || other.is_nil() {
            return Ok(false);
        }
        let name = match operator {
            Operator::Matches => "matches",
            Operator::Contains => "contains",
            Operator::StartsWith => "startsWith",
            _ => "endsWith",
        };
        let (one, other) = (text(one, name)?, text(other, name)?);
        self.budget.spend_bytes(one.len().saturating_add(other.len()))?;
        Ok(match operator {
            Operator::StartsWith => one.starts_with(other),
            Operator::EndsWith => one.ends_with(other),
            Operator::Contains => builtins::find(one, other).is_some(),
            _ => {
                self.budget.spend(PATTERN)?;
                self.budget.spend(one.len())?;
                let pattern = regexes::compile(&String::from_utf8_lossy(other)).map_err(ExprError)?;
                pattern.is_match(one)
            }
        })
    }

    fn range(&mut self, one: &Value, other: &Value) -> Result<Value, ExprError> {
        let bound = |value: &Value| match number(value) {
            Some(number) => Ok(number.int()),
            None => error(format!("invalid operation: int({})", type_name(value))),
        };
        let (from, to) = (bound(one)?, bound(other)?);
        let count = i128::from(to) - i128::from(from) + 1;
        let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
        self.budget.spend(count)?;
        Ok(Value::list((from..=to).map(Value::int).collect()))
    }

    fn call(&mut self, function: &'a Node, arguments: &'a [Node]) -> Outcome {
        // A method is one of a value that is known before the arguments are.
        let callee = match function {
            Node::Member { of, at, is_optional } => {
                let of = self.eval(of)?;
                if *is_optional && of.is_nil() {
                    return Err(Stop::GivenUp);
                }
                match (&of, &**at) {
                    (Value::Time(_) | Value::Duration(_), Node::Text(name)) => {
                        let arguments = self.arguments(arguments)?;
                        return Ok(method(&of, name, &arguments)?);
                    }
                    (_, at) => {
                        let at = self.value(at)?;
                        fetch(&of, &at)?
                    }
                }
            }
            other => self.value(other)?,
        };
        let arguments = self.arguments(arguments)?;
        match functions::name_of(&callee) {
            Some(name) => {
                let weight = arguments.iter().map(size).sum::<usize>();
                self.budget.spend(weight)?;
                Ok(functions::call(name, &arguments, self.facts()).map_err(ExprError)?)
            }
            None if callee.is_nil() => Ok(error(match function {
                Node::Name(name) => format!("there is no function {name}"),
                Node::Member { at, .. } => match &**at {
                    Node::Text(name) => format!("there is no function {name}"),
                    _ => "cannot call nil".to_owned(),
                },
                _ => "cannot call nil".to_owned(),
            })?),
            None => Ok(error(format!(
                "cannot call non-function of type {}",
                type_name(&callee)
            ))?),
        }
    }

    pub(super) fn arguments(&mut self, nodes: &'a [Node]) -> Result<Vec<Value>, ExprError> {
        nodes.iter().map(|node| self.value(node)).collect()
    }
}

/// How many steps a value was worth.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Str(text) | Value::Bytes(text) => text.len() / 16,
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.len(),
        _ => 0,
    }
}

fn method(of: &Value, name: &str, arguments: &[Value]) -> Result<Value, ExprError> {
    match time::call_method(of, name, arguments) {
        Some(Ok(value)) => Ok(value),
        Some(Err(fault)) => error(fault.to_string()),
        None => error(format!("{} has no method {name} here", type_name(of))),
    }
}

/// A list's items, shared.
pub(super) fn items(
    value: &Value,
    what: &str,
) -> Result<Rc<fairway_text_gotemplate::value::List>, ExprError> {
    match value {
        Value::List(list) => Ok(Rc::clone(list)),
        other => error(format!(
            "{what} wants a list and got a value of type {}",
            type_name(other)
        )),
    }
}
