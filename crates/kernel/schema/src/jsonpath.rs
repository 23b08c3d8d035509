//! JSONPath in Kubernetes' dialect, as printer columns and selectable fields use it.
//!
//! One expression without surrounding text: `.spec.a`, `.status.conditions[?(@.type=="Ready")].status`, `[0]`, `[-1:]`,
//! `['x']`, `[*]`, `..name`, and backslashes before dots in names. Missing fields give no results rather than an error.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;
use thiserror::Error;

/// No object needs more; `..` could multiply without bound otherwise.
const MAX_RESULTS: usize = 100_000;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

/// The expression is malformed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ParseError(String);

/// The expression does not fit the object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct EvalError(String);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Step>>),
    Filter {
        left: Vec<Step>,
        operator: Operator,
        right: Vec<Step>,
    },
    Literal(Value),
}

/// `[start:end:step]`; an index is a slice of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// The end was not written: it is the one after the start.
    single: bool,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses an expression, with or without the braces that templates put around it.
    ///
    /// # Errors
    /// The expression is malformed.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let inner = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(text);
        parse::expression(inner, 0)
            .map(|steps| Self { steps })
            .map_err(ParseError)
    }

    /// What the expression finds, in the order of the object.
    ///
    /// # Errors
    /// An index is out of bounds, or something that is no list is indexed or filtered.
    pub fn find<'a>(&'a self, data: &'a Value) -> Result<Vec<&'a Value>, EvalError> {
        evaluate(&self.steps, vec![data]).map_err(EvalError)
    }

    /// The first result; also none where the expression does not fit.
    pub fn first<'a>(&'a self, data: &'a Value) -> Option<&'a Value> {
        self.find(data).ok()?.first().copied()
    }
}

/// A value as text: strings as they are, lists and maps as JSON.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |f| f.to_string())
        }
        other => other.to_string(),
    }
}

fn evaluate<'a>(steps: &'a [Step], mut values: Vec<&'a Value>) -> Result<Vec<&'a Value>, String> {
    for step in steps {
        let mut results = Vec::new();
        match step {
            Step::Field(name) => results.extend(values.iter().filter_map(|v| v.get(name.as_str()))),
            Step::Wildcard => values.iter().for_each(|v| results.extend(children(v))),
            Step::Recursive => {
                for value in values {
                    descend(value, &mut results)?;
                }
            }
            Step::Slice(slice) => {
                for value in values.iter().filter(|v| !v.is_null()) {
                    let items = value
                        .as_array()
                        .ok_or_else(|| format!("{} is not array or slice", kind(value)))?;
                    slice.take(items, &mut results)?;
                }
            }
            Step::Union(alternatives) => {
                for alternative in alternatives {
                    results.append(&mut evaluate(alternative, values.clone())?);
                }
            }
            Step::Filter {
                left,
                operator,
                right,
            } => {
                for value in values {
                    let items = value.as_array().ok_or_else(|| {
                        format!("{} is not array or slice and cannot be filtered", kind(value))
                    })?;
                    for item in items {
                        if passes(item, left, *operator, right)? {
                            results.push(item);
                        }
                    }
                }
            }
            Step::Literal(value) => results.extend(values.iter().map(|_| value)),
        }
        if results.len() > MAX_RESULTS {
            return Err("too many results".to_owned());
        }
        values = results;
    }
    Ok(values)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) => object.values().collect(),
        _ => Vec::new(),
    }
}

/// The value and all lists and maps inside of it that have something inside.
fn descend<'a>(value: &'a Value, results: &mut Vec<&'a Value>) -> Result<(), String> {
    if results.len() > MAX_RESULTS {
        return Err("too many results".to_owned());
    }
    let inner = children(value);
    if !inner.is_empty() {
        results.push(value);
        for child in inner {
            descend(child, results)?;
        }
    }
    Ok(())
}

impl Slice {
    fn take<'a>(self, items: &'a [Value], results: &mut Vec<&'a Value>) -> Result<(), String> {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let start = match self.start.unwrap_or(0) {
            start if start < 0 => start.saturating_add(length),
            start => start,
        };
        let end = match self.end {
            None => length,
            Some(end) if end < 0 || (end == 0 && self.single) => end.saturating_add(length),
            Some(end) => end,
        };
        let out_of_bounds = |index: i64| {
            Err(format!(
                "array index out of bounds: index {index}, length {length}"
            ))
        };
        if start == end {
            return Ok(());
        }
        if start >= length || start < 0 {
            return out_of_bounds(start);
        }
        if end > length || end < 0 {
            return out_of_bounds(end.saturating_sub(1));
        }
        if start > end {
            return Err(format!(
                "starting index {start} is greater than ending index {end}"
            ));
        }
        let step = match self.step {
            Some(step) if step <= 0 => return Err("step must be > 0".to_owned()),
            Some(step) => usize::try_from(step).unwrap_or(usize::MAX),
            None => 1,
        };
        let (start, end) = (
            usize::try_from(start).unwrap_or(0),
            usize::try_from(end).unwrap_or(0),
        );
        results.extend(items[start..end].iter().step_by(step));
        Ok(())
    }
}

fn passes(item: &Value, left: &[Step], operator: Operator, right: &[Step]) -> Result<bool, String> {
    let lefts = match evaluate(left, vec![item]) {
        Err(_) if operator == Operator::Exists => return Ok(false),
        result => result?,
    };
    if operator == Operator::Exists {
        return Ok(!lefts.is_empty());
    }
    let rights = evaluate(right, vec![item])?;
    match (&*lefts, &*rights) {
        ([], _) | (_, []) => Ok(false),
        ([left], [right]) => compare(left, operator, right),
        _ => Err("can only compare one element at a time".to_owned()),
    }
}

fn compare(left: &Value, operator: Operator, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64().partial_cmp(&b.as_f64()),
        },
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, Operator::Equal | Operator::NotEqual) => {
            Some(a.cmp(b))
        }
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    let Some(order) = order else {
        return Ok(operator == Operator::NotEqual);
    };
    Ok(match operator {
        Operator::Exists => true,
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
    })
}

#[cfg(test)]
mod tests;
