//! Names of fields: elements of a path, paths, and sets of paths.
//!
//! A path leads from an object to one of its fields. It goes through fields by name, through items of associative
//! lists by their keys or value, so that it stays true when items move.

pub mod codec;
pub mod filter;
mod name;
pub mod set;

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

pub use filter::{Filter, Matcher};
pub use name::FieldName;
pub use set::Set;

use crate::value_order;

/// One step of a path.
///
/// The order is the canonical one of the `FieldsV1` format: fields, then items by key, by value, by index.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of a map or struct.
    Field(FieldName),
    /// The item of an associative list whose key fields have these values; sorted by name.
    Key(Box<[KeyField]>),
    /// The item of a set that has this value.
    Value(Box<Value>),
    /// The item of a list at this position.
    Index(i64),
}

/// One field of the key of a list item.
#[derive(Clone, Debug)]
pub struct KeyField {
    /// Name of the field.
    pub name: FieldName,
    /// Its value.
    pub value: Value,
}

impl PathElement {
    /// A field, by name.
    pub fn field(name: &str) -> Self {
        Self::Field(FieldName::new(name))
    }

    /// An item, by its key fields in any order.
    pub fn key<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut fields: Vec<KeyField> = fields
            .into_iter()
            .map(|(name, value)| KeyField {
                name: FieldName::new(name),
                value,
            })
            .collect();
        fields.sort_by(|l, r| l.name.cmp(&r.name));
        Self::Key(fields.into())
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(l), Self::Field(r)) => l.cmp(r),
            (Self::Key(l), Self::Key(r)) => compare_keys(
                l.iter().map(|f| (f.name.as_bytes(), &f.value)),
                r.iter().map(|f| (f.name.as_bytes(), &f.value)),
            ),
            (Self::Value(l), Self::Value(r)) => value_order::compare(l, r),
            (Self::Index(l), Self::Index(r)) => l.cmp(r),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Orders two keys, each given as fields sorted by name.
pub(crate) fn compare_keys<'l, 'r>(
    mut left: impl Iterator<Item = (&'l [u8], &'l Value)>,
    mut right: impl Iterator<Item = (&'r [u8], &'r Value)>,
) -> Ordering {
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((left_name, left_value)), Some((right_name, right_value))) => {
                let order = left_name
                    .cmp(right_name)
                    .then_with(|| value_order::compare(left_value, right_value));
                if order.is_ne() {
                    return order;
                }
            }
        }
    }
}

/// As users see it in conflicts: `.spec`, `[name="nginx"]`, `[="a"]`, `[3]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{}", name.as_str()),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{}={}", field.name.as_str(), field.value)?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path from an object to one of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path through fields only.
    pub fn of_fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| PathElement::field(name)).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}
