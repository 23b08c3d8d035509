//! A claim and its volume become each other's.
//!
//! The volume comes first, with the claim's UID in it; then the claim names it; then both say so. Each step is found done when it is
//! repeated.

use std::path::Path;

use fairway_controller::Failure;
use serde_json::{Value, json};

use super::{Came, Claims, Look, Step};
use crate::decide::status::Filling;
use crate::decide::volume::{self, Made};
use crate::names;
use crate::view::{self, Claim, Class, Volume};

const VOLUMES: &str = "/api/v1/persistentvolumes";

impl Claims {
    /// Binds a claim to the volume that was made for it.
    pub(super) async fn bind(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        class: &Class,
        directory: &Path,
        size: u64,
    ) -> Result<(), Failure> {
        let name = volume::name(&claim.metadata.uid);
        let machine = look
            .data_volume
            .as_ref()
            .and_then(|(_, volume)| volume.metadata.controller())
            .filter(|owner| owner.kind == "VirtualMachine");
        let made = volume::render(&Made {
            claim,
            class,
            node: &self.node,
            path: directory,
            size,
            machine: machine.map(|owner| owner.name.as_str()),
        });
        if !look.requests.create(VOLUMES, &made).await? {
            let found = look
                .requests
                .get(&format!("{VOLUMES}/{name}"))
                .await?
                .unwrap_or_default();
            let found: Volume = view::read("persistentvolume", &found)?;
            let is_its = found
                .spec
                .claim_ref
                .as_ref()
                .is_some_and(|it| it.uid == claim.metadata.uid);
            if !is_its || !volume::is_of(&found, &self.node, directory) {
                return Err(Failure::NotYet(format!(
                    "a volume {name} exists that was not made here; remove it, so that the claim {} gets its own",
                    claim.metadata.name
                )));
            }
        }
        self.finish(look, claim, &name, size).await
    }

    /// Binds a claim to a volume that was there before.
    pub(super) async fn bind_existing(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        found: &Value,
        size: u64,
    ) -> Result<(), Failure> {
        let name = found["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!({
            "metadata": {
                "resourceVersion": fairway_controller::requests::version(found),
                "annotations": {names::TRASH_UNTIL: null},
            },
            "spec": {"claimRef": volume::claim_ref(claim)},
        });
        look.requests.merge(&format!("{VOLUMES}/{name}"), &patch).await?;
        self.finish(look, claim, name, size).await
    }

    async fn finish(&self, look: &Look<'_>, claim: &Claim, name: &str, size: u64) -> Result<(), Failure> {
        if let Some(patch) = volume::binding(claim, name) {
            look.requests.merge(&look.claim_path(), &patch).await?;
        }
        self.say_bound(look, claim, size).await?;
        let path = format!("{VOLUMES}/{name}/status");
        look.requests
            .merge(&path, &json!({"status": {"phase": "Bound"}}))
            .await?;
        Ok(())
    }

    /// The claim says that it is bound, and to how much.
    pub(super) async fn say_bound(&self, look: &Look<'_>, claim: &Claim, size: u64) -> Result<(), Failure> {
        let status = json!({"status": {
            "phase": "Bound",
            "accessModes": claim.spec.access_modes,
            "capacity": {"storage": volume::capacity(claim, size)},
            "conditions": null,
        }});
        let path = format!("{}/status", look.claim_path());
        look.requests.merge(&path, &status).await?;
        Ok(())
    }

    /// A claim that was bound before: its volume is there, or it is lost.
    pub(super) async fn bound(&self, look: &Look<'_>, claim: &Claim, class: &Class) -> Result<Step, Failure> {
        let name = &claim.spec.volume_name;
        let came = |filling: Filling, phase: &str| {
            let mut came = Came::new(filling);
            came.phase = Some(phase.to_owned());
            Ok(Step::Came(came))
        };
        let Some(found) = look.requests.get(&format!("{VOLUMES}/{name}")).await? else {
            if claim.status.phase != "Lost" {
                let path = format!("{}/status", look.claim_path());
                look.requests
                    .merge(&path, &json!({"status": {"phase": "Lost"}}))
                    .await?;
                let message =
                    "Bound claim has lost its PersistentVolume. Data on the volume is lost!".to_owned();
                self.warn_claim(look, claim, "ClaimLost", message).await;
            }
            return came(Filling::Lost, "Lost");
        };
        let held: Volume = view::read("persistentvolume", &found)?;
        let directory = self.place.directory(&look.key.workspace, name);
        if !volume::is_of(&held, &self.node, &directory) {
            return Ok(Step::NotOurs);
        }
        let is_its = held
            .spec
            .claim_ref
            .as_ref()
            .is_some_and(|it| it.uid == claim.metadata.uid);
        if !is_its {
            return came(Filling::Lost, &claim.status.phase);
        }
        let next = self.grow(look, claim, class, &held, &directory).await?;
        let next = super::sooner(next, self.modify(look, claim, &held).await?);
        if held.status.phase != "Bound" {
            let path = format!("{VOLUMES}/{name}/status");
            look.requests
                .merge(&path, &json!({"status": {"phase": "Bound"}}))
                .await?;
        }
        let mut came = Came::new(Filling::Done);
        came.phase = Some("Bound".to_owned());
        came.next = next;
        Ok(Step::Came(came))
    }
}
