//! Syntax tree and value to the places that it names. Every node that is visited and every value that comes out costs a
//! step.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value;

use super::parse::{Comparison, Node};
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
            None => Err(JqError::Run("the expression makes a value instead of naming a field".to_owned())),
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

fn fault<T>(message: String) -> Result<T, JqError> {
    Err(JqError::Run(message))
}

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
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
                vec![made(Value::Array(items.into_iter().map(|item| item.value.into_owned()).collect()))]
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
        Ok(self.eval(node, input)?.first().and_then(|item| item.value.as_i64()))
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
                    out.push(steps.iter().try_fold(input.clone(), |item, key| get(&item, key))?);
                }
                out
            }
            ("map", [f]) => {
                let mut out = Vec::new();
                for child in children(input)? {
                    out.extend(self.eval(f, &child)?.into_iter().map(|item| item.value.into_owned()));
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
                let results = given.iter().map(|arguments| function(name, value, arguments).map(made));
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
                Err(_) => return Ok(Item { value: Cow::Owned(Value::Null), path: None }),
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
    let place = |bound: i64| usize::try_from(if bound < 0 { bound + end } else { bound }.clamp(0, end)).unwrap_or(0);
    let range = place(from.unwrap_or(0))..place(to.unwrap_or(end));
    // The elements, not a list of them: what names a slice in a path expression means what is in it.
    range.map(|index| get(parent, &index.into())).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn compare(operator: Comparison, left: &Value, right: &Value) -> bool {
    let order = order(left, right);
    match operator {
        Comparison::Equal => order == Ordering::Equal,
        Comparison::Unequal => order != Ordering::Equal,
        Comparison::Less => order == Ordering::Less,
        Comparison::LessOrEqual => order != Ordering::Greater,
        Comparison::Greater => order == Ordering::Greater,
        Comparison::GreaterOrEqual => order != Ordering::Less,
    }
}

/// jq's order of all values.
fn order(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let pair = left.as_f64().zip(right.as_f64());
            pair.and_then(|(left, right)| left.partial_cmp(&right)).unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| order(left, right));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let sorted = |fields: &serde_json::Map<String, Value>| {
                let mut keys: Vec<String> = fields.keys().cloned().collect();
                keys.sort_unstable();
                keys
            };
            let (left_keys, right_keys) = (sorted(left), sorted(right));
            let by_keys = left_keys.cmp(&right_keys);
            let mut by_values = left_keys.iter().map(|key| order(&left[key], &right[key]));
            if by_keys.is_ne() {
                return by_keys;
            }
            by_values.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

/// Functions of values.
fn function(name: &str, value: &Value, arguments: &[Value]) -> Result<Value, JqError> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        other => fault(format!("{name} needs strings, not {}", type_of(other))),
    };
    let argument = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
    Ok(match name {
        "not" => (!truthy(value)).into(),
        "type" => type_of(value).into(),
        "length" => match value {
            Value::Null => 0.into(),
            Value::String(text) => text.chars().count().into(),
            Value::Array(items) => items.len().into(),
            Value::Object(fields) => fields.len().into(),
            Value::Number(number) => Value::from(number.as_f64().unwrap_or_default().abs()),
            Value::Bool(_) => return fault("boolean has no length".to_owned()),
        },
        "keys" => match value {
            Value::Object(fields) => {
                let mut keys: Vec<&String> = fields.keys().collect();
                keys.sort_unstable();
                keys.into_iter().cloned().map(Value::from).collect()
            }
            Value::Array(items) => (0..items.len()).map(Value::from).collect(),
            other => return fault(format!("{} has no keys", type_of(other))),
        },
        "to_entries" => match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| serde_json::json!({"key": key, "value": value}))
                .collect(),
            other => return fault(format!("{} has no keys", type_of(other))),
        },
        "has" => match (value, argument(0)) {
            (Value::Object(fields), Value::String(key)) => fields.contains_key(key).into(),
            (Value::Array(items), Value::Number(index)) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                index.is_some_and(|index| index < items.len()).into()
            }
            (value, key) => return fault(format!("cannot check whether {} has {key}", type_of(value))),
        },
        "contains" => contains(value, argument(0)).into(),
        "inside" => contains(argument(0), value).into(),
        "startswith" => text(value)?.starts_with(&text(argument(0))?).into(),
        "endswith" => text(value)?.ends_with(&text(argument(0))?).into(),
        "ltrimstr" => match (value, argument(0)) {
            (Value::String(text), Value::String(prefix)) => text.strip_prefix(prefix).unwrap_or(text).into(),
            (value, _) => value.clone(),
        },
        "rtrimstr" => match (value, argument(0)) {
            (Value::String(text), Value::String(suffix)) => text.strip_suffix(suffix).unwrap_or(text).into(),
            (value, _) => value.clone(),
        },
        "split" => text(value)?.split(&text(argument(0))?).map(Value::from).collect(),
        "ascii_downcase" => text(value)?.to_ascii_lowercase().into(),
        "ascii_upcase" => text(value)?.to_ascii_uppercase().into(),
        "tostring" => match value {
            Value::String(text) => text.as_str().into(),
            other => other.to_string().into(),
        },
        "tonumber" => match value {
            Value::Number(_) => value.clone(),
            other => match serde_json::from_str::<Value>(&text(other)?) {
                Ok(number @ Value::Number(_)) => number,
                _ => return fault(format!("{other} is no number")),
            },
        },
        "test" => {
            let flags = arguments.get(1).and_then(Value::as_str).unwrap_or_default();
            let expression = regex::RegexBuilder::new(&text(argument(0))?)
                .case_insensitive(flags.contains('i'))
                .ignore_whitespace(flags.contains('x'))
                .size_limit(1 << 18)
                .build();
            match expression {
                Ok(expression) => expression.is_match(&text(value)?).into(),
                Err(error) => return fault(format!("test: {error}")),
            }
        }
        other => return fault(format!("{other} is not understood here")),
    })
}

fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| value.get(key).is_some_and(|value| contains(value, part))),
        (Value::Array(value), Value::Array(part)) => {
            part.iter().all(|part| value.iter().any(|value| contains(value, part)))
        }
        (Value::String(value), Value::String(part)) => value.contains(part.as_str()),
        (value, part) => order(value, part) == Ordering::Equal,
    }
}
