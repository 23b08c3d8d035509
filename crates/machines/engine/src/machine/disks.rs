//! The disks of a machine: those that it brings along, and how far all of them are.

use std::collections::{BTreeMap, BTreeSet};

use fairway_api::kubevirt::{DATA_VOLUME, VIRTUAL_MACHINE};
use fairway_machines_plan::lifecycle::Volumes;
use fairway_machines_plan::view::VirtualMachine;
use serde_json::{Value, json};

use crate::objects::{CREATED_BY, items, owner, text};

/// A claim that is there already may become the disk of a new DataVolume.
const ADOPTION: &str = "cdi.kubevirt.io/allowClaimAdoption";

/// Who makes the volume of a claim.
const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// Fairway, whose volumes have snapshots.
const PROVISIONER: &str = "fairway.dev/local";

/// A disk by the name of its claim, as far as it exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    /// What fills it.
    pub(crate) data_volume: Option<Value>,
    /// The claim itself.
    pub(crate) claim: Option<Value>,
}

/// All disks of a machine.
pub(crate) type Disks = BTreeMap<String, Disk>;

/// The claims that a machine has to do with: of which a DataVolume is asked for, and all.
pub(crate) fn names(vm: &VirtualMachine) -> (BTreeSet<String>, BTreeSet<String>) {
    let templates = vm.spec.data_volume_templates.iter().map(|it| &it.metadata.name);
    let mut filled: BTreeSet<String> = templates.cloned().collect();
    let mut all = BTreeSet::new();
    let volumes = vm.spec.template.iter().flat_map(|it| &it.spec.volumes);
    for volume in volumes {
        if let Some(data_volume) = &volume.data_volume {
            filled.insert(data_volume.name.clone());
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            all.insert(claim.claim_name.clone());
        }
    }
    all.extend(filled.iter().cloned());
    all.retain(|it| !it.is_empty());
    filled.retain(|it| !it.is_empty());
    (filled, all)
}

/// How far the disks of a machine are.
pub(crate) fn volumes(vm: &VirtualMachine, disks: &Disks) -> Volumes {
    let mut found = Volumes::default();
    for template in &vm.spec.data_volume_templates {
        let name = &template.metadata.name;
        let disk = disks.get(name);
        match disk.and_then(|it| it.data_volume.as_ref()) {
            None => found.missing.push(name.clone()),
            Some(data_volume) => judge(name, data_volume, &mut found),
        }
    }
    let template = vm.spec.template.as_ref();
    for volume in template.iter().flat_map(|it| &it.spec.volumes) {
        let filled = volume.data_volume.as_ref().map(|it| &it.name);
        let claim = volume.persistent_volume_claim.as_ref();
        let Some(disk) = filled
            .or(claim.map(|it| &it.claim_name))
            .and_then(|it| disks.get(it))
        else {
            continue;
        };
        if let (Some(name), Some(data_volume)) = (filled, &disk.data_volume) {
            judge(name, data_volume, &mut found);
        }
        let phase = disk.claim.as_ref().map(|it| text(it, "/status/phase"));
        found.unbound |= phase.is_some_and(|it| it != "Bound");
    }
    found
}

/// Of which volumes of a machine a snapshot can be taken, in upstream's words.
pub(crate) fn snapshot_statuses(vm: &VirtualMachine, disks: &Disks) -> Vec<Value> {
    let volumes = vm.spec.template.iter().flat_map(|it| &it.spec.volumes);
    let statuses = volumes.map(|volume| {
        let name = &volume.name;
        let filled = volume.data_volume.as_ref().map(|it| &it.name);
        let claim = volume.persistent_volume_claim.as_ref();
        let why = match filled.or(claim.map(|it| &it.claim_name)) {
            None => Some(format!(
                "Snapshot is not supported for this volumeSource type [{name}]"
            )),
            Some(named) => match disks.get(named).and_then(|it| it.claim.as_ref()) {
                None => Some(format!("PVC {named} of volume [{name}] does not exist")),
                Some(claim) if claim["metadata"]["annotations"][STORAGE_PROVISIONER] == PROVISIONER => None,
                Some(_) => Some(format!(
                    "No Volume Snapshot Storage Class found for volume [{name}]"
                )),
            },
        };
        match why {
            None => json!({"name": name, "enabled": true}),
            Some(why) => json!({"name": name, "enabled": false, "reason": why}),
        }
    });
    statuses.collect()
}

