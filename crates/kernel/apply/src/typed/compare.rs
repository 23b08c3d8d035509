//! What changed between two values, as three sets of fields.

use fairway_kernel_schema::shape::{Field, List, ListRelationship, Map as MapShape, ShapeId, Shapes};
use serde_json::{Map, Value};

use super::item::{ItemKey, item_key, number};
use super::validate::scalar_error;
use super::{Form, INVALID_ATOM, Typed, ValidationErrors, as_list, as_map, form};
use crate::fieldpath::set::{Part, SetBuilder};
use crate::fieldpath::{Filter, PathElement, Set};
use crate::value_order;

/// The difference between two values. No path is in two of the sets, save for list items that became duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Fields that only the second has.
    pub added: Set,
    /// Fields that differ.
    pub modified: Set,
    /// Fields that only the first has.
    pub removed: Set,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The comparison of only what the filter leaves.
    pub fn filter(&self, filter: &Filter) -> Self {
        Self {
            added: filter.filter(&self.added),
            modified: filter.filter(&self.modified),
            removed: filter.filter(&self.removed),
        }
    }
}

impl Typed<'_, '_> {
    /// What is different in `new`.
    pub fn compare(&self, new: &Typed<'_, '_>) -> Result<Comparison, ValidationErrors> {
        self.compare_except(new, &[])
    }

    /// Like [`Typed::compare`], but takes the values under the path `skip` as the same.
    pub(crate) fn compare_except(
        &self,
        new: &Typed<'_, '_>,
        skip: &[&str],
    ) -> Result<Comparison, ValidationErrors> {
        let mut walk = Walk {
            shapes: self.shapes,
            zero_values: self.zero_values || new.zero_values,
            zero_depth: 0,
            errors: ValidationErrors::default(),
        };
        let diff = walk.value(self.shape, Some(&self.value), Some(&new.value), skip);
        walk.errors.into_result(Comparison {
            added: diff.added.children,
            modified: diff.modified.children,
            removed: diff.removed.children,
        })
    }
}

struct Walk<'a> {
    shapes: &'a Shapes,
    zero_values: bool,
    /// How many zero values the walk is inside of; Go's structs are finite, a schema need not be.
    zero_depth: usize,
    errors: ValidationErrors,
}

const MAX_ZERO_DEPTH: usize = 16;

/// The difference at one value.
#[derive(Default)]
struct Diff {
    added: Part,
    modified: Part,
    removed: Part,
}

/// The differences below one value, while they are collected.
#[derive(Default)]
struct DiffBuilder {
    added: SetBuilder,
    modified: SetBuilder,
    removed: SetBuilder,
}

impl DiffBuilder {
    fn push(&mut self, element: impl Fn() -> PathElement, diff: Diff) {
        self.added.push(&element, diff.added);
        self.modified.push(&element, diff.modified);
        self.removed.push(&element, diff.removed);
    }

    fn finish(self) -> Diff {
        let part = |builder: SetBuilder| Part {
            member: false,
            children: builder.finish(),
        };
        Diff {
            added: part(self.added),
            modified: part(self.modified),
            removed: part(self.removed),
        }
    }
}

impl Diff {
    fn union(self, other: Self) -> Self {
        let part = |l: Part, r: Part| Part {
            member: l.member || r.member,
            children: l.children.union(&r.children),
        };
        Self {
            added: part(self.added, other.added),
            modified: part(self.modified, other.modified),
            removed: part(self.removed, other.removed),
        }
    }
}

impl<'a> Walk<'a> {
    /// Compares two values, of which at most one may be absent.
    fn value(&mut self, shape: ShapeId, left: Option<&Value>, right: Option<&Value>, skip: &[&str]) -> Diff {
        let atom = self.shapes.get(shape);
        let Some(left_form) = form(atom, left.or(right)) else {
            self.errors.add(INVALID_ATOM);
            return Diff::default();
        };
        let Some(right_form) = form(atom, right.or(left)) else {
            return Diff::default();
        };
        // A value whose type has several forms may have changed its form: then it differs in both.
        let other_form = if left_form.same_kind(&right_form) {
            None
        } else {
            Some(self.value_as(left_form, left, right, skip))
        };
        let diff = self.value_as(right_form, left, right, skip);
        match other_form {
            Some(other) => other.union(diff),
            None => diff,
        }
    }

