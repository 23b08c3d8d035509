//! What may change in an instance: nothing of its spec, except that the control plane adds and takes away what it can
//! while the guest runs.

use std::collections::BTreeMap;

use fairway_kernel_scalar::quantity::Quantity;
use serde_json::Value;

use super::super::{cause, same, text};
use crate::settings::Settings;
use crate::validate::{self, Cause, CauseType};
use crate::view::{self, InstanceSpec};

/// What is wrong with a change.
pub(super) fn check(old: &Value, new: &Value, by_us: bool, settings: impl Fn() -> Settings) -> Vec<Cause> {
    let refused = |kind: CauseType, message: String| vec![cause(kind, "", message)];
    if !same(&old["spec"], &new["spec"]) {
        if !by_us {
            return refused(
                CauseType::NotSupported,
                "update of VMI object is restricted".to_owned(),
            );
        }
        if let Err(message) = growth(old, new).and_then(|()| storage(old, new)) {
            return refused(CauseType::Invalid, message);
        }
        if let Ok(spec) = view::read::<InstanceSpec>("VirtualMachineInstance", &new["spec"]) {
            let causes = validate::spec("spec", &spec, &settings());
            if !causes.is_empty() {
                return causes;
            }
        }
    }
    if !by_us && reserved_labels(old) != reserved_labels(new) {
        let message =
            "modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited";
        return refused(CauseType::NotSupported, message.to_owned());
    }
    Vec::new()
}

fn reserved_labels(vmi: &Value) -> Vec<(&str, &Value)> {
    let labels = &vmi["metadata"]["labels"];
    let found = validate::RESERVED_LABELS.iter().filter_map(|key| {
        let value = labels.get(*key)?;
        Some((*key, value))
    });
    found.collect()
}

/// What a guest can grow to was settled when it started.
fn growth(old: &Value, new: &Value) -> Result<(), String> {
    let sockets = |vmi: &Value| vmi["spec"]["domain"]["cpu"]["maxSockets"].as_u64().unwrap_or(0);
    if sockets(old) != sockets(new) {
        return Err("CPU topology maxSockets changed".to_owned());
    }
    let memory = |vmi: &Value| Quantity::from_value(&vmi["spec"]["domain"]["memory"]["maxGuest"]);
    match (memory(old), memory(new)) {
        (Some(before), Some(now)) if before != now => Err("Memory maxGuest changed".to_owned()),
        _ => Ok(()),
    }
}

type Named<'v> = BTreeMap<&'v str, &'v Value>;

fn named(list: Option<&Value>) -> Named<'_> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.map(|it| (text(it, "/name"), it)).collect()
}

/// Volumes that the guest started with stay; others come and go with their disks.
fn storage(old: &Value, new: &Value) -> Result<(), String> {
    let volumes = |vmi: &'_ Value| -> Vec<Value> {
        let found = vmi["spec"]["volumes"].as_array();
        found.cloned().unwrap_or_default()
    };
    let dumps = volumes(new)
        .iter()
        .filter(|it| it["memoryDump"].is_object())
        .count();
    let expected = volumes(new).len() - dumps;
    let devices = &new["spec"]["domain"]["devices"];
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    let observed = count(&devices["disks"]) + count(&devices["filesystems"]);
    if expected != observed {
        return Err(format!(
            "number of disks and filesystems ({observed}) does not equal the number of volumes ({expected})"
        ));
    }
    let known = old["status"]["volumeStatus"].as_array().into_iter().flatten();
    let started_with: Vec<&str> = known
        .filter(|it| !it["hotplugVolume"].is_object())
        .map(|it| text(it, "/name"))
        .collect();
    let moved = new["status"]["migratedVolumes"].as_array().into_iter().flatten();
    let moved: Vec<&str> = moved.map(|it| text(it, "/volumeName")).collect();
    let disks = (
        named(old.pointer("/spec/domain/devices/disks")),
        named(new.pointer("/spec/domain/devices/disks")),
    );
    let (before, after) = (
        named(old.pointer("/spec/volumes")),
        named(new.pointer("/spec/volumes")),
    );
    let part = |all: &Named<'_>, permanent: bool| -> Vec<String> {
        let names = all.keys().filter(|name| started_with.contains(name) == permanent);
        names.map(|name| (*name).to_owned()).collect()
    };
    let (was, is) = (part(&before, true), part(&after, true));
    if was.len() != is.len() {
        return Err("Number of permanent volumes has changed".to_owned());
    }
    let equal = |one: Option<&&Value>, other: Option<&&Value>| match (one, other) {
        (Some(one), Some(other)) => same(one, other),
        (one, other) => one.is_none() == other.is_none(),
    };
    for name in is.iter().map(String::as_str) {
        if !before.contains_key(name) {
            return Err(format!("permanent volume {name}, not found"));
        }
        if moved.contains(&name) {
            continue;
        }
        if !equal(after.get(name), before.get(name)) {
            return Err(format!("permanent volume {name}, changed"));
        }
        if !equal(disks.1.get(name), disks.0.get(name)) {
            return Err(format!("permanent disk {name}, changed"));
        }
    }
    for name in part(&after, false) {
        let name = name.as_str();
        let Some(volume) = after.get(name) else { continue };
        let disk = disks.1.get(name);
        let is_dump = volume["memoryDump"].is_object();
        if let Some(earlier) = before.get(name) {
            if !same(earlier, volume) && !moved.contains(&name) {
                return Err(format!("hotplug volume {name}, changed"));
            }
            if !is_dump && disk.is_some() && !equal(disk, disks.0.get(name)) {
                return Err(format!("hotplug disk {name}, changed"));
            }
        } else if !is_dump {
            hotplugged(name, volume, disk.copied())?;
        }
    }
    Ok(())
}

/// A volume that comes while the guest runs.
fn hotplugged(name: &str, volume: &Value, disk: Option<&Value>) -> Result<(), String> {
    if !volume["dataVolume"].is_object() && !volume["persistentVolumeClaim"].is_object() {
        return Err(format!("volume {name} is not a PVC or DataVolume"));
    }
    let Some(disk) = disk else {
        return Err(format!("Disk {name} does not exist"));
    };
    let targets: Vec<&Value> = ["disk", "lun"]
        .iter()
        .map(|it| &disk[*it])
        .filter(|it| it.is_object())
        .collect();
    if targets.is_empty() {
        return Err(format!(
            "Disk {name} requires diskDevice of type 'disk' or 'lun' to be hotplugged."
        ));
    }
    if !targets.iter().any(|it| it["bus"] == "scsi") {
        return Err(format!("hotplugged Disk {name} does not use a scsi bus"));
    }
    if disk["dedicatedIOThread"] == true {
        return Err(format!(
            "hotplugged Disk {name} can't use dedicated IOThread: scsi bus is unsupported."
        ));
    }
    Ok(())
}
