//! Lists whose items are told apart by some of their fields, or, if they are scalars, by their value.

use serde_json::Value;

use super::{DIRECTIVE, Directive, NewItems, Outcome, Patch, Walk, directive_of};
use crate::error::{Error, Result};
use crate::node::{is_empty, text, wrong_kind};
use crate::openapi::Schema;

impl Walk<'_> {
    pub(super) fn list(&self, items: &mut Vec<Value>, patch: Patch<'_>, schema: &Schema) -> Result<Outcome> {
        let mut patch: Patched = match patch {
            Patch::Other(None) => Patched::Nothing,
            Patch::Other(Some(Value::Array(other))) => Patched::Other(other.clone()),
            Patch::Other(Some(other)) => return Err(wrong_kind("SequenceNode", other)),
            Patch::Same => Patched::Same,
        };
        let directive = match &mut patch {
            Patched::Nothing => Directive::Merge,
            Patched::Other(other) => list_directive(other)?,
            Patched::Same => list_directive(items)?,
        };
        match (directive, patch) {
            (Directive::Delete, _) => return Ok(Outcome::Gone),
            (Directive::Replace, Patched::Other(other)) => {
                *items = other;
                patch = Patched::Same;
            }
            (_, other) => patch = other,
        }
        let list = List {
            walk: self,
            items: std::mem::take(items),
            patch,
            schema,
        };
        Ok(Outcome::New(Value::Array(list.merge()?)))
    }

    /// A list where there was none.
    pub(super) fn new_list(&self, items: &mut Vec<Value>, schema: &Schema) -> Result<Outcome> {
        let list = List {
            walk: self,
            items: std::mem::take(items),
            patch: Patched::Same,
            schema,
        };
        Ok(Outcome::New(Value::Array(list.merge()?)))
    }
}

/// What a list is merged with.
enum Patched {
    Nothing,
    Other(Vec<Value>),
    Same,
}

/// An item `$patch: …` of a list is about the list. It is taken out, and empty items with it.
fn list_directive(items: &mut Vec<Value>) -> Result<Directive> {
    let Some(item) = items.iter().find(|item| item.get(DIRECTIVE).is_some()) else {
        return Ok(Directive::Merge);
    };
    let (Some(word), Some(1)) = (item.get(DIRECTIVE), item.as_object().map(serde_json::Map::len)) else {
        return Ok(Directive::Merge);
    };
    let word = text(word).into_owned();
    let directive = directive_of(&word)?;
    set_item(items, None, &[DIRECTIVE.to_owned()], &[word])?;
    Ok(directive)
}

struct List<'w> {
    walk: &'w Walk<'w>,
    items: Vec<Value>,
    patch: Patched,
    schema: &'w Schema,
}

