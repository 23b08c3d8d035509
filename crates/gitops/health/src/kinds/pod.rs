//! Pods. Those that shall run for ever are degraded as soon as a container cannot; those that shall end, which are mostly
//! hooks, are in progress until they have, because a hook that is called degraded too early fails its whole sync.

use serde_json::Value;

use crate::view::{conditions, items, number, text};
use crate::{Health, Status};

pub(super) fn health(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let runs_for_ever = spec["restartPolicy"] == "Always";
    if runs_for_ever {
        let faults: Vec<&str> = items(&status["containerStatuses"])
            .iter()
            .map(|container| &container["state"]["waiting"])
            .filter(|waiting| is_fault(text(&waiting["reason"])))
            .map(|waiting| text(&waiting["message"]))
            .collect();
        if !faults.is_empty() {
            return Health::new(Status::Degraded, faults.join(", "));
        }
    }
    let message = text(&status["message"]);
    match text(&status["phase"]) {
        "Pending" => Health::new(Status::Progressing, message),
        "Succeeded" => Health::new(Status::Healthy, message),
        "Failed" => Health::new(Status::Degraded, failure(status)),
        "Running" => match text(&spec["restartPolicy"]) {
            "Always" => Health::new(running(status), message),
            "OnFailure" | "Never" => Health::new(Status::Progressing, message),
            _ => Health::new(Status::Unknown, message),
        },
        _ => Health::new(Status::Unknown, message),
    }
}

/// Whether a container waits because something went wrong.
fn is_fault(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

fn running(status: &Value) -> Status {
    if conditions(&status["conditions"]).any(|condition| condition.is("Ready", "True")) {
        return Status::Healthy;
    }
    let ended_before = |container: &Value| container["lastState"]["terminated"].is_object();
    match items(&status["containerStatuses"]).iter().any(ended_before) {
        true => Status::Degraded,
        false => Status::Progressing,
    }
}

/// Why a pod failed: in its own words, or in those of the first container that has any.
fn failure(status: &Value) -> String {
    let own = text(&status["message"]);
    if !own.is_empty() {
        return own.to_owned();
    }
    let containers = items(&status["initContainerStatuses"]);
    let containers = containers.iter().chain(items(&status["containerStatuses"]));
    let words = containers.filter_map(|container| {
        let ended = &container["state"]["terminated"];
        let code = number(&ended["exitCode"]);
        match (text(&ended["message"]), text(&ended["reason"])) {
            ("", "OOMKilled") => Some("OOMKilled".to_owned()),
            ("", _) if code != 0 => {
                let name = text(&container["name"]);
                Some(format!("container {name:?} failed with exit code {code}"))
            }
            ("", _) => None,
            (message, _) => Some(message.to_owned()),
        }
    });
    words.take(1).collect()
}
