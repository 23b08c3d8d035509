//! VirtualMachineRestores. The order of a look:
//!
//! 1. the machine is stopped, and nobody else brings it back;
//! 2. claims are made of what was kept, and become bound;
//! 3. DataVolumes take over those that the machine brings along;
//! 4. the machine gets its spec back, or is made;
//! 5. disks that it has no use for go.

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Attempt as _, Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, requests};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::api::{self, At, get, is_leaving, now, text};
use crate::decide::restore::{self, FINALIZER, LAST_RESTORE, NotReady};
use crate::decide::{clone, snapshot};
use crate::snapshots::about;
use crate::{LATER, SOON};

/// Looks after restores.
pub(crate) struct Restores(pub(crate) (Clients, Recorder));

/// What one look is about.
struct Look<'a> {
    key: &'a ObjectKey,
    client: Client,
    api: Requests,
    restore: Value,
    machine: Option<Value>,
}

impl Look<'_> {
    fn path(&self) -> String {
        At::Restores.one(&self.key.namespace, &self.key.name)
    }

    fn target(&self) -> &str {
        text(&self.restore, "/spec/target/name")
    }

    fn uid(&self) -> &str {
        text(&self.restore, "/metadata/uid")
    }

    /// Whether the machine has been brought back by this restore.
    fn is_restored(&self) -> bool {
        let annotations = self
            .machine
            .as_ref()
            .and_then(|it| it.pointer("/metadata/annotations"));
        let noted = annotations
            .and_then(|it| it.get(LAST_RESTORE))
            .and_then(Value::as_str);
        noted == Some(&format!("{}-{}", self.key.name, self.uid()))
    }
}

impl Reconcile<ObjectKey> for Restores {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let client = self.0.0.of(&key.workspace);
        let api = Requests::new(client.clone());
        let Some(found) = get(&api, At::Restores, &key.namespace, &key.name).await? else {
            return Ok(Outcome::Done);
        };
        let machine = get(
            &api,
            At::Machines,
            &key.namespace,
            text(&found, "/spec/target/name"),
        )
        .await?;
        let look = Look {
            key,
            client,
            api,
            restore: found,
            machine,
        };
        if is_leaving(&look.restore) {
            self.finish_machine(&look).await?;
            api::release(&look.api, &look.path(), FINALIZER).await?;
            return Ok(Outcome::Done);
        }
        let conditions = look
            .restore
            .pointer("/status/conditions")
            .and_then(Value::as_array);
        let has_failed = conditions.into_iter().flatten().any(|it| it["type"] == "Failure");
        if look.restore["status"]["complete"] == true || has_failed {
            return Ok(Outcome::Done);
        }
        if look.restore["status"].is_null() {
            let why = "Initializing VirtualMachineRestore";
            self.say(&look, ("True", why), ("False", why), json!({"complete": false}))
                .await?;
        }
        if self.take_on(&look).await? {
            return Ok(Outcome::Again(std::time::Duration::ZERO));
        }
        match self.go_on(&look).await {
            Ok(outcome) => Ok(outcome),
            Err(failure) if failure.is_conflict() => Err(failure),
            Err(failure) => {
                let why = failure.sentence();
                let is_news = self
                    .say(&look, ("False", &why), ("False", &why), json!({}))
                    .await?;
                if is_news {
                    let message = format!("VirtualMachineRestore encountered error {why}");
                    self.record(&look, Severity::Warning, "VirtualMachineRestoreError", message)
                        .await;
                }
                Err(failure)
            }
        }
    }
}

impl Restores {
    /// Holds the restore, which goes with its machine; whether that was still to be done.
    async fn take_on(&self, look: &Look<'_>) -> Result<bool, Failure> {
        let is_held = look
            .restore
            .pointer("/metadata/finalizers")
            .and_then(Value::as_array);
        let is_held = is_held.into_iter().flatten().any(|it| it == FINALIZER);
        let is_owned = look.restore.pointer("/metadata/ownerReferences").is_some();
        if is_held && (is_owned || look.machine.is_none()) {
            return Ok(false);
        }
        let mut metadata = json!({
            "resourceVersion": requests::version(&look.restore), "finalizers": [FINALIZER],
        });
        if let Some(machine) = look.machine.as_ref().filter(|_| !is_owned) {
            metadata["ownerReferences"] = json!([restore::owner_of(machine)]);
        }
        look.api
            .merge(&look.path(), &json!({"metadata": metadata}))
            .await?;
        Ok(true)
    }

