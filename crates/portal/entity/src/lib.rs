//! Backstage's software catalog as values: what an entity is, which others it belongs to, and which of them a query means.
//!
//! ```text
//! text ─ document ─ placeholders ─ validate ─ ingest ──► objects          (writing)
//!                                     │
//! objects ─ index ─ relations, rows ─ filter, query, fields, facets ──► answers   (reading)
//! ```
//!
//! Upstream's formats, rules and messages are the interface: a `catalog-info.yaml` that Backstage takes is taken here, and one that it
//! refuses is refused in the same words. Everything that a stranger writes is bounded: bytes, depth, aliases, rows of an entity, files
//! of a location, statements of a filter. Reading files, asking APIs and keeping objects are the caller's.
#![warn(missing_docs)]

pub mod document;
pub mod fields;
pub mod filter;
pub mod foreign;
pub mod index;
pub mod ingest;
pub mod live;
pub mod model;
pub mod names;
pub mod object;
pub mod place;
pub mod placeholders;
pub mod predicate;
pub mod query;
pub mod reference;
pub mod relations;
pub mod rows;
pub mod validate;

pub use index::{Index, Record};
pub use reference::EntityRef;

/// The namespace of entities that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Annotations that the catalog writes or reads.
pub mod annotation {
    /// Where an entity was read.
    pub const LOCATION: &str = "backstage.io/managed-by-location";
    /// Which registered location led there.
    pub const ORIGIN: &str = "backstage.io/managed-by-origin-location";
    /// Nothing leads to the entity any more.
    pub const ORPHAN: &str = "backstage.io/orphan";
    /// Where people read the file.
    pub const VIEW_URL: &str = "backstage.io/view-url";
    /// Where people change the file.
    pub const EDIT_URL: &str = "backstage.io/edit-url";
    /// The directory that relative paths of an entity start from.
    pub const SOURCE_LOCATION: &str = "backstage.io/source-location";
}

/// A request that makes no sense, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// Lower case as upstream compares: keys, values and references differ in case only for the eye.
pub(crate) fn lower(text: &str) -> String {
    text.to_lowercase()
}
