//! The kinds of Fairway's domains, handed to the kernel, which knows none of them.

use std::sync::Arc;

use fairway_api::{Definition, definitions, gateway_definitions, identity_definitions, machine_definitions};
use fairway_kernel_apiserver::custom::ProvidedKind;

/// All of them.
pub(super) fn provided() -> Vec<ProvidedKind> {
    let all = definitions()
        .into_iter()
        .chain(machine_definitions())
        .chain(gateway_definitions())
        .chain(identity_definitions());
    all.map(served).collect()
}

fn served(definition: Definition) -> ProvidedKind {
    let definition = Arc::new(definition);
    let (schema, whole) = (Arc::clone(&definition), Arc::clone(&definition));
    ProvidedKind {
        head: definition.head(),
        schema: Arc::new(move || schema.schema()),
        definition: Arc::new(move || whole.crd()),
        fingerprint: definition.fingerprint(),
        sealed: definition.kind().sealed,
        domain: fairway_machines_plan::admission::of(definition.group(), definition.kind().plural)
            .or_else(|| fairway_gateway_engine::admission::of(&definition))
            .or_else(|| fairway_portal_scaffolder::admission::of(&definition)),
    }
}