    async fn go_on(&self, look: &Look<'_>) -> Result<Outcome, Failure> {
        let namespace = &look.key.namespace;
        let is_open = look.machine.is_some() && !look.is_restored();
        let instance = get(&look.api, At::Instances, namespace, look.target()).await?;
        if is_open && instance.is_some() {
            return self.wait_for_machine(look).await;
        }
        let name = text(&look.restore, "/spec/virtualMachineSnapshotName");
        let Some(taken) = get(&look.api, At::Snapshots, namespace, name).await? else {
            return Err(Failure::NotYet(format!(
                "VMSnapshot {namespace}/{name} does not exist"
            )));
        };
        if taken["status"]["readyToUse"] != true {
            return Err(Failure::NotYet(format!(
                "VMSnapshot {namespace}/{name} not ready"
            )));
        }
        let kept = snapshot::content_name(&taken);
        let Some(content) = get(&look.api, At::Contents, namespace, &kept).await? else {
            return Err(Failure::NotYet(format!(
                "VMSnapshotContent {namespace}/{kept} does not exist"
            )));
        };
        if let Some(machine) = &look.machine
            && !look.is_restored()
            && machine["metadata"]["uid"] != taken["status"]["sourceUID"]
        {
            return Err(Failure::NotYet(
                "restore source and restore target are different but restore target already exists"
                    .to_owned(),
            ));
        }
        if look.is_restored() {
            return self.complete(look).await;
        }
        self.hold_machine(look).await?;
        let restores = restore::restores(&look.restore, &content);
        let source = &content["spec"]["source"]["virtualMachine"]["metadata"];
        let is_another = text(source, "/name") != look.target();
        let memory = restore::memory_comes_back(&look.restore, &content, is_another);
        if let Some(memory) = memory
            && self.say_memory(look, memory).await?
        {
            return Ok(Outcome::Again(std::time::Duration::ZERO));
        }
        let with_memory = memory == Some(Ok(()));
        if !self.claims(look, &content, &restores, with_memory).await? {
            let note = json!({"restores": restores});
            self.say(
                look,
                ("True", "Creating new PVCs"),
                ("False", "Waiting for new PVCs"),
                note,
            )
            .await?;
            return Ok(Outcome::Again(SOON));
        }
        let spec = restore::spec(&content, &restores, look.machine.as_ref());
        let deleted = restore::obsolete(look.machine.as_ref(), &spec);
        let mut note = json!({"restores": restores});
        if !deleted.is_empty() {
            note["deletedDataVolumes"] = json!(deleted);
        }
        self.say(
            look,
            ("True", "Updating target spec"),
            ("False", "Waiting for target update"),
            note,
        )
        .await?;
        if !self.data_volumes(look, &spec, &restores).await? {
            return Ok(Outcome::Again(SOON));
        }
        self.machine(look, &content, spec).await?;
        Ok(Outcome::Again(std::time::Duration::ZERO))
    }

    async fn wait_for_machine(&self, look: &Look<'_>) -> Result<Outcome, Failure> {
        let why = "Waiting for target to be ready";
        match restore::not_ready(&look.restore, Timestamp::now()) {
            waits @ (NotReady::Waits | NotReady::Stops) => {
                let is_news = self.say(look, ("False", why), ("False", why), json!({})).await?;
                if is_news {
                    let message = "Restore target VMI still exists".to_owned();
                    self.record(look, Severity::Normal, "RestoreTargetNotReady", message)
                        .await;
                }
                if waits == NotReady::Stops {
                    self.stop(look).await?;
                }
            }
            NotReady::Fails(reason) => {
                let failed = ("False", "Operation failed");
                let mut status = restore::status(&look.restore["status"], failed, failed, &now());
                crate::decide::set_conditions(&mut status, &[("Failure", "True", reason)], &now());
                look.api
                    .merge(&format!("{}/status", look.path()), &json!({"status": status}))
                    .await?;
                self.record(
                    look,
                    Severity::Warning,
                    "VirtualMachineRestoreError",
                    reason.to_owned(),
                )
                .await;
                return Ok(Outcome::Done);
            }
        }
        Ok(Outcome::Again(LATER))
    }

    async fn stop(&self, look: &Look<'_>) -> Result<(), Failure> {
        let path = format!(
            "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachines/{}/stop",
            look.key.namespace,
            look.target()
        );
        let request = Request::put(path)
            .header("content-type", "application/json")
            .body(b"{}".to_vec())
            .map_err(|error| Failure::NotYet(error.to_string()))?;
        look.client
            .request_text(request)
            .await
            .attempting("stop the machine")
            .map(drop)
    }

