//! CustomResourceDefinitions: what they say, whether it is right, and what follows from it.
//!
//! Everything here is a function of objects: [`CrdSpec`] is the parsed view that the server works with, [`validate`] and
//! its siblings judge the object that a client sent, [`naming`] and [`conditions`] decide the status.

pub mod conditions;
pub mod naming;
pub mod scale;
pub mod versions;

mod defaults;
mod names_check;
mod spec;
mod validation;
mod version_check;
mod webhook_check;

pub use self::defaults::{prepare_for_create, prepare_for_status_update, prepare_for_update, set_defaults};
pub use self::spec::{
    Conversion, CrdSpec, Names, PrinterColumn, Scope, SelectableField, Subresources, Version,
};
pub use self::validation::{validate, validate_status_update, validate_update, warnings};

use serde_json::Value;

/// Keeps a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The annotation without which groups of the Kubernetes community are refused.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("")
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn present<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    value.get(field).filter(|v| !v.is_null())
}

#[cfg(test)]
mod tests;
