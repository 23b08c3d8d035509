//! Taking fields out of a value, and taking a value that has only given fields.

use fairway_kernel_schema::shape::{List, ListRelationship, Map as MapShape, ShapeId, Shapes};
use serde_json::{Map, Value};

use super::item::item_key;
use super::{Form, Typed, form};
use crate::fieldpath::{Path, PathElement, Set};

impl<'s> Typed<'s, '_> {
    /// The value without these items, map entries and fields.
    pub fn remove(&self, items: &Set) -> Typed<'s, 'static> {
        self.with_value(
            Walk {
                shapes: self.shapes,
                extract: false,
            }
            .value(Some(self.shape), &self.value, items),
        )
    }

    /// Only these items, map entries and fields of the value.
    pub fn extract(&self, items: &Set) -> Typed<'s, 'static> {
        self.with_value(
            Walk {
                shapes: self.shapes,
                extract: true,
            }
            .value(Some(self.shape), &self.value, items),
        )
    }

    /// Like [`Typed::extract`], with the key fields of every list item on the way.
    pub fn extract_with_keys(&self, items: &Set) -> Typed<'s, 'static> {
        let Ok(present) = self.to_field_set() else {
            return self.extract(items);
        };
        let mut keys = Set::new();
        items.for_each(&mut |path| {
            if !present.has(path) {
                return;
            }
            for (depth, element) in path.0.iter().enumerate() {
                if let PathElement::Key(fields) = element {
                    for field in fields {
                        let mut key: Vec<PathElement> = path.0.iter().take(depth + 1).cloned().collect();
                        key.push(PathElement::Field(field.name.clone()));
                        keys.insert(&Path(key));
                    }
                }
            }
        });
        self.extract(&items.union(&keys))
    }
}

struct Walk<'a> {
    shapes: &'a Shapes,
    extract: bool,
}

impl Walk<'_> {
    /// What is left of the value; null if that is nothing.
    fn value(&self, shape: Option<ShapeId>, value: &Value, items: &Set) -> Value {
        let Some(shape) = shape else {
            return Value::Null;
        };
        match form(self.shapes.get(shape), Some(value)) {
            Some(Form::Scalar(_)) => value.clone(),
            Some(Form::Map(map)) => match value {
                Value::Object(fields) if !fields.is_empty() && !map.atomic => self.map(map, fields, items),
                Value::Object(_) if self.extract => value.clone(),
                _ => Value::Null,
            },
            Some(Form::List(list)) => match value {
                Value::Array(elements)
                    if !elements.is_empty() && list.relationship != ListRelationship::Atomic =>
                {
                    self.list(list, elements, items)
                }
                Value::Array(_) if self.extract => value.clone(),
                _ => Value::Null,
            },
            None => Value::Null,
        }
    }

    fn map(&self, shape: &MapShape, fields: &Map<String, Value>, items: &Set) -> Value {
        let mut out = Map::with_capacity(fields.len());
        for (key, value) in fields {
            let node = items.get_field(key);
            let child = || shape.shape_of(key);
            let kept = match (node, self.extract) {
                (Some(node), true) if node.member => Some(self.value(child(), value, items)),
                (Some(node), false) if node.member => None,
                (Some(node), _) => Some(self.value(child(), value, &node.children)),
                (None, true) => None,
                (None, false) => Some(value.clone()),
            };
            if let Some(kept) = kept {
                out.insert(key.clone(), kept);
            }
        }
        if out.is_empty() {
            Value::Null
        } else {
            Value::Object(out)
        }
    }

    fn list(&self, shape: &List, elements: &[Value], items: &Set) -> Value {
        let mut out = Vec::with_capacity(elements.len());
        for element in elements {
            let key = item_key(self.shapes, shape, element);
            let node = key.ok().and_then(|key| items.get(|e| key.order_of(e)));
            let member = node.is_some_and(|node| node.member);
            let below = node
                .map(|node| &node.children)
                .filter(|children| !children.is_empty());
            let kept = match (member, below) {
                (true, _) if !self.extract => None,
                (_, Some(below)) => Some(self.value(Some(shape.element), element, below)),
                (true, None) => Some(element.clone()),
                (false, None) => (!self.extract).then(|| element.clone()),
            };
            out.extend(kept);
        }
        if out.is_empty() {
            Value::Null
        } else {
            Value::Array(out)
        }
    }
}
