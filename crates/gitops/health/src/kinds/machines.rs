//! Virtual machines and their disks.

use serde_json::Value;

use crate::view::{conditions, text};
use crate::{Health, Status};

const NO_STATUS: &str = "No status available";

/// A machine that is declared stopped is healthy when it is stopped; one that stopped by itself is suspended.
pub(super) fn virtual_machine(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let declared_stopped = spec["running"] == false || spec["runStrategy"] == "Halted";
    let has_instance = status["created"] == true;
    if declared_stopped && !has_instance {
        return Health::new(Status::Healthy, "Stopped as declared");
    }
    let mut health = Health::new(Status::Progressing, NO_STATUS);
    for condition in conditions(&status["conditions"]) {
        match (condition.kind, condition.status) {
            ("Paused", "True") => return Health::new(Status::Suspended, "Paused"),
            ("Ready", "True") => health = Health::new(Status::Healthy, "Running"),
            ("Ready", _) if has_instance => health.message = "Starting".to_owned(),
            ("Ready", _) => health = Health::new(Status::Suspended, "Stopped"),
            _ => {}
        }
    }
    if let Some(printed) = status["printableStatus"].as_str() {
        health.message = printed.to_owned();
    }
    health
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
