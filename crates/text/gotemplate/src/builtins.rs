//! The functions that Go's templates have by themselves.

use crate::arg;
use crate::error::Fault;
use crate::fmt::{sprint, sprintf, sprintln};
use crate::functions::{Func, Param};
use crate::machine::Machine;
use crate::value::{UintType, Value};

use Param::{Any, Str};

type Answer = Result<Value, Fault>;

pub(crate) const TABLE: &[Func] = &[
    // The executor does these two itself, because they do not look at all of their arguments.
    Func::variadic("and", &[Any, Any], first),
    Func::variadic("or", &[Any, Any], first),
    Func::new("not", &[Any], |_, args| {
        Ok(Value::Bool(!arg::any(args, 0).truth()))
    }),
    Func::variadic("call", &[Any, Any], call),
    Func::variadic("html", &[Any], |_, args| escape(args, html_escape)),
    Func::variadic("js", &[Any], |_, args| escape(args, js_escape)),
    Func::variadic("urlquery", &[Any], |_, args| escape(args, query_escape)),
    Func::variadic("index", &[Any, Any], index),
    Func::variadic("slice", &[Any, Any], slice),
    Func::new("len", &[Any], len),
    Func::variadic("print", &[Any], |_, args| Ok(sprint(args)?.into())),
    Func::variadic("println", &[Any], |_, args| Ok(sprintln(args)?.into())),
    Func::variadic("printf", &[Str, Any], printf),
    Func::variadic("eq", &[Any, Any], |_, args| {
        Ok(Value::Bool(eq(arg::any(args, 0), &args[1..])?))
    }),
    Func::new("ne", &[Any, Any], |_, args| {
        Ok(Value::Bool(!eq(arg::any(args, 0), &args[1..])?))
    }),
    Func::new("lt", &[Any, Any], |_, args| {
        Ok(Value::Bool(lt(arg::any(args, 0), arg::any(args, 1))?))
    }),
    Func::new("le", &[Any, Any], |_, args| Ok(Value::Bool(le(args)?))),
    Func::new("gt", &[Any, Any], |_, args| Ok(Value::Bool(!le(args)?))),
    Func::new("ge", &[Any, Any], |_, args| {
        Ok(Value::Bool(!lt(arg::any(args, 0), arg::any(args, 1))?))
    }),
];

fn first(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    Ok(arg::any(args, 0).clone())
}

fn call(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    match arg::any(args, 0) {
        Value::Invalid | Value::Nil => Err("call of nil".into()),
        other => Err(format!("non-function of type {}", other.type_name()).into()),
    }
}

fn printf(machine: &mut Machine<'_>, args: &[Value]) -> Answer {
    let printed = sprintf(arg::bytes(args, 0), &args[1..])?;
    machine.spend_bytes(printed.len())?;
    Ok(printed.into())
}

fn len(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let length = match arg::any(args, 0) {
        Value::Str(text) | Value::Bytes(text) => text.len(),
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.len(),
        Value::Invalid | Value::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Value::int(length as i64))
}

fn index_number(index: &Value, length: usize) -> Result<usize, Fault> {
    let number = match index {
        Value::Int(_, int) => *int,
        Value::Uint(_, uint) => i64::try_from(*uint).unwrap_or(-1),
        Value::Invalid | Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => return Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    };
    match usize::try_from(number) {
        Ok(at) if at <= length => Ok(at),
        _ => Err(format!("index out of range: {number}").into()),
    }
}

fn index(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let mut item = arg::any(args, 0).clone();
    if item.is_nil() {
        return Err("index of untyped nil".into());
    }
    for index in &args[1..] {
        let out_of_range = |at: usize, length: usize| {
            Fault::new(format!(
                "error calling index: reflect: slice index out of range [{at}] with length {length}"
            ))
        };
        item = match &item {
            Value::Invalid | Value::Nil => return Err("index of nil pointer".into()),
            Value::Str(text) | Value::Bytes(text) => {
                let at = index_number(index, text.len())?;
                let byte = text.get(at).ok_or_else(|| out_of_range(at, text.len()))?;
                Value::Uint(UintType::Uint8, u64::from(*byte))
            }
            Value::List(list) => {
                let at = index_number(index, list.items.len())?;
                list.items
                    .get(at)
                    .ok_or_else(|| out_of_range(at, list.items.len()))?
                    .clone()
            }
            Value::Map(map) => match index {
                Value::Str(key) => map.get(key).unwrap_or_else(|| map.ty().elem.zero()),
                Value::Invalid | Value::Nil => {
                    return Err("value is nil; should be of type string".into());
                }
                other => {
                    return Err(format!("value has type {}; should be string", other.type_name()).into());
                }
            },
            other => return Err(format!("can't index item of type {}", other.type_name()).into()),
        };
    }
    Ok(item)
}

