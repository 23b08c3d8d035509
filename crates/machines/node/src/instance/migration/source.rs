//! The side that a machine leaves.

use std::path::Path;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_plan::argv;
use fairway_machines_qemu::meeting::{self, Side};
use fairway_machines_qemu::migrate::Progress;
use fairway_machines_qemu::mirror::{Copying, Mirror, Mirrors};
use fairway_machines_qemu::{Confinement, Machine, migrate};
use jiff::Timestamp;
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::course::{Course, Meter};
use super::{FromSource, FromTarget, SOURCE, State, TARGET, mark, secrecy, timeout};
use crate::claims;
use crate::instance::confining;
use crate::instance::disks::claim_of;
use crate::instance::input::Input;
use crate::instance::runner::{Life, Runner};

/// How often a migration that is to end is told so.
const END_AGAIN: Duration = Duration::from_millis(300);

/// How far the source is.
#[derive(Debug)]
pub(crate) struct Sending {
    /// Which migration.
    pub(crate) uid: String,
    /// It was asked to end, and who sees to that.
    pub(crate) is_ending: bool,
    pub(crate) ending: Option<AbortHandle>,
    /// Everything was sent: the guest does not run here any more.
    pub(crate) sent_at: Option<Instant>,
    /// Disks that were copied.
    pub(crate) copied: Vec<String>,
    /// How far it is, and what was said of that last.
    pub(crate) course: Course,
}

impl Drop for Sending {
    /// Whoever ends one migration must not end the next.
    fn drop(&mut self) {
        if let Some(ending) = self.ending.take() {
            ending.abort();
        }
    }
}

/// A migration that has failed, and nobody knows yet.
#[derive(Debug)]
pub(crate) struct Unsaid {
    uid: String,
    why: String,
    is_aborted: bool,
}

impl Runner {
    /// Whether the guest has left.
    pub(crate) fn has_left(&self) -> bool {
        self.sending.as_ref().is_some_and(|it| it.sent_at.is_some())
    }

    /// The next step of the source.
    pub(crate) async fn step_source(&mut self, state: &State) {
        let Life::Running(running) = &self.life else {
            return;
        };
        if self.sending.as_ref().is_some_and(|it| it.uid != state.uid) {
            // What is left of an earlier one ends first: both use the same names, and the same keys.
            self.stop_sending();
            return;
        }
        if let Some(sending) = &mut self.sending {
            sending.course.look();
            if state.is_to_end && !sending.is_ending && sending.sent_at.is_none() {
                sending.is_ending = true;
                let machine = running.machine.clone();
                sending.ending = Some(self.tasks.spawn(end(machine)));
                self.tell(
                    Severity::Normal,
                    "Migrating",
                    "VirtualMachineInstance is aborting migration.",
                )
                .await;
            }
            return;
        }
        let Some(target) = state.from_target.clone().filter(|_| state.is_listening) else {
            if state.from_source.is_none() {
                self.describe(state).await;
            }
            return;
        };
        if state.has_started {
            // Another Fairway began it, and is no more.
            return self.resume_sending(state).await;
        }
        if let Some(other) = &target.authority {
            let own = state.from_source.as_ref().map_or("", |it| &it.authority);
            let confinement = self.confinement();
            if let Err(why) = secrecy::trust(self.home.path(), own, other, &confinement) {
                return self.migration_failed(&why, false).await;
            }
        }
        let began = json!({"status": {"migrationState": {
            "startTimestamp": now(), "mode": "PreCopy",
        }}});
        if !self.write(began).await {
            return;
        }
        self.tell(
            Severity::Normal,
            "Migrating",
            "VirtualMachineInstance is migrating.",
        )
        .await;
        self.begin_sending(state, &target);
    }

    /// What keeps the machine in.
    pub(crate) fn confinement(&self) -> Confinement {
        self.context.isolation.of(&confining::name(self.home.path()))
    }

