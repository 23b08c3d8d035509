//! Job and CronJob: generated selectors, a template that never changes, and how a Job fails where nothing runs pods.

use fairway_text_cron::Schedule;
use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::networking::domain_prefixed_path;
use crate::pod::{self, defaults, validate};
use crate::read::{self, flag, has, int, list, part, part_mut, text};
use crate::strategy::{Profile, Strategy, WriteContext, prepare_new};
use crate::{meta, selector, validation};

mod policy;
mod status;

/// `status.conditions[].reason` of a Job that no node can run.
pub const NOTHING_RUNS_PODS: &str = "NoNodeRunsPods";

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const INDEXED_PARALLELISM_MAX: i64 = 100_000;
const INDEXED_FAILURES_MAX: i64 = 100_000;
const MANY_COMPLETIONS: i64 = 100_000;
const MANY_COMPLETIONS_MAX: i64 = 10_000;
const MANAGED_BY_MAX: usize = 63;
/// A CronJob adds eleven characters to name its Jobs.
const CRON_JOB_NAME_MAX: usize = 52;

static PROFILE: Profile = Profile::WORKLOAD;

/// The status of a Job that fails at once, because nothing here runs pods.
pub fn failure_conditions(now: &str) -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": NOTHING_RUNS_PODS,
            "message": "no node here runs pods: the Job was not started",
            "lastProbeTime": now, "lastTransitionTime": now,
        })
    };
    json!({
        "conditions": [condition("FailureTarget"), condition("Failed")],
        "startTime": now,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    })
}

pub(crate) struct Job;

impl Strategy for Job {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        if !has(spec, "completions") && !has(spec, "parallelism") {
            read::set(spec, "completions", 1);
        }
        read::set_default(spec, "parallelism", 1);
        let backoff = if has(spec, "backoffLimitPerIndex") {
            i64::from(i32::MAX)
        } else {
            6
        };
        read::set_default(spec, "backoffLimit", backoff);
        read::set_default(spec, "completionMode", "NonIndexed");
        read::set_default(spec, "suspend", false);
        let replacement = if has(spec, "podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        read::set_default(spec, "podReplacementPolicy", replacement);
        read::set_default(spec, "manualSelector", false);
        default_spec(spec);
        let labels = part(part(part(spec, "template"), "metadata"), "labels").clone();
        let metadata = part_mut(obj, "metadata");
        if !labels.is_null() && !read::filled(metadata, "labels") {
            read::set(metadata, "labels", labels);
        }
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        if !flag(part(obj, "spec"), "manualSelector") {
            generate_selector(obj);
        }
        prepare_new(&PROFILE, obj);
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let spec = part(obj, "spec");
        let at = At::new("spec");
        validate_generated_selector(errs, obj, old);
        validate_spec(errs, &at, spec);
        let label_selector = part(spec, "selector");
        if label_selector.is_null() {
            errs.required(&at.field("selector"), "");
        } else {
            selector::validate(errs, &at.field("selector"), label_selector);
        }
        // What is not there selects nothing, so it does not match either.
        if label_selector.is_null() || selector::is_usable(label_selector) {
            validate::selector_matches(
                errs,
                &at.field("template"),
                label_selector,
                part(spec, "template"),
            );
        }
        let completions = int(spec, "completions").unwrap_or(0);
        if text(spec, "completionMode") == "Indexed" && completions > 0 {
            let host = format!("{}-{}", meta::name(obj), completions - 1);
            if !validation::is_dns1123_label(&host).is_empty() {
                errs.invalid(
                    &At::new("metadata.name"),
                    meta::name(obj),
                    format!("will not able to create pod with invalid DNS label: {host}"),
                );
            }
        }
    }

    fn validate_change(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        validate_change(errs, obj, old);
    }

    fn validate_subresource(&self, _ctx: &WriteContext<'_>, obj: &Value, old: &Value, errs: &mut Errors) {
        status::validate(errs, obj, old);
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        pod::warnings("Job", ctx, obj, old)
    }

    fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        vec![(
            "status.successful",
            int(part(obj, "status"), "succeeded").unwrap_or(0).to_string(),
        )]
    }
}

