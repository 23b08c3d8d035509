//! Types of the table, out of the schemas of upstream's OpenAPI v3 documents.
//!
//! Everything that a schema says is either translated or refused: an unknown keyword is an error, so that a new
//! Kubernetes version cannot bring a fact that is silently lost.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, bail};
use fairway_kernel_schema::builtin::table::{
    Body, Element, FieldRow, Format, Gvk, Kinds, Presence, Relation, Type, TypeRow, reference,
};
use serde_json::{Map, Value, json};

use super::Documents;
use super::enums::Enums;
use super::gotypes::{GoField, GoTypes};

/// All schemas of the documents, by name; the same type looks the same in each.
pub(crate) type Schemas<'a> = BTreeMap<&'a str, &'a Value>;

/// Gathers the schemas of all documents.
pub(crate) fn schemas(documents: &Documents) -> Schemas<'_> {
    let mut found = Schemas::new();
    for document in documents.values() {
        for (name, schema) in document["components"]["schemas"]
            .as_object()
            .into_iter()
            .flatten()
        {
            found.insert(name, schema);
        }
    }
    found
}

/// The rows of the table.
pub(crate) fn rows<'a>(schemas: &Schemas<'a>, enums: &Enums, go: &mut GoTypes) -> Result<Vec<TypeRow<'a>>> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let mut rows = Vec::with_capacity(schemas.len());
    for (name, schema) in schemas {
        if let Some(other) = seen.insert(reference(name), name) {
            bail!("{name} and {other} would be referred to by the same words");
        }
        rows.push(row(name, schema, enums, go).with_context(|| (*name).to_owned())?);
    }
    for row in &rows {
        let Body::Struct(fields) = &row.body else { continue };
        for field in fields {
            let unknown = referred(&field.ty).filter(|r| !seen.contains_key(r));
            if let Some(unknown) = unknown {
                bail!(
                    "{}.{} refers to {unknown}, which is not in any document",
                    row.name,
                    field.name
                );
            }
        }
    }
    Ok(rows)
}

/// When Go writes a field.
fn presence(ty: &Type<'_>, field: &GoField) -> Presence {
    // Structs and values with functions of their own are never empty in Go's eyes.
    let never_empty = matches!(ty, Type::Ref(_));
    if field.omit_zero() {
        Presence::Optional
    } else if !field.omit_empty() {
        if field.pointer() || matches!(ty, Type::List(_) | Type::Map(_) | Type::Scalar(Format::Bytes)) {
            Presence::AlwaysNull
        } else {
            Presence::Always
        }
    } else if field.pointer() {
        Presence::Optional
    } else if never_empty {
        Presence::Always
    } else {
        Presence::OmitEmpty
    }
}

fn referred<'a>(ty: &Type<'a>) -> Option<&'a str> {
    match ty {
        Type::Ref(name) => Some(name),
        Type::List(element) | Type::Map(element) => referred(&element.ty),
        Type::Scalar(_) => None,
    }
}

fn row<'a>(name: &'a str, schema: &'a Value, enums: &Enums, go: &mut GoTypes) -> Result<TypeRow<'a>> {
    let schema = schema.as_object().context("a schema is an object")?;
    let mut row = TypeRow {
        name,
        body: Body::Struct(Vec::new()),
        atomic: false,
        kinds: Kinds::None,
        unions: None,
    };
    let required = strings(schema.get("required"))?;
    for (keyword, value) in schema {
        match keyword.as_str() {
            "description" | "required" | "type" | "format" | "oneOf" => {}
            "properties" => {
                let mut fields = Vec::new();
                for (field, property) in value.as_object().context("properties")? {
                    let values = enums
                        .of(name, field)
                        .map(|e| e.values.clone())
                        .unwrap_or_default();
                    let property = property.as_object().context("a property is an object")?;
                    let required = required.contains(&field.as_str());
                    let mut row =
                        field_row(field, property, required, values).with_context(|| field.clone())?;
                    row.presence = presence(&row.ty, &go.field(name, field)?);
                    fields.push(row);
                }
                fields.sort_by_key(|f| f.name);
                row.body = Body::Struct(fields);
            }
            "x-kubernetes-map-type" => row.atomic = value == "atomic",
            "x-kubernetes-unions" => row.unions = Some(value.clone()),
            "x-kubernetes-group-version-kind" => row.kinds = kinds(name, value)?,
            _ => bail!("unknown keyword {keyword}"),
        }
    }
    if !schema.contains_key("properties") {
        row.body = Body::Scalar(free_form(name, schema)?);
    }
    Ok(row)
}

