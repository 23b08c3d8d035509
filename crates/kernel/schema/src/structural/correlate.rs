//! Which old value a new one descends from, and whether it changed.
//!
//! Two things depend on it: errors in parts that an update did not touch are tolerated (a definition may have become
//! stricter since), and transition rules see the old value. Lists are matched by their map keys only; elements of
//! atomic lists and of sets have no past.

use std::collections::HashMap;

use serde_json::Value;

use super::canonical;
use super::node::{ListType, Node, Type};

/// A new value, the old one it descends from, and the schema of both.
#[derive(Clone, Copy)]
pub(super) struct Correlated<'a> {
    pub(super) node: &'a Node,
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
}

impl<'a> Correlated<'a> {
    /// The value under a key; `None` when either side or the schema lacks it.
    pub(super) fn key(self, name: &str) -> Option<Self> {
        Some(Self {
            node: self.node.field(name)?,
            new: self.new.get(name)?,
            old: self.old.get(name)?,
        })
    }

    /// The old elements by their keys, if this is a list that has keys.
    pub(super) fn index(self) -> Option<OldItems<'a>> {
        OldItems::new(self.node, self.old)
    }

    /// Whether nothing changed, map lists compared regardless of order.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                let Some((index, items)) = self.index().zip(self.node.items()) else {
                    return new == old;
                };
                new.iter().all(|item| {
                    index.get(item).is_some_and(|old| {
                        Self {
                            node: items,
                            new: item,
                            old,
                        }
                        .is_unchanged()
                    })
                })
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(Correlated::is_unchanged))
            }
            (new, old) => new == old,
        }
    }
}

/// The elements of an old map list, found by their keys.
pub(super) struct OldItems<'a> {
    node: &'a Node,
    by_key: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(super) fn new(node: &'a Node, old: &'a Value) -> Option<Self> {
        if node.schema_type != Type::Array || node.list_type != ListType::Map || node.map_keys().is_empty() {
            return None;
        }
        let mut by_key = HashMap::new();
        for item in old.as_array()? {
            if let Some(key) = composite_key(node, item) {
                by_key.entry(key).or_insert(item);
            }
        }
        Some(Self { node, by_key })
    }

    /// The old element with the keys of this one.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        self.by_key.get(&composite_key(self.node, item)?).copied()
    }
}

/// The keys of an element as one text; `None` when one is missing or not a scalar.
fn composite_key(node: &Node, item: &Value) -> Option<String> {
    let item = item.as_object()?;
    let mut key = String::new();
    for name in node.map_keys() {
        let value = item.get(&**name)?;
        if value.is_null() || value.is_array() || value.is_object() {
            return None;
        }
        canonical::write(value, &mut key);
        key.push('\0');
    }
    Some(key)
}
