//! Lists and maps, borrowed from JSON or built by the expression.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Str, Value};
use crate::decl::{DeclKind, DeclType, ListType};
use crate::error::Error;
use crate::escaping::escape;

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// Built by the expression.
    #[doc(hidden)]
    Owned(Arc<Vec<Value<'a>>>),
    /// A JSON array; with the declaration of the list, if it has one.
    #[doc(hidden)]
    Json(&'a [Json], Option<&'a DeclType>),
    /// The union of a set or map list with another list; still a set or map list.
    #[doc(hidden)]
    Merged(Arc<Vec<Value<'a>>>, &'a DeclType),
}

impl<'a> List<'a> {
    pub(crate) fn owned(elements: Vec<Value<'a>>) -> List<'a> {
        List::Owned(Arc::new(elements))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            List::Owned(elements) | List::Merged(elements, _) => elements.len(),
            List::Json(elements, _) => elements.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index below `len`; an error if the data does not match its schema.
    pub fn get(&self, index: usize) -> Result<Value<'a>, Error> {
        let element = match self {
            List::Owned(elements) | List::Merged(elements, _) => elements.get(index).cloned(),
            List::Json(elements, decl) => match elements.get(index) {
                Some(element) => return Value::from_json(element, items_of(*decl)),
                None => None,
            },
        };
        element.ok_or(Error::IndexOutOfBounds(index as i64))
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, Error>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(crate) fn to_vec(&self) -> Result<Vec<Value<'a>>, Error> {
        match self {
            List::Owned(elements) | List::Merged(elements, _) => Ok(elements.to_vec()),
            List::Json(..) => self.iter().collect(),
        }
    }

    /// The declaration that gives this list set or map semantics.
    pub(crate) fn associative(&self) -> Option<(&'a DeclType, &'a ListType)> {
        let decl = match self {
            List::Owned(_) | List::Json(_, None) => return None,
            List::Json(_, Some(decl)) | List::Merged(_, decl) => *decl,
        };
        match &decl.kind {
            DeclKind::List {
                list_type: ListType::Atomic,
                ..
            } => None,
            DeclKind::List { list_type, .. } => Some((decl, list_type)),
            _ => None,
        }
    }
}

fn items_of(decl: Option<&DeclType>) -> Option<&DeclType> {
    match &decl?.kind {
        DeclKind::List { items, .. } => Some(items),
        _ => None,
    }
}

/// A map or an object.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// Built by the expression.
    #[doc(hidden)]
    Owned(Arc<OwnedMap<'a>>),
    /// A JSON object; with its declaration, if it has one.
    #[doc(hidden)]
    Json(&'a serde_json::Map<String, Json>, Option<&'a DeclType>),
}

/// Entries in the order of insertion, with an index over the keys.
#[derive(Clone, Debug, Default)]
pub struct OwnedMap<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<MapKey, usize>,
}

/// A key in the form in which equal keys of different numeric types are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MapKey {
    Bool(bool),
    Int(i128),
    String(Arc<str>),
}

impl MapKey {
    /// `None` for values that cannot be keys. A double is a key only if it is a whole number.
    pub(crate) fn of(value: &Value<'_>) -> Option<MapKey> {
        Some(match value {
            Value::Bool(value) => MapKey::Bool(*value),
            Value::Int(value) => MapKey::Int(i128::from(*value)),
            Value::Uint(value) => MapKey::Int(i128::from(*value)),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 1e19 => MapKey::Int(*value as i128),
            Value::String(Str::Shared(text)) => MapKey::String(text.clone()),
            Value::String(Str::Borrowed(text)) => MapKey::String((*text).into()),
            _ => return None,
        })
    }
}

/// Builds a map entry by entry.
#[derive(Debug, Default)]
pub(crate) struct MapBuilder<'a> {
    map: OwnedMap<'a>,
}