/// Types without properties: those that Go decodes with a function of its own, and free-form ones.
fn free_form(name: &str, schema: &Map<String, Value>) -> Result<Format> {
    let mut bare = schema.clone();
    for keyword in ["description", "x-kubernetes-group-version-kind"] {
        bare.shift_remove(keyword);
    }
    let bare = Value::Object(bare);
    let short = name.rsplit('.').next().unwrap_or(name);
    let known = [
        (
            "Quantity",
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            Format::Quantity,
        ),
        (
            "IntOrString",
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            Format::IntOrString,
        ),
        (
            "Time",
            json!({"format": "date-time", "type": "string"}),
            Format::Time,
        ),
        (
            "MicroTime",
            json!({"format": "date-time", "type": "string"}),
            Format::MicroTime,
        ),
        ("RawExtension", json!({"type": "object"}), Format::Raw),
    ];
    if let Some((_, expected, format)) = known.iter().find(|(n, ..)| *n == short) {
        if bare != *expected {
            bail!("no longer looks like a {short}: {bare}");
        }
        return Ok(*format);
    }
    if short.starts_with("JSONSchemaPropsOr") && bare == json!({}) {
        return Ok(Format::SchemaOr);
    }
    if bare == json!({"type": "object"}) {
        Ok(Format::Object)
    } else if bare == json!({}) {
        Ok(Format::Any)
    } else {
        bail!("unknown form {bare}")
    }
}

fn kinds<'a>(name: &str, value: &'a Value) -> Result<Kinds<'a>> {
    let short = name.rsplit('.').next().unwrap_or(name);
    if matches!(short, "DeleteOptions" | "WatchEvent") {
        return Ok(Kinds::Everywhere);
    }
    let [one] = value.as_array().map(Vec::as_slice).unwrap_or_default() else {
        bail!("stands for several kinds: {value}");
    };
    let text = |key: &str| one[key].as_str().with_context(|| format!("{key} of a kind"));
    Ok(Kinds::One(Gvk {
        group: text("group")?,
        version: text("version")?,
        kind: text("kind")?,
    }))
}

fn field_row<'a>(
    name: &'a str,
    property: &'a Map<String, Value>,
    required: bool,
    enumeration: Vec<String>,
) -> Result<FieldRow<'a>> {
    let mut row = FieldRow {
        name,
        ty: expression(property)?,
        required,
        presence: Presence::Optional,
        relation: Relation::Default,
        patch_strategy: None,
        merge_key: None,
        enumeration,
        default: None,
    };
    for (keyword, value) in property {
        match keyword.as_str() {
            "description" | "type" | "format" | "items" | "additionalProperties" | "allOf" | "$ref" => {}
            "x-kubernetes-list-map-keys" => {}
            "default" => row.default = Some(value.clone()),
            "x-kubernetes-list-type" | "x-kubernetes-map-type" => {
                row.relation = match value.as_str() {
                    Some("atomic") => Relation::Atomic,
                    Some("granular") => Relation::Granular,
                    Some("set") => Relation::Set,
                    Some("map") => Relation::Map(strings(property.get("x-kubernetes-list-map-keys"))?),
                    _ => bail!("unknown {keyword}: {value}"),
                };
            }
            "x-kubernetes-patch-strategy" => row.patch_strategy = value.as_str(),
            "x-kubernetes-patch-merge-key" => row.merge_key = value.as_str(),
            _ => bail!("unknown keyword {keyword}"),
        }
    }
    Ok(row)
}

fn expression(schema: &Map<String, Value>) -> Result<Type<'_>> {
    if let Some(target) = schema
        .get("$ref")
        .or_else(|| schema.get("allOf").map(|all| &all[0]["$ref"]))
    {
        let target = target.as_str().context("a reference is text")?;
        return Ok(Type::Ref(reference(
            target.trim_start_matches("#/components/schemas/"),
        )));
    }
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    Ok(Type::Scalar(match (text("type"), text("format")) {
        ("string", "") => Format::String,
        ("string", "byte") => Format::Bytes,
        ("integer", "int32") => Format::Int32,
        ("integer", "int64") => Format::Int64,
        ("number", "double") => Format::Double,
        ("boolean", "") => Format::Boolean,
        ("array", "") => return Ok(Type::List(Box::new(element(&schema["items"])?))),
        ("object", "") => return Ok(Type::Map(Box::new(element(&schema["additionalProperties"])?))),
        other => bail!("unknown type {other:?}"),
    }))
}

fn element(schema: &Value) -> Result<Element<'_>> {
    let schema = schema.as_object().context("elements have a schema")?;
    let ty = expression(schema)?;
    let zero = zero_value(&ty);
    let pointer = match schema.get("default") {
        None => true,
        Some(default) if Some(default) == zero.as_ref() => false,
        Some(default) => bail!("elements default to {default}, which is not their zero value"),
    };
    for keyword in schema.keys() {
        if !matches!(
            keyword.as_str(),
            "type" | "format" | "items" | "allOf" | "$ref" | "default"
        ) {
            bail!("unknown keyword {keyword} of an element");
        }
    }
    Ok(Element { ty, pointer })
}

fn zero_value(ty: &Type<'_>) -> Option<Value> {
    match ty {
        Type::Ref(_) => Some(json!({})),
        Type::Scalar(Format::String) => Some(json!("")),
        Type::Scalar(Format::Int32 | Format::Int64 | Format::Double) => Some(json!(0)),
        Type::Scalar(Format::Boolean) => Some(json!(false)),
        Type::Scalar(_) | Type::List(_) | Type::Map(_) => None,
    }
}

fn strings(list: Option<&Value>) -> Result<Vec<&str>> {
    let items = list
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    items
        .iter()
        .map(|v| v.as_str().context("a list of names"))
        .collect()
}
