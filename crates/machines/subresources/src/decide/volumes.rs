//! Disks that come and go while a machine runs: as a request to whoever runs machines, which makes it last, or in the
//! instance alone.

use serde_json::{Value, json};

use super::{Step, Verdict, is_running, name};
use crate::refusal::{About, Refusal};

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// `AddVolumeOptions`, completed.
    Add(Value),
    /// `RemoveVolumeOptions`.
    Remove(Value),
}

impl Change {
    /// Reads and completes `AddVolumeOptions`.
    pub fn add(mut options: Value) -> Result<Self, Refusal> {
        object(&options)?;
        let wanted = name_of(&options).to_owned();
        if wanted.is_empty() {
            return Err(Refusal::bad_request("AddVolumeOptions requires name to be set"));
        }
        if !options["disk"].is_object() {
            return Err(Refusal::bad_request(
                "AddVolumeOptions requires disk to not be nil",
            ));
        }
        if !options["volumeSource"].is_object() {
            return Err(Refusal::bad_request(
                "AddVolumeOptions requires VolumeSource to not be nil",
            ));
        }
        options["disk"]["name"] = wanted.into();
        let source = &mut options["volumeSource"];
        let Some(kind) = ["dataVolume", "persistentVolumeClaim"]
            .into_iter()
            .find(|kind| source[kind].is_object())
        else {
            return Err(Refusal::bad_request(
                "AddVolumeOptions requires VolumeSource to name a dataVolume or a persistentVolumeClaim",
            ));
        };
        source[kind]["hotpluggable"] = true.into();
        Ok(Self::Add(options))
    }

    /// Reads `RemoveVolumeOptions`.
    pub fn remove(options: Value) -> Result<Self, Refusal> {
        object(&options)?;
        match name_of(&options) {
            "" => Err(Refusal::bad_request(
                "RemoveVolumeOptions requires name to be set",
            )),
            _ => Ok(Self::Remove(options)),
        }
    }

    /// What is to be written is only to be tried.
    pub fn dry_run(&self) -> Option<Vec<String>> {
        let (Self::Add(options) | Self::Remove(options)) = self;
        serde_json::from_value(options["dryRun"].clone()).ok()
    }

    fn request(&self) -> Value {
        match self {
            Self::Add(options) => json!({"addVolumeOptions": options}),
            Self::Remove(options) => json!({"removeVolumeOptions": options}),
        }
    }
}

fn object(options: &Value) -> Result<(), Refusal> {
    match options {
        Value::Object(_) => Ok(()),
        Value::Null => Err(Refusal::bad_request(
            "Request with no body, a new name is expected as the request body",
        )),
        _ => Err(Refusal::malformed(&"it is not an object")),
    }
}

fn name_of(options: &Value) -> &str {
    options["name"].as_str().unwrap_or_default()
}

/// Asks that a disk of a machine come or go, and stay so.
pub fn machine(vm: &Value, change: &Change) -> Verdict {
    let conflict = |why: String| Refusal::conflict(About::Machine, name(vm), &why);
    let change = &fitting(list(&vm["spec"]["template"]["spec"]["volumes"]), change).map_err(conflict)?;
    let before = &vm["status"]["volumeRequests"];
    let after = queue(list(before), change).map_err(conflict)?;
    let path = "/status/volumeRequests";
    let mut steps = vec![json!({"op": "test", "path": path, "value": before})];
    if vm["status"].is_null() {
        steps = vec![json!({"op": "add", "path": "/status", "value": {}})];
    }
    let op = if list(before).is_empty() { "add" } else { "replace" };
    steps.push(json!({"op": op, "path": path, "value": after}));
    Ok(vec![Step::PatchMachineStatus(Value::Array(steps))])
}

