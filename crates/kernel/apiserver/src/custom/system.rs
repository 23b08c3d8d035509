//! The kinds of workspaces and shared APIs, which every workspace has and nobody can remove.
//!
//! They are custom kinds whose definitions are part of the program, stored under the identity of built-in ones, so that one
//! prefix holds all workspaces' objects of a kind.

use std::sync::{Arc, OnceLock};

use fairway_kernel_tenancy::crds::{self, Reach};

use super::compile::{Origin, resources};
use crate::key::BUILTIN_IDENTITY;
use crate::registry::Layer;

/// The layer of these kinds, made on first use.
pub fn system_layer() -> &'static Arc<Layer> {
    static LAYER: OnceLock<Arc<Layer>> = OnceLock::new();
    LAYER.get_or_init(|| {
        let served = crds::ALL.iter().filter(|d| d.reach != Reach::OnDemand);
        let defs = served.flat_map(|d| resources(&d.crd(), &Origin::System, BUILTIN_IDENTITY, 0));
        Arc::new(Layer::new(defs))
    })
}
