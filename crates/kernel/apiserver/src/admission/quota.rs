//! ResourceQuota: a write is charged to the quotas of its namespace in the transaction that stores the object.
//!
//! The transaction compares the revision of every quota that it charges, so two writes can never both take what is left,
//! with one replica or several; and it is one transaction, so a crash leaves both the object and its charge, or
//! neither. Deletions give nothing back here: the controller counts again, which can only lower what is used. It writes
//! against the revision that it has read before it counted, so it cannot overlook an object that was charged meanwhile.

use fairway_kernel_quota::{Charge, Quota, Request, check};
use fairway_kernel_store::value;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::Operation;
use super::limits::{HeldQuota, NamespaceLimits, quotas_prefix};
use crate::object;
use crate::rest::call::{Call, meta};
use crate::status::ApiError;
use crate::storage::Replacement;

/// What a write has to be stored with. Keep it until the write is done: others wait for their turn.
#[derive(Default)]
pub(crate) struct Charged {
    /// The quotas with what will be used.
    pub(crate) replacements: Vec<Replacement>,
    _turn: Option<OwnedMutexGuard<()>>,
}

/// Checks a write against the quotas of its namespace, and prepares their charges.
pub(crate) async fn charge(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Charged, ApiError> {
    let operation = match operation {
        Operation::Create => fairway_kernel_quota::Operation::Create,
        Operation::Update => fairway_kernel_quota::Operation::Update,
        Operation::Delete => return Ok(Charged::default()),
    };
    let find = || call.kernel.limits.of(call.cluster, call.namespace());
    let Some(limits) = find().filter(|limits| !limits.quotas.is_empty()) else {
        return Ok(Charged::default());
    };
    let request = Request {
        operation,
        group: &call.def.group,
        resource: &call.def.resource,
        subresource: call.subresource().unwrap_or(""),
        object,
        old,
        now: &call.now,
    };
    let decide = |limits: &NamespaceLimits| -> Result<Vec<Charge>, ApiError> {
        let quotas: Vec<&Quota> = limits.quotas.values().map(|held| &held.quota).collect();
        check(&quotas, &request).map_err(|why| ApiError::forbidden(call.about(meta(object, "name")), why))
    };
    // Nearly all that need not wait for a turn end here: what is refused, and what changes no quota.
    if decide(&limits)?.is_empty() || dry_run {
        return Ok(Charged::default());
    }
    let turn = std::sync::Arc::clone(&limits.turn).lock_owned().await;
    // Whoever had the turn before has changed what is used.
    let Some(limits) = find() else {
        return Ok(Charged::default());
    };
    let held: Vec<&HeldQuota> = limits.quotas.values().map(AsRef::as_ref).collect();
    let replacements = decide(&limits)?
        .into_iter()
        .filter_map(|charge| Some((held.get(charge.index)?, charge)))
        .map(|(held, charge)| replacement(held, &charge))
        .collect::<Result<_, _>>()?;
    Ok(Charged {
        replacements,
        _turn: Some(turn),
    })
}

/// The quota as it will be stored.
fn replacement(held: &HeldQuota, charge: &Charge) -> Result<Replacement, ApiError> {
    let mut quota = held.object.value()?;
    quota["status"]["used"] = charge.used.to_value();
    Ok(Replacement {
        key: quotas_prefix().object(&held.suffix),
        expected: held.object.revision(),
        value: value::plain(&object::encode(&quota)?),
    })
}
