//! The math extension, which Kubernetes leaves out.

use std::cmp::Ordering;

use super::arg;
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::{Function, Registry};
use crate::meter::Meter;
use crate::value::{Value, compare};

const NUMBERS: [&str; 3] = ["int", "uint", "double"];

pub(super) fn register(r: &mut Registry) {
    for (name, call) in [
        ("math.@max", greatest as Function),
        ("math.@min", least as Function),
    ] {
        for a in NUMBERS {
            r.add(name, &format!("({a}) -> {a}"), Cost::Fixed(1), call);
            r.add(name, &format!("(list<{a}>) -> {a}"), Cost::Traverse, call);
            for b in NUMBERS {
                let result = if a == b { a } else { "dyn" };
                r.add(name, &format!("({a}, {b}) -> {result}"), Cost::Fixed(1), call);
            }
        }
    }
    let roundings: [(&'static str, Function); 4] = [
        ("math.ceil", |_, args| {
            Ok(Value::Double(arg!(args, 0, Double).ceil()))
        }),
        ("math.floor", |_, args| {
            Ok(Value::Double(arg!(args, 0, Double).floor()))
        }),
        ("math.round", |_, args| {
            Ok(Value::Double(arg!(args, 0, Double).round()))
        }),
        ("math.trunc", |_, args| {
            Ok(Value::Double(arg!(args, 0, Double).trunc()))
        }),
    ];
    for (name, call) in roundings {
        r.add(name, "(double) -> double", Cost::Fixed(1), call);
    }
    r.add("math.isNaN", "(double) -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(arg!(args, 0, Double).is_nan()))
    });
    r.add("math.isInf", "(double) -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(arg!(args, 0, Double).is_infinite()))
    });
    r.add("math.isFinite", "(double) -> bool", Cost::Fixed(1), |_, args| {
        Ok(Value::Bool(arg!(args, 0, Double).is_finite()))
    });
    for ty in NUMBERS {
        r.add("math.abs", &format!("({ty}) -> {ty}"), Cost::Fixed(1), abs);
        r.add("math.sign", &format!("({ty}) -> {ty}"), Cost::Fixed(1), sign);
        r.add("math.sqrt", &format!("({ty}) -> double"), Cost::Fixed(1), sqrt);
    }
    for ty in ["int", "uint"] {
        for (name, call) in [
            ("math.bitAnd", and as Function),
            ("math.bitOr", or),
            ("math.bitXor", xor),
        ] {
            r.add(name, &format!("({ty}, {ty}) -> {ty}"), Cost::Fixed(1), call);
        }
        r.add("math.bitNot", &format!("({ty}) -> {ty}"), Cost::Fixed(1), not);
        r.add(
            "math.bitShiftLeft",
            &format!("({ty}, int) -> {ty}"),
            Cost::Fixed(1),
            shift_left,
        );
        r.add(
            "math.bitShiftRight",
            &format!("({ty}, int) -> {ty}"),
            Cost::Fixed(1),
            shift_right,
        );
    }
}

fn greatest<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    extreme(args, "math.@max", Ordering::Less)
}

fn least<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    extreme(args, "math.@min", Ordering::Greater)
}

fn extreme<'a>(args: &[Value<'a>], name: &str, worse: Ordering) -> Result<Value<'a>, Error> {
    let candidates = match args {
        [Value::List(list)] => list.to_vec()?,
        other => other.to_vec(),
    };
    let mut candidates = candidates.into_iter();
    let empty = || Error::invalid(format!("{name}(list) argument must not be empty"));
    let mut best = candidates.next().ok_or_else(empty)?;
    for candidate in candidates {
        if compare(&best, &candidate)? == Some(worse) {
            best = candidate;
        }
    }
    Ok(best)
}

fn abs<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match &args[0] {
        Value::Int(value) => Value::Int(value.checked_abs().ok_or(Error::Overflow("integer"))?),
        Value::Double(value) => Value::Double(value.abs()),
        other => other.clone(),
    })
}

fn sign<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match &args[0] {
        Value::Int(value) => Value::Int(value.signum()),
        Value::Uint(value) => Value::Uint((*value).min(1)),
        Value::Double(value) if *value == 0.0 || value.is_nan() => Value::Double(*value),
        Value::Double(value) => Value::Double(value.signum()),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn sqrt<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Double(match &args[0] {
        Value::Int(value) => (*value as f64).sqrt(),
        Value::Uint(value) => (*value as f64).sqrt(),
        Value::Double(value) => value.sqrt(),
        _ => return Err(Error::NoSuchOverload),
    }))
}

fn bitwise<'a>(
    args: &[Value<'a>],
    int: fn(i64, i64) -> i64,
    uint: fn(u64, u64) -> u64,
) -> Result<Value<'a>, Error> {
    Ok(match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(int(*a, *b)),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(uint(*a, *b)),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn and<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    bitwise(args, |a, b| a & b, |a, b| a & b)
}

fn or<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    bitwise(args, |a, b| a | b, |a, b| a | b)
}

fn xor<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    bitwise(args, |a, b| a ^ b, |a, b| a ^ b)
}

fn not<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(match &args[0] {
        Value::Int(value) => Value::Int(!value),
        Value::Uint(value) => Value::Uint(!value),
        _ => return Err(Error::NoSuchOverload),
    })
}

/// Shifting by more than the width gives zero, to the right as well: CEL shifts bits, not numbers.
fn shift<'a>(args: &[Value<'a>], name: &str, by: fn(u64, u32) -> Option<u64>) -> Result<Value<'a>, Error> {
    let places = *arg!(args, 1, Int);
    if places < 0 {
        return Err(Error::invalid(format!("{name}() negative offset: {places}")));
    }
    let places = u32::try_from(places).unwrap_or(u32::MAX);
    Ok(match &args[0] {
        Value::Int(value) => Value::Int(by(*value as u64, places).unwrap_or(0) as i64),
        Value::Uint(value) => Value::Uint(by(*value, places).unwrap_or(0)),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn shift_left<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shift(args, "math.bitShiftLeft", u64::checked_shl)
}

fn shift_right<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shift(args, "math.bitShiftRight", u64::checked_shr)
}
