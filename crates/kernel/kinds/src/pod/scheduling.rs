//! Where pods may run: node selectors, affinity, tolerations, spreading.

use std::collections::HashSet;

use fairway_kernel_schema::field::FieldError;
use serde_json::Value;

use crate::at::{At, Errors, QUANTITY_NOT_POSITIVE};
use crate::read::{filled, has, int, list, part, text, texts};
use crate::{read, selector, validation};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with the wishes of something else that is placed as pods are. `path` is where they stand.
pub fn placement_faults(path: &str, affinity_of: Option<&Value>, spread: Option<&Value>) -> Vec<FieldError> {
    let (mut errs, at) = (Errors::new(), At::new(path));
    if let Some(wishes) = affinity_of {
        affinity(&mut errs, &at, wishes);
    }
    if let Some(constraints) = spread.and_then(Value::as_array) {
        topology_spread(&mut errs, &at.field("topologySpreadConstraints"), constraints);
    }
    errs.into_vec()
}

/// A node selector: at least one term.
pub(crate) fn node_selector(errs: &mut Errors, at: &At<'_>, node_selector: &Value) {
    let at = at.field("nodeSelectorTerms");
    let terms = list(node_selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errs.required(&at, "must have at least one node selector term");
    }
    for (i, term) in terms.iter().enumerate() {
        node_selector_term(errs, &at.index(i), term, true);
    }
}

