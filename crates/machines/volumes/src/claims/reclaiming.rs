//! Volumes whose claim is gone, and claims that come back for theirs.

use std::time::Duration;

use fairway_controller::{Failure, Outcome};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Came, Claims, Look};
use crate::decide::reclaim::{self, Reclaim};
use crate::decide::status::Filling;
use crate::decide::volume;
use crate::names;
use crate::origin::blocking;
use crate::place::Place;
use crate::view::{self, Claim, Volume};

const TOMBSTONES: &str = "/apis/fairway.dev/v1alpha1/tombstones";

impl Claims {
    /// Looks at the volumes that say that they are this claim's.
    pub(super) async fn reclaim(&self, look: &Look<'_>, claim: Option<&Claim>) -> Result<Outcome, Failure> {
        let mut next = Outcome::Done;
        for name in self.world.volumes_of(look.key) {
            let Some(found) = look.requests.get(&path(&name)).await? else {
                continue;
            };
            let held: Volume = view::read("persistentvolume", &found)?;
            let directory = self.place.directory(&look.key.workspace, &name);
            let is_made = held.metadata.annotation(names::PROVISIONED_BY) == Some(crate::PROVISIONER);
            let is_far = self.chooses && is_made && volume::node(&held).is_some_and(|node| node != self.node);
            if is_far {
                self.reclaim_far(look, claim, &held, &found).await?;
                continue;
            }
            if !volume::is_of(&held, &self.node, &directory) {
                continue;
            }
            next = super::sooner(next, self.reclaim_one(look, claim, &held, &found).await?);
        }
        Ok(next)
    }

    /// A volume of another node, which does not see what Git pruned: it is told here whether the volume goes, and removes the files then.
    async fn reclaim_far(
        &self,
        look: &Look<'_>,
        claim: Option<&Claim>,
        held: &Volume,
        found: &Value,
    ) -> Result<(), Failure> {
        let uid = claim.map(|claim| claim.metadata.uid.as_str());
        let now = Timestamp::now();
        if !is_open(held) || !matches!(reclaim::decide(held, uid, None, now), Reclaim::Remove) {
            return Ok(());
        }
        let name = held.metadata.name.as_str();
        let until = self.kept_until(look, held).await?;
        match reclaim::decide(held, uid, until, now) {
            Reclaim::Trash(until) => self.put_in_trash(look, name, found, until).await,
            _ => look.requests.delete(&path(name)).await,
        }
    }

