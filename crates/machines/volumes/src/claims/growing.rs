//! A bound claim asks for more.
//!
//! A disk that nobody uses grows at once. One that a machine has open grows by the machine's node: the volume's capacity says how
//! large it should be, and the file itself says when it is done.

use std::path::Path;
use std::time::Duration;

use fairway_controller::{Failure, Outcome};
use serde_json::json;

use super::{Claims, Look};
use crate::decide::volume;
use crate::origin::blocking;
use crate::place::Place;
use crate::uses;
use crate::view::{Claim, Class, Volume};

/// How often a disk is looked at that a machine's node is to make larger.
const LOOK: Duration = Duration::from_secs(5);

impl Claims {
    pub(super) async fn grow(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        class: &Class,
        held: &Volume,
        directory: &Path,
    ) -> Result<Outcome, Failure> {
        let place = directory.to_owned();
        let size = match blocking(move || Place::size(&place)).await {
            Ok(Some(size)) => size,
            Ok(None) => {
                let message = format!("the disk {} is not there", crate::disk_path(directory).display());
                self.warn_claim(look, claim, "VolumeMissing", message).await;
                return Ok(Outcome::Done);
            }
            Err(error) => return Err(Failure::NotYet(crate::fill::sentence(&error))),
        };
        let asked = claim
            .spec
            .resources
            .requests
            .bytes()
            .unwrap_or(0)
            .next_multiple_of(512);
        if asked <= size {
            if claim.status.phase != "Bound"
                || claim
                    .status
                    .capacity
                    .bytes()
                    .is_none_or(|it| it.next_multiple_of(512) != size)
            {
                self.set_capacity(look, claim, held, size).await?;
                self.say_bound(look, claim, size).await?;
            } else if !claim.status.conditions.is_empty() {
                self.say_bound(look, claim, size).await?;
            }
            return Ok(Outcome::Done);
        }
        if !class.allow_volume_expansion {
            let message = format!("the class {} does not let volumes grow", class.metadata.name);
            self.warn_claim(look, claim, "VolumeResizeFailed", message).await;
            return Ok(Outcome::Done);
        }
        if let Some(instance) = uses::holder(&look.requests, look.key).await? {
            self.set_capacity(look, claim, held, asked).await?;
            let message = format!(
                "the machine {instance} has the disk open: it grows there, or when the machine stops"
            );
            self.say_pending(look, claim, &message).await?;
            // Nobody else says when the file has grown.
            return Ok(Outcome::Again(LOOK));
        }
        let place = directory.to_owned();
        match blocking(move || Place::grow(&place, asked)).await {
            Ok(size) => {
                self.set_capacity(look, claim, held, size).await?;
                self.say_bound(look, claim, size).await?;
                let message = format!("the disk has {size} bytes now");
                self.tell_claim(look, claim, "FileSystemResizeSuccessful", message)
                    .await;
                Ok(Outcome::Done)
            }
            Err(error) => {
                let message = crate::fill::sentence(&error);
                self.warn_claim(look, claim, "VolumeResizeFailed", message).await;
                Ok(Outcome::Poll)
            }
        }
    }

    async fn set_capacity(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        held: &Volume,
        size: u64,
    ) -> Result<(), Failure> {
        if held.spec.capacity.bytes().map(|it| it.next_multiple_of(512)) == Some(size) {
            return Ok(());
        }
        let path = format!("/api/v1/persistentvolumes/{}", held.metadata.name);
        let patch = json!({"spec": {"capacity": {"storage": volume::capacity(claim, size)}}});
        look.requests.merge(&path, &patch).await?;
        Ok(())
    }

    async fn say_pending(&self, look: &Look<'_>, claim: &Claim, message: &str) -> Result<(), Failure> {
        let is_said = claim
            .status
            .conditions
            .iter()
            .any(|it| it["type"] == "FileSystemResizePending" && it["message"] == message);
        if is_said {
            return Ok(());
        }
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = json!({
            "type": "FileSystemResizePending", "status": "True", "lastTransitionTime": now, "message": message,
        });
        let path = format!("{}/status", look.claim_path());
        look.requests
            .merge(&path, &json!({"status": {"conditions": [condition]}}))
            .await?;
        Ok(())
    }
}
