//! Syntax tree and value to the places that it names. Every node that is visited and every value that comes out costs a
//! step.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value;

use super::functions::{compare, fault, function, truthy, type_of};
use super::parse::Node;
use super::{JqError, Step};

/// A value, and where in the object it is; none if it was made on the way.
#[derive(Clone)]
struct Item<'a> {
    value: Cow<'a, Value>,
    path: Option<Rc<Vec<Step>>>,
}

type Items<'a> = Result<Vec<Item<'a>>, JqError>;

struct Run {
    steps: u64,
}

/// The places that an expression names.
pub(super) fn paths(node: &Node, object: &Value, budget: u64) -> Result<Vec<Vec<Step>>, JqError> {
    let mut run = Run { steps: budget };
    let items = run.eval(node, &root(object))?;
    items
        .into_iter()
        .map(|item| match item.path {
            Some(path) => Ok(Rc::unwrap_or_clone(path)),
            None => Err(JqError::Run(
                "the expression makes a value instead of naming a field".to_owned(),
            )),
        })
        .collect()
}

/// The values that an expression names.
pub(super) fn values(node: &Node, object: &Value, budget: u64) -> Result<Vec<Value>, JqError> {
    let mut run = Run { steps: budget };
    let items = run.eval(node, &root(object))?;
    Ok(items.into_iter().map(|item| item.value.into_owned()).collect())
}

fn root(object: &Value) -> Item<'_> {
    Item {
        value: Cow::Borrowed(object),
        path: Some(Rc::default()),
    }
}

fn made<'a>(value: impl Into<Value>) -> Item<'a> {
    Item {
        value: Cow::Owned(value.into()),
        path: None,
    }
}

impl Run {
    fn pay(&mut self, steps: usize) -> Result<(), JqError> {
        self.steps = self.steps.checked_sub(steps as u64).ok_or(JqError::OverBudget)?;
        Ok(())
    }

