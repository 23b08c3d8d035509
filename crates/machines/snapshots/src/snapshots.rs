//! VirtualMachineSnapshots. The order of a look:
//!
//! 1. one that goes, or took too long, gives everything back;
//! 2. the machine's disks are all there, and the machine is held;
//! 3. what the machine is, is kept;
//! 4. the guest is quieted, the moment of its copies comes, its memory is kept if it is to be, it goes on, and the copies become whole;
//! 5. the machine is let go.

use std::collections::BTreeMap;

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, requests};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use serde_json::{Value, json};

use crate::api::{self, At, get, is_leaving, now, text};
use crate::decide::machine;
use crate::decide::snapshot::{self, CONTENT_FINALIZER, FINALIZER, Progress, SOURCE_FINALIZER};
use crate::{LATER, RETRY, SOON, quiet};

/// Looks after snapshots.
pub(crate) struct Snapshots(pub(crate) (Clients, Recorder));

/// What one look is about.
struct Look<'a> {
    key: &'a ObjectKey,
    client: Client,
    api: Requests,
    snapshot: Value,
    machine: Option<Value>,
    instance: Option<Value>,
    content: Option<Value>,
}

impl Look<'_> {
    fn path(&self) -> String {
        At::Snapshots.one(&self.key.namespace, &self.key.name)
    }

    /// The machine that runs has the name of its machine.
    fn source(&self) -> ObjectKey {
        let name = text(&self.snapshot, "/spec/source/name");
        ObjectKey::new(&self.key.workspace, &self.key.namespace, name)
    }
}

/// An object that events are about.
pub(crate) fn about(kind: &str, object: &Value) -> ObjectReference {
    ObjectReference {
        api_version: Some(text(object, "/apiVersion").to_owned()),
        kind: Some(kind.to_owned()),
        namespace: Some(text(object, "/metadata/namespace").to_owned()),
        name: Some(text(object, "/metadata/name").to_owned()),
        uid: Some(text(object, "/metadata/uid").to_owned()),
        ..ObjectReference::default()
    }
}

impl Reconcile<ObjectKey> for Snapshots {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let client = self.0.0.of(&key.workspace);
        let api = Requests::new(client.clone());
        let Some(found) = get(&api, At::Snapshots, &key.namespace, &key.name).await? else {
            return Ok(Outcome::Done);
        };
        let name = text(&found, "/spec/source/name").to_owned();
        let content = snapshot::content_name(&found);
        let look = Look {
            key,
            machine: get(&api, At::Machines, &key.namespace, &name).await?,
            instance: get(&api, At::Instances, &key.namespace, &name).await?,
            content: get(&api, At::Contents, &key.namespace, &content).await?,
            client,
            api,
            snapshot: found,
        };
        if is_leaving(&look.snapshot) {
            return self.leave(&look).await;
        }
        if matches!(text(&look.snapshot, "/status/phase"), "Succeeded" | "Failed") {
            return Ok(Outcome::Done);
        }
        if api::protect(&look.api, &look.path(), &look.snapshot, FINALIZER).await? {
            return Ok(Outcome::Again(std::time::Duration::ZERO));
        }
        if snapshot::is_overdue(&look.snapshot, Timestamp::now()) {
            self.give_back(&look).await?;
            if look.content.is_some() {
                self.drop_content(&look).await?;
            }
            self.tell(&look, &Progress::Failed).await?;
            return Ok(Outcome::Done);
        }
        self.take(&look).await
    }
}

