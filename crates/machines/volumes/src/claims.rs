//! Claims and the DataVolumes of their names: one look at both, and the steps that follow from it.
//!
//! A DataVolume and its claim have the same name, so that one key names both and nobody else works on either meanwhile. The order of
//! a look:
//!
//! 1. volumes whose claim is gone are given up ([`reclaiming`]);
//! 2. a claim that is being deleted goes when no machine holds it ([`leaving`]);
//! 3. a DataVolume gets its claim ([`claiming`]);
//! 4. a claim of ours is filled ([`filling`]) and bound ([`binding`]), or grows ([`growing`]);
//! 5. what came of it is told ([`telling`]).

mod binding;
mod choosing;
mod claiming;
mod classes;
mod filling;
mod growing;
mod leaving;
mod modifying;
mod reclaiming;
mod telling;
mod uploading;

pub(crate) use telling::reference;

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::Recorder;
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests};
use fairway_machines_plan::admission::CLONE_SOURCE_ANNOTATION;
use serde_json::Value;

use crate::decide::owner::{self, Ownership};
use crate::decide::source::{self, Source};
use crate::decide::status::{Filling, Told};
use crate::fill::Fills;
use crate::names;
use crate::origin::{Origins, Permit};
use crate::place::Place;
use crate::uploads::Uploads;
use crate::view::{self, Claim, DataVolume, Named};
use crate::world::SharedWorld;

/// How soon to look again for what nobody tells of: an image that is built, a right that is given.
const ASK_AGAIN: Duration = Duration::from_secs(3);

/// Looks after claims.
pub(crate) struct Claims {
    pub(crate) clients: Clients,
    pub(crate) recorder: Recorder,
    pub(crate) node: String,
    pub(crate) place: Arc<Place>,
    pub(crate) origins: Arc<Origins>,
    pub(crate) fills: Arc<Fills>,
    pub(crate) world: SharedWorld,
    /// How long disks are kept that Git pruned, if nobody says otherwise.
    pub(crate) keep_disks: Option<Duration>,
    /// Whether claims for which nobody chose a node are this one's.
    pub(crate) chooses: bool,
    pub(crate) uploads: Option<Uploads>,
}

/// What one look is about.
pub(crate) struct Look<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) requests: Requests,
    /// The DataVolume as it was read, and as it is understood.
    pub(crate) data_volume: Option<(Value, DataVolume)>,
}

impl Look<'_> {
    pub(crate) fn claim_path(&self) -> String {
        claim_path(self.key)
    }

    pub(crate) fn data_volume_path(&self) -> String {
        format!(
            "/apis/cdi.kubevirt.io/v1beta1/namespaces/{}/datavolumes/{}",
            self.key.namespace, self.key.name
        )
    }

    /// Whether the disk may be a copy of one in another namespace.
    pub(crate) fn permit(&self) -> Permit {
        let Some(wanted) = self.wanted() else {
            return Permit::default();
        };
        let noted = wanted.metadata.annotation(CLONE_SOURCE_ANNOTATION);
        let noted = noted.and_then(|it| it.split_once('/'));
        let owner = wanted.metadata.controller();
        let machine = owner.filter(|it| it.kind == "VirtualMachine");
        Permit {
            noted: noted.map(|(namespace, name)| Named {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            machine: machine.map(|it| it.name.clone()),
        }
    }

    fn wanted(&self) -> Option<&DataVolume> {
        let found = self.data_volume.as_ref().map(|(_, volume)| volume);
        found.filter(|volume| !volume.metadata.is_deleting())
    }
}

pub(crate) fn claim_path(key: &ObjectKey) -> String {
    format!(
        "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
        key.namespace, key.name
    )
}

/// What came of a claim.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) filling: Filling,
    /// The phase of the claim.
    pub(crate) phase: Option<String>,
    /// From what it is a copy.
    pub(crate) named: Option<view::Named>,
    pub(crate) restarts: u32,
    pub(crate) next: Outcome,
}

impl Came {
    pub(crate) fn new(filling: Filling) -> Self {
        Self {
            filling,
            phase: None,
            named: None,
            restarts: 0,
            next: Outcome::Done,
        }
    }

