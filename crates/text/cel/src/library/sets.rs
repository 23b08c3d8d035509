//! Lists as sets.

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::{List, Value, equals};

pub(super) fn register(r: &mut Registry) {
    r.add(
        "sets.contains",
        "(list<T>, list<T>) -> bool",
        Cost::Sets(1),
        |meter, args| contains(meter, arg!(args, 0, List), arg!(args, 1, List)).map(Value::Bool),
    );
    r.add(
        "sets.equivalent",
        "(list<T>, list<T>) -> bool",
        Cost::Sets(2),
        |meter, args| {
            let (left, right) = (arg!(args, 0, List), arg!(args, 1, List));
            Ok(Value::Bool(
                contains(meter, left, right)? && contains(meter, right, left)?,
            ))
        },
    );
    r.add(
        "sets.intersects",
        "(list<T>, list<T>) -> bool",
        Cost::Sets(1),
        |meter, args| {
            let (left, right) = (arg!(args, 0, List), arg!(args, 1, List));
            for element in right.iter() {
                if is_member(meter, left, &element?)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
    );
}

fn contains(meter: &Meter, list: &List<'_>, elements: &List<'_>) -> Result<bool, Error> {
    for element in elements.iter() {
        if !is_member(meter, list, &element?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_member(meter: &Meter, list: &List<'_>, value: &Value<'_>) -> Result<bool, Error> {
    for element in list.iter() {
        if equals(meter, &element?, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}
