//! Certificates and their issuers.

use serde_json::Value;

use crate::view::conditions;
use crate::{Health, Status};

/// What the condition `Ready` says; `otherwise` while it says nothing.
fn ready(object: &Value, otherwise: &str) -> Health {
    let decided = conditions(&object["status"]["conditions"])
        .filter(|condition| condition.kind == "Ready")
        .find_map(|condition| match condition.status {
            "True" => Some(Health::new(Status::Healthy, condition.words())),
            "False" => Some(Health::new(Status::Degraded, condition.words())),
            _ => None,
        });
    decided.unwrap_or_else(|| Health::new(Status::Progressing, otherwise))
}

/// A certificate that is being issued is in progress even while an older one is still good or has gone bad.
pub(super) fn certificate(object: &Value) -> Health {
    let issuing =
        conditions(&object["status"]["conditions"]).find(|condition| condition.is("Issuing", "True"));
    match issuing {
        Some(issuing) => Health::new(Status::Progressing, issuing.words()),
        None => ready(object, "Waiting for certificate"),
    }
}

pub(super) fn issuer(object: &Value) -> Health {
    ready(object, "Initializing issuer")
}

pub(super) fn cluster_issuer(object: &Value) -> Health {
    ready(object, "Initializing ClusterIssuer")
}