    /// Says what the machine is built like.
    async fn describe(&mut self, state: &State) {
        if self.changing.is_some() {
            // It is described when that is done.
            return;
        }
        let confinement = self.confinement();
        let authority = match secrecy::make(self.home.path(), Side::Client, &confinement) {
            Ok(authority) => authority,
            Err(why) => return self.migration_failed(&why, false).await,
        };
        if let Err(why) = self.mark_disks(&state.uid).await {
            return self.migration_failed(&why, false).await;
        }
        let (Life::Running(running), Some(built)) = (&self.life, &self.home.record.built) else {
            return self
                .migration_failed(
                    "how the machine was built is not known any more; restart it",
                    false,
                )
                .await;
        };
        let said = FromSource {
            migration: state.uid.clone(),
            built: built.clone(),
            machine_type: running.live.machine_type.clone(),
            is_paused: running.state == "paused",
            host: self.context.host_id.clone(),
            user: confinement.user.map(|it| it.id),
            authority,
        };
        let text = serde_json::to_string(&said).unwrap_or_default();
        self.write(json!({"metadata": {"annotations": {SOURCE: text}}}))
            .await;
    }

    /// Leaves marks beside disks of claims.
    async fn mark_disks(&mut self, uid: &str) -> Result<(), String> {
        let api = self.context.api(&self.key);
        let names: Vec<String> = self
            .plan
            .disks
            .iter()
            .filter_map(|it| claim_of(&it.source).map(str::to_owned))
            .collect();
        for name in names {
            let found = claims::find(&api, &self.key, &name, &self.context.directory).await;
            let found = found.map_err(|error| error.to_string())?;
            if let Some(place) = found.and_then(|it| it.place) {
                let mark = mark(&place.directory, uid);
                std::fs::write(&mark, "")
                    .map_err(|error| format!("{} cannot be made: {error}", mark.display()))?;
                self.marks.push((name, mark));
            }
        }
        Ok(())
    }

    /// Nothing of a migration stays.
    fn tidy_after_migration(&mut self) {
        for (_, mark) in self.marks.drain(..) {
            let _ = std::fs::remove_file(mark);
        }
        secrecy::forget(self.home.path());
    }

    /// The guest runs elsewhere, and has its disks there: those here are of no use any more.
    pub(crate) async fn discard_copied(&mut self) {
        let marks = self.marks.clone();
        self.tidy_after_migration();
        let Some(sending) = self.sending.take().filter(|it| it.sent_at.is_some()) else {
            return;
        };
        let api = self.context.api(&self.key);
        for name in &sending.copied {
            let source = self.plan.disk(name).map(|it| &it.source);
            let Some(claim) = source.and_then(claim_of) else {
                continue;
            };
            let found = claims::find(&api, &self.key, claim, &self.context.directory).await;
            let directory = match found.map(|it| it.and_then(|it| it.place)) {
                // As long as it is said to be here, it is.
                Ok(Some(place)) => {
                    let is_elsewhere = !place.nodes.is_empty() && !place.nodes.contains(&self.context.node);
                    is_elsewhere.then_some(place.directory)
                }
                Ok(None) => None,
                // A node that joined may not look after what has left it. The target has taken it before it said that it was done.
                Err(_) => {
                    let mark = marks.iter().find(|(of, _)| of == claim).map(|(_, mark)| mark);
                    mark.and_then(|it| it.parent()).map(Path::to_owned)
                }
            };
            if let Some(directory) = directory
                && let Err(error) = std::fs::remove_dir_all(&directory)
            {
                tracing::warn!(directory = %directory.display(), %error, "a volume that has moved is not removed");
            }
        }
    }

