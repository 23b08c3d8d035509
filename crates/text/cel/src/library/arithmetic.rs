//! `+ - * / %` on numbers, text, lists and time, with overflow as an error.

use std::collections::HashMap;
use std::sync::Arc;

use super::arg;
use crate::cost::Cost;
use crate::decl::{DeclType, ListType};
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::{Duration, List, MapKey, Value};

/// What copying one list element counts for; it bounds how large a list can grow by doubling.
const WORK_PER_ELEMENT: usize = 32;

pub(super) fn register(r: &mut Registry) {
    for ty in ["int", "uint", "double", "duration"] {
        let signature = format!("({ty}, {ty}) -> {ty}");
        r.add("_+_", &signature, Cost::Fixed(1), add);
        r.add("_-_", &signature, Cost::Fixed(1), subtract);
    }
    for ty in ["int", "uint", "double"] {
        r.add("_*_", &format!("({ty}, {ty}) -> {ty}"), Cost::Fixed(1), multiply);
        r.add("_/_", &format!("({ty}, {ty}) -> {ty}"), Cost::Fixed(1), divide);
    }
    for ty in ["int", "uint"] {
        r.add("_%_", &format!("({ty}, {ty}) -> {ty}"), Cost::Fixed(1), modulo);
    }
    for ty in ["int", "double"] {
        r.add("-_", &format!("({ty}) -> {ty}"), Cost::Fixed(1), negate);
    }
    r.add("_+_", "(string, string) -> string", Cost::Concat, add);
    r.add("_+_", "(bytes, bytes) -> bytes", Cost::Concat, add);
    r.add("_+_", "(list<A>, list<A>) -> list<A>", Cost::ConcatLists, concat);
    r.add("_+_", "(timestamp, duration) -> timestamp", Cost::Fixed(1), add);
    r.add("_+_", "(duration, timestamp) -> timestamp", Cost::Fixed(1), add);
    r.add(
        "_-_",
        "(timestamp, timestamp) -> duration",
        Cost::Fixed(1),
        subtract,
    );
    r.add(
        "_-_",
        "(timestamp, duration) -> timestamp",
        Cost::Fixed(1),
        subtract,
    );
}

const INT: Error = Error::Overflow("integer");
const UINT: Error = Error::Overflow("unsigned integer");
const DURATION: Error = Error::Overflow("duration");
const TIMESTAMP: Error = Error::Overflow("timestamp");

fn add<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or(INT)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(*b).ok_or(UINT)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            meter.work((a.len() + b.len()) / 8)?;
            Value::string([a.as_str(), b.as_str()].concat())
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.work((a.len() + b.len()) / 8)?;
            Value::Bytes([&**a, &**b].concat().into())
        }
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(Duration(a.0.checked_add(b.0).ok_or(DURATION)?))
        }
        (Value::Timestamp(a), Value::Duration(b)) | (Value::Duration(b), Value::Timestamp(a)) => {
            Value::Timestamp(a.add(*b).ok_or(TIMESTAMP)?)
        }
        _ => return Err(Error::NoSuchOverload),
    })
}

fn subtract<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(*b).ok_or(INT)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_sub(*b).ok_or(UINT)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a - b),
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(Duration(a.0.checked_sub(b.0).ok_or(DURATION)?))
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => Value::Duration(a.since(*b).ok_or(DURATION)?),
        (Value::Timestamp(a), Value::Duration(b)) => {
            let opposite = Duration(b.0.checked_neg().ok_or(DURATION)?);
            Value::Timestamp(a.add(opposite).ok_or(TIMESTAMP)?)
        }
        _ => return Err(Error::NoSuchOverload),
    })
}

fn multiply<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_mul(*b).ok_or(INT)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_mul(*b).ok_or(UINT)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a * b),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn divide<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            return Err(Error::ByZero("division"));
        }
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_div(*b).ok_or(INT)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a / b),
        (Value::Double(a), Value::Double(b)) => Value::Double(a / b),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn modulo<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => {
            return Err(Error::ByZero("modulus"));
        }
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_rem(*b).ok_or(INT)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a % b),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn negate<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match &args[0] {
        Value::Int(a) => Value::Int(a.checked_neg().ok_or(INT)?),
        Value::Double(a) => Value::Double(-a),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn concat<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (left, right) = (arg!(args, 0, List), arg!(args, 1, List));
    meter.work((left.len() + right.len()).saturating_mul(WORK_PER_ELEMENT))?;
    if let Some((decl, list_type)) = left.associative() {
        return merge(left, right, decl, list_type);
    }
    let mut elements = left.to_vec()?;
    elements.reserve(right.len());
    for element in right.iter() {
        elements.push(element?);
    }
    Ok(Value::list(elements))
}

/// `x + y` for sets is the union; for map lists, elements of `y` replace those of `x` with the same key.
fn merge<'a>(
    left: &List<'a>,
    right: &List<'a>,
    decl: &'a DeclType,
    list_type: &ListType,
) -> Result<Value<'a>, Error> {
    type Key = Option<Vec<Option<MapKey>>>;
    let key_of = |element: &Value<'a>| -> Result<Key, Error> {
        match list_type {
            ListType::Map(keys) => crate::value::map_list_key(element, keys),
            _ => Ok(MapKey::of(element).map(|key| vec![Some(key)])),
        }
    };
    let mut elements = left.to_vec()?;
    let mut positions: HashMap<Key, usize> = HashMap::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        positions.insert(key_of(element)?, index);
    }
    for element in right.iter() {
        let element = element?;
        let key = key_of(&element)?;
        match (positions.get(&key), list_type) {
            (Some(&index), ListType::Map(_)) => elements[index] = element,
            (Some(_), _) => {}
            (None, _) => {
                if *list_type == ListType::Set {
                    positions.insert(key, elements.len());
                }
                elements.push(element);
            }
        }
    }
    Ok(Value::List(List::Merged(Arc::new(elements), decl)))
}
