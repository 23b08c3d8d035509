//! The status of a Job: its end is told in steps, and never taken back.

use serde_json::Value;

use crate::at::{At, Errors};
use crate::read::{self, flag, has, int, list, part, text};

fn is_true(status: &Value, kind: &str) -> bool {
    list(status, "conditions")
        .iter()
        .any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

pub(super) fn validate(errs: &mut Errors, obj: &Value, old: &Value) {
    let (status, before, spec) = (part(obj, "status"), part(old, "status"), part(obj, "spec"));
    let at = At::new("status");
    errs.none_negative(
        &at,
        status,
        &["active", "succeeded", "failed", "ready", "terminating"],
    );
    let conditions = at.field("conditions");
    let (complete, failed) = (is_true(status, "Complete"), is_true(status, "Failed"));
    let (target, met) = (
        is_true(status, "FailureTarget"),
        is_true(status, "SuccessCriteriaMet"),
    );
    let finished = complete || failed;
    for (wrong, detail) in [
        (
            complete && failed,
            "cannot set Complete=True and Failed=true conditions",
        ),
        (
            complete && target,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            failed && !target,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            complete && !met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (
            met && failed,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        ),
        (
            met && target,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
    ] {
        if wrong {
            errs.invalid_unshown(&conditions, detail);
        }
    }
    let completion_at = at.field("completionTime");
    let (started, completed) = (text(status, "startTime"), text(status, "completionTime"));
    if !completed.is_empty() && !complete {
        errs.invalid(
            &completion_at,
            completed,
            "cannot set completionTime when there is no Complete=True condition",
        );
    }
    if completed.is_empty() && complete {
        errs.required(&completion_at, "completionTime is required for Complete jobs");
    }
    if !completed.is_empty() && !started.is_empty() && completed < started {
        errs.invalid(&completion_at, completed, "must be equal to or after `startTime`");
    }
    let count = |key: &str| int(status, key).unwrap_or(0);
    if finished {
        for key in ["active", "terminating"] {
            if count(key) > 0 {
                errs.invalid(
                    &at.field(key),
                    count(key),
                    format!("{key}>0 is invalid for finished job"),
                );
            }
        }
        if started.is_empty() {
            errs.required(&at.field("startTime"), "startTime is required for finished job");
        }
        let uncounted = part(status, "uncountedTerminatedPods");
        if read::filled(uncounted, "failed") || read::filled(uncounted, "succeeded") {
            errs.invalid(
                &at.field("uncountedTerminatedPods"),
                uncounted.clone(),
                "must be empty for finished job",
            );
        }
    }
    if count("ready") > count("active") {
        errs.invalid(
            &at.field("ready"),
            count("ready"),
            "cannot set more ready pods than active",
        );
    }
    if text(spec, "completionMode") != "Indexed" && !text(status, "completedIndexes").is_empty() {
        errs.invalid(
            &at.field("completedIndexes"),
            text(status, "completedIndexes"),
            "cannot set non-empty completedIndexes when non-indexed completion mode",
        );
    }
    if !has(spec, "backoffLimitPerIndex") && has(status, "failedIndexes") {
        errs.invalid(
            &at.field("failedIndexes"),
            text(status, "failedIndexes"),
            "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
        );
    }
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if is_true(before, kind) && !is_true(status, kind) {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            errs.invalid_unshown(&conditions, detail);
        }
    }
    for key in ["failed", "succeeded"] {
        if count(key) < int(before, key).unwrap_or(0) {
            errs.invalid(
                &at.field(key),
                count(key),
                format!("cannot decrease the {key} counter"),
            );
        }
    }
    let old_completed = text(before, "completionTime");
    if !completed.is_empty() && !old_completed.is_empty() && completed != old_completed {
        errs.invalid(&completion_at, completed, "field is immutable");
    }
    let old_started = text(before, "startTime");
    if !old_started.is_empty() && old_started != started && !flag(spec, "suspend") {
        errs.invalid(
            &at.field("startTime"),
            started,
            "field is immutable for unsuspended job once set",
        );
    }
}
