//! What a VolumeSnapshot does next, in the words of Kubernetes' snapshot controller.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::PROVISIONER;
use crate::view::{Claim, Metadata};

/// Snapshots hold what they need while they are bound.
pub(crate) const BOUND_PROTECTION: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
/// Files go before the content that stands for them.
pub(crate) const CONTENT_PROTECTION: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
/// On a content: the node whose files it stands for.
pub(crate) const NODE: &str = "fairway.dev/node";

/// A VolumeSnapshot.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Snapshot {
    pub(crate) metadata: Metadata,
    pub(crate) spec: SnapshotSpec,
    pub(crate) status: SnapshotStatus,
}

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotSpec {
    pub(crate) source: SnapshotSource,
    pub(crate) volume_snapshot_class_name: Option<String>,
}

/// Of what.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotSource {
    pub(crate) persistent_volume_claim_name: Option<String>,
    pub(crate) volume_snapshot_content_name: Option<String>,
}

/// How it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SnapshotStatus {
    pub(crate) bound_volume_snapshot_content_name: String,
    pub(crate) ready_to_use: bool,
    /// The moment that it is of; it may not be copied yet.
    pub(crate) creation_time: Option<String>,
    pub(crate) error: Option<Value>,
}

/// The name of what a snapshot kept.
pub(crate) fn content_name(uid: &str) -> String {
    format!("snapcontent-{uid}")
}

/// What stands for the files of a snapshot.
pub(crate) fn content(snapshot: &Snapshot, claim: &Claim, node: &str, class: &str, policy: &str) -> Value {
    let metadata = &snapshot.metadata;
    let name = content_name(&metadata.uid);
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": name, "annotations": {NODE: node}, "finalizers": [CONTENT_PROTECTION]},
        "spec": {
            "deletionPolicy": policy,
            "driver": PROVISIONER,
            "source": {"volumeHandle": claim.spec.volume_name},
            "sourceVolumeMode": claim.spec.volume_mode.as_deref().unwrap_or("Filesystem"),
            "volumeSnapshotClassName": class,
            "volumeSnapshotRef": {
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
                "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid,
            },
        },
    })
}

/// The status of a snapshot whose files are there.
pub(crate) fn ready(content: &str, size: u64, created: &str) -> Value {
    json!({
        "boundVolumeSnapshotContentName": content, "creationTime": created, "readyToUse": true,
        "restoreSize": super::fitting::shown(size), "error": null,
    })
}

/// The status of a snapshot whose moment has come, and whose files are being copied.
pub(crate) fn begun(content: &str, created: &str) -> Value {
    json!({
        "boundVolumeSnapshotContentName": content, "creationTime": created, "readyToUse": false, "error": null,
    })
}

/// The status of a snapshot that cannot be taken now.
pub(crate) fn failed(before: &SnapshotStatus, message: &str, now: &str) -> Option<Value> {
    let known = before.error.as_ref().and_then(|it| it["message"].as_str());
    (known != Some(message)).then(|| json!({"readyToUse": false, "error": {"message": message, "time": now}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_written_once() {
        let mut status = SnapshotStatus::default();
        let written = failed(&status, "no", "t").unwrap();
        status.error = Some(written["error"].clone());
        assert_eq!(failed(&status, "no", "later"), None);
        assert!(failed(&status, "other", "later").is_some());
    }

    #[test]
    fn a_content_names_its_snapshot() {
        let snapshot = json!({"metadata": {"name": "s", "namespace": "shop", "uid": "u1"}});
        let snapshot = Snapshot::deserialize(snapshot).unwrap();
        let made = content(&snapshot, &Claim::default(), "n1", "local", "Delete");
        assert_eq!(made["metadata"]["name"], "snapcontent-u1");
        assert_eq!(made["spec"]["volumeSnapshotRef"]["uid"], "u1");
    }
}