    fn of_claim(mut self, claim: &Claim) -> Self {
        let phase = match claim.status.phase.as_str() {
            "" => "Pending",
            phase => phase,
        };
        self.phase = Some(phase.to_owned());
        self
    }

    fn after(mut self, time: Duration) -> Self {
        self.next = Outcome::Again(time);
        self
    }
}

/// What there is to do with a claim.
enum Step {
    /// It is not this node's to look after: nothing is said about it either.
    NotOurs,
    /// This came of it.
    Came(Came),
}

impl Reconcile<ObjectKey> for Claims {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let mut look = Look {
            key,
            requests: Requests::new(self.clients.of(&key.workspace)),
            data_volume: None,
        };
        look.data_volume = match look.requests.get(&look.data_volume_path()).await {
            // A node that joined sees what has to do with its machines. This one has nothing to do with them any more: the machine went
            // elsewhere, or was to come and has not. Should it come after all, that is heard of.
            Err(failure) if !self.chooses && failure.is_forbidden() => return Ok(Outcome::Done),
            Err(failure) => return Err(failure),
            Ok(Some(found)) => {
                let volume = view::read("datavolume", &found)?;
                Some((found, volume))
            }
            Ok(None) => None,
        };
        let claim = read_claim(&look).await?;
        let reclaimed = self.reclaim(&look, claim.as_ref()).await?;
        if let Some(claim) = &claim
            && claim.metadata.is_deleting()
        {
            return self.leave(&look, claim).await;
        }
        let step = match look.wanted() {
            Some(_) => self.data_volume(&look, claim).await?,
            None => self.plain_claim(&look, claim).await?,
        };
        let next = match step {
            Step::NotOurs => Outcome::Done,
            Step::Came(came) => self.tell(&look, came).await?,
        };
        Ok(sooner(next, reclaimed))
    }
}

/// Of two looks the sooner one.
fn sooner(one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Outcome::Done, next) | (next, Outcome::Done) => next,
        (Outcome::Again(one), Outcome::Again(other)) => Outcome::Again(one.min(other)),
        (Outcome::Poll, _) | (_, Outcome::Poll) => Outcome::Poll,
    }
}

async fn read_claim(look: &Look<'_>) -> Result<Option<Claim>, Failure> {
    let found = look.requests.get(&look.claim_path()).await?;
    found
        .map(|found| view::read("persistentvolumeclaim", &found))
        .transpose()
}

impl Claims {
    /// Whether this is the node that somebody chose; where nobody did, the control plane's is.
    fn is_chosen(&self, chosen: Option<&str>) -> bool {
        chosen.map_or(self.chooses, |node| node == self.node && !node.is_empty())
    }

    /// A DataVolume and its claim.
    async fn data_volume(&self, look: &Look<'_>, claim: Option<Claim>) -> Result<Step, Failure> {
        let Some(volume) = look.wanted() else {
            return Ok(Step::NotOurs);
        };
        if volume.status.phase == "Failed" && claim.as_ref().is_none_or(|claim| claim.status.phase != "Bound")
        {
            // It says why, and stays so.
            return Ok(Step::NotOurs);
        }
        let of_claim = claim
            .as_ref()
            .and_then(|it| it.metadata.annotation(names::SELECTED_NODE));
        let of_volume = volume.metadata.annotation(names::SELECTED_NODE);
        let chosen = of_claim.or(of_volume);
        let source = source::of(volume);
        if !self.is_chosen(chosen) {
            if matches!(source, Ok(Source::Upload)) {
                self.tell_of_uploads(look).await?;
            }
            return Ok(Step::NotOurs);
        }
        let source = match source {
            Ok(source) => source,
            Err(why) => return Ok(Step::Came(Came::new(Filling::Failed(why)))),
        };
        if chosen.is_none()
            && claim.is_none()
            && let Some(step) = self.choose(look, volume, &source).await?
        {
            return Ok(step);
        }
        let claim = match claim {
            Some(claim) => claim,
            None => match self.make_claim(look, volume, &source).await? {
                Ok(claim) => claim,
                Err(step) => return Ok(step),
            },
        };
        match owner::of(volume, &claim) {
            Ownership::Own => {}
            Ownership::Adopts => return self.adopt(look, volume, &claim).await.map(Step::Came),
            Ownership::Leaving => {
                let told = Told {
                    reason: "ErrResourceMarkedForDeletion",
                    message: format!("Resource {:?} marked for deletion", claim.metadata.name),
                };
                return Ok(Step::Came(Came::new(Filling::NoClaim(Some(told)))));
            }
            Ownership::Foreign => {
                let told = Told {
                    reason: "ErrResourceExists",
                    message: format!(
                        "Resource {:?} already exists and is not managed by DataVolume",
                        claim.metadata.name
                    ),
                };
                return Ok(Step::Came(
                    Came::new(Filling::NoClaim(Some(told))).of_claim(&claim),
                ));
            }
        }
        self.provision(look, &claim, &source).await
    }

