//! Argo's own kinds.

use serde_json::Value;

use crate::view::{conditions, items, number, text};
use crate::{Health, Status};

/// A child application passes its own health on, so that waves wait for it. (Argo CD leaves this to a script that most
/// who write an app of apps add; a child that has not been looked at yet is in progress.)
pub(super) fn application(object: &Value) -> Health {
    let health = &object["status"]["health"];
    match Status::parse(text(&health["status"])) {
        Some(status) => Health::new(status, text(&health["message"])),
        None => Health::new(Status::Progressing, "Waiting for the application to be compared"),
    }
}

pub(super) fn application_set(object: &Value) -> Health {
    const VERDICTS: &[(&str, &str, Status)] = &[
        ("ErrorOccurred", "True", Status::Degraded),
        ("ResourcesUpToDate", "False", Status::Degraded),
        ("RolloutProgressing", "True", Status::Progressing),
        ("ResourcesUpToDate", "True", Status::Healthy),
    ];
    let list = &object["status"]["conditions"];
    let verdict = VERDICTS.iter().find_map(|(kind, state, status)| {
        let found = conditions(list).find(|condition| condition.is(kind, state))?;
        Some(Health::new(*status, found.words()))
    });
    verdict.unwrap_or_else(|| Health::new(Status::Progressing, "Waiting for the status to be reported"))
}

pub(super) fn workflow(object: &Value) -> Health {
    let status = &object["status"];
    let word = match text(&status["phase"]) {
        "" | "Pending" | "Running" => Status::Progressing,
        "Succeeded" => Status::Healthy,
        "Failed" | "Error" => Status::Degraded,
        _ => Status::Unknown,
    };
    Health::new(word, text(&status["message"]))
}

pub(super) fn cron_workflow(object: &Value) -> Health {
    for condition in conditions(&object["status"]["conditions"]) {
        match (condition.kind, condition.status) {
            ("SpecError" | "SubmissionError", "True") => {
                return Health::new(Status::Degraded, condition.words());
            }
            ("Completed", "True") => return Health::new(Status::Healthy, condition.words()),
            _ => {}
        }
    }
    Health::new(Status::Healthy, "CronWorkflow is healthy.")
}

pub(super) fn analysis_run(object: &Value) -> Health {
    let status = &object["status"];
    let (word, fallback) = match text(&status["phase"]) {
        "Pending" | "Running" => return Health::new(Status::Progressing, "Analysis run is running"),
        "Successful" => (Status::Healthy, "Analysis run completed successfully"),
        "Failed" => (Status::Degraded, "Analysis run failed"),
        "Error" => (Status::Degraded, "Analysis run had an error"),
        "Inconclusive" => (Status::Unknown, "Analysis run was inconclusive"),
        _ => {
            let message = "Waiting for analysis run to finish: status has not been reconciled.";
            return Health::new(Status::Progressing, message);
        }
    };
    Health::new(word, status["message"].as_str().unwrap_or(fallback))
}

/// Rollouts of version 1 say how they are in `status.phase`; older ones have to be read like a Deployment.
pub(super) fn rollout(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let progressing = |message: &str| Health::new(Status::Progressing, message);
    if !is_observed(object) {
        return progressing("Waiting for rollout spec update to be observed");
    }
    if let Some(phase) = status["phase"].as_str() {
        let word = match phase {
            "Paused" => Some(Status::Suspended),
            other => Status::parse(other),
        };
        return Health::new(word.unwrap_or(Status::Unknown), text(&status["message"]));
    }
    let fault = conditions(&status["conditions"]).find(|condition| {
        condition.kind == "InvalidSpec"
            || condition.kind == "Progressing"
                && matches!(condition.reason, "RolloutAborted" | "ProgressDeadlineExceeded")
    });
    if let Some(fault) = fault {
        return Health::new(Status::Degraded, fault.words());
    }
    if !items(&status["pauseConditions"]).is_empty() || spec["paused"] == true {
        return Health::new(Status::Suspended, "Rollout is paused");
    }
    let Some(pods) = status["currentPodHash"].as_str() else {
        return progressing("Waiting for rollout to finish: status has not been reconciled.");
    };
    let (all, updated) = (number(&status["replicas"]), number(&status["updatedReplicas"]));
    if updated < spec["replicas"].as_i64().unwrap_or(1) {
        return progressing("Waiting for roll out to finish: More replicas need to be updated");
    }
    if number(&status["availableReplicas"]) < updated {
        return progressing("Waiting for roll out to finish: updated replicas are still becoming available");
    }
    let stable = status["stableRS"]
        .as_str()
        .unwrap_or(text(&status["canary"]["stableRS"]));
    if spec["strategy"]["blueGreen"].is_object() {
        if status["blueGreen"]["activeSelector"] != pods {
            return progressing("active service cutover pending");
        }
        if !stable.is_empty() && stable != pods {
            return progressing("waiting for analysis to complete");
        }
    } else if spec["strategy"]["canary"].is_object() {
        if all > updated {
            return progressing("Waiting for roll out to finish: old replicas are pending termination");
        }
        if stable != pods {
            return progressing("Waiting for rollout to finish steps");
        }
    }
    Health::plain(Status::Healthy)
}

/// Whether the controller has seen the newest spec, of the rollout and of the workload that it refers to.
fn is_observed(object: &Value) -> bool {
    let whole = |value: &Value| match value {
        Value::String(text) => text.parse::<i64>().ok(),
        other => other.as_i64(),
    };
    let status = &object["status"];
    if status.is_null() {
        return false;
    }
    let generation = number(&object["metadata"]["generation"]);
    // Before 0.10 this was a hash, which is no number or a very large one.
    let own = match whole(&status["observedGeneration"]) {
        Some(observed) if observed <= generation => observed == generation,
        _ => true,
    };
    let annotations = &object["metadata"]["annotations"];
    let workload = object["spec"]["workloadRef"].is_null()
        || annotations.is_null()
        || whole(&annotations["rollout.argoproj.io/workload-generation"])
            == whole(&status["workloadObservedGeneration"]);
    own && workload
}
