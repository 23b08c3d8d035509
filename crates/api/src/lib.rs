//! The kinds that Fairway's domains serve, a module per group: names that are part of the interface, and definitions.
//!
//! The definitions of upstream's kinds are complete. They are kept as tables of facts ([`facts`]) in which a structure
//! stands once however often it is used, and become schemas when somebody asks: a server that nobody has asked yet holds
//! nothing but the text in its program. Domains read and write objects as JSON; Rust types for parts of them belong to the
//! domain that acts on these parts.

pub mod argoproj;
pub mod backstage;
pub mod facts;
pub mod fairway;
pub mod gateway;
pub mod identity;
pub mod kubevirt;

mod definition;

pub use definition::{
    Definition, definitions, gateway_definitions, identity_definitions, machine_definitions,
};

/// The names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// The version that Fairway speaks.
    pub version: &'static str,
    /// `kind` of objects.
    pub kind: &'static str,
    /// In URLs.
    pub plural: &'static str,
}

impl Kind {
    /// `argoproj.io/v1alpha1`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}
