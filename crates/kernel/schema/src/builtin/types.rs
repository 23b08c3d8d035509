//! From the table of facts to shapes, by the rules with which upstream derives its merge schema from OpenAPI.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::table::{Body, Element, FieldRow, Format, Presence, Relation, Table, Type, TypeRow, reference};
use crate::shape::{Atom, Field, List, ListRelationship, Map, PatchStrategy, Scalar, ShapeId, Shapes};

/// Shapes of the built-in types, and what decoding needs to know beyond them.
pub(super) struct Types {
    /// The shapes.
    pub(super) shapes: Shapes,
    /// Formats of scalars and free-form values, by shape; `None` for structs, lists and maps.
    formats: Vec<Option<Format>>,
    /// Names of the named types, by shape; these come first.
    names: Vec<&'static str>,
    /// When Go writes the fields of named structs, in the order of the fields.
    presence: Vec<Box<[Presence]>>,
    /// Named types that a field uses with another relation have a shape of their own there.
    copies: HashMap<ShapeId, ShapeId>,
}

/// The types, read from the table on first use.
pub(super) fn types() -> &'static Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| Types::new(&super::facts()));
    &TYPES
}

/// The name of the shape of free-form values that are owned as a whole.
pub(super) const UNTYPED_ATOMIC: &str = "__untyped_atomic_";
/// The name of the shape of free-form values whose maps are owned field by field.
pub(super) const UNTYPED_DEDUCED: &str = "__untyped_deduced_";

impl Types {
    pub(super) fn new(table: &Table<'static>) -> Self {
        let mut builder = Builder::new(table);
        for (index, row) in table.types.iter().enumerate() {
            let atom = builder.named_atom(row);
            builder
                .shapes
                .set(ShapeId(u32::try_from(index).unwrap_or(u32::MAX)), atom);
        }
        // Only now is every named type known, so that copies with another relation can be made.
        let copies = std::mem::take(&mut builder.copies);
        for (copy, original, atomic) in &copies {
            let mut atom = builder.shapes.get(*original).clone();
            if let Some(map) = &mut atom.map {
                map.atomic = *atomic;
            }
            builder.shapes.set(*copy, atom);
        }
        Self {
            shapes: builder.shapes,
            formats: builder.formats,
            names: table.types.iter().map(|t| t.name).collect(),
            presence: table.types.iter().map(presence).collect(),
            copies: copies
                .into_iter()
                .map(|(copy, original, _)| (copy, original))
                .collect(),
        }
    }

    fn named(&self, id: ShapeId) -> usize {
        self.copies.get(&id).map_or(id, |original| *original).0 as usize
    }

    /// When Go writes the fields of a struct, in the order of the fields.
    pub(super) fn presence(&self, id: ShapeId) -> &[Presence] {
        self.presence
            .get(self.named(id))
            .map(AsRef::as_ref)
            .unwrap_or_default()
    }

    /// The full name of a named type; empty for others.
    pub(super) fn full_name(&self, id: ShapeId) -> &'static str {
        self.names.get(self.named(id)).copied().unwrap_or_default()
    }

    /// The last word of the name of a named type; empty for others.
    pub(super) fn name(&self, id: ShapeId) -> &'static str {
        self.full_name(id).rsplit('.').next().unwrap_or_default()
    }

    /// The format of a scalar or free-form value.
    pub(super) fn format(&self, id: ShapeId) -> Option<Format> {
        self.formats.get(id.0 as usize).copied().flatten()
    }
}

struct Builder {
    shapes: Shapes,
    formats: Vec<Option<Format>>,
    references: HashMap<&'static str, ShapeId>,
    scalars: HashMap<&'static str, ShapeId>,
    /// Lists and maps that look alike share a shape.
    containers: HashMap<Container, ShapeId>,
    copies: Vec<(ShapeId, ShapeId, bool)>,
}