    fn begin_sending(&mut self, state: &State, target: &FromTarget) {
        let Life::Running(running) = &self.life else {
            return;
        };
        self.sending = Some(Sending {
            uid: state.uid.clone(),
            is_ending: false,
            ending: None,
            sent_at: None,
            copied: target.disks.clone(),
            course: Course::default(),
        });
        let disks: Vec<Mirror> = target
            .disks
            .iter()
            .filter_map(|name| {
                let disk = self.plan.disk(name)?;
                Some(Mirror {
                    name: name.clone(),
                    node: argv::top_node(disk),
                })
            })
            .collect();
        let bytes = target.disks.iter().filter_map(|it| self.volumes.get(it)?.size);
        let options = migrate::Options {
            is_tls: target.authority.is_some(),
            timeout: timeout(state.seconds_per_gib, running.live.memory + bytes.sum::<u64>()),
            ..state.options.clone()
        };
        let (machine, target) = (running.machine.clone(), target.clone());
        let (listener, uid) = (self.sender.clone(), state.uid.clone());
        let meter = self
            .sending
            .as_ref()
            .map(|it| it.course.meter())
            .unwrap_or_default();
        self.tasks.spawn(async move {
            let outcome = send(&machine, &target, &disks, &options, &meter).await;
            let _ = listener.send(Input::Sent(uid, outcome)).await;
        });
    }

    async fn resume_sending(&mut self, state: &State) {
        let Life::Running(running) = &self.life else {
            return;
        };
        let machine = running.machine.clone();
        let progress = migrate::progress(&machine).await;
        let status = progress.map(|it| it.status).unwrap_or_default();
        if matches!(status.as_str(), "" | "none" | "failed" | "cancelled") {
            return self
                .migration_failed(
                    "Fairway was restarted at the source before the machine had moved",
                    false,
                )
                .await;
        }
        self.sending = Some(Sending {
            uid: state.uid.clone(),
            is_ending: false,
            ending: None,
            sent_at: None,
            copied: state
                .from_target
                .as_ref()
                .map_or_else(Vec::new, |it| it.disks.clone()),
            course: Course::default(),
        });
        let (listener, uid, options) = (self.sender.clone(), state.uid.clone(), state.options.clone());
        let has_disks = state.from_target.as_ref().is_some_and(|it| !it.disks.is_empty());
        let meter = self
            .sending
            .as_ref()
            .map(|it| it.course.meter())
            .unwrap_or_default();
        self.tasks.spawn(async move {
            let outcome = match has_disks && status != "completed" {
                // Nobody knows how far the copies of the disks are.
                true => {
                    let _ = migrate::cancel(&machine).await;
                    Err("Fairway was restarted at the source while disks were copied".to_owned())
                }
                false => {
                    let followed = migrate::follow(&machine, &options, None, |it| meter.memory(it)).await;
                    followed.map_err(|error| error.to_string())
                }
            };
            let _ = listener.send(Input::Sent(uid, outcome)).await;
        });
    }

    /// Everything was sent, or not.
    pub(crate) async fn sent(&mut self, uid: &str, outcome: Result<Progress, String>) {
        let Some(sending) = self.sending.as_mut().filter(|it| it.uid == uid) else {
            return;
        };
        if let Some(ending) = sending.ending.take() {
            ending.abort();
        }
        let is_current = self.object["status"]["migrationState"]["migrationUid"] == uid;
        match outcome {
            Ok(progress) => {
                sending.sent_at = Some(Instant::now());
                // It is reached where it runs.
                self.context.registry.remove(&self.key, &self.uid);
                self.context.cables.unplug(&self.key);
                self.tell(Severity::Normal, "Migrating", told(&progress)).await;
            }
            Err(why) => {
                let is_ending = sending.is_ending;
                self.sending = None;
                if let Life::Running(running) = &mut self.life {
                    let _ = running.look().await;
                }
                match is_current {
                    true => self.migration_failed(&why, is_ending).await,
                    false => self.tidy_after_migration(),
                }
            }
        }
    }

    /// Somebody else has said that it failed, and not everything was sent: the guest goes on here.
    pub(crate) fn stop_sending(&mut self) {
        let (Life::Running(running), Some(sending)) = (&self.life, &mut self.sending) else {
            return;
        };
        if sending.ending.is_none() && sending.sent_at.is_none() {
            let machine = running.machine.clone();
            sending.ending = Some(self.tasks.spawn(end(machine)));
        }
    }

