//! What an ApplicationSet's status says: conditions, its Applications, and how far each is in a rollout by steps.
//!
//! Types, reasons and messages are Argo CD's, which people and tools wait for. Times change only where something does, so
//! that a status that says the same is the same.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
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
    /// An Application could not be made.
    Create,
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
            Self::Create => "CreateApplicationError",
            Self::Update => "UpdateApplicationError",
            Self::Delete => "DeleteApplicationError",
        }
    }

    /// Why generating failed.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Template { .. } => Self::Template,
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
    /// Whether some had their turn in vain and get another one after [`PAUSE`].
    pub again: bool,
}

/// How long after a sync that did not help the next one is begun.
pub const PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// The most Applications that a status lists; an object has a limit.
const MAX_RESOURCES: usize = 5000;

/// The status of a set with these Applications of its own, as they are.
///
/// # Errors
/// The steps of the rollout are wrong.
pub fn status(
    set: &Value,
    applications: &[Value],
    outcome: &Outcome,
    now: Timestamp,
) -> Result<Status, Error> {
    let text = shown(now);
    let mut status = set["status"].as_object().cloned().unwrap_or_default();
    let (mut sync, mut again) = (Vec::new(), false);
    let mut step = None;
    status.shift_remove("applicationStatus");
    if rollout::is_rolling(&set["spec"]) {
        let members = members(set, applications, &text)?;
        (sync, again) = turns(&members.statuses, applications, now);
        step = Some(rolled(members.current));
        let statuses = members.statuses.into_iter();
        status.insert("applicationStatus".to_owned(), statuses.collect());
    }
    status.insert("conditions".to_owned(), conditions(set, outcome, step, &text));
    status.insert("resources".to_owned(), resources(applications));
    status.insert("resourcesCount".to_owned(), json!(applications.len()));
    Ok(Status {
        status: Value::Object(status),
        sync,
        again,
    })
}

/// The status of a set whose Applications are unknown: what was said of them stays.
pub fn failed(set: &Value, outcome: &Outcome, now: Timestamp) -> Value {
    let mut status = set["status"].as_object().cloned().unwrap_or_default();
    let before = status.get("conditions").and_then(Value::as_array);
    let known = before
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "RolloutProgressing");
    let step = known.filter(|_| rollout::is_rolling(&set["spec"])).map(|it| {
        (
            it["status"] == "True",
            text(it, "/reason").to_owned(),
            text(it, "/message").to_owned(),
        )
    });
    let conditions = conditions(set, outcome, step, &shown(now));
    status.insert("conditions".to_owned(), conditions);
    Value::Object(status)
}

fn shown(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Which Applications of those whose turn it is are to be synced now, and whether others are, later.
fn turns(statuses: &[Value], applications: &[Value], now: Timestamp) -> (Vec<String>, bool) {
    let (mut sync, mut again) = (Vec::new(), false);
    for (application, status) in applications.iter().zip(statuses) {
        let is_busy = !application["operation"].is_null()
            || matches!(
                text(application, "/status/operationState/phase"),
                "Running" | "Terminating"
            );
        let is_out = text(application, "/status/sync/status") == "OutOfSync";
        if text(status, "/status") != "Pending" || !is_out || is_busy {
            continue;
        }
        // What was synced to this very commit just now, in vain, is not tried again at once.
        let finished = text(application, "/status/operationState/finishedAt").parse::<Timestamp>();
        let is_recent = finished.is_ok_and(|at| now.duration_since(at) < PAUSE);
        match is_recent && synced_revisions(application) == revisions(application) {
            true => again = true,
            false => sync.push(text(application, "/metadata/name").to_owned()),
        }
    }
    (sync, again)
}

/// The revisions that an Application was last synced to.
fn synced_revisions(application: &Value) -> Value {
    match application.pointer("/status/operationState/syncResult/revisions") {
        Some(Value::Array(several)) if !several.is_empty() => json!(several),
        _ => json!([text(application, "/status/operationState/syncResult/revision")]),
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What the condition of a rollout says: whether it goes on, its reason and its message.
type Progressing = (bool, String, String);

fn rolled(step: Option<usize>) -> Progressing {
    match step {
        None => (
            false,
            "ApplicationSetRolloutComplete".to_owned(),
            "ApplicationSet Rollout has completed".to_owned(),
        ),
        Some(step) => (
            true,
            "ApplicationSetModified".to_owned(),
            format!("ApplicationSet is performing rollout of step {step}"),
        ),
    }
}

fn conditions(set: &Value, outcome: &Outcome, step: Option<Progressing>, now: &str) -> Value {
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
    if let Some((holds, reason, message)) = step {
        all.push(condition("RolloutProgressing", holds, &reason, &message));
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
pub fn resources(applications: &[Value]) -> Value {
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
        let health = text(it, "/status/health/status");
        if !health.is_empty() {
            resource["health"] = json!({"status": health});
        }
        resource
    };
    all.iter().take(MAX_RESOURCES).map(resource).collect()
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

/// How far each Application is, in their order, and the step that is being worked on.
struct Members {
    statuses: Vec<Value>,
    current: Option<usize>,
}

/// An Application as a rollout sees it.
pub fn member(application: &Value, progress: Progress) -> Member {
    Member {
        name: text(application, "/metadata/name").to_owned(),
        labels: labels(application),
        progress,
    }
}

fn members(set: &Value, applications: &[Value], now: &str) -> Result<Members, Error> {
    let known = set.pointer("/status/applicationStatus").and_then(Value::as_array);
    let known: BTreeMap<&str, &Value> = known
        .into_iter()
        .flatten()
        .map(|it| (text(it, "/application"), it))
        .collect();
    let mut all: Vec<(&Value, Value)> = applications
        .iter()
        .map(|it| {
            let known = known.get(text(it, "/metadata/name")).copied();
            (it, observed(it, known, now))
        })
        .collect();
    let members: Vec<Member> = all
        .iter()
        .map(|(application, status)| {
            let progress = match text(status, "/status") {
                "Healthy" if is_healthy(application) => Progress::Done,
                "Healthy" => Progress::Unwell,
                "Pending" | "Progressing" => Progress::Busy,
                _ => Progress::Waiting,
            };
            member(application, progress)
        })
        .collect();
    let rollout = rollout::decide(&set["spec"], &members)?;
    let turn: std::collections::BTreeSet<&str> = rollout.sync.iter().map(String::as_str).collect();
    for (application, status) in &mut all {
        let name = text(application, "/metadata/name");
        let step = rollout
            .steps
            .get(name)
            .map_or_else(|| "-1".to_owned(), ToString::to_string);
        status["step"] = json!(step);
        if turn.contains(name) {
            const TURN: &str = "Application moved to Pending status, watching for the Application resource to start Progressing.";
            move_to(status, "Pending", TURN, now);
        }
    }
    Ok(Members {
        statuses: all.into_iter().map(|(_, status)| status).collect(),
        current: rollout.current,
    })
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
fn observed(application: &Value, known: Option<&Value>, now: &str) -> Value {
    const PENDING_CHANGES: &str = "Application has pending changes, setting status to Waiting.";
    let name = text(application, "/metadata/name");
    let mut status = match known {
        Some(known) => known.clone(),
        None => json!({
            "application": name, "status": "Waiting", "step": "", "targetRevisions": [], "lastTransitionTime": now,
            "message": "No Application status found, defaulting status to Waiting.",
        }),
    };
    let revisions = revisions(application);
    let is_known = known.is_some();
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
