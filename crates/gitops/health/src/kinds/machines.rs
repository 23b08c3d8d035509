//! Virtual machines and their disks.

use serde_json::Value;

use crate::view::{conditions, number, text};
use crate::{Health, Status};

const NO_STATUS: &str = "No status available";

/// A machine that is declared stopped is healthy when it is stopped; one that stopped by itself is suspended. While its controller
/// has not looked at the last change, or restarts it for that, it is on its way, whatever its guest says.
pub(super) fn virtual_machine(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let declared_stopped = spec["running"] == false || spec["runStrategy"] == "Halted";
    let has_instance = status["created"] == true;
    if declared_stopped && !has_instance {
        return Health::new(Status::Healthy, "Stopped as declared");
    }
    let mut health = Health::new(Status::Progressing, NO_STATUS);
    let mut failed = false;
    for condition in conditions(&status["conditions"]) {
        match (condition.kind, condition.status) {
            ("Paused", "True") => return Health::new(Status::Suspended, "Paused"),
            ("Ready", "True") => health = Health::new(Status::Healthy, "Running"),
            ("Ready", _) if has_instance => health.message = "Starting".to_owned(),
            ("Ready", _) => health = Health::new(Status::Suspended, "Stopped"),
            ("Failure", "True") => failed = true,
            _ => {}
        }
    }
    if has_instance && !is_acted_on(object) {
        return Health::new(Status::Progressing, "The last change has not been looked at yet");
    }
    let printed = text(&status["printableStatus"]);
    if !printed.is_empty() {
        health.message = printed.to_owned();
    }
    let declared_running = spec["running"] == true || spec["runStrategy"] == "Always";
    let is_moving = matches!(printed, "Stopping" | "Starting" | "Provisioning");
    let is_to_start = declared_running && !has_instance && !failed && !is_error(printed);
    if is_moving || is_to_start {
        health.status = Some(Status::Progressing);
    }
    health
}

/// Whether the controller has acted on the newest spec. It says so of machines with an instance alone; the generation that the
/// instance was started from (`observedGeneration`) stays behind when a change waits for a restart by hand.
fn is_acted_on(object: &Value) -> bool {
    let acted_on = object["status"]["desiredGeneration"].as_i64();
    acted_on.is_none_or(|acted_on| number(&object["metadata"]["generation"]) <= acted_on)
}

/// Whether a machine is not started for a reason that may last.
fn is_error(printed: &str) -> bool {
    matches!(
        printed,
        "CrashLoopBackOff"
            | "DataVolumeError"
            | "ErrImagePull"
            | "ErrorPvcNotFound"
            | "ErrorUnschedulable"
            | "ImagePullBackOff"
            | "Unknown"
    )
}

pub(super) fn virtual_machine_instance(object: &Value) -> Health {
    let status = &object["status"];
    let mut health = Health::new(Status::Progressing, NO_STATUS);
    if let Some(phase) = status["phase"].as_str() {
        health.message = phase.to_owned();
        match phase {
            "Failed" => return Health::new(Status::Degraded, phase),
            "Pending" | "Scheduling" | "Scheduled" => return health,
            "Succeeded" => return Health::new(Status::Suspended, phase),
            "Unknown" => return Health::new(Status::Unknown, phase),
            _ => {}
        }
    }
    for condition in conditions(&status["conditions"]) {
        match (condition.kind, condition.status) {
            ("Ready", "True") => health = Health::new(Status::Healthy, "Running"),
            ("Ready", _) => health = Health::new(Status::Degraded, condition.words()),
            ("Paused", "True") => return Health::new(Status::Suspended, condition.words()),
            _ => {}
        }
    }
    health
}

/// A disk that is waiting for its first consumer is as good as it can be: waiting for more would stop a wave for ever.
pub(super) fn data_volume(object: &Value) -> Health {
    let status = &object["status"];
    let mut health = Health::new(Status::Progressing, NO_STATUS);
    if let Some(phase) = status["phase"].as_str() {
        health.message = phase.to_owned();
        match phase {
            "Succeeded" => return Health::new(Status::Healthy, phase),
            "Paused" => return Health::new(Status::Suspended, phase),
            "Failed" | "Unknown" => health.status = Some(Status::Degraded),
            "WaitForFirstConsumer" | "PendingPopulation" => health.status = Some(Status::Healthy),
            _ => {}
        }
    }
    let error = conditions(&status["conditions"])
        .find(|condition| condition.is("Running", "False") && condition.reason == "Error");
    match error {
        Some(error) => Health::new(Status::Degraded, error.words()),
        None => health,
    }
}

pub(super) fn migration(object: &Value) -> Health {
    match text(&object["status"]["phase"]) {
        "" => Health::new(Status::Progressing, NO_STATUS),
        "Succeeded" => Health::new(Status::Healthy, "Succeeded"),
        "Failed" => {
            let reason = text(&object["status"]["migrationState"]["failureReason"]);
            Health::new(
                Status::Degraded,
                if reason.is_empty() { "Failed" } else { reason },
            )
        }
        phase => Health::new(Status::Progressing, phase),
    }
}

pub(super) fn snapshot(object: &Value) -> Health {
    let status = &object["status"];
    let failure = conditions(&status["conditions"]).find(|condition| condition.is("Failure", "True"));
    if let Some(failure) = failure {
        return Health::new(Status::Degraded, failure.words());
    }
    match (text(&status["phase"]), status["readyToUse"] == true) {
        ("Failed", _) => Health::new(Status::Degraded, text(&status["error"]["message"])),
        (_, true) => Health::new(Status::Healthy, "Ready to use"),
        ("", _) => Health::new(Status::Progressing, NO_STATUS),
        (phase, _) => Health::new(Status::Progressing, phase),
    }
}

pub(super) fn restore(object: &Value) -> Health {
    let status = &object["status"];
    let failure = conditions(&status["conditions"]).find(|condition| condition.is("Failure", "True"));
    match (failure, status["complete"] == true) {
        (Some(failure), _) => Health::new(Status::Degraded, failure.words()),
        (None, true) => Health::new(Status::Healthy, "Complete"),
        (None, false) => Health::new(Status::Progressing, "Restoring"),
    }
}
