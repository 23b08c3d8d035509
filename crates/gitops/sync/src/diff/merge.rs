//! What applying an object would make of the live one: a three-way merge by the rules of strategic merge patches.
//!
//! The declared object wins where it says something, what was applied before and is no longer declared goes, and the rest
//! of the live object stays. Lists of built-in kinds merge by their keys. Of lists in custom kinds nothing is known: one
//! that says what was declared stays, with whatever defaults its elements have been given; any other is replaced.

use fairway_kernel_schema::builtin;
use fairway_kernel_schema::shape::{List, ShapeId};
use serde_json::{Map, Value};

use super::canonical::builtin_kind;
use crate::key;

/// How a value is merged.
#[derive(Clone, Copy)]
enum Rule {
    /// By its type.
    Typed(ShapeId),
    /// Nothing is known of it.
    Custom,
    /// It is known that nothing in it merges.
    Atomic,
    /// A list whose elements the API server completes in ways that cannot be foretold.
    Completed,
}

/// The live object after the declared one has been applied.
pub(super) fn three_way(live: &Value, before: &Value, target: &Value) -> Value {
    let rule = match builtin_kind(target) {
        Some(kind) => Rule::Typed(kind.shape),
        None => Rule::Custom,
    };
    let is_stateful_set = key::is(target, "apps", "StatefulSet");
    merge(Some(live), Some(before), target, rule, is_stateful_set)
}

/// Only those fields of a value that a pattern has; lists are gone through in parallel.
pub(super) fn project(pattern: &Value, value: Value) -> Value {
    match (pattern, value) {
        (Value::Object(pattern), Value::Object(value)) => {
            let mut out = Map::with_capacity(pattern.len());
            for (name, value) in value {
                if let Some(pattern) = pattern.get(&name) {
                    out.insert(name, project(pattern, value));
                }
            }
            Value::Object(out)
        }
        (Value::Array(pattern), Value::Array(value)) => {
            let items = value
                .into_iter()
                .enumerate()
                .map(|(index, item)| match pattern.get(index) {
                    Some(pattern) => project(pattern, item),
                    None => item,
                });
            Value::Array(items.collect())
        }
        (_, value) => value,
    }
}

fn merge(
    live: Option<&Value>,
    before: Option<&Value>,
    target: &Value,
    rule: Rule,
    stateful_set: bool,
) -> Value {
    match (live, target) {
        (Some(Value::Object(live)), Value::Object(target)) => {
            let before = before.and_then(Value::as_object);
            Value::Object(merge_map(live, before, target, rule, stateful_set))
        }
        (Some(Value::Array(live)), Value::Array(target)) => {
            let before = before.and_then(Value::as_array).map(Vec::as_slice);
            Value::Array(merge_list(live, before, target, rule))
        }
        _ => target.clone(),
    }
}

fn merge_map(
    live: &Map<String, Value>,
    before: Option<&Map<String, Value>>,
    target: &Map<String, Value>,
    rule: Rule,
    stateful_set: bool,
) -> Map<String, Value> {
    let mut out = live.clone();
    // To say null is not to declare.
    let declared = |name: &str| target.get(name).is_some_and(|value| !value.is_null());
    for name in before.into_iter().flat_map(Map::keys) {
        if !declared(name) {
            out.shift_remove(name);
        }
    }
    for (name, value) in target.iter().filter(|(_, value)| !value.is_null()) {
        let (child, retain_keys) = child_rule(rule, name);
        let child = match (stateful_set && name == "volumeClaimTemplates", child) {
            (true, Rule::Typed(_)) => Rule::Completed,
            _ => child,
        };
        let (was, is) = (before.and_then(|before| before.get(name)), live.get(name));
        // Only `spec` of a StatefulSet holds the templates that are meant.
        let mut merged = merge(is, was, value, child, stateful_set && name == "spec");
        if retain_keys && is != Some(&merged) {
            merged = keep_declared(merged, value);
        }
        out.insert(name.clone(), merged);
    }
    out
}

