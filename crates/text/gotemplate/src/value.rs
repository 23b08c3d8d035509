//! Values as a Go template sees them.
//!
//! Go's templates look at types: `1` and `1.0` do not compare, `kindOf` names what a value is, and maps are shared, so
//! that `set` is seen by whoever holds the same map. Values therefore carry their Go type, and copies of a map or list
//! are references to the same one. Text is bytes, because Go's is: a key store that is read as a file and written in
//! base64 must survive.

mod drop;
mod json;
mod types;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

pub use json::{from_json, map_from_json, to_json};
pub use types::{
    ANY_LIST, ANY_MAP, Elem, Embedded, FieldType, INT_LIST, IntType, LIST_OF_LISTS, ListType, MapType,
    STRING_LIST, STRING_MAP, StructType, UintType,
};

use crate::time::Time;

/// Text, which is bytes and usually UTF-8. Copies share it.
pub type Str = Arc<[u8]>;

/// The entries of a map, in the order in which Go's templates visit them.
pub type Entries = BTreeMap<Str, Value>;

/// A value.
#[derive(Clone, Default)]
pub enum Value {
    /// No value at all: what a pipeline leaves of nil.
    #[default]
    Invalid,
    /// An empty interface: a null in the data, or a key that is not there.
    Nil,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(IntType, i64),
    /// An unsigned integer.
    Uint(UintType, u64),
    /// A `float64`.
    Float(f64),
    /// A string.
    Str(Str),
    /// A `[]byte`.
    Bytes(Str),
    /// A slice.
    List(Rc<List>),
    /// A map with string keys.
    Map(Map),
    /// A struct, or a pointer to one.
    Struct(Rc<Struct>),
    /// A `time.Time`.
    Time(Rc<Time>),
    /// A `time.Duration` in nanoseconds.
    Duration(i64),
}

/// A slice. Nothing in a template changes one.
pub struct List {
    /// Its Go type.
    pub ty: &'static ListType,
    /// Its elements.
    pub items: Vec<Value>,
}

/// A shared map. The same map may be known under several types, as a Go map may.
#[derive(Clone)]
pub struct Map(Rc<MapInner>, &'static MapType);

/// What a map will hold.
type Later = Box<dyn FnOnce() -> Entries>;

struct MapInner {
    entries: RefCell<Entries>,
    /// What puts the entries there, as long as nobody has looked.
    later: Cell<Option<Later>>,
    /// Whether it is on the list of maps that are emptied after the run.
    tracked: Cell<bool>,
}

/// A struct with the values of its fields.
pub struct Struct {
    /// Its Go type.
    pub ty: &'static StructType,
    /// A value for each field of the type.
    pub fields: Vec<Value>,
}

impl Struct {
    /// A field by its Go name.
    pub fn field(&self, name: &[u8]) -> Option<&Value> {
        let mut fields = self.ty.fields.iter();
        let at = fields.position(|field| field.name.as_bytes() == name)?;
        self.fields.get(at)
    }

    /// What it is written as, if it has a text; else nothing.
    pub fn text(&self) -> String {
        self.ty.display.map(|display| display(self)).unwrap_or_default()
    }
}

impl Map {
    /// A `map[string]interface {}`.
    pub fn new(entries: Entries) -> Self {
        Self::typed(&ANY_MAP, entries)
    }

    /// A map of another type.
    pub fn typed(ty: &'static MapType, entries: Entries) -> Self {
        let inner = MapInner {
            entries: RefCell::new(entries),
            later: Cell::new(None),
            tracked: Cell::new(false),
        };
        Self(Rc::new(inner), ty)
    }

    /// A map that is filled when somebody looks into it.
    pub fn lazy(ty: &'static MapType, fill: Box<dyn FnOnce() -> Entries>) -> Self {
        let map = Self::typed(ty, Entries::new());
        map.0.later.set(Some(fill));
        map
    }

    fn inner(&self) -> &RefCell<Entries> {
        if let Some(fill) = self.0.later.take() {
            self.0.entries.replace(fill());
        }
        &self.0.entries
    }

    /// Its Go type.
    pub fn ty(&self) -> &'static MapType {
        self.1
    }

    /// The same map under another type.
    pub fn retyped(&self, ty: &'static MapType) -> Self {
        Self(self.0.clone(), ty)
    }

    /// What a key maps to.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.inner().borrow().get(key).cloned()
    }

    /// Whether there is such a key.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.inner().borrow().contains_key(key)
    }

    /// Sets a key for everyone who holds the map.
    pub fn set(&self, key: impl Into<Str>, value: Value) {
        let replaced = self.inner().borrow_mut().insert(key.into(), value);
        // Only now: what it held may be this map's last other reference.
        drop(replaced);
    }

    /// Removes a key for everyone who holds the map.
    pub fn remove(&self, key: &[u8]) {
        let removed = self.inner().borrow_mut().remove(key);
        drop(removed);
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.inner().borrow().len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.inner().borrow().is_empty()
    }

    /// The keys, sorted.
    pub fn keys(&self) -> Vec<Str> {
        self.inner().borrow().keys().cloned().collect()
    }

    /// The entries as they are now.
    pub fn entries(&self) -> Vec<(Str, Value)> {
        let entries = self.inner().borrow();
        entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Looks at the entries without copying them. `look` must not change this map.
    pub fn with<T>(&self, look: impl FnOnce(&Entries) -> T) -> T {
        look(&self.inner().borrow())
    }

    /// Whether both are the same map.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Marks the map; true the first time.
    pub(crate) fn track(&self) -> bool {
        !self.0.tracked.replace(true)
    }

    pub(crate) fn clear(&self) {
        self.0.later.take();
        let entries = self.0.entries.take();
        drop(entries);
    }
}

