//! What Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers share: selectors, rolling
//! updates, and counters in their status.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::pod::validate;
use crate::read::{has, int, part, text};
use crate::{selector, validation};

/// A label selector that is required, selects something, and selects the template's pods.
pub(crate) fn validate_selector_and_template(
    errs: &mut Errors,
    spec: &Value,
    kind: &str,
    deadline_kind: &str,
) {
    let at = At::new("spec");
    let selector_at = at.field("selector");
    let label_selector = part(spec, "selector");
    if label_selector.is_null() {
        errs.required(&selector_at, "");
    } else {
        selector::validate(errs, &selector_at, label_selector);
        if selector::is_empty(label_selector) {
            errs.invalid(
                &selector_at,
                label_selector.clone(),
                format!("empty selector is invalid for {kind}"),
            );
        }
    }
    let template = part(spec, "template");
    let template_at = at.field("template");
    if !selector::is_usable(label_selector) {
        errs.invalid(&selector_at, label_selector.clone(), "invalid label selector");
        return;
    }
    if label_selector.is_null() || !selector::is_empty(label_selector) {
        validate::selector_matches(errs, &template_at, label_selector, template);
    }
    validate::template(errs, &template_at, template);
    validate::long_running(errs, &template_at, template, deadline_kind);
}

/// A number or a percentage, neither negative.
pub(crate) fn int_or_percent(errs: &mut Errors, at: &At<'_>, value: &Value) {
    match value {
        Value::String(percent) => errs.all_invalid(at, percent, validation::is_valid_percent(percent)),
        other => errs.non_negative(at, other.as_i64().unwrap_or(0)),
    }
}

/// The number in a number or percentage.
fn amount(value: &Value) -> i64 {
    match value {
        Value::String(percent) => percent.trim_end_matches('%').parse().unwrap_or(0),
        other => other.as_i64().unwrap_or(0),
    }
}

/// At most all of them.
pub(crate) fn not_more_than_all(errs: &mut Errors, at: &At<'_>, value: &Value) {
    if value.is_string() && amount(value) > 100 {
        errs.invalid(at, value.clone(), "must not be greater than 100%");
    }
}

/// `maxUnavailable` and `maxSurge` of a Deployment: not both nothing.
pub(crate) fn rolling_update_deployment(errs: &mut Errors, at: &At<'_>, rolling: &Value) {
    let (unavailable, surge) = (part(rolling, "maxUnavailable"), part(rolling, "maxSurge"));
    let at_unavailable = at.field("maxUnavailable");
    int_or_percent(errs, &at_unavailable, unavailable);
    int_or_percent(errs, &at.field("maxSurge"), surge);
    if amount(unavailable) == 0 && amount(surge) == 0 {
        errs.invalid(
            &at_unavailable,
            unavailable.clone(),
            "may not be 0 when `maxSurge` is 0",
        );
    }
    not_more_than_all(errs, &at_unavailable, unavailable);
}

/// `maxUnavailable` and `maxSurge` of a DaemonSet: exactly one of them.
pub(crate) fn rolling_update_daemon_set(errs: &mut Errors, at: &At<'_>, rolling: &Value) {
    let (unavailable, surge) = (part(rolling, "maxUnavailable"), part(rolling, "maxSurge"));
    int_or_percent(errs, &at.field("maxUnavailable"), unavailable);
    int_or_percent(errs, &at.field("maxSurge"), surge);
    let (has_unavailable, has_surge) = (amount(unavailable) != 0, amount(surge) != 0);
    let unavailable_at = at.field("maxUnavailable");
    if has_surge && has_unavailable {
        errs.invalid(
            &at.field("maxSurge"),
            surge.clone(),
            "may not be set when maxUnavailable is non-zero",
        );
    } else if !has_surge && !has_unavailable {
        errs.required(&unavailable_at, "cannot be 0 when maxSurge is 0");
    }
    not_more_than_all(errs, &unavailable_at, unavailable);
    not_more_than_all(errs, &at.field("maxSurge"), surge);
}

/// Counters that cannot be negative, nor exceed `status.replicas` where they are parts of it.
pub(crate) fn validate_counters(errs: &mut Errors, status: &Value, parts: &[&str], ready_name: &str) {
    let at = At::new("status");
    errs.none_negative(
        &at,
        status,
        &[
            "replicas",
            "observedGeneration",
            "collisionCount",
            "terminatingReplicas",
        ],
    );
    errs.none_negative(&at, status, parts);
    let count = |key: &str| int(status, key).unwrap_or(0);
    for key in parts.iter().filter(|k| **k != "unavailableReplicas") {
        if count(key) > count("replicas") {
            errs.invalid(
                &at.field(key),
                count(key),
                "cannot be greater than status.replicas",
            );
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        errs.invalid(
            &at.field("availableReplicas"),
            count("availableReplicas"),
            format!("cannot be greater than {ready_name}"),
        );
    }
}

/// Collisions are only ever counted up.
pub(crate) fn validate_collisions(errs: &mut Errors, obj: &Value, old: &Value) {
    let count = |obj: &Value| int(part(obj, "status"), "collisionCount");
    let (now, before) = (count(obj), count(old));
    if before.is_some_and(|before| now.unwrap_or(0) < before || now.is_none()) {
        errs.invalid(
            &At::new("status.collisionCount"),
            now.unwrap_or(0),
            "cannot be decremented",
        );
    }
}

/// A deadline that must lie beyond `minReadySeconds`.
pub(crate) fn validate_progress_deadline(errs: &mut Errors, spec: &Value) {
    let at = At::new("spec.progressDeadlineSeconds");
    if has(spec, "progressDeadlineSeconds") {
        let deadline = int(spec, "progressDeadlineSeconds").unwrap_or(0);
        errs.non_negative(&at, deadline);
        if deadline <= int(spec, "minReadySeconds").unwrap_or(0) {
            errs.invalid(&at, deadline, "must be greater than minReadySeconds");
        }
    }
}

/// `status.replicas` as a field selector.
pub(crate) fn replicas_field(obj: &Value) -> Vec<(&'static str, String)> {
    vec![(
        "status.replicas",
        int(part(obj, "status"), "replicas").unwrap_or(0).to_string(),
    )]
}

/// The type of an update strategy.
pub(crate) fn strategy_type<'a>(spec: &'a Value, key: &str) -> &'a str {
    text(part(spec, key), "type")
}
