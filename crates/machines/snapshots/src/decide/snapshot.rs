//! What a VirtualMachineSnapshot is and says.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_text_gotext::duration;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{machine, set_conditions};
use crate::api::text;

/// Holds what a snapshot needs.
pub(crate) const FINALIZER: &str = "snapshot.kubevirt.io/vmsnapshot-protection";
/// Holds what a snapshot kept.
pub(crate) const CONTENT_FINALIZER: &str = "snapshot.kubevirt.io/vmsnapshotcontent-protection";
/// Holds the machine while a snapshot is taken.
pub(crate) const SOURCE_FINALIZER: &str = "snapshot.kubevirt.io/snapshot-source-protection";
/// What begins with it is about a guest that could not be frozen.
pub(crate) const FAILED_FREEZE: &str = "Failed freezing vm";
/// How long it may take if nobody says otherwise.
const DEADLINE: Duration = Duration::from_secs(300);

/// On a snapshot: the machine's memory is to be in it. On its content: it is. On a VolumeSnapshot: it is kept with that one. On a claim: it comes
/// back with it. On a restore: `false` leaves it out.
pub(crate) const MEMORY: &str = "fairway.dev/memory";
/// On a VolumeSnapshot: disks with the same are of the same moment.
const MOMENT: &str = "fairway.dev/moment";

/// What an object says about memory.
pub(crate) fn memory(object: &Value) -> &str {
    let said = object
        .pointer("/metadata/annotations")
        .and_then(|it| it.get(MEMORY));
    said.and_then(Value::as_str).unwrap_or_default()
}

/// Whether an instance is a machine that runs somewhere.
pub(crate) fn runs(instance: &Value) -> bool {
    !text(instance, "/status/nodeName").is_empty()
        && !matches!(text(instance, "/status/phase"), "Succeeded" | "Failed")
}

/// What is said of memory that was asked for; nothing of a snapshot without.
pub(crate) fn memory_condition(
    snapshot: &Value,
    content: &Value,
) -> Option<(&'static str, &'static str, &'static str)> {
    match (memory(snapshot), memory(content)) {
        ("true", "true") => Some(("Memory", "True", "The memory of the machine is in the snapshot")),
        ("true", _) if content["spec"]["volumeBackups"].is_array() => {
            Some(("Memory", "False", "The machine did not run, and had no memory"))
        }
        ("true", _) => Some((
            "Memory",
            "False",
            "The machine has no disk that memory is kept with",
        )),
        _ => None,
    }
}

/// The name of what a snapshot kept.
pub(crate) fn content_name(snapshot: &Value) -> String {
    match text(snapshot, "/status/virtualMachineSnapshotContentName") {
        "" => format!("vmsnapshot-content-{}", text(snapshot, "/metadata/uid")),
        name => name.to_owned(),
    }
}

/// Whether a snapshot has taken too long. Zero is as long as it takes.
pub(crate) fn is_overdue(snapshot: &Value, now: Timestamp) -> bool {
    let deadline = match text(snapshot, "/spec/failureDeadline") {
        "" => DEADLINE,
        text => match duration::span(text) {
            Some(Duration::ZERO) => return false,
            Some(deadline) => deadline,
            None => DEADLINE,
        },
    };
    let created = text(snapshot, "/metadata/creationTimestamp").parse::<Timestamp>();
    created.is_ok_and(|created| {
        Duration::try_from(now.duration_since(created)).is_ok_and(|took| took > deadline)
    })
}