impl Snapshots {
    /// Goes on with a snapshot.
    async fn take(&self, look: &Look<'_>) -> Result<Outcome, Failure> {
        let Some(vm) = &look.machine else {
            self.tell(look, &Progress::Waits("Source does not exist".to_owned()))
                .await?;
            return Ok(Outcome::Again(LATER));
        };
        let claims = match self.claims(look, vm).await? {
            Ok(claims) => claims,
            Err(why) => {
                self.tell(look, &Progress::Waits(format!("Source not locked {why}")))
                    .await?;
                return Ok(Outcome::Again(LATER));
            }
        };
        if let Some(other) = self.hold(look, vm).await? {
            let why = format!("Source not locked snapshot {other:?} in progress");
            self.tell(look, &Progress::Waits(why)).await?;
            return Ok(Outcome::Again(LATER));
        }
        let content = match &look.content {
            Some(content) => content.clone(),
            None => {
                let kept = self.kept(look, vm).await?;
                let content = snapshot::content(&look.snapshot, &kept, look.instance.as_ref(), &claims);
                look.api
                    .create(&At::Contents.all(&look.key.namespace), &content)
                    .await?;
                self.tell(look, &Progress::Runs).await?;
                let message = format!(
                    "Successfully created VirtualMachineSnapshotContent {}",
                    snapshot::content_name(&look.snapshot)
                );
                let about = about("VirtualMachineSnapshot", &look.snapshot);
                let happening = Happening {
                    severity: Severity::Normal,
                    reason: "SuccessfulVirtualMachineSnapshotContentCreate",
                    message,
                };
                self.0.1.record(&look.key.workspace, &about, happening).await;
                return Ok(Outcome::Again(std::time::Duration::ZERO));
            }
        };
        let taken = match self.copies(look, &content).await? {
            Ok(taken) => taken,
            Err(why) => {
                self.tell(look, &Progress::Fails(&why)).await?;
                self.warn(look, "QuiesceFailed", why).await;
                return Ok(Outcome::Again(RETRY));
            }
        };
        let copies = snapshot::copies(&content, &taken, &now());
        if let Some(why) = &copies.error {
            return self.begin_again(look, &content, &copies.status, why).await;
        }
        if copies.are_begun {
            quiet::wake(&look.client, &look.api, &look.source(), &content).await?;
        }
        if !copies.are_ready {
            return Ok(Outcome::Again(SOON));
        }
        self.say_content(look, &content, &copies.status).await?;
        self.tell(look, &Progress::Done(&copies.status, &content)).await?;
        self.let_go(look).await?;
        Ok(Outcome::Done)
    }

    /// One disk could not be copied: the guest must not wait for it, and then the others are of an older moment.
    async fn begin_again(
        &self,
        look: &Look<'_>,
        content: &Value,
        status: &Value,
        why: &str,
    ) -> Result<Outcome, Failure> {
        quiet::wake(&look.client, &look.api, &look.source(), content).await?;
        self.say_content(look, content, status).await?;
        self.tell(look, &Progress::Fails(why)).await?;
        self.warn(look, "VolumeSnapshotFailed", why.to_owned()).await;
        let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
        for backup in backups.into_iter().flatten() {
            let name = text(backup, "/volumeSnapshotName");
            let path = At::VolumeSnapshots.one(&look.key.namespace, name);
            look.api.delete(&path).await?;
        }
        Ok(Outcome::Again(RETRY))
    }

    async fn warn(&self, look: &Look<'_>, reason: &'static str, message: String) {
        let happening = Happening {
            severity: Severity::Warning,
            reason,
            message,
        };
        let about = about("VirtualMachineSnapshot", &look.snapshot);
        self.0.1.record(&look.key.workspace, &about, happening).await;
    }

    async fn say_content(&self, look: &Look<'_>, content: &Value, status: &Value) -> Result<(), Failure> {
        let path = At::Contents.one(&look.key.namespace, text(content, "/metadata/name"));
        look.api
            .merge(&format!("{path}/status"), &json!({"status": status}))
            .await
            .map(drop)
    }

