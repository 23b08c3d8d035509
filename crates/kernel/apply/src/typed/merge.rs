//! Merging a configuration into an object.
//!
//! Nothing is removed by a merge; where both sides have a leaf, the configuration's wins. The order of associative lists
//! is the configuration's for the items it has, and items that only the object has keep their place relative to their
//! neighbours.

use fairway_kernel_schema::shape::{List, ListRelationship, Map as MapShape, ShapeId, Shapes};
use serde_json::{Map, Value};

use super::item::{ItemKey, item_key, number};
use super::validate::scalar_error;
use super::{Form, INVALID_ATOM, Typed, ValidationErrors, as_list, as_map, form};
use crate::fieldpath::PathElement;

impl<'s> Typed<'s, '_> {
    /// This object with the configuration merged into it. Both must have been validated.
    pub fn merge(&self, config: &Typed<'_, '_>) -> Result<Typed<'s, 'static>, ValidationErrors> {
        let mut walk = Walk {
            shapes: self.shapes,
            errors: ValidationErrors::default(),
        };
        let merged = walk.value(self.shape, Some(&self.value), Some(&config.value));
        walk.errors
            .into_result(self.with_value(merged.unwrap_or(Value::Null)))
    }
}

struct Walk<'a> {
    shapes: &'a Shapes,
    errors: ValidationErrors,
}

impl<'a> Walk<'a> {
    /// What is left of two values, of which at most one may be absent.
    fn value(&mut self, shape: ShapeId, left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
        // With one side only there is nothing to merge: a copy has all that a walk would put together.
        let (left, right) = match (left, right) {
            (None | Some(Value::Null), Some(only)) | (Some(only), None) => return Some(only.clone()),
            (None, None) => return None,
            (Some(left), Some(right)) => (left, right),
        };
        match form(self.shapes.get(shape), Some(right)) {
            Some(Form::Scalar(scalar)) => {
                let errors = (
                    scalar_error(scalar, Some(left)),
                    scalar_error(scalar, Some(right)),
                );
                if let (Some(left), Some(right)) = errors {
                    self.errors.add(format!("lhs: {left}"));
                    self.errors.add(format!("rhs: {right}"));
                    return None;
                }
                Some(right.clone())
            }
            Some(Form::Map(map)) => self.map(map, left, right),
            Some(Form::List(list)) => self.list(list, left, right),
            None => {
                self.errors.add(INVALID_ATOM);
                None
            }
        }
    }

    fn map(&mut self, shape: &MapShape, left: &Value, right: &Value) -> Option<Value> {
        let nothing = Map::new();
        let left_map = as_map(Some(left)).unwrap_or(&nothing);
        let right_map = as_map(Some(right)).unwrap_or(&nothing);
        if shape.atomic || (left_map.is_empty() && right_map.is_empty()) {
            return Some(right.clone());
        }
        let mut out = Map::with_capacity(left_map.len().max(right_map.len()));
        let added = right_map
            .iter()
            .filter(|(key, _)| !left_map.contains_key(*key))
            .map(|(k, v)| (k, None, Some(v)));
        for (key, left, right) in left_map
            .iter()
            .map(|(k, v)| (k, Some(v), right_map.get(k)))
            .chain(added)
        {
            let mark = self.errors.mark();
            match shape.shape_of(key) {
                Some(child) => {
                    if let Some(merged) = self.value(child, left, right) {
                        out.insert(key.clone(), merged);
                    }
                }
                None => self.errors.add(INVALID_ATOM),
            }
            self.errors.prefix_since(mark, || PathElement::field(key));
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    fn list(&mut self, shape: &List, left: &Value, right: &Value) -> Option<Value> {
        let nothing = Vec::new();
        let left_items = as_list(Some(left)).unwrap_or(&nothing);
        let right_items = as_list(Some(right)).unwrap_or(&nothing);
        let atomic = shape.relationship == ListRelationship::Atomic;
        if atomic || (left_items.is_empty() && right_items.is_empty()) {
            return Some(right.clone());
        }
        let merged = self.items(shape, left_items, right_items)?;
        (!merged.is_empty()).then_some(Value::Array(merged))
    }

    fn items(&mut self, shape: &List, left: &[Value], right: &[Value]) -> Option<Vec<Value>> {
        let mark = self.errors.mark();
        let mut keys: Vec<ItemKey<'_>> = Vec::with_capacity(left.len() + right.len());
        for (index, item) in left.iter().enumerate().chain(right.iter().enumerate()) {
            match item_key(self.shapes, shape, item) {
                Ok(key) => keys.push(key),
                Err(error) => self.errors.add(format!("element {index}: {error}")),
            }
        }
        if self.errors.mark() > mark {
            return None;
        }
        let (numbers, count) = number(&keys);
        let (left_numbers, right_numbers) = numbers.split_at(left.len());

        let mut in_left = vec![Seen::Never; count];
        for (index, number) in left_numbers.iter().enumerate() {
            in_left[*number] = match in_left[*number] {
                Seen::Never => Seen::At(index),
                _ => Seen::Often,
            };
        }
        let mut in_right = vec![None; count];
        for (index, number) in right_numbers.iter().enumerate() {
            if in_right[*number].replace(index).is_some() {
                self.errors.add(format!(
                    "duplicate entries for key {}",
                    keys[left.len() + index].to_element()
                ));
            }
        }
        if self.errors.mark() > mark {
            return None;
        }

        let mut merge_right = |index: usize, merged: &mut Vec<Value>| {
            let number = right_numbers[index];
            // Duplicates in the object are not merged with: the configuration's item takes the place of all of them.
            let left_item = match in_left[number] {
                Seen::At(at) => Some(&left[at]),
                Seen::Never | Seen::Often => None,
            };
            let mark = self.errors.mark();
            merged.extend(self.value(shape.element, left_item, Some(&right[index])));
            self.errors
                .prefix_since(mark, || keys[left.len() + index].to_element());
        };

        let mut shared = right_numbers
            .iter()
            .filter(|number| !matches!(in_left[**number], Seen::Never));
        let mut next_shared = shared.next();
        let mut done = vec![false; count];
        let mut merged = Vec::with_capacity(left.len().max(right.len()));
        let (mut l, mut r) = (0, 0);
        while l < left.len() || r < right.len() {
            if let (Some(left_number), Some(right_number)) = (left_numbers.get(l), right_numbers.get(r)) {
                if left_number == right_number {
                    done[*right_number] = true;
                    merge_right(r, &mut merged);
                    (l, r) = (l + 1, r + 1);
                    next_shared = shared.next();
                    continue;
                }
                if in_right[*left_number].is_some() && next_shared.is_some_and(|next| next != left_number) {
                    // In both, but not the one whose turn it is.
                    l += 1;
                    continue;
                }
            }
            if let Some(left_number) = left_numbers.get(l) {
                if in_right[*left_number].is_none() {
                    merged.push(left[l].clone());
                    l += 1;
                    continue;
                }
                if done[*left_number] {
                    l += 1;
                }
            }
            if let Some(right_number) = right_numbers.get(r) {
                done[*right_number] = true;
                merge_right(r, &mut merged);
                r += 1;
                if next_shared == Some(right_number) {
                    next_shared = shared.next();
                }
            }
        }
        Some(merged)
    }
}

/// Where an identity occurs in the object's list.
#[derive(Clone, Copy)]
enum Seen {
    Never,
    At(usize),
    Often,
}