    /// Until when tombstones say that a disk is kept.
    async fn kept_until(&self, look: &Look<'_>, held: &Volume) -> Result<Option<Timestamp>, Failure> {
        let stones = look.requests.get(TOMBSTONES).await?.unwrap_or_default();
        let stones = stones["items"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(reclaim::until(stones, held, self.keep_disks))
    }

    async fn put_in_trash(
        &self,
        look: &Look<'_>,
        name: &str,
        found: &Value,
        until: Timestamp,
    ) -> Result<(), Failure> {
        let shown = until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = json!({"metadata": {
            "resourceVersion": fairway_controller::requests::version(found),
            "annotations": {names::TRASH_UNTIL: shown},
        }});
        look.requests.merge(&path(name), &patch).await?;
        let message = format!(
            "Git pruned what it was for: it is kept until {shown}, and used again by a claim of the same name; delete it to free \
             its room now"
        );
        self.release(look, name, &message).await
    }

    async fn reclaim_one(
        &self,
        look: &Look<'_>,
        claim: Option<&Claim>,
        held: &Volume,
        found: &Value,
    ) -> Result<Outcome, Failure> {
        let uid = claim.map(|claim| claim.metadata.uid.as_str());
        let now = Timestamp::now();
        // Tombstones are asked for only where they decide something.
        let until = match reclaim::decide(held, uid, None, now) {
            // The control plane sees them, and says what becomes of the volume.
            Reclaim::Remove if is_open(held) && !self.chooses => return Ok(Outcome::Done),
            Reclaim::Remove if is_open(held) => self.kept_until(look, held).await?,
            _ => None,
        };
        let name = held.metadata.name.as_str();
        match reclaim::decide(held, uid, until, now) {
            Reclaim::Keep => Ok(Outcome::Done),
            Reclaim::Release => {
                self.release(look, name, "").await?;
                Ok(Outcome::Done)
            }
            Reclaim::Trash(until) => {
                self.put_in_trash(look, name, found, until).await?;
                Ok(Outcome::Again(from_now(now, until)))
            }
            Reclaim::Wait(until) => {
                if held.status.phase != "Released" {
                    self.release(look, name, &held.status.message).await?;
                }
                Ok(Outcome::Again(from_now(now, until)))
            }
            Reclaim::Remove => {
                self.remove(look, held).await?;
                Ok(Outcome::Done)
            }
        }
    }

    async fn release(&self, look: &Look<'_>, name: &str, message: &str) -> Result<(), Failure> {
        let status = json!({"status": {"phase": "Released", "message": message}});
        look.requests
            .merge(&format!("{}/status", path(name)), &status)
            .await?;
        Ok(())
    }

    /// Removes a volume: it is marked, its files go, and then it goes.
    async fn remove(&self, look: &Look<'_>, held: &Volume) -> Result<(), Failure> {
        let name = held.metadata.name.as_str();
        if !held.metadata.is_deleting() {
            look.requests.delete(&path(name)).await?;
        }
        let directory = self.place.directory(&look.key.workspace, name);
        if let Err(error) = blocking(move || Place::remove(&directory)).await {
            let message = crate::fill::sentence(&error);
            let status = json!({"status": {"phase": "Failed", "message": message}});
            look.requests
                .merge(&format!("{}/status", path(name)), &status)
                .await?;
            return Err(Failure::NotYet(message));
        }
        let Some(read) = look.requests.get(&path(name)).await? else {
            return Ok(());
        };
        let ours = [names::PV_PROTECTION, names::FILES_FINALIZER];
        let rest: Vec<&String> = held
            .metadata
            .finalizers
            .iter()
            .filter(|it| !ours.contains(&it.as_str()))
            .collect();
        let patch = json!({"metadata": {
            "uid": held.metadata.uid,
            "resourceVersion": fairway_controller::requests::version(&read),
            "finalizers": rest,
        }});
        look.requests.merge(&path(name), &patch).await?;
        Ok(())
    }

    /// A claim whose volume lies in the trash gets it back: the machine came back by a revert, or was undeleted.
    pub(super) async fn restore(&self, look: &Look<'_>, claim: &Claim) -> Result<Option<Came>, Failure> {
        let machine = look.wanted().and_then(|volume| volume.metadata.controller());
        let machine = machine
            .filter(|owner| owner.kind == "VirtualMachine")
            .map(|owner| owner.name.as_str());
        for name in self.world.volumes_of(look.key) {
            let Some(found) = look.requests.get(&path(&name)).await? else {
                continue;
            };
            let held: Volume = view::read("persistentvolume", &found)?;
            let directory = self.place.directory(&look.key.workspace, &name);
            let is_in_trash =
                held.metadata.annotation(names::TRASH_UNTIL).is_some() && !held.metadata.is_deleting();
            if !is_in_trash
                || held.metadata.annotation(names::MACHINE) != machine
                || !volume::is_of(&held, &self.node, &directory)
            {
                continue;
            }
            let place = directory.clone();
            let Ok(Some(size)) = blocking(move || Place::size(&place)).await else {
                continue;
            };
            self.bind_existing(look, claim, &found, size).await?;
            let mut came = Came::new(Filling::Restored);
            came.phase = Some("Bound".to_owned());
            // It may have to grow.
            came.next = Outcome::Again(Duration::ZERO);
            return Ok(Some(came));
        }
        Ok(None)
    }
}

/// Whether nobody has said yet what becomes of a volume.
fn is_open(held: &Volume) -> bool {
    !held.metadata.is_deleting() && held.metadata.annotation(names::TRASH_UNTIL).is_none()
}

fn path(name: &str) -> String {
    format!("/api/v1/persistentvolumes/{name}")
}

fn from_now(now: Timestamp, until: Timestamp) -> Duration {
    let left = until.duration_since(now);
    // Timers that are far off are set anew once a day.
    Duration::try_from(left)
        .unwrap_or_default()
        .min(Duration::from_secs(86400))
        + Duration::from_secs(1)
}