#[derive(PartialEq, Eq, Hash)]
enum Container {
    List(
        ShapeId,
        Option<Vec<&'static str>>,
        Option<&'static str>,
        Option<&'static str>,
    ),
    Map(ShapeId, bool),
}

impl Builder {
    fn new(table: &Table<'static>) -> Self {
        let mut builder = Self {
            shapes: Shapes::new(),
            formats: Vec::new(),
            references: HashMap::new(),
            scalars: HashMap::new(),
            containers: HashMap::new(),
            copies: Vec::new(),
        };
        for row in &table.types {
            let format = match row.body {
                Body::Scalar(format) => Some(format),
                Body::Struct(_) => None,
            };
            let id = builder.push(Atom::default(), format);
            builder.shapes.name(row.name, id);
            builder.references.insert(reference(row.name), id);
        }
        let atomic = builder.push(Atom::default(), Some(Format::Any));
        builder.shapes.set(atomic, untyped(atomic, atomic, true));
        builder.shapes.name(UNTYPED_ATOMIC, atomic);
        let deduced = builder.push(Atom::default(), Some(Format::Any));
        builder.shapes.set(deduced, untyped(atomic, deduced, false));
        builder.shapes.name(UNTYPED_DEDUCED, deduced);
        builder
    }

    fn push(&mut self, atom: Atom, format: Option<Format>) -> ShapeId {
        self.formats.push(format);
        self.shapes.push(atom)
    }

    fn named_atom(&mut self, row: &TypeRow<'static>) -> Atom {
        match &row.body {
            Body::Scalar(format) => self.scalar_atom(*format),
            Body::Struct(fields) => {
                let fields = fields.iter().map(|f| self.field(f)).collect();
                Atom {
                    map: Some(Map {
                        fields,
                        element: None,
                        atomic: row.atomic,
                    }),
                    ..Atom::default()
                }
            }
        }
    }

    fn scalar_atom(&self, format: Format) -> Atom {
        let scalar = |scalar| Atom {
            scalar: Some(scalar),
            ..Atom::default()
        };
        match format {
            Format::String | Format::Bytes => scalar(Scalar::String),
            Format::Int32 | Format::Int64 | Format::Double => scalar(Scalar::Numeric),
            Format::Boolean => scalar(Scalar::Boolean),
            Format::Time | Format::MicroTime | Format::Quantity | Format::IntOrString => {
                scalar(Scalar::Untyped)
            }
            Format::Any | Format::SchemaOr => self.free_form(UNTYPED_DEDUCED),
            Format::Raw => self.free_form(UNTYPED_ATOMIC),
            Format::Object => Atom {
                scalar: None,
                list: None,
                ..self.free_form(UNTYPED_DEDUCED)
            },
        }
    }

    fn free_form(&self, name: &str) -> Atom {
        self.shapes
            .named(name)
            .map(|id| self.shapes.get(id).clone())
            .unwrap_or_default()
    }

    fn field(&mut self, row: &FieldRow<'static>) -> Field {
        let shape = self.field_shape(row);
        // The patch strategy of a list is in the list; a struct or map has it in the field.
        let patch = match row.ty {
            Type::List(_) => PatchStrategy::default(),
            _ => patch_strategy(row),
        };
        Field {
            name: row.name.into(),
            shape,
            default: row.default.clone(),
            patch,
        }
    }

    fn field_shape(&mut self, row: &FieldRow<'static>) -> ShapeId {
        match &row.ty {
            Type::List(element) => self.list(element, row),
            Type::Map(element) => self.map(element, row.relation == Relation::Atomic),
            Type::Ref(name) => {
                let original = self.reference(name);
                let atomic = match row.relation {
                    Relation::Atomic => true,
                    Relation::Granular => false,
                    _ => return original,
                };
                let copy = self.push(Atom::default(), None);
                self.copies.push((copy, original, atomic));
                copy
            }
            Type::Scalar(format) => self.scalar(*format),
        }
    }

