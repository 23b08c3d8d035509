//! When a Job counts a pod's failure, and when it calls itself successful.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::read::{filled, has, int, list, part, text};
use crate::validation;

const RULES_MAX: usize = 20;
const PATTERNS_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const INDEXES_BYTES_MAX: usize = 64 * 1024;
const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];

pub(super) fn validate(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let failure = part(spec, "podFailurePolicy");
    let failing = !failure.is_null();
    if failing {
        let at = at.field("podFailurePolicy");
        let at = at.field("rules");
        let rules = list(failure, "rules");
        if rules.len() > RULES_MAX {
            errs.too_many(&at, rules.len(), RULES_MAX);
        }
        for (i, rule) in rules.iter().enumerate() {
            validate_rule(errs, &at.index(i), rule, spec);
        }
    }
    if has(spec, "podReplacementPolicy") {
        let supported: &[&str] = if failing {
            &["Failed"]
        } else {
            &["Failed", "TerminatingOrFailed"]
        };
        errs.one_of(
            &at.field("podReplacementPolicy"),
            text(spec, "podReplacementPolicy"),
            supported,
        );
    }
    let success = part(spec, "successPolicy");
    if !success.is_null() && text(spec, "completionMode") == "Indexed" {
        let at = at.field("successPolicy");
        let at = at.field("rules");
        let rules = list(success, "rules");
        if rules.is_empty() {
            errs.required(
                &at,
                "at least one rules must be specified when the successPolicy is specified",
            );
        }
        if rules.len() > RULES_MAX {
            errs.too_many(&at, rules.len(), RULES_MAX);
        }
        for (i, rule) in rules.iter().enumerate() {
            let at = at.index(i);
            if !has(rule, "succeededCount") && !has(rule, "succeededIndexes") {
                errs.required(
                    &at,
                    "at least one of succeededCount or succeededIndexes must be specified",
                );
            }
            let most = int(spec, "completions").unwrap_or(i64::MAX);
            let named = validate_indexes(errs, &at.field("succeededIndexes"), rule, most);
            let count = int(rule, "succeededCount").unwrap_or(0);
            errs.non_negative(&at.field("succeededCount"), count);
            if let Some(named) = named.filter(|named| count > *named) {
                errs.invalid(
                    &at.field("succeededCount"),
                    count,
                    format!("must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"),
                );
            }
            if count > most {
                errs.invalid(
                    &at.field("succeededCount"),
                    count,
                    format!("must be less than or equal to {most} (the number of specified completions)"),
                );
            }
        }
    }
}

/// How many indexes a rule names; none if it names them not at all.
fn validate_indexes(errs: &mut Errors, at: &At<'_>, rule: &Value, completions: i64) -> Option<i64> {
    let indexes = rule.get("succeededIndexes").and_then(Value::as_str)?;
    if indexes.len() > INDEXES_BYTES_MAX {
        errs.too_long(at, INDEXES_BYTES_MAX);
    }
    Some(count_indexes(indexes, completions).unwrap_or_else(|why| {
        errs.invalid(at, indexes, format!("error parsing succeededIndexes: {why}"));
        0
    }))
}

/// Indexes as `1,3-5`, in rising order and below the number of completions.
fn count_indexes(indexes: &str, completions: i64) -> Result<i64, String> {
    let falling = |before: i64, now: i64| format!("non-increasing order, previous: {before}, current: {now}");
    let (mut last, mut count) = (None, 0);
    for interval in indexes.split(',').filter(|_| !indexes.is_empty()) {
        let limits: Vec<&str> = interval.split('-').collect();
        if limits.len() > 2 {
            return Err(format!(
                "the fragment {interval:?} violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        let mut ends = Vec::new();
        for limit in limits {
            let index: i64 = limit
                .parse()
                .map_err(|_| format!("cannot convert string to integer for index: {limit:?}"))?;
            if index >= completions {
                return Err(format!("too large index: {limit:?}"));
            }
            ends.push(index);
        }
        let (first, end) = (ends[0], ends[ends.len() - 1]);
        if ends.len() == 2 && first >= end {
            return Err(falling(first, end));
        }
        if let Some(before) = last.filter(|before| *before >= first) {
            return Err(falling(before, first));
        }
        count += end - first + 1;
        last = Some(end);
    }
    Ok(count)
}

fn validate_rule(errs: &mut Errors, at: &At<'_>, rule: &Value, spec: &Value) {
    let action_at = at.field("action");
    match text(rule, "action") {
        "" => errs.required(
            &action_at,
            format!("valid values: [\"{}\"]", ACTIONS.join("\" \"")),
        ),
        "FailIndex" if !has(spec, "backoffLimitPerIndex") => {
            errs.invalid(
                &action_at,
                "FailIndex",
                "requires the backoffLimitPerIndex to be set",
            );
        }
        action => errs.one_of(&action_at, action, ACTIONS),
    }
    let codes = part(rule, "onExitCodes");
    if !codes.is_null() {
        validate_exit_codes(errs, &at.field("onExitCodes"), codes, spec);
    }
    let patterns = list(rule, "onPodConditions");
    let patterns_at = at.field("onPodConditions");
    if patterns.len() > PATTERNS_MAX {
        errs.too_many(&patterns_at, patterns.len(), PATTERNS_MAX);
    }
    for (i, pattern) in patterns.iter().enumerate() {
        let at = patterns_at.index(i);
        let kind = text(pattern, "type");
        errs.all_invalid(&at.field("type"), kind, validation::is_qualified_name(kind));
        errs.one_of(
            &at.field("status"),
            text(pattern, "status"),
            &["False", "True", "Unknown"],
        );
    }
    match (!codes.is_null(), !patterns.is_empty()) {
        (true, true) => errs.invalid_unshown(
            at,
            "specifying both OnExitCodes and OnPodConditions is not supported",
        ),
        (false, false) => {
            errs.invalid_unshown(
                at,
                "specifying one of OnExitCodes and OnPodConditions is required",
            );
        }
        _ => {}
    }
}

fn validate_exit_codes(errs: &mut Errors, at: &At<'_>, codes: &Value, spec: &Value) {
    let operator = text(codes, "operator");
    errs.required_one_of(&at.field("operator"), operator, &["In", "NotIn"]);
    if let Some(name) = codes.get("containerName").and_then(Value::as_str) {
        let pod = part(part(spec, "template"), "spec");
        let known = ["containers", "initContainers"]
            .iter()
            .any(|key| list(pod, key).iter().any(|c| text(c, "name") == name));
        if !known {
            errs.invalid(
                &at.field("containerName"),
                name,
                "must be one of the container or initContainer names in the pod template",
            );
        }
    }
    let values_at = at.field("values");
    let values = list(codes, "values");
    if !filled(codes, "values") {
        errs.invalid(&values_at, Value::from(values), "at least one value is required");
    } else if values.len() > EXIT_CODES_MAX {
        errs.too_many(&values_at, values.len(), EXIT_CODES_MAX);
    }
    let mut before: Option<i64> = None;
    for (i, value) in values.iter().enumerate() {
        let code = value.as_i64().unwrap_or(0);
        if operator == "In" && code == 0 {
            errs.invalid(&values_at.index(i), code, "must not be 0 for the In operator");
        }
        if before.is_some_and(|b| b == code) {
            errs.duplicate(&values_at.index(i), code);
        } else if before.is_some_and(|b| b > code) {
            errs.invalid(&values_at, Value::from(values), "must be ordered");
        }
        before = Some(code);
    }
}
