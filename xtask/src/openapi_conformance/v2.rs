//! The v2 document against the one that upstream recorded.
//!
//! The record covers all groups, also those that a server with default settings does not serve; only what belongs to
//! served groups is compared. Operations are compared with their parameters in place, whether shared or not; shared
//! parameters are compared by name besides, which says the same as their content, since the name has its hash.

use std::collections::BTreeSet;

use anyhow::Result;
use fairway_kernel_schema::openapi::{self, V2Form};
use serde_json::{Map, Value};

use super::{Tally, comparable_parameter, without_alpha, without_enumeration};
use crate::{codegen, upstream};

/// Compares the document.
pub(super) fn run(tally: &mut Tally, documents: &codegen::Documents) -> Result<()> {
    let expected = upstream::json(&upstream::kubernetes()?.join("api/openapi-spec/swagger.json"))?;
    let actual: Value = serde_json::from_slice(&openapi::v2_document(
        V2Form::Json,
        &[],
        openapi::Served::default(),
    ))?;
    let prefixes: Vec<String> = documents
        .keys()
        .map(|(group, version)| match group.as_str() {
            "" => format!("/api/{version}/"),
            group => format!("/apis/{group}/{version}/"),
        })
        .collect();
    let is_served = |path: &str| prefixes.iter().any(|p| path.starts_with(p.as_str()));
    let expected_paths: Map<String, Value> = object(&expected, "paths")
        .into_iter()
        .filter(|(path, _)| is_served(path))
        .collect();
    tally.compare(
        "v2",
        &operations(&expected, &expected_paths),
        &operations(&actual, &object(&actual, "paths")),
    );

    let expected_paths = Value::Object(expected_paths);
    let needed = closure(&expected, &expected_paths);
    let mut wanted = definitions(&expected);
    wanted.retain(|name, _| needed.contains(name));
    tally.compare("v2", &wanted, &definitions(&actual));

    let mut used = Vec::new();
    references(&expected_paths, "#/parameters/", &mut used);
    let mut wanted = object(&expected, "parameters");
    wanted.retain(|name, _| used.contains(&name.as_str()));
    tally.compare("v2", &shared(&wanted), &shared(&object(&actual, "parameters")));

    tally.compare("v2", &frame(&expected), &frame(&actual));
    Ok(())
}

fn object(document: &Value, key: &str) -> Map<String, Value> {
    document[key].as_object().cloned().unwrap_or_default()
}

fn frame(document: &Value) -> Map<String, Value> {
    let mut frame = document.as_object().cloned().unwrap_or_default();
    frame.retain(|key, _| !matches!(key.as_str(), "paths" | "definitions" | "parameters"));
    frame
}

/// Fairway describes the parts of a path in its own words, and sharded lists are an alpha feature.
fn shared(parameters: &Map<String, Value>) -> Map<String, Value> {
    let mut parameters = parameters.clone();
    parameters.retain(|_, p| p["in"] != "path" && p["name"] != "shardSelector");
    parameters
}

fn definitions(document: &Value) -> Map<String, Value> {
    let mut definitions = object(document, "definitions");
    for definition in definitions.values_mut() {
        if let Some(required) = definition.get_mut("required").and_then(Value::as_array_mut) {
            required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        }
        let properties = definition.get_mut("properties").and_then(Value::as_object_mut);
        properties
            .into_iter()
            .flat_map(Map::values_mut)
            .filter_map(Value::as_object_mut)
            .for_each(without_enumeration);
    }
    definitions
}

fn operations(document: &Value, paths: &Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    for (path, item) in paths {
        for (method, operation) in item
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(m, _)| *m != "parameters")
        {
            let mut operation = operation.clone();
            let lists = [&item["parameters"], &operation["parameters"]];
            let mut parameters: Vec<(String, Value)> = lists
                .into_iter()
                .filter_map(Value::as_array)
                .flatten()
                .filter_map(|p| comparable_parameter(resolved(document, p)))
                .collect();
            parameters.sort_by(|a, b| a.0.cmp(&b.0));
            operation["parameters"] = parameters.into_iter().map(|(_, value)| value).collect();
            for keyword in ["consumes", "produces"] {
                if let Some(media) = operation[keyword].as_array_mut() {
                    media.retain(|m| !m.as_str().is_some_and(|m| m.contains("cbor")));
                }
            }
            without_alpha(&mut operation);
            if let Some(operation) = operation.as_object_mut() {
                operation.shift_remove("description");
            }
            found.insert(format!("{method} {path}"), operation);
        }
    }
    found
}

fn resolved(document: &Value, parameter: &Value) -> Value {
    let name = parameter["$ref"]
        .as_str()
        .and_then(|r| r.strip_prefix("#/parameters/"));
    name.map_or(parameter, |name| &document["parameters"][name])
        .clone()
}

/// The definitions that something refers to, directly or not.
fn closure(document: &Value, from: &Value) -> BTreeSet<String> {
    let mut open = Vec::new();
    references(from, "#/definitions/", &mut open);
    // Shared parameters refer to some as well.
    references(&document["parameters"], "#/definitions/", &mut open);
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.insert(name.to_owned()) {
            references(&document["definitions"][name], "#/definitions/", &mut open);
        }
    }
    found
}

fn references<'v>(value: &'v Value, prefix: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(map) => {
            found.extend(
                map.get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|r| r.strip_prefix(prefix)),
            );
            map.values().for_each(|v| references(v, prefix, found));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, prefix, found)),
        _ => {}
    }
}
