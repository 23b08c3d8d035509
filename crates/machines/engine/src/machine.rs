//! The VirtualMachine controller.
//!
//! A pass reads the machine and all that it consists of ([`observe`]), asks `lifecycle::decide` what to do, does it
//! ([`act`]), and writes the status, once. Reads see every write that was answered, and a machine is never worked on
//! twice at once, so that nothing is done twice: what an earlier pass did is seen.
//!
//! The order matters where a process may end in between: what must not be forgotten is in the status before the instance
//! that it was learnt from goes.

mod act;
pub(crate) mod disks;
mod git;
mod live;
mod observe;
pub(crate) mod size;
mod start;
mod status;
mod volume_requests;

use std::sync::Arc;
use std::time::Duration;

use fairway_api::kubevirt::{VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::events::{Happening, Recorder, Severity};
use fairway_controller::{Clients, Failure, ObjectKey, Outcome, Reconcile, Requests, backoff};
use fairway_machines_plan::lifecycle::{self, Action, Decision};
use fairway_machines_plan::phase;
use fairway_machines_plan::view::Condition;
use jiff::Timestamp;
use serde_json::Value;

use crate::objects::{about, is_leaving, moment, ours, path, text, without_finalizers};
use crate::settings::SettingsOf;
use observe::Seen;
use status::More;

/// Something that did not succeed, as the status tells it.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// One word.
    reason: &'static str,
    /// A sentence.
    message: String,
    /// What to try again for; nothing if only a change of something else helps.
    failure: Option<Failure>,
}

impl Trouble {
    fn of(reason: &'static str, doing: &str, failure: Failure) -> Self {
        Self {
            reason,
            message: format!("{doing}: {}", failure.sentence()),
            failure: Some(failure),
        }
    }

    /// Somebody else was quicker, which is worth no word.
    fn is_conflict(&self) -> bool {
        self.failure.as_ref().is_some_and(Failure::is_conflict)
    }

    fn condition(&self) -> Condition {
        Condition::holds("Failure", self.reason, self.message.clone())
    }
}

/// Works on machines.
pub(crate) struct Machines {
    clients: Clients,
    settings: Arc<SettingsOf>,
    recorder: Recorder,
}

impl Machines {
    pub(crate) fn new(clients: Clients, settings: Arc<SettingsOf>, recorder: Recorder) -> Self {
        Self {
            clients,
            settings,
            recorder,
        }
    }

    async fn tell(&self, key: &ObjectKey, vm: &Value, warning: bool, reason: &'static str, message: String) {
        let severity = match warning {
            true => Severity::Warning,
            false => Severity::Normal,
        };
        let happening = Happening {
            severity,
            reason,
            message,
        };
        let about = about(&VIRTUAL_MACHINE, vm);
        self.recorder.record(&key.workspace, &about, happening).await;
    }

    /// One pass over a machine that exists.
    async fn pass(&self, key: &ObjectKey, vm: Value, requests: &Requests) -> Result<Outcome, Failure> {
        let settings = self.settings.of(&key.workspace).await?;
        let settings = settings.as_ref();
        let mut seen = observe::world(key, vm, requests, settings).await?;
        let mut trouble = seen.trouble.take();
        match act::volume_requests(&seen, requests).await {
            Ok(false) => {}
            // The change calls for another pass.
            Ok(true) => return Ok(Outcome::Done),
            Err(problem) => drop(trouble.get_or_insert(problem)),
        }
        let now = Timestamp::now();
        let mut decision = decide(&seen, settings, now);
        if trouble.is_some() {
            // Without its size, or in another's place, nothing new is begun.
            let begins =
                |it: &Action| matches!(it, Action::CreateInstance { .. } | Action::UpdateInstance(_));
            decision.actions.retain(|it| !begins(it));
        }
        let begun = trouble.is_none();
        if begun
            && let Err(problem) = act::carry_out(self, key, &mut seen, &decision, settings, requests).await
        {
            trouble = Some(problem);
        }
        if let Some(conflict) = trouble
            .as_mut()
            .filter(|it| it.is_conflict())
            .and_then(|it| it.failure.take())
        {
            return Err(conflict);
        }
        let more = More {
            failure: trouble
                .as_ref()
                .map(Trouble::condition)
                .or_else(|| unmoved(&seen)),
            size: seen.sizes.as_ref().map(|it| it.size_reference.clone()),
            taste: seen.sizes.as_ref().map(|it| it.taste_reference.clone()),
            volume_requests: volume_requests::left(&seen.vm),
            volume_snapshots: seen.snapshot_statuses.clone(),
            observed_generation: seen.vmi.as_ref().and_then(generation),
            not_started: trouble.is_some(),
        };
        let patch = status::patch(&seen.vm, seen.vmi.as_ref(), &decision, &more, &moment(now));
        if let Some(patch) = patch {
            self.warn_of_disks(key, &seen, &patch).await;
            let place = format!("{}/status", path(&VIRTUAL_MACHINE, &key.namespace, &key.name));
            match requests.merge(&ours(&place), &patch).await? {
                Some(written) => seen.vm = written,
                None => return Ok(Outcome::Done),
            }
        }
        act::let_go(&seen, &decision, requests).await?;
        match (trouble.and_then(|it| it.failure), decision.look_again) {
            (Some(failure), _) => Err(failure),
            (None, Some(seconds)) => Ok(Outcome::Again(Duration::from_secs(seconds))),
            (None, None) => Ok(Outcome::Done),
        }
    }

