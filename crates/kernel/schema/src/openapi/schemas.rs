//! Rows of the table of facts as OpenAPI v3 schemas.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::schema_ref;
use crate::builtin::table::{
    Body, Element, FieldRow, Format, Gvk, Kinds, Relation, Table, Type, TypeRow, reference,
};

/// The schemas that one document may need.
pub(super) struct Schemas<'t> {
    rows: HashMap<&'static str, &'t TypeRow<'static>>,
    pub(super) descriptions: Descriptions<'t>,
    group: &'t str,
    version: &'t str,
}

impl<'t> Schemas<'t> {
    pub(super) fn new(
        table: &'t Table<'static>,
        descriptions: Descriptions<'t>,
        group: &'t str,
        version: &'t str,
    ) -> Self {
        let rows = table.types.iter().map(|row| (reference(row.name), row)).collect();
        Self {
            rows,
            descriptions,
            group,
            version,
        }
    }

    /// The types that these refer to, directly or not, and they themselves.
    pub(super) fn closure(&self, roots: &BTreeSet<String>) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = roots.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            let Some((name, row)) = self.rows.get_key_value(name) else {
                continue;
            };
            if !found.insert(*name) {
                continue;
            }
            if let Body::Struct(fields) = &row.body {
                open.extend(fields.iter().filter_map(|f| referred(&f.ty)));
            }
        }
        found
    }

    /// The full name and schema of a type.
    pub(super) fn schema(&self, name: &str) -> Option<(&'static str, Value)> {
        let row = self.rows.get(name)?;
        let mut schema = Map::new();
        if let Some(text) = self.descriptions.of_type(row.name) {
            schema.insert("description".into(), text.into());
        }
        match &row.body {
            Body::Scalar(format) => schema.extend(named_scalar(*format)),
            Body::Struct(fields) => {
                schema.insert("type".into(), "object".into());
                let properties: Map<String, Value> = fields
                    .iter()
                    .map(|f| (f.name.to_owned(), self.property(row.name, f)))
                    .collect();
                schema.insert("properties".into(), properties.into());
                let required: Vec<&str> = fields.iter().filter(|f| f.required).map(|f| f.name).collect();
                if !required.is_empty() {
                    schema.insert("required".into(), required.into());
                }
            }
        }
        if row.atomic {
            schema.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        let kinds = self.kinds(row);
        if !kinds.is_empty() {
            schema.insert("x-kubernetes-group-version-kind".into(), kinds.into());
        }
        if let Some(unions) = &row.unions {
            schema.insert("x-kubernetes-unions".into(), unions.clone());
        }
        Some((row.name, schema.into()))
    }

    /// Whether a type has a kind in every group-version.
    pub(super) fn is_everywhere(&self, name: &str) -> bool {
        self.rows
            .get(name)
            .is_some_and(|row| matches!(row.kinds, Kinds::Everywhere))
    }

    /// What exists in every group-version is shown for the core group and for that of the document.
    fn kinds(&self, row: &TypeRow<'_>) -> Vec<Value> {
        let kind = row.name.rsplit('.').next().unwrap_or_default();
        let core = Gvk {
            group: "",
            version: "v1",
            kind,
        };
        let own = Gvk {
            group: self.group,
            version: self.version,
            kind,
        };
        match row.kinds {
            Kinds::None => Vec::new(),
            Kinds::One(gvk) => vec![gvk_value(gvk)],
            Kinds::Everywhere if own == core => vec![gvk_value(core)],
            Kinds::Everywhere => vec![gvk_value(core), gvk_value(own)],
        }
    }

    fn property(&self, owner: &str, field: &FieldRow<'_>) -> Value {
        let mut schema = self.expression(&field.ty);
        if let Some(text) = self.descriptions.of_field(owner, field.name) {
            schema.insert("description".into(), text.into());
        }
        if let Some(default) = &field.default {
            schema.insert("default".into(), default.clone());
        }
        if !field.enumeration.is_empty() {
            let values = field.enumeration.as_slice().into();
            // Of a list or a map, it is the elements that are enumerated.
            let elements = ["items", "additionalProperties"]
                .into_iter()
                .find(|keyword| schema.contains_key(*keyword));
            match elements
                .and_then(|keyword| schema.get_mut(keyword))
                .and_then(Value::as_object_mut)
            {
                Some(elements) => elements.insert("enum".into(), values),
                None => schema.insert("enum".into(), values),
            };
        }
        // Bytes are a list to Go, though not in JSON.
        let is_list = matches!(field.ty, Type::List(_) | Type::Scalar(_));
        let relation = match &field.relation {
            Relation::Default => None,
            Relation::Atomic => Some("atomic"),
            Relation::Granular => Some("granular"),
            Relation::Set => Some("set"),
            Relation::Map(keys) => {
                schema.insert("x-kubernetes-list-map-keys".into(), keys.as_slice().into());
                Some("map")
            }
        };
        if let Some(relation) = relation {
            let keyword = if is_list {
                "x-kubernetes-list-type"
            } else {
                "x-kubernetes-map-type"
            };
            schema.insert(keyword.into(), relation.into());
        }
        if let Some(strategy) = field.patch_strategy {
            schema.insert("x-kubernetes-patch-strategy".into(), strategy.into());
        }
        if let Some(key) = field.merge_key {
            schema.insert("x-kubernetes-patch-merge-key".into(), key.into());
        }
        lone_reference(schema)
    }

    /// The type alone; a reference as `$ref`, which [`lone_reference`] wraps if anything stands beside it.
    fn expression(&self, ty: &Type<'_>) -> Map<String, Value> {
        match ty {
            Type::Scalar(format) => scalar(*format),
            Type::Ref(name) => {
                let full = self.rows.get(name).map_or(*name, |row| row.name);
                Map::from_iter([("$ref".to_owned(), schema_ref(full)["$ref"].clone())])
            }
            Type::List(element) => Map::from_iter([
                ("type".to_owned(), json!("array")),
                ("items".to_owned(), self.element(element)),
            ]),
            Type::Map(element) => Map::from_iter([
                ("type".to_owned(), json!("object")),
                ("additionalProperties".to_owned(), self.element(element)),
            ]),
        }
    }

    fn element(&self, element: &Element<'_>) -> Value {
        let mut schema = self.expression(&element.ty);
        if !element.pointer {
            schema.insert("default".into(), zero(&element.ty));
        }
        lone_reference(schema)
    }
}

