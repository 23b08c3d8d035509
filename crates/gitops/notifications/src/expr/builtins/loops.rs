//! Functions that apply a closure to each item of a list.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fairway_text_gotemplate::Value;
use fairway_text_gotemplate::value::Entries;

use crate::expr::eval::{Evaluator, items, weigh};
use crate::expr::operators::{arithmetic, boolean, compare};
use crate::expr::parse::{Node, Operator};
use crate::expr::{ExprError, error, shown};

pub(super) fn call<'a>(
    evaluator: &mut Evaluator<'a>,
    name: &'static str,
    arguments: &'a [Node],
) -> Result<Value, ExprError> {
    let (Some(list), closure) = (arguments.first(), arguments.get(1)) else {
        return error(format!("{name} wants a list"));
    };
    let list = evaluator.value(list)?;
    // As in Go, nothing has no length.
    let list = items(&list, name)?;
    let third = arguments.get(2).map(|node| evaluator.value(node)).transpose()?;
    let of_each = |evaluator: &mut Evaluator<'a>, at: usize| -> Result<Value, ExprError> {
        evaluator.budget.spend(1)?;
        let item = &list.items[at];
        match closure {
            Some(closure) => evaluator.applied(closure, item, at, None),
            None => Ok(item.clone()),
        }
    };
    let length = list.items.len();
    let int = |at: usize| Value::int(i64::try_from(at).unwrap_or(i64::MAX));
    match name {
        "all" | "none" | "any" => {
            let looked_for = name != "all";
            for at in 0..length {
                if boolean(&of_each(evaluator, at)?)? == looked_for {
                    return Ok(Value::Bool(name == "any"));
                }
            }
            Ok(Value::Bool(name != "any"))
        }
        "one" | "count" => {
            let mut count = 0;
            for at in 0..length {
                count += usize::from(boolean(&of_each(evaluator, at)?)?);
            }
            Ok(if name == "one" {
                Value::Bool(count == 1)
            } else {
                int(count)
            })
        }
        "filter" => {
            let mut kept = Vec::new();
            for at in 0..length {
                if boolean(&of_each(evaluator, at)?)? {
                    kept.push(list.items[at].clone());
                }
            }
            Ok(Value::list(kept))
        }
        "map" => {
            let made = (0..length).map(|at| of_each(evaluator, at));
            Ok(Value::list(made.collect::<Result<_, _>>()?))
        }
        "sum" => {
            let mut sum = Value::int(0);
            for at in 0..length {
                sum = arithmetic(Operator::Add, &of_each(evaluator, at)?, &sum)?;
            }
            Ok(sum)
        }
        "find" | "findIndex" | "findLast" | "findLastIndex" => {
            let is_last = name.starts_with("findLast");
            let is_index = name.ends_with("Index");
            for step in 0..length {
                let at = if is_last { length - 1 - step } else { step };
                if boolean(&of_each(evaluator, at)?)? {
                    return Ok(if is_index { int(at) } else { list.items[at].clone() });
                }
            }
            Ok(Value::Nil)
        }
        "groupBy" => {
            let mut groups: BTreeMap<Vec<u8>, Vec<Value>> = BTreeMap::new();
            for at in 0..length {
                let key = of_each(evaluator, at)?;
                weigh(&key, &mut evaluator.budget, 0)?;
                groups
                    .entry(shown(&key).into_bytes())
                    .or_default()
                    .push(list.items[at].clone());
            }
            let entries: Entries = groups
                .into_iter()
                .map(|(key, group)| (key.into(), Value::list(group)))
                .collect();
            Ok(Value::map(entries))
        }
        "sortBy" => {
            let keys = (0..length).map(|at| of_each(evaluator, at));
            let keys: Vec<Value> = keys.collect::<Result<_, _>>()?;
            let sorted = sorted(evaluator, keys.iter().zip(&list.items).collect(), third.as_ref())?;
            Ok(Value::list(
                sorted.into_iter().map(|(_, item)| item.clone()).collect(),
            ))
        }
        _ => reduce(evaluator, &list.items, closure, third),
    }
}

fn reduce<'a>(
    evaluator: &mut Evaluator<'a>,
    items: &[Value],
    closure: Option<&'a Node>,
    start: Option<Value>,
) -> Result<Value, ExprError> {
    let Some(closure) = closure else {
        return error("reduce wants a closure");
    };
    let first = usize::from(start.is_none());
    let Some(mut accumulated) = start.or_else(|| items.first().cloned()) else {
        return error("reduce of an empty list with no initial value");
    };
    for (at, item) in items.iter().enumerate().skip(first) {
        evaluator.budget.spend(1)?;
        accumulated = evaluator.applied(closure, item, at, Some(accumulated))?;
    }
    Ok(accumulated)
}

/// Items in the order of their keys; an error if these have none.
pub(super) fn sorted<'v>(
    evaluator: &mut Evaluator<'_>,
    mut items: Vec<(&'v Value, &'v Value)>,
    order: Option<&Value>,
) -> Result<Vec<(&'v Value, &'v Value)>, ExprError> {
    let is_down = match order {
        None => false,
        Some(Value::Str(order)) if **order == *b"asc" => false,
        Some(Value::Str(order)) if **order == *b"desc" => true,
        Some(_) => return error("an order is \"asc\" or \"desc\""),
    };
    let doublings = usize::BITS - items.len().leading_zeros();
    evaluator.budget.spend(
        items
            .len()
            .saturating_mul(usize::try_from(doublings).unwrap_or(1)),
    )?;
    let mut problem = None;
    items.sort_by(|(one, _), (other, _)| {
        let order = match compare(one, other, "<") {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(error) => {
                problem.get_or_insert(error);
                Ordering::Equal
            }
        };
        if is_down { order.reverse() } else { order }
    });
    match problem {
        Some(problem) => Err(problem),
        None => Ok(items),
    }
}
