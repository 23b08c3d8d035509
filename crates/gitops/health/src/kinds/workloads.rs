//! What `kubectl rollout status` would say of a workload, as a health.

use serde_json::Value;

use crate::view::{conditions, number, text};
use crate::{Health, Status};

/// Whether the controller has seen the newest spec.
fn is_observed(object: &Value) -> bool {
    number(&object["metadata"]["generation"]) <= number(&object["status"]["observedGeneration"])
}

fn unsupported(object: &Value) -> Option<Health> {
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let message = format!("unsupported {kind} version: {version}; write it as apps/v1");
    (version != "apps/v1").then(|| Health::new(Status::Unknown, message))
}

pub(super) fn deployment(object: &Value) -> Health {
    if let Some(unsupported) = unsupported(object) {
        return unsupported;
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    let waiting = |what: String| {
        Health::new(
            Status::Progressing,
            format!("Waiting for rollout to finish: {what}"),
        )
    };
    if spec["paused"] == true {
        return Health::new(Status::Suspended, "Deployment is paused");
    }
    if !is_observed(object) {
        return waiting("observed deployment generation less then desired generation".to_owned());
    }
    let progress = conditions(&status["conditions"]).find(|condition| condition.kind == "Progressing");
    if progress.is_some_and(|condition| condition.reason == "ProgressDeadlineExceeded") {
        let name = text(&object["metadata"]["name"]);
        return Health::new(
            Status::Degraded,
            format!("Deployment {name:?} exceeded its progress deadline"),
        );
    }
    let count = |field: &str| number(&status[field]);
    let (all, updated, available) = (
        count("replicas"),
        count("updatedReplicas"),
        count("availableReplicas"),
    );
    match spec["replicas"].as_i64() {
        Some(wanted) if updated < wanted => waiting(format!(
            "{updated} out of {wanted} new replicas have been updated..."
        )),
        _ if all > updated => waiting(format!(
            "{} old replicas are pending termination...",
            all - updated
        )),
        _ if available < updated => waiting(format!(
            "{available} of {updated} updated replicas are available..."
        )),
        _ => Health::plain(Status::Healthy),
    }
}

pub(super) fn replica_set(object: &Value) -> Health {
    if let Some(unsupported) = unsupported(object) {
        return unsupported;
    }
    let waiting = |what: String| {
        Health::new(
            Status::Progressing,
            format!("Waiting for rollout to finish: {what}"),
        )
    };
    if !is_observed(object) {
        return waiting("observed replica set generation less then desired generation".to_owned());
    }
    let failure =
        conditions(&object["status"]["conditions"]).find(|condition| condition.kind == "ReplicaFailure");
    if let Some(failure) = failure.filter(|condition| condition.status == "True") {
        return Health::new(Status::Degraded, failure.words());
    }
    let available = number(&object["status"]["availableReplicas"]);
    match object["spec"]["replicas"].as_i64() {
        Some(wanted) if available < wanted => waiting(format!(
            "{available} out of {wanted} new replicas are available..."
        )),
        _ => Health::plain(Status::Healthy),
    }
}

pub(super) fn daemon_set(object: &Value) -> Health {
    if let Some(unsupported) = unsupported(object) {
        return unsupported;
    }
    let status = &object["status"];
    if !is_observed(object) {
        return Health::new(
            Status::Progressing,
            "Waiting for rollout to finish: observed daemon set generation less then desired generation",
        );
    }
    let name = text(&object["metadata"]["name"]);
    let updated = number(&status["updatedNumberScheduled"]);
    let desired = number(&status["desiredNumberScheduled"]);
    let available = number(&status["numberAvailable"]);
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        let message = format!("daemon set {updated} out of {desired} new pods have been updated");
        return Health::new(Status::Healthy, message);
    }
    let waiting = |what: String| {
        let message = format!("Waiting for daemon set {name:?} rollout to finish: {what}");
        Health::new(Status::Progressing, message)
    };
    if updated < desired {
        return waiting(format!(
            "{updated} out of {desired} new pods have been updated..."
        ));
    }
    if available < desired {
        return waiting(format!("{available} of {desired} updated pods are available..."));
    }
    Health::plain(Status::Healthy)
}

pub(super) fn stateful_set(object: &Value) -> Health {
    if let Some(unsupported) = unsupported(object) {
        return unsupported;
    }
    let (spec, status) = (&object["spec"], &object["status"]);
    if number(&status["observedGeneration"]) == 0 || !is_observed(object) {
        return Health::new(
            Status::Progressing,
            "Waiting for statefulset spec update to be observed...",
        );
    }
    let (ready, updated) = (
        number(&status["readyReplicas"]),
        number(&status["updatedReplicas"]),
    );
    let wanted = spec["replicas"].as_i64();
    if let Some(wanted) = wanted.filter(|wanted| ready < *wanted) {
        let message = format!("Waiting for {} pods to be ready...", wanted - ready);
        return Health::new(Status::Progressing, message);
    }
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"].is_object() {
        let partition = strategy["rollingUpdate"]["partition"].as_i64();
        let above = wanted
            .zip(partition)
            .map(|(wanted, partition)| wanted - partition);
        if let Some(above) = above.filter(|above| updated < *above) {
            let message = format!(
                "Waiting for partitioned roll out to finish: {updated} out of {above} new pods have been updated..."
            );
            return Health::new(Status::Progressing, message);
        }
        let message = format!("partitioned roll out complete: {updated} new pods have been updated...");
        return Health::new(Status::Healthy, message);
    }
    if strategy["type"] == "OnDelete" {
        return Health::new(Status::Healthy, format!("statefulset has {ready} ready pods"));
    }
    let (update, current) = (text(&status["updateRevision"]), text(&status["currentRevision"]));
    if update != current {
        let message = format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {update}..."
        );
        return Health::new(Status::Progressing, message);
    }
    let pods = number(&status["currentReplicas"]);
    Health::new(
        Status::Healthy,
        format!("statefulset rolling update complete {pods} pods at revision {current}..."),
    )
}
