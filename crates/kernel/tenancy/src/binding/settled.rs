//! Whether a binding has what its export offers, told without looking at anything else of its workspace.
//!
//! There are thousands of bindings and few exports. When an export changes or a server starts, every binding is asked
//! for; those that have taken exactly what is offered, and have no complaint, need not be looked at any further.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::ApiBinding;
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
/// What a status says about claims, if there are any.
const CLAIMS: [&str; 2] = ["appliedPermissionClaims", "exportPermissionClaims"];

/// Stands for what a binding has taken, or what an export offers. Equal ones mean the same.
pub type Fingerprint = u64;

/// Group, plural name, name and UID of a schema.
type Taken<'a> = (&'a str, &'a str, &'a str, &'a str);

fn fingerprint(cluster: &str, export: &str, identity: &str, mut taken: Vec<Taken<'_>>) -> Fingerprint {
    taken.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (cluster, export, identity, taken).hash(&mut hasher);
    hasher.finish()
}

impl ApiBinding {
    /// What it has taken; nothing if it is not complete, complains, goes, or is about claims, which need a closer look.
    pub fn taken(&self) -> Option<Fingerprint> {
        let without_claims = self.answers.is_empty()
            && CLAIMS.iter().all(|field| {
                let claims = self.status.get(*field).and_then(serde_json::Value::as_array);
                claims.is_none_or(Vec::is_empty)
            });
        let good = GOOD.iter().all(|kind| self.conditions.is_true(kind));
        if !good || !without_claims || self.phase != "Bound" || self.meta.is_deleting() {
            return None;
        }
        let (cluster, export) = self.export()?;
        let identity = &self.bound.first()?.schema.identity_hash;
        let taken = self.bound.iter().map(|it| {
            let same = it.schema.identity_hash == *identity;
            same.then_some((
                it.group.as_str(),
                it.resource.as_str(),
                it.schema.name.as_str(),
                it.schema.uid.as_str(),
            ))
        });
        let taken: Option<Vec<Taken<'_>>> = taken.collect();
        Some(fingerprint(cluster.as_str(), export, identity, taken?))
    }
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
