//! Snapshots of single volumes, which Kubernetes judges by rules of their definition.

use fairway_admission::{Admission, Impact, Operation, Request, Verdict};
use serde_json::Value;

use super::{cause, same, verdict};
use crate::impact;
use crate::validate::{Cause, CauseType};

const VALIDATOR: &str = "validation-webhook.snapshot.storage.k8s.io";

/// VolumeSnapshots.
pub(super) struct VolumeSnapshots;
/// What they kept.
pub(super) struct Contents;

impl Admission for VolumeSnapshots {
    fn judge(&self, request: &Request<'_>, snapshot: &Value) -> Verdict {
        let source = &snapshot["spec"]["source"];
        let mut causes = match (request.operation, request.old) {
            (Operation::Delete, _) => Vec::new(),
            (_, Some(old)) => stays(&old["spec"]["source"], source),
            (_, None) => one_of(source, ["volumeSnapshotContentName", "persistentVolumeClaimName"]),
        };
        if snapshot["spec"]["volumeSnapshotClassName"] == "" {
            let message = "volumeSnapshotClassName must not be the empty string when set";
            causes.push(wrong("spec.volumeSnapshotClassName", message));
        }
        verdict(VALIDATOR, &causes)?;
        Ok(Vec::new())
    }

    fn impact(&self, request: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(gone(request))
    }
}

impl Admission for Contents {
    fn judge(&self, request: &Request<'_>, content: &Value) -> Verdict {
        let source = &content["spec"]["source"];
        let causes = match (request.operation, request.old) {
            (Operation::Delete, _) => Vec::new(),
            (_, Some(old)) => stays(&old["spec"]["source"], source),
            (_, None) => one_of(source, ["volumeHandle", "snapshotHandle"]),
        };
        verdict(VALIDATOR, &causes)?;
        Ok(Vec::new())
    }

    fn impact(&self, request: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(gone(request))
    }
}

fn gone(request: &Request<'_>) -> Impact {
    let (class, reason) = match request.operation {
        Operation::Delete => (impact::Impact::DataLoss, "what the snapshot kept is gone"),
        _ => (impact::Impact::None, ""),
    };
    Impact {
        class: class.to_string(),
        reason: reason.to_owned(),
    }
}

fn wrong(field: &str, message: impl Into<String>) -> Cause {
    cause(CauseType::Invalid, field, message)
}

fn one_of(source: &Value, fields: [&str; 2]) -> Vec<Cause> {
    let set = fields.iter().filter(|field| source[**field].is_string()).count();
    let [one, other] = fields;
    match set {
        1 => Vec::new(),
        _ => vec![wrong(
            "spec.source",
            format!("exactly one of {one} and {other} must be set"),
        )],
    }
}

fn stays(old: &Value, new: &Value) -> Vec<Cause> {
    match same(old, new) {
        true => Vec::new(),
        false => {
            let fields = old.as_object().into_iter().flatten();
            let changed = fields.filter(|(field, value)| new.get(field) != Some(value));
            let field = changed
                .map(|(field, _)| field.as_str())
                .next()
                .unwrap_or("source");
            vec![wrong("spec.source", format!("{field} is immutable"))]
        }
    }
}
