//! What a VirtualMachineRestore makes, and what it says.

use std::collections::BTreeMap;

use fairway_kernel_scalar::quantity::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::set_conditions;
use super::snapshot::{MEMORY, memory};
use crate::api::text;

/// Holds what a restore changes.
pub(crate) const FINALIZER: &str = "snapshot.kubevirt.io/vmrestore-protection";
/// On a machine: the restore that it was brought back by last.
pub(crate) const LAST_RESTORE: &str = "restore.kubevirt.io/lastRestoreUID";
/// On what a restore made: which.
pub(crate) const NAME: &str = "restore.kubevirt.io/name";
/// A claim whose content is a DataVolume's already.
pub(crate) const POPULATED_FOR: &str = "cdi.kubevirt.io/storage.populatedFor";
/// How long a machine may take to stop.
const GRACE: SignedDuration = SignedDuration::from_mins(5);
/// What annotations of a claim begin with that are of no use to another.
const DROPPED: [&str; 7] = [
    "pv.kubernetes.io",
    "volume.beta.kubernetes.io",
    "cdi.kubevirt.io",
    "volume.kubernetes.io",
    "k8s.io/CloneRequest",
    "k8s.io/CloneOf",
    MEMORY,
];

/// What happens to a machine that runs when it is to be brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// It is waited for.
    Waits,
    /// It is stopped.
    Stops,
    /// There is nothing to be done.
    Fails(&'static str),
}

/// What happens while the machine still runs.
pub(crate) fn not_ready(restore: &Value, now: Timestamp) -> NotReady {
    let created = text(restore, "/metadata/creationTimestamp").parse::<Timestamp>();
    match text(restore, "/spec/targetReadinessPolicy") {
        "StopTarget" => NotReady::Stops,
        "FailImmediate" => NotReady::Fails("Restore target not ready"),
        "WaitEventually" => NotReady::Waits,
        _ => match created.is_ok_and(|created| now.duration_since(created) > GRACE) {
            true => NotReady::Fails("Restore target failed to be ready within 5m0s"),
            false => NotReady::Waits,
        },
    }
}

/// What becomes of memory that is in a snapshot; nothing if there is none. `is_another`: the target is not the machine whose memory it is.
pub(crate) fn memory_comes_back(
    restore: &Value,
    content: &Value,
    is_another: bool,
) -> Option<Result<(), &'static str>> {
    if memory(content) != "true" {
        return None;
    }
    Some(match (memory(restore), is_another) {
        ("false", _) => Err("The restore leaves it out"),
        (_, true) => Err("The target is another machine, and starts from its disks"),
        _ => Ok(()),
    })
}

/// The volumes that come back: each with the claim that it will be on.
pub(crate) fn restores(restore: &Value, content: &Value) -> Vec<Value> {
    let uid = text(restore, "/metadata/uid");
    let source = &content["spec"]["source"]["virtualMachine"];
    let claims = super::machine::claims(source);
    let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
    backups
        .into_iter()
        .flatten()
        .map(|backup| {
            let volume = text(backup, "/volumeName");
            let name = format!("restore-{uid}-{volume}");
            let mut one = json!({
                "volumeName": volume, "persistentVolumeClaim": name, "volumeSnapshotName": backup["volumeSnapshotName"],
            });
            if claims.get(volume).is_some_and(|claim| super::machine::is_templated(source, claim)) {
                one["dataVolumeName"] = json!(name);
            }
            one
        })
        .collect()
}

/// The claim of a volume that comes back; `size` is how large what was kept is.
pub(crate) fn claim(
    restore: &Value,
    one: &Value,
    content: &Value,
    size: &str,
    owner: Option<&Value>,
    with_memory: bool,
) -> Value {
    let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
    let backup = backups
        .into_iter()
        .flatten()
        .find(|it| it["volumeName"] == one["volumeName"])
        .cloned()
        .unwrap_or_default();
    let kept = &backup["persistentVolumeClaim"];
    let mut spec = kept["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        for field in ["volumeName", "dataSourceRef", "selector"] {
            fields.shift_remove(field);
        }
    }
    spec["dataSource"] = json!({
        "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": one["volumeSnapshotName"],
    });
    let amount = |text: &str| Quantity::parse(text).map_or(0, Quantity::value);
    if amount(size) > amount(text(&spec, "/resources/requests/storage")) {
        spec["resources"]["requests"]["storage"] = json!(size);
    }
    let mut annotations = json!({NAME: text(restore, "/metadata/name")});
    for (name, value) in kept
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if !DROPPED.iter().any(|prefix| name.starts_with(prefix)) {
            annotations[name] = value.clone();
        }
    }
    if with_memory {
        annotations[MEMORY] = json!("true");
    }
    let data_volume = text(one, "/dataVolumeName");
    if !data_volume.is_empty() {
        // The DataVolume will own it.
        annotations[POPULATED_FOR] = json!(data_volume);
    }
    let mut metadata = json!({"name": one["persistentVolumeClaim"], "annotations": annotations});
    if let Some(labels) = kept.pointer("/metadata/labels") {
        metadata["labels"] = labels.clone();
    }
    let source = &content["spec"]["source"]["virtualMachine"];
    metadata["labels"]["restore.kubevirt.io/source-vm-name"] = json!(text(source, "/metadata/name"));
    metadata["labels"]["restore.kubevirt.io/source-vm-namespace"] =
        json!(text(source, "/metadata/namespace"));
    if let Some(owner) = owner.filter(|_| data_volume.is_empty()) {
        metadata["ownerReferences"] = json!([owner_of(owner)]);
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
}

