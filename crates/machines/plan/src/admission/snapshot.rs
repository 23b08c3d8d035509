//! Snapshots of machines, what they keep, and bringing a machine back to one.

use fairway_admission::{Admission, Impact, Operation, Place, Refusal, Request, Resource, Verdict};
use serde_json::Value;

use super::{MACHINES, cause, not_found, same, text, verdict};
use crate::impact;
use crate::validate::{Cause, CauseType};

pub(super) const SNAPSHOTS: Resource = Resource::new("snapshot.kubevirt.io", "virtualmachinesnapshots");
pub(super) const CONTENTS: Resource = Resource::new("snapshot.kubevirt.io", "virtualmachinesnapshotcontents");
const RESTORES: Resource = Resource::new("snapshot.kubevirt.io", "virtualmachinerestores");
const SNAPSHOT_VALIDATOR: &str = "virtualmachinesnapshot-validator.snapshot.kubevirt.io";
const RESTORE_VALIDATOR: &str = "virtualmachinerestore-validator.snapshot.kubevirt.io";
/// A namespace with more restores than this is not searched further for one that is under way.
const MOST: usize = 10_000;

/// VirtualMachineSnapshots.
pub(super) struct Snapshots;
/// VirtualMachineSnapshotContents.
pub(super) struct Contents;
/// VirtualMachineRestores.
pub(super) struct Restores;

impl Admission for Snapshots {
    fn judge(&self, request: &Request<'_>, snapshot: &Value) -> Verdict {
        let causes = match (request.operation, request.old) {
            (Operation::Create, _) => of_machine("spec.source", &snapshot["spec"]["source"]),
            (Operation::Update, Some(old)) => stays(old, snapshot),
            _ => Vec::new(),
        };
        verdict(SNAPSHOT_VALIDATOR, &causes)?;
        Ok(Vec::new())
    }

    fn impact(&self, request: &Request<'_>, snapshot: &Value) -> Option<Impact> {
        let is_kept = snapshot["spec"]["deletionPolicy"] == "Retain";
        Some(match request.operation {
            Operation::Delete if !is_kept => told(impact::Impact::DataLoss, "what the snapshot kept is gone"),
            _ => told(impact::Impact::None, ""),
        })
    }
}

impl Admission for Contents {
    fn impact(&self, request: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(match request.operation {
            Operation::Delete => told(impact::Impact::DataLoss, "what the snapshot kept is gone"),
            _ => told(impact::Impact::None, ""),
        })
    }
}

impl Admission for Restores {
    fn judge(&self, request: &Request<'_>, restore: &Value) -> Verdict {
        let causes = match (request.operation, request.old) {
            (Operation::Create, _) => {
                restorable(request, restore).map_err(|why| Refusal::failed(RESTORE_VALIDATOR, why))?
            }
            (Operation::Update, Some(old)) => stays(old, restore),
            _ => Vec::new(),
        };
        verdict(RESTORE_VALIDATOR, &causes)?;
        Ok(Vec::new())
    }

    fn impact(&self, request: &Request<'_>, restore: &Value) -> Option<Impact> {
        let name = text(restore, "/spec/target/name");
        let target = (request.world).get(Place::Here, MACHINES, request.namespace, name);
        Some(match request.operation {
            Operation::Create if target.is_some() => {
                let reason = format!("what {name} wrote since the snapshot is gone");
                told(impact::Impact::DataLoss, &reason)
            }
            _ => told(impact::Impact::None, ""),
        })
    }
}

fn told(class: impact::Impact, reason: &str) -> Impact {
    Impact {
        class: class.to_string(),
        reason: reason.to_owned(),
    }
}

/// A reference names a VirtualMachine.
fn of_machine(field: &str, reference: &Value) -> Vec<Cause> {
    let (kind, part, message) = match (reference["apiGroup"].as_str(), text(reference, "/kind")) {
        (None, _) => (CauseType::NotFound, "apiGroup", "missing apiGroup"),
        (Some("kubevirt.io"), "VirtualMachine") => return Vec::new(),
        (Some("kubevirt.io"), _) => (CauseType::Invalid, "kind", "invalid kind"),
        (Some(_), _) => (CauseType::Invalid, "apiGroup", "invalid apiGroup"),
    };
    vec![cause(kind, format!("{field}.{part}"), message)]
}

