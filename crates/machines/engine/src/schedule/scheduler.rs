//! The controller of instances that have no node: waits for their disks, places them, and tells why not.
//!
//! One instance is placed at a time, so that no room is given away twice; what was placed counts before a watch has seen
//! it. Who cannot be placed is looked at again when a node, another instance or one of its disks changes.

use std::sync::Arc;
use std::time::Duration;

use fairway_api::kubevirt::{DATA_VOLUME, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_machines_plan::phase::Phase;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeSelector;
use serde_json::Value;

use super::ground::Ground;
use super::needs::Needs;
use super::place::Placement;
use super::unplaced::{Disk, Standing, patch, standing};
use crate::objects::{about, claim, is_leaving, items, moment, ours, path, read, text};

/// How soon to look again while lists are not complete.
const UNTIL_SYNCED: Duration = Duration::from_millis(20);

/// Places instances.
pub(crate) struct Scheduler {
    clients: Clients,
    recorder: Recorder,
    ground: Arc<Ground>,
}

impl Scheduler {
    pub(crate) fn new(clients: Clients, recorder: Recorder, ground: Arc<Ground>) -> Self {
        Self {
            clients,
            recorder,
            ground,
        }
    }

    async fn pass(&self, key: &ObjectKey, vmi: &Value, requests: &Requests) -> Result<Outcome, Failure> {
        let (disks, volumes) = disks(vmi, requests).await?;
        let standing = match standing(is_leaving(vmi), &disks) {
            Some(standing) => standing,
            None => Standing::Placed(self.choose(key, vmi, volumes, requests).await?),
        };
        let has_disks = items(vmi, "/spec/volumes").any(|it| it["dataVolume"].is_object());
        if let Some(patch) = patch(vmi, &standing, has_disks, &moment(Timestamp::now())) {
            let place = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, &key.name);
            if requests.merge(&ours(&place), &patch).await?.is_some() {
                self.tell(key, vmi, &standing).await;
            }
        }
        if let Standing::Placed(Placement::Node(node)) = &standing {
            self.ground.assume(key, vmi, node);
        }
        let waits = !matches!(standing, Standing::Leaves | Standing::Placed(Placement::Node(_)));
        self.ground.set_waiting(key, waits);
        Ok(Outcome::Done)
    }

    async fn choose(
        &self,
        key: &ObjectKey,
        vmi: &Value,
        volumes: Vec<NodeSelector>,
        requests: &Requests,
    ) -> Result<Placement, Failure> {
        let needs = match Needs::of(vmi, volumes) {
            Ok(needs) => needs,
            Err(error) => {
                let why = format!("where the machine wants to run cannot be read: {error}");
                return Ok(Placement::None(why));
            }
        };
        let namespaces = self.ground.namespaces(key, &needs, requests).await?;
        Ok(self.ground.choose(key, &needs, &namespaces))
    }

    async fn tell(&self, key: &ObjectKey, vmi: &Value, standing: &Standing) {
        let (severity, reason, message) = match standing {
            Standing::Placed(Placement::Node(node)) => {
                let message = format!("Successfully assigned {}/{} to {node}", key.namespace, key.name);
                (Severity::Normal, "Scheduled", message)
            }
            Standing::Placed(Placement::None(why)) => (Severity::Warning, "FailedScheduling", why.clone()),
            Standing::Lacks(name) => {
                let message = format!("failed to find PVC {}/{name}", key.namespace);
                (Severity::Warning, "FailedPvcNotFound", message)
            }
            Standing::Fails(why) => (Severity::Warning, "FailedDataVolumeImport", why.clone()),
            Standing::Waits | Standing::Leaves => return,
        };
        let happening = Happening {
            severity,
            reason,
            message,
        };
        let about = about(&VIRTUAL_MACHINE_INSTANCE, vmi);
        self.recorder.record(&key.workspace, &about, happening).await;
    }
}

impl Reconcile<ObjectKey> for Scheduler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let place = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, &key.name);
        let vmi = requests.get(&place).await?;
        let unplaced = vmi.filter(|it| {
            let ended = Phase::parse(text(it, "/status/phase")).is_final();
            text(it, "/status/nodeName").is_empty() && (!ended || is_leaving(it))
        });
        let Some(vmi) = unplaced else {
            self.ground.set_waiting(key, false);
            return Ok(Outcome::Done);
        };
        if !self.ground.is_synced() {
            return Ok(Outcome::Again(UNTIL_SYNCED));
        }
        self.pass(key, &vmi, &requests).await
    }
}

