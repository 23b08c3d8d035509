//! Definitions as tables: validation, updates, names, conditions.

mod changing;
mod deciding;
mod judging;

use serde_json::{Value, json};

use super::prepare_for_create;

/// A definition that is right, with a change made to it.
fn crd(change: impl FnOnce(&mut Value)) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ships.sea.example.com"},
        "spec": {
            "group": "sea.example.com",
            "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship", "shortNames": ["sh"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "color": {"type": "string"}, "crew": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}},
                    "status": {"type": "object"}}}}}],
        },
    });
    prepare_for_create(&mut crd);
    change(&mut crd);
    crd
}

fn texts(errors: &[crate::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Sets the value at a pointer, also where nothing is yet.
fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) if field == "-" => items.push(new),
        parent => parent[field] = new,
    }
}