fn node_selector_term(errs: &mut Errors, at: &At<'_>, term: &Value, check_values: bool) {
    let expressions = at.field("matchExpressions");
    for (i, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let at = expressions.index(i);
        let values = list(requirement, "values");
        let values_at = at.field("values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errs.required(&values_at, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => errs.forbidden(
                &values_at,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "Gt" | "Lt" if values.len() != 1 => {
                errs.required(
                    &values_at,
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errs.invalid(&at.field("operator"), other, "not a valid selector operator"),
        }
        selector::validate_label_name(errs, &at.field("key"), text(requirement, "key"));
        if check_values {
            for (i, value) in texts(requirement, "values").enumerate() {
                errs.all_invalid(&values_at.index(i), value, validation::is_label_value(value));
            }
        }
    }
    let fields = at.field("matchFields");
    for (i, requirement) in list(term, "matchFields").iter().enumerate() {
        let at = fields.index(i);
        match text(requirement, "operator") {
            "In" | "NotIn" if list(requirement, "values").len() != 1 => errs.required(
                &at.field("values"),
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            ),
            "In" | "NotIn" => {}
            other => errs.invalid(&at.field("operator"), other, "not a valid selector operator"),
        }
        let key = text(requirement, "key");
        if key != "metadata.name" {
            errs.invalid(&at.field("key"), key, "not a valid field selector key");
        }
    }
}

pub(super) fn affinity(errs: &mut Errors, at: &At<'_>, affinity: &Value) {
    let node = part(affinity, "nodeAffinity");
    let node_at = at.field("nodeAffinity");
    if has(node, REQUIRED) {
        node_selector(errs, &node_at.field(REQUIRED), part(node, REQUIRED));
    }
    let preferred_at = node_at.field(PREFERRED);
    for (i, term) in list(node, PREFERRED).iter().enumerate() {
        let at = preferred_at.index(i);
        weight(errs, &at, term);
        node_selector_term(errs, &at.field("preference"), part(term, "preference"), false);
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let pods = part(affinity, key);
        let at = at.field(key);
        let required_at = at.field(REQUIRED);
        for (i, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_affinity_term(errs, &required_at.index(i), term);
        }
        let preferred_at = at.field(PREFERRED);
        for (i, term) in list(pods, PREFERRED).iter().enumerate() {
            let at = preferred_at.index(i);
            weight(errs, &at, term);
            pod_affinity_term(errs, &at.field("podAffinityTerm"), part(term, "podAffinityTerm"));
        }
    }
}

fn weight(errs: &mut Errors, at: &At<'_>, term: &Value) {
    let weight = int(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errs.invalid(&at.field("weight"), weight, "must be in the range 1-100");
    }
}

fn pod_affinity_term(errs: &mut Errors, at: &At<'_>, term: &Value) {
    for key in ["labelSelector", "namespaceSelector"] {
        selector::validate(errs, &at.field(key), part(term, key));
    }
    for name in texts(term, "namespaces") {
        errs.all_invalid(&at.field("namespace"), name, validation::is_dns1123_label(name));
    }
    for key in ["matchLabelKeys", "mismatchLabelKeys"] {
        let at = at.field(key);
        if filled(term, key) && !has(term, "labelSelector") {
            errs.forbidden(&at, "must not be specified when labelSelector is not set");
            continue;
        }
        for (i, label) in texts(term, key).enumerate() {
            selector::validate_label_name(errs, &at.index(i), label);
            if key == "matchLabelKeys" && texts(term, "mismatchLabelKeys").any(|other| other == label) {
                errs.invalid(
                    &at.index(i),
                    label,
                    "exists in both matchLabelKeys and mismatchLabelKeys",
                );
            }
        }
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errs.required(&at.field("topologyKey"), "can not be empty");
    }
    selector::validate_label_name(errs, &at.field("topologyKey"), key);
}

/// The effect of a taint.
pub(crate) fn taint_effect(errs: &mut Errors, at: &At<'_>, effect: &str) {
    errs.required_one_of(at, effect, EFFECTS);
}

/// Tolerations, also those of a RuntimeClass.
pub(crate) fn tolerations(errs: &mut Errors, at: &At<'_>, tolerations: &[Value]) {
    for (i, toleration) in tolerations.iter().enumerate() {
        let at = at.index(i);
        let operator_at = at.field("operator");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if key.is_empty() {
            if operator != "Exists" {
                errs.invalid(
                    &operator_at,
                    operator,
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                );
            }
        } else {
            selector::validate_label_name(errs, &at.field("key"), key);
        }
        if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            errs.invalid(
                &at.field("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        match operator {
            "" | "Equal" => {
                let faults = validation::is_label_value(value);
                if !faults.is_empty() {
                    errs.invalid(&operator_at, value, faults.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errs.invalid(
                        &operator_at,
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    );
                }
            }
            "Lt" | "Gt" => {
                errs.not_supported(&operator_at, operator, &["Equal", "Exists", "Lt", "Gt"]);
            }
            other => errs.not_supported(&operator_at, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            taint_effect(errs, &at.field("effect"), effect);
        }
    }
}

pub(super) fn topology_spread(errs: &mut Errors, at: &At<'_>, constraints: &[Value]) {
    for (i, constraint) in constraints.iter().enumerate() {
        let at = at.index(i);
        let skew = int(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errs.invalid(&at.field("maxSkew"), skew, QUANTITY_NOT_POSITIVE);
        }
        let (key, action) = (
            text(constraint, "topologyKey"),
            text(constraint, "whenUnsatisfiable"),
        );
        if key.is_empty() {
            errs.required(&at.field("topologyKey"), "can not be empty");
        }
        errs.one_of(
            &at.field("whenUnsatisfiable"),
            action,
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        let repeats =
            |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if constraints[i + 1..].iter().any(repeats) {
            errs.duplicate(
                &at.field("{topologyKey, whenUnsatisfiable}"),
                format!("{{{key}, {action}}}"),
            );
        }
        if let Some(domains) = int(constraint, "minDomains") {
            let at = at.field("minDomains");
            if domains <= 0 {
                errs.invalid(&at, domains, QUANTITY_NOT_POSITIVE);
            }
            if action != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errs.invalid(&at, domains, detail);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if has(constraint, key) {
                errs.one_of(&at.field(key), text(constraint, key), &["Honor", "Ignore"]);
            }
        }
        if read::filled(constraint, "matchLabelKeys") && !has(constraint, "labelSelector") {
            errs.forbidden(
                &at.field("matchLabelKeys"),
                "must not be specified when labelSelector is not set",
            );
        }
        selector::validate(
            errs,
            &at.field("labelSelector"),
            part(constraint, "labelSelector"),
        );
    }
}

/// Tolerations may be added, or change their seconds; none may go.
pub(super) fn only_added_tolerations(errs: &mut Errors, at: &At<'_>, new: &Value, old: &Value) {
    let without_seconds = |toleration: &Value| {
        let mut copy = toleration.clone();
        read::unset(&mut copy, "tolerationSeconds");
        copy
    };
    let kept: Vec<Value> = list(new, "tolerations").iter().map(without_seconds).collect();
    if list(old, "tolerations")
        .iter()
        .any(|t| !kept.contains(&without_seconds(t)))
    {
        errs.forbidden(
            at,
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
}

/// Gates may only open.
pub(super) fn only_deleted_gates(errs: &mut Errors, at: &At<'_>, new: &Value, old: &Value) {
    let before: HashSet<&str> = list(old, "schedulingGates")
        .iter()
        .map(|g| text(g, "name"))
        .collect();
    for (i, gate) in list(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !before.contains(name) {
            let at = at.index(i);
            errs.forbidden(
                &at.field("name"),
                format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            );
        }
    }
}
