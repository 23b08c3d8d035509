//! Claims: where their disks are, and when they change.
//!
//! A claim that is bound names a volume, and the volume a directory of this host. One watch over all workspaces tells which claim
//! changed; it begins with the first machine of this host.

use std::path::PathBuf;

use fairway_controller::{Failure, ObjectKey, Requests};
use serde_json::Value;

use crate::paths;

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
}

impl Place {
    /// The disk, a qcow2 file.
    pub(crate) fn disk(&self) -> PathBuf {
        fairway_machines_volumes::disk_path(&self.directory)
    }
}

/// Why a claim's disk is not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// The API does not answer, or refuses.
    #[error("{}", .0.sentence())]
    Api(Failure),
    /// The volume is of a kind that this node cannot use.
    #[error(
        "volume {volume} of PVC {claim} is not a directory of this node: it has no spec.local.path; use storage class local"
    )]
    NotLocal {
        /// The claim.
        claim: String,
        /// Its volume.
        volume: String,
    },
}

/// Reads a claim of an instance's namespace; nothing if there is none.
pub(crate) async fn find(api: &Requests, of: &ObjectKey, name: &str) -> Result<Option<Claim>, ClaimError> {
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
    let Some(found) = api.get(&path).await.map_err(ClaimError::Api)? else {
        return Ok(Some(Claim { object, place: None }));
    };
    match found.pointer("/spec/local/path").and_then(Value::as_str) {
        Some(directory) => {
            let place = Place {
                directory: PathBuf::from(directory),
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