    fn shape(&mut self, ty: &Type<'static>) -> ShapeId {
        match ty {
            Type::Scalar(format) => self.scalar(*format),
            Type::Ref(name) => self.reference(name),
            Type::Map(element) => self.map(element, false),
            Type::List(element) => {
                let element = self.shape(&element.ty);
                self.container(Container::List(element, None, None, None), || {
                    list_atom(element, ListRelationship::Atomic, PatchStrategy::default())
                })
            }
        }
    }

    fn list(&mut self, element: &Element<'static>, row: &FieldRow<'static>) -> ShapeId {
        let element = self.shape(&element.ty);
        let merges = row
            .patch_strategy
            .is_some_and(|s| s.split(',').any(|word| word == "merge"));
        let keys = match &row.relation {
            Relation::Map(keys) => Some(keys.clone()),
            Relation::Set => Some(Vec::new()),
            // Without a declared list type the patch strategy decides, also for server-side apply.
            Relation::Default if merges => Some(row.merge_key.into_iter().collect()),
            _ => None,
        };
        let relationship = match &keys {
            None => ListRelationship::Atomic,
            Some(keys) if keys.is_empty() => ListRelationship::Set,
            Some(keys) => ListRelationship::Map(keys.iter().map(|k| (*k).into()).collect()),
        };
        let key = Container::List(element, keys, row.patch_strategy, row.merge_key);
        self.container(key, || list_atom(element, relationship, patch_strategy(row)))
    }

    fn map(&mut self, element: &Element<'static>, atomic: bool) -> ShapeId {
        let element = self.shape(&element.ty);
        self.container(Container::Map(element, atomic), || Atom {
            map: Some(Map {
                fields: Vec::new(),
                element: Some(element),
                atomic,
            }),
            ..Atom::default()
        })
    }

    fn container(&mut self, key: Container, atom: impl FnOnce() -> Atom) -> ShapeId {
        if let Some(id) = self.containers.get(&key) {
            return *id;
        }
        let id = self.push(atom(), None);
        self.containers.insert(key, id);
        id
    }

    fn scalar(&mut self, format: Format) -> ShapeId {
        if let Some(id) = self.scalars.get(format.name()) {
            return *id;
        }
        let atom = self.scalar_atom(format);
        let id = self.push(atom, Some(format));
        self.scalars.insert(format.name(), id);
        id
    }

    /// The generator refuses dangling references, so the fallback to a free-form value is never taken.
    fn reference(&mut self, name: &str) -> ShapeId {
        match self.references.get(name) {
            Some(id) => *id,
            None => self.scalar(Format::Any),
        }
    }
}

fn presence(row: &TypeRow<'static>) -> Box<[Presence]> {
    match &row.body {
        Body::Struct(fields) => fields.iter().map(|f| f.presence).collect(),
        Body::Scalar(_) => Box::default(),
    }
}

fn list_atom(element: ShapeId, relationship: ListRelationship, patch: PatchStrategy) -> Atom {
    Atom {
        list: Some(List {
            element,
            relationship,
            patch,
        }),
        ..Atom::default()
    }
}

fn patch_strategy(row: &FieldRow<'static>) -> PatchStrategy {
    let has = |word: &str| {
        row.patch_strategy
            .is_some_and(|s| s.split(',').any(|w| w == word))
    };
    PatchStrategy {
        merge: has("merge"),
        retain_keys: has("retainKeys"),
        merge_key: row.merge_key.map(Into::into),
    }
}

/// A value of any type: lists are owned as a whole, maps as said.
fn untyped(list_element: ShapeId, map_element: ShapeId, atomic: bool) -> Atom {
    Atom {
        scalar: Some(Scalar::Untyped),
        list: Some(List {
            element: list_element,
            relationship: ListRelationship::Atomic,
            patch: PatchStrategy::default(),
        }),
        map: Some(Map {
            fields: Vec::new(),
            element: Some(map_element),
            atomic,
        }),
    }
}
