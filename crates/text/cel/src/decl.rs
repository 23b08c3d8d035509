//! What CEL sees of a structural schema.
//!
//! A `DeclType` is built once per schema. It gives the checker its types, the cost estimator its size bounds, and the
//! evaluator what it needs to read JSON lazily: which strings are durations, which lists are sets, how names escape.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::escaping::escape;
use crate::limits::MAX_REQUEST_SIZE_BYTES;
use crate::types::{Field, ObjectType, Type};

/// Schemas deeper than this are not visible to CEL; JSON that could match them is refused earlier.
const MAX_SCHEMA_DEPTH: usize = 128;

/// A schema as CEL sees it.
#[derive(Debug)]
pub struct DeclType {
    pub(crate) ty: Type,
    pub(crate) kind: DeclKind,
    pub(crate) nullable: bool,
    max_elements: u64,
    min_serialized_size: u64,
}

#[derive(Debug)]
pub(crate) enum DeclKind {
    IntOrString,
    Object(Arc<ObjectType>),
    Map(Arc<DeclType>),
    List {
        items: Arc<DeclType>,
        list_type: ListType,
    },
    Bool,
    Int,
    Number,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
}

/// `x-kubernetes-list-type`, which decides what equality and `+` mean.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    /// With the names of the key fields.
    Map(Vec<Box<str>>),
}

impl DeclType {
    /// Reads a structural schema. `None` when CEL may not see it: no type, an array without items, unknown fields only.
    ///
    /// `resource_root` is for the root of a custom resource, whose `apiVersion`, `kind`, `metadata.name` and
    /// `metadata.generateName` are always visible.
    pub fn from_json_schema(schema: &Json, resource_root: bool) -> Option<Arc<DeclType>> {
        convert(schema.as_object()?, resource_root, "selfType", 0)
    }

    /// The type that expressions are checked against.
    pub fn cel_type(&self) -> &Type {
        &self.ty
    }

    /// The declaration of a field, by its name in JSON.
    pub fn field(&self, json_name: &str) -> Option<&Arc<DeclType>> {
        match &self.kind {
            DeclKind::Object(object) => object.fields.get(&*escape(json_name)?)?.decl.as_ref(),
            _ => None,
        }
    }

    /// The declaration of a list's items.
    pub fn items(&self) -> Option<&Arc<DeclType>> {
        match &self.kind {
            DeclKind::List { items, .. } => Some(items),
            _ => None,
        }
    }

    /// The declaration of a map's values.
    pub fn additional_properties(&self) -> Option<&Arc<DeclType>> {
        match &self.kind {
            DeclKind::Map(values) => Some(values),
            _ => None,
        }
    }

    /// The most elements, entries or bytes that a value can have.
    pub fn max_elements(&self) -> u64 {
        self.max_elements
    }

    /// The fewest bytes that a value takes in JSON.
    pub fn min_serialized_size(&self) -> u64 {
        self.min_serialized_size
    }

    /// How often a value of this type fits into the largest request; bounds the cost of rules below unbounded lists.
    pub fn max_cardinality(&self) -> u64 {
        MAX_REQUEST_SIZE_BYTES / (self.min_serialized_size + 1)
    }
}

fn flag(schema: &Map<String, Json>, name: &str) -> bool {
    schema.get(name) == Some(&Json::Bool(true))
}

/// A bound such as `maxItems`; negative ones count as zero, and JSON's `3.0` as 3.
fn bound(schema: &Map<String, Json>, name: &str) -> Option<u64> {
    let value = schema.get(name)?;
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|v| v.max(0.0) as u64))
}

