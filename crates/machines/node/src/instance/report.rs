//! What is said about an instance: its status, in one patch and only when something changed, and events about what happened.

use fairway_controller::Failure;
use fairway_controller::commit::difference;
use fairway_controller::events::Severity;
use fairway_machines_plan::confinement::starved::OOM_KILLED;
use fairway_machines_plan::node::RUNS_ON_ANNOTATION;
use fairway_machines_plan::phase::{Decision, FINALIZER, Obstacle, Phase};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::runner::{Disks, Life, Runner, read};
use super::status::{Seen, document};
use crate::paths;

/// The address that an instance was given, written on it.
const ADDRESS: &str = fairway_machines_wiring::ADDRESS_ANNOTATION;

impl Runner {
    /// Writes what changed. `lets_go`: nothing is left to be done here before the object may go.
    pub(super) async fn report(&mut self, decision: &Decision, lets_go: bool) {
        let before = Phase::parse(&self.vmi.status.phase);
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let after = document(&self.object["status"], &self.seen(decision, &now));
        let mut patch = match difference(&self.object["status"], &after) {
            Some(change) => json!({ "status": change }),
            None => json!({}),
        };
        if lets_go {
            let finalizers = &self.vmi.metadata.finalizers;
            let left: Vec<&String> = finalizers.iter().filter(|it| *it != FINALIZER).collect();
            patch["metadata"] = json!({ "finalizers": left });
        }
        if let Some(runs_on) = self.runs_on_to_tell() {
            patch["metadata"]["annotations"] = json!({ RUNS_ON_ANNOTATION: runs_on });
        }
        if patch.as_object().is_some_and(serde_json::Map::is_empty) {
            return;
        }
        let is_leaving = lets_go && self.vmi.metadata.finalizers.len() == 1;
        if self.write(patch).await {
            self.is_gone |= is_leaving;
            self.tell_of(before, decision).await;
        }
    }

    /// Upstream's word for why the machine ended, where there is one.
    fn reason_of_end(&self) -> Option<&str> {
        match &self.life {
            Life::Ended(ended) => ended.reason.as_deref(),
            _ => None,
        }
    }

    /// What the guest runs on, if its instance does not say so: whoever finds another node for it has to know.
    fn runs_on_to_tell(&self) -> Option<&str> {
        let built = self.home.record.built.as_ref()?;
        let known = self.vmi.metadata.annotations.get(RUNS_ON_ANNOTATION);
        let is_news = known != Some(&built.runs_on) && !built.runs_on.is_empty();
        (is_news && matches!(self.life, Life::Running(_))).then_some(&built.runs_on)
    }

    /// Writes something about the instance, as it was last seen; whether it is written.
    pub(crate) async fn write(&mut self, mut patch: Value) -> bool {
        patch["metadata"]["uid"] = self.uid.as_str().into();
        patch["metadata"]["resourceVersion"] = self.object["metadata"]["resourceVersion"].clone();
        let path = format!("{}?fieldManager={}", paths::instance(&self.key), crate::COMPONENT);
        match self.context.api(&self.key).merge(&path, &patch).await {
            Ok(Some(object)) => {
                self.write_failures = 0;
                self.take_written(object);
                true
            }
            Ok(None) => {
                self.is_gone = true;
                false
            }
            Err(failure) => {
                self.not_written(&failure).await;
                false
            }
        }
    }

    fn take_written(&mut self, mut object: Value) {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.shift_remove("managedFields");
        }
        self.vmi = read(&object);
        self.object = object;
    }

    /// Somebody was quicker, or the API does not answer: what it says now counts.
    async fn not_written(&mut self, failure: &Failure) {
        if !failure.is_conflict() {
            tracing::debug!(key = %self.key, reason = failure.sentence(), "a status is not written; trying again");
        }
        self.write_at = Some(tokio::time::Instant::now() + self.write_pause());
        match self.context.api(&self.key).get(&paths::instance(&self.key)).await {
            Ok(Some(object)) if object["metadata"]["uid"] == self.uid.as_str() => self.take_written(object),
            Ok(_) => self.is_gone = true,
            Err(_) => {}
        }
    }

    fn seen<'s>(&'s self, decision: &'s Decision, now: &'s str) -> Seen<'s> {
        let running = match &self.life {
            Life::Running(running) => Some(running),
            _ => None,
        };
        let address = self.vmi.metadata.annotations.get(ADDRESS);
        Seen {
            decision,
            vmi: &self.vmi,
            plan: &self.plan,
            live: running.map(|it| &it.live),
            guest: running.and_then(|it| it.guest.as_ref()),
            address: address.and_then(|it| it.parse().ok()),
            volumes: &self.volumes,
            reason: self.reason_of_end(),
            conditions: self.more_conditions(),
            user: rustix::process::geteuid().as_raw(),
            now,
        }
    }

    /// Events, in upstream's words.
    async fn tell_of(&mut self, before: Phase, decision: &Decision) {
        if let Disks::Blocked(obstacle) = &self.disks
            && self.told.as_ref() != Some(obstacle)
        {
            let obstacle = obstacle.clone();
            let (reason, message) = match &obstacle {
                Obstacle::NoClaim(name) => ("FailedPvcNotFound", format!("PVC {name} does not exist")),
                Obstacle::ErrImagePull(why) => ("ErrImagePull", why.clone()),
                Obstacle::ImagePullBackOff(why) => ("ImagePullBackOff", why.clone()),
                Obstacle::Seed(why) | Obstacle::Start(why) => ("SyncFailed", why.clone()),
            };
            self.tell(Severity::Warning, reason, message).await;
            self.told = Some(obstacle);
        }
        if before == decision.phase {
            return;
        }
        match decision.phase {
            Phase::Running => {
                self.tell(Severity::Normal, "Created", "VirtualMachineInstance defined.")
                    .await;
                self.tell(Severity::Normal, "Started", "VirtualMachineInstance started.")
                    .await;
            }
            Phase::Succeeded => {
                let message = "The VirtualMachineInstance was shut down.";
                self.tell(Severity::Normal, "Stopped", message).await;
            }
            Phase::Failed => {
                let message = match &self.life {
                    Life::Ended(ended) => format!("The VirtualMachineInstance crashed. {}", ended.message),
                    _ => "The VirtualMachineInstance crashed.".to_owned(),
                };
                self.tell(Severity::Warning, "Stopped", message.trim()).await;
                if let (Life::Ended(ended), Some(OOM_KILLED)) = (&self.life, self.reason_of_end()) {
                    self.tell(Severity::Warning, OOM_KILLED, ended.message.clone())
                        .await;
                }
            }
            _ => {}
        }
    }
}