/// What of a machine's volumes can be kept: by volume, the claim as it was read. Others are left out, and said to be.
pub(crate) fn content(
    snapshot: &Value,
    vm: &Value,
    instance: Option<&Value>,
    claims: &BTreeMap<String, Value>,
) -> Value {
    let uid = text(snapshot, "/metadata/uid");
    let backups: Vec<Value> = claims
        .iter()
        .map(|(volume, claim)| {
            json!({
                "volumeName": volume,
                "persistentVolumeClaim": {
                    "metadata": machine::kept_metadata(&claim["metadata"]), "spec": claim["spec"],
                },
                "volumeSnapshotName": format!("vmsnapshot-{uid}-volume-{volume}"),
            })
        })
        .collect();
    let mut spec = json!({
        "virtualMachineSnapshotName": text(snapshot, "/metadata/name"),
        "source": {"virtualMachine": {
            "metadata": machine::kept_metadata(&vm["metadata"]), "spec": vm["spec"], "status": {},
        }},
    });
    if !backups.is_empty() {
        spec["volumeBackups"] = json!(backups);
    }
    let mut metadata = json!({
        "name": content_name(snapshot), "namespace": text(snapshot, "/metadata/namespace"),
        "finalizers": [CONTENT_FINALIZER],
    });
    if memory(snapshot) == "true" && !claims.is_empty() && instance.is_some_and(runs) {
        metadata["annotations"] = json!({MEMORY: "true"});
    }
    json!({
        "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshotContent",
        "metadata": metadata, "spec": spec,
    })
}

/// Whether memory is kept with a backup: with the last one, as it is kept when all other disks are being copied.
pub(crate) fn keeps_memory(content: &Value, backup: &Value) -> bool {
    let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
    let last = backups.and_then(|it| it.last());
    memory(content) == "true" && last.is_some_and(|it| it["volumeName"] == backup["volumeName"])
}

/// The VolumeSnapshot of a backup.
pub(crate) fn volume_snapshot(content: &Value, backup: &Value) -> Value {
    let source = &content["spec"]["source"]["virtualMachine"];
    let mut annotations = json!({});
    if memory(content) == "true" {
        annotations[MOMENT] = content["metadata"]["uid"].clone();
    }
    if keeps_memory(content, backup) {
        annotations[MEMORY] = json!("true");
    }
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {
            "annotations": annotations,
            "name": backup["volumeSnapshotName"],
            "labels": {
                "snapshot.kubevirt.io/source-vm-name": text(source, "/metadata/name"),
                "snapshot.kubevirt.io/source-vm-namespace": text(source, "/metadata/namespace"),
            },
            "ownerReferences": [{
                "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshotContent",
                "name": text(content, "/metadata/name"), "uid": text(content, "/metadata/uid"),
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"source": {"persistentVolumeClaimName": text(backup, "/persistentVolumeClaim/metadata/name")}},
    })
}

/// How the VolumeSnapshots of a content are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Copies {
    /// What the content says of them.
    pub(crate) status: Value,
    /// Each is of a moment that is over: the guest may write again.
    pub(crate) are_begun: bool,
    /// All of them can be used.
    pub(crate) are_ready: bool,
    /// What is wrong with one.
    pub(crate) error: Option<String>,
}

/// How the copies of a content are. `taken` are those that exist, by name.
pub(crate) fn copies(content: &Value, taken: &BTreeMap<String, Value>, now: &str) -> Copies {
    let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
    let mut shown = Vec::new();
    let (mut are_begun, mut are_ready) = (true, true);
    let mut error = None;
    let mut created = text(content, "/status/creationTime").to_owned();
    for backup in backups.into_iter().flatten() {
        let name = text(backup, "/volumeSnapshotName");
        let Some(found) = taken.get(name) else {
            (are_begun, are_ready) = (false, false);
            continue;
        };
        let mut one =
            json!({"volumeSnapshotName": name, "readyToUse": found["status"]["readyToUse"] == true});
        for field in ["creationTime", "error"] {
            if !found["status"][field].is_null() {
                one[field] = found["status"][field].clone();
            }
        }
        let moment = text(&one, "/creationTime");
        if moment > created.as_str() {
            moment.clone_into(&mut created);
        }
        are_begun &= !moment.is_empty();
        are_ready &= one["readyToUse"] == true;
        let message = text(&one, "/error/message");
        if one["readyToUse"] != true && !message.is_empty() {
            error = Some(format!("VolumeSnapshot {name} error: {message}"));
        }
        shown.push(one);
    }
    let mut status = json!({"readyToUse": are_ready, "volumeSnapshotStatus": shown, "error": null});
    if are_ready {
        let created = if created.is_empty() { now } else { &created };
        status["creationTime"] = json!(created);
    }
    if let Some(message) = &error {
        status["error"] = json!({"message": message, "time": now});
    }
    Copies {
        status,
        are_begun,
        are_ready,
        error,
    }
}

