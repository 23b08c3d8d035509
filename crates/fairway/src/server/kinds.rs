//! The kinds of Fairway's domains, handed to the kernel, which knows none of them.

use std::sync::Arc;

use fairway_kernel_apiserver::custom::ProvidedKind;

/// All of them.
pub(super) fn provided() -> Vec<ProvidedKind> {
    let definitions = fairway_api::definitions().into_iter().map(Arc::new);
    definitions
        .map(|definition| {
            let (schema, whole) = (Arc::clone(&definition), Arc::clone(&definition));
            ProvidedKind {
                head: definition.head(),
                schema: Arc::new(move || schema.schema()),
                definition: Arc::new(move || whole.crd()),
                fingerprint: definition.fingerprint(),
                sealed: definition.kind().sealed,
            }
        })
        .collect()
}
