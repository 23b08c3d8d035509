//! Methods of texts and lists that templates call because Nunjucks hands JavaScript's values through.

use std::sync::Arc;

use super::error::Error;
use super::evaluate::Budget;
use super::filters::{pattern_of, replaced};
use super::value::Value;

/// Calls a method.
pub(super) fn call(budget: &mut Budget, of: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    budget.steps(of.weight() / 16)?;
    let found = match of {
        Value::Text(text) => of_text(budget, text, name, arguments)?,
        Value::List(items) => of_list(budget, items, name, arguments)?,
        Value::Map(_) | Value::Number(_) | Value::Bool(_) if name == "toString" => {
            Some(Value::Text(of.shown()))
        }
        _ => None,
    };
    match found {
        Some(value) => budget.made(value),
        None => Err(Error::failed(format!(
            "{} has no method {name:?}",
            match of {
                Value::Undefined => "what is undefined",
                Value::Null => "null",
                Value::Text(_) => "a text",
                Value::List(_) => "a list",
                Value::Map(_) => "a map",
                _ => "the value",
            }
        ))),
    }
}

fn of_text(
    budget: &mut Budget,
    text: &Arc<str>,
    name: &str,
    arguments: &[Value],
) -> Result<Option<Value>, Error> {
    let argument = |at: usize| arguments.get(at).unwrap_or(&Value::Undefined);
    let first = argument(0).shown();
    Ok(Some(match name {
        "toUpperCase" | "toLocaleUpperCase" => Value::text(text.to_uppercase()),
        "toLowerCase" | "toLocaleLowerCase" => Value::text(text.to_lowercase()),
        "trim" => Value::text(text.trim()),
        "trimStart" => Value::text(text.trim_start()),
        "trimEnd" => Value::text(text.trim_end()),
        "toString" => Value::Text(Arc::clone(text)),
        "includes" => Value::Bool(text.contains(&*first)),
        "startsWith" => Value::Bool(text.starts_with(&*first)),
        "endsWith" => Value::Bool(text.ends_with(&*first)),
        "indexOf" => match text.find(&*first) {
            Some(at) => Value::count(text[..at].chars().count()),
            None => Value::Number(-1.0),
        },
        "charAt" => match of_place(argument(0)) {
            Some(at) => Value::text(text.chars().nth(at).map(String::from).unwrap_or_default()),
            None => Value::text(""),
        },
        "concat" => {
            let parts: Vec<Arc<str>> = arguments.iter().map(Value::shown).collect();
            Value::text(format!("{text}{}", parts.concat()))
        }
        "split" => split(budget, text, arguments.first())?,
        "replace" => replaced(budget, text, argument(0), &argument(1).shown(), Some(1))?,
        "replaceAll" => replaced(budget, text, argument(0), &argument(1).shown(), None)?,
        "repeat" => {
            let count = of_place(argument(0)).unwrap_or(0);
            budget.bytes(text.len().saturating_mul(count))?;
            Value::text(text.repeat(count))
        }
        "slice" | "substring" => {
            let letters: Vec<char> = text.chars().collect();
            let (from, to) = between(letters.len(), arguments, name == "slice");
            Value::text(letters[from..to].iter().collect::<String>())
        }
        "padStart" | "padEnd" => {
            let wanted = of_place(argument(0)).unwrap_or(0);
            let missing = wanted.saturating_sub(text.chars().count());
            budget.bytes(missing.saturating_mul(4))?;
            let fill = match arguments.get(1) {
                Some(fill) => fill.shown(),
                None => Arc::from(" "),
            };
            let fill: String = fill
                .chars()
                .cycle()
                .take(if fill.is_empty() { 0 } else { missing })
                .collect();
            match name {
                "padStart" => Value::text(format!("{fill}{text}")),
                _ => Value::text(format!("{text}{fill}")),
            }
        }
        "match" => match pattern_of(argument(0))? {
            None => Value::Null,
            Some(pattern) => pattern.captures(text).map_or(Value::Null, |found| {
                let groups = found.iter().map(|group| match group {
                    Some(group) => Value::text(group.as_str()),
                    None => Value::Undefined,
                });
                Value::list(groups.collect())
            }),
        },
        _ => return Ok(None),
    }))
}

fn split(budget: &mut Budget, text: &str, by: Option<&Value>) -> Result<Value, Error> {
    // Each part is a value of its own.
    budget.bytes(text.len().saturating_mul(16))?;
    let parts: Vec<Value> = match by {
        None => vec![Value::text(text)],
        Some(by) => match pattern_of(by)? {
            Some(pattern) => pattern.split(text).map(Value::text).collect(),
            None => match &*by.shown() {
                "" => text.chars().map(|c| Value::text(c.to_string())).collect(),
                by => text.split(by).map(Value::text).collect(),
            },
        },
    };
    Ok(Value::list(parts))
}

fn of_list(
    budget: &mut Budget,
    items: &Arc<[Value]>,
    name: &str,
    arguments: &[Value],
) -> Result<Option<Value>, Error> {
    let first = arguments.first().unwrap_or(&Value::Undefined);
    Ok(Some(match name {
        "includes" => Value::Bool(items.iter().any(|item| item.is_same(first))),
        "indexOf" => match items.iter().position(|item| item.is_same(first)) {
            Some(at) => Value::count(at),
            None => Value::Number(-1.0),
        },
        "join" => {
            let by = match arguments.first() {
                Some(by) => by.shown(),
                None => Arc::from(","),
            };
            budget.bytes(by.len().saturating_mul(items.len()))?;
            let parts: Vec<Arc<str>> = items.iter().map(Value::printed).collect();
            Value::text(parts.join(&by))
        }
        "concat" => {
            let mut all = items.to_vec();
            for argument in arguments {
                match argument {
                    Value::List(more) => all.extend(more.iter().cloned()),
                    one => all.push(one.clone()),
                }
            }
            Value::list(all)
        }
        "slice" => {
            let (from, to) = between(items.len(), arguments, true);
            Value::list(items[from..to].to_vec())
        }
        "reverse" => Value::list(items.iter().rev().cloned().collect()),
        "toString" => Value::text(Value::List(Arc::clone(items)).shown()),
        _ => return Ok(None),
    }))
}

fn of_place(value: &Value) -> Option<usize> {
    Value::Number(value.number().trunc()).index()
}

/// The part that `slice` or `substring` means, as places that are in bounds and in order.
fn between(length: usize, arguments: &[Value], from_end: bool) -> (usize, usize) {
    let place = |at: usize, otherwise: usize| {
        let number = match arguments.get(at) {
            None | Some(Value::Undefined) => return otherwise,
            Some(value) => value.number().trunc(),
        };
        let number = match from_end && number < 0.0 {
            true => Value::count(length).number() + number,
            false => number,
        };
        Value::Number(number.max(0.0))
            .index()
            .unwrap_or(usize::MAX)
            .min(length)
    };
    let (from, to) = (place(0, 0), place(1, length));
    match from_end {
        true => (from.min(to), to.max(from.min(to))),
        false => (from.min(to), from.max(to)),
    }
}
