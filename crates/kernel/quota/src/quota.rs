//! A ResourceQuota as the decisions see it.

use fairway_kernel_kinds::read::{list, part, text, texts};
use serde_json::Value;

use crate::Amounts;
use crate::scope::Scope;

/// A quota: to whom it applies, what it allows, what is used.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// All of these must match, or the quota does not apply to an object.
    pub(crate) scopes: Vec<Scope>,
    /// What its author wants (`spec.hard`).
    pub wanted: Amounts,
    /// What is enforced (`status.hard`): what the controller has taken over from `spec`.
    pub hard: Amounts,
    /// What is used (`status.used`).
    pub used: Amounts,
}

impl Quota {
    /// Reads a ResourceQuota.
    pub fn from_object(object: &Value) -> Self {
        let (spec, status) = (part(object, "spec"), part(object, "status"));
        let plain = texts(spec, "scopes").map(Scope::exists);
        let selected = list(part(spec, "scopeSelector"), "matchExpressions")
            .iter()
            .map(Scope::from_requirement);
        Self {
            name: text(part(object, "metadata"), "name").to_owned(),
            scopes: plain.chain(selected).collect(),
            wanted: Amounts::read(spec, "hard"),
            hard: Amounts::read(status, "hard"),
            used: Amounts::read(status, "used"),
        }
    }
}
