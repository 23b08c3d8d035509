//! Snapshots of disks that machines write to. The machine copies: it is told where to, answers when the moment has come, and copies while its
//! guest goes on. The moment is noted before anything else happens, so that it cannot become another one later.

use std::path::Path;
use std::time::Duration;

use fairway_controller::{Failure, ObjectKey, Outcome};
use fairway_machines_guests::{Order, Refusal};
use serde_json::Value;

use super::{Look, Snapshots, now, say};
use crate::decide::snapshot;
use crate::moment::{MEMORY_ANNOTATION, MOMENT_ANNOTATION};
use crate::origin::blocking;
use crate::place::Place;

/// How soon to look again whether a copy is whole.
const SOON: Duration = Duration::from_millis(200);

impl Snapshots {
    /// Begins a copy.
    pub(super) async fn begin(
        &self,
        look: &Look<'_>,
        instance: &str,
        directory: &Path,
    ) -> Result<Outcome, Failure> {
        // Whoever began before did not note that he did: nobody counts on that moment.
        self.break_off(look).await?;
        let (target, like) = (look.target.clone(), directory.to_owned());
        let to = match blocking(move || Place::begin(&target, &like)).await {
            Ok(to) => to,
            Err(error) => return self.wait(look, &crate::fill::sentence(&error)).await,
        };
        if let Err(why) = self.keep_memory(look, instance, &to).await? {
            return self.wait(look, &why).await;
        }
        let disk = crate::disk_path(directory);
        match self.order(look, instance, Order::BeginCopy { disk, to }).await? {
            Ok(_) => {
                say(look, &snapshot::begun(&look.content, &now())).await?;
                Ok(Outcome::Again(SOON))
            }
            Err(refusal) => {
                let name = look.snapshot.spec.source.persistent_volume_claim_name.as_deref();
                let why = format!(
                    "the machine {instance} cannot copy its disk {}: {refusal}",
                    name.unwrap_or_default()
                );
                self.wait(look, &why).await
            }
        }
    }

    /// Keeps the memory of the machine beside the copy that is about to begin, if it is to be; else why it cannot. The machine
    /// stands still: who wants its memory sees to that, and that it does so until all its disks are being copied.
    async fn keep_memory(
        &self,
        look: &Look<'_>,
        instance: &str,
        to: &Path,
    ) -> Result<Result<(), String>, Failure> {
        let metadata = &look.snapshot.metadata;
        if let Some(moment) = metadata.annotation(MOMENT_ANNOTATION) {
            let (target, moment) = (look.target.clone(), moment.to_owned());
            if let Err(error) = blocking(move || Place::note_moment(&target, &moment)).await {
                return Ok(Err(crate::fill::sentence(&error)));
            }
        }
        if metadata.annotation(MEMORY_ANNOTATION) != Some("true") {
            return Ok(Ok(()));
        }
        let to = to.parent().unwrap_or(to).to_owned();
        let kept = self.order(look, instance, Order::KeepMemory { to }).await?;
        Ok(kept
            .map(drop)
            .map_err(|refusal| format!("the memory of the machine {instance} cannot be kept: {refusal}")))
    }

    /// Goes on with a copy that was begun: by the machine that has the disk now, if one has.
    pub(super) async fn go_on(&self, look: &Look<'_>, holder: Option<String>) -> Result<Outcome, Failure> {
        let lost = "the machine ended before its disk was copied; delete this snapshot and take another";
        let Some(instance) = holder else {
            return self.lose(look, lost).await;
        };
        let to = Place::begun(&look.target);
        match self.order(look, &instance, Order::CopyDone { to }).await? {
            Ok(answer) if answer["done"] == true => {
                let target = look.target.clone();
                match blocking(move || Place::finish(&target)).await {
                    Ok(size) => self.taken(look, size).await,
                    Err(error) => self.lose(look, &crate::fill::sentence(&error)).await,
                }
            }
            Ok(_) => Ok(Outcome::Again(SOON)),
            // Its node has not found it again yet.
            Err(Refusal::NotRunning(_) | Refusal::NodeLost { .. }) => Ok(Outcome::Again(SOON)),
            Err(refusal) => {
                let why = format!("{refusal}; delete this snapshot and take another");
                self.lose(look, &why).await
            }
        }
    }

    /// What was copied so far is of no use.
    async fn lose(&self, look: &Look<'_>, why: &str) -> Result<Outcome, Failure> {
        let target = look.target.clone();
        let _ = blocking(move || Place::remove(&target)).await;
        self.wait(look, why).await?;
        Ok(Outcome::Done)
    }

    /// Lets a machine stop copying, if it does.
    pub(super) async fn break_off(&self, look: &Look<'_>) -> Result<(), Failure> {
        let to = Place::begun(&look.target);
        let Some(name) = &look.snapshot.spec.source.persistent_volume_claim_name else {
            return Ok(());
        };
        if !to.exists() {
            return Ok(());
        }
        let claim = ObjectKey::new(&look.key.workspace, &look.key.namespace, name);
        let Some(instance) = crate::uses::holder(&look.requests, &claim).await? else {
            return Ok(());
        };
        match self.order(look, &instance, Order::BreakCopyOff { to }).await? {
            Ok(_) | Err(Refusal::NotRunning(_)) => Ok(()),
            Err(refusal) => Err(Failure::NotYet(format!(
                "the copy of {} cannot be broken off: {refusal}",
                claim.name
            ))),
        }
    }

    /// Orders something of the machine that has the disk.
    async fn order(
        &self,
        look: &Look<'_>,
        instance: &str,
        order: Order,
    ) -> Result<Result<Value, Refusal>, Failure> {
        let namespace = &look.key.namespace;
        let path = format!("/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{instance}");
        let found = look.requests.get(&path).await?.unwrap_or_default();
        let node = found["status"]["nodeName"].as_str().unwrap_or_default();
        let key = ObjectKey::new(&look.key.workspace, namespace, instance);
        let Some(guests) = &self.guests else {
            let why = "stop it: nobody here copies disks of machines that run".to_owned();
            return Ok(Err(Refusal::Lacks(why)));
        };
        Ok(guests.order(node, &key, order).await)
    }
}
