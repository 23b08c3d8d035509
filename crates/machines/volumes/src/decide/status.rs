//! What a DataVolume says about itself, in CDI's words: phase, progress, conditions, and what is told to people once.
//!
//! A disk is made before its claim is bound, as with CDI's populators: while it is filled the claim is pending.

use fairway_controller::events::{Happening, Severity};
use serde_json::{Value, json};

use super::source::Work;

/// How far filling is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filling {
    /// There is no claim yet, for a reason or for none.
    NoClaim(Option<Told>),
    /// Others come first.
    Scheduled,
    /// Something that it needs is not there, or is in use.
    Waits(Told),
    /// It is under way; how much of it is done.
    Running(Option<f64>),
    /// Whoever sends it may do so.
    Ready,
    /// An attempt failed, and another follows.
    Retries(String),
    /// It cannot be done.
    Failed(String),
    /// The disk is there.
    Done,
    /// The disk is there, because it was there before.
    Restored,
    /// The claim has lost its volume.
    Lost,
}

/// A reason and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What is observed of a DataVolume.
pub(crate) struct Observed<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// What kind of work it is; nothing if it is not known what to do.
    pub(crate) work: Option<Work>,
    /// Namespace and name of what is cloned.
    pub(crate) origin: Option<(&'a str, &'a str)>,
    pub(crate) filling: &'a Filling,
    /// The phase of the claim, if there is one.
    pub(crate) claim: Option<&'a str>,
    pub(crate) restarts: u32,
    /// The status as it is.
    pub(crate) before: &'a Value,
}

/// A condition of a DataVolume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) status: &'static str,
    pub(crate) reason: String,
    pub(crate) message: String,
}

