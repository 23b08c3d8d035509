//! VirtualMachineInstances, whether a machine makes them or a person.

use fairway_admission::{Admission, Impact, Operation, Refusal, Request, Verdict};
use serde_json::{Value, json};

use super::{ADDRESS_ANNOTATION, WIRING, is_ours, machine, same, settings, verdict};
use crate::edit::{append, set};
use crate::node::{MIGRATION_SOURCE_ANNOTATION, MIGRATION_TARGET_ANNOTATION, RUNS_ON_ANNOTATION};
use crate::phase;
use crate::validate;
use crate::view::{self, VirtualMachineInstance};
use crate::{defaults, impact};

mod update;

const MUTATOR: &str = "virtualmachineinstances-mutator.kubevirt.io";
const CREATE_VALIDATOR: &str = "virtualmachineinstances-create-validator.kubevirt.io";
const UPDATE_VALIDATOR: &str = "virtualmachineinstances-update-validator.kubevirt.io";

/// The kind.
pub(super) struct Instances;

impl Admission for Instances {
    fn complete(&self, request: &Request<'_>, vmi: &mut Value) -> Verdict {
        keep_address(request, vmi);
        keep_migration(request, vmi);
        match request.operation {
            Operation::Create => begin(request, vmi)?,
            Operation::Update => keep_status(request, vmi),
            Operation::Delete => {}
        }
        Ok(Vec::new())
    }

    fn judge(&self, request: &Request<'_>, vmi: &Value) -> Verdict {
        match (request.operation, request.old) {
            (Operation::Create, _) => {
                let settings = settings(request.world);
                let read: VirtualMachineInstance = view::read("VirtualMachineInstance", vmi)
                    .map_err(|error| Refusal::failed(CREATE_VALIDATOR, error.to_string()))?;
                let causes = validate::instance(&read.spec, &read.metadata, &settings, is_ours(request));
                verdict(CREATE_VALIDATOR, &causes)?;
                Ok(match is_ours(request) {
                    // Who wrote the machine was told.
                    true => Vec::new(),
                    false => machine::unserved(vmi, "spec", &settings),
                })
            }
            (Operation::Update, Some(old)) => {
                // Its status is written often, and has nothing to do with settings.
                let settings = || settings(request.world);
                let causes = update::check(old, vmi, is_ours(request), settings);
                verdict(UPDATE_VALIDATOR, &causes)?;
                Ok(Vec::new())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn impact(&self, request: &Request<'_>, vmi: &Value) -> Option<Impact> {
        let said = |class: impact::Impact, reason: &str| Impact {
            class: class.to_string(),
            reason: reason.to_owned(),
        };
        let owners = vmi["metadata"]["ownerReferences"].as_array();
        let of_machine = owners
            .into_iter()
            .flatten()
            .any(|it| it["kind"] == "VirtualMachine");
        Some(match (request.operation, request.old) {
            (Operation::Delete, _) if of_machine => {
                let reason = "the guest is shut down; its machine starts it again if it is to run";
                said(impact::Impact::Restart, reason)
            }
            (Operation::Delete, _) => said(impact::Impact::Recreation, "the machine is deleted"),
            (Operation::Update, Some(old)) if !same(&old["spec"], &vmi["spec"]) => {
                said(impact::Impact::Live, "the instance is changed while it runs")
            }
            _ => said(impact::Impact::None, ""),
        })
    }
}

/// A new instance: complete, pending, and kept until its guest is gone.
fn begin(request: &Request<'_>, vmi: &mut Value) -> Result<(), Refusal> {
    // Where it runs and which address it has is not for its author to say.
    if let Some(fields) = vmi.as_object_mut().filter(|_| !is_ours(request)) {
        fields.shift_remove("status");
    }
    defaults::instance(vmi, &settings(request.world))
        .map_err(|why| Refusal::failed(MUTATOR, why.to_string()))?;
    let finalizers = vmi["metadata"]["finalizers"].as_array();
    if !finalizers.is_some_and(|all| all.iter().any(|it| it == phase::FINALIZER)) {
        append(vmi, &["metadata", "finalizers"], vec![phase::FINALIZER.into()]);
    }
    set(vmi, &["status", "phase"], "Pending");
    let began = json!({"phase": "Pending", "phaseTransitionTimestamp": request.now});
    append(vmi, &["status", "phaseTransitionTimestamps"], vec![began]);
    Ok(())
}

/// Status and labels are written at once, so there is no subresource for the status; what others write to it has no
/// effect.
fn keep_status(request: &Request<'_>, vmi: &mut Value) {
    let Some(old) = request.old.filter(|_| !is_ours(request)) else {
        return;
    };
    let Some(fields) = vmi.as_object_mut() else {
        return;
    };
    match old.get("status") {
        Some(status) => fields.insert("status".to_owned(), status.clone()),
        None => fields.shift_remove("status"),
    };
}

/// What nodes tell each other about a machine that moves decides whom they believe; nobody else has a say.
fn keep_migration(request: &Request<'_>, vmi: &mut Value) {
    if is_ours(request) && request.operation != Operation::Create {
        return;
    }
    for name in [
        MIGRATION_SOURCE_ANNOTATION,
        MIGRATION_TARGET_ANNOTATION,
        RUNS_ON_ANNOTATION,
    ] {
        let kept = request
            .old
            .map(|old| old["metadata"]["annotations"][name].clone())
            .filter(Value::is_string);
        match kept {
            Some(said) => set(vmi, &["metadata", "annotations", name], said),
            None => {
                let annotations = vmi.pointer_mut("/metadata/annotations");
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    annotations.shift_remove(name);
                }
            }
        }
    }
}

/// An address that somebody writes himself could be another machine's. It may have come from a template, so it matters
/// not who makes the instance.
fn keep_address(request: &Request<'_>, vmi: &mut Value) {
    if request.user == WIRING && !request.is_local_user {
        return;
    }
    let kept = request
        .old
        .map(|old| old["metadata"]["annotations"][ADDRESS_ANNOTATION].clone())
        .filter(Value::is_string);
    match kept {
        Some(address) => set(vmi, &["metadata", "annotations", ADDRESS_ANNOTATION], address),
        None => {
            let annotations = vmi.pointer_mut("/metadata/annotations");
            if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                annotations.shift_remove(ADDRESS_ANNOTATION);
            }
        }
    }
}