    /// A claim without a DataVolume.
    async fn plain_claim(&self, look: &Look<'_>, claim: Option<Claim>) -> Result<Step, Failure> {
        let Some(claim) = claim else {
            return Ok(Step::NotOurs);
        };
        // Its DataVolume is gone: so will be the claim, if it is not orphaned.
        if claim.status.phase != "Bound"
            && let Some(owner) = claim.metadata.controller()
            && owner.kind == "DataVolume"
        {
            return Ok(Step::NotOurs);
        }
        let source = match source_of(&claim) {
            Ok(source) => source,
            Err(why) => return Ok(Step::Came(Came::new(Filling::Failed(why)).of_claim(&claim))),
        };
        let chosen = claim.metadata.annotation(names::SELECTED_NODE);
        if source == Source::Upload && !self.is_chosen(chosen) {
            self.tell_of_uploads(look).await?;
        }
        if chosen.is_none()
            && self.chooses
            && let Some(step) = self.choose_for_claim(look, &claim, &source).await?
        {
            return Ok(step);
        }
        self.provision(look, &claim, &source).await
    }
}

/// What a claim says itself about what is to be on its disk.
fn source_of(claim: &Claim) -> Result<Source, String> {
    let metadata = &claim.metadata;
    if metadata.annotations.contains_key(names::UPLOAD_TARGET) {
        return Ok(Source::Upload);
    }
    let Some(reference) = &claim.spec.data_source_ref else {
        return Ok(Source::Blank);
    };
    let named = view::Named {
        namespace: metadata.namespace.clone(),
        name: reference.name.clone(),
    };
    match (
        reference.api_group.as_deref().unwrap_or_default(),
        reference.kind.as_str(),
    ) {
        ("", "PersistentVolumeClaim") => Ok(Source::Claim(named)),
        ("snapshot.storage.k8s.io", "VolumeSnapshot") => Ok(Source::Snapshot(named)),
        (group, kind) => Err(format!(
            "nothing here fills claims from {kind}.{group}; use a DataVolume, or a claim or a snapshot as dataSource"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_may_say_what_is_on_its_disk() {
        for (claim, expected) in [
            (json!({}), "Blank"),
            (
                json!({"metadata": {"annotations": {names::UPLOAD_TARGET: ""}}}),
                "Upload",
            ),
            (
                json!({"metadata": {"namespace": "shop"}, "spec": {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a"}}}),
                r#"Claim(Named { namespace: "shop", name: "a" })"#,
            ),
        ] {
            let view = Claim::deserialize(claim.clone()).unwrap();
            assert_eq!(format!("{:?}", source_of(&view).unwrap()), expected, "{claim}");
        }
        let strange = json!({"spec": {"dataSourceRef": {"apiGroup": "x.io", "kind": "Thing", "name": "a"}}});
        assert!(source_of(&Claim::deserialize(strange).unwrap()).is_err());
    }

    #[test]
    fn the_sooner_look_counts() {
        let (one, two) = (
            Outcome::Again(Duration::from_secs(1)),
            Outcome::Again(Duration::from_secs(2)),
        );
        assert_eq!(sooner(one, two), one);
        assert_eq!(sooner(Outcome::Done, two), two);
        assert_eq!(sooner(Outcome::Done, Outcome::Done), Outcome::Done);
    }
}
