//! The built-in kinds of Kubernetes 1.36: their types, resources and rules of decoding.
//!
//! Everything here comes from one generated table of facts (`data/builtin.facts`, see [`table`]). It is read once, on
//! first use; what is kept are the shapes of the types and the list of kinds. What only OpenAPI documents need is read
//! again when somebody asks for one.

mod check;
mod encode;
mod kinds;
mod scalar;
mod types;

pub mod table;

pub use check::{CheckResult, DecodeError, UnknownFields, check, check_shape};
pub use encode::{encode, encode_shape};
pub use kinds::{KindInfo, SubresourceInfo, groups, kind, kinds, resource};

use crate::shape::{ShapeId, Shapes};
use table::Table;

pub(crate) const FACTS: &str = include_str!("../data/builtin.facts");

/// The shapes of all built-in types.
pub fn shapes() -> &'static Shapes {
    &types::types().shapes
}

/// The shape of a type by its full name, such as `io.k8s.api.core.v1.PodSpec`.
pub fn shape(name: &str) -> Option<ShapeId> {
    shapes().named(name)
}

/// The table, read afresh; its callers keep what they need of it.
pub(crate) fn facts() -> Table<'static> {
    // The committed file is checked by this crate's tests, so it cannot fail here.
    Table::parse(FACTS).unwrap_or_default()
}

#[cfg(test)]
mod tests;