/// What Jobs and the templates in CronJobs both get.
fn default_spec(spec: &mut Value) {
    defaults::template(spec);
    if let Some(failure) = spec.get_mut("podFailurePolicy") {
        for rule in read::each_mut(failure, "rules") {
            for pattern in read::each_mut(rule, "onPodConditions") {
                read::set_default_text(pattern, "status", "True");
            }
        }
    }
}

fn generate_selector(obj: &mut Value) {
    let metadata = part(obj, "metadata");
    let (name, uid) = (
        text(metadata, "name").to_owned(),
        text(metadata, "uid").to_owned(),
    );
    let template_labels = part(part(part(part(obj, "spec"), "template"), "metadata"), "labels");
    // A Job without labels of its own shows those of its template, generated ones included.
    let shared = !template_labels.is_null() && metadata.get("labels") == Some(template_labels);
    let spec = part_mut(obj, "spec");
    let labels = part_mut(part_mut(part_mut(spec, "template"), "metadata"), "labels");
    for key in NAME_LABELS {
        read::set_default(labels, key, name.as_str());
    }
    for key in UID_LABELS {
        read::set_default(labels, key, uid.as_str());
    }
    let complete = labels.clone();
    let wanted = part_mut(part_mut(spec, "selector"), "matchLabels");
    read::set_default(wanted, UID_LABELS[1], uid);
    if shared {
        read::set(part_mut(obj, "metadata"), "labels", complete);
    }
}

fn validate_generated_selector(errs: &mut Errors, obj: &Value, old: Option<&Value>) {
    let spec = part(obj, "spec");
    if flag(spec, "manualSelector") || !has(spec, "selector") {
        return;
    }
    let metadata = part(obj, "metadata");
    let (name, uid) = (text(metadata, "name"), text(metadata, "uid"));
    let labels = part(part(part(spec, "template"), "metadata"), "labels");
    let at = At::new("spec.template.metadata.labels");
    let expected = [
        (UID_LABELS[0], uid),
        (NAME_LABELS[0], name),
        (UID_LABELS[1], uid),
        (NAME_LABELS[1], name),
    ];
    // Jobs that are older than the prefixed labels need not have them.
    let prefixed = old.is_none_or(|old| {
        let before = part(part(part(part(old, "spec"), "template"), "metadata"), "labels");
        has(before, UID_LABELS[1]) && has(before, NAME_LABELS[1])
    });
    let count = if prefixed { 4 } else { 2 };
    for (key, value) in expected.into_iter().take(count) {
        match labels.get(key).and_then(Value::as_str) {
            None => errs.required(&at.key(key), format!("must be '{value}'")),
            Some(actual) if actual != value => {
                errs.invalid(&at.key(key), actual, format!("must be '{value}'"));
            }
            Some(_) => {}
        }
    }
    let own: Value = expected
        .iter()
        .map(|(k, v)| ((*k).to_owned(), json!(v)))
        .collect();
    if !selector::matches(part(spec, "selector"), &own) {
        let shown = part(spec, "selector").clone();
        errs.invalid(&At::new("spec.selector"), shown, "`selector` not auto-generated");
    }
}

