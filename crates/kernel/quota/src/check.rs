//! Whether a write fits into the quotas of its namespace, and what they are to be charged.

use serde_json::Value;

use crate::{Amounts, Evaluator, Quota};

/// What is being done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It does not exist yet.
    Create,
    /// It is changed.
    Update,
}

/// A write.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is done.
    pub operation: Operation,
    /// API group of the object.
    pub group: &'a str,
    /// Plural of its kind.
    pub resource: &'a str,
    /// The subresource that is written, or nothing.
    pub subresource: &'a str,
    /// The object as it would be.
    pub object: &'a Value,
    /// The object as it is.
    pub old: Option<&'a Value>,
    /// The time, RFC 3339.
    pub now: &'a str,
}

/// A quota whose use changes with the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Which of the quotas.
    pub index: usize,
    /// What will be used (`status.used`).
    pub used: Amounts,
}

/// Decides on a write: what to charge, or the reason why it does not fit.
pub fn check(quotas: &[&Quota], request: &Request<'_>) -> Result<Vec<Charge>, String> {
    let Some(evaluator) = Evaluator::of(request.group, request.resource) else {
        return Ok(Vec::new());
    };
    if !evaluator.handles(
        request.operation,
        request.subresource,
        request.object,
        request.old,
    ) {
        return Ok(Vec::new());
    }
    let mut concerned = Vec::new();
    for (index, quota) in quotas.iter().enumerate() {
        if concerns(&evaluator, quota, request.object)? {
            concerned.push(index);
        }
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let usage = evaluator.usage(request.object, request.now);
    let negative: Vec<&str> = usage
        .iter()
        .filter(|(_, amount)| amount.sign() < 0)
        .map(|(name, _)| name)
        .collect();
    if !negative.is_empty() {
        return Err(format!(
            "quota usage is negative for resource(s): {}",
            negative.join(",")
        ));
    }
    let growth = request
        .old
        .filter(|_| request.operation == Operation::Update)
        .map(|old| (old, usage.above(&evaluator.usage(old, request.now))));
    let mut charges = Vec::new();
    for index in concerned {
        let quota = quotas[index];
        let more = match &growth {
            // A quota that did not apply to the object before is charged all of it.
            Some((old, growth)) if applies(&evaluator, quota, old) => growth.clone(),
            _ => usage.without_zeros(),
        };
        let more = more.filtered(|name, _| quota.hard.has(name));
        if more.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        used.add_all(&more);
        // A status tells what is the case; refusing it would not undo that.
        if request.subresource != "status" {
            refuse_excess(quota, &more, &used)?;
        }
        charges.push(Charge { index, used });
    }
    Ok(charges)
}

/// Whether a quota limits something that such objects use, and its scopes hold for this one.
fn applies(evaluator: &Evaluator, quota: &Quota, object: &Value) -> bool {
    quota.hard.names().any(|name| evaluator.measures(name)) && evaluator.in_scopes(quota, object)
}

/// Whether a quota applies; an object that does not say enough to be measured is refused, and so is one that comes before
/// the quota has been counted.
fn concerns(evaluator: &Evaluator, quota: &Quota, object: &Value) -> Result<bool, String> {
    if !applies(evaluator, quota, object) {
        return Ok(false);
    }
    let limited: Vec<&str> = quota
        .hard
        .names()
        .filter(|name| evaluator.measures(name))
        .collect();
    if let Some(missing) = evaluator.missing(&limited, object) {
        return Err(format!("failed quota: {}: {missing}", quota.name));
    }
    if limited.iter().any(|name| !quota.used.has(name)) {
        return Err(format!(
            "status unknown for quota: {}, resources: {}",
            quota.name,
            limited.join(",")
        ));
    }
    Ok(true)
}

fn refuse_excess(quota: &Quota, more: &Amounts, used: &Amounts) -> Result<(), String> {
    let exceeded = |name: &str| {
        more.has(name)
            && match (used.get(name), quota.hard.get(name)) {
                (Some(used), Some(hard)) => used > hard,
                _ => false,
            }
    };
    let only = |amounts: &Amounts| amounts.filtered(|name, _| exceeded(name)).sentence();
    let requested = only(more);
    if requested.is_empty() {
        return Ok(());
    }
    Err(format!(
        "exceeded quota: {}, requested: {requested}, used: {}, limited: {}",
        quota.name,
        only(&quota.used),
        only(&quota.hard)
    ))
}
