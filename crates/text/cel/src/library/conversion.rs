//! Conversions between types, and how values print.

use super::{Opaque, arg};
use crate::cost::Cost;
use crate::error::Error;
use crate::functions::Registry;
use crate::meter::Meter;
use crate::value::{Duration, Timestamp, Value};

pub(super) fn register(r: &mut Registry) {
    for ty in ["int", "uint", "double", "string", "timestamp", "duration"] {
        r.add("int", &format!("({ty}) -> int"), Cost::Fixed(1), to_int);
    }
    for ty in ["uint", "int", "double", "string"] {
        r.add("uint", &format!("({ty}) -> uint"), Cost::Fixed(1), to_uint);
    }
    for ty in ["double", "int", "uint", "string"] {
        r.add("double", &format!("({ty}) -> double"), Cost::Fixed(1), to_double);
    }
    for ty in [
        "string",
        "bool",
        "int",
        "uint",
        "double",
        "bytes",
        "timestamp",
        "duration",
        "ip",
        "cidr",
    ] {
        let cost = if ty == "bytes" {
            Cost::BytesToString
        } else {
            Cost::Fixed(1)
        };
        r.add("string", &format!("({ty}) -> string"), cost, to_string);
    }
    r.add("bytes", "(bytes) -> bytes", Cost::Fixed(1), to_bytes);
    r.add("bytes", "(string) -> bytes", Cost::StringToBytes, to_bytes);
    r.add("bool", "(bool) -> bool", Cost::Fixed(1), to_bool);
    r.add("bool", "(string) -> bool", Cost::Fixed(1), to_bool);
    r.add("duration", "(duration) -> duration", Cost::Fixed(1), to_duration);
    r.add("duration", "(string) -> duration", Cost::Fixed(1), to_duration);
    r.add("duration", "(int) -> duration", Cost::Fixed(1), to_duration);
    r.add(
        "timestamp",
        "(timestamp) -> timestamp",
        Cost::Fixed(1),
        to_timestamp,
    );
    r.add("timestamp", "(string) -> timestamp", Cost::Fixed(1), to_timestamp);
    r.add("timestamp", "(int) -> timestamp", Cost::Fixed(1), to_timestamp);
}

fn to_int<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let range = Error::Overflow("integer");
    Ok(Value::Int(match &args[0] {
        Value::Int(value) => *value,
        Value::Uint(value) => i64::try_from(*value).map_err(|_| range)?,
        // The ends of the range are not exact as doubles, so they are out.
        Value::Double(value) if *value > i64::MIN as f64 && *value < i64::MAX as f64 => *value as i64,
        Value::Double(_) => return Err(range),
        Value::String(text) => parse_integer(text).ok_or_else(|| unparsable("int"))?,
        Value::Timestamp(value) => value.seconds(),
        Value::Duration(value) => value.0,
        _ => return Err(Error::NoSuchOverload),
    }))
}

fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn to_uint<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let range = Error::Overflow("unsigned integer");
    Ok(Value::Uint(match &args[0] {
        Value::Uint(value) => *value,
        Value::Int(value) => u64::try_from(*value).map_err(|_| range)?,
        Value::Double(value) if *value >= 0.0 && *value < u64::MAX as f64 => *value as u64,
        Value::Double(_) => return Err(range),
        Value::String(text) => {
            if text.starts_with('+') {
                return Err(unparsable("uint"));
            }
            text.parse().map_err(|_| unparsable("uint"))?
        }
        _ => return Err(Error::NoSuchOverload),
    }))
}

fn to_double<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Double(match &args[0] {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::String(text) => text.parse().map_err(|_| unparsable("double"))?,
        _ => return Err(Error::NoSuchOverload),
    }))
}

fn unparsable(ty: &str) -> Error {
    Error::invalid(format!("type conversion error from 'string' to '{ty}'"))
}

fn to_string<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::String(_) => Ok(args[0].clone()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::string(text)),
            Err(_) => Err(Error::invalid("invalid UTF-8 in bytes, cannot convert to string")),
        },
        other => Ok(Value::string(display(other))),
    }
}

fn to_bytes<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        Value::Bytes(_) => Ok(args[0].clone()),
        _ => Err(Error::NoSuchOverload),
    }
}

fn to_bool<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::Bool(value) => Ok(Value::Bool(*value)),
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unparsable("bool")),
        },
        _ => Err(Error::NoSuchOverload),
    }
}

fn to_duration<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::Duration(value) => Ok(Value::Duration(*value)),
        Value::Int(nanos) => Ok(Value::Duration(Duration(*nanos))),
        _ => {
            let text = arg!(args, 0, String);
            Duration::parse(text)
                .map(Value::Duration)
                .ok_or_else(|| unparsable("google.protobuf.Duration"))
        }
    }
}

fn to_timestamp<'a>(_: &Meter, args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match &args[0] {
        Value::Timestamp(value) => Ok(Value::Timestamp(*value)),
        Value::Int(seconds) => Timestamp::from_seconds(*seconds, 0)
            .map(Value::Timestamp)
            .ok_or(Error::Overflow("timestamp")),
        _ => {
            let text = arg!(args, 0, String);
            Timestamp::parse(text)
                .map(Value::Timestamp)
                .ok_or_else(|| unparsable("google.protobuf.Timestamp"))
        }
    }
}

/// How a scalar prints.
pub(crate) fn display(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => shortest_double(*value),
        Value::String(text) => text.as_str().to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Duration(value) => value.to_string(),
        Value::Timestamp(value) => value.to_string(),
        Value::Type(name) => (*name).to_owned(),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Ip(address) => address.to_string(),
            Opaque::Cidr(cidr) => cidr.to_string(),
            _ => value.type_name().to_owned(),
        },
        Value::List(_) | Value::Map(_) | Value::Optional(_) => value.type_name().to_owned(),
    }
}

/// A double as Go's `%g` prints it: shortest digits, exponent below 1e-4 and from 1e6 on.
pub(crate) fn shortest_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
