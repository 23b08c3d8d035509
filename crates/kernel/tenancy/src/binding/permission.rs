//! What a binding's status says of permission claims: which were asked for, which apply, and what does not fit.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Observed, claim_value};
use crate::claims::{Answer, Claim};
use crate::conditions::{Conditions, Severity};

/// How many faults a message names.
const SHOWN: usize = 10;
const SHOWN_MISMATCHES: usize = 5;

/// The parts of the status about claims. An export that is not there leaves what was said before.
pub(super) fn apply(observed: &Observed<'_>, conditions: &mut Conditions) -> Map<String, Value> {
    let mut status = Map::new();
    let Some(export) = observed.export else {
        for field in ["exportPermissionClaims", "appliedPermissionClaims"] {
            if let Some(value) = observed.binding.status.get(field) {
                status.insert(field.to_owned(), value.clone());
            }
        }
        return status;
    };
    if !export.claims.is_empty() {
        let claims: Vec<Value> = export.claims.iter().map(claim_value).collect();
        status.insert("exportPermissionClaims".to_owned(), Value::Array(claims));
    }
    let accepted = |answer: &&Answer| answer.is_accepted();
    let asked = |answer: &Answer| {
        export
            .claims
            .iter()
            .find(|claim| claim.key() == answer.claim.key())
    };
    let answers = &observed.binding.answers;

    let applied: Vec<Value> = answers
        .iter()
        .zip(&observed.binding.raw_answers)
        .filter(|(answer, _)| answer.is_accepted() && asked(answer).is_some())
        .map(|(_, raw)| {
            let mut raw = raw.as_object().cloned().unwrap_or_default();
            raw.shift_remove("state");
            Value::Object(raw)
        })
        .collect();
    if !applied.is_empty() {
        status.insert("appliedPermissionClaims".to_owned(), Value::Array(applied));
    }

    let unexpected: Vec<String> = answers
        .iter()
        .filter(accepted)
        .filter(|answer| asked(answer).is_none())
        .map(|answer| {
            let (group, resource, identity) = answer.claim.key();
            format!("unexpected/invalid claim for {resource}.{group} (identity {identity:?})")
        })
        .collect();
    let mismatched: Vec<String> = answers
        .iter()
        .filter(accepted)
        .filter_map(|answer| mismatch(answer, asked(answer)?))
        .collect();
    if !unexpected.is_empty() {
        let shown = &unexpected[..unexpected.len().min(SHOWN)];
        let list = match shown {
            [one] => one.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        let message = format!(
            "{} unexpected and/or invalid permission claims (showing first {}): {list}",
            unexpected.len(),
            shown.len()
        );
        conditions.mark_false(
            "PermissionClaimsValid",
            "InvalidPermissionClaims",
            Severity::Error,
            &message,
            observed.now,
        );
    } else if !mismatched.is_empty() {
        let shown = &mismatched[..mismatched.len().min(SHOWN_MISMATCHES)];
        let message = format!(
            "{} permission claim(s) have mismatched verbs or selectors (showing first {}): {}",
            mismatched.len(),
            shown.len(),
            shown.join(", ")
        );
        conditions.mark_false(
            "PermissionClaimsValid",
            "PermissionClaimsMismatch",
            Severity::Warning,
            &message,
            observed.now,
        );
    } else {
        conditions.mark_true("PermissionClaimsValid", observed.now);
    }
    // Access is decided from the binding itself, so what is accepted applies at once.
    conditions.mark_true("PermissionClaimsApplied", observed.now);
    status
}

/// Where an accepted claim grants something else than was asked for.
fn mismatch(answer: &Answer, claim: &Claim) -> Option<String> {
    let set = |verbs: &[String]| verbs.iter().cloned().collect::<BTreeSet<_>>();
    let (granted, wanted) = (set(&answer.claim.verbs), set(&claim.verbs));
    let mut parts = Vec::new();
    if granted != wanted && !granted.contains("*") && !wanted.contains("*") {
        parts.push(format!(
            "verbs: accepted [{}], exported [{}]",
            answer.claim.verbs.join(" "),
            claim.verbs.join(" ")
        ));
    }
    if claim
        .default_selector
        .as_ref()
        .is_some_and(|selector| normal(selector) != normal(&answer.selector))
    {
        parts.push("selector differs from defaultSelector".to_owned());
    }
    let (group, resource, _) = claim.key();
    (!parts.is_empty()).then(|| format!("{resource}.{group} ({})", parts.join("; ")))
}

/// A selector without what says nothing.
fn normal(selector: &Value) -> Value {
    let mut selector = selector.as_object().cloned().unwrap_or_default();
    selector.retain(|_, value| {
        *value != json!(false) && *value != json!({}) && *value != json!([]) && !value.is_null()
    });
    Value::Object(selector)
}