    /// Tells of a disk that failed, when that is news.
    async fn warn_of_disks(&self, key: &ObjectKey, seen: &Seen, patch: &Value) {
        if let (Some(why), "DataVolumeError") = (&seen.volumes.failed, text(patch, "/status/printableStatus"))
        {
            self.tell(key, &seen.vm, true, "FailedDataVolumeImport", why.clone())
                .await;
        }
    }
}

impl Reconcile<ObjectKey> for Machines {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let place = path(&VIRTUAL_MACHINE, &key.namespace, &key.name);
        match requests.get(&place).await? {
            Some(vm) => self.pass(key, vm, &requests).await,
            None => {
                let vmi = path(&VIRTUAL_MACHINE_INSTANCE, &key.namespace, &key.name);
                if let Some(vmi) = requests.get(&vmi).await? {
                    release(&vmi, &requests).await?;
                }
                Ok(Outcome::Done)
            }
        }
    }
}

/// Lets an instance go that ended and whose machine is gone.
async fn release(vmi: &Value, requests: &Requests) -> Result<(), Failure> {
    let ended = phase::Phase::parse(text(vmi, "/status/phase")).is_final();
    let patch = without_finalizers(vmi, &[lifecycle::FINALIZER]);
    if let (true, Some(patch)) = (ended, patch) {
        let place = path(
            &VIRTUAL_MACHINE_INSTANCE,
            text(vmi, "/metadata/namespace"),
            text(vmi, "/metadata/name"),
        );
        requests.merge(&ours(&place), &patch).await?;
    }
    Ok(())
}

fn decide(seen: &Seen, settings: &fairway_machines_plan::settings::Settings, now: Timestamp) -> Decision {
    let revision = match (&seen.started, &seen.current) {
        (Some(started), Some(current)) => Some(lifecycle::Revision {
            started,
            current,
            started_metadata: &seen.started_metadata,
            metadata: &seen.vm["spec"]["template"]["metadata"],
        }),
        _ => None,
    };
    let mut observed = lifecycle::Observed {
        vm: &seen.machine,
        vmi: seen.instance.as_ref(),
        revision,
        volumes: seen.volumes.clone(),
        expected: None,
        changed_by_sync: seen.changed_by_git,
        now,
        chance: chance(),
    };
    if !seen.disks_when_started || is_leaving(&seen.vm) {
        return lifecycle::decide(&observed, settings);
    }
    // Disks are made when the machine is started, and not before.
    observed.volumes.missing.clear();
    let without = lifecycle::decide(&observed, settings);
    let starts = |it: &Action| matches!(it, Action::CreateInstance { .. });
    if !without.actions.iter().any(starts) {
        return without;
    }
    observed.volumes.missing.clone_from(&seen.volumes.missing);
    lifecycle::decide(&observed, settings)
}

/// Says that the content of volumes is not moved.
fn unmoved(seen: &Seen) -> Option<Condition> {
    let names = seen.to_be_moved.join(", ");
    let message = format!(
        "updateVolumesStrategy Migration is not available: the content of {names} is not copied, and the next start takes \
         the new volumes as they are; copy it into them first, or take the change back"
    );
    (!names.is_empty()).then(|| Condition::holds("Failure", "VolumesUpdateError", message))
}

fn chance() -> u32 {
    // In 0 to 1, of which a thousandth is exact enough.
    let thousandths = (backoff::chance() * 1000.0).clamp(0.0, 999.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 999"
    )]
    let number = thousandths as u32;
    number
}

/// The generation of the machine that an instance says it is of.
fn generation(vmi: &Value) -> Option<i64> {
    let said = &vmi["metadata"]["annotations"][fairway_machines_plan::instance::GENERATION_ANNOTATION];
    let recorded = || text(vmi, "/status/virtualMachineRevisionName").rsplit('-').next();
    said.as_str().or_else(recorded)?.parse().ok()
}
