//! Volumes that are to come to a machine or go from it: `status.volumeRequests`.

use std::collections::BTreeSet;

use fairway_admission::{Place, Request};
use serde_json::{Value, json};

use super::super::{INSTANCES, cause, is_leaving, name, same, text};
use crate::settings::Settings;
use crate::validate::{self, Cause, CauseType};
use crate::view::{self, InstanceSpec};

const FIELD: &str = "Status.volumeRequests";

/// What is wrong with them. They are tried out on the template, and on the instance if there is one.
pub(super) fn check(request: &Request<'_>, vm: &Value, settings: &Settings) -> Vec<Cause> {
    let requests = vm["status"]["volumeRequests"].as_array();
    let requests: &[Value] = requests.map_or(&[], Vec::as_slice);
    if requests.is_empty() {
        return Vec::new();
    }
    let instance = (vm["status"]["ready"] == true)
        .then(|| {
            request
                .world
                .get(Place::Here, INSTANCES, request.namespace, name(vm))
        })
        .flatten()
        .filter(|instance| !is_leaving(instance));
    let template = vm.pointer("/spec/template/spec").cloned().unwrap_or_default();
    match tried(requests, template, instance.as_ref(), settings) {
        Ok(()) => Vec::new(),
        Err(causes) => causes,
    }
}

fn tried(
    requests: &[Value],
    mut template: Value,
    instance: Option<&Value>,
    settings: &Settings,
) -> Result<(), Vec<Cause>> {
    let wrong = |message: String| Err(vec![cause(CauseType::Invalid, FIELD, message)]);
    let (first_template, first_instance) = (template.clone(), instance.map(|it| it["spec"].clone()));
    let mut spec = first_instance.clone();
    let (mut coming, mut going) = (BTreeSet::new(), BTreeSet::new());
    for request in requests {
        let (add, remove) = (&request["addVolumeOptions"], &request["removeVolumeOptions"]);
        match (add.is_object(), remove.is_object()) {
            (true, true) => {
                return wrong(
                    "VolumeRequests require either addVolumeOptions or removeVolumeOptions to be set, not both"
                        .to_owned(),
                );
            }
            (false, false) => {
                return wrong(
                    "VolumeRequests require one of either addVolumeOptions or removeVolumeOptions to be set"
                        .to_owned(),
                );
            }
            (true, false) => {
                let name = text(add, "/name");
                if !coming.insert(name.to_owned()) {
                    return wrong(format!("AddVolume request for [{name}] aleady exists"));
                }
                disk(name, &add["disk"])
                    .map_err(|message| vec![cause(CauseType::Invalid, FIELD, message)])?;
                let volume = volume(add);
                let clashes = |spec: &Value| {
                    let existing = spec["volumes"].as_array().into_iter().flatten();
                    existing
                        .into_iter()
                        .any(|it| it["name"] == *name && !same(it, &volume))
                };
                if clashes(&first_template) {
                    return wrong(format!(
                        "AddVolume request for [{name}] conflicts with an existing volume of the same name on the vmi \
                         template."
                    ));
                }
                if first_instance.as_ref().is_some_and(clashes) {
                    return wrong(format!(
                        "AddVolume request for [{name}] conflicts with an existing volume of the same name on currently \
                         running vmi"
                    ));
                }
            }
            (false, true) => {
                let name = text(remove, "/name");
                if !going.insert(name.to_owned()) {
                    return wrong(format!("RemoveVolume request for [{name}] aleady exists"));
                }
            }
        }
        apply(request, &mut template);
        if let Some(spec) = &mut spec {
            apply(request, spec);
        }
    }
    for spec in [Some(template), spec].into_iter().flatten() {
        let Ok(spec) = view::read::<InstanceSpec>("VirtualMachineInstance", &spec) else {
            continue;
        };
        let causes = validate::spec("spec.template.spec", &spec, settings);
        if !causes.is_empty() {
            return Err(causes);
        }
    }
    let state = instance.map(|it| &it["status"]["migrationState"]);
    if state.is_some_and(|state| state.is_object() && state["completed"] != true && state["failed"] != true) {
        let message = "Cannot handle volume requests while VMI migration is in progress";
        return Err(vec![cause(CauseType::NotSupported, "spec", message)]);
    }
    Ok(())
}

/// A disk that comes to a machine that runs.
fn disk(name: &str, disk: &Value) -> Result<(), String> {
    if !disk.is_object() {
        return Err(format!(
            "AddVolume request for [{name}] requires the disk field to be set."
        ));
    }
    let Some(target) = ["disk", "lun"]
        .iter()
        .map(|it| &disk[*it])
        .find(|it| it.is_object())
    else {
        return Err(format!(
            "AddVolume request for [{name}] requires diskDevice of type 'disk' or 'lun' to be used."
        ));
    };
    let bus = text(target, "/bus");
    if bus != "scsi" {
        return Err(format!(
            "AddVolume request for [{name}] requires disk bus to be 'scsi'. [{bus}] is not permitted"
        ));
    }
    if disk["dedicatedIOThread"] == true {
        return Err("IOThreads are not supported by scsi bus.".to_owned());
    }
    Ok(())
}

/// The volume that a request describes.
fn volume(add: &Value) -> Value {
    let mut volume = json!({"name": add["name"]});
    for source in ["persistentVolumeClaim", "dataVolume"] {
        if add["volumeSource"][source].is_object() {
            volume[source] = add["volumeSource"][source].clone();
            break;
        }
    }
    volume
}

/// Puts a request into the spec of an instance.
fn apply(request: &Value, spec: &mut Value) {
    let add = &request["addVolumeOptions"];
    if add.is_object() {
        let existing = spec["volumes"].as_array().into_iter().flatten();
        if existing.into_iter().any(|it| it["name"] == add["name"]) {
            return;
        }
        let mut volume = volume(add);
        for source in ["persistentVolumeClaim", "dataVolume"] {
            if volume[source].is_object() {
                volume[source]["hotpluggable"] = true.into();
            }
        }
        let mut disk = add["disk"].clone();
        disk["name"] = add["name"].clone();
        crate::edit::append(spec, &["volumes"], vec![volume]);
        crate::edit::append(spec, &["domain", "devices", "disks"], vec![disk]);
        return;
    }
    let gone = &request["removeVolumeOptions"]["name"];
    for list in ["/volumes", "/domain/devices/disks"] {
        if let Some(items) = spec.pointer_mut(list).and_then(Value::as_array_mut) {
            items.retain(|it| it["name"] != *gone);
        }
    }
}
