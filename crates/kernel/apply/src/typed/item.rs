//! How items of associative lists are identified, and how two lists are matched by that.
//!
//! Identities are numbered in their sorted order before anything is matched, so that matching costs a table look-up
//! per item and long lists stay cheap.

use std::borrow::Cow;
use std::cmp::Ordering;

use fairway_kernel_schema::shape::{List, ListRelationship, Shapes};
use serde_json::Value;

use crate::fieldpath::{FieldName, KeyField, PathElement, compare_keys};
use crate::value_order;

/// Identity of an item, borrowed from it.
#[derive(Clone, Debug)]
pub(super) enum ItemKey<'a> {
    /// Key fields, sorted by name.
    Fields(Vec<(&'a str, &'a Value)>),
    /// The item itself, in a set.
    Value(&'a Value),
}

impl ItemKey<'_> {
    pub(super) fn to_element(&self) -> PathElement {
        match self {
            Self::Fields(fields) => PathElement::Key(
                fields
                    .iter()
                    .map(|(name, value)| KeyField {
                        name: FieldName::new(name),
                        value: (*value).clone(),
                    })
                    .collect(),
            ),
            Self::Value(value) => PathElement::Value(Box::new((*value).clone())),
        }
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &Value)> {
        let fields = match self {
            Self::Fields(fields) => fields.as_slice(),
            Self::Value(_) => &[],
        };
        fields.iter().map(|(name, value)| (name.as_bytes(), *value))
    }

    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Value(l), Self::Value(r)) => value_order::compare(l, r),
            _ => compare_keys(self.fields(), other.fields()),
        }
    }

    /// The order of the element against this key.
    pub(super) fn order_of(&self, element: &PathElement) -> Ordering {
        match (element, self) {
            (PathElement::Key(fields), Self::Fields(_)) => compare_keys(
                fields.iter().map(|f| (f.name.as_bytes(), &f.value)),
                self.fields(),
            ),
            (PathElement::Value(l), Self::Value(r)) => value_order::compare(l, r),
            (PathElement::Field(_), _) | (PathElement::Key(_), Self::Value(_)) => Ordering::Less,
            (PathElement::Value(_), Self::Fields(_)) | (PathElement::Index(_), _) => Ordering::Greater,
        }
    }
}

/// The identity of an item of an associative list.
pub(super) fn item_key<'a>(
    shapes: &'a Shapes,
    list: &'a List,
    item: &'a Value,
) -> Result<ItemKey<'a>, Cow<'static, str>> {
    match &list.relationship {
        ListRelationship::Atomic => Err("invalid indexing of non-associative list".into()),
        ListRelationship::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            _ => Ok(ItemKey::Value(item)),
        },
        ListRelationship::Map(keys) => {
            let map = match item {
                Value::Object(map) => map,
                Value::Null => return Err("associative list with keys may not have a null element".into()),
                _ => return Err("associative list with keys may not have non-map elements".into()),
            };
            let shape = shapes.get(list.element).map.as_ref();
            let mut fields = Vec::with_capacity(keys.len());
            for key in keys {
                if let Some(value) = map.get(key.as_ref()) {
                    fields.push((key.as_ref(), value));
                    continue;
                }
                let Some(shape) = shape else {
                    return Err(format!(
                        "couldn't find default value for {key}: associative list may not have non-map types"
                    )
                    .into());
                };
                // A key that is absent and has no default is left out: its absence is part of the identity.
                if let Some(default) = shape
                    .field(key)
                    .and_then(|f| f.default.as_ref())
                    .filter(|d| !d.is_null())
                {
                    fields.push((key.as_ref(), default));
                }
            }
            if fields.is_empty() {
                let names: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                     values for any key fields)",
                    names.join(" ")
                )
                .into());
            }
            fields.sort_by_key(|(name, _)| *name);
            Ok(ItemKey::Fields(fields))
        }
    }
}

/// Numbers identities: equal ones get the same number, and numbers follow the order of identities. Returns the numbers
/// and how many there are.
pub(super) fn number(keys: &[ItemKey<'_>]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|l, r| keys[*l].cmp(&keys[*r]));
    let mut numbers = vec![0; keys.len()];
    let mut count = 0;
    let mut previous: Option<usize> = None;
    for index in order {
        if previous.is_some_and(|p| keys[p].cmp(&keys[index]).is_ne()) {
            count += 1;
        }
        numbers[index] = count;
        previous = Some(index);
    }
    (numbers, count + usize::from(!keys.is_empty()))
}
