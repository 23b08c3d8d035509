//! What an ApplicationSet's status says: conditions, its Applications, and how far each is in a rollout by steps.
//!
//! Types, reasons and messages are Argo CD's, which people and tools wait for. Times change only where something does, so
//! that a status that says the same is the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Error;
use crate::rollout::{self, Member, Progress};

/// Why a set is not up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Generators or templates are wrong, or what they look at could not be read.
    Parameters,
    /// A template could not be filled.
    Template,
    /// An Application that was generated is not valid.
    Validation,
    /// An Application could not be made or changed.
    Update,
    /// An Application could not be deleted.
    Delete,
}

impl Reason {
    /// As the condition says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parameters => "ApplicationGenerationFromParamsError",
            Self::Template => "RenderTemplateParamsError",
            Self::Validation => "ApplicationValidationError",
            Self::Update => "UpdateApplicationError",
            Self::Delete => "DeleteApplicationError",
        }
    }

    /// Why generating failed.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Template { .. } => Self::Template,
            Error::Duplicate { .. } => Self::Validation,
            _ => Self::Parameters,
        }
    }
}

/// How a look at a set ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What went wrong.
    pub error: Option<(Reason, String)>,
    /// Whether the generators had yielded before.
    pub generated: bool,
}

/// The whole status, and which Applications are to be synced now because it is their turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The status.
    pub status: Value,
    /// Applications whose turn it is.
    pub sync: Vec<String>,
}

/// The status of a set with these Applications of its own, as they are.
///
/// # Errors
/// The steps of the rollout are wrong.
pub fn status(set: &Value, applications: &[Value], outcome: &Outcome, now: &str) -> Result<Status, Error> {
    let rolling = rollout::is_rolling(&set["spec"]);
    let mut status = set["status"].as_object().cloned().unwrap_or_default();
    let mut sync = Vec::new();
    let mut step = None;
    status.shift_remove("applicationStatus");
    if rolling {
        let (members, turns, current) = members(set, applications, now)?;
        sync = turns;
        step = Some(current);
        status.insert("applicationStatus".to_owned(), members);
    }
    status.insert("conditions".to_owned(), conditions(set, outcome, step, now));
    status.insert("resources".to_owned(), resources(applications));
    status.insert("resourcesCount".to_owned(), json!(applications.len()));
    Ok(Status {
        status: Value::Object(status),
        sync,
    })
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn conditions(set: &Value, outcome: &Outcome, step: Option<Option<usize>>, now: &str) -> Value {
    const UP_TO_DATE: &str = "All applications have been generated successfully";
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = if holds { "True" } else { "False" };
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
    };
    let mut all = match &outcome.error {
        None => vec![
            condition("ErrorOccurred", false, "ApplicationSetUpToDate", UP_TO_DATE),
            condition(
                "ParametersGenerated",
                true,
                "ParametersGenerated",
                "Successfully generated parameters for all Applications",
            ),
            condition("ResourcesUpToDate", true, "ApplicationSetUpToDate", UP_TO_DATE),
        ],
        Some((reason, message)) => vec![
            condition("ErrorOccurred", true, reason.as_str(), message),
            if outcome.generated {
                condition(
                    "ParametersGenerated",
                    true,
                    "ParametersGenerated",
                    "Successfully generated parameters for all Applications",
                )
            } else {
                condition("ParametersGenerated", false, "ErrorOccurred", message)
            },
            condition("ResourcesUpToDate", false, "ErrorOccurred", message),
        ],
    };
    match step {
        None => {}
        Some(None) => all.push(condition(
            "RolloutProgressing",
            false,
            "ApplicationSetRolloutComplete",
            "ApplicationSet Rollout has completed",
        )),
        Some(Some(step)) => {
            let message = format!("ApplicationSet is performing rollout of step {step}");
            all.push(condition(
                "RolloutProgressing",
                true,
                "ApplicationSetModified",
                &message,
            ));
        }
    }
    // What says the same as before keeps its time.
    let before = set.pointer("/status/conditions").and_then(Value::as_array);
    for condition in &mut all {
        let same = |old: &&Value| {
            ["type", "status", "reason", "message"]
                .iter()
                .all(|it| old[*it] == condition[*it])
        };
        if let Some(old) = before.into_iter().flatten().find(same) {
            *condition = old.clone();
        }
    }
    Value::Array(all)
}

/// The Applications as resources of the set.
fn resources(applications: &[Value]) -> Value {
    let mut all: Vec<&Value> = applications.iter().collect();
    all.sort_by_key(|it| text(it, "/metadata/name"));
    let resource = |it: &&Value| {
        let mut resource = json!({
            "group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
            "name": text(it, "/metadata/name"), "namespace": text(it, "/metadata/namespace"),
        });
        let sync = text(it, "/status/sync/status");
        if !sync.is_empty() {
            resource["status"] = json!(sync);
        }
        if let Some(health) = it.pointer("/status/health").filter(|it| it.is_object()) {
            resource["health"] = health.clone();
        }
        resource
    };
    all.iter().map(resource).collect()
}

