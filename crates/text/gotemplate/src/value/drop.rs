//! Letting go of values without recursion. A template can nest maps as deeply as it likes, one in the next, and the
//! stack of the thread that drops them is not that deep.

use std::rc::Rc;

use super::{List, MapInner, Value};

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::List(_))
}

/// Takes apart what nobody else holds, with a list of its own instead of the stack.
fn dismantle(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::Map(map) => {
                if let Some(mut inner) = Rc::into_inner(map.0) {
                    let entries = std::mem::take(inner.entries.get_mut());
                    pending.extend(entries.into_values().filter(is_container));
                }
            }
            Value::List(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    pending.extend(std::mem::take(&mut list.items).into_iter().filter(is_container));
                }
            }
            _ => {}
        }
    }
}

impl Drop for MapInner {
    fn drop(&mut self) {
        let entries = self.entries.get_mut();
        if entries.values().any(is_container) {
            dismantle(
                std::mem::take(entries)
                    .into_values()
                    .filter(is_container)
                    .collect(),
            );
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.items.iter().any(is_container) {
            dismantle(std::mem::take(&mut self.items));
        }
    }
}