pub(crate) fn condition(kind: &'static str, status: &'static str, reason: &str, message: &str) -> Condition {
    Condition {
        kind,
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// The phase.
pub(crate) fn phase(work: Option<Work>, filling: &Filling, claim: Option<&str>) -> &'static str {
    use Filling::{Done, Failed, Lost, NoClaim, Ready, Restored, Retries, Running, Scheduled, Waits};
    let work = work.unwrap_or(Work::Import);
    match filling {
        Done | Restored if claim == Some("Bound") => "Succeeded",
        Done | Restored => match work {
            Work::Import => "ImportInProgress",
            Work::Upload => "UploadReady",
            Work::Clone => "CloneInProgress",
            Work::CloneSnapshot => "CloneFromSnapshotSourceInProgress",
        },
        Failed(_) | Lost => "Failed",
        NoClaim(_) => "Pending",
        Scheduled | Waits(_) => match work {
            Work::Import => "ImportScheduled",
            Work::Upload => "UploadScheduled",
            Work::Clone | Work::CloneSnapshot => "CloneScheduled",
        },
        Ready => "UploadReady",
        Running(_) | Retries(_) => match work {
            Work::Import => "ImportInProgress",
            Work::Upload => "UploadReady",
            Work::Clone => "CloneInProgress",
            Work::CloneSnapshot => "CloneFromSnapshotSourceInProgress",
        },
    }
}

/// `12.34%`, as CDI writes it.
pub(crate) fn progress(filling: &Filling, phase: &str, before: &str) -> String {
    match filling {
        _ if phase == "Succeeded" => "100.0%".to_owned(),
        Filling::Running(Some(part)) => format!("{:.2}%", (part * 100.0).clamp(0.0, 100.0)),
        _ if before.is_empty() => "N/A".to_owned(),
        _ => before.to_owned(),
    }
}

/// The conditions, in the order in which CDI has them.
pub(crate) fn conditions(observed: &Observed<'_>, phase: &str) -> [Condition; 3] {
    let name = observed.name;
    let (reason, message) = match observed.filling {
        Filling::NoClaim(Some(told)) => (told.reason, told.message.as_str()),
        _ => ("", ""),
    };
    let bound = match observed.claim {
        Some("Bound") => condition("Bound", "True", "Bound", &format!("PVC {name} Bound")),
        Some("Lost") => condition("Bound", "False", "ClaimLost", "Claim Lost"),
        Some(_) => condition("Bound", "False", "Pending", &format!("PVC {name} Pending")),
        None if reason.is_empty() => condition("Bound", "Unknown", "NotFound", "No PVC found"),
        None => condition("Bound", "Unknown", reason, message),
    };
    let running = match observed.filling {
        Filling::Running(_) => condition("Running", "True", "Pod is running", ""),
        Filling::Ready => condition("Running", "True", "Pod is running", ""),
        Filling::Retries(why) | Filling::Failed(why) => condition("Running", "False", "Error", why),
        Filling::Waits(told) => condition("Running", "False", told.reason, &told.message),
        Filling::Done if phase == "Succeeded" => {
            let message = match observed.work {
                Some(Work::Upload) => "Upload Complete",
                Some(Work::Clone | Work::CloneSnapshot) => "Clone Complete",
                _ => "Import Complete",
            };
            condition("Running", "False", "Completed", message)
        }
        Filling::Restored if phase == "Succeeded" => condition(
            "Running",
            "False",
            "Completed",
            "the disk was taken out of the trash",
        ),
        _ => condition("Running", "False", "", ""),
    };
    let ready = match (phase, &running) {
        ("Succeeded", _) => condition("Ready", "True", "", ""),
        (_, running) if running.status == "True" => condition("Ready", "False", "TransferRunning", ""),
        _ => condition("Ready", "False", reason, message),
    };
    [bound, ready, running]
}

/// The whole status. `now` counts only for conditions that change.
pub(crate) fn status(observed: &Observed<'_>, now: &str) -> Value {
    let phase = phase(observed.work, observed.filling, observed.claim);
    let text = |field: &str| {
        observed
            .before
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut status = json!({
        "phase": phase,
        "progress": progress(observed.filling, phase, text("progress")),
        "conditions": merged(&conditions(observed, phase), &observed.before["conditions"], now),
    });
    if observed.claim.is_some() {
        status["claimName"] = json!(observed.name);
    }
    if observed.restarts > 0 {
        status["restartCount"] = json!(observed.restarts);
    }
    status
}

/// Conditions as they are written: times move only when something else does.
pub(crate) fn merged(conditions: &[Condition], before: &Value, now: &str) -> Vec<Value> {
    let known = before.as_array().map_or(&[][..], Vec::as_slice);
    conditions
        .iter()
        .map(|it| {
            let old = known
                .iter()
                .find(|old| old["type"] == it.kind)
                .cloned()
                .unwrap_or_default();
            let mut new = json!({"type": it.kind, "status": it.status});
            for (field, text) in [("reason", &it.reason), ("message", &it.message)] {
                if !text.is_empty() {
                    new[field] = json!(text);
                }
            }
            let same = |field: &str| old.get(field) == new.get(field);
            let stays = same("status");
            let is_quiet = stays && same("reason") && same("message");
            let time = |keep: bool, field: &str| match (keep, old.get(field)) {
                (true, Some(time)) => time.clone(),
                _ => json!(now),
            };
            new["lastTransitionTime"] = time(stays, "lastTransitionTime");
            new["lastHeartbeatTime"] = time(is_quiet, "lastHeartbeatTime");
            new
        })
        .collect()
}

/// What people are told about a change from one status to the next.
pub(crate) fn happenings(observed: &Observed<'_>, after: &Value) -> Vec<Happening> {
    let mut told = Vec::new();
    let before = observed.before;
    let phase = after["phase"].as_str().unwrap_or_default();
    if before["phase"].as_str().unwrap_or_default() != phase
        && let Some(happening) = of_phase(observed, phase)
    {
        told.push(happening);
    }
    let find = |status: &Value, kind: &str| -> Value {
        let all = status["conditions"].as_array();
        all.and_then(|all| all.iter().find(|it| it["type"] == kind).cloned())
            .unwrap_or_default()
    };
    let changed = |kind: &str| {
        let (old, new) = (find(before, kind), find(after, kind));
        let differs = ["status", "reason", "message"]
            .iter()
            .any(|field| old.get(field) != new.get(field));
        differs.then_some(new)
    };
    if let Some(bound) = changed("Bound")
        && let Some(reason) = bound["reason"].as_str().and_then(bound_reason)
    {
        told.push(Happening {
            severity: if reason == "ClaimLost" {
                Severity::Warning
            } else {
                Severity::Normal
            },
            reason,
            message: bound["message"].as_str().unwrap_or_default().to_owned(),
        });
    }
    let problem = match observed.filling {
        Filling::Retries(why) | Filling::Failed(why) => Some(("Error", why.clone())),
        Filling::Waits(told) | Filling::NoClaim(Some(told)) => Some((told.reason, told.message.clone())),
        _ => None,
    };
    if let Some((reason, message)) = problem
        && (changed("Running").is_some() || changed("Bound").is_some())
    {
        told.push(Happening {
            severity: Severity::Warning,
            reason,
            message,
        });
    }
    told
}

fn bound_reason(reason: &str) -> Option<&'static str> {
    ["Bound", "Pending", "ClaimLost"]
        .into_iter()
        .find(|known| *known == reason)
}

fn of_phase(observed: &Observed<'_>, phase: &str) -> Option<Happening> {
    let (namespace, name) = (observed.namespace, observed.name);
    let (from_namespace, from) = observed.origin.unwrap_or_default();
    let cloning = format!("from {from_namespace}/{from} into {namespace}/{name}");
    let normal = |reason: &'static str, message: String| {
        Some(Happening {
            severity: Severity::Normal,
            reason,
            message,
        })
    };
    match (phase, observed.work) {
        ("ImportScheduled", _) => normal("ImportScheduled", format!("Import into {name} scheduled")),
        ("ImportInProgress", _) => normal("ImportInProgress", format!("Import into {name} in progress")),
        ("UploadScheduled", _) => normal("UploadScheduled", format!("Upload into {name} scheduled")),
        ("UploadReady", _) => normal("UploadReady", format!("Upload into {name} ready")),
        ("CloneScheduled", _) => normal("CloneScheduled", format!("Cloning {cloning} scheduled")),
        ("CloneInProgress", _) => normal("CloneInProgress", format!("Cloning {cloning} in progress")),
        ("CloneFromSnapshotSourceInProgress", _) => normal(
            "CloneFromSnapshotSourceInProgress",
            format!(
                "Creating PVC from snapshot source is in progress (for snapshot {from_namespace}/{from})"
            ),
        ),
        ("Succeeded", _) if *observed.filling == Filling::Restored => normal(
            "RestoredFromTrash",
            format!("The disk of {name} was in the trash, and is its disk again"),
        ),
        ("Succeeded", Some(Work::Import)) => normal(
            "ImportSucceeded",
            format!("Successfully imported into PVC {name}"),
        ),
        ("Succeeded", Some(Work::Upload)) => {
            normal("UploadSucceeded", format!("Successfully uploaded into {name}"))
        }
        ("Succeeded", Some(_)) => normal("CloneSucceeded", format!("Successfully cloned {cloning}")),
        ("Failed", work) => {
            let (reason, message) = match (work, observed.filling) {
                (_, Filling::Lost) => ("ErrClaimLost", format!("PVC {name} lost")),
                (Some(Work::Upload), _) => ("UploadFailed", format!("Upload into {name} failed")),
                (Some(Work::Clone | Work::CloneSnapshot), _) => {
                    ("CloneFailed", format!("Cloning {cloning} failed"))
                }
                _ => ("ImportFailed", format!("Failed to import into PVC {name}")),
            };
            Some(Happening {
                severity: Severity::Warning,
                reason,
                message,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
