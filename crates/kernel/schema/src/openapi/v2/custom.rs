//! Schemas of CRDs for the v2 document.
//!
//! Version 2 is poorer than what a CRD may say, and clients of it are strict: what they cannot understand must become a
//! schema that allows anything, or they would refuse objects that the server takes.

use serde_json::{Map, Value, json};

use super::super::crd::{self, CrdKind};
use super::super::descriptions::Descriptions;
use super::super::schemas::gvk_value;
use crate::builtin::table::Gvk;

/// As in version 3; it only guards the recursion.
const MAX_DEPTH: usize = 128;

/// What is kept as it stands.
const KEPT: [&str; 26] = [
    "title",
    "description",
    "type",
    "format",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "required",
    "enum",
    "externalDocs",
    "example",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The definition of a custom kind.
pub(super) fn object(
    group: &str,
    version: &str,
    kind: &CrdKind<'_>,
    descriptions: &Descriptions<'_>,
) -> Value {
    let mut schema = if !kind.schema.is_object() || is_true(kind.schema, PRESERVE) {
        // Properties, even those that all objects have, would make clients refuse all others.
        json!({"type": "object"})
    } else {
        let mut schema = structural(kind.schema, 0);
        crd::add_embedded(&mut schema, descriptions, &|s| !is_true(s, PRESERVE), 0);
        crd::add_type_and_meta(&mut schema, descriptions);
        schema
    };
    let gvk = Gvk {
        group,
        version,
        kind: kind.kind,
    };
    schema["x-kubernetes-group-version-kind"] = json!([gvk_value(gvk)]);
    schema
}

fn is_true(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

fn structural(from: &Value, depth: usize) -> Value {
    let mut schema = Map::new();
    let Some(map) = from.as_object().filter(|_| depth <= MAX_DEPTH) else {
        return schema.into();
    };
    for (key, value) in map {
        if KEPT.contains(&key.as_str()) || key == PRESERVE || key == "x-kubernetes-validations" {
            schema.insert(key.clone(), value.clone());
        }
    }
    let (nullable, preserves) = (is_true(from, "nullable"), is_true(from, PRESERVE));
    if nullable || preserves && map.get("type").is_some_and(|t| t == "object") {
        schema.shift_remove("type");
    }
    if !nullable && !preserves {
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            let properties: Map<String, Value> = properties
                .iter()
                .map(|(name, property)| (name.clone(), structural(property, depth + 1)))
                .collect();
            schema.insert("properties".into(), properties.into());
        }
        if let Some(items) = map.get("items") {
            schema.insert("items".into(), structural(items, depth + 1));
        }
    }
    if !schema.contains_key("items") && schema.get("type").is_some_and(|t| t == "array") {
        schema.shift_remove("type");
    }
    match map.get("additionalProperties") {
        Some(Value::Bool(allowed)) => {
            schema.insert("additionalProperties".into(), (*allowed).into());
        }
        Some(element) => {
            schema.insert("additionalProperties".into(), structural(element, depth + 1));
            if is_true(element, "nullable") {
                schema.shift_remove("required");
            }
        }
        None => {}
    }
    require_no_null(from, &mut schema);
    schema.into()
}

/// A client of this version holds null for absent; so what may be null is not required.
fn require_no_null(from: &Value, schema: &mut Map<String, Value>) {
    if !schema.contains_key("properties") {
        return;
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| {
            let property = name.as_str().and_then(|name| from["properties"].get(name));
            !property.is_some_and(|p| is_true(p, "nullable"))
        });
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}
