//! Disks that a machine brings along, and what may not change while one of them is kept or brought back.

use fairway_admission::{Operation, Request};
use serde_json::Value;

use super::super::{cause, same, text};
use crate::validate::{Cause, CauseType};
use crate::view::{self, VirtualMachine};

/// Templates make disks in the machine's own namespace.
pub(super) fn template_namespaces(request: &Request<'_>, vm: &Value) -> Vec<Cause> {
    let templates = &vm["spec"]["dataVolumeTemplates"];
    if (request.old).is_some_and(|old| same(&old["spec"]["dataVolumeTemplates"], templates)) {
        return Vec::new();
    }
    let templates = templates.as_array().into_iter().flatten().enumerate();
    let wrong = templates.filter_map(|(index, template)| {
        let (own, namespace) = (request.namespace, text(template, "/metadata/namespace"));
        (!namespace.is_empty() && namespace != own).then(|| {
            let message =
                format!("Embedded DataVolume namespace {namespace} differs from VM namespace {own}");
            cause(
                CauseType::Invalid,
                format!("spec.dataVolumeTemplates[{index}]"),
                message,
            )
        })
    });
    wrong.collect()
}

/// What must wait for a snapshot or a restore that is under way.
pub(super) fn in_progress(request: &Request<'_>, vm: &Value) -> Vec<Cause> {
    let Some(old) = request.old.filter(|_| request.operation == Operation::Update) else {
        return Vec::new();
    };
    let held = |message: String| vec![cause(CauseType::NotSupported, "spec", message)];
    if let Some(snapshot) = vm["status"]["snapshotInProgress"].as_str() {
        let volumes = |vm: &Value| {
            vm.pointer("/spec/template/spec/volumes")
                .cloned()
                .unwrap_or_default()
        };
        if !same(&volumes(old), &volumes(vm)) {
            return held(format!(
                "Cannot update vm disks or volumes until snapshot \"{snapshot}\" completes"
            ));
        }
        if !says_the_same(&old["spec"], &vm["spec"]) {
            return held(format!(
                "Cannot update vm running state until snapshot \"{snapshot}\" completes"
            ));
        }
    }
    if let Some(restore) = vm["status"]["restoreInProgress"].as_str()
        && !same(&old["spec"], &vm["spec"])
        && strategy(old) != strategy(vm)
    {
        return held(format!(
            "Cannot update VM runStrategy until restore \"{restore}\" completes"
        ));
    }
    Vec::new()
}

/// Whether two specs say in the same way when the machine runs. Upstream does not translate between the two ways.
fn says_the_same(old: &Value, new: &Value) -> bool {
    ["running", "runStrategy"]
        .iter()
        .find(|field| !old[**field].is_null() && !new[**field].is_null())
        .is_some_and(|field| old[*field] == new[*field])
}

fn strategy(vm: &Value) -> Option<&'static str> {
    let vm: VirtualMachine = view::read("VirtualMachine", vm).ok()?;
    Some(vm.spec.strategy().word())
}
