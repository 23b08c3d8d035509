//! Custom resources: what a CRD makes of the kernel.
//!
//! [`CustomVersion`] is one served version of one CRD, compiled: the counterpart of a built-in kind's strategy.
//! [`Definitions`] follows the CRDs and puts a new registry in place whenever one changes; it runs before the write of
//! the CRD is acknowledged, so a client that has been told that its CRD is established can use it at once.

mod accepted_names;
mod bound;
mod compile;
mod definitions;
mod openapi;
pub(crate) mod provided;
mod schema;
mod strategy;
mod system;
mod version;

pub use accepted_names::AcceptedNames;
pub use bound::Bound;
pub use compile::Origin;
pub use definitions::{Definitions, admit_definition};
pub use openapi::{openapi_document, openapi_v2_document};
pub use provided::ProvidedKind;
pub use schema::MakeSchema;
pub use strategy::Definition;
pub use system::system_layer;
pub use version::CustomVersion;