fn judge(name: &str, data_volume: &Value, found: &mut Volumes) {
    if let Some(why) = trouble(name, data_volume) {
        found.failed.get_or_insert(why);
        return;
    }
    let bound = condition(data_volume, "Bound").is_some_and(|it| it["status"] == "True");
    match text(data_volume, "/status/phase") {
        "Succeeded" | "PendingPopulation" => {}
        // Nothing is filled before somebody needs it.
        "WaitForFirstConsumer" if !bound => {}
        _ => found.provisioning = true,
    }
}

fn condition<'v>(data_volume: &'v Value, kind: &str) -> Option<&'v Value> {
    items(data_volume, "/status/conditions").find(|it| it["type"] == kind)
}

/// Why a DataVolume does not get on.
fn trouble(name: &str, data_volume: &Value) -> Option<String> {
    if text(data_volume, "/status/phase") == "Failed" {
        return Some(format!("DataVolume {name} is in Failed phase"));
    }
    let says = |kind: &str, reasons: &[&str]| {
        condition(data_volume, kind)
            .filter(|it| it["status"] != "True" && reasons.contains(&text(it, "/reason")))
    };
    if let Some(running) = says("Running", &["Error", "ImagePullFailed"]).filter(|it| it["status"] == "False")
    {
        return Some(format!(
            "DataVolume {name} importer has stopped running due to an error: {}",
            text(running, "/message")
        ));
    }
    let bound = says("Bound", &["ErrExceededQuota"])?;
    let why = text(bound, "/message");
    Some(format!(
        "DataVolume {name} importer is not running due to an error: {why}"
    ))
}

/// The DataVolume that a template stands for.
pub(crate) fn data_volume(vm: &Value, template: &Value) -> Value {
    let mut metadata = json!({
        "name": template["metadata"]["name"],
        "namespace": vm["metadata"]["namespace"],
        "labels": {},
        "annotations": {},
        "ownerReferences": [owner(&VIRTUAL_MACHINE, vm)],
    });
    for field in ["labels", "annotations"] {
        if let Some(own) = template["metadata"][field].as_object() {
            metadata[field] = Value::Object(own.clone());
        }
    }
    metadata["labels"][CREATED_BY] = vm["metadata"]["uid"].clone();
    metadata["annotations"][ADOPTION] = json!("true");
    let mut spec = template["spec"].clone();
    let priority = text(vm, "/spec/template/spec/priorityClassName");
    if !priority.is_empty() && text(&spec, "/priorityClassName").is_empty() {
        spec["priorityClassName"] = json!(priority);
    }
    json!({
        "apiVersion": DATA_VOLUME.api_version(),
        "kind": DATA_VOLUME.kind,
        "metadata": metadata,
        "spec": spec,
    })
}

/// The template of a DataVolume.
pub(crate) fn template<'v>(vm: &'v Value, name: &str) -> Option<&'v Value> {
    items(vm, "/spec/dataVolumeTemplates").find(|it| it["metadata"]["name"] == name)
}

#[cfg(test)]
mod tests {
    use fairway_machines_plan::view;

    use super::*;

