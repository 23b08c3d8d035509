//! The arguments of a call as Rust values. Signatures are checked before a function runs, so the defaults here are
//! never seen; they keep a mistake in a signature from becoming a panic.

use std::borrow::Cow;

use crate::text::lossy;
use crate::value::{Map, Str, Value};

/// The bytes of a string.
pub fn bytes(args: &[Value], at: usize) -> &[u8] {
    match args.get(at) {
        Some(Value::Str(text) | Value::Bytes(text)) => text,
        _ => b"",
    }
}

/// A string as text.
pub fn text(args: &[Value], at: usize) -> Cow<'_, str> {
    lossy(bytes(args, at))
}

/// A string, shared.
pub fn shared(args: &[Value], at: usize) -> Str {
    match args.get(at) {
        Some(Value::Str(text)) => text.clone(),
        _ => b"".as_slice().into(),
    }
}

/// An integer.
pub fn int(args: &[Value], at: usize) -> i64 {
    match args.get(at) {
        Some(Value::Int(_, int) | Value::Duration(int)) => *int,
        _ => 0,
    }
}

/// An integer that counts something; none if it is negative.
pub fn count(args: &[Value], at: usize) -> Option<usize> {
    usize::try_from(int(args, at)).ok()
}

/// A float.
pub fn float(args: &[Value], at: usize) -> f64 {
    match args.get(at) {
        Some(Value::Float(float)) => *float,
        _ => 0.0,
    }
}

/// A boolean.
pub fn boolean(args: &[Value], at: usize) -> bool {
    matches!(args.get(at), Some(Value::Bool(true)))
}

/// A map; none if it is nil.
pub fn map(args: &[Value], at: usize) -> Option<&Map> {
    args.get(at).and_then(Value::as_map)
}

/// Any value.
pub fn any(args: &[Value], at: usize) -> &Value {
    const NIL: &Value = &Value::Nil;
    args.get(at).unwrap_or(NIL)
}