/// A machine as owner.
pub(crate) fn owner_of(machine: &Value) -> Value {
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": text(machine, "/metadata/name"),
        "uid": text(machine, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
    })
}

/// The DataVolume that takes over a claim: what the machine's template says, with nothing left to fill.
pub(crate) fn data_volume(restore: &Value, template: &Value, owner: Option<&Value>) -> Value {
    let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    metadata["annotations"][NAME] = json!(text(restore, "/metadata/name"));
    metadata["annotations"]["cdi.kubevirt.io/storage.prePopulated"] = json!(text(template, "/metadata/name"));
    if let Some(owner) = owner {
        metadata["ownerReferences"] = json!([owner_of(owner)]);
    }
    json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": metadata, "spec": template["spec"],
    })
}

/// The spec that the machine gets: what was kept, on the claims that were made, running as it did before the restore.
pub(crate) fn spec(content: &Value, restores: &[Value], present: Option<&Value>) -> Value {
    let claims: BTreeMap<String, (String, Option<String>)> = restores
        .iter()
        .map(|it| {
            let data_volume = text(it, "/dataVolumeName");
            let to = (
                text(it, "/persistentVolumeClaim").to_owned(),
                (!data_volume.is_empty()).then(|| data_volume.to_owned()),
            );
            (text(it, "/volumeName").to_owned(), to)
        })
        .collect();
    let source = &content["spec"]["source"]["virtualMachine"];
    let mut spec = super::machine::with_claims(source, &claims);
    let fields = present.map_or(&Value::Null, |vm| &vm["spec"]);
    let (running, strategy) = (fields.get("running").cloned(), fields.get("runStrategy").cloned());
    if let Some(wanted) = spec.as_object_mut() {
        let was_running = wanted.contains_key("running");
        wanted.shift_remove("running");
        wanted.shift_remove("runStrategy");
        match (present.is_some(), running, strategy) {
            (true, Some(running), _) if !running.is_null() => {
                wanted.insert("running".to_owned(), json!(false));
            }
            (true, _, Some(strategy)) => {
                wanted.insert("runStrategy".to_owned(), strategy);
            }
            _ if was_running => {
                wanted.insert("running".to_owned(), json!(false));
            }
            _ => {
                wanted.insert("runStrategy".to_owned(), json!("Halted"));
            }
        }
    }
    spec
}

/// The DataVolumes of the machine that it has no use for any more.
pub(crate) fn obsolete(present: Option<&Value>, spec: &Value) -> Vec<String> {
    let names = |spec: &Value| -> Vec<String> {
        let templates = spec["dataVolumeTemplates"].as_array();
        templates
            .into_iter()
            .flatten()
            .map(|it| text(it, "/metadata/name").to_owned())
            .collect()
    };
    let kept = names(spec);
    let before = present.map(|vm| names(&vm["spec"])).unwrap_or_default();
    before.into_iter().filter(|name| !kept.contains(name)).collect()
}