/// A reference may have nothing beside it; with company it goes into `allOf`.
fn lone_reference(mut schema: Map<String, Value>) -> Value {
    if schema.len() > 1
        && let Some(target) = schema.shift_remove("$ref")
    {
        schema.shift_insert(0, "allOf".into(), json!([{"$ref": target}]));
    }
    schema.into()
}

fn referred<'a>(ty: &Type<'a>) -> Option<&'a str> {
    match ty {
        Type::Ref(name) => Some(name),
        Type::List(element) | Type::Map(element) => referred(&element.ty),
        Type::Scalar(_) => None,
    }
}

fn zero(ty: &Type<'_>) -> Value {
    match ty {
        Type::Scalar(Format::String) => json!(""),
        Type::Scalar(Format::Boolean) => json!(false),
        Type::Scalar(_) => json!(0),
        Type::Ref(_) | Type::List(_) | Type::Map(_) => json!({}),
    }
}

/// Group, version and kind as extensions have them.
pub(super) fn gvk_value(gvk: Gvk<'_>) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

fn scalar(format: Format) -> Map<String, Value> {
    let (ty, format) = match format {
        Format::String => ("string", ""),
        Format::Bytes => ("string", "byte"),
        Format::Int32 => ("integer", "int32"),
        Format::Int64 => ("integer", "int64"),
        Format::Double => ("number", "double"),
        Format::Boolean => ("boolean", ""),
        other => return named_scalar(other),
    };
    let mut schema = Map::from_iter([("type".to_owned(), json!(ty))]);
    if !format.is_empty() {
        schema.insert("format".into(), format.into());
    }
    schema
}

fn named_scalar(format: Format) -> Map<String, Value> {
    let schema = match format {
        Format::Time | Format::MicroTime => json!({"type": "string", "format": "date-time"}),
        Format::Quantity => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Format::IntOrString => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Format::Object | Format::Raw => json!({"type": "object"}),
        Format::Any | Format::SchemaOr => json!({}),
        plain => return scalar(plain),
    };
    match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
