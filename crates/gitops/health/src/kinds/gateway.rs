//! Gateways, their routes, and the policies that are attached to them.
//!
//! A route or policy has a status per parent; conditions about an older generation say nothing about this one.

use serde_json::Value;

use crate::view::{conditions, items, text};
use crate::{Health, Status};

/// Refused, or not yet at work; `subject` goes before the message.
fn trouble(list: &Value, subject: &str, what: &str) -> Option<Health> {
    for kind in ["ResolvedRefs", "Accepted"] {
        if let Some(refused) = conditions(list).find(|condition| condition.is(kind, "False")) {
            let fallback = format!("Failed condition: {kind}");
            let message = refused.message.unwrap_or(&fallback);
            return Some(Health::new(Status::Degraded, format!("{subject}{message}")));
        }
    }
    let unfinished =
        conditions(list).find(|condition| condition.kind == "Programmed" && condition.status != "True")?;
    let fallback = format!("{what} is still being programmed");
    let message = unfinished.message.unwrap_or(&fallback);
    Some(Health::new(Status::Progressing, format!("{subject}{message}")))
}

/// Whether what a parent says is about the newest generation.
fn is_current(object: &Value, list: &Value) -> bool {
    let Some(generation) = object["metadata"]["generation"].as_i64() else {
        return true;
    };
    let stale = |observed: Option<i64>| observed.is_some_and(|observed| observed != generation);
    !items(list).is_empty() && !conditions(list).any(|condition| stale(condition.observed_generation))
}

pub(super) fn gateway(object: &Value) -> Health {
    let status = &object["status"];
    let own = trouble(&status["conditions"], "", "Gateway");
    let listeners = || items(&status["listeners"]).iter();
    let troubles = own.or_else(|| {
        listeners().find_map(|listener| trouble(&listener["conditions"], "Listener: ", "Listener"))
    });
    match troubles {
        Some(health) => health,
        None if status["conditions"].is_array() || listeners().next().is_some() => {
            Health::new(Status::Healthy, "Gateway is healthy")
        }
        None => Health::new(Status::Progressing, "Waiting for Gateway status"),
    }
}

pub(super) fn gateway_class(object: &Value) -> Health {
    let generation = object["metadata"]["generation"].as_i64();
    let accepted = conditions(&object["status"]["conditions"])
        .filter(|condition| condition.kind == "Accepted")
        .find(|condition| match (generation, condition.observed_generation) {
            (Some(generation), Some(observed)) => generation == observed,
            _ => true,
        });
    let (status, fallback) = match accepted.map(|condition| condition.status) {
        Some("True") => (Status::Healthy, "GatewayClass is accepted"),
        Some("False") => (Status::Degraded, "GatewayClass is not accepted"),
        _ => (Status::Progressing, "Waiting for GatewayClass status"),
    };
    Health::new(
        status,
        accepted
            .and_then(|condition| condition.message)
            .unwrap_or(fallback),
    )
}

pub(super) fn route(object: &Value) -> Health {
    let kind = text(&object["kind"]);
    let parents = || {
        items(&object["status"]["parents"])
            .iter()
            .filter(|parent| parent["conditions"].is_array() && is_current(object, &parent["conditions"]))
    };
    for parent in parents() {
        let subject = format!("Parent {}: ", text(&parent["parentRef"]["name"]));
        if let Some(health) = trouble(&parent["conditions"], &subject, "Route") {
            return health;
        }
    }
    match parents().any(|parent| !items(&parent["conditions"]).is_empty()) {
        true => Health::new(Status::Healthy, format!("{kind} is healthy")),
        false => Health::new(Status::Progressing, format!("Waiting for {kind} status")),
    }
}

pub(super) fn backend_tls_policy(object: &Value) -> Health {
    let kind = text(&object["kind"]);
    let ancestors = items(&object["status"]["ancestors"]);
    let name = |ancestor: &Value| text(&ancestor["ancestorRef"]["name"]).to_owned();
    let generation = object["metadata"]["generation"].as_i64();
    let mut health = Health::new(Status::Progressing, format!("Waiting for {kind} status"));
    for ancestor in ancestors {
        let stale = conditions(&ancestor["conditions"]).any(|condition| {
            let both = generation.zip(condition.observed_generation);
            both.is_some_and(|(generation, observed)| generation != observed)
        });
        if stale {
            let message = format!("Waiting for Ancestor {} to update {kind} status", name(ancestor));
            return Health::new(Status::Progressing, message);
        }
    }
    for ancestor in ancestors {
        for condition in conditions(&ancestor["conditions"]) {
            match (condition.kind, condition.status) {
                ("Accepted", "True") => health = Health::new(Status::Healthy, format!("{kind} is healthy")),
                ("Accepted" | "ResolvedRefs", status) if status != "True" => {
                    let message = format!("Ancestor {}: {}", name(ancestor), condition.words());
                    return Health::new(Status::Degraded, message);
                }
                _ => {}
            }
        }
    }
    health
}

/// A policy of Kuadrant: accepted by its target, and enforced by whatever enforces it. One that another overrides is
/// accepted and not enforced, which is what its author's platform wants.
pub(super) fn policy(object: &Value) -> Health {
    let kind = text(&object["kind"]);
    let list = &object["status"]["conditions"];
    let generation = object["metadata"]["generation"].as_i64();
    let observed = object["status"]["observedGeneration"].as_i64();
    if generation
        .zip(observed)
        .is_some_and(|(wanted, seen)| seen < wanted)
    {
        return Health::new(Status::Progressing, format!("Waiting for {kind} status"));
    }
    let find = |wanted: &'static str| conditions(list).find(move |condition| condition.kind == wanted);
    let Some(accepted) = find("Accepted") else {
        return Health::new(Status::Progressing, format!("Waiting for {kind} status"));
    };
    if accepted.status != "True" {
        return Health::new(Status::Degraded, accepted.words());
    }
    match find("Enforced") {
        None => Health::new(Status::Progressing, format!("{kind} is not enforced yet")),
        Some(enforced) if enforced.status == "True" => Health::new(Status::Healthy, enforced.words()),
        Some(enforced) if enforced.reason == "Overridden" => Health::new(Status::Suspended, enforced.words()),
        Some(enforced) => Health::new(Status::Degraded, enforced.words()),
    }
}
