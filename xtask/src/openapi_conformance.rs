//! `cargo xtask conformance openapi`: Fairway's OpenAPI documents against those that upstream recorded.
//!
//! Each schema and each operation is one case. Upstream's records are taken with alpha features on and enumerations off,
//! which a server with default settings has the other way round; both sides are brought to the same state first. The
//! words that describe an operation are Fairway's own and are not compared; the descriptions of schemas are.

mod v2;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use fairway_kernel_schema::openapi;
use serde_json::{Map, Value};

use crate::{codegen, upstream};

/// How many differences are shown in full.
const SHOWN: usize = 40;

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

/// Compares all documents.
pub(crate) fn run() -> Result<()> {
    let mut tally = Tally::default();
    let documents = codegen::documents(&upstream::kubernetes()?)?;
    for ((group, version), expected) in &documents {
        let bytes = openapi::v3_document(group, version)
            .with_context(|| format!("no document for {group}/{version}"))?;
        let actual: Value = serde_json::from_slice(&bytes)?;
        let place = if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        };
        tally.compare(&place, &schemas(expected), &schemas(&actual));
        tally.compare(&place, &operations(expected), &operations(&actual));
        tally.compare(&place, &frame(expected), &frame(&actual));
    }
    v2::run(&mut tally, &documents)?;
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed > 0 {
        bail!("the OpenAPI documents differ from upstream's");
    }
    Ok(())
}

impl Tally {
    fn compare(&mut self, place: &str, expected: &Map<String, Value>, actual: &Map<String, Value>) {
        let names: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
        for name in names {
            let (expected, actual) = (expected.get(name), actual.get(name));
            if expected == actual {
                self.passed += 1;
                continue;
            }
            self.failed += 1;
            if self.failed <= SHOWN {
                let (path, expected, actual) = first_difference(expected, actual, String::new());
                println!("{place} {name}{path}\n  upstream: {expected}\n  fairway:  {actual}");
            }
        }
    }
}

/// Everything beside paths and schemas.
fn frame(document: &Value) -> Map<String, Value> {
    let mut frame = document.as_object().cloned().unwrap_or_default();
    frame.shift_remove("paths");
    if let Some(components) = frame.get_mut("components").and_then(Value::as_object_mut) {
        components.shift_remove("schemas");
    }
    frame
}

fn schemas(document: &Value) -> Map<String, Value> {
    let mut schemas = document["components"]["schemas"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for schema in schemas.values_mut() {
        // The order of required fields has no meaning.
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for property in properties
            .into_iter()
            .flat_map(Map::values_mut)
            .filter_map(Value::as_object_mut)
        {
            without_enumeration(property);
        }
    }
    schemas
}

fn without_enumeration(property: &mut Map<String, Value>) {
    property.shift_remove("enum");
    if let Some(Value::String(text)) = property.get_mut("description")
        && let Some(at) = text.find("\n\nPossible enum values:\n")
    {
        text.truncate(at);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(elements) = property.get_mut(keyword).and_then(Value::as_object_mut) {
            elements.shift_remove("enum");
        }
    }
}

/// The operations by path and method, with all parameters where they apply.
fn operations(document: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let shared = item["parameters"].as_array().cloned().unwrap_or_default();
        for (method, operation) in item
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(m, _)| *m != "parameters")
        {
            let mut operation = operation.clone();
            let mut parameters = shared.clone();
            parameters.extend(operation["parameters"].as_array().cloned().unwrap_or_default());
            let mut parameters: Vec<(String, Value)> =
                parameters.into_iter().filter_map(comparable_parameter).collect();
            parameters.sort_by(|a, b| a.0.cmp(&b.0));
            operation["parameters"] = parameters.into_iter().map(|(_, value)| value).collect();
            without_alpha(&mut operation);
            if let Some(operation) = operation.as_object_mut() {
                operation.shift_remove("description");
            }
            found.insert(format!("{method} {path}"), operation);
        }
    }
    found
}

fn comparable_parameter(mut parameter: Value) -> Option<(String, Value)> {
    let key = format!("{} {}", parameter["name"].as_str()?, parameter["in"].as_str()?);
    if parameter["in"] == "path" {
        parameter.as_object_mut()?.shift_remove("description");
    }
    // Sharded lists are an alpha feature.
    (parameter["name"] != "shardSelector").then_some((key, parameter))
}

/// CBOR is an alpha feature.
fn without_alpha(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !key.contains("cbor"));
            map.values_mut().for_each(without_alpha);
        }
        Value::Array(items) => items.iter_mut().for_each(without_alpha),
        _ => {}
    }
}

fn first_difference(
    expected: Option<&Value>,
    actual: Option<&Value>,
    path: String,
) -> (String, String, String) {
    if let (Some(Value::Object(left)), Some(Value::Object(right))) = (expected, actual) {
        let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
        if let Some(name) = names.into_iter().find(|n| left.get(*n) != right.get(*n)) {
            return first_difference(left.get(name), right.get(name), format!("{path} {name}"));
        }
    }
    if let (Some(Value::Array(left)), Some(Value::Array(right))) = (expected, actual)
        && left.len() == right.len()
        && let Some(index) = (0..left.len()).find(|i| left[*i] != right[*i])
    {
        return first_difference(left.get(index), right.get(index), format!("{path} {index}"));
    }
    let show =
        |v: Option<&Value>| v.map_or("absent".to_owned(), |v| v.to_string().chars().take(300).collect());
    (path, show(expected), show(actual))
}
