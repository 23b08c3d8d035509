//! Disks out of snapshots.

use fairway_controller::{Failure, ObjectKey, Requests};

use super::{Origin, Origins, Permit, blocking};
use crate::decide::snapshot::{NODE, Snapshot};
use crate::place::{Content, Place};
use crate::snapshots;
use crate::view::{self, Named};

impl Origins {
    /// A snapshot that is copied.
    pub(super) async fn snapshot(
        &self,
        requests: &Requests,
        target: &ObjectKey,
        named: &Named,
        permit: &Permit,
    ) -> Result<Origin, Failure> {
        if let Some(account) = self.lacks_right(requests, target, named, permit).await? {
            return Ok(Self::forbidden(&account, named));
        }
        let Some(found) = requests
            .get(&snapshots::path(&named.namespace, &named.name))
            .await?
        else {
            return Ok(Origin::waits(
                "CloneWithoutSource",
                format!("The source snapshot {} doesn't exist", named.name),
            ));
        };
        let snapshot: Snapshot = view::read("volumesnapshot", &found)?;
        if !snapshot.status.ready_to_use || snapshot.metadata.is_deleting() {
            return Ok(Origin::waits(
                "SnapshotNotReady",
                format!("The source snapshot {} is not ready to use", named.name),
            ));
        }
        let content = snapshot.status.bound_volume_snapshot_content_name;
        let path = format!("/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/{content}");
        let held = requests.get(&path).await?.unwrap_or_default();
        // Others may write the status of a snapshot, but not which snapshot a content is of.
        let is_its = held["spec"]["volumeSnapshotRef"]["uid"] == snapshot.metadata.uid.as_str();
        if !is_its || held["metadata"]["annotations"][NODE] != self.node.as_str() || content.contains('/') {
            return Ok(Origin::Refused(format!(
                "The source snapshot {} is none of the node {}, and cannot be copied there",
                named.name, self.node
            )));
        }
        let directory = self.place.snapshot(&target.workspace, &content);
        let place = directory.clone();
        match blocking(move || Place::size(&place)).await {
            Ok(Some(size)) => Ok(Origin::Here {
                content: Content::Volume(directory),
                size: Some(size),
            }),
            Ok(None) => Ok(Origin::Refused(format!(
                "The source snapshot {} has no disk",
                named.name
            ))),
            Err(error) => Ok(Origin::Refused(crate::fill::sentence(&error))),
        }
    }
}