fn stays(old: &Value, new: &Value) -> Vec<Cause> {
    match same(&old["spec"], &new["spec"]) {
        true => Vec::new(),
        false => vec![cause(
            CauseType::Invalid,
            "spec",
            "spec in immutable after creation",
        )],
    }
}

fn restorable(request: &Request<'_>, restore: &Value) -> Result<Vec<Cause>, String> {
    let target = &restore["spec"]["target"];
    let mut causes = of_machine("spec.target", target);
    if causes.is_empty() {
        causes = fits(request, restore)?;
    }
    let others = request
        .world
        .list(Place::Here, RESTORES, Some(request.namespace), MOST);
    for other in &others {
        if same(&other["spec"]["target"], target) && other["status"]["complete"] != true {
            let message = format!("VirtualMachineRestore {:?} in progress", super::name(other));
            causes.push(cause(CauseType::Invalid, "spec.target", message));
        }
    }
    Ok(causes)
}

/// The snapshot suits the machine that it is brought back to.
fn fits(request: &Request<'_>, restore: &Value) -> Result<Vec<Cause>, String> {
    let spec = &restore["spec"];
    let patches = spec["patches"].as_array().into_iter().flatten();
    let causes: Vec<Cause> = patches.filter_map(Value::as_str).flat_map(patch_faults).collect();
    let get = |resource, name: &str| (request.world).get(Place::Here, resource, request.namespace, name);
    let Some(snapshot) = get(SNAPSHOTS, text(spec, "/virtualMachineSnapshotName")) else {
        // One that is yet to be made; upstream lets everything pass then.
        return Ok(Vec::new());
    };
    let target = get(MACHINES, text(spec, "/target/name"));
    let source = text(&snapshot, "/status/sourceUID");
    let is_another = match &target {
        None => true,
        Some(target) => !source.is_empty() && text(target, "/metadata/uid") != source,
    };
    if !is_another {
        return Ok(causes);
    }
    let Some(content) = snapshot["status"]["virtualMachineSnapshotContentName"].as_str() else {
        return Err("snapshot content name is nil in vmSnapshot status".to_owned());
    };
    let content = get(CONTENTS, content).ok_or_else(|| not_found(CONTENTS, content))?;
    match content["spec"]["source"]["virtualMachine"].is_object() {
        true => Ok(causes),
        false => Err("unexpected snapshot source".to_owned()),
    }
}

/// Patches change labels, annotations and the spec. Upstream takes them apart by commas and colons, not as JSON.
fn patch_faults(patch: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut wrong = |message: String| causes.push(cause(CauseType::Invalid, "spec.patches", message));
    let allowed = ["/metadata/labels/", "/metadata/annotations/", "/spec/"];
    // Upstream goes by commas and colons alone, and so refuses the MAC addresses of its own clones.
    if let Ok(Value::Object(step)) = serde_json::from_str(patch) {
        let path = step.get("path").and_then(Value::as_str).unwrap_or_default();
        if !allowed.iter().any(|start| path.starts_with(start)) {
            wrong(format!(
                "patching is valid only for elements under /spec/ only:  \"path\": \"{path}\""
            ));
        }
        return causes;
    }
    for pair in patch.trim_matches(['{', '}']).split(',') {
        let parts: Vec<&str> = pair.split(':').map(str::trim).collect();
        let [key, value] = parts.as_slice() else {
            wrong(format!(
                "patch format is not valid - one \":\" expected in a single key-value json patch: {pair}"
            ));
            continue;
        };
        let value = value.trim_start_matches('"');
        if *key == "\"path\"" && !allowed.iter().any(|start| value.starts_with(start)) {
            wrong(format!(
                "patching is valid only for elements under /spec/ only: {pair}"
            ));
        }
    }
    causes
}
