//! A bound claim names a VolumeAttributesClass: its volume gets the limits of that class. The node of a machine that has the disk open reads them
//! from the volume, and follows when the claim says that it has them.

use std::time::Duration;

use fairway_controller::{Failure, Outcome};
use serde_json::json;

use super::{Claims, Look};
use crate::decide::attributes::{self, Observed, Step};
use crate::names;
use crate::view::{self, Claim, Volume};

const CLASSES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
/// How soon a class that is not there is looked for again.
const LOOK: Duration = Duration::from_secs(10);

impl Claims {
    pub(super) async fn modify(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        held: &Volume,
    ) -> Result<Outcome, Failure> {
        let wanted = claim.spec.volume_attributes_class_name.as_deref();
        let Some(name) = wanted.filter(|it| !it.is_empty()) else {
            return Ok(Outcome::Done);
        };
        let found = look.requests.get(&format!("{CLASSES}/{name}")).await?;
        let class = found
            .as_ref()
            .map(|it| view::read("volumeattributesclass", it))
            .transpose()?;
        let status = &claim.status;
        let step = attributes::decide(&Observed {
            wanted,
            current: status.current_volume_attributes_class_name.as_deref(),
            class: class.as_ref(),
            limits: attributes::read(held.metadata.annotation(names::DISK_LIMITS)),
        });
        let (word, message) = match step {
            Step::None => return Ok(Outcome::Done),
            Step::Set(limits) => {
                let text = serde_json::to_string(&limits).unwrap_or_default();
                let path = format!("/api/v1/persistentvolumes/{}", held.metadata.name);
                let patch = json!({"metadata": {"annotations": {names::DISK_LIMITS: text}}});
                look.requests.merge(&path, &patch).await?;
                // In this order: whoever sees the claim finds the limits.
                let patch = json!({"status": {
                    "currentVolumeAttributesClassName": name, "modifyVolumeStatus": null,
                }});
                let path = format!("{}/status", look.claim_path());
                look.requests.merge(&path, &patch).await?;
                let message = format!("the volume has the limits of VolumeAttributesClass {name}: {text}");
                self.tell_claim(look, claim, "VolumeModifySuccessful", message)
                    .await;
                return Ok(Outcome::Done);
            }
            Step::Pending(message) => ("Pending", message),
            Step::Infeasible(message) => ("Infeasible", message),
        };
        let told = json!({"targetVolumeAttributesClassName": name, "status": word});
        if status.modify_volume_status.as_ref() != Some(&told) {
            let path = format!("{}/status", look.claim_path());
            look.requests
                .merge(&path, &json!({"status": {"modifyVolumeStatus": told}}))
                .await?;
            self.warn_claim(look, claim, "VolumeModifyFailed", message).await;
        }
        Ok(Outcome::Again(LOOK))
    }
}
