//! VolumeSnapshots: copies of disks that stay as they were.
//!
//! A disk that nobody writes to is copied as a file. That of a machine that runs is copied by the machine itself: the copy is of one moment,
//! the guest goes on, and what it overwrites meanwhile is saved first ([`live`]). Both share with the disk what lies behind it, and new
//! claims are made from them like from any other disk. What was written in memory of the guest is not in it: who wants more than the
//! state at a loss of power freezes the guest around it, as a VirtualMachineSnapshot does.

mod live;

use std::path::PathBuf;
use std::sync::Arc;

use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_machines_guests::Guests;
use fairway_machines_image::ImageError;
use serde_json::{Value, json};

use crate::claims::reference;
use crate::decide::snapshot::{self, BOUND_PROTECTION, CONTENT_PROTECTION, Snapshot};
use crate::decide::volume;
use crate::moment::MEMORY_ANNOTATION;
use crate::origin::blocking;
use crate::place::{Content, Place};
use crate::view::{self, Claim, Volume};
use crate::{PROVISIONER, STORAGE_CLASS, names, uses};

const GROUP: &str = "/apis/snapshot.storage.k8s.io/v1";

/// Looks after VolumeSnapshots.
pub(crate) struct Snapshots {
    pub(crate) clients: Clients,
    pub(crate) recorder: Recorder,
    pub(crate) node: String,
    /// Whether snapshots of disks on other nodes are handed to those.
    pub(crate) chooses: bool,
    pub(crate) place: Arc<Place>,
    /// Machines that run.
    pub(crate) guests: Option<Arc<dyn Guests>>,
}

/// What one look is about.
struct Look<'a> {
    key: &'a ObjectKey,
    requests: Requests,
    snapshot: Snapshot,
    /// What stands for its files.
    content: String,
    /// Where they will be.
    target: PathBuf,
}

pub(crate) fn path(namespace: &str, name: &str) -> String {
    format!("{GROUP}/namespaces/{namespace}/volumesnapshots/{name}")
}

fn content_path(name: &str) -> String {
    format!("{GROUP}/volumesnapshotcontents/{name}")
}

/// Whether a snapshot is taken here, or cannot be taken.
enum Source {
    /// The claim, and the directory of its disk.
    Here(Box<Claim>, PathBuf),
    /// Another node's, if it is known whose.
    Elsewhere(Option<String>),
    /// Not now.
    NotYet(String),
}

impl Reconcile<ObjectKey> for Snapshots {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let Some(read) = requests.get(&path(&key.namespace, &key.name)).await? else {
            return Ok(Outcome::Done);
        };
        let snapshot: Snapshot = view::read("volumesnapshot", &read)?;
        let content = snapshot::content_name(&snapshot.metadata.uid);
        let look = Look {
            target: self.place.snapshot(&key.workspace, &content),
            key,
            requests,
            snapshot,
            content,
        };
        if look.snapshot.metadata.is_deleting() {
            return self.leave(&look, &read).await;
        }
        if look.snapshot.status.ready_to_use {
            return Ok(Outcome::Done);
        }
        let Some(name) = &look.snapshot.spec.source.persistent_volume_claim_name else {
            let why = "only snapshots of claims are taken here: set spec.source.persistentVolumeClaimName";
            return self.wait(&look, why).await;
        };
        let (claim, directory) = match self.source(&look.requests, key, name).await? {
            Source::Here(claim, directory) => (claim, directory),
            Source::Elsewhere(node) => return self.hand_over(&look, node.as_deref()).await,
            Source::NotYet(why) => return self.wait(&look, &why).await,
        };
        let wanted = look.snapshot.spec.volume_snapshot_class_name.as_deref();
        let (class, policy) = match self.class(&look.requests, wanted).await? {
            Ok(class) => class,
            Err(why) => return self.wait(&look, &why).await,
        };
        protect(&look, &read).await?;
        let standing = snapshot::content(&look.snapshot, &claim, &self.node, &class, &policy);
        look.requests
            .create(&format!("{GROUP}/volumesnapshotcontents"), &standing)
            .await?;
        let place = look.target.clone();
        if let Ok(Some(size)) = blocking(move || Place::size(&place)).await {
            return self.taken(&look, size).await;
        }
        let claim = ObjectKey::new(&key.workspace, &key.namespace, name);
        let holder = uses::holder(&look.requests, &claim).await?;
        if look.snapshot.status.creation_time.is_some() {
            return self.go_on(&look, holder).await;
        }
        if let Some(instance) = holder {
            return self.begin(&look, &instance, &directory).await;
        }
        if look.snapshot.metadata.annotation(MEMORY_ANNOTATION) == Some("true") {
            let why = "the machine does not run any more, and has no memory to be kept";
            return self.wait(&look, why).await;
        }
        match copy(directory, look.target.clone()).await {
            Ok(size) => self.taken(&look, size).await,
            Err(error) => self.wait(&look, &crate::fill::sentence(&error)).await,
        }
    }
}