    /// Whether all claims are bound; those that are missing are made.
    async fn claims(
        &self,
        look: &Look<'_>,
        content: &Value,
        restores: &[Value],
        with_memory: bool,
    ) -> Result<bool, Failure> {
        let namespace = &look.key.namespace;
        let mut all_bound = true;
        for one in restores {
            let name = text(one, "/persistentVolumeClaim");
            match get(&look.api, At::Claims, namespace, name).await? {
                Some(found) => match text(&found, "/status/phase") {
                    "Bound" => {}
                    "Pending" | "" => all_bound = false,
                    other => {
                        return Err(Failure::NotYet(format!(
                            "PVC {namespace}/{name} in status {other:?}"
                        )));
                    }
                },
                None => {
                    all_bound = false;
                    let kept = text(one, "/volumeSnapshotName");
                    let Some(kept) = get(&look.api, At::VolumeSnapshots, namespace, kept).await? else {
                        return Err(Failure::NotYet(format!(
                            "VolumeSnapshot {namespace}/{kept} does not exist"
                        )));
                    };
                    let size = text(&kept, "/status/restoreSize");
                    let owner = look.machine.as_ref();
                    let made = restore::claim(&look.restore, one, content, size, owner, with_memory);
                    look.api.create(&At::Claims.all(namespace), &made).await?;
                }
            }
        }
        Ok(all_bound)
    }

    /// Whether the DataVolumes that take claims over have done so.
    async fn data_volumes(&self, look: &Look<'_>, spec: &Value, restores: &[Value]) -> Result<bool, Failure> {
        let namespace = &look.key.namespace;
        let mut all_done = true;
        for template in spec["dataVolumeTemplates"].as_array().into_iter().flatten() {
            let name = text(template, "/metadata/name");
            let is_ours = restores.iter().any(|it| text(it, "/dataVolumeName") == name);
            if !is_ours {
                continue;
            }
            match get(&look.api, At::DataVolumes, namespace, name).await? {
                Some(found) => all_done &= found["status"]["phase"] == "Succeeded",
                None => {
                    all_done = false;
                    let made = restore::data_volume(&look.restore, template, look.machine.as_ref());
                    look.api.create(&At::DataVolumes.all(namespace), &made).await?;
                }
            }
        }
        Ok(all_done)
    }