/// The revisions that an Application was compared with.
fn revisions(application: &Value) -> Value {
    match application.pointer("/status/sync/revisions") {
        Some(Value::Array(several)) if !several.is_empty() => json!(several),
        _ => match text(application, "/status/sync/revision") {
            "" => json!([]),
            one => json!([one]),
        },
    }
}

/// Synced, healthy, and not in an operation that goes on.
fn is_healthy(application: &Value) -> bool {
    let phase = text(application, "/status/operationState/phase");
    text(application, "/status/health/status") == "Healthy"
        && text(application, "/status/sync/status") != "OutOfSync"
        && matches!(phase, "" | "Succeeded")
}

/// How far each Application is, whose turn it is, and the step that is being worked on.
fn members(
    set: &Value,
    applications: &[Value],
    now: &str,
) -> Result<(Value, Vec<String>, Option<usize>), Error> {
    let known = set.pointer("/status/applicationStatus").and_then(Value::as_array);
    let known = known.map_or(&[][..], Vec::as_slice);
    let mut all: Vec<(&Value, Value)> = applications
        .iter()
        .map(|it| (it, observed(it, known, now)))
        .collect();
    let members: Vec<Member> = all
        .iter()
        .map(|(application, status)| Member {
            name: text(application, "/metadata/name").to_owned(),
            labels: labels(application),
            progress: match text(status, "/status") {
                "Healthy" => Progress::Done,
                "Pending" | "Progressing" => Progress::Busy,
                _ => Progress::Waiting,
            },
        })
        .collect();
    let rollout = rollout::decide(&set["spec"], &members)?;
    for (application, status) in &mut all {
        let name = text(application, "/metadata/name");
        let step = rollout
            .steps
            .get(name)
            .map_or_else(|| "-1".to_owned(), ToString::to_string);
        status["step"] = json!(step);
        if rollout.sync.iter().any(|it| it == name) {
            const TURN: &str = "Application moved to Pending status, watching for the Application resource to start Progressing.";
            move_to(status, "Pending", TURN, now);
        }
    }
    let statuses = all.into_iter().map(|(_, status)| status).collect();
    Ok((statuses, rollout.sync, rollout.current))
}

fn labels(application: &Value) -> BTreeMap<String, String> {
    let all = application.pointer("/metadata/labels").and_then(Value::as_object);
    all.into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn move_to(status: &mut Value, to: &str, message: &str, now: &str) {
    status["status"] = json!(to);
    status["message"] = json!(message);
    status["lastTransitionTime"] = json!(now);
}

/// How far an Application is by what is seen of it, before anybody's turn is decided.
fn observed(application: &Value, known: &[Value], now: &str) -> Value {
    const PENDING_CHANGES: &str = "Application has pending changes, setting status to Waiting.";
    let name = text(application, "/metadata/name");
    let mut status = match known.iter().find(|it| it["application"] == name) {
        Some(known) => known.clone(),
        None => json!({
            "application": name, "status": "Waiting", "step": "", "targetRevisions": [], "lastTransitionTime": now,
            "message": "No Application status found, defaulting status to Waiting.",
        }),
    };
    let revisions = revisions(application);
    let is_known = known.iter().any(|it| it["application"] == name);
    if status["targetRevisions"] != revisions {
        status["targetRevisions"] = revisions;
        let message = if is_known {
            PENDING_CHANGES.to_owned()
        } else {
            text(&status, "/message").to_owned()
        };
        move_to(&mut status, "Waiting", &message, now);
    }
    let outdated = text(application, "/status/sync/status") == "OutOfSync";
    if outdated && !matches!(text(&status, "/status"), "Waiting" | "Pending") {
        move_to(&mut status, "Waiting", PENDING_CHANGES, now);
    }
    let phase = text(application, "/status/operationState/phase");
    let health = text(application, "/status/health/status");
    if text(&status, "/status") == "Pending" {
        if !outdated && phase == "Succeeded" {
            let done = "Application resource completed a sync successfully, updating status from Pending to Progressing.";
            move_to(&mut status, "Progressing", done, now);
        } else if phase == "Running" || health == "Progressing" {
            let begun =
                "Application resource became Progressing, updating status from Pending to Progressing.";
            move_to(&mut status, "Progressing", begun, now);
        }
    }
    if is_healthy(application) {
        match text(&status, "/status") {
            "Waiting" => {
                let already =
                    "Application resource is already Healthy, updating status from Waiting to Healthy.";
                move_to(&mut status, "Healthy", already, now);
            }
            "Progressing" => {
                let became =
                    "Application resource became Healthy, updating status from Progressing to Healthy.";
                move_to(&mut status, "Healthy", became, now);
            }
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests;
