//! Functions that templates call: their Go signatures, which decide what arguments are accepted and how a literal is
//! read, and the tables in which a template finds them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::error::Fault;
use crate::machine::Machine;
use crate::value::Value;

/// What a function does.
pub type Call = fn(&mut Machine<'_>, &[Value]) -> Result<Value, Fault>;

/// The Go type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param {
    /// `interface {}` or `reflect.Value`: anything, also nothing.
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint64`
    Uint64,
    /// `float64`
    Float,
    /// `bool`
    Bool,
    /// `map[string]interface {}`
    Map,
    /// `[]interface {}`
    List,
    /// `time.Time`
    Time,
    /// `time.Duration`
    Duration,
    /// A struct of that name.
    Struct(&'static str),
}

impl Param {
    /// Go's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float => "float64",
            Self::Bool => "bool",
            Self::Map => "map[string]interface {}",
            Self::List => "[]interface {}",
            Self::Time => "time.Time",
            Self::Duration => "time.Duration",
            Self::Struct(name) => name,
        }
    }

    pub(crate) fn can_be_nil(self) -> bool {
        match self {
            Self::Any | Self::Map | Self::List => true,
            Self::Struct(name) => name.starts_with('*'),
            _ => false,
        }
    }

    /// Whether Go would assign such a value to such a parameter.
    pub(crate) fn accepts(self, value: &Value) -> bool {
        use crate::value::{Elem, IntType, UintType};
        match (self, value) {
            (Self::Any, _)
            | (Self::Str, Value::Str(_))
            | (Self::Int, Value::Int(IntType::Int, _))
            | (Self::Int64, Value::Int(IntType::Int64, _))
            | (Self::Uint64, Value::Uint(UintType::Uint64, _))
            | (Self::Float, Value::Float(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Time, Value::Time(_))
            | (Self::Duration, Value::Duration(_)) => true,
            (Self::Map, Value::Map(map)) => map.ty().elem == Elem::Any,
            (Self::List, Value::List(list)) => list.ty.elem == Elem::Any,
            (Self::Struct(name), Value::Struct(value)) => value.ty.name == name,
            _ => false,
        }
    }
}

/// A function or method.
#[derive(Clone, Copy)]
pub struct Func {
    /// The name by which templates call it.
    pub name: &'static str,
    /// Its parameters, without a method's receiver.
    pub params: &'static [Param],
    /// Whether the last parameter takes any number of arguments.
    pub variadic: bool,
    /// What it does.
    pub call: Call,
}

impl Func {
    /// A function with a fixed number of parameters.
    pub const fn new(name: &'static str, params: &'static [Param], call: Call) -> Self {
        Self {
            name,
            params,
            variadic: false,
            call,
        }
    }

    /// A function whose last parameter takes any number of arguments.
    pub const fn variadic(name: &'static str, params: &'static [Param], call: Call) -> Self {
        Self {
            name,
            params,
            variadic: true,
            call,
        }
    }
}

/// A hash that is quick for short names (FNV-1a). The names in the table are fixed, so that nobody can make them collide.
#[derive(Clone, Copy)]
struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The functions that a template may call. Templates refer to them by number, so one is executed with the table with
/// which it was parsed.
#[derive(Default)]
pub struct Functions {
    table: Vec<Func>,
    names: HashMap<&'static str, u32, BuildHasherDefault<NameHasher>>,
    pub(crate) and: u32,
    pub(crate) or: u32,
}

impl Functions {
    /// Go's own functions.
    pub fn builtin() -> Self {
        let mut functions = Self::default();
        functions.add(crate::builtins::TABLE);
        functions.and = functions.find("and").unwrap_or(u32::MAX);
        functions.or = functions.find("or").unwrap_or(u32::MAX);
        functions
    }

    /// Adds functions; those of the same name are replaced.
    pub fn add(&mut self, functions: &[Func]) {
        for function in functions {
            match self.names.get(function.name) {
                Some(&at) => self.table[at as usize] = *function,
                None => {
                    let number = u32::try_from(self.table.len()).unwrap_or(u32::MAX);
                    self.names.insert(function.name, number);
                    self.table.push(*function);
                }
            }
        }
    }

    /// Removes a function.
    pub fn remove(&mut self, name: &str) {
        // Its place stays taken: numbers of others do not change.
        self.names.remove(name);
    }

    /// The number of a function.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Func> {
        self.table.get(index as usize)
    }

    /// The names of all functions.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.names.keys().copied()
    }
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names.keys()).finish()
    }
}
