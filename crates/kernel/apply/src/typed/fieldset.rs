//! The set of fields that a configuration mentions.

use fairway_kernel_schema::shape::{List, ListRelationship, Map as MapShape, ShapeId, Shapes};
use serde_json::{Map, Value};

use super::item::{ItemKey, item_key, number};
use super::{Form, INVALID_ATOM, Typed, ValidationErrors, form};
use crate::fieldpath::set::{Part, SetBuilder};
use crate::fieldpath::{PathElement, Set};

impl Typed<'_, '_> {
    /// Every leaf, item and map entry that the value has. Fields of structs are in it only if they are leaves.
    pub fn to_field_set(&self) -> Result<Set, ValidationErrors> {
        let mut walk = Walk {
            shapes: self.shapes,
            errors: ValidationErrors::default(),
        };
        let part = walk.value(self.shape, &self.value);
        walk.errors.into_result(part.children)
    }
}

struct Walk<'a> {
    shapes: &'a Shapes,
    errors: ValidationErrors,
}

impl Walk<'_> {
    fn value(&mut self, shape: ShapeId, value: &Value) -> Part {
        let leaf = Part {
            member: true,
            children: Set::new(),
        };
        match form(self.shapes.get(shape), Some(value)) {
            Some(Form::Scalar(_)) => leaf,
            Some(Form::Map(map)) if map.atomic => leaf,
            Some(Form::Map(map)) => match value {
                Value::Object(fields) => self.map(map, fields),
                _ => Part::default(),
            },
            Some(Form::List(list)) if list.relationship == ListRelationship::Atomic => leaf,
            Some(Form::List(list)) => match value {
                Value::Array(items) => self.list(list, items),
                _ => Part::default(),
            },
            None => {
                self.errors.add(INVALID_ATOM);
                Part::default()
            }
        }
    }

    fn map(&mut self, shape: &MapShape, fields: &Map<String, Value>) -> Part {
        let mut children = SetBuilder::default();
        for (key, value) in fields {
            let declared = shape.field(key);
            let mark = self.errors.mark();
            let mut part = match declared.map(|f| f.shape).or(shape.element) {
                Some(child) => self.value(child, value),
                None => {
                    self.errors.add(INVALID_ATOM);
                    Part::default()
                }
            };
            self.errors.prefix_since(mark, || PathElement::field(key));
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            part.member |= empty || declared.is_none();
            children.push(|| PathElement::field(key), part);
        }
        Part {
            member: false,
            children: children.finish(),
        }
    }

    fn list(&mut self, shape: &List, items: &[Value]) -> Part {
        let keyed: Vec<(&Value, ItemKey<'_>)> = items
            .iter()
            .filter_map(|item| Some((item, item_key(self.shapes, shape, item).ok()?)))
            .collect();
        let keys: Vec<ItemKey<'_>> = keyed.iter().map(|(_, key)| key.clone()).collect();
        let (numbers, count) = number(&keys);
        let mut occurrences = vec![0_usize; count];
        for number in &numbers {
            occurrences[*number] += 1;
        }
        let mut children = SetBuilder::default();
        for ((item, key), number) in keyed.iter().zip(numbers) {
            // Duplicates are owned together, as if they were one leaf.
            let mut part = if occurrences[number] > 1 {
                Part::default()
            } else {
                self.value(shape.element, item)
            };
            part.member = true;
            children.push(|| key.to_element(), part);
        }
        Part {
            member: false,
            children: children.finish(),
        }
    }
}