fn slice(_: &mut Machine<'_>, args: &[Value]) -> Answer {
    let item = arg::any(args, 0);
    let indexes = &args[1..];
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let length = match item {
        Value::Invalid | Value::Nil => return Err("slice of untyped nil".into()),
        Value::Str(_) if indexes.len() == 3 => return Err("cannot 3-index slice a string".into()),
        Value::Str(text) | Value::Bytes(text) => text.len(),
        Value::List(list) => list.items.len(),
        other => return Err(format!("can't slice item of type {}", other.type_name()).into()),
    };
    let mut bounds = [0, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = index_number(index, length)?;
    }
    let [start, end] = bounds;
    if start > end {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    Ok(match item {
        Value::Bytes(text) => Value::Bytes(text[start..end].into()),
        Value::Str(text) => Value::str(&text[start..end]),
        Value::List(list) => Value::typed_list(list.ty, list.items[start..end].to_vec()),
        other => other.clone(),
    })
}

/// What values are compared as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Invalid,
    Bool,
    Int,
    Uint,
    Float,
    Str,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(..) | Value::Duration(_) => Basic::Int,
        Value::Uint(..) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Str(_) => Basic::Str,
        _ => Basic::Invalid,
    }
}

fn incompatible() -> Fault {
    Fault::new("incompatible types for comparison")
}

/// Go's `eq`: whether the first equals any of the others.
pub(crate) fn eq(left: &Value, others: &[Value]) -> Result<bool, Fault> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for right in others {
        let equal = match (left, right) {
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(_, left) | Value::Duration(left), Value::Int(_, right) | Value::Duration(right)) => {
                left == right
            }
            (Value::Uint(_, left), Value::Uint(_, right)) => left == right,
            (Value::Int(_, int), Value::Uint(_, uint)) | (Value::Uint(_, uint), Value::Int(_, int)) => {
                u64::try_from(*int) == Ok(*uint)
            }
            (Value::Float(left), Value::Float(right)) => left == right,
            (Value::Str(left), Value::Str(right)) => left == right,
            (left, right) if left.is_nil() || right.is_nil() => left.is_nil() && right.is_nil(),
            (left, right) if basic(left) != basic(right) => return Err(incompatible()),
            (Value::Struct(left), Value::Struct(right)) if left.ty.pointer => {
                std::rc::Rc::ptr_eq(left, right)
            }
            (Value::Time(left), Value::Time(right)) => left == right,
            (left, right) if left.kind() != right.kind() => {
                return Err(format!(
                    "non-comparable types {}: {}, {}: {}",
                    crate::fmt::print_bounded(left),
                    left.type_name(),
                    right.type_name(),
                    crate::fmt::print_bounded(right)
                )
                .into());
            }
            (_, right) => {
                let shown = crate::fmt::print_bounded(right);
                return Err(format!("non-comparable type {shown}: {}", right.type_name()).into());
            }
        };
        if equal {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lt(left: &Value, right: &Value) -> Result<bool, Fault> {
    const BAD: &str = "invalid type for comparison";
    let kinds = (basic(left), basic(right));
    if kinds.0 == Basic::Invalid || kinds.1 == Basic::Invalid {
        return Err(BAD.into());
    }
    Ok(match (left, right) {
        (Value::Int(_, left) | Value::Duration(left), Value::Int(_, right) | Value::Duration(right)) => {
            left < right
        }
        (Value::Uint(_, left), Value::Uint(_, right)) => left < right,
        (Value::Int(_, left), Value::Uint(_, right)) => {
            u64::try_from(*left).map_or(true, |left| left < *right)
        }
        (Value::Uint(_, left), Value::Int(_, right)) => {
            u64::try_from(*right).is_ok_and(|right| *left < right)
        }
        (Value::Float(left), Value::Float(right)) => left < right,
        (Value::Str(left), Value::Str(right)) => left < right,
        _ if kinds.0 != kinds.1 => return Err(incompatible()),
        _ => return Err(BAD.into()),
    })
}

fn le(args: &[Value]) -> Result<bool, Fault> {
    let (left, right) = (arg::any(args, 0), arg::any(args, 1));
    Ok(lt(left, right)? || eq(left, std::slice::from_ref(right))?)
}

fn escape(args: &[Value], escape: fn(&[u8]) -> Vec<u8>) -> Answer {
    let printed = match args {
        [Value::Str(text)] => text.to_vec(),
        _ => sprint(args)?,
    };
    Ok(escape(&printed).into())
}

fn html_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            other => out.push(other),
        }
    }
    out
}

fn js_escape(text: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(text.len());
    for c in crate::text::lossy(text).chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' => out.push_str("\\u003C"),
            '>' => out.push_str("\\u003E"),
            '&' => out.push_str("\\u0026"),
            '=' => out.push_str("\\u003D"),
            c if c < ' ' || !crate::text::is_print(c) => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.into_bytes()
}

/// Go's `url.QueryEscape`.
pub(crate) fn query_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte),
            b' ' => out.push(b'+'),
            other => out.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    out
}