fn convert(
    schema: &Map<String, Json>,
    resource_root: bool,
    name: &str,
    depth: usize,
) -> Option<Arc<DeclType>> {
    if depth >= MAX_SCHEMA_DEPTH {
        return None;
    }
    let make = |ty, kind, max_elements, min_serialized_size| {
        let nullable = flag(schema, "nullable");
        Some(Arc::new(DeclType {
            ty,
            kind,
            nullable,
            max_elements,
            min_serialized_size,
        }))
    };
    let longest = MAX_REQUEST_SIZE_BYTES - 2;
    // maxLength counts code points, sizes are bytes.
    let max_length = bound(schema, "maxLength").map(|length| length.saturating_mul(4));
    if flag(schema, "x-kubernetes-int-or-string") {
        return make(Type::Dyn, DeclKind::IntOrString, max_length.unwrap_or(longest), 1);
    }
    match schema.get("type").and_then(Json::as_str)? {
        "array" => {
            let items = schema.get("items")?.as_object()?;
            let items = convert(items, flag(items, EMBEDDED), &format!("{name}.@idx"), depth + 1)?;
            let max = bound(schema, "maxItems").unwrap_or(longest / (items.min_serialized_size + 1));
            let ty = Type::list(items.ty.clone());
            make(
                ty,
                DeclKind::List {
                    items,
                    list_type: list_type(schema),
                },
                max,
                2,
            )
        }
        "object" => match schema.get("additionalProperties").and_then(Json::as_object) {
            // A resource root with additionalProperties is seen as the map it is.
            Some(values) => {
                let values = convert(
                    values,
                    flag(values, EMBEDDED),
                    &format!("{name}.@elem"),
                    depth + 1,
                )?;
                let max =
                    bound(schema, "maxProperties").unwrap_or(longest / (values.min_serialized_size + 6));
                make(
                    Type::map(Type::String, values.ty.clone()),
                    DeclKind::Map(values),
                    max,
                    2,
                )
            }
            None => {
                let (object, size) =
                    convert_object(schema, resource_root || flag(schema, EMBEDDED), name, depth);
                make(Type::Object(object.clone()), DeclKind::Object(object), 0, size)
            }
        },
        "string" => match schema.get("format").and_then(Json::as_str) {
            Some("byte") => make(
                Type::Bytes,
                DeclKind::Bytes,
                bound(schema, "maxLength").unwrap_or(longest),
                2,
            ),
            Some("duration") => make(Type::Duration, DeclKind::Duration, 32, 3),
            Some("date") => make(Type::Timestamp, DeclKind::Date, 12, 12),
            Some("date-time") => make(Type::Timestamp, DeclKind::DateTime, 32, 21),
            _ => make(
                Type::String,
                DeclKind::String,
                max_length.unwrap_or_else(|| longest_enum(schema, longest)),
                2,
            ),
        },
        "boolean" => make(Type::Bool, DeclKind::Bool, 0, 4),
        "number" => make(Type::Double, DeclKind::Number, 0, 1),
        "integer" => make(Type::Int, DeclKind::Int, 0, 1),
        _ => None,
    }
}

const EMBEDDED: &str = "x-kubernetes-embedded-resource";

fn longest_enum(schema: &Map<String, Json>, longest: u64) -> u64 {
    match schema.get("enum").and_then(Json::as_array) {
        Some(values) if !values.is_empty() => values
            .iter()
            .filter_map(Json::as_str)
            .map(|s| s.len() as u64)
            .max()
            .unwrap_or(0),
        _ => longest,
    }
}

fn list_type(schema: &Map<String, Json>) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Json::as_str) {
        Some("set") => ListType::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
            ListType::Map(
                keys.into_iter()
                    .flatten()
                    .filter_map(Json::as_str)
                    .map(Into::into)
                    .collect(),
            )
        }
        _ => ListType::Atomic,
    }
}

fn convert_object(
    schema: &Map<String, Json>,
    root: bool,
    name: &str,
    depth: usize,
) -> (Arc<ObjectType>, u64) {
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Json::as_object)
        .unwrap_or(&empty);
    let meta = if root && !has_resource_fields(properties) {
        resource_fields()
    } else {
        Map::new()
    };
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = |field: &str| required.is_some_and(|r| r.iter().any(|n| n.as_str() == Some(field)));

    let mut fields = BTreeMap::new();
    let mut size = 2;
    let visible = properties
        .iter()
        .filter(|(field, _)| !meta.contains_key(*field))
        .chain(&meta);
    for (json_name, property) in visible {
        let Some(property) = property.as_object() else {
            continue;
        };
        let identifier = escape(json_name);
        let child_name = format!("{name}.{}", identifier.as_deref().unwrap_or(json_name));
        let Some(decl) = convert(property, flag(property, EMBEDDED), &child_name, depth + 1) else {
            continue;
        };
        // Defaults are filled in by the server, so they take nothing of the request.
        if is_required(json_name) && !property.contains_key("default") {
            size += json_name.len() as u64 + decl.min_serialized_size + 4;
        }
        if let Some(identifier) = identifier {
            let field = Field {
                ty: decl.ty.clone(),
                json_name: json_name.as_str().into(),
                decl: Some(decl),
            };
            fields.insert(identifier.into(), field);
        }
    }
    (
        Arc::new(ObjectType {
            name: name.into(),
            fields,
        }),
        size,
    )
}

fn has_resource_fields(properties: &Map<String, Json>) -> bool {
    let typed = |fields: &Map<String, Json>, name: &str, wanted: &str| {
        fields
            .get(name)
            .and_then(|f| f.get("type"))
            .and_then(Json::as_str)
            == Some(wanted)
    };
    let metadata = properties
        .get("metadata")
        .and_then(|m| m.get("properties"))
        .and_then(Json::as_object);
    typed(properties, "kind", "string")
        && typed(properties, "apiVersion", "string")
        && typed(properties, "metadata", "object")
        && metadata.is_some_and(|m| typed(m, "name", "string") && typed(m, "generateName", "string"))
}

fn resource_fields() -> Map<String, Json> {
    let text = || serde_json::json!({"type": "string"});
    let metadata =
        serde_json::json!({"type": "object", "properties": {"name": text(), "generateName": text()}});
    Map::from_iter([
        ("kind".into(), text()),
        ("apiVersion".into(), text()),
        ("metadata".into(), metadata),
    ])
}
