//! `x-kubernetes-list-type`: elements of sets and keys of map lists occur once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::canonical;
use super::node::{Flags, ListType, Node};
use super::trail::{Step, Trail};
use crate::field::{FieldError, Path};

/// Reports the first repetition of each element of each set and map list.
pub(super) fn validate(node: &Node, value: &Value, trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    if !node.has(Flags::KEYED_LISTS_BELOW) {
        return;
    }
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if let Some(child) = node.property(name) {
                    validate(child, value, &trail.then(Step::Field(name)), errors);
                } else if let Some(child) = node.additional() {
                    validate(child, value, &trail.then(Step::Key(name)), errors);
                }
            }
        }
        Value::Array(items) => {
            match node.list_type {
                ListType::Atomic => {}
                ListType::Set => duplicates(items.iter().map(canonical::text), |i| {
                    errors.push(FieldError::duplicate(
                        &element(trail, i),
                        canonical::shown(&items[i]),
                    ));
                }),
                ListType::Map => map_list(node, items, trail, errors),
            }
            if let Some(child) = node.items() {
                for (i, item) in items.iter().enumerate() {
                    validate(child, item, &trail.then(Step::Index(i)), errors);
                }
            }
        }
        _ => {}
    }
}

fn element(trail: &Trail<'_>, index: usize) -> Path {
    trail.then(Step::Index(index)).path(&Path::root())
}

fn map_list(node: &Node, items: &[Value], trail: &Trail<'_>, errors: &mut Vec<FieldError>) {
    for (i, item) in items.iter().enumerate() {
        if !item.is_null() && !item.is_object() {
            errors.push(FieldError::invalid(
                &element(trail, i),
                canonical::shown(item),
                "must be an object for an array of list-type map",
            ));
            return;
        }
    }
    // The keys that are there; a missing key differs from a null one.
    let key_of = |item: &Value| -> Map<String, Value> {
        node.map_keys()
            .iter()
            .filter_map(|name| Some((name.to_string(), item.get(&**name)?.clone())))
            .collect()
    };
    let texts = items.iter().map(|item| {
        let mut text = String::new();
        for (i, name) in node.map_keys().iter().enumerate() {
            if let Some(value) = item.get(&**name) {
                text.push_str(&i.to_string());
                text.push(':');
                canonical::write(value, &mut text);
            }
        }
        text
    });
    duplicates(texts, |i| {
        errors.push(FieldError::duplicate(
            &element(trail, i),
            canonical::shown(&Value::Object(key_of(&items[i]))),
        ));
    });
}

/// Calls back with the index of the second occurrence of each text.
fn duplicates(texts: impl Iterator<Item = String>, mut found: impl FnMut(usize)) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for (i, text) in texts.enumerate() {
        let times = seen.entry(text).or_insert(0);
        *times = times.saturating_add(1);
        if *times == 2 {
            found(i);
        }
    }
}