    fn value_as(
        &mut self,
        form: Form<'a>,
        left: Option<&Value>,
        right: Option<&Value>,
        skip: &[&str],
    ) -> Diff {
        let below = match form {
            Form::Scalar(scalar) => {
                if let (Some(l), Some(r)) = (scalar_error(scalar, left), scalar_error(scalar, right)) {
                    self.errors.add(format!("lhs: {l}"));
                    self.errors.add(format!("rhs: {r}"));
                    return Diff::default();
                }
                None
            }
            Form::Map(map) => {
                let (l, r) = (as_map(left), as_map(right));
                // Two empty ones are a leaf, which keeps empty and null apart.
                let leaf = map.atomic || (l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty));
                let zero_fields = leaf
                    && self.zero_values
                    && !map.atomic
                    && (left.is_none() || right.is_none())
                    && map.fields.iter().any(|field| zero_value(field).is_some());
                (!leaf || zero_fields).then(|| self.map(map, l, r, skip))
            }
            Form::List(list) => {
                let (l, r) = (as_list(left), as_list(right));
                let leaf = list.relationship == ListRelationship::Atomic
                    || (l.is_none_or(Vec::is_empty) && r.is_none_or(Vec::is_empty));
                (!leaf).then(|| self.list(list, l.map_or(&[], Vec::as_slice), r.map_or(&[], Vec::as_slice)))
            }
        };
        let is_leaf = below.is_none();
        let mut diff = below.unwrap_or_default();
        match (left, right) {
            (None, _) => diff.added.member = true,
            (_, None) => diff.removed.member = true,
            (Some(l), Some(r)) if is_leaf => diff.modified.member = !value_order::equals(l, r),
            _ => {}
        }
        diff
    }

    fn map(
        &mut self,
        shape: &MapShape,
        left: Option<&Map<String, Value>>,
        right: Option<&Map<String, Value>>,
        skip: &[&str],
    ) -> Diff {
        let mut below = DiffBuilder::default();
        for (key, left_value) in left.into_iter().flatten() {
            let field = shape.field(key);
            let right_value = match right {
                Some(right) => right.get(key).or_else(|| self.zero_value(field)),
                None => None,
            };
            self.field(shape, field, key, Some(left_value), right_value, skip, &mut below);
        }
        for (key, right_value) in right.into_iter().flatten() {
            if left.is_some_and(|left| left.contains_key(key)) {
                continue;
            }
            let field = shape.field(key);
            let left_value = left.and_then(|_| self.zero_value(field));
            self.field(shape, field, key, left_value, Some(right_value), skip, &mut below);
        }
        if self.zero_values
            && self.zero_depth < MAX_ZERO_DEPTH
            && let (Some(one), None) | (None, Some(one)) = (left, right)
        {
            for field in shape
                .fields
                .iter()
                .filter(|field| !one.contains_key(field.name.as_ref()))
            {
                let Some(zero) = zero_value(field) else { continue };
                let (l, r) = if left.is_some() {
                    (Some(zero), None)
                } else {
                    (None, Some(zero))
                };
                self.zero_depth += 1;
                self.field(shape, Some(field), &field.name, l, r, skip, &mut below);
                self.zero_depth -= 1;
            }
        }
        below.finish()
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one call per way in which a field can be on one side or both"
    )]
    fn field(
        &mut self,
        shape: &MapShape,
        field: Option<&Field>,
        key: &str,
        left: Option<&Value>,
        right: Option<&Value>,
        skip: &[&str],
        below: &mut DiffBuilder,
    ) {
        let skip = match skip.split_first() {
            Some((first, [])) if *first == key => return,
            Some((first, rest)) if *first == key => rest,
            _ => &[],
        };
        let mark = self.errors.mark();
        match field.map(|f| f.shape).or(shape.element) {
            Some(child) => {
                let diff = self.value(child, left, right, skip);
                below.push(|| PathElement::field(key), diff);
            }
            None => self.errors.add(INVALID_ATOM),
        }
        self.errors.prefix_since(mark, || PathElement::field(key));
    }

    fn zero_value<'f>(&self, field: Option<&'f Field>) -> Option<&'f Value> {
        field.filter(|_| self.zero_values).and_then(zero_value)
    }

    fn list(&mut self, shape: &'a List, left: &[Value], right: &[Value]) -> Diff {
        let mut keys: Vec<ItemKey<'_>> = Vec::with_capacity(left.len() + right.len());
        let mut items: Vec<(bool, &Value)> = Vec::with_capacity(left.len() + right.len());
        let sides = left.iter().enumerate().map(|(i, v)| (true, i, v));
        for (is_left, index, item) in sides.chain(right.iter().enumerate().map(|(i, v)| (false, i, v))) {
            match item_key(self.shapes, shape, item) {
                Ok(key) => {
                    keys.push(key);
                    items.push((is_left, item));
                }
                Err(error) => self.errors.add(format!("element {index}: {error}")),
            }
        }
        let (numbers, count) = number(&keys);
        let mut groups: Vec<Group<'_>> = (0..count).map(|_| Group::default()).collect();
        for (index, (number, (is_left, item))) in numbers.into_iter().zip(items).enumerate() {
            let group = &mut groups[number];
            group.first = group.first.or(Some(index));
            if is_left {
                group.left.push(item);
            } else {
                group.right.push(item);
            }
        }
        let mut below = DiffBuilder::default();
        for group in groups {
            let Some(key) = group.first.map(|index| &keys[index]) else {
                continue;
            };
            let mark = self.errors.mark();
            let diff = self.group(shape, &group.left, &group.right);
            self.errors.prefix_since(mark, || key.to_element());
            below.push(|| key.to_element(), diff);
        }
        below.finish()
    }

    /// Compares the items of one identity. Duplicates count as one leaf.
    fn group(&mut self, shape: &List, left: &[&Value], right: &[&Value]) -> Diff {
        match (left, right) {
            ([] | [_], [] | [_]) => {
                self.value(shape.element, left.first().copied(), right.first().copied(), &[])
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len()
                    && left.iter().zip(right).all(|(l, r)| value_order::equals(l, r));
                let mut diff = Diff::default();
                diff.modified.member = !same;
                diff
            }
            ([_, _, ..], _) => {
                let mut diff = match right.first() {
                    Some(only) => self.value(shape.element, None, Some(only), &[]),
                    None => Diff::default(),
                };
                diff.removed.member = true;
                diff
            }
            (_, [_, _, ..]) => {
                let mut diff = match left.first() {
                    Some(only) => self.value(shape.element, Some(only), None, &[]),
                    None => Diff::default(),
                };
                diff.added.member = true;
                diff
            }
        }
    }
}

/// The items of one identity.
#[derive(Default)]
struct Group<'v> {
    first: Option<usize>,
    left: Vec<&'v Value>,
    right: Vec<&'v Value>,
}

/// What a Go struct has in this field before anyone sets it, if it then has the field at all.
fn zero_value(field: &Field) -> Option<&Value> {
    field.default.as_ref().filter(|default| match default {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) => false,
        Value::Object(fields) => fields.is_empty(),
    })
}