/// A status with these reasons for `Progressing` and `Ready`.
pub(crate) fn status(before: &Value, progressing: (&str, &str), ready: (&str, &str), now: &str) -> Value {
    let mut status = match before.is_object() {
        true => before.clone(),
        false => json!({"complete": false}),
    };
    let conditions = [
        ("Progressing", progressing.0, progressing.1),
        ("Ready", ready.0, ready.1),
    ];
    set_conditions(&mut status, &conditions, now);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Value {
        json!({"spec": {
            "source": {"virtualMachine": {
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {
                    "runStrategy": "Always",
                    "dataVolumeTemplates": [{"metadata": {"name": "web-root"}, "spec": {"source": {"blank": {}}}}],
                    "template": {"spec": {"volumes": [
                        {"name": "root", "dataVolume": {"name": "web-root"}},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "web-data"}},
                    ]}},
                },
            }},
            "volumeBackups": [
                {
                    "volumeName": "root", "volumeSnapshotName": "s-root",
                    "persistentVolumeClaim": {
                        "metadata": {"name": "web-root", "labels": {"a": "b"}, "annotations": {"note": "x", "cdi.kubevirt.io/y": "z", MEMORY: "true"}},
                        "spec": {"volumeName": "pvc-1", "storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}},
                    },
                },
                {"volumeName": "data", "volumeSnapshotName": "s-data", "persistentVolumeClaim": {"metadata": {}, "spec": {}}},
            ],
        }})
    }

    fn restore() -> Value {
        json!({"metadata": {"name": "back", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"}})
    }

    #[test]
    fn claims_come_back_from_snapshots() {
        let all = restores(&restore(), &content());
        assert_eq!(
            all,
            [
                json!({
                    "volumeName": "root", "persistentVolumeClaim": "restore-u1-root", "volumeSnapshotName": "s-root",
                    "dataVolumeName": "restore-u1-root",
                }),
                json!({"volumeName": "data", "persistentVolumeClaim": "restore-u1-data", "volumeSnapshotName": "s-data"}),
            ]
        );
        let vm = json!({"metadata": {"name": "web", "uid": "v1"}});
        let root = claim(&restore(), &all[0], &content(), "2Gi", Some(&vm), false);
        assert_eq!(root["spec"]["dataSource"]["name"], "s-root");
        assert_eq!(root["spec"]["resources"]["requests"]["storage"], "2Gi");
        assert_eq!(root["spec"].get("volumeName"), None);
        let annotations = &root["metadata"]["annotations"];
        assert_eq!(
            (&annotations["note"], annotations.get("cdi.kubevirt.io/y")),
            (&json!("x"), None)
        );
        assert_eq!(annotations[POPULATED_FOR], "restore-u1-root");
        assert_eq!(
            root["metadata"].get("ownerReferences"),
            None,
            "the DataVolume will own it"
        );
        assert_eq!(annotations.get(MEMORY), None, "that of another restore");
        let with = claim(&restore(), &all[0], &content(), "1Gi", Some(&vm), true);
        assert_eq!(with["metadata"]["annotations"][MEMORY], "true");
        let data = claim(&restore(), &all[1], &content(), "1Gi", Some(&vm), false);
        assert_eq!(data["metadata"]["ownerReferences"][0]["uid"], "v1");
    }

    #[test]
    fn a_machine_comes_back_as_it_runs_now() {
        let all = restores(&restore(), &content());
        let present = |fields: Value| json!({"spec": fields});
        for (vm, field, expected) in [
            (
                Some(present(json!({"runStrategy": "Manual"}))),
                "runStrategy",
                json!("Manual"),
            ),
            (Some(present(json!({"running": true}))), "running", json!(false)),
            (None, "runStrategy", json!("Halted")),
        ] {
            let spec = spec(&content(), &all, vm.as_ref());
            assert_eq!(spec[field], expected, "{vm:?}");
            assert_eq!(
                spec["dataVolumeTemplates"][0]["metadata"]["name"],
                "restore-u1-root"
            );
        }
        let before = json!({"spec": {"dataVolumeTemplates": [{"metadata": {"name": "web-root"}}]}});
        assert_eq!(
            obsolete(Some(&before), &spec(&content(), &all, None)),
            ["web-root"]
        );
    }

    #[test]
    fn memory_is_for_the_machine_whose_it_was() {
        let said = |memory: &str| json!({"metadata": {"annotations": {MEMORY: memory}}});
        for (restore, content, is_another, expected) in [
            ("", "", false, None),
            ("true", "", false, None),
            ("", "true", false, Some(true)),
            ("true", "true", false, Some(true)),
            ("false", "true", false, Some(false)),
            ("", "true", true, Some(false)),
        ] {
            let found = memory_comes_back(&said(restore), &said(content), is_another);
            let case = format!("{restore} {content} {is_another}");
            assert_eq!(found.map(|it| it.is_ok()), expected, "{case}");
        }
    }

    #[test]
    fn a_machine_that_runs_is_waited_for() {
        let at = |minutes: i64| {
            restore()["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap()
                .parse::<Timestamp>()
                .unwrap()
                + SignedDuration::from_mins(minutes)
        };
        let with = |policy: &str| {
            let mut it = restore();
            it["spec"]["targetReadinessPolicy"] = json!(policy);
            it
        };
        assert_eq!(not_ready(&with("WaitEventually"), at(60)), NotReady::Waits);
        assert_eq!(not_ready(&with(""), at(1)), NotReady::Waits);
        assert!(matches!(not_ready(&with(""), at(6)), NotReady::Fails(_)));
        assert_eq!(not_ready(&with("StopTarget"), at(0)), NotReady::Stops);
        assert!(matches!(
            not_ready(&with("FailImmediate"), at(0)),
            NotReady::Fails(_)
        ));
    }
}