/// How far a snapshot is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress<'a> {
    /// It waits for its machine, for this reason.
    Waits(String),
    /// It is under way.
    Runs,
    /// Something is wrong, and it is tried again.
    Fails(&'a str),
    /// Everything is kept: this is what the content says, and the content.
    Done(&'a Value, &'a Value),
    /// It took too long.
    Failed,
}

/// What a snapshot says. `instance` is the machine that runs, if it does.
pub(crate) fn status(
    before: &Value,
    vm: Option<&Value>,
    instance: Option<&Value>,
    progress: &Progress<'_>,
    now: &str,
) -> Value {
    let mut status = before.clone();
    if !status.is_object() {
        status = json!({});
    }
    if let Some(vm) = vm {
        status["sourceUID"] = vm["metadata"]["uid"].clone();
    }
    if let Some(instance) = instance {
        let mut told: Vec<String> = ["Online".to_owned()].to_vec();
        told.push(match super::condition_holds(instance, "AgentConnected") {
            true => "GuestAgent".to_owned(),
            false => "NoGuestAgent".to_owned(),
        });
        if matches!(progress, Progress::Fails(why) if why.starts_with(FAILED_FREEZE)) {
            told.push("QuiesceFailed".to_owned());
        }
        for known in status["indications"].as_array().into_iter().flatten() {
            told.extend(known.as_str().map(str::to_owned));
        }
        told.sort();
        told.dedup();
        status["indications"] = json!(told);
    }
    status["error"] = Value::Null;
    let (phase, is_ready) = match progress {
        Progress::Fails(why) => {
            let before = &before["error"];
            status["error"] = match before["message"] == *why {
                true => before.clone(),
                false => json!({"message": why, "time": now}),
            };
            set_conditions(&mut status, &[("Progressing", "False", "In error state")], now);
            ("InProgress", false)
        }
        Progress::Waits(why) => {
            set_conditions(&mut status, &[("Progressing", "False", why)], now);
            ("InProgress", false)
        }
        Progress::Runs => {
            let why = "Source locked and operation in progress";
            set_conditions(&mut status, &[("Progressing", "True", why)], now);
            ("InProgress", false)
        }
        Progress::Done(kept, content) => {
            status["virtualMachineSnapshotContentName"] = content["metadata"]["name"].clone();
            status["creationTime"] = kept["creationTime"].clone();
            let machine = &content["spec"]["source"]["virtualMachine"];
            let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
            let included: Vec<&str> = backups
                .into_iter()
                .flatten()
                .map(|it| text(it, "/volumeName"))
                .collect();
            let all = machine::volumes(machine);
            let (included, excluded): (Vec<&String>, Vec<&String>) =
                all.iter().partition(|name| included.contains(&name.as_str()));
            let mut lists = json!({});
            for (field, names) in [("includedVolumes", included), ("excludedVolumes", excluded)] {
                if !names.is_empty() {
                    lists[field] = json!(names);
                }
            }
            status["snapshotVolumes"] = lists;
            set_conditions(
                &mut status,
                &[("Progressing", "False", "Operation complete")],
                now,
            );
            ("Succeeded", true)
        }
        Progress::Failed => {
            let failed = [
                ("Failure", "True", "snapshot deadline exceeded"),
                ("Progressing", "False", "Operation failed"),
            ];
            set_conditions(&mut status, &failed, now);
            ("Failed", false)
        }
    };
    let ready = match is_ready {
        true => ("Ready", "True", "Ready"),
        false => ("Ready", "False", "Not ready"),
    };
    set_conditions(&mut status, &[ready], now);
    status["phase"] = json!(phase);
    status["readyToUse"] = json!(is_ready);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    #[test]
    fn a_snapshot_has_its_time() {
        for (deadline, expected) in [
            ("", true),
            ("15m", false),
            ("9m59s", true),
            ("0s", false),
            ("0h0m0s", false),
            ("soon", true),
        ] {
            let snapshot = json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"failureDeadline": deadline},
            });
            assert_eq!(
                is_overdue(&snapshot, NOW.parse().unwrap()),
                expected,
                "{deadline}"
            );
        }
    }

    #[test]
    fn a_content_is_ready_when_all_of_it_is() {
        let snapshot = json!({"metadata": {"name": "s", "namespace": "shop", "uid": "u1"}});
        let vm = json!({"metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"}, "spec": {"x": 1}});
        let claims = BTreeMap::from([
            (
                "data".to_owned(),
                json!({"metadata": {"name": "web-data"}, "spec": {}}),
            ),
            (
                "root".to_owned(),
                json!({"metadata": {"name": "web-root"}, "spec": {}}),
            ),
        ]);
        let content = content(&snapshot, &vm, None, &claims);
        assert_eq!(content["metadata"]["name"], "vmsnapshot-content-u1");
        assert_eq!(
            content["spec"]["source"]["virtualMachine"]["metadata"].get("resourceVersion"),
            None
        );
        let first = volume_snapshot(&content, &content["spec"]["volumeBackups"][0]);
        assert_eq!(first["metadata"]["name"], "vmsnapshot-u1-volume-data");
        assert_eq!(first["spec"]["source"]["persistentVolumeClaimName"], "web-data");
        let mut taken = BTreeMap::new();
        let ready = json!({"status": {"readyToUse": true, "creationTime": "2026-01-01T00:01:00Z"}});
        let begun = json!({"status": {"readyToUse": false, "creationTime": "2026-01-01T00:02:00Z"}});
        let failing = json!({"status": {"readyToUse": false, "error": {"message": "full"}}});
        let other = "vmsnapshot-u1-volume-root".to_owned();
        taken.insert("vmsnapshot-u1-volume-data".to_owned(), ready);
        let seen = |taken: &BTreeMap<String, Value>| {
            let copies = copies(&content, taken, NOW);
            let created = text(&copies.status, "/creationTime").to_owned();
            (copies.are_begun, copies.are_ready, copies.error, created)
        };
        let of = |begun: bool, ready: bool, error: Option<&str>, created: &str| {
            let error = error.map(|it| format!("VolumeSnapshot vmsnapshot-u1-volume-root error: {it}"));
            (begun, ready, error, created.to_owned())
        };
        assert_eq!(seen(&taken), of(false, false, None, ""));
        taken.insert(other.clone(), failing);
        assert_eq!(seen(&taken), of(false, false, Some("full"), ""));
        taken.insert(other.clone(), begun.clone());
        assert_eq!(seen(&taken), of(true, false, None, ""));
        let mut done = begun;
        done["status"]["readyToUse"] = json!(true);
        taken.insert(other, done);
        assert_eq!(seen(&taken), of(true, true, None, "2026-01-01T00:02:00Z"));
    }

    #[test]
    fn memory_is_kept_with_the_last_disk() {
        let snapshot = |memory: &str| json!({"metadata": {"uid": "u1", "annotations": {MEMORY: memory}}});
        let vm = json!({"metadata": {"name": "web"}, "spec": {}});
        let claim = |name: &str| (name.to_owned(), json!({"metadata": {"name": name}, "spec": {}}));
        let claims = BTreeMap::from([claim("data"), claim("root")]);
        let running = json!({"status": {"nodeName": "n1", "phase": "Running"}});
        let ended = json!({"status": {"nodeName": "n1", "phase": "Succeeded"}});
        for (asked, instance, claims, kept, said) in [
            ("true", Some(&running), &claims, true, Some("True")),
            ("false", Some(&running), &claims, false, None),
            ("", Some(&running), &claims, false, None),
            ("true", Some(&ended), &claims, false, Some("False")),
            ("true", None, &claims, false, Some("False")),
            ("true", Some(&running), &BTreeMap::new(), false, Some("False")),
        ] {
            let snapshot = snapshot(asked);
            let mut content = content(&snapshot, &vm, instance, claims);
            content["metadata"]["uid"] = json!("c1");
            let case = format!("{asked} {instance:?} {}", claims.len());
            assert_eq!(memory(&content) == "true", kept, "{case}");
            let condition = memory_condition(&snapshot, &content);
            assert_eq!(condition.map(|it| it.1), said, "{case}");
            let backups = content["spec"]["volumeBackups"].as_array();
            let made: Vec<Value> = backups
                .into_iter()
                .flatten()
                .map(|it| volume_snapshot(&content, it)["metadata"]["annotations"].clone())
                .collect();
            if kept {
                let first = json!({MOMENT: "c1"});
                assert_eq!(made, [first, json!({MOMENT: "c1", MEMORY: "true"})], "{case}");
            } else {
                assert!(made.iter().all(|it| *it == json!({})), "{case}: {made:?}");
            }
        }
    }

    #[test]
    fn a_snapshot_says_how_far_it_is() {
        let vm = json!({"metadata": {"uid": "v1"}});
        let shown = |status: &Value| {
            let conditions = status["conditions"].as_array().unwrap();
            let all: Vec<String> = conditions
                .iter()
                .map(|it| {
                    format!(
                        "{}={} {}",
                        text(it, "/type"),
                        text(it, "/status"),
                        text(it, "/reason")
                    )
                })
                .collect();
            format!("{} {}", text(status, "/phase"), all.join(", "))
        };
        let waits = status(
            &json!({}),
            None,
            None,
            &Progress::Waits("Source does not exist".to_owned()),
            NOW,
        );
        assert_eq!(
            shown(&waits),
            "InProgress Progressing=False Source does not exist, Ready=False Not ready"
        );
        let instance = json!({"status": {"conditions": [{"type": "AgentConnected", "status": "True"}]}});
        let runs = status(&waits, Some(&vm), Some(&instance), &Progress::Runs, NOW);
        assert_eq!(runs["indications"], json!(["GuestAgent", "Online"]));
        assert_eq!(runs["sourceUID"], "v1");
        let why = "Failed freezing vm web: no";
        let fails = status(&runs, Some(&vm), Some(&instance), &Progress::Fails(why), NOW);
        assert_eq!(
            shown(&fails),
            "InProgress Progressing=False In error state, Ready=False Not ready"
        );
        assert_eq!(fails["error"]["message"], why);
        assert_eq!(
            fails["indications"],
            json!(["GuestAgent", "Online", "QuiesceFailed"])
        );
        let content = json!({
            "metadata": {"name": "c"},
            "spec": {
                "source": {"virtualMachine": {"spec": {"template": {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}}}}},
                "volumeBackups": [{"volumeName": "a"}],
            },
        });
        let kept = json!({"creationTime": NOW});
        let done = status(&runs, Some(&vm), None, &Progress::Done(&kept, &content), NOW);
        assert_eq!(
            shown(&done),
            "Succeeded Progressing=False Operation complete, Ready=True Ready"
        );
        assert_eq!(
            done["snapshotVolumes"],
            json!({"includedVolumes": ["a"], "excludedVolumes": ["b"]})
        );
        let failed = status(&runs, Some(&vm), None, &Progress::Failed, NOW);
        assert_eq!(failed["phase"], "Failed");
    }
}
