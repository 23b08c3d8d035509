//! A DataVolume gets its claim.

use fairway_controller::error::sentence;
use fairway_controller::{Failure, Outcome};
use serde_json::json;

use super::{ASK_AGAIN, Came, Claims, Look, Step, read_claim};
use crate::decide::claim;
use crate::decide::source::Source;
use crate::decide::status::{Filling, Told};
use crate::names;
use crate::origin::Origin;
use crate::view::{Claim, DataVolume};

impl Claims {
    /// Makes the claim of a DataVolume; else what came of it.
    pub(super) async fn make_claim(
        &self,
        look: &Look<'_>,
        volume: &DataVolume,
        source: &Source,
    ) -> Result<Result<Claim, Step>, Failure> {
        let came = |came: Came| Ok(Err(Step::Came(came)));
        let refused = |reason: &'static str, message: String| {
            let told = Told { reason, message };
            Ok(Err(Step::Came(Came::new(Filling::NoClaim(Some(told))))))
        };
        let class = match claim::class(volume) {
            Some(class) => class.to_owned(),
            None => self.default_class(&look.requests).await?,
        };
        // Another class's claims are another's to fill: only the claim is made.
        let is_ours = match self.class(&look.requests, &class).await? {
            Some(found) => found.provisioner == crate::PROVISIONER,
            None => {
                return refused(
                    "ErrClaimNotValid",
                    format!("storageclass.storage.k8s.io {class:?} not found"),
                );
            }
        };
        if !is_ours {
            return refused(
                "ErrClaimNotValid",
                format!(
                    "the class {class} is not one of {}: only such volumes are filled here",
                    crate::PROVISIONER
                ),
            );
        }
        // What is cloned says how large the claim has to be, and where.
        let mut size = None;
        let has_size = claim::requested(volume).is_some();
        if matches!(
            source,
            Source::Claim(_) | Source::Snapshot(_) | Source::Reference(_)
        ) && !has_size
        {
            let origin = self.origins.look_up(look.key, source, &look.permit()).await?;
            match origin {
                Origin::Waits(told) => return came(Came::new(Filling::NoClaim(Some(told)))),
                Origin::Asks(told) => return came(Came::new(Filling::NoClaim(Some(told))).after(ASK_AGAIN)),
                Origin::Refused(why) => return came(Came::new(Filling::Failed(why))),
                origin => size = origin.size(),
            }
        }
        let mut rendered = match claim::render(volume, source, &class, size) {
            Ok(rendered) => rendered,
            Err(why) => return refused("ErrClaimNotValid", why),
        };
        rendered["metadata"]["annotations"][names::SELECTED_NODE] = json!(self.node);
        rendered["metadata"]["annotations"][names::STORAGE_PROVISIONER] = json!(crate::PROVISIONER);
        let collection = format!("/api/v1/namespaces/{}/persistentvolumeclaims", look.key.namespace);
        match look.requests.create(&collection, &rendered).await {
            Ok(_) => {}
            Err(Failure::Api { source, .. }) if is_refusal(&source) => {
                let message = sentence(&source);
                let reason = match message.contains("exceeded quota") {
                    true => "ErrExceededQuota",
                    false => "ErrClaimNotValid",
                };
                let told = Told { reason, message };
                let mut waits = Came::new(Filling::NoClaim(Some(told)));
                waits.next = Outcome::Poll;
                return came(waits);
            }
            Err(failure) => return Err(failure),
        }
        match read_claim(look).await? {
            Some(claim) => Ok(Ok(claim)),
            None => Err(Failure::NotYet(
                "the claim is gone as soon as it was made".to_owned(),
            )),
        }
    }

    /// A claim that has its content becomes a DataVolume's.
    pub(super) async fn adopt(
        &self,
        look: &Look<'_>,
        volume: &DataVolume,
        claim: &Claim,
    ) -> Result<Came, Failure> {
        let owner = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
            "name": volume.metadata.name, "uid": volume.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        let patch = json!({"metadata": {"uid": claim.metadata.uid, "ownerReferences": [owner]}});
        look.requests.merge(&look.claim_path(), &patch).await?;
        let filling = match claim.status.phase.as_str() {
            "Bound" => Filling::Done,
            _ => Filling::Scheduled,
        };
        Ok(Came::new(filling).of_claim(claim))
    }
}

/// Whether the API understood, and does not want it so.
fn is_refusal(error: &kube::Error) -> bool {
    fairway_controller::error::status(error).is_some_and(|status| matches!(status.code, 403 | 422))
}