    /// The machine gets its spec back, or is made.
    async fn machine(&self, look: &Look<'_>, content: &Value, mut spec: Value) -> Result<(), Failure> {
        let namespace = &look.key.namespace;
        self.revisions(look, &mut spec).await?;
        let noted = format!("{}-{}", look.key.name, look.uid());
        let Some(machine) = &look.machine else {
            let source = &content["spec"]["source"]["virtualMachine"]["metadata"];
            let mut made = json!({
                "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
                "metadata": {
                    "name": look.target(), "namespace": namespace, "labels": source["labels"],
                    "annotations": source["annotations"],
                },
                "spec": spec,
            });
            for field in ["labels", "annotations"] {
                if made["metadata"][field].is_null()
                    && let Some(metadata) = made["metadata"].as_object_mut()
                {
                    metadata.shift_remove(field);
                }
            }
            let patches = look.restore.pointer("/spec/patches").and_then(Value::as_array);
            let patches = patches.map_or(&[][..], Vec::as_slice);
            let mut made = clone::patched(&made, patches).map_err(Failure::NotYet)?;
            made["metadata"]["annotations"][LAST_RESTORE] = json!(noted);
            look.api.create(&At::Machines.all(namespace), &made).await?;
            return self.give_disks(look).await;
        };
        let steps = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": requests::version(machine)},
            {"op": "replace", "path": "/spec", "value": spec},
        ]);
        let path = At::Machines.one(namespace, look.target());
        api::json_patch(&look.client, &path, &steps).await?;
        let note = json!({"metadata": {"annotations": {LAST_RESTORE: noted}}});
        look.api.merge(&path, &note).await.map(drop)
    }

    /// Disks that were made before their machine become its own.
    async fn give_disks(&self, look: &Look<'_>) -> Result<(), Failure> {
        let namespace = &look.key.namespace;
        let Some(machine) = get(&look.api, At::Machines, namespace, look.target()).await? else {
            return Ok(());
        };
        let owner = json!({"metadata": {"ownerReferences": [restore::owner_of(&machine)]}});
        let made = look.restore.pointer("/status/restores").and_then(Value::as_array);
        for one in made.into_iter().flatten() {
            let (at, name) = match text(one, "/dataVolumeName") {
                "" => (At::Claims, text(one, "/persistentVolumeClaim")),
                name => (At::DataVolumes, name),
            };
            look.api.merge(&at.one(namespace, name), &owner).await?;
        }
        Ok(())
    }

    /// Sizes as they were when the snapshot was taken.
    async fn revisions(&self, look: &Look<'_>, spec: &mut Value) -> Result<(), Failure> {
        let namespace = &look.key.namespace;
        let taken = text(&look.restore, "/spec/virtualMachineSnapshotName");
        for part in ["instancetype", "preference"] {
            let kept = text(spec, &format!("/{part}/revisionName")).to_owned();
            let Some(found) = get(&look.api, At::Revisions, namespace, &kept).await? else {
                continue;
            };
            let name = kept.replacen(taken, look.target(), 1);
            if name != kept && get(&look.api, At::Revisions, namespace, &name).await?.is_none() {
                let mut metadata = json!({"name": name, "labels": found["metadata"]["labels"]});
                if let Some(machine) = &look.machine {
                    metadata["ownerReferences"] = json!([restore::owner_of(machine)]);
                }
                let made = json!({
                    "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata,
                    "data": found["data"], "revision": found["revision"],
                });
                look.api.create(&At::Revisions.all(namespace), &made).await?;
            }
            spec[part]["revisionName"] = json!(name);
        }
        Ok(())
    }

    /// Nobody else brings the machine back meanwhile.
    async fn hold_machine(&self, look: &Look<'_>) -> Result<(), Failure> {
        let Some(machine) = &look.machine else {
            return Ok(());
        };
        match text(machine, "/status/restoreInProgress") {
            "" => {
                let patch = json!({
                    "metadata": {"resourceVersion": requests::version(machine)},
                    "status": {"restoreInProgress": look.key.name},
                });
                let path = At::Machines.one(&look.key.namespace, look.target());
                look.api.merge(&format!("{path}/status"), &patch).await?;
                // It was read before: the next look sees it as it is now.
                Err(Failure::NotYet("the machine is held for the restore".to_owned()))
            }
            name if name == look.key.name => Ok(()),
            other => Err(Failure::NotYet(format!("vm restore {other} in progress"))),
        }
    }

    async fn finish_machine(&self, look: &Look<'_>) -> Result<(), Failure> {
        let is_held = look
            .machine
            .as_ref()
            .map(|it| text(it, "/status/restoreInProgress"));
        if is_held == Some(look.key.name.as_str()) {
            let path = At::Machines.one(&look.key.namespace, look.target());
            let patch = json!({"status": {"restoreInProgress": null, "memoryDumpRequest": null}});
            look.api.merge(&format!("{path}/status"), &patch).await?;
        }
        Ok(())
    }

    async fn complete(&self, look: &Look<'_>) -> Result<Outcome, Failure> {
        let gone = look
            .restore
            .pointer("/status/deletedDataVolumes")
            .and_then(Value::as_array);
        for name in gone.into_iter().flatten().filter_map(Value::as_str) {
            look.api
                .delete(&At::DataVolumes.one(&look.key.namespace, name))
                .await?;
        }
        self.finish_machine(look).await?;
        let done = json!({"complete": true, "restoreTime": now()});
        let why = "Operation complete";
        self.say(look, ("False", why), ("True", why), done).await?;
        let message = format!("Successfully completed VirtualMachineRestore {}", look.key.name);
        self.record(look, Severity::Normal, "VirtualMachineRestoreComplete", message)
            .await;
        Ok(Outcome::Done)
    }

    async fn record(&self, look: &Look<'_>, severity: Severity, reason: &'static str, message: String) {
        let happening = Happening {
            severity,
            reason,
            message,
        };
        let about = about("VirtualMachineRestore", &look.restore);
        self.0.1.record(&look.key.workspace, &about, happening).await;
    }

    /// Says whether memory comes back; whether that is new. Whether the machine can use it is found when it starts, and told by its
    /// instance.
    async fn say_memory(&self, look: &Look<'_>, memory: Result<(), &str>) -> Result<bool, Failure> {
        let condition = match memory {
            Ok(()) => (
                "Memory",
                "True",
                "The machine goes on where it was when it starts next",
            ),
            Err(why) => ("Memory", "False", why),
        };
        let mut status = look.restore["status"].clone();
        crate::decide::set_conditions(&mut status, &[condition], &now());
        if status == look.restore["status"] {
            return Ok(false);
        }
        let path = format!("{}/status", look.path());
        let conditions = json!({"status": {"conditions": status["conditions"]}});
        look.api.merge(&path, &conditions).await?;
        Ok(true)
    }

    /// Says how far it is, and notes more beside; whether that is new.
    async fn say(
        &self,
        look: &Look<'_>,
        progressing: (&str, &str),
        ready: (&str, &str),
        note: Value,
    ) -> Result<bool, Failure> {
        let before = &look.restore["status"];
        let mut after = restore::status(before, progressing, ready, &now());
        for (field, value) in note.as_object().into_iter().flatten() {
            after[field] = value.clone();
        }
        if after == *before {
            return Ok(false);
        }
        let path = format!("{}/status", look.path());
        look.api.merge(&path, &json!({"status": after})).await?;
        Ok(true)
    }
}