fn validate_spec(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    errs.none_negative(
        at,
        spec,
        &[
            "parallelism",
            "completions",
            "activeDeadlineSeconds",
            "backoffLimit",
            "ttlSecondsAfterFinished",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
        ],
    );
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        errs.required(
            &at.field("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        );
    }
    if let Some(manager) = spec.get("managedBy").and_then(Value::as_str) {
        let at = at.field("managedBy");
        domain_prefixed_path(errs, &at, manager);
        if manager.len() > MANAGED_BY_MAX {
            errs.too_long(&at, MANAGED_BY_MAX);
        }
    }
    let mode = text(spec, "completionMode");
    if !mode.is_empty() {
        errs.one_of(&at.field("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    if mode == "Indexed" {
        validate_indexed(errs, at, spec);
    } else {
        let per_index: &[&str] = &["backoffLimitPerIndex", "maxFailedIndexes"];
        for key in per_index.iter().filter(|_| matches!(mode, "" | "NonIndexed")) {
            if let Some(value) = int(spec, key) {
                errs.invalid(&at.field(key), value, "requires indexed completion mode");
            }
        }
        if has(spec, "successPolicy") {
            let shown = read::internal(part(spec, "successPolicy"));
            errs.invalid(
                &at.field("successPolicy"),
                shown,
                "requires indexed completion mode",
            );
        }
    }
    policy::validate(errs, at, spec);
    let template = part(spec, "template");
    validate::template(errs, &at.field("template"), template);
    let restart_at = at.field("template.spec.restartPolicy");
    match text(part(template, "spec"), "restartPolicy") {
        "" | "Always" => errs.required(&restart_at, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if has(spec, "podFailurePolicy") => errs.invalid(
            &restart_at,
            "OnFailure",
            "only \"Never\" is supported when podFailurePolicy is specified",
        ),
        "OnFailure" | "Never" => {}
        other => errs.not_supported(&restart_at, other, &["OnFailure", "Never"]),
    }
}

fn validate_indexed(errs: &mut Errors, at: &At<'_>, spec: &Value) {
    let (completions, parallelism) = (int(spec, "completions"), int(spec, "parallelism").unwrap_or(0));
    let failures = int(spec, "maxFailedIndexes");
    let failures_at = at.field("maxFailedIndexes");
    if completions.is_none() {
        errs.required(&at.field("completions"), "when completion mode is Indexed");
    }
    if parallelism > INDEXED_PARALLELISM_MAX {
        errs.invalid(
            &at.field("parallelism"),
            parallelism,
            format!(
                "must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
            ),
        );
    }
    if let (Some(failures), Some(completions)) = (failures, completions)
        && failures > completions
    {
        errs.invalid(
            &failures_at,
            failures,
            "must be less than or equal to completions",
        );
    }
    if let Some(failures) = failures.filter(|f| *f > INDEXED_FAILURES_MAX) {
        let detail = format!("must be less than or equal to {INDEXED_FAILURES_MAX}");
        errs.invalid(&failures_at, failures, detail);
    }
    if completions.unwrap_or(0) > MANY_COMPLETIONS && has(spec, "backoffLimitPerIndex") {
        let detail = format!(
            "must be less than or equal to {MANY_COMPLETIONS_MAX} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
        );
        if failures.is_none() {
            let need = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errs.required(&failures_at, need);
        }
        if parallelism > MANY_COMPLETIONS_MAX {
            errs.invalid(&at.field("parallelism"), parallelism, detail.clone());
        }
        if let Some(failures) = failures.filter(|f| *f > MANY_COMPLETIONS_MAX) {
            errs.invalid(&failures_at, failures, detail);
        }
    }
}

fn validate_change(errs: &mut Errors, obj: &Value, old_obj: &Value) {
    let (new, old) = (part(obj, "spec"), part(old_obj, "spec"));
    let at = At::new("spec");
    let completions_at = at.field("completions");
    if text(new, "completionMode") != "Indexed" {
        errs.immutable(&completions_at, new.get("completions"), old.get("completions"));
    } else if let Some(completions) = int(new, "completions")
        && int(old, "completions") != Some(completions)
        && int(new, "parallelism") != Some(completions)
    {
        errs.invalid(
            &completions_at,
            completions,
            "can only be modified in tandem with spec.parallelism",
        );
    }
    errs.immutable(&at.field("selector"), new.get("selector"), old.get("selector"));
    let mut before = part(old, "template").clone();
    let now = part(new, "template");
    let not_started = flag(old, "suspend") && !has(part(old_obj, "status"), "startTime");
    if not_started {
        // A suspended Job that never ran may still be told where to run, and with how much.
        for key in ["labels", "annotations"] {
            read::copy(part_mut(&mut before, "metadata"), part(now, "metadata"), key);
        }
        let spec = part_mut(&mut before, "spec");
        for key in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
            read::copy(spec, part(now, "spec"), key);
        }
        for key in ["containers", "initContainers"] {
            for (container, wanted) in read::each_mut(spec, key).zip(list(part(now, "spec"), key)) {
                if text(container, "name") == text(wanted, "name") {
                    read::copy(container, wanted, "resources");
                }
            }
        }
    }
    errs.immutable(&at.field("template"), Some(now), Some(&before));
    for key in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        errs.immutable(&at.field(key), new.get(key), old.get(key));
    }
}

pub(crate) struct CronJob;

impl Strategy for CronJob {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn default(&self, obj: &mut Value) {
        let spec = part_mut(obj, "spec");
        read::set_default_text(spec, "concurrencyPolicy", "Allow");
        read::set_default(spec, "suspend", false);
        read::set_default(spec, "successfulJobsHistoryLimit", 3);
        read::set_default(spec, "failedJobsHistoryLimit", 1);
        if let Some(template) = spec.get_mut("jobTemplate") {
            read::set_default(template, "metadata", json!({}));
            if let Some(job) = template.get_mut("spec") {
                default_spec(job);
            }
        }
    }

    fn validate(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>, errs: &mut Errors) {
        let name = meta::name(obj);
        if old.is_none() && name.len() > CRON_JOB_NAME_MAX {
            errs.invalid(
                &At::new("metadata.name"),
                name,
                validation::max_len(CRON_JOB_NAME_MAX),
            );
        }
        validate_cron_spec(errs, part(obj, "spec"), old.map(|old| part(old, "spec")));
    }

    fn warnings(&self, ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        pod::warnings("CronJob", ctx, obj, old)
    }
}

fn validate_cron_spec(errs: &mut Errors, spec: &Value, old: Option<&Value>) {
    let at = At::new("spec");
    let schedule = text(spec, "schedule");
    let schedule_at = at.field("schedule");
    if schedule.is_empty() {
        errs.required(&schedule_at, "");
    } else {
        if let Err(why) = Schedule::check(schedule) {
            errs.invalid(&schedule_at, schedule, why.to_string());
        }
        let had_zone = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
        if schedule.contains("TZ") {
            if !had_zone {
                errs.invalid(
                    &schedule_at,
                    schedule,
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                );
            } else if has(spec, "timeZone") {
                errs.invalid(
                    &schedule_at,
                    schedule,
                    "cannot use both timeZone field and TZ or CRON_TZ in schedule",
                );
            }
        }
    }
    errs.none_negative(
        &at,
        spec,
        &[
            "startingDeadlineSeconds",
            "successfulJobsHistoryLimit",
            "failedJobsHistoryLimit",
        ],
    );
    let zone_changed = old.is_none_or(|old| !read::same(old.get("timeZone"), spec.get("timeZone")));
    if let Some(zone) = spec
        .get("timeZone")
        .and_then(Value::as_str)
        .filter(|_| zone_changed)
    {
        validate_time_zone(errs, &at.field("timeZone"), zone);
    }
    errs.required_one_of(
        &at.field("concurrencyPolicy"),
        text(spec, "concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    );
    let job = part(part(spec, "jobTemplate"), "spec");
    let job_at = at.field("jobTemplate");
    let job_at = job_at.field("spec");
    validate_spec(errs, &job_at, job);
    if has(job, "selector") {
        let shown = part(job, "selector").clone();
        errs.invalid(
            &job_at.field("selector"),
            shown,
            "`selector` will be auto-generated",
        );
    }
    if flag(job, "manualSelector") {
        errs.not_supported(&job_at.field("manualSelector"), true, &["nil", "false"]);
    }
}

/// A name of the time zone database, of which the binary has a copy.
fn validate_time_zone(errs: &mut Errors, at: &At<'_>, zone: &str) {
    if zone.is_empty() {
        errs.invalid(at, zone, "timeZone must be nil or non-empty string");
        return;
    }
    let part_ok = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.len() <= 14
            && !part.starts_with('-')
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b))
    };
    // Names are told apart by case, as they are where the database is files.
    let known = || {
        let found = jiff::tz::TimeZoneDatabase::bundled().get(zone);
        found.is_ok_and(|found| found.iana_name() == Some(zone))
    };
    if !zone.split('/').all(part_ok) {
        errs.invalid(at, zone, format!("unknown time zone {zone}"));
    } else if zone.eq_ignore_ascii_case("local") {
        errs.invalid(
            at,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    } else if !known() {
        errs.invalid(at, zone, format!("unknown time zone {zone}"));
    }
}

#[cfg(test)]
mod tests;