    /// The claims of a machine that can be kept; else why it has to wait.
    async fn claims(
        &self,
        look: &Look<'_>,
        vm: &Value,
    ) -> Result<Result<BTreeMap<String, Value>, String>, Failure> {
        let mut found = BTreeMap::new();
        let name = text(vm, "/metadata/name");
        for (volume, claim) in machine::claims(vm) {
            let at = format!("source {}/{name}", look.key.namespace);
            match get(&look.api, At::Claims, &look.key.namespace, &claim).await? {
                None => return Ok(Err(format!("{at} volume doesnt exist: {claim}"))),
                Some(read) if read["status"]["phase"] != "Bound" => {
                    return Ok(Err(format!("{at} volume not bound: {claim}")));
                }
                Some(read) => drop(found.insert(volume, read)),
            }
        }
        Ok(Ok(found))
    }

    /// Holds the machine; or which other snapshot does.
    async fn hold(&self, look: &Look<'_>, vm: &Value) -> Result<Option<String>, Failure> {
        let path = At::Machines.one(&look.key.namespace, text(vm, "/metadata/name"));
        match text(vm, "/status/snapshotInProgress") {
            "" => {
                let patch = json!({
                    "metadata": {"resourceVersion": requests::version(vm)},
                    "status": {"snapshotInProgress": look.key.name},
                });
                look.api.merge(&format!("{path}/status"), &patch).await?;
            }
            name if name == look.key.name => {}
            other => return Ok(Some(other.to_owned())),
        }
        let vm = look.api.get(&path).await?.unwrap_or_default();
        api::protect(&look.api, &path, &vm, SOURCE_FINALIZER).await?;
        Ok(None)
    }

    /// Lets the machine go.
    async fn let_go(&self, look: &Look<'_>) -> Result<(), Failure> {
        let source = look.source();
        let path = At::Machines.one(&source.namespace, &source.name);
        let Some(vm) = look.api.get(&path).await? else {
            return Ok(());
        };
        if text(&vm, "/status/snapshotInProgress") != look.key.name {
            return Ok(());
        }
        api::release(&look.api, &path, SOURCE_FINALIZER).await?;
        let patch = json!({"status": {"snapshotInProgress": null}});
        look.api.merge(&format!("{path}/status"), &patch).await.map(drop)
    }

    /// The machine as it is kept: as it runs, if it does, with revisions of its size that stay.
    async fn kept(&self, look: &Look<'_>, vm: &Value) -> Result<Value, Failure> {
        let mut kept = vm.clone();
        let revision = look
            .instance
            .as_ref()
            .map(|it| text(it, "/status/virtualMachineRevisionName"))
            .unwrap_or_default();
        if let Some(revision) = get(&look.api, At::Revisions, &look.key.namespace, revision).await?
            && revision["data"]["spec"].is_object()
        {
            let volumes = kept["spec"]["template"]["spec"]["volumes"].clone();
            let disks = kept["spec"]["template"]["spec"]["domain"]["devices"]["disks"].clone();
            kept["spec"] = revision["data"]["spec"].clone();
            kept["spec"]["template"]["spec"]["volumes"] = volumes;
            kept["spec"]["template"]["spec"]["domain"]["devices"]["disks"] = disks;
        }
        for part in ["instancetype", "preference"] {
            let name = text(&kept, &format!("/spec/{part}/revisionName")).to_owned();
            let Some(found) = get(&look.api, At::Revisions, &look.key.namespace, &name).await? else {
                continue;
            };
            let copy = name.replacen(text(vm, "/metadata/name"), &look.key.name, 1);
            let owner = json!({
                "apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot", "name": look.key.name,
                "uid": text(&look.snapshot, "/metadata/uid"), "controller": true, "blockOwnerDeletion": true,
            });
            let made = json!({
                "apiVersion": "apps/v1", "kind": "ControllerRevision",
                "metadata": {"name": copy, "labels": found["metadata"]["labels"], "ownerReferences": [owner]},
                "data": found["data"], "revision": found["revision"],
            });
            look.api
                .create(&At::Revisions.all(&look.key.namespace), &made)
                .await?;
            kept["spec"][part]["revisionName"] = json!(copy);
        }
        Ok(kept)
    }

