//! Equality and order, across numeric types and with Kubernetes' semantics for sets and map lists.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;

use super::{List, Map, MapKey, Value};
use crate::decl::{DeclKind, ListType};
use crate::error::Error;
use crate::library::Opaque;
use crate::meter::Meter;

/// CEL equality: numbers compare by value whatever their type; values of other different types are unequal.
pub(crate) fn equals(meter: &Meter, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    meter.work(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()) / 64)?;
            a.as_str() == b.as_str()
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.work(a.len().min(b.len()) / 64)?;
            a == b
        }
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => equals(meter, a, b)?,
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Opaque(a), Value::Opaque(b)) => Opaque::equals(a, b),
        (Value::List(a), Value::List(b)) => lists_equal(meter, a, b)?,
        (Value::Map(a), Value::Map(b)) => maps_equal(meter, a, b)?,
        _ => numeric_order(left, right) == Some(Ordering::Equal),
    })
}

/// The order of two values, if their types have one.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, Error> {
    Ok(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.as_str().cmp(b.as_str())),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        _ if is_number(left) && is_number(right) => return Ok(numeric_order(left, right)),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn numeric_order(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => int_and_double(*a, *b),
        (Value::Uint(a), Value::Double(b)) => uint_and_double(*a, *b),
        (Value::Double(a), Value::Int(b)) => int_and_double(*b, *a).map(Ordering::reverse),
        (Value::Double(a), Value::Uint(b)) => uint_and_double(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

/// As doubles, within the range of integers; CEL does not ask for more than a double's precision.
fn int_and_double(int: i64, double: f64) -> Option<Ordering> {
    match double {
        d if d < i64::MIN as f64 => Some(Ordering::Greater),
        d if d > i64::MAX as f64 => Some(Ordering::Less),
        d => (int as f64).partial_cmp(&d),
    }
}

fn uint_and_double(uint: u64, double: f64) -> Option<Ordering> {
    match double {
        d if d < 0.0 => Some(Ordering::Greater),
        d if d > u64::MAX as f64 => Some(Ordering::Less),
        d => (uint as f64).partial_cmp(&d),
    }
}

fn lists_equal(meter: &Meter, left: &List<'_>, right: &List<'_>) -> Result<bool, Error> {
    if left.len() != right.len() {
        return Ok(false);
    }
    match left.associative() {
        Some((_, ListType::Set)) => sets_equal(meter, left, right),
        Some((_, ListType::Map(keys))) => map_lists_equal(meter, left, right, keys),
        _ => {
            for (a, b) in left.iter().zip(right.iter()) {
                if !equals(meter, &a?, &b?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Elements of sets are scalars; where they are not, fall back to comparing each with each.
fn sets_equal(meter: &Meter, left: &List<'_>, right: &List<'_>) -> Result<bool, Error> {
    let mut keys = HashSet::with_capacity(left.len());
    for element in left.iter() {
        meter.work(1)?;
        match MapKey::of(&element?) {
            Some(key) => keys.insert(key),
            None => return contains_all(meter, left, right),
        };
    }
    for element in right.iter() {
        meter.work(1)?;
        if !MapKey::of(&element?).is_some_and(|key| keys.contains(&key)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains_all(meter: &Meter, container: &List<'_>, elements: &List<'_>) -> Result<bool, Error> {
    for element in elements.iter() {
        let element = element?;
        let mut found = false;
        for candidate in container.iter() {
            if equals(meter, &candidate?, &element)? {
                found = true;
                break;
            }
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The values of a map list's key fields; `None` if the element is no object.
pub(crate) fn map_list_key(
    element: &Value<'_>,
    keys: &[Box<str>],
) -> Result<Option<Vec<Option<MapKey>>>, Error> {
    let Value::Map(map) = element else { return Ok(None) };
    let mut out = Vec::with_capacity(keys.len());
    for key in keys {
        let identifier = crate::escaping::escape(key);
        let value = map.get_field(identifier.as_deref().unwrap_or(key))?;
        out.push(value.as_ref().and_then(MapKey::of));
    }
    Ok(Some(out))
}

fn map_lists_equal(
    meter: &Meter,
    left: &List<'_>,
    right: &List<'_>,
    keys: &[Box<str>],
) -> Result<bool, Error> {
    let mut by_key = HashMap::with_capacity(left.len());
    for (index, element) in left.iter().enumerate() {
        meter.work(1 + keys.len())?;
        by_key.insert(map_list_key(&element?, keys)?, index);
    }
    for element in right.iter() {
        meter.work(1 + keys.len())?;
        let element = element?;
        let Some(&index) = by_key.get(&map_list_key(&element, keys)?) else {
            return Ok(false);
        };
        if !equals(meter, &left.get(index)?, &element)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(meter: &Meter, left: &Map<'_>, right: &Map<'_>) -> Result<bool, Error> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for key in left.keys() {
        let (Some(a), Some(b)) = (left.get(&key)?, right.get(&key)?) else {
            // Null fields of objects read as absent on both sides.
            if left.get(&key)?.is_none() && right.get(&key)?.is_none() {
                continue;
            }
            return Ok(false);
        };
        if !equals(meter, &a, &b)? {
            return Ok(false);
        }
    }
    invisible_fields_equal(meter, left, right)
}

/// Fields that CEL cannot see (preserved unknown fields) still count for equality of objects.
fn invisible_fields_equal(meter: &Meter, left: &Map<'_>, right: &Map<'_>) -> Result<bool, Error> {
    let (Map::Json(a, Some(decl)), Map::Json(b, Some(_))) = (left, right) else {
        return Ok(true);
    };
    let DeclKind::Object(object) = &decl.kind else {
        return Ok(true);
    };
    if a.len() == object.fields.len() && left.keys().len() == a.len() {
        return Ok(true);
    }
    for (name, value) in a.iter() {
        let visible = crate::escaping::escape(name).is_some_and(|n| object.fields.contains_key(&*n));
        if !visible && let Some(other) = b.get(name) {
            meter.work(json_nodes(value))?;
            if value != other {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn json_nodes(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(json_nodes).sum::<usize>(),
        Json::Object(map) => 1 + map.values().map(json_nodes).sum::<usize>(),
        _ => 1,
    }
}
