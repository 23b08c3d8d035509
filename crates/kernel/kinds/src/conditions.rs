//! Conditions as newer kinds have them: a type once, a status of three, a reason and a message with limits.

use std::collections::HashSet;

use serde_json::Value;

use crate::at::{At, Errors};
use crate::read::{int, list, text};
use crate::selector;

const REASON_MAX: usize = 1024;
const MESSAGE_MAX: usize = 32 * 1024;

/// The conditions of a status.
pub(crate) fn validate(errs: &mut Errors, at: &At<'_>, status: &Value) {
    let at = at.field("conditions");
    let mut seen = HashSet::new();
    for (i, condition) in list(status, "conditions").iter().enumerate() {
        let at = at.index(i);
        let kind = text(condition, "type");
        if !seen.insert(kind) {
            errs.duplicate(&at.field("type"), kind);
        }
        selector::validate_label_name(errs, &at.field("type"), kind);
        errs.one_of(
            &at.field("status"),
            text(condition, "status"),
            &["False", "True", "Unknown"],
        );
        if let Some(generation) = int(condition, "observedGeneration").filter(|g| *g < 0) {
            errs.invalid(
                &at.field("observedGeneration"),
                generation,
                "must be greater than or equal to zero",
            );
        }
        if text(condition, "lastTransitionTime").is_empty() {
            errs.required(&at.field("lastTransitionTime"), "must be set");
        }
        let reason = text(condition, "reason");
        if reason.is_empty() {
            errs.required(&at.field("reason"), "must be set");
        } else if reason.len() > REASON_MAX {
            errs.too_long(&at.field("reason"), REASON_MAX);
        }
        if text(condition, "message").len() > MESSAGE_MAX {
            errs.too_long(&at.field("message"), MESSAGE_MAX);
        }
    }
}
