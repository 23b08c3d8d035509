//! A claim gets its disk.

use std::time::Duration;

use fairway_controller::Failure;
use serde_json::json;

use super::{ASK_AGAIN, Came, Claims, Look, Step};
use crate::decide::source::Source;
use crate::decide::status::{Filling, Told};
use crate::decide::volume;
use crate::fill::{JobKey, State};
use crate::moment::MEMORY_ANNOTATION;
use crate::names;
use crate::origin::{Origin, Target, blocking};
use crate::place::{Content, Place};
use crate::view::{Claim, Class};

/// What is quick is waited for: the disk of a machine that lies over an image is there within one look.
const MOMENT: Duration = Duration::from_millis(200);
/// How often progress is told.
const TELL: Duration = Duration::from_secs(1);

impl Claims {
    /// Takes a claim on, fills and binds it.
    pub(super) async fn provision(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        source: &Source,
    ) -> Result<Step, Failure> {
        let Some((claim, class)) = self.take_on(look, claim).await? else {
            return Ok(Step::NotOurs);
        };
        let claim = &claim;
        if claim.metadata.annotation(names::BIND_COMPLETED).is_some() && !claim.spec.volume_name.is_empty() {
            return self.bound(look, claim, &class).await;
        }
        if let Some(came) = self.restore(look, claim).await? {
            return Ok(Step::Came(came));
        }
        if !claim.spec.volume_name.is_empty() && claim.spec.volume_name != volume::name(&claim.metadata.uid) {
            return self.bind_named(look, claim, source).await.map(Step::Came);
        }
        let directory = self
            .place
            .directory(&look.key.workspace, &volume::name(&claim.metadata.uid));
        let job: JobKey = (look.key.workspace.clone(), claim.metadata.uid.clone());
        let place = directory.clone();
        let size = blocking(move || Place::size(&place)).await;
        let came = match size {
            Ok(Some(size)) => {
                self.fills.forget(&job);
                let mut came = Came::new(Filling::Done);
                came.named = named(source);
                self.bind(look, claim, &class, &directory, size).await?;
                came.phase = Some("Bound".to_owned());
                return Ok(Step::Came(came));
            }
            Ok(None) => self.fill(look, claim, source, directory.clone(), &job).await?,
            Err(error) => Came::new(Filling::Retries(crate::fill::sentence(&error))).after(ASK_AGAIN),
        };
        if came.filling != Filling::Done {
            return Ok(Step::Came(came.of_claim(claim)));
        }
        let place = directory.clone();
        match blocking(move || Place::size(&place)).await {
            Ok(Some(size)) => {
                self.fills.forget(&job);
                self.bind(look, claim, &class, &directory, size).await?;
                Ok(Step::Came(Came {
                    phase: Some("Bound".to_owned()),
                    ..came
                }))
            }
            Ok(None) => Err(Failure::NotYet(
                "the disk is gone as soon as it was made".to_owned(),
            )),
            Err(error) => Err(Failure::NotYet(crate::fill::sentence(&error))),
        }
    }

    /// Whether a claim is this node's: its class is one of ours, and the node was chosen or chooses itself. A claim belongs to the node
    /// whose name is on it.
    async fn take_on(&self, look: &Look<'_>, claim: &Claim) -> Result<Option<(Claim, Class)>, Failure> {
        let chosen = claim.metadata.annotation(names::SELECTED_NODE);
        if !self.is_chosen(chosen) {
            return Ok(None);
        }
        let name = match &claim.spec.storage_class_name {
            Some(name) => name.clone(),
            None => self.default_class(&look.requests).await?,
        };
        if name.is_empty() {
            return Ok(None);
        }
        let Some(class) = self.class(&look.requests, &name).await? else {
            self.warn_claim(
                look,
                claim,
                "ProvisioningFailed",
                format!("storageclass.storage.k8s.io {name:?} not found"),
            )
            .await;
            return Ok(None);
        };
        if class.provisioner != crate::PROVISIONER {
            return Ok(None);
        }
        let is_protected = claim
            .metadata
            .finalizers
            .iter()
            .any(|it| it == names::PVC_PROTECTION);
        if chosen.is_some() && is_protected && claim.spec.storage_class_name.is_some() {
            return Ok(Some((claim.clone(), class)));
        }
        let mut finalizers = claim.metadata.finalizers.clone();
        if !is_protected {
            finalizers.push(names::PVC_PROTECTION.to_owned());
        }
        let Some(read) = look.requests.get(&look.claim_path()).await? else {
            return Ok(None);
        };
        let patch = json!({
            "metadata": {
                "uid": claim.metadata.uid,
                "resourceVersion": fairway_controller::requests::version(&read),
                "finalizers": finalizers,
                "annotations": {names::SELECTED_NODE: self.node, names::STORAGE_PROVISIONER: crate::PROVISIONER},
            },
            "spec": {"storageClassName": name},
        });
        let changed = look.requests.merge(&look.claim_path(), &patch).await?;
        match changed {
            Some(changed) => Ok(Some((
                crate::view::read("persistentvolumeclaim", &changed)?,
                class,
            ))),
            None => Ok(None),
        }
    }