/// The rule of a field, and whether only what is declared may stay in it once it changes.
fn child_rule(rule: Rule, name: &str) -> (Rule, bool) {
    let Rule::Typed(id) = rule else {
        return match rule {
            Rule::Custom => (Rule::Custom, false),
            _ => (Rule::Atomic, false),
        };
    };
    let Some(map) = &builtin::shapes().get(id).map else {
        return (Rule::Atomic, false);
    };
    let retain_keys = map.field(name).is_some_and(|field| field.patch.retain_keys);
    match map.shape_of(name) {
        Some(shape) => (Rule::Typed(shape), retain_keys),
        None => (Rule::Atomic, retain_keys),
    }
}

/// A union of which another member was chosen: what belongs to the old one goes.
fn keep_declared(merged: Value, target: &Value) -> Value {
    match (merged, target) {
        (Value::Object(mut merged), Value::Object(target)) => {
            merged.retain(|name, _| target.contains_key(name));
            Value::Object(merged)
        }
        (merged, _) => merged,
    }
}

fn merge_list(live: &[Value], before: Option<&[Value]>, target: &[Value], rule: Rule) -> Vec<Value> {
    let completed = |before: Option<&[Value]>| {
        let pattern = Value::Array(before.unwrap_or(target).to_vec());
        project(&pattern, Value::Array(live.to_vec())) == Value::Array(target.to_vec())
    };
    match rule {
        Rule::Custom | Rule::Completed if completed(before) => live.to_vec(),
        Rule::Typed(id) => match &builtin::shapes().get(id).list {
            Some(list) if list.patch.merge => merge_elements(live, before.unwrap_or_default(), target, list),
            _ => target.to_vec(),
        },
        _ => target.to_vec(),
    }
}

fn merge_elements(live: &[Value], before: &[Value], target: &[Value], list: &List) -> Vec<Value> {
    let Some(merge_key) = list.patch.merge_key.as_deref() else {
        return merge_scalars(live, before, target);
    };
    let (Some(live_keys), Some(target_keys)) = (keys(live, merge_key), keys(target, merge_key)) else {
        // Elements that cannot be told apart cannot be merged.
        return target.to_vec();
    };
    let rule = Rule::Typed(list.element);
    let find = |items: &'_ [Value], wanted: &Value| {
        items.iter().position(|item| item.get(merge_key) == Some(wanted))
    };
    let merged: Vec<Value> = target
        .iter()
        .zip(&target_keys)
        .map(|(item, wanted)| {
            let is = find(live, wanted).map(|at| &live[at]);
            let was = find(before, wanted).map(|at| &before[at]);
            let merged = merge(is, was, item, rule, false);
            match list.patch.retain_keys && is.is_some() && is != Some(&merged) {
                true => keep_declared(merged, item),
                false => merged,
            }
        })
        .collect();
    let kept = live_keys
        .iter()
        .map(|key| target_keys.iter().position(|wanted| wanted == key));
    let kept: Vec<Option<usize>> = kept.collect();
    let in_order = kept.iter().flatten().is_sorted();
    let gone = |item: &Value| {
        item.get(merge_key)
            .is_some_and(|wanted| find(before, wanted).is_some())
    };
    let mut out = Vec::with_capacity(live.len().max(target.len()));
    if in_order {
        // Each where it is; new ones after those.
        for (item, place) in live.iter().zip(&kept) {
            match place {
                Some(place) => out.push(merged[*place].clone()),
                None if gone(item) => {}
                None => out.push(item.clone()),
            }
        }
        let new = (0..target.len()).filter(|index| !kept.contains(&Some(*index)));
        out.extend(new.map(|index| merged[index].clone()));
        return out;
    }
    out.extend(merged);
    let others = live
        .iter()
        .zip(&kept)
        .filter(|(item, place)| place.is_none() && !gone(item));
    out.extend(others.map(|(item, _)| item.clone()));
    out
}

/// The keys of elements, if all have one and no two the same.
fn keys(items: &[Value], merge_key: &str) -> Option<Vec<Value>> {
    let mut keys: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        let key = item.get(merge_key).filter(|key| !key.is_null())?;
        if keys.contains(key) {
            return None;
        }
        keys.push(key.clone());
    }
    Some(keys)
}

/// A set of scalars: those of others stay.
fn merge_scalars(live: &[Value], before: &[Value], target: &[Value]) -> Vec<Value> {
    let stays = |item: &&Value| target.contains(item) || !before.contains(item);
    let mut out: Vec<Value> = live.iter().filter(stays).cloned().collect();
    for item in target {
        if !out.contains(item) {
            out.push(item.clone());
        }
    }
    out
}
