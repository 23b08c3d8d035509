//! Go types, as far as templates meet them. A type is a static description; values point to theirs.

use super::{Struct, Value};
use crate::functions::Func;

/// Which signed integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntType {
    /// `int`
    Int,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
}

impl IntType {
    /// Go's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }
}

/// Which unsigned integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UintType {
    /// `uint`
    Uint,
    /// `uint8`
    Uint8,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
}

impl UintType {
    /// Go's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }
}

/// What a map or slice holds, which decides what a missing key gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elem {
    /// `interface {}`
    Any,
    /// `string`
    String,
    /// `[]uint8`
    Bytes,
    /// Something that is never asked for in vain.
    Other,
}

impl Elem {
    /// The zero value.
    pub fn zero(self) -> Value {
        match self {
            Self::Any | Self::Other => Value::Nil,
            Self::String => Value::str(""),
            Self::Bytes => Value::Bytes(b"".as_slice().into()),
        }
    }
}

/// The type of a map.
pub struct MapType {
    /// Go's name for it.
    pub name: &'static str,
    /// What it holds.
    pub elem: Elem,
    /// Its methods; the receiver is their first argument.
    pub methods: &'static [Func],
}

/// The type of a slice.
pub struct ListType {
    /// Go's name for it.
    pub name: &'static str,
    /// What it holds.
    pub elem: Elem,
    /// Its methods; the receiver is their first argument.
    pub methods: &'static [Func],
}

/// The type of a struct.
pub struct StructType {
    /// Go's name for it, with a star if templates hold a pointer.
    pub name: &'static str,
    /// Whether templates hold a pointer.
    pub pointer: bool,
    /// Its fields in their order.
    pub fields: &'static [FieldType],
    /// Its methods; the receiver is their first argument.
    pub methods: &'static [Func],
    /// Its `String` method, which printing uses.
    pub display: Option<fn(&Struct) -> String>,
    /// Whether JSON and YAML have that text, too, instead of its fields.
    pub is_text: bool,
    /// Whether its first fields are those of another struct, which prints within braces of its own.
    pub embedded: Option<Embedded>,
}

/// A struct whose fields are taken for those of the struct around it.
pub struct Embedded {
    /// Go's name of the field.
    pub name: &'static str,
    /// Go's name of its type.
    pub ty: &'static str,
    /// How many fields it has.
    pub fields: usize,
}

/// A field of a struct.
pub struct FieldType {
    /// Go's name.
    pub name: &'static str,
    /// Its name in JSON and YAML; empty if it is not written.
    pub json: &'static str,
    /// Whether it is left out when empty.
    pub omit_empty: bool,
}

/// `map[string]interface {}`
pub static ANY_MAP: MapType = MapType {
    name: "map[string]interface {}",
    elem: Elem::Any,
    methods: &[],
};

/// `map[string]string`
pub static STRING_MAP: MapType = MapType {
    name: "map[string]string",
    elem: Elem::String,
    methods: &[],
};

/// `[]interface {}`
pub static ANY_LIST: ListType = ListType {
    name: "[]interface {}",
    elem: Elem::Any,
    methods: &[],
};

/// `[]string`
pub static STRING_LIST: ListType = ListType {
    name: "[]string",
    elem: Elem::String,
    methods: &[],
};

/// `[]int`
pub static INT_LIST: ListType = ListType {
    name: "[]int",
    elem: Elem::Other,
    methods: &[],
};

/// `[][]interface {}`
pub static LIST_OF_LISTS: ListType = ListType {
    name: "[][]interface {}",
    elem: Elem::Other,
    methods: &[],
};