    fn eval<'a>(&mut self, node: &Node, input: &Item<'a>) -> Items<'a> {
        self.pay(1)?;
        let out = match node {
            Node::Here => vec![input.clone()],
            Node::Everything => self.everything(input)?,
            Node::Literal(value) => vec![made(value.clone())],
            Node::Get(of, key) => {
                let mut out = Vec::new();
                for parent in self.eval(of, input)? {
                    for key in self.eval(key, input)? {
                        out.push(get(&parent, &key.value)?);
                    }
                }
                out
            }
            Node::Slice(of, from, to) => {
                let mut out = Vec::new();
                for parent in self.eval(of, input)? {
                    let from = self.bound(from.as_deref(), input)?;
                    let to = self.bound(to.as_deref(), input)?;
                    out.extend(slice(&parent, from, to)?);
                }
                out
            }
            Node::Each(of) => {
                let mut out = Vec::new();
                for parent in self.eval(of, input)? {
                    let children = children(&parent)?;
                    self.pay(children.len())?;
                    out.extend(children);
                }
                out
            }
            Node::Try(of) => match self.eval(of, input) {
                Err(JqError::Run(_)) => Vec::new(),
                other => other?,
            },
            Node::Pipe(first, second) => {
                let mut out = Vec::new();
                for item in self.eval(first, input)? {
                    out.extend(self.eval(second, &item)?);
                }
                out
            }
            Node::Comma(first, second) => {
                let mut out = self.eval(first, input)?;
                out.extend(self.eval(second, input)?);
                out
            }
            Node::Alternative(first, second) => {
                let found = match self.eval(first, input) {
                    Err(JqError::Run(_)) => Vec::new(),
                    other => other?,
                };
                let good: Vec<Item<'a>> = found.into_iter().filter(|item| truthy(&item.value)).collect();
                match good.is_empty() {
                    true => self.eval(second, input)?,
                    false => good,
                }
            }
            Node::And(left, right) => self.logic(left, right, input, false)?,
            Node::Or(left, right) => self.logic(left, right, input, true)?,
            Node::Compare(operator, left, right) => {
                let mut out = Vec::new();
                for right in self.eval(right, input)? {
                    for left in self.eval(left, input)? {
                        self.pay(1)?;
                        out.push(made(compare(*operator, &left.value, &right.value)));
                    }
                }
                out
            }
            Node::Collect(None) => vec![made(Value::Array(Vec::new()))],
            Node::Collect(Some(of)) => {
                let items = self.eval(of, input)?;
                vec![made(Value::Array(
                    items.into_iter().map(|item| item.value.into_owned()).collect(),
                ))]
            }
            Node::If(condition, yes, no) => {
                let mut out = Vec::new();
                for verdict in self.eval(condition, input)? {
                    let branch = if truthy(&verdict.value) { yes } else { no };
                    out.extend(self.eval(branch, input)?);
                }
                out
            }
            Node::Call(name, arguments) => self.call(name, arguments, input)?,
        };
        self.pay(out.len())?;
        Ok(out)
    }

    fn bound(&mut self, node: Option<&Node>, input: &Item<'_>) -> Result<Option<i64>, JqError> {
        let Some(node) = node else {
            return Ok(None);
        };
        Ok(self
            .eval(node, input)?
            .first()
            .and_then(|item| item.value.as_i64()))
    }

    /// `and`, `or`: the right side is asked only if the left does not decide.
    fn logic<'a>(&mut self, left: &Node, right: &Node, input: &Item<'a>, decides: bool) -> Items<'a> {
        let mut out = Vec::new();
        for left in self.eval(left, input)? {
            if truthy(&left.value) == decides {
                out.push(made(decides));
                continue;
            }
            for right in self.eval(right, input)? {
                out.push(made(truthy(&right.value)));
            }
        }
        Ok(out)
    }

    /// The value and everything below, before what is in it.
    fn everything<'a>(&mut self, input: &Item<'a>) -> Items<'a> {
        let (mut pending, mut out) = (vec![input.clone()], Vec::new());
        while let Some(item) = pending.pop() {
            self.pay(1)?;
            if item.value.is_object() || item.value.is_array() {
                let mut below = children(&item)?;
                below.reverse();
                pending.extend(below);
            }
            out.push(item);
        }
        Ok(out)
    }

    fn call<'a>(&mut self, name: &str, arguments: &[Node], input: &Item<'a>) -> Items<'a> {
        let value = input.value.as_ref();
        let keep_if = |yes: bool| if yes { vec![input.clone()] } else { Vec::new() };
        Ok(match (name, arguments) {
            ("select", [condition]) => {
                let verdicts = self.eval(condition, input)?;
                let yes = verdicts.iter().filter(|verdict| truthy(&verdict.value)).count();
                vec![input.clone(); yes]
            }
            ("recurse", []) => self.everything(input)?,
            ("empty", []) => Vec::new(),
            ("first", [of]) => self.eval(of, input)?.into_iter().take(1).collect(),
            ("last", [of]) => self.eval(of, input)?.pop().into_iter().collect(),
            ("first", []) => vec![get(input, &0.into())?],
            ("last", []) => vec![get(input, &(-1).into())?],
            ("arrays", []) => keep_if(value.is_array()),
            ("objects", []) => keep_if(value.is_object()),
            ("strings", []) => keep_if(value.is_string()),
            ("numbers", []) => keep_if(value.is_number()),
            ("booleans", []) => keep_if(value.is_boolean()),
            ("nulls", []) => keep_if(value.is_null()),
            ("values", []) => keep_if(!value.is_null()),
            ("scalars", []) => keep_if(!value.is_array() && !value.is_object()),
            ("getpath", [path]) => {
                let mut out = Vec::new();
                for path in self.eval(path, input)? {
                    let Some(steps) = path.value.as_array() else {
                        return fault("getpath needs a list".to_owned());
                    };
                    out.push(
                        steps
                            .iter()
                            .try_fold(input.clone(), |item, key| get(&item, key))?,
                    );
                }
                out
            }
            ("map", [f]) => {
                let mut out = Vec::new();
                for child in children(input)? {
                    out.extend(
                        self.eval(f, &child)?
                            .into_iter()
                            .map(|item| item.value.into_owned()),
                    );
                }
                vec![made(Value::Array(out))]
            }
            ("any" | "all", [f]) => {
                let mut verdicts = Vec::new();
                for child in children(input)? {
                    verdicts.extend(self.eval(f, &child)?.iter().map(|item| truthy(&item.value)));
                }
                vec![made(match name {
                    "any" => verdicts.contains(&true),
                    _ => !verdicts.contains(&false),
                })]
            }
            ("any", []) => vec![made(children(input)?.iter().any(|child| truthy(&child.value)))],
            ("all", []) => vec![made(children(input)?.iter().all(|child| truthy(&child.value)))],
            (_, arguments) => {
                let mut given: Vec<Vec<Value>> = vec![Vec::new()];
                for argument in arguments {
                    let values = self.eval(argument, input)?;
                    self.pay(given.len().saturating_mul(values.len()))?;
                    let more = |before: &Vec<Value>| {
                        let extended = |item: &Item<'_>| {
                            let mut list = before.clone();
                            list.push(item.value.as_ref().clone());
                            list
                        };
                        values.iter().map(extended).collect::<Vec<_>>()
                    };
                    given = given.iter().flat_map(more).collect();
                }
                // What they cost grows with what they look at.
                self.pay(size(value))?;
                let results = given
                    .iter()
                    .map(|arguments| function(name, value, arguments).map(made));
                results.collect::<Result<_, _>>()?
            }
        })
    }
}

