//! Optional values.

use std::sync::Arc;

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::Value;

pub(super) fn register(r: &mut Registry) {
    r.add("optional.of", "(A) -> optional<A>", Cost::Fixed(1), |_, args| {
        Ok(Value::some(args[0].clone()))
    });
    r.add(
        "optional.ofNonZeroValue",
        "(A) -> optional<A>",
        Cost::Fixed(1),
        |_, args| {
            Ok(if is_zero(&args[0]) {
                Value::none()
            } else {
                Value::some(args[0].clone())
            })
        },
    );
    r.add("optional.none", "() -> optional<A>", Cost::Fixed(1), |_, _| {
        Ok(Value::none())
    });
    r.add("hasValue", "optional<A>.() -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(arg!(args, 0, Optional).is_some()))
    });
    r.add("value", "optional<A>.() -> A", Cost::Fixed(1), |_, args| {
        match arg!(args, 0, Optional) {
            Some(value) => Ok((**value).clone()),
            None => Err(Error::invalid("optional.none() dereference")),
        }
    });
    // Planned as nodes of their own, since the alternative is evaluated only when it is needed.
    r.add(
        "or",
        "optional<A>.(optional<A>) -> optional<A>",
        Cost::Fixed(1),
        or,
    );
    r.add("orValue", "optional<A>.(A) -> A", Cost::Fixed(1), or_value);
    r.add("first", "list<A>.() -> optional<A>", Cost::Fixed(1), |_, args| {
        let list = arg!(args, 0, List);
        if list.is_empty() {
            Ok(Value::none())
        } else {
            list.get(0).map(Value::some)
        }
    });
    r.add("last", "list<A>.() -> optional<A>", Cost::Fixed(1), |_, args| {
        let list = arg!(args, 0, List);
        if list.is_empty() {
            Ok(Value::none())
        } else {
            list.get(list.len() - 1).map(Value::some)
        }
    });
    r.add(
        "optional.unwrap",
        "(list<optional<A>>) -> list<A>",
        Cost::Fixed(1),
        unwrap,
    );
    r.add(
        "unwrapOpt",
        "list<optional<A>>.() -> list<A>",
        Cost::Fixed(1),
        unwrap,
    );
}

fn or<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(if arg!(args, 0, Optional).is_some() {
        args[0].clone()
    } else {
        args[1].clone()
    })
}

fn or_value<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(arg!(args, 0, Optional)
        .as_ref()
        .map_or_else(|| args[1].clone(), |value| (**value).clone()))
}

fn unwrap<'a>(meter: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = arg!(args, 0, List);
    meter.work(list.len() * 32)?;
    let mut present = Vec::new();
    for element in list.iter() {
        match element? {
            Value::Optional(Some(value)) => present.push(Arc::unwrap_or_clone(value)),
            Value::Optional(None) => {}
            _ => return Err(Error::NoSuchOverload),
        }
    }
    Ok(Value::list(present))
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Optional(None) => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(value) => value.0 == 0,
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Timestamp(_) | Value::Type(_) | Value::Optional(Some(_)) | Value::Opaque(_) => false,
    }
}