    /// Fills a disk: begins, goes on, or tells why not.
    async fn fill(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        source: &Source,
        directory: std::path::PathBuf,
        job: &JobKey,
    ) -> Result<Came, Failure> {
        let known = look.wanted().map_or(0, |volume| volume.status.restart_count);
        let noted = claim.metadata.annotation(names::POD_RESTARTS);
        let restarts = noted.and_then(|text| text.parse().ok()).unwrap_or(0).max(known);
        let came = |filling: Filling| {
            let mut came = Came::new(filling);
            came.restarts = restarts;
            came.named = named(source);
            came
        };
        match self.fills.state(job) {
            State::Scheduled => return Ok(came(Filling::Scheduled)),
            State::Running(part) => return Ok(came(Filling::Running(part)).after(TELL)),
            State::Failed(error, _) if error.is_final => return Ok(came(Filling::Failed(error.message))),
            State::Failed(error, again) if !again.is_zero() => {
                // Each failure is counted when it is seen first.
                let mut failed = came(Filling::Retries(error.message)).after(again);
                failed.restarts = self.fills.counted(job, restarts);
                return Ok(failed);
            }
            State::None | State::Failed(..) | State::Done => {}
        }
        let mut origin = self.origins.look_up(look.key, source, &look.permit()).await?;
        if matches!(origin, Origin::Upload)
            && self.origins.has_server
            && claim.metadata.annotation(names::UPLOADED).is_some()
            && let Some(sent) = self.origins.uploaded(look.key).await?
        {
            origin = sent;
        }
        if matches!(source, Source::Snapshot(_))
            && claim.metadata.annotation(MEMORY_ANNOTATION) == Some("true")
            && let Origin::Here { content, .. } = &mut origin
            && let Content::Volume(kept) = content
        {
            *content = Content::Kept(std::mem::take(kept));
        }
        match origin {
            Origin::Waits(told) => return Ok(came(Filling::Waits(told))),
            Origin::Asks(told) => return Ok(came(Filling::Waits(told)).after(ASK_AGAIN)),
            Origin::Refused(why) => return Ok(came(Filling::Failed(why))),
            Origin::Upload => return Ok(came(self.ready_for_upload(look).await?)),
            Origin::Here { .. } | Origin::Http(_) | Origin::Registry(_) | Origin::Server(_) => {}
        }
        let requested = claim.spec.resources.requests.bytes();
        let Some(size) = requested else {
            let why = "the claim asks for no storage: set spec.resources.requests.storage".to_owned();
            return Ok(came(Filling::Failed(why)));
        };
        let target = Target {
            directory,
            size,
            preallocation: claim.metadata.annotation(names::PREALLOCATION) == Some("true"),
        };
        let origins = std::sync::Arc::clone(&self.origins);
        self.fills.start(job, look.key, restarts, |progress| {
            origins.carry_out(origin, target, progress)
        });
        self.fills.wait(job, MOMENT).await;
        Ok(match self.fills.state(job) {
            State::Done => came(Filling::Done),
            State::Running(part) => came(Filling::Running(part)).after(TELL),
            State::Failed(error, _) if error.is_final => came(Filling::Failed(error.message)),
            State::Failed(error, again) => {
                let mut failed = came(Filling::Retries(error.message)).after(again);
                failed.restarts = self.fills.counted(job, restarts);
                failed
            }
            State::Scheduled | State::None => came(Filling::Scheduled),
        })
    }

    /// A claim that names a volume waits for it, and gets it if it is free.
    async fn bind_named(&self, look: &Look<'_>, claim: &Claim, source: &Source) -> Result<Came, Failure> {
        let name = &claim.spec.volume_name;
        let told = |message: String| {
            let told = Told {
                reason: "FailedBinding",
                message,
            };
            let mut came = Came::new(Filling::Waits(told)).of_claim(claim).after(ASK_AGAIN);
            came.named = named(source);
            came
        };
        let path = format!("/api/v1/persistentvolumes/{name}");
        let Some(found) = look.requests.get(&path).await? else {
            return Ok(told(format!("the volume {name} does not exist")));
        };
        let held: crate::view::Volume = crate::view::read("persistentvolume", &found)?;
        let directory = self.place.directory(&look.key.workspace, name);
        if !volume::is_of(&held, &self.node, &directory) {
            return Ok(told(format!(
                "the volume {name} is none of the node {}",
                self.node
            )));
        }
        let metadata = &claim.metadata;
        let is_free = held.spec.claim_ref.as_ref().is_none_or(|it| {
            it.name == metadata.name
                && it.namespace == metadata.namespace
                && (it.uid.is_empty() || it.uid == metadata.uid)
        });
        if !is_free {
            return Ok(told(format!("the volume {name} is bound to another claim")));
        }
        let place = directory.clone();
        let size = blocking(move || Place::size(&place)).await;
        match size {
            Ok(Some(size)) => {
                self.bind_existing(look, claim, &found, size).await?;
                let mut came = Came::new(Filling::Done);
                came.named = named(source);
                came.phase = Some("Bound".to_owned());
                Ok(came)
            }
            Ok(None) => Ok(told(format!("the volume {name} has no disk"))),
            Err(error) => Ok(told(crate::fill::sentence(&error))),
        }
    }
}

fn named(source: &Source) -> Option<crate::view::Named> {
    match source {
        Source::Claim(named) | Source::Snapshot(named) | Source::Reference(named) => Some(named.clone()),
        _ => None,
    }
}