/// A rough size, in steps.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

fn below(path: Option<&Rc<Vec<Step>>>, step: Step) -> Option<Rc<Vec<Step>>> {
    let mut path = path?.as_ref().clone();
    path.push(step);
    Some(Rc::new(path))
}

fn get<'a>(parent: &Item<'a>, key: &Value) -> Result<Item<'a>, JqError> {
    let step = match (parent.value.as_ref(), key) {
        (Value::Object(_) | Value::Null, Value::String(name)) => Step::Field(name.clone()),
        (Value::Array(items), Value::Number(number)) => {
            let index = number.as_i64().unwrap_or_default();
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let index = if index < 0 { index + length } else { index };
            match usize::try_from(index) {
                Ok(index) => Step::Index(index),
                Err(_) => {
                    return Ok(Item {
                        value: Cow::Owned(Value::Null),
                        path: None,
                    });
                }
            }
        }
        (Value::Null, Value::Number(number)) => {
            Step::Index(usize::try_from(number.as_i64().unwrap_or_default()).unwrap_or_default())
        }
        (value, key) => return fault(format!("cannot index {} with {key}", type_of(value))),
    };
    let found = |value: &Value| match &step {
        Step::Field(name) => value.get(name).cloned(),
        Step::Index(index) => value.get(*index).cloned(),
    };
    let value = match &parent.value {
        Cow::Borrowed(value) => {
            let found = match &step {
                Step::Field(name) => value.get(name),
                Step::Index(index) => value.get(*index),
            };
            found.map_or(Cow::Owned(Value::Null), Cow::Borrowed)
        }
        Cow::Owned(value) => Cow::Owned(found(value).unwrap_or(Value::Null)),
    };
    Ok(Item {
        value,
        path: below(parent.path.as_ref(), step),
    })
}

fn children<'a>(parent: &Item<'a>) -> Items<'a> {
    let keys: Vec<Value> = match parent.value.as_ref() {
        Value::Array(items) => (0..items.len()).map(Value::from).collect(),
        Value::Object(fields) => fields.keys().map(|name| Value::from(name.as_str())).collect(),
        other => return fault(format!("cannot iterate over {}", type_of(other))),
    };
    keys.iter().map(|key| get(parent, key)).collect()
}

fn slice<'a>(parent: &Item<'a>, from: Option<i64>, to: Option<i64>) -> Items<'a> {
    let length = match parent.value.as_ref() {
        Value::Array(items) => items.len(),
        Value::Null => 0,
        other => return fault(format!("cannot slice {}", type_of(other))),
    };
    let end = i64::try_from(length).unwrap_or(i64::MAX);
    let place =
        |bound: i64| usize::try_from(if bound < 0 { bound + end } else { bound }.clamp(0, end)).unwrap_or(0);
    let range = place(from.unwrap_or(0))..place(to.unwrap_or(end));
    // The elements, not a list of them: what names a slice in a path expression means what is in it.
    range.map(|index| get(parent, &index.into())).collect()
}
