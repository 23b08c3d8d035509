//! Schemas and objects as tables.

mod compiling;
mod hostile;
mod objects;
mod ruling;
mod shaping;
mod updating;
mod upstream;
mod validating;

use serde_json::{Value, json};

use super::{Budget, Structural};

/// Loads a schema without asking whether it is structural.
fn load(schema: &Value) -> Structural {
    Structural::load(schema).unwrap_or_else(|e| panic!("{schema}: {e:?}"))
}

/// A root schema with these properties of `spec`.
fn spec_schema(properties: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn errors(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<String> {
    load(schema)
        .validate(value, old, &mut Budget::default())
        .iter()
        .map(ToString::to_string)
        .collect()
}