impl List<'_> {
    fn merge(mut self) -> Result<Vec<Value>> {
        let keys = match self.schema.keys() {
            [] => vec![String::new()],
            keys => keys.to_vec(),
        };
        let mut wanted = self.values(&keys);
        if keys.len() > 1 {
            merge_values(&mut wanted);
        }
        let items_schema = self.schema.items();
        let mut merged: Vec<Value> = Vec::new();
        let mut last_keys: Option<Vec<String>> = None;
        for values in &wanted {
            let (keys, values) = valid(&wanted, values, &keys);
            let value = self.item(&keys, &values, items_schema.as_ref())?;
            last_keys = Some(keys.clone());
            let Some(mut value) = value.filter(|value| !value.is_null() && !is_empty_map(value)) else {
                set_item(&mut self.items, None, &keys, &values)?;
                continue;
            };
            if let Value::Object(fields) = &mut value {
                for (key, text) in keys.iter().zip(&values) {
                    if !text.is_empty() && !fields.contains_key(key) {
                        fields.insert(key.clone(), crate::node::plain(text));
                    }
                }
            }
            set_item(&mut merged, Some(value), &keys, &values)?;
        }
        let Some(keys) = last_keys else {
            return Ok(self.items);
        };
        match self.walk.new_items {
            NewItems::First => append(merged, self.items, &keys),
            NewItems::Last => append(self.items, merged, &keys),
        }
    }

    /// The values that tell items apart: first those of the patch if new items come first.
    fn values(&self, keys: &[String]) -> Vec<Vec<String>> {
        let own: &[Value] = &self.items;
        let patch: &[Value] = match &self.patch {
            Patched::Nothing => &[],
            Patched::Other(other) => other,
            Patched::Same => own,
        };
        let (first, second) = match self.walk.new_items {
            NewItems::First => (patch, own),
            NewItems::Last => (own, patch),
        };
        let primitive = keys == [""];
        let mut seen = std::collections::HashSet::new();
        let mut values: Vec<Vec<String>> = Vec::new();
        for item in first.iter().chain(second) {
            let found: Vec<String> = match primitive {
                true => vec![text(item).into_owned()],
                false => keys
                    .iter()
                    .map(|key| {
                        let field = item.get(key).filter(|field| !is_empty(field));
                        field.map(|field| text(field).into_owned()).unwrap_or_default()
                    })
                    .collect(),
            };
            if seen.insert(found.clone()) {
                values.push(found);
            }
        }
        values
    }

    /// Merges the items with these values; the list's own is changed in place, if it has one.
    fn item(&mut self, keys: &[String], values: &[String], schema: Option<&Schema>) -> Result<Option<Value>> {
        let (keys, values) = valid(&[values.to_vec()], values, keys);
        let own = find(&self.items, &keys, &values);
        let mut new = match &self.patch {
            Patched::Nothing => None,
            Patched::Other(other) => find(other, &keys, &values).map(|at| other[at].clone()),
            Patched::Same => None,
        };
        let same = matches!(self.patch, Patched::Same);
        let patch = match (&mut new, same) {
            (_, true) => Patch::Same,
            (Some(new), false) => Patch::Other(Some(&*new)),
            (None, false) => Patch::Other(None),
        };
        let Some(at) = own else {
            if same || matches!(patch, Patch::Other(None)) {
                return Ok(None);
            }
            return Ok(match self.walk.value(None, patch, schema.cloned())? {
                Outcome::New(value) => Some(value),
                _ => None,
            });
        };
        let slot = &mut self.items[at];
        let before = matches!(slot, Value::Object(_)).then(|| slot.clone());
        Ok(match self.walk.value(Some(slot), patch, schema.cloned())? {
            Outcome::Gone => None,
            Outcome::Kept => Some(slot.clone()),
            Outcome::New(value) => {
                // The list goes on holding what it held.
                if let Some(before) = before {
                    *slot = before;
                }
                Some(value)
            }
        })
    }
}

fn is_empty_map(value: &Value) -> bool {
    matches!(value, Value::Object(fields) if fields.is_empty())
}

/// Which of the keys tell these items apart: those that any of them has.
fn valid(all: &[Vec<String>], values: &[String], keys: &[String]) -> (Vec<String>, Vec<String>) {
    let used: Vec<bool> = (0..keys.len())
        .map(|at| {
            all.iter()
                .any(|values| values.get(at).is_some_and(|value| !value.is_empty()))
        })
        .collect();
    if !used.contains(&true) {
        return (keys.to_vec(), values.to_vec());
    }
    let keys = keys
        .iter()
        .zip(&used)
        .filter(|(_, used)| **used)
        .map(|(key, _)| key.clone());
    let values = values
        .iter()
        .zip(&used)
        .filter(|(value, used)| **used || !value.is_empty())
        .map(|(value, _)| value.clone());
    (keys.collect(), values.collect())
}