    /// The VolumeSnapshots of a content, made if they are missing; else why the guest could not be quieted for them.
    async fn copies(
        &self,
        look: &Look<'_>,
        content: &Value,
    ) -> Result<Result<BTreeMap<String, Value>, String>, Failure> {
        let namespace = &look.key.namespace;
        let backups = content.pointer("/spec/volumeBackups").and_then(Value::as_array);
        let mut taken = BTreeMap::new();
        let mut missing = Vec::new();
        for backup in backups.into_iter().flatten() {
            let name = text(backup, "/volumeSnapshotName");
            match get(&look.api, At::VolumeSnapshots, namespace, name).await? {
                // Of an attempt that failed: it is of another moment, and nothing begins before it is gone.
                Some(found) if is_leaving(&found) => return Ok(Ok(BTreeMap::new())),
                Some(found) => drop(taken.insert(name.to_owned(), found)),
                None => missing.push(backup),
            }
        }
        if missing.is_empty() {
            return Ok(Ok(taken));
        }
        if let Some(instance) = &look.instance
            && snapshot::runs(instance)
            && let Err(why) = quiet::quiet(&look.client, &look.api, &look.source(), instance, content).await?
        {
            return Ok(Err(why));
        }
        let is_begun = |it: &Value| !text(it, "/status/creationTime").is_empty();
        let waits = missing.len() > 1 || !taken.values().all(is_begun);
        for backup in missing {
            // It is made sure that the machine stands still when memory is kept, and so that it did before.
            if waits && snapshot::keeps_memory(content, backup) {
                continue;
            }
            let made = snapshot::volume_snapshot(content, backup);
            look.api
                .create(&At::VolumeSnapshots.all(namespace), &made)
                .await?;
        }
        Ok(Ok(taken))
    }

    /// Gives the machine back what was taken from it.
    async fn give_back(&self, look: &Look<'_>) -> Result<(), Failure> {
        if let Some(content) = &look.content {
            quiet::wake(&look.client, &look.api, &look.source(), content).await?;
        }
        self.let_go(look).await
    }

    async fn drop_content(&self, look: &Look<'_>) -> Result<(), Failure> {
        let path = At::Contents.one(&look.key.namespace, &snapshot::content_name(&look.snapshot));
        look.api.delete(&path).await?;
        api::release(&look.api, &path, CONTENT_FINALIZER).await
    }

    async fn leave(&self, look: &Look<'_>) -> Result<Outcome, Failure> {
        self.give_back(look).await?;
        if let Some(content) = &look.content {
            let is_kept = text(&look.snapshot, "/spec/deletionPolicy") == "Retain"
                && content["status"]["readyToUse"] == true;
            let path = At::Contents.one(&look.key.namespace, text(content, "/metadata/name"));
            match is_kept {
                true => api::release(&look.api, &path, CONTENT_FINALIZER).await?,
                false => self.drop_content(look).await?,
            }
        }
        api::release(&look.api, &look.path(), FINALIZER).await?;
        Ok(Outcome::Done)
    }

    async fn tell(&self, look: &Look<'_>, progress: &Progress<'_>) -> Result<(), Failure> {
        let before = look.snapshot.get("status").cloned().unwrap_or(Value::Null);
        let mut after = snapshot::status(
            &before,
            look.machine.as_ref(),
            look.instance.as_ref(),
            progress,
            &now(),
        );
        if let Progress::Done(_, content) = progress
            && let Some(condition) = snapshot::memory_condition(&look.snapshot, content)
        {
            crate::decide::set_conditions(&mut after, &[condition], &now());
        }
        if after == before {
            return Ok(());
        }
        // What was read may be older than a finalizer; the status is this controller's alone.
        let path = format!("{}/status", look.path());
        look.api.merge(&path, &json!({"status": after})).await.map(drop)
    }
}
