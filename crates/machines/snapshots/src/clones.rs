//! VirtualMachineClones: a snapshot, a restore of it to another machine, and then both are gone.

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use serde_json::{Value, json};

use crate::api::{At, get, is_leaving, now, text};
use crate::decide::{clone, set_conditions, snapshot};
use crate::snapshots::about;
use crate::{LATER, SOON};

/// Looks after clones.
pub(crate) struct Clones(pub(crate) (Clients, Recorder));

/// What came of a look.
enum Came {
    /// It waits for its source.
    Pending(String),
    /// It is in this phase; what to note beside.
    Phase(&'static str, Value),
    /// It cannot go on.
    Failed(&'static str, String),
}

impl Reconcile<ObjectKey> for Clones {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let api = Requests::new(self.0.0.of(&key.workspace));
        let Some(found) = get(&api, At::Clones, &key.namespace, &key.name).await? else {
            return Ok(Outcome::Done);
        };
        if is_leaving(&found) || matches!(text(&found, "/status/phase"), "Failed" | "Succeeded") {
            return Ok(Outcome::Done);
        }
        let came = go_on(&api, key, &found).await?;
        self.say(&api, key, &found, &came).await?;
        Ok(match came {
            Came::Pending(_) => Outcome::Again(LATER),
            Came::Phase("Succeeded", _) | Came::Failed(..) => Outcome::Done,
            Came::Phase(..) => Outcome::Again(SOON),
        })
    }
}

async fn go_on(api: &Requests, key: &ObjectKey, found: &Value) -> Result<Came, Failure> {
    let namespace = &key.namespace;
    let (kind, name) = (text(found, "/spec/source/kind"), text(found, "/spec/source/name"));
    let is_machine = kind == "VirtualMachine";
    let at = if is_machine { At::Machines } else { At::Snapshots };
    let taken = match is_machine {
        true => clone::snapshot_name(found),
        false => name.to_owned(),
    };
    let noted = text(found, "/status/snapshotName");
    if noted.is_empty() && get(api, at, namespace, name).await?.is_none() {
        return Ok(Came::Pending(format!(
            "Source doesnt exist: {kind} {namespace}/{name}"
        )));
    }
    if is_machine && noted.is_empty() {
        let made = json!({
            "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot",
            "metadata": {"name": taken, "ownerReferences": [clone::owner(found)]},
            "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}},
        });
        api.create(&At::Snapshots.all(namespace), &made).await?;
        return Ok(Came::Phase("SnapshotInProgress", json!({"snapshotName": taken})));
    }
    let restore = clone::restore_name(found);
    let Some(kept) = get(api, At::Snapshots, namespace, &taken).await? else {
        let why = format!("snapshot {taken} does not exist anymore");
        return Ok(Came::Failed("SnapshotDeleted", why));
    };
    if kept["status"]["phase"] == "Failed" {
        let why = format!("snapshot {taken} failed; see what it says");
        return Ok(Came::Failed("SnapshotContentInvalid", why));
    }
    if kept["status"]["readyToUse"] != true {
        return Ok(Came::Phase("SnapshotInProgress", json!({"snapshotName": taken})));
    }
    let note = json!({"snapshotName": taken, "restoreName": restore});
    let Some(restored) = get(api, At::Restores, namespace, &restore).await? else {
        let content = get(api, At::Contents, namespace, &snapshot::content_name(&kept)).await?;
        let content = content.unwrap_or_default();
        let machine = &content["spec"]["source"]["virtualMachine"];
        let made = json!({
            "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore",
            "metadata": {"name": restore, "ownerReferences": [clone::owner(found)]},
            "spec": {
                "target": found["spec"]["target"], "virtualMachineSnapshotName": taken,
                "patches": clone::patches(machine, &found["spec"]),
            },
        });
        api.create(&At::Restores.all(namespace), &made).await?;
        return Ok(Came::Phase("RestoreInProgress", note));
    };
    let conditions = restored.pointer("/status/conditions").and_then(Value::as_array);
    if let Some(failed) = conditions
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "Failure")
    {
        return Ok(Came::Failed(
            "RestoreCreationFailed",
            text(failed, "/reason").to_owned(),
        ));
    }
    if restored["status"]["complete"] != true {
        return Ok(Came::Phase("RestoreInProgress", note));
    }
    let target = text(found, "/spec/target/name");
    if get(api, At::Machines, namespace, target).await?.is_none() {
        return Ok(Came::Phase("CreatingTargetVM", note));
    }
    // The disks are copies of their own: what they were made of can go.
    api.delete(&At::Restores.one(namespace, &restore)).await?;
    if is_machine {
        api.delete(&At::Snapshots.one(namespace, &taken)).await?;
    }
    Ok(Came::Phase(
        "Succeeded",
        json!({"targetName": target, "snapshotName": null, "restoreName": null}),
    ))
}

impl Clones {
    async fn say(&self, api: &Requests, key: &ObjectKey, found: &Value, came: &Came) -> Result<(), Failure> {
        let before = found.get("status").cloned().unwrap_or_else(|| json!({}));
        let mut after = before.clone();
        let now = now();
        let (event, message) = match came {
            Came::Pending(why) => {
                set_conditions(
                    &mut after,
                    &[("Progressing", "False", "Pending"), ("Ready", "False", why)],
                    &now,
                );
                ("SourceDoesNotExist", why.clone())
            }
            Came::Failed(event, why) => {
                after["phase"] = json!("Failed");
                set_conditions(
                    &mut after,
                    &[("Progressing", "False", "Failed"), ("Ready", "False", why)],
                    &now,
                );
                (*event, why.clone())
            }
            Came::Phase(phase, note) => {
                after["phase"] = json!(phase);
                for (field, value) in note.as_object().into_iter().flatten() {
                    after[field] = value.clone();
                }
                let conditions = match *phase {
                    "Succeeded" => [("Progressing", "False", "Ready"), ("Ready", "True", "Ready")],
                    _ => [
                        ("Progressing", "True", "Still processing"),
                        ("Ready", "False", "Still processing"),
                    ],
                };
                set_conditions(&mut after, &conditions, &now);
                if *phase == "Succeeded" {
                    after["creationTime"] = json!(now);
                }
                (
                    phase_event(phase),
                    format!("clone {} is in phase {phase}", key.name),
                )
            }
        };
        if after == before {
            return Ok(());
        }
        let path = At::Clones.one(&key.namespace, &key.name);
        api.merge(&format!("{path}/status"), &json!({"status": after}))
            .await?;
        if after["phase"] != before["phase"] || before["conditions"].is_null() {
            let severity = match came {
                Came::Failed(..) => Severity::Warning,
                _ => Severity::Normal,
            };
            let happening = Happening {
                severity,
                reason: event,
                message,
            };
            self.0
                .1
                .record(&key.workspace, &about("VirtualMachineClone", found), happening)
                .await;
        }
        Ok(())
    }
}

fn phase_event(phase: &str) -> &'static str {
    match phase {
        "SnapshotInProgress" => "SnapshotCreated",
        "RestoreInProgress" => "RestoreCreated",
        "CreatingTargetVM" => "RestoreReady",
        _ => "TargetVMCreated",
    }
}