/// Asks that a disk of a running machine come or go, until it ends.
pub fn instance(vmi: &Value, change: &Change) -> Verdict {
    let conflict = |why: String| Refusal::conflict(About::Instance, name(vmi), &why);
    if !is_running(vmi) {
        return Err(conflict("VMI is not running".to_owned()));
    }
    let volumes = &vmi["spec"]["volumes"];
    let disks = &vmi["spec"]["domain"]["devices"]["disks"];
    let change = &fitting(list(volumes), change).map_err(conflict)?;
    let (mut new_volumes, mut new_disks) = (list(volumes).to_vec(), list(disks).to_vec());
    match change {
        Change::Add(options) => {
            let mut volume = json!({"name": options["name"]});
            for kind in ["persistentVolumeClaim", "dataVolume"] {
                if !options["volumeSource"][kind].is_null() {
                    volume[kind] = options["volumeSource"][kind].clone();
                    break;
                }
            }
            new_volumes.push(volume);
            new_disks.push(options["disk"].clone());
        }
        Change::Remove(options) => {
            new_volumes.retain(|it| it["name"] != options["name"]);
            new_disks.retain(|it| it["name"] != options["name"]);
        }
    }
    let (at_volumes, at_disks) = ("/spec/volumes", "/spec/domain/devices/disks");
    let op = |before: &Value| if list(before).is_empty() { "add" } else { "replace" };
    Ok(vec![Step::PatchInstance(json!([
        {"op": "test", "path": at_volumes, "value": volumes},
        {"op": "test", "path": at_disks, "value": disks},
        {"op": op(volumes), "path": at_volumes, "value": new_volumes},
        {"op": op(disks), "path": at_disks, "value": new_disks},
    ]))])
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The claim or DataVolume behind a volume.
fn source(volume: &Value) -> impl Iterator<Item = &str> {
    let names = [
        &volume["dataVolume"]["name"],
        &volume["persistentVolumeClaim"]["claimName"],
    ];
    names
        .into_iter()
        .filter_map(Value::as_str)
        .filter(|it| !it.is_empty())
}

fn is_hotpluggable(volume: &Value) -> bool {
    ["dataVolume", "persistentVolumeClaim"]
        .iter()
        .any(|kind| volume[kind]["hotpluggable"] == true)
}

/// The change as it fits the volumes that there are. A volume may go by the name of its claim, too; whoever acts on the request
/// knows volumes alone.
fn fitting(volumes: &[Value], change: &Change) -> Result<Change, String> {
    match change {
        Change::Add(options) => {
            let wanted = source(&options["volumeSource"]).next().unwrap_or_default();
            for volume in volumes {
                if volume["name"] == options["name"] {
                    return Err(format!(
                        "Unable to add volume [{}] because volume with that name already exists",
                        name_of(options)
                    ));
                }
                if source(volume).any(|it| it == wanted) {
                    return Err(format!(
                        "Unable to add volume source [{wanted}] because it already exists"
                    ));
                }
            }
            Ok(change.clone())
        }
        Change::Remove(options) => {
            let wanted = name_of(options);
            let found = volumes
                .iter()
                .find(|it| it["name"] == wanted || source(it).any(|it| it == wanted));
            match found {
                None => Err(format!(
                    "Unable to remove volume [{wanted}] because it does not exist"
                )),
                Some(volume) if !is_hotpluggable(volume) => Err(format!(
                    "Unable to remove volume [{}] because it is not hotpluggable",
                    name_of(volume)
                )),
                Some(volume) => {
                    let mut options = options.clone();
                    options["name"] = volume["name"].clone();
                    Ok(Change::Remove(options))
                }
            }
        }
    }
}

/// The requests with this one at their end. Who takes a disk away that was not added yet takes back the request.
fn queue(before: &[Value], change: &Change) -> Result<Vec<Value>, String> {
    let (Change::Add(options) | Change::Remove(options)) = change;
    let wanted = name_of(options);
    let is_for = |request: &Value, kind: &str| request[kind]["name"] == wanted;
    let mut after = Vec::with_capacity(before.len() + 1);
    for request in before {
        let (added, removed) = (
            is_for(request, "addVolumeOptions"),
            is_for(request, "removeVolumeOptions"),
        );
        match change {
            Change::Add(_) if added => {
                return Err(format!("add volume request for volume [{wanted}] already exists"));
            }
            Change::Add(_) if removed => {
                return Err(format!(
                    "unable to add volume since a remove volume request for volume [{wanted}] already exists and is \
                     still being processed"
                ));
            }
            Change::Remove(_) if removed => {
                return Err(format!(
                    "a remove volume request for volume [{wanted}] already exists and is still being processed"
                ));
            }
            Change::Remove(_) if added => {}
            _ => after.push(request.clone()),
        }
    }
    after.push(change.request());
    Ok(after)
}
