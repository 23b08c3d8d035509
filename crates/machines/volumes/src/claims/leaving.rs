//! A claim that is being deleted goes when no machine holds it.

use fairway_controller::{Failure, Outcome};
use serde_json::json;

use super::{Claims, Look};
use crate::decide::volume;
use crate::names;
use crate::origin::blocking;
use crate::place::Place;
use crate::uses;
use crate::view::Claim;

impl Claims {
    pub(super) async fn leave(&self, look: &Look<'_>, claim: &Claim) -> Result<Outcome, Failure> {
        let is_ours = claim.metadata.annotation(names::SELECTED_NODE) == Some(self.node.as_str());
        let finalizers = &claim.metadata.finalizers;
        if !is_ours || !finalizers.iter().any(|it| it == names::PVC_PROTECTION) {
            return Ok(Outcome::Done);
        }
        // A change of the machine wakes the claim.
        if uses::holder(&look.requests, look.key).await?.is_some() {
            return Ok(Outcome::Done);
        }
        self.fills
            .forget(&(look.key.workspace.clone(), claim.metadata.uid.clone()));
        let name = volume::name(&claim.metadata.uid);
        if claim.spec.volume_name.is_empty() {
            // Filled or half filled, but nobody's yet.
            let path = format!("/api/v1/persistentvolumes/{name}");
            if look.requests.get(&path).await?.is_none() {
                let directory = self.place.directory(&look.key.workspace, &name);
                blocking(move || Place::remove(&directory))
                    .await
                    .map_err(|error| Failure::NotYet(crate::fill::sentence(&error)))?;
            }
        }
        let Some(read) = look.requests.get(&look.claim_path()).await? else {
            return Ok(Outcome::Done);
        };
        let rest: Vec<&String> = finalizers
            .iter()
            .filter(|it| *it != names::PVC_PROTECTION)
            .collect();
        let patch = json!({"metadata": {
            "uid": claim.metadata.uid,
            "resourceVersion": fairway_controller::requests::version(&read),
            "finalizers": rest,
        }});
        look.requests.merge(&look.claim_path(), &patch).await?;
        Ok(Outcome::Done)
    }
}
