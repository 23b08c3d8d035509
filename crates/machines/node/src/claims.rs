//! Claims: where their disks are, and when they change.
//!
//! A claim that is bound names a volume, and the volume a directory of this host. One watch over all workspaces tells which claim
//! changed; it begins with the first machine of this host.

use std::path::{Path, PathBuf};

use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_machines_plan::machine::DiskLimits;
use fairway_machines_plan::plan::DISK_LIMITS;
use fairway_machines_plan::view::Amount;
use serde_json::{Value, json};

use crate::paths;

/// Label of nodes by which volumes name them.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Annotation of a claim: the node that looks after it.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim as far as machines are concerned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// As it was read.
    pub(crate) object: Value,
    /// Where its disk is; nothing until it is bound.
    pub(crate) place: Option<Place>,
}

/// Where a disk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory of the volume.
    pub(crate) directory: PathBuf,
    /// Bytes that the disk is to have; it may not have grown to that yet.
    pub(crate) capacity: Option<u64>,
    /// The volume.
    pub(crate) volume: String,
    /// Nodes from which it is reached.
    pub(crate) nodes: Vec<String>,
    /// How much may be read and written in a second, by the claim's VolumeAttributesClass.
    pub(crate) limits: DiskLimits,
}

impl Place {
    /// The disk, a qcow2 file.
    pub(crate) fn disk(&self) -> PathBuf {
        fairway_machines_volumes::disk_path(&self.directory)
    }
}

/// Bytes of a volume, in the blocks that disks have.
fn capacity(volume: &Value) -> Option<u64> {
    let text = volume.pointer("/spec/capacity/storage")?;
    let amount: Amount = serde_json::from_value(text.clone()).ok()?;
    Some(amount.bytes().next_multiple_of(512))
}

/// Why a claim's disk is not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// The API does not answer, or refuses.
    #[error("{}", .0.sentence())]
    Api(Failure),
    /// The volume is gone, or is not there yet.
    #[error("volume {volume} of PVC {claim} does not exist; if it is lost, create the claim anew")]
    NoVolume {
        /// The claim.
        claim: String,
        /// Its volume.
        volume: String,
    },
    /// The volume is of a kind that this node cannot use.
    #[error(
        "volume {volume} of PVC {claim} is not a directory of this node that belongs to the claim; use storage class local"
    )]
    NotLocal {
        /// The claim.
        claim: String,
        /// Its volume.
        volume: String,
    },
}

/// The nodes from which a volume is reached.
fn nodes(volume: &Value) -> Vec<String> {
    let terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array();
    let expressions = terms
        .into_iter()
        .flatten()
        .filter_map(|it| it["matchExpressions"].as_array());
    let hosts = expressions
        .flatten()
        .filter(|it| it["key"] == HOSTNAME && it["operator"] == "In");
    let names = hosts.filter_map(|it| it["values"].as_array()).flatten();
    names.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

/// The limits of a volume.
fn limits(volume: &Value) -> DiskLimits {
    let text = volume["metadata"]["annotations"][DISK_LIMITS].as_str();
    text.and_then(|it| serde_json::from_str(it).ok())
        .unwrap_or_default()
}

/// Says that a volume has moved to a node, and its claim with it.
pub(crate) async fn moved(
    api: &Requests,
    of: &ObjectKey,
    claim: &str,
    volume: &str,
    node: &str,
) -> Result<(), Failure> {
    let affinity = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]},
    ]}});
    if let Some(path) = paths::cluster("persistentvolumes", volume) {
        api.merge(&path, &json!({"spec": {"nodeAffinity": affinity}}))
            .await?;
    }
    if let Some(path) = paths::beside(of, "persistentvolumeclaims", claim) {
        let chosen = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
        api.merge(&path, &chosen).await?;
    }
    Ok(())
}

/// Reads a claim of an instance's namespace; nothing if there is none. `machines` is where this node has what belongs to machines.
pub(crate) async fn find(
    api: &Requests,
    of: &ObjectKey,
    name: &str,
    machines: &Path,
) -> Result<Option<Claim>, ClaimError> {
    let Some(path) = paths::beside(of, "persistentvolumeclaims", name) else {
        return Ok(None);
    };
    let Some(object) = api.get(&path).await.map_err(ClaimError::Api)? else {
        return Ok(None);
    };
    let volume = object["spec"]["volumeName"].as_str().unwrap_or_default();
    let path = paths::cluster("persistentvolumes", volume);
    let Some(path) = path.filter(|_| object["status"]["phase"] == "Bound") else {
        return Ok(Some(Claim { object, place: None }));
    };
    // Volumes are not followed, so that nobody would be told when it comes: it is asked for again.
    let found = api.get(&path).await.map_err(ClaimError::Api)?;
    let found = found.ok_or_else(|| ClaimError::NoVolume {
        claim: name.to_owned(),
        volume: volume.to_owned(),
    })?;
    // The owner of a workspace may write volumes: what one says about its directory is not believed.
    match fairway_machines_volumes::directory_of(machines, &of.workspace, &object, &found) {
        Some(directory) => {
            let place = Place {
                directory,
                capacity: capacity(&found),
                volume: volume.to_owned(),
                nodes: nodes(&found),
                limits: limits(&found),
            };
            Ok(Some(Claim {
                object,
                place: Some(place),
            }))
        }
        None => Err(ClaimError::NotLocal {
            claim: name.to_owned(),
            volume: volume.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_volume() {
        let volume = json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b"]},
                {"key": "zone", "operator": "In", "values": ["z"]},
            ]},
        ]}}}});
        assert_eq!(nodes(&volume), ["a", "b"]);
        assert!(nodes(&json!({})).is_empty());
        let limited = json!({"metadata": {"annotations": {DISK_LIMITS: "{\"iops\": 500}"}}});
        assert_eq!(limits(&limited).iops, 500);
        assert!(!limits(&volume).any());
    }
}
