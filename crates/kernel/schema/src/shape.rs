//! The shape of values: what server-side apply, pruning, strategic merge and unknown-field checks need to know.
//!
//! A shape is the structural skeleton of a type, without its constraints. It follows the model of Kubernetes'
//! structured merge and diff: an [`Atom`] may be readable as a scalar, a list and a map at once (that is how
//! free-form fields are typed), and lists and maps say how their elements relate. Built-in kinds come from the
//! generated table, custom resources from their CRD; both end up as the same `Shapes` arena, so that every
//! algorithm is written once.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

/// A name in a shape: `'static` for built-in kinds, owned for custom ones.
pub type Name = Cow<'static, str>;

/// Index of an [`Atom`] in its [`Shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

/// An arena of atoms; ids are valid only in the arena that gave them.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    atoms: Vec<Atom>,
    named: HashMap<Name, ShapeId>,
}

/// How a value of this type may look. Free-form types have several at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Atom {
    /// Readable as a scalar.
    pub scalar: Option<Scalar>,
    /// Readable as a list.
    pub list: Option<List>,
    /// Readable as a map or struct.
    pub map: Option<Map>,
}

/// Kinds of scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Integers and floating-point numbers.
    Numeric,
    /// Strings.
    String,
    /// Booleans.
    Boolean,
    /// Any scalar (int-or-string, quantities, free-form values).
    Untyped,
}

/// A list and how its elements relate.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// Type of each element.
    pub element: ShapeId,
    /// `x-kubernetes-list-type`.
    pub relationship: ListRelationship,
    /// Strategic merge patch, which has rules of its own on built-in kinds.
    pub patch: PatchStrategy,
}

/// `x-kubernetes-list-type` and `x-kubernetes-list-map-keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListRelationship {
    /// The list is owned as a whole.
    Atomic,
    /// Elements are scalars and identify themselves.
    Set,
    /// Elements are maps, identified by these keys.
    Map(Vec<Name>),
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, used by strategic merge only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// `merge` is among the strategies.
    pub merge: bool,
    /// `retainKeys` is among the strategies.
    pub retain_keys: bool,
    /// The key by which list elements are matched.
    pub merge_key: Option<Name>,
}

/// A map or struct.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// Known fields, sorted by name.
    pub fields: Vec<Field>,
    /// Type of the values of all other keys; `None`: there are no other keys.
    pub element: Option<ShapeId>,
    /// The map is owned as a whole.
    pub atomic: bool,
}

/// A known field of a struct.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// JSON name.
    pub name: Name,
    /// Its type.
    pub shape: ShapeId,
    /// Value that stands for absence; matters for keys of list maps.
    pub default: Option<Value>,
    /// Strategic merge of this field when it is a map (for lists see [`List::patch`]).
    pub patch: PatchStrategy,
}

impl Shapes {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an atom.
    pub fn push(&mut self, atom: Atom) -> ShapeId {
        let id = ShapeId(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.atoms.push(atom);
        id
    }

    /// Replaces an atom, for types that refer to themselves.
    pub fn set(&mut self, id: ShapeId, atom: Atom) {
        if let Some(slot) = self.atoms.get_mut(id.0 as usize) {
            *slot = atom;
        }
    }

    /// Gives an atom a name by which [`Shapes::named`] finds it.
    pub fn name(&mut self, name: impl Into<Name>, id: ShapeId) {
        self.named.insert(name.into(), id);
    }

    /// The atom of an id.
    pub fn get(&self, id: ShapeId) -> &Atom {
        &self.atoms[id.0 as usize]
    }

    /// The id of a named type, such as `io.k8s.api.core.v1.PodSpec`.
    pub fn named(&self, name: &str) -> Option<ShapeId> {
        self.named.get(name).copied()
    }

    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }
}

impl Map {
    /// The declared field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields
            .binary_search_by(|f| f.name.as_ref().cmp(name))
            .ok()
            .map(|i| &self.fields[i])
    }

    /// The type of the value under `name`, declared or not.
    pub fn shape_of(&self, name: &str) -> Option<ShapeId> {
        self.field(name).map(|f| f.shape).or(self.element)
    }
}
