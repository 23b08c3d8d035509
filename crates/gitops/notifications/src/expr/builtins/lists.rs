//! Functions on lists and maps.

use fairway_text_gotemplate::{Map, Value};

use super::loops::sorted;
use crate::expr::eval::{Evaluator, items};
use crate::expr::numbers::{Number, number};
use crate::expr::operators::{fetch, is_equal, type_name};
use crate::expr::{ExprError, error};

/// How deep lists are made flat.
const MAX_DEPTH: u32 = 50;

/// Nothing if there is no such function.
pub(super) fn call(
    evaluator: &mut Evaluator<'_>,
    name: &'static str,
    values: &[Value],
) -> Option<Result<Value, ExprError>> {
    let one = values.first()?;
    let second = values.get(1);
    Some(match name {
        "len" => match one {
            Value::List(list) => Ok(length(list.items.len())),
            Value::Map(map) => Ok(length(map.len())),
            Value::Str(text) => Ok(length(String::from_utf8_lossy(text).chars().count())),
            other => error(format!("invalid argument for len (type {})", type_name(other))),
        },
        // What is not there is nothing, whatever it is asked of.
        "first" => Ok(fetch(one, &Value::int(0)).unwrap_or(Value::Nil)),
        "last" => Ok(fetch(one, &Value::int(-1)).unwrap_or(Value::Nil)),
        "get" => Ok(fetch(one, second.unwrap_or(&Value::Nil)).unwrap_or(Value::Nil)),
        "take" => take(one, second.unwrap_or(&Value::Nil)),
        "keys" => map(name, one).map(|map| Value::list(map.keys().into_iter().map(Value::Str).collect())),
        "values" => {
            let values = |map: &Map| map.entries().into_iter().map(|(_, value)| value).collect();
            map(name, one).map(|map| Value::list(values(map)))
        }
        "toPairs" => map(name, one).map(|map| {
            let pair = |(key, value)| Value::list(vec![Value::Str(key), value]);
            Value::list(map.entries().into_iter().map(pair).collect())
        }),
        "reverse" => items(one, name).map(|list| Value::list(list.items.iter().rev().cloned().collect())),
        "uniq" => unique(evaluator, one),
        "concat" => concat(values),
        "flatten" => {
            let mut flat = Vec::new();
            let flattened = items(one, name).and_then(|list| flatten(evaluator, &list.items, 0, &mut flat));
            flattened.map(|()| Value::list(flat))
        }
        "sort" => items(one, name).and_then(|list| {
            let pairs = list.items.iter().map(|item| (item, item)).collect();
            let sorted = sorted(evaluator, pairs, second)?;
            Ok(Value::list(
                sorted.into_iter().map(|(_, item)| item.clone()).collect(),
            ))
        }),
        _ => return None,
    })
}

fn length(count: usize) -> Value {
    Value::int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn map<'v>(name: &str, value: &'v Value) -> Result<&'v Map, ExprError> {
    match value {
        Value::Map(map) => Ok(map),
        other => error(format!(
            "{name} wants a map and got a value of type {}",
            type_name(other)
        )),
    }
}

fn take(list: &Value, count: &Value) -> Result<Value, ExprError> {
    let list = items(list, "take")?;
    match number(count) {
        Some(Number::Int(count)) if count >= 0 => {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.items.len());
            Ok(Value::typed_list(list.ty, list.items[..count].to_vec()))
        }
        _ => error(format!("cannot take {} elements", crate::expr::shown(count))),
    }
}

fn unique(evaluator: &mut Evaluator<'_>, list: &Value) -> Result<Value, ExprError> {
    let list = items(list, "uniq")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in &list.items {
        let mut is_known = false;
        for known in &kept {
            if is_equal(item, known, &mut evaluator.budget)? {
                is_known = true;
                break;
            }
        }
        if !is_known {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn concat(values: &[Value]) -> Result<Value, ExprError> {
    let mut all = Vec::new();
    for value in values {
        all.extend(items(value, "concat")?.items.iter().cloned());
    }
    Ok(Value::list(all))
}

fn flatten(
    evaluator: &mut Evaluator<'_>,
    items: &[Value],
    depth: u32,
    flat: &mut Vec<Value>,
) -> Result<(), ExprError> {
    for item in items {
        evaluator.budget.spend(1)?;
        match item {
            Value::List(_) if depth >= MAX_DEPTH => return error("recursion depth exceeded"),
            Value::List(list) => flatten(evaluator, &list.items, depth + 1, flat)?,
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}