impl<'a> MapBuilder<'a> {
    /// Continues a map; copies it only if somebody else holds it.
    pub(crate) fn extend(map: Map<'a>) -> Result<MapBuilder<'a>, Error> {
        match map {
            Map::Owned(map) => Ok(MapBuilder {
                map: Arc::unwrap_or_clone(map),
            }),
            json @ Map::Json(..) => {
                let mut builder = MapBuilder::default();
                for key in json.keys() {
                    if let Some(value) = json.get(&key)? {
                        builder.insert(key, value)?;
                    }
                }
                Ok(builder)
            }
        }
    }

    /// Adds an entry; the key must be new.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), Error> {
        let valid = matches!(
            key,
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_)
        );
        let normal = MapKey::of(&key).filter(|_| valid);
        let normal =
            normal.ok_or_else(|| Error::invalid(format!("unsupported key type: {}", key.type_name())))?;
        if self.map.index.insert(normal, self.map.entries.len()).is_some() {
            return Err(Error::invalid(format!(
                "insert failed: key {} already exists",
                show_key(&key)
            )));
        }
        self.map.entries.push((key, value));
        Ok(())
    }

    pub(crate) fn finish(self) -> Map<'a> {
        Map::Owned(Arc::new(self.map))
    }
}

pub(crate) fn show_key(key: &Value<'_>) -> String {
    match key {
        Value::String(text) => text.as_str().to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.type_name().to_owned(),
    }
}

impl<'a> Map<'a> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Owned(map) => map.entries.len(),
            Map::Json(map, _) => map.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key, or `None`; an error if the data does not match its schema or the key's type is impossible.
    pub fn get(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
        match self {
            Map::Owned(map) => {
                if let Value::String(text) = key {
                    return Ok(map.get_str(text));
                }
                let entry = MapKey::of(key).and_then(|key| map.index.get(&key));
                Ok(entry.map(|&index| map.entries[index].1.clone()))
            }
            Map::Json(..) => match key {
                Value::String(text) => self.get_field(text),
                _ => Ok(None),
            },
        }
    }

    /// The value of a string key or of a field by its identifier.
    pub fn get_field(&self, name: &str) -> Result<Option<Value<'a>>, Error> {
        let (map, decl) = match self {
            Map::Owned(map) => return Ok(map.get_str(name)),
            Map::Json(map, decl) => (*map, *decl),
        };
        let (json_name, decl) = match decl.map(|d| &d.kind) {
            Some(DeclKind::Object(object)) => match object.fields.get(name) {
                // A null field is an absent field.
                Some(field) => match map.get(&*field.json_name) {
                    None | Some(Json::Null) => return Ok(None),
                    Some(value) => return Value::from_json(value, field.decl.as_deref()).map(Some),
                },
                None => return Ok(None),
            },
            Some(DeclKind::Map(values)) => (name, Some(&**values)),
            _ => (name, None),
        };
        map.get(json_name)
            .map(|value| Value::from_json(value, decl))
            .transpose()
    }

    /// All keys, fields by their identifiers.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Owned(map) => map.entries.iter().map(|(key, _)| key.clone()).collect(),
            Map::Json(map, decl) => match decl.map(|d| &d.kind) {
                Some(DeclKind::Object(object)) => {
                    let visible = map.keys().filter_map(|name| escape(name));
                    visible
                        .filter(|name| object.fields.contains_key(&**name))
                        .map(Value::string)
                        .collect()
                }
                _ => map
                    .keys()
                    .map(|name| Value::String(Str::Borrowed(name)))
                    .collect(),
            },
        }
    }
}

impl<'a> OwnedMap<'a> {
    fn get_str(&self, name: &str) -> Option<Value<'a>> {
        // Short maps are common and cheaper to scan than to hash an owned key for.
        if self.entries.len() <= 8 {
            let entry = self.entries.iter().find(|(key, _)| key.as_str() == Some(name));
            return entry.map(|(_, value)| value.clone());
        }
        self.index
            .get(&MapKey::String(name.into()))
            .map(|&index| self.entries[index].1.clone())
    }
}
