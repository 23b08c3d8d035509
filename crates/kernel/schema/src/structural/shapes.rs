//! Schemas as shapes, for server-side apply.
//!
//! Lists without a list type are atomic, maps granular; what has no type may be anything; unknown fields that are
//! preserved get the type that their value has. The metadata of resources has the shape of ObjectMeta.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::formats::Format;
use super::node::{Additional, Flags, ListType, Node, Type};
use crate::shape::{Atom, Field, List, ListRelationship, Map, Name, PatchStrategy, Scalar, ShapeId, Shapes};

/// Name of the shape of values that are owned as a whole.
const UNTYPED_ATOMIC: &str = "__untyped_atomic_";
/// Name of the shape of values whose type is found by looking at them.
const UNTYPED_DEDUCED: &str = "__untyped_deduced_";
/// Name of the shape of metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Builds the arena of one schema.
pub(super) struct Builder {
    shapes: Shapes,
    untyped: ShapeId,
    deduced: ShapeId,
    string: ShapeId,
    object_meta: Option<ShapeId>,
    /// Shapes of nodes whose children others share.
    shared: HashMap<Shared, ShapeId>,
}

/// What tells the shapes of such nodes apart: the address of the children, the node's own facts, where it stands.
type Shared = (usize, Type, ListType, bool, bool, bool);

fn scalar(scalar: Scalar) -> Atom {
    Atom {
        scalar: Some(scalar),
        ..Atom::default()
    }
}

fn list(element: ShapeId, relationship: ListRelationship) -> List {
    List {
        element,
        relationship,
        patch: PatchStrategy::default(),
    }
}

fn field(name: impl Into<Name>, shape: ShapeId) -> Field {
    Field {
        name: name.into(),
        shape,
        default: None,
        patch: PatchStrategy::default(),
    }
}

/// A map of granular ownership with these fields.
fn fields(mut fields: Vec<Field>, atomic: bool) -> Atom {
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    Atom {
        map: Some(Map {
            fields,
            element: None,
            atomic,
        }),
        ..Atom::default()
    }
}