/// A snapshot is held while its files are there.
async fn protect(look: &Look<'_>, read: &Value) -> Result<(), Failure> {
    let mut finalizers = look.snapshot.metadata.finalizers.clone();
    if finalizers.iter().any(|it| it == BOUND_PROTECTION) {
        return Ok(());
    }
    finalizers.push(BOUND_PROTECTION.to_owned());
    let patch = json!({"metadata": {
        "resourceVersion": fairway_controller::requests::version(read), "finalizers": finalizers,
    }});
    let path = path(&look.key.namespace, &look.key.name);
    look.requests.merge(&path, &patch).await.map(drop)
}

async fn copy(from: PathBuf, to: PathBuf) -> Result<u64, ImageError> {
    blocking(move || Place::make(&to, &Content::Volume(from), 0, false)).await
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Snapshots {
    async fn tell(&self, look: &Look<'_>, severity: Severity, reason: &'static str, message: String) {
        let metadata = &look.snapshot.metadata;
        let about = reference("snapshot.storage.k8s.io/v1", "VolumeSnapshot", metadata);
        let happening = Happening {
            severity,
            reason,
            message,
        };
        self.recorder.record(&look.key.workspace, &about, happening).await;
    }

    /// Its files are there.
    async fn taken(&self, look: &Look<'_>, size: u64) -> Result<Outcome, Failure> {
        let name = &look.content;
        let handle = json!({"status": {"readyToUse": true, "restoreSize": size, "snapshotHandle": name}});
        look.requests
            .merge(&format!("{}/status", content_path(name)), &handle)
            .await?;
        let created = look.snapshot.status.creation_time.clone().unwrap_or_else(now);
        say(look, &snapshot::ready(name, size, &created)).await?;
        let message = format!("Snapshot {} is ready to use.", look.key);
        self.tell(look, Severity::Normal, "SnapshotReady", message).await;
        Ok(Outcome::Done)
    }

    /// Says why it is not taken, and looks again by and by: most of what is missing tells nobody when it comes.
    async fn wait(&self, look: &Look<'_>, why: &str) -> Result<Outcome, Failure> {
        if let Some(status) = snapshot::failed(&look.snapshot.status, why, &now()) {
            say(look, &status).await?;
            self.tell(look, Severity::Warning, "SnapshotCreationFailed", why.to_owned())
                .await;
        }
        Ok(Outcome::Poll)
    }

    /// Where the disk is.
    async fn source(&self, requests: &Requests, key: &ObjectKey, name: &str) -> Result<Source, Failure> {
        let claims = format!(
            "/api/v1/namespaces/{}/persistentvolumeclaims/{name}",
            key.namespace
        );
        let Some(found) = requests.get(&claims).await? else {
            return Ok(Source::NotYet(format!("the claim {name} does not exist")));
        };
        let claim: Claim = view::read("persistentvolumeclaim", &found)?;
        let chosen = claim.metadata.annotation(names::SELECTED_NODE);
        if let Some(node) = chosen.filter(|node| *node != self.node) {
            return Ok(Source::Elsewhere(Some(node.to_owned())));
        }
        if claim.status.phase != "Bound" {
            return Ok(Source::NotYet(format!("the claim {name} is not bound yet")));
        }
        let volume_name = claim.spec.volume_name.clone();
        let held = requests
            .get(&format!("/api/v1/persistentvolumes/{volume_name}"))
            .await?;
        let held: Volume = view::read("persistentvolume", &held.unwrap_or_default())?;
        let directory = self.place.directory(&key.workspace, &volume_name);
        let is_its = held
            .spec
            .claim_ref
            .as_ref()
            .is_some_and(|it| it.uid == claim.metadata.uid);
        match is_its && volume::is_of(&held, &self.node, &directory) {
            true => Ok(Source::Here(Box::new(claim), directory)),
            false => Ok(Source::Elsewhere(None)),
        }
    }

    /// The disk is on another node, which sees the snapshot as soon as it is named on it. The class is made by whoever may.
    async fn hand_over(&self, look: &Look<'_>, node: Option<&str>) -> Result<Outcome, Failure> {
        let metadata = &look.snapshot.metadata;
        let Some(node) = node.filter(|_| self.chooses) else {
            return Ok(Outcome::Done);
        };
        let wanted = look.snapshot.spec.volume_snapshot_class_name.as_deref();
        if let Err(why) = self.class(&look.requests, wanted).await? {
            return self.wait(look, &why).await;
        }
        if metadata.annotation(names::SELECTED_NODE) != Some(node) {
            let patch = json!({"metadata": {
                "uid": metadata.uid, "annotations": {names::SELECTED_NODE: node},
            }});
            let path = path(&look.key.namespace, &look.key.name);
            look.requests.merge(&path, &patch).await?;
        }
        Ok(Outcome::Done)
    }

    /// The class of a snapshot and what becomes of its files; else what is wrong with it.
    async fn class(
        &self,
        requests: &Requests,
        name: Option<&str>,
    ) -> Result<Result<(String, String), String>, Failure> {
        let name = name.unwrap_or(STORAGE_CLASS);
        let classes = format!("{GROUP}/volumesnapshotclasses");
        let found = match requests.get(&format!("{classes}/{name}")).await? {
            Some(found) => found,
            None if name == STORAGE_CLASS => {
                let class = json!({
                    "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
                    "metadata": {
                        "name": STORAGE_CLASS,
                        "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"},
                    },
                    "driver": PROVISIONER, "deletionPolicy": "Delete",
                });
                requests.create(&classes, &class).await?;
                class
            }
            None => {
                return Ok(Err(format!(
                    "volumesnapshotclass.snapshot.storage.k8s.io {name:?} not found"
                )));
            }
        };
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        match text("driver") == PROVISIONER {
            true => Ok(Ok((name.to_owned(), text("deletionPolicy")))),
            false => Ok(Err(format!("the class {name} is not one of {PROVISIONER}"))),
        }
    }

    /// A snapshot goes, and what it kept goes with it if its class says so.
    async fn leave(&self, look: &Look<'_>, read: &Value) -> Result<Outcome, Failure> {
        let finalizers = &look.snapshot.metadata.finalizers;
        if !finalizers.iter().any(|it| it == BOUND_PROTECTION) {
            return Ok(Outcome::Done);
        }
        let standing = content_path(&look.content);
        if let Some(content) = look.requests.get(&standing).await? {
            if content["metadata"]["annotations"][snapshot::NODE] != self.node.as_str() {
                return Ok(Outcome::Done);
            }
            if content["spec"]["deletionPolicy"] == "Delete" {
                self.break_off(look).await?;
                look.requests.delete(&standing).await?;
                let directory = look.target.clone();
                blocking(move || Place::remove(&directory))
                    .await
                    .map_err(|error| Failure::NotYet(crate::fill::sentence(&error)))?;
                unprotect(&look.requests, &standing, CONTENT_PROTECTION).await?;
            }
        }
        let rest: Vec<&String> = finalizers.iter().filter(|it| *it != BOUND_PROTECTION).collect();
        let patch = json!({"metadata": {
            "resourceVersion": fairway_controller::requests::version(read), "finalizers": rest,
        }});
        let path = path(&look.key.namespace, &look.key.name);
        look.requests.merge(&path, &patch).await?;
        Ok(Outcome::Done)
    }
}

async fn say(look: &Look<'_>, status: &Value) -> Result<(), Failure> {
    let path = format!("{}/status", path(&look.key.namespace, &look.key.name));
    look.requests
        .merge(&path, &json!({"status": status}))
        .await
        .map(drop)
}

async fn unprotect(requests: &Requests, path: &str, finalizer: &str) -> Result<(), Failure> {
    let Some(found) = requests.get(path).await? else {
        return Ok(());
    };
    let all = found["metadata"]["finalizers"].as_array();
    let rest: Vec<&Value> = all.into_iter().flatten().filter(|it| *it != finalizer).collect();
    let patch = json!({"metadata": {
        "resourceVersion": fairway_controller::requests::version(&found), "finalizers": rest,
    }});
    requests.merge(path, &patch).await?;
    Ok(())
}
