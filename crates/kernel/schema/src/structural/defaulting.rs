//! Defaults, and what becomes of nulls.
//!
//! A null where none is allowed stands for "not set": it is removed when objects are read, or replaced where the schema
//! has a default.

use serde_json::Value;

use super::node::{Flags, Node};

/// Fills in the defaults of everything below `value`; the default of `node` itself is its parent's business.
pub(super) fn apply(node: &Node, value: &mut Value) {
    if !node.has(Flags::DEFAULTS_BELOW) {
        return;
    }
    match value {
        Value::Object(object) => {
            for (name, property) in node.properties() {
                let Some(default) = &property.default else {
                    continue;
                };
                match object.get_mut(&**name) {
                    None => {
                        object.insert(name.to_string(), (**default).clone());
                    }
                    Some(slot) if is_forbidden_null(property, slot) => *slot = (**default).clone(),
                    Some(_) => {}
                }
            }
            for (name, value) in object.iter_mut() {
                if let Some(child) = node.property(name) {
                    apply(child, value);
                } else if let Some(child) = node.additional() {
                    replace_null(child, value);
                    apply(child, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.items() else { return };
            for item in items {
                replace_null(child, item);
                apply(child, item);
            }
        }
        _ => {}
    }
}

fn is_forbidden_null(node: &Node, value: &Value) -> bool {
    value.is_null() && !node.has(Flags::NULLABLE)
}

fn replace_null(node: &Node, value: &mut Value) {
    if is_forbidden_null(node, value)
        && let Some(default) = &node.default
    {
        *value = (**default).clone();
    }
}

/// Removes nulls from maps where the schema neither allows them nor has a default to put in their place.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(object) => object.retain(|name, value| {
            let Some(child) = node.field(name) else {
                return true;
            };
            if is_forbidden_null(child, value) && child.default.is_none() {
                return false;
            }
            drop_nulls(child, value);
            true
        }),
        Value::Array(items) => {
            let Some(child) = node.items() else { return };
            for item in items {
                drop_nulls(child, item);
            }
        }
        _ => {}
    }
}