impl Value {
    /// A Go `int`.
    pub fn int(value: i64) -> Self {
        Self::Int(IntType::Int, value)
    }

    /// A Go `int64`.
    pub fn int64(value: i64) -> Self {
        Self::Int(IntType::Int64, value)
    }

    /// Text.
    pub fn str(text: impl AsRef<[u8]>) -> Self {
        Self::Str(text.as_ref().into())
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Self>) -> Self {
        Self::typed_list(&ANY_LIST, items)
    }

    /// A slice of another type.
    pub fn typed_list(ty: &'static ListType, items: Vec<Self>) -> Self {
        Self::List(Rc::new(List { ty, items }))
    }

    /// A `[]string`.
    pub fn strings(items: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        Self::typed_list(&STRING_LIST, items.into_iter().map(Self::str).collect())
    }

    /// A `map[string]interface {}`.
    pub fn map(entries: Entries) -> Self {
        Self::Map(Map::new(entries))
    }

    /// A struct.
    pub fn structure(ty: &'static StructType, fields: Vec<Self>) -> Self {
        Self::Struct(Rc::new(Struct { ty, fields }))
    }

    /// Whether there is nothing: neither a value nor a nil one.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Invalid | Self::Nil)
    }

    /// Go's idea of truth: not zero, not empty.
    pub fn truth(&self) -> bool {
        match self {
            Self::Invalid | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) | Self::Duration(value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) | Self::Bytes(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Struct(_) | Self::Time(_) => true,
        }
    }

    /// The name of its Go type, as `%T` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Invalid => "<nil>",
            Self::Nil => "interface {}",
            Self::Bool(_) => "bool",
            Self::Int(ty, _) => ty.name(),
            Self::Uint(ty, _) => ty.name(),
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => list.ty.name,
            Self::Map(map) => map.ty().name,
            Self::Struct(value) => value.ty.name,
            Self::Time(_) => "time.Time",
            Self::Duration(_) => "time.Duration",
        }
    }

    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Invalid | Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(ty, _) => ty.name(),
            Self::Uint(ty, _) => ty.name(),
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::Bytes(_) | Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Struct(value) if value.ty.pointer => "ptr",
            Self::Struct(_) | Self::Time(_) => "struct",
            Self::Duration(_) => "int64",
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The map of a map.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into_bytes().into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(text: Vec<u8>) -> Self {
        Self::Str(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.type_name(), crate::fmt::print_bounded(self))
    }
}