/// Items that agree in what both have are the same: those with fewer keys take the missing ones from the other.
fn merge_values(all: &mut [Vec<String>]) {
    for left in 0..all.len() {
        for right in 0..all.len() {
            if let Some(joined) = join(&all[left], &all[right]) {
                all[left].clone_from(&joined);
                all[right] = joined;
            }
        }
    }
}

fn join(left: &[String], right: &[String]) -> Option<Vec<String>> {
    let mut common = false;
    let mut joined = Vec::with_capacity(left.len());
    for (left, right) in left.iter().zip(right) {
        if left == right {
            common = true;
        } else if !left.is_empty() && !right.is_empty() {
            return None;
        }
        joined.push(if left.is_empty() {
            right.clone()
        } else {
            left.clone()
        });
    }
    common.then_some(joined)
}

/// The first item with these values.
fn find(items: &[Value], keys: &[String], values: &[String]) -> Option<usize> {
    if keys.first().is_none_or(String::is_empty) {
        let wanted = values.first().map_or("", String::as_str);
        return items.iter().position(|item| text(item) == wanted);
    }
    if keys.len() != values.len() {
        return None;
    }
    items.iter().position(|item| {
        keys.iter()
            .zip(values)
            .all(|(key, wanted)| item.get(key).is_some_and(|field| text(field) == *wanted))
    })
}

/// Puts an item in the place of those with these values, or at the end; takes those out if there is none to put.
fn set_item(items: &mut Vec<Value>, item: Option<Value>, keys: &[String], values: &[String]) -> Result<()> {
    let by_fields = keys.first().is_some_and(|key| !key.is_empty())
        && values.first().is_some_and(|value| !value.is_empty());
    let mut found_any = false;
    let mut kept = Vec::with_capacity(items.len() + 1);
    for own in std::mem::take(items) {
        if own.is_null() || is_empty_map(&own) {
            continue;
        }
        if !own.is_object() && by_fields {
            kept.push(own);
            continue;
        }
        if !has_values(&own, keys, values)? {
            if !values.is_empty() {
                kept.push(own);
            }
            continue;
        }
        found_any = true;
        if let Some(item) = &item {
            kept.push(item.clone());
        }
    }
    if let Some(item) = item.filter(|item| !found_any && !item.is_null()) {
        kept.push(item);
    }
    *items = kept;
    Ok(())
}

/// Whether an item has these values; an empty value means any, and keys without a value mean nothing.
fn has_values(item: &Value, keys: &[String], values: &[String]) -> Result<bool> {
    let mut last = false;
    for (at, key) in keys.iter().enumerate() {
        if let Some(wanted) = values.get(at) {
            last = if key.is_empty() {
                if item.is_object() || item.is_array() {
                    return Err(wrong_kind("ScalarNode", item));
                }
                text(item) == *wanted
            } else {
                let Value::Object(fields) = item else {
                    return Err(wrong_kind("MappingNode", item));
                };
                fields
                    .get(key)
                    .is_some_and(|field| wanted.is_empty() || text(field) == *wanted)
            };
        }
        if !last {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the items of one list to another, in the place of those with the same values.
fn append(mut to: Vec<Value>, items: Vec<Value>, keys: &[String]) -> Result<Vec<Value>> {
    for item in items {
        if keys.first().is_none_or(String::is_empty) {
            let value = text(&item).into_owned();
            set_item(&mut to, Some(item), &[String::new()], &[value])?;
            continue;
        }
        let mut values = Vec::new();
        for key in keys {
            let field = match &item {
                Value::Object(fields) => fields.get(key),
                Value::Null => None,
                other => {
                    let error: Error = wrong_kind("MappingNode", other);
                    return Err(error);
                }
            };
            match field {
                Some(field) => values.push(text(field).into_owned()),
                None => to.push(item.clone()),
            }
        }
        if keys.len() > 1 {
            set_item(&mut to, None, keys, &values)?;
        }
        set_item(&mut to, Some(item), keys, &values)?;
    }
    Ok(to)
}
