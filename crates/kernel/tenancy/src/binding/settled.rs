//! Whether a binding has what its export offers, told without looking at anything else of its workspace.
//!
//! There are thousands of bindings and few exports. When an export changes or a server starts, every binding is asked
//! for; those that have taken exactly what is offered, and have no complaint, need not be looked at any further. What one
//! has taken is told by [`crate::glance::Binding`].

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::export::ApiExport;
use crate::schema::ApiResourceSchema;

/// Conditions that a binding without complaint has.
const GOOD: [&str; 5] = [
    "APIExportValid",
    "BindingUpToDate",
    "InitialBindingCompleted",
    "PermissionClaimsApplied",
    "PermissionClaimsValid",
];

/// Stands for what a binding has taken, or what an export offers. Equal ones mean the same.
pub type Fingerprint = u64;

/// Group, plural name, name and UID of a schema.
pub(crate) type Taken<'a> = (&'a str, &'a str, &'a str, &'a str);

/// What a binding to an export has taken, under the export's identity.
pub(crate) fn fingerprint(
    cluster: &str,
    export: &str,
    identity: &str,
    mut taken: Vec<Taken<'_>>,
) -> Fingerprint {
    taken.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (cluster, export, identity, taken).hash(&mut hasher);
    hasher.finish()
}

/// Whether a binding of which these conditions hold has no complaint.
pub(crate) fn is_without_complaint(holds: impl Fn(&str) -> bool) -> bool {
    GOOD.iter().all(|kind| holds(kind))
}

/// What an export offers; nothing if it is not complete, or claims something.
pub fn offered(
    export: &ApiExport,
    schema: &dyn Fn(&str) -> Option<Arc<ApiResourceSchema>>,
) -> Option<Fingerprint> {
    if !export.claims.is_empty() || export.identity_hash.is_empty() {
        return None;
    }
    let schemas: Option<Vec<Arc<ApiResourceSchema>>> = export
        .resources
        .iter()
        .map(|resource| schema(&resource.schema).filter(|it| it.versions <= 1 || it.has_conversion))
        .collect();
    let schemas = schemas?;
    let offered = schemas.iter().map(|it| {
        (
            it.group.as_str(),
            it.names.plural.as_str(),
            it.meta.name.as_str(),
            it.meta.uid.as_str(),
        )
    });
    let cluster = export.meta.cluster()?;
    Some(fingerprint(
        cluster.as_str(),
        &export.meta.name,
        &export.identity_hash,
        offered.collect(),
    ))
}

#[cfg(test)]
mod tests;
