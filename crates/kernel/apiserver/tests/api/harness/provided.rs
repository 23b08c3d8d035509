//! Kinds that the program brings: one that does nothing in the place of those of domains, and those of machines, which are
//! completed and judged.

use std::sync::Arc;

use fairway_kernel_apiserver::custom::ProvidedKind;
use serde_json::{Value, json};

fn definition(schema: Option<Value>) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lanterns.harbour.dev"},
        "spec": {
            "group": "harbour.dev", "scope": "Namespaced",
            "names": {"plural": "lanterns", "singular": "lantern", "kind": "Lantern", "listKind": "LanternList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}}],
        },
    });
    if let Some(schema) = schema {
        definition["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": schema});
    }
    definition
}

/// The kinds of a test's server.
pub(super) fn kinds() -> Vec<ProvidedKind> {
    let lamp =
        json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let spec = |lamp: Value| json!({"type": "object", "properties": {"upper": lamp, "lower": lamp}});
    let whole = json!({"type": "object", "properties": {"spec": spec(lamp.clone())}});
    let short = json!({"$ref": "Lantern", "$defs": {
        "Lantern": {"type": "object", "properties": {"spec": spec(json!({"$ref": "Lamp"}))}},
        "Lamp": lamp,
    }});
    let lanterns = ProvidedKind {
        head: definition(None),
        schema: Arc::new(move || short.clone()),
        definition: Arc::new(move || definition(Some(whole.clone()))),
        fingerprint: 7,
        sealed: false,
        domain: None,
    };
    let machines = fairway_api::machine_definitions().into_iter().map(machine);
    std::iter::once(lanterns).chain(machines).collect()
}

fn machine(definition: fairway_api::Definition) -> ProvidedKind {
    let definition = Arc::new(definition);
    let (schema, whole) = (Arc::clone(&definition), Arc::clone(&definition));
    ProvidedKind {
        head: definition.head(),
        schema: Arc::new(move || schema.schema()),
        definition: Arc::new(move || whole.crd()),
        fingerprint: definition.fingerprint(),
        sealed: false,
        domain: fairway_machines_plan::admission::of(definition.group(), definition.kind().plural),
    }
}