    /// Says that a migration has failed; the guest runs on here.
    pub(crate) async fn migration_failed(&mut self, why: &str, is_aborted: bool) {
        self.tidy_after_migration();
        let uid = self.object["status"]["migrationState"]["migrationUid"].as_str();
        self.unsaid = Some(Unsaid {
            uid: uid.unwrap_or_default().to_owned(),
            why: why.to_owned(),
            is_aborted,
        });
        self.say_failure().await;
    }

    /// Says that a migration has failed. What cannot be written is kept and said again, as the other side waits for it.
    pub(crate) async fn say_failure(&mut self) {
        let Some(unsaid) = self.unsaid.take() else {
            return;
        };
        let known = &self.object["status"]["migrationState"];
        if known["migrationUid"] != unsaid.uid.as_str()
            || known["failed"] == true
            || known["completed"] == true
        {
            return;
        }
        let (uid, why) = (&unsaid.uid, &unsaid.why);
        let mut state = json!({
            "failed": true, "completed": true, "failureReason": why, "endTimestamp": now(),
        });
        if unsaid.is_aborted {
            state["abortStatus"] = "Succeeded".into();
        }
        let patch = json!({
            "metadata": {"annotations": {SOURCE: null, TARGET: null}},
            "status": {"migrationState": state},
        });
        if self.write(patch).await {
            let message = format!("VirtualMachineInstance migration uid {uid} failed. reason:{why}");
            self.tell(Severity::Warning, "Migrated", message).await;
        } else if !self.is_gone {
            self.unsaid = Some(unsaid);
        }
    }
}

/// Ends what is being sent, and whatever is begun meanwhile, until somebody ends this.
async fn end(machine: Machine) {
    loop {
        Mirrors::break_off(&machine).await;
        let _ = migrate::cancel(&machine).await;
        tokio::time::sleep(END_AGAIN).await;
    }
}

async fn send(
    machine: &Machine,
    target: &FromTarget,
    disks: &[Mirror],
    options: &migrate::Options,
    meter: &Meter,
) -> Result<Progress, String> {
    let failed = |error: fairway_machines_qemu::MachineError| error.to_string();
    if options.is_tls {
        meeting::arm(machine, Side::Client).await.map_err(failed)?;
    }
    let outcome = send_all(machine, target, disks, options, meter).await;
    if options.is_tls {
        let _ = meeting::disarm(machine).await;
    }
    outcome.map_err(failed)
}

async fn send_all(
    machine: &Machine,
    target: &FromTarget,
    disks: &[Mirror],
    options: &migrate::Options,
    meter: &Meter,
) -> Result<Progress, fairway_machines_qemu::MachineError> {
    let mut mirrors = None;
    if !disks.is_empty() {
        let copying = Copying {
            at: target.disks_at.clone(),
            is_tls: options.is_tls,
            max_bandwidth: options.max_bandwidth,
            timeout: options.timeout,
        };
        mirrors = Some(Mirrors::start(machine, &copying, disks, |it| meter.disks(it)).await?);
    }
    let address = target.memory.uri();
    let sent = migrate::send_with(machine, &address, options, mirrors.as_mut(), |it| {
        meter.memory(it);
    })
    .await;
    if sent.is_err()
        && let Some(mirrors) = &mut mirrors
    {
        mirrors.give_up(machine).await;
    }
    sent
}

/// What people want to know of a migration: how long the guest stood still.
fn told(progress: &Progress) -> String {
    let number = |it: Option<u64>| it.map_or_else(|| "an unknown number of".to_owned(), |it| it.to_string());
    format!(
        "Everything was sent: {} MiB of memory in {} ms; the guest stood still for {} ms.",
        progress.transferred >> 20,
        number(progress.total_ms),
        number(progress.downtime_ms)
    )
}

pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