impl Builder {
    pub(super) fn new() -> Self {
        let mut shapes = Shapes::new();
        let untyped = shapes.push(Atom::default());
        let deduced = shapes.push(Atom::default());
        let anything = |map_element, atomic| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(list(untyped, ListRelationship::Atomic)),
            map: Some(Map {
                fields: Vec::new(),
                element: Some(map_element),
                atomic,
            }),
        };
        shapes.set(untyped, anything(untyped, true));
        shapes.set(deduced, anything(deduced, false));
        shapes.name(UNTYPED_ATOMIC, untyped);
        shapes.name(UNTYPED_DEDUCED, deduced);
        let string = shapes.push(scalar(Scalar::String));
        Self {
            shapes,
            untyped,
            deduced,
            string,
            object_meta: None,
            shared: HashMap::new(),
        }
    }

    pub(super) fn finish(self) -> Shapes {
        self.shapes
    }

    /// The shape of a node. `resource`: it is a whole object with metadata. `preserve`: unknown fields are kept here.
    pub(super) fn node(&mut self, node: &Node, resource: bool, preserve: bool) -> ShapeId {
        let preserve = preserve || node.has(Flags::PRESERVE_UNKNOWN);
        let resource = resource || node.has(Flags::EMBEDDED);
        let shared = node.children.as_ref().filter(|it| Arc::strong_count(it) > 1);
        let shared: Option<Shared> = shared.map(|children| {
            let address = Arc::as_ptr(children).addr();
            let atomic = node.has(Flags::ATOMIC_MAP);
            (
                address,
                node.schema_type,
                node.list_type,
                atomic,
                resource,
                preserve,
            )
        });
        if let Some(known) = shared.as_ref().and_then(|key| self.shared.get(key)) {
            return *known;
        }
        let atom = match node.schema_type {
            Type::Any => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(node, preserve)),
                map: Some(self.map(node, resource, preserve)),
            },
            Type::Object => Atom {
                map: Some(self.map(node, resource, preserve)),
                ..Atom::default()
            },
            Type::Array => Atom {
                list: Some(self.list(node, preserve)),
                ..Atom::default()
            },
            Type::Integer | Type::Number => scalar(Scalar::Numeric),
            Type::Boolean => scalar(Scalar::Boolean),
            Type::String
                if matches!(node.format, Format::None | Format::Byte)
                    && !node.has(Flags::UNCHECKED_FORMAT) =>
            {
                return self.string;
            }
            Type::String => scalar(Scalar::Untyped),
        };
        let id = self.shapes.push(atom);
        if let Some(key) = shared {
            self.shared.insert(key, id);
        }
        id
    }

    fn list(&mut self, node: &Node, preserve: bool) -> List {
        let relationship = match node.list_type {
            ListType::Atomic => ListRelationship::Atomic,
            ListType::Set => ListRelationship::Set,
            ListType::Map => ListRelationship::Map(
                node.map_keys()
                    .iter()
                    .map(|k| Name::Owned(k.to_string()))
                    .collect(),
            ),
        };
        let element = match node.items() {
            Some(items) => self.node(items, false, preserve),
            None => self.untyped,
        };
        list(element, relationship)
    }

    fn map(&mut self, node: &Node, resource: bool, preserve: bool) -> Map {
        let mut known: Vec<Field> = Vec::with_capacity(node.properties().len());
        for (name, child) in node.properties() {
            if resource && matches!(&**name, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let shape = self.node(child, false, preserve);
            let default: Option<Value> = child.default.as_deref().cloned();
            known.push(Field {
                default,
                ..field(name.to_string(), shape)
            });
        }
        if resource {
            let object_meta = self.object_meta();
            known.push(field("apiVersion", self.string));
            known.push(field("kind", self.string));
            known.push(field("metadata", object_meta));
        }
        known.sort_by(|a, b| a.name.cmp(&b.name));
        let element = match node.children.as_ref().map(|c| &c.additional) {
            Some(Additional::Schema(child)) => Some(self.node(child, false, preserve)),
            Some(Additional::Allowed) => Some(self.deduced),
            Some(Additional::Forbidden) => None,
            // An object without fields is a free-form one.
            None | Some(Additional::Unset) => (preserve || known.is_empty()).then_some(self.deduced),
        };
        Map {
            fields: known,
            element,
            atomic: node.has(Flags::ATOMIC_MAP),
        }
    }

    fn object_meta(&mut self) -> ShapeId {
        if let Some(id) = self.object_meta {
            return id;
        }
        let string = self.string;
        let time = self.shapes.push(scalar(Scalar::Untyped));
        let number = self.shapes.push(scalar(Scalar::Numeric));
        let boolean = self.shapes.push(scalar(Scalar::Boolean));
        let string_map = self.shapes.push(Atom {
            map: Some(Map {
                element: Some(string),
                ..Map::default()
            }),
            ..Atom::default()
        });
        let merge = |key: Option<&'static str>| PatchStrategy {
            merge: true,
            retain_keys: false,
            merge_key: key.map(Name::Borrowed),
        };
        let finalizers = self.shapes.push(Atom {
            list: Some(List {
                patch: merge(None),
                ..list(string, ListRelationship::Set)
            }),
            ..Atom::default()
        });
        let required = |name: &'static str| Field {
            default: Some("".into()),
            ..field(name, string)
        };
        let owner = self.shapes.push(fields(
            vec![
                required("apiVersion"),
                field("blockOwnerDeletion", boolean),
                field("controller", boolean),
                required("kind"),
                required("name"),
                required("uid"),
            ],
            true,
        ));
        let by_uid = ListRelationship::Map(vec![Name::Borrowed("uid")]);
        let owners = self.shapes.push(Atom {
            list: Some(List {
                patch: merge(Some("uid")),
                ..list(owner, by_uid)
            }),
            ..Atom::default()
        });
        let fields_v1 = self.shapes.push(Atom {
            map: Some(Map {
                element: Some(self.deduced),
                ..Map::default()
            }),
            ..Atom::default()
        });
        let entry = self.shapes.push(fields(
            vec![
                field("apiVersion", string),
                field("fieldsType", string),
                field("fieldsV1", fields_v1),
                field("manager", string),
                field("operation", string),
                field("subresource", string),
                field("time", time),
            ],
            false,
        ));
        let managed = self.shapes.push(Atom {
            list: Some(list(entry, ListRelationship::Atomic)),
            ..Atom::default()
        });
        let id = self.shapes.push(fields(
            vec![
                field("annotations", string_map),
                field("creationTimestamp", time),
                field("deletionGracePeriodSeconds", number),
                field("deletionTimestamp", time),
                field("finalizers", finalizers),
                field("generateName", string),
                field("generation", number),
                field("labels", string_map),
                field("managedFields", managed),
                field("name", string),
                field("namespace", string),
                field("ownerReferences", owners),
                field("resourceVersion", string),
                field("selfLink", string),
                field("uid", string),
            ],
            false,
        ));
        self.shapes.name(OBJECT_META, id);
        self.object_meta = Some(id);
        id
    }
}