/// How far the disks of an instance are, and where those are that are there.
pub(crate) async fn disks(
    vmi: &Value,
    requests: &Requests,
) -> Result<(Vec<Disk>, Vec<NodeSelector>), Failure> {
    let namespace = text(vmi, "/metadata/namespace");
    let (mut disks, mut volumes) = (Vec::new(), Vec::new());
    for volume in items(vmi, "/spec/volumes") {
        let filled = text(volume, "/dataVolume/name");
        let claimed = ["/persistentVolumeClaim", "/ephemeral/persistentVolumeClaim"];
        let claimed = claimed.map(|it| text(volume, &format!("{it}/claimName")));
        let names = [filled].into_iter().chain(claimed);
        let Some(name) = names.into_iter().find(|it| !it.is_empty()) else {
            continue;
        };
        let data_volume = match filled.is_empty() {
            true => None,
            false => read(requests, &path(&DATA_VOLUME, namespace, name)).await?,
        };
        let claim = read(requests, &claim(namespace, name)).await?;
        let disk = judge(name, data_volume.as_ref(), claim.as_ref());
        let bound = claim
            .as_ref()
            .map(|it| text(it, "/spec/volumeName"))
            .unwrap_or_default();
        if disk == Disk::Ready {
            let found = read(requests, &format!("/api/v1/persistentvolumes/{bound}")).await?;
            let at = found.map(|it| it["spec"]["nodeAffinity"]["required"].clone());
            volumes.extend(at.and_then(|it| serde_json::from_value(it).ok()));
        }
        // One that may come and go comes when it is there.
        let plugged = ["dataVolume", "persistentVolumeClaim"];
        if disk == Disk::Ready || !plugged.iter().any(|it| volume[*it]["hotpluggable"] == true) {
            disks.push(disk);
        }
    }
    Ok((disks, volumes))
}

/// Where those volumes of an instance are that do not move along with it.
pub(crate) async fn volumes_elsewhere(
    vmi: &Value,
    requests: &Requests,
) -> Result<Vec<NodeSelector>, Failure> {
    let namespace = text(vmi, "/metadata/namespace");
    let mut found = Vec::new();
    for volume in items(vmi, "/spec/volumes") {
        let names = ["/dataVolume/name", "/persistentVolumeClaim/claimName"].map(|it| text(volume, it));
        let Some(name) = names.into_iter().find(|it| !it.is_empty()) else {
            continue;
        };
        let claim = read(requests, &claim(namespace, name)).await?.unwrap_or_default();
        let bound = text(&claim, "/spec/volumeName");
        let bound = read(requests, &format!("/api/v1/persistentvolumes/{bound}")).await?;
        // A disk that is on the node itself is copied to where the machine goes.
        let fixed = bound.filter(|it| !it["spec"]["local"].is_object());
        let at = fixed.map(|it| it["spec"]["nodeAffinity"]["required"].clone());
        found.extend(at.and_then(|it| serde_json::from_value(it).ok()));
    }
    Ok(found)
}

fn judge(name: &str, data_volume: Option<&Value>, claim: Option<&Value>) -> Disk {
    let filling = data_volume.map(|it| text(it, "/status/phase"));
    match (filling, claim) {
        (Some("Failed"), _) => Disk::Failed(format!("DataVolume {name} is in Failed phase")),
        (Some("Succeeded" | "PendingPopulation") | None, Some(claim)) => match text(claim, "/status/phase") {
            "Bound" => Disk::Ready,
            _ => Disk::Unbound,
        },
        (None, None) => Disk::Missing(name.to_owned()),
        (Some(_), _) => Disk::Filling,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn how_far_a_disk_is() {
        let phase = |it: &str| json!({"status": {"phase": it}});
        let missing = || Disk::Missing("root".to_owned());
        let failed = || Disk::Failed("DataVolume root is in Failed phase".to_owned());
        for (data_volume, claim, expected) in [
            (None, None, missing()),
            (None, Some("Pending"), Disk::Unbound),
            (None, Some("Bound"), Disk::Ready),
            (Some("Succeeded"), Some("Bound"), Disk::Ready),
            (Some("Succeeded"), None, Disk::Filling),
            (Some("ImportInProgress"), Some("Bound"), Disk::Filling),
            (Some(""), None, Disk::Filling),
            (Some("Failed"), Some("Bound"), failed()),
        ] {
            let (one, other) = (data_volume.map(phase), claim.map(phase));
            let found = judge("root", one.as_ref(), other.as_ref());
            assert_eq!(found, expected, "{data_volume:?} {claim:?}");
        }
    }
}