    fn vm() -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "vms", "uid": "vm-1"},
            "spec": {
                "dataVolumeTemplates": [{
                    "metadata": {"name": "root", "labels": {"app": "web"}},
                    "spec": {"source": {"blank": {}}, "storage": {}},
                }],
                "template": {"spec": {"priorityClassName": "high", "domain": {"devices": {}}, "volumes": [
                    {"name": "a", "dataVolume": {"name": "root"}},
                    {"name": "b", "dataVolume": {"name": "other"}},
                    {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "d", "containerDisk": {"image": "i"}},
                ]}},
            },
        })
    }

    fn filled(phase: &str, conditions: Value) -> Disk {
        Disk {
            data_volume: Some(json!({"status": {"phase": phase, "conditions": conditions}})),
            claim: None,
        }
    }

    fn claimed(phase: &str) -> Disk {
        Disk {
            data_volume: None,
            claim: Some(json!({"status": {"phase": phase}})),
        }
    }

    #[test]
    fn a_machine_names_its_disks() {
        let vm: VirtualMachine = view::read("VirtualMachine", &vm()).unwrap();
        let (filled, all) = names(&vm);
        assert_eq!(filled, ["other", "root"].map(str::to_owned).into());
        assert_eq!(all, ["data", "other", "root"].map(str::to_owned).into());
    }

    #[test]
    fn of_which_disks_there_are_snapshots() {
        let vm: VirtualMachine = view::read("VirtualMachine", &vm()).unwrap();
        let claimed_of = |annotations: Value| Disk {
            claim: Some(json!({"metadata": {"annotations": annotations}})),
            ..Disk::default()
        };
        let ours = claimed_of(json!({STORAGE_PROVISIONER: PROVISIONER}));
        let disks = Disks::from([
            ("root".to_owned(), ours),
            ("data".to_owned(), claimed_of(json!({}))),
        ]);
        let expected = json!([
            {"name": "a", "enabled": true},
            {"name": "b", "enabled": false, "reason": "PVC other of volume [b] does not exist"},
            {"name": "c", "enabled": false, "reason": "No Volume Snapshot Storage Class found for volume [c]"},
            {"name": "d", "enabled": false, "reason": "Snapshot is not supported for this volumeSource type [d]"},
        ]);
        assert_eq!(json!(snapshot_statuses(&vm, &disks)), expected);
    }

    #[test]
    fn how_far_disks_are() {
        let error = json!([{"type": "Running", "status": "False", "reason": "Error", "message": "no route"}]);
        let quota =
            json!([{"type": "Bound", "status": "Unknown", "reason": "ErrExceededQuota", "message": "full"}]);
        let bound = json!([{"type": "Bound", "status": "True"}]);
        let ready = Volumes::default();
        let missing = Volumes {
            missing: vec!["root".to_owned()],
            ..Volumes::default()
        };
        let provisioning = Volumes {
            provisioning: true,
            ..Volumes::default()
        };
        let failed = |why: &str| Volumes {
            failed: Some(why.to_owned()),
            ..Volumes::default()
        };
        type Case = (&'static str, Vec<(&'static str, Disk)>, Volumes);
        let cases: Vec<Case> = vec![
            ("nothing is there", vec![], missing.clone()),
            (
                "a claim alone is not enough",
                vec![("root", claimed("Bound"))],
                missing,
            ),
            (
                "done",
                vec![("root", filled("Succeeded", json!([])))],
                ready.clone(),
            ),
            (
                "being filled",
                vec![("root", filled("ImportInProgress", json!([])))],
                provisioning.clone(),
            ),
            (
                "just made",
                vec![("root", filled("", json!([])))],
                provisioning.clone(),
            ),
            (
                "waits for its consumer",
                vec![("root", filled("WaitForFirstConsumer", json!([])))],
                ready.clone(),
            ),
            (
                "has found its consumer",
                vec![("root", filled("WaitForFirstConsumer", bound))],
                provisioning.clone(),
            ),
            (
                "failed",
                vec![("root", filled("Failed", json!([])))],
                failed("DataVolume root is in Failed phase"),
            ),
            (
                "cannot be imported",
                vec![("root", filled("ImportInProgress", error))],
                failed("DataVolume root importer has stopped running due to an error: no route"),
            ),
            (
                "no room",
                vec![("root", filled("Pending", quota))],
                failed("DataVolume root importer is not running due to an error: full"),
            ),
            (
                "one that others made is being filled",
                vec![
                    ("root", filled("Succeeded", json!([]))),
                    ("other", filled("CloneInProgress", json!([]))),
                ],
                provisioning,
            ),
            (
                "a claim without a volume",
                vec![
                    ("root", filled("Succeeded", json!([]))),
                    ("data", claimed("Pending")),
                ],
                Volumes {
                    unbound: true,
                    ..Volumes::default()
                },
            ),
            (
                "a claim with a volume",
                vec![
                    ("root", filled("Succeeded", json!([]))),
                    ("data", claimed("Bound")),
                ],
                ready,
            ),
        ];
        let vm: VirtualMachine = view::read("VirtualMachine", &vm()).unwrap();
        for (name, disks, expected) in cases {
            let disks: Disks = disks
                .into_iter()
                .map(|(name, disk)| (name.to_owned(), disk))
                .collect();
            assert_eq!(volumes(&vm, &disks), expected, "{name}");
        }
    }

    #[test]
    fn a_template_becomes_a_data_volume() {
        let vm = vm();
        let made = data_volume(&vm, template(&vm, "root").unwrap());
        let expected = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1",
            "kind": "DataVolume",
            "metadata": {
                "name": "root",
                "namespace": "vms",
                "labels": {"app": "web", "kubevirt.io/created-by": "vm-1"},
                "annotations": {"cdi.kubevirt.io/allowClaimAdoption": "true"},
                "ownerReferences": [{
                    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "vm-1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"source": {"blank": {}}, "storage": {}, "priorityClassName": "high"},
        });
        assert_eq!(made, expected);
        assert!(template(&vm, "other").is_none());
    }
}
