//! Values at run time.
//!
//! JSON is never converted as a whole: a `Value` borrows the part of the document that the expression has reached,
//! together with the declaration it is to be read through.

mod collection;
mod equality;
mod json;
pub(crate) mod time;

use std::fmt;
use std::sync::Arc;

pub use collection::{List, Map};
pub(crate) use collection::{MapBuilder, MapKey};
pub(crate) use equality::{compare, equals, map_list_key};
pub use time::{Duration, Timestamp};

use crate::library::Opaque;
use crate::types::OpaqueType;

/// A value that an expression works with or returns.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Str<'a>),
    /// Octets.
    Bytes(Arc<[u8]>),
    /// A span of time.
    Duration(Duration),
    /// A point in time.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// The name of a type, as `type(x)` returns it.
    Type(&'static str),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'a>>>),
    /// A library's value: an IP address, a quantity, an authorizer.
    Opaque(Arc<Opaque>),
}

/// What a value is, for quick comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List,
    Map,
    Type,
    Optional,
    Opaque,
}

/// Text that is borrowed from the input or shared with the program.
#[derive(Clone)]
pub enum Str<'a> {
    /// Part of the input.
    Borrowed(&'a str),
    /// A literal of the program or a result.
    Shared(Arc<str>),
}

impl Str<'_> {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Str::Borrowed(text) => text,
            Str::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl std::ops::Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<'a> Value<'a> {
    /// Text that the value owns.
    pub fn string(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Str::Shared(text.into()))
    }

    /// A list of values.
    pub fn list(elements: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::owned(elements))
    }

    /// An absent optional.
    pub fn none() -> Value<'a> {
        Value::Optional(None)
    }

    /// A present optional.
    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    pub(crate) fn opaque(opaque: Opaque) -> Value<'a> {
        Value::Opaque(Arc::new(opaque))
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Uint(_) => Kind::Uint,
            Value::Double(_) => Kind::Double,
            Value::String(_) => Kind::String,
            Value::Bytes(_) => Kind::Bytes,
            Value::Duration(_) => Kind::Duration,
            Value::Timestamp(_) => Kind::Timestamp,
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
            Value::Type(_) => Kind::Type,
            Value::Optional(_) => Kind::Optional,
            Value::Opaque(_) => Kind::Opaque,
        }
    }

    /// The name of the value's type, as `type()` gives it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(opaque) => opaque.opaque_type().name(),
        }
    }

    pub(crate) fn opaque_type(&self) -> Option<OpaqueType> {
        match self {
            Value::Opaque(opaque) => Some(opaque.opaque_type()),
            _ => None,
        }
    }

    /// The size that costs are computed from: code points, bytes, elements or entries; 1 for everything else.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Value::String(text) if text.is_ascii() => text.len() as u64,
            Value::String(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Optional(Some(value)) => value.size(),
            Value::Opaque(opaque) => opaque.size(),
            _ => 1,
        }
    }
}
