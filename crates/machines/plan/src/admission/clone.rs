//! VirtualMachineClones: a machine like another.

use fairway_admission::{Admission, Impact, Operation, Place, Request, Verdict};
use serde_json::{Value, json};

use super::snapshot::{CONTENTS, SNAPSHOTS};
use super::{cause, name, text, verdict};
use crate::edit::set;
use crate::identity;
use crate::impact;
use crate::validate::{Cause, CauseType};

const VALIDATOR: &str = "vm-clone-validator.kubevirt.io";

/// The kind.
pub(super) struct Clones;

impl Admission for Clones {
    fn complete(&self, request: &Request<'_>, clone: &mut Value) -> Verdict {
        if request.operation != Operation::Create || !text(clone, "/spec/target/name").is_empty() {
            return Ok(Vec::new());
        }
        let source = text(clone, "/spec/source/name");
        let chosen = format!("clone-{source}-{}", request.world.name_suffix());
        if clone["spec"]["target"].is_object() {
            set(clone, &["spec", "target", "name"], chosen);
        } else {
            let target = json!({"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": chosen});
            set(clone, &["spec", "target"], target);
        }
        Ok(Vec::new())
    }

    fn judge(&self, request: &Request<'_>, clone: &Value) -> Verdict {
        if request.operation != Operation::Delete && request.subresource.is_none() {
            verdict(VALIDATOR, &faults(request, clone))?;
        }
        Ok(Vec::new())
    }

    fn impact(&self, _: &Request<'_>, _: &Value) -> Option<Impact> {
        Some(Impact {
            class: impact::Impact::None.to_string(),
            ..Impact::default()
        })
    }
}

fn faults(request: &Request<'_>, clone: &Value) -> Vec<Cause> {
    let spec = &clone["spec"];
    let mut causes = Vec::new();
    for (list, field) in [
        (&spec["annotationFilters"], "spec.annotations"),
        (&spec["labelFilters"], "spec.labels"),
        (
            &spec["template"]["annotationFilters"],
            "spec.template.annotations",
        ),
        (&spec["template"]["labelFilters"], "spec.template.labels"),
    ] {
        let filters = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        causes.extend(filters.flat_map(|filter| filter_faults(filter, field)));
    }
    let mut wrong = |field: &str, message: &str| causes.push(cause(CauseType::Invalid, field, message));
    let (source, target) = (&spec["source"], &spec["target"]);
    let kind = text(source, "/kind");
    let is_known = ["VirtualMachine", "VirtualMachineSnapshot"].contains(&kind);
    if !is_known {
        wrong("spec.Source.Kind", "Source kind is not supported");
    }
    if target.is_object() && target["kind"] != "VirtualMachine" {
        wrong("spec.Target.Kind", "Target kind is not supported");
    }
    if text(source, "/apiGroup").is_empty() {
        wrong("spec.Source.APIGroup", "Source's APIGroup cannot be empty");
    }
    if kind.is_empty() {
        wrong("spec.Source", "Source's Kind cannot be empty");
    }
    let origin = text(source, "/name");
    if origin.is_empty() {
        wrong("spec.Source.Name", "Source's name cannot be empty");
    } else if kind == "VirtualMachineSnapshot" {
        for message in snapshot_faults(request, origin) {
            wrong("spec.Source", &message);
        }
    } else if !kind.is_empty() && !is_known {
        wrong("spec.Source", "Source's Kind is invalid");
    }
    if kind == "VirtualMachine" && target["kind"] == "VirtualMachine" && target["name"] == source["name"] {
        wrong(
            "spec.target.name",
            "Target name cannot be equal to source name when both are VirtualMachines",
        );
    }
    let addresses = spec["newMacAddresses"].as_object().into_iter().flatten();
    for (interface, address) in addresses {
        let address = address.as_str().unwrap_or_default();
        if !address.is_empty() && identity::parse_mac(address).is_none_or(|bytes| bytes.len() > 6) {
            let message = format!("interface {interface} has malformed MAC address ({address}).");
            wrong(&format!("spec.newMacAddresses.{interface}"), &message);
        }
    }
    causes
}

/// A filter: an exclamation mark only in front, a star only at the end.
fn filter_faults(filter: &str, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut wrong = |message: String| causes.push(cause(CauseType::Invalid, field, message));
    if filter.chars().count() < 2 {
        if filter == "!" {
            wrong("a negation character is not a valid filter".to_owned());
        }
        return causes;
    }
    let mut ends = filter.chars();
    ends.next();
    if ends.as_str().contains('!') {
        wrong(format!(
            "{field} filter {filter} is invalid: cannot contain a negation character (!); FilterRules: NegationChar can be \
             only used at the beginning of the filter"
        ));
    }
    let mut ends = filter.chars();
    ends.next_back();
    if ends.as_str().contains('*') {
        wrong(format!(
            "{field} filter {filter} is invalid: cannot contain a wildcard character (*); FilterRules: WildcardChar can be \
             only at the end of the filter"
        ));
    }
    causes
}

/// A snapshot that a machine is made from has all of its disks.
fn snapshot_faults(request: &Request<'_>, snapshot: &str) -> Vec<String> {
    let get = |resource, name: &str| (request.world).get(Place::Here, resource, request.namespace, name);
    let Some(object) = get(SNAPSHOTS, snapshot) else {
        return vec![format!(
            "VirtualMachineSnapshot {snapshot} does not exist in namespace {}",
            request.namespace
        )];
    };
    let content = text(&object, "/status/virtualMachineSnapshotContentName");
    let found = match content {
        "" => Err(format!("VirtualMachineSnapshot {snapshot} has nil contents name")),
        content => get(CONTENTS, content).ok_or_else(|| super::not_found(CONTENTS, content)),
    };
    let content = match found {
        Ok(content) => content,
        Err(why) => return vec![format!("cannot get snapshot contents: {why}")],
    };
    let Some(kept_as) = content["spec"]["virtualMachineSnapshotName"].as_str() else {
        return vec![format!(
            "cannot get snapshot name from content {}",
            name(&content)
        )];
    };
    let vm = &content["spec"]["source"]["virtualMachine"];
    let backups = content["spec"]["volumeBackups"].as_array();
    let is_kept = |volume: &Value| {
        let mut backups = backups.into_iter().flatten();
        backups.any(|backup| backup["volumeName"] == volume["name"])
    };
    let volumes = vm
        .pointer("/spec/template/spec/volumes")
        .and_then(Value::as_array);
    volumes
        .into_iter()
        .flatten()
        .filter(|it| it["persistentVolumeClaim"].is_object() || it["dataVolume"].is_object())
        .filter(|volume| !is_kept(volume))
        .map(|volume| {
            format!(
                "volume {} is not backed up in snapshot {kept_as}",
                text(volume, "/name")
            )
        })
        .collect()
}
