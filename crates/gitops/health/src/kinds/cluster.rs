//! Services, claims, ingresses, budgets, and what extends the API itself.

use serde_json::Value;

use crate::view::{conditions, items, text};
use crate::{Health, Status};

fn has_address(object: &Value) -> Status {
    match items(&object["status"]["loadBalancer"]["ingress"]).is_empty() {
        true => Status::Progressing,
        false => Status::Healthy,
    }
}

pub(super) fn service(object: &Value) -> Health {
    Health::plain(match text(&object["spec"]["type"]) {
        "LoadBalancer" => has_address(object),
        _ => Status::Healthy,
    })
}

pub(super) fn ingress(object: &Value) -> Health {
    Health::plain(has_address(object))
}

pub(super) fn persistent_volume_claim(object: &Value) -> Health {
    Health::plain(match text(&object["status"]["phase"]) {
        "Lost" => Status::Degraded,
        "Pending" => Status::Progressing,
        "Bound" => Status::Healthy,
        _ => Status::Unknown,
    })
}

pub(super) fn api_service(object: &Value) -> Health {
    let available =
        conditions(&object["status"]["conditions"]).find(|condition| condition.kind == "Available");
    let Some(available) = available else {
        return Health::new(Status::Progressing, "Waiting to be processed");
    };
    let status = match available.status {
        "True" => Status::Healthy,
        _ => Status::Progressing,
    };
    Health::new(status, format!("{}: {}", available.reason, available.words()))
}

pub(super) fn pod_disruption_budget(object: &Value) -> Health {
    let mut health = Health::new(Status::Progressing, "Waiting for status");
    for condition in conditions(&object["status"]["conditions"]) {
        let message = format!("PodDisruptionBudget has {}", condition.reason);
        // Too few pods may be what its author wants, as for a single replica that must never be evicted.
        if condition.status == "False" && condition.reason != "InsufficientPods" {
            return Health::new(Status::Degraded, message);
        }
        health = Health::new(Status::Healthy, message);
    }
    health
}

pub(super) fn custom_resource_definition(object: &Value) -> Health {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Health::new(Status::Progressing, "CRD is terminating");
    }
    let list = &object["status"]["conditions"];
    if items(list).is_empty() {
        return Health::new(Status::Progressing, "Status conditions not found");
    }
    let mut established = false;
    for condition in conditions(list) {
        let message = condition.words();
        match (condition.kind, condition.status) {
            ("Terminating", "True") => {
                return Health::new(Status::Progressing, format!("CRD is terminating: {message}"));
            }
            ("NamesAccepted", "False") => {
                let message = format!("CRD names have not been accepted: {message}");
                return Health::new(Status::Degraded, message);
            }
            ("NonStructuralSchema", "True") => {
                return Health::new(Status::Degraded, format!("Schema violations found: {message}"));
            }
            ("Established", "True") => established = true,
            ("Established", _) if condition.reason == "Installing" => {
                return Health::new(Status::Progressing, "CRD is being installed");
            }
            _ => {}
        }
    }
    match established {
        true => Health::new(Status::Healthy, "CRD is healthy"),
        false => Health::new(Status::Degraded, "CRD is not established"),
    }
}
