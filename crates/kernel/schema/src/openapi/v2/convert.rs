//! Schemas and operations of OpenAPI v3 in the grammar of version 2.

use serde_json::{Map, Value, json};

use super::parameters::Shared;

/// Media types in the order in which version 2 lists them; in version 3 they are keys and have none.
const MEDIA_ORDER: [&str; 10] = [
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// Schemas come from the facts or from CRDs, neither of which is deeper; this only guards the recursion.
const MAX_DEPTH: usize = 160;

/// A schema without what version 2 does not know. Defaults go too: upstream leaves them out, as clients of this
/// version took them for something else.
pub(super) fn schema(mut schema: Value) -> Value {
    simplify(&mut schema, 0);
    schema
}

fn simplify(schema: &mut Value, depth: usize) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    if depth > MAX_DEPTH {
        map.clear();
        return;
    }
    map.shift_remove("default");
    if map.shift_remove("oneOf").is_some() {
        // Quantities, and what is an integer or a string.
        map.insert("type".into(), "string".into());
    }
    // Here a reference may have company.
    if let Some(wrapped) = map.shift_remove("allOf")
        && let Some(target) = wrapped.pointer("/0/$ref")
    {
        map.insert("$ref".into(), target.clone());
    }
    if let Some(Value::String(target)) = map.get_mut("$ref") {
        *target = target.replacen("#/components/schemas/", "#/definitions/", 1);
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties
            .values_mut()
            .for_each(|property| simplify(property, depth + 1));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = map.get_mut(keyword) {
            simplify(child, depth + 1);
        }
    }
}

/// The operations of a path. Parameters that many of them have are put into `shared`.
pub(super) fn path_item(item: Value, built_in: bool, shared: &mut Shared) -> Value {
    let Value::Object(item) = item else {
        return item;
    };
    item.into_iter()
        .map(|(key, value)| {
            let value = match value {
                Value::Array(parameters) => parameters
                    .into_iter()
                    .map(|p| shared.reference(parameter(p)))
                    .collect(),
                Value::Object(body) => operation(body, built_in, shared),
                other => other,
            };
            (key, value)
        })
        .collect::<Map<_, _>>()
        .into()
}

fn operation(mut v3: Map<String, Value>, built_in: bool, shared: &mut Shared) -> Value {
    let mut v2 = Map::new();
    let request = v3.shift_remove("requestBody");
    let produces = v3.get("responses").and_then(|r| r.pointer("/200/content"));
    let produces = produces.map(media).unwrap_or_default();
    let consumes = match &request {
        Some(request) => media(&request["content"]),
        None if !built_in || !v3.contains_key("x-kubernetes-action") => produces.clone(),
        None => vec!["*/*"],
    };
    v2.insert("consumes".into(), consumes.into());
    v2.insert("produces".into(), produces.into());
    v2.insert("schemes".into(), json!(["https"]));

    let mut parameters: Vec<Value> = match v3.shift_remove("parameters") {
        Some(Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
        _ => Vec::new(),
    };
    parameters.extend(request.as_ref().and_then(body_parameter));
    if !parameters.is_empty() {
        parameters.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        let parameters: Value = parameters.into_iter().map(|p| shared.reference(p)).collect();
        v2.insert("parameters".into(), parameters);
    }
    for (key, mut value) in v3 {
        if key == "responses" {
            value
                .as_object_mut()
                .into_iter()
                .flat_map(Map::values_mut)
                .for_each(response);
        }
        v2.insert(key, value);
    }
    v2.into()
}

/// What media types a body may have.
fn media(content: &Value) -> Vec<&'static str> {
    let Some(content) = content.as_object() else {
        return Vec::new();
    };
    if content.contains_key("*/*") {
        return vec!["*/*"];
    }
    MEDIA_ORDER
        .into_iter()
        .filter(|m| content.contains_key(*m))
        .collect()
}

/// The schema of a body, which is the same for all media types.
fn body_schema(content: &Value) -> Option<Value> {
    let first = content.as_object()?.values().next()?;
    Some(schema(first.get("schema")?.clone()))
}

/// The body of a request is one of its parameters.
fn body_parameter(request: &Value) -> Option<Value> {
    let mut parameter = json!({"name": "body", "in": "body"});
    if request["required"] == true {
        parameter["required"] = true.into();
    }
    parameter["schema"] = body_schema(&request["content"])?;
    Some(parameter)
}

fn response(response: &mut Value) {
    let Some(map) = response.as_object_mut() else {
        return;
    };
    if let Some(content) = map.shift_remove("content")
        && let Some(schema) = body_schema(&content)
    {
        map.insert("schema".into(), schema);
    }
}

/// A parameter, whose type stands beside its name. The order of keys decides the name under which it is shared.
fn parameter(mut v3: Value) -> Value {
    let mut v2 = Map::new();
    for keyword in ["uniqueItems", "type"] {
        if let Some(value) = v3.pointer_mut(&format!("/schema/{keyword}")) {
            v2.insert(keyword.into(), value.take());
        }
    }
    for keyword in ["description", "name", "in", "required"] {
        if let Some(value) = v3.get_mut(keyword) {
            v2.insert(keyword.into(), value.take());
        }
    }
    v2.into()
}
