//! The task of one instance: it owns everything about the machine, hears what happens, and makes one step after the other.
//!
//! ```text
//!   object, QEMU, agent, disks, time ──► Input ──► observe ──► plan::phase::decide ──► act ──► report
//!                                          ▲                                            │
//!                                          └────────── what takes time runs beside ─────┘
//! ```
//!
//! A step never waits for anything slow: preparing disks, starting and stopping run beside it and come back as inputs, so that an
//! instance that is deleted while its image is fetched goes at once. There is one task for an instance, and one process: before
//! anything is decided, the machine's directory is asked whether the process is there already.
// tidy: long: one task owns the state of an instance, and what it does on each event is read together

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_controller::{ObjectKey, Shutdown};
use fairway_machines_plan::argv::Layout;
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_plan::phase::{self, Action, Observed, Obstacle, Placement, Process};
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view::{self, VirtualMachineInstance};
use fairway_machines_qemu::launch::Adopted;
use fairway_machines_qemu::{Event, Exit, Machine, adopt};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::disks::{NotReady, Prepared};
use super::home::{Ended, Home, Owner};
use super::input::Input;
use super::running::{self, AGENT_PORT, Running};
use super::status::{VolumeFacts, claim_info};
use crate::context::Context;
use crate::host::Facts;

/// How long after a failure the first attempt is made again.
const RETRY: Duration = Duration::from_secs(1);
/// A process that does not talk is tried again so often.
const KNOCK_AGAIN: Duration = Duration::from_secs(5);
/// How soon a status that could not be written is written again: at once if somebody was quicker, later if the API does not answer.
const WRITE_AGAIN: Duration = Duration::from_millis(5);
const WRITE_MOST: Duration = Duration::from_secs(5);
/// How long the end of Fairway waits for a process that is being started.
const LET_START: Duration = Duration::from_secs(20);

/// How far the disks are.
pub(super) enum Disks {
    /// Nobody has begun.
    Untouched,
    /// Being prepared.
    Preparing,
    /// Claims are not bound.
    Waiting(Vec<String>),
    /// Ready.
    Ready(Box<Prepared>),
    /// Something is in the way.
    Blocked(Obstacle),
}

/// The process.
pub(super) enum Life {
    /// There is one that does not talk; tried again.
    Silent(String),
    /// There is none.
    None,
    /// Being started.
    Starting,
    /// It runs.
    Running(Box<Running>),
    /// It has ended.
    Ended(Ended),
}

/// The task of an instance.
pub(crate) struct Runner {
    pub(super) context: Arc<Context>,
    pub(super) key: ObjectKey,
    pub(super) uid: String,
    /// The instance as the API has it; nothing once it is gone.
    objects: watch::Receiver<Option<Arc<Value>>>,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) sender: mpsc::Sender<Input>,
    pub(super) tasks: JoinSet<()>,
    /// The instance as it was last seen.
    pub(super) object: Value,
    pub(super) vmi: VirtualMachineInstance,
    pub(super) home: Home,
    pub(super) facts: Option<Arc<Facts>>,
    pub(super) settings: Option<Settings>,
    /// The machine as it was built, or as it is to be.
    pub(super) plan: MachinePlan,
    pub(super) disks: Disks,
    pub(super) life: Life,
    pub(super) volumes: BTreeMap<String, VolumeFacts>,
    /// Failures in a row, and when to try again.
    pub(super) failures: u32,
    pub(super) retry_at: Option<Instant>,
    pub(super) press_at: Option<Instant>,
    /// When to write again what could not be written.
    pub(super) write_at: Option<Instant>,
    pub(super) write_failures: u32,
    /// What was last told to be in the way.
    pub(super) told: Option<Obstacle>,
    /// Why the process is being ended by us.
    pub(super) killing: Option<String>,
    pub(super) is_tidy: bool,
    /// The object is gone: nothing is left to be said.
    pub(super) is_gone: bool,
}

/// Whether a task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Wait,
    End,
}

impl Drop for Runner {
    /// However a task ends, nobody reaches the machine through it any more: QEMU talks to one client at a time.
    fn drop(&mut self) {
        self.context.registry.remove(&self.key, &self.uid);
    }
}

impl Runner {
    /// A task for an instance, and the way to tell it what happens.
    pub(crate) fn new(
        context: Arc<Context>,
        key: ObjectKey,
        object: Value,
        objects: watch::Receiver<Option<Arc<Value>>>,
        (sender, inputs): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
    ) -> Self {
        let vmi = read(&object);
        let uid = vmi.metadata.uid.clone();
        let home = Home::of(&context.directory, &Owner::new(&key, &uid));
        let (plan, volumes) = match &home.record.built {
            Some(built) => (built.plan.clone(), built.volumes.clone()),
            None => (
                planned(&key, &vmi, &Capabilities::default(), &Settings::default()),
                BTreeMap::new(),
            ),
        };
        Self {
            context,
            key,
            uid,
            objects,
            inputs,
            sender,
            tasks: JoinSet::new(),
            object,
            vmi,
            home,
            facts: None,
            settings: None,
            plan,
            disks: Disks::Untouched,
            life: Life::None,
            volumes,
            failures: 0,
            retry_at: None,
            press_at: None,
            write_at: None,
            write_failures: 0,
            told: None,
            killing: None,
            is_tidy: false,
            is_gone: false,
        }
    }

    /// Until the instance is gone, or Fairway ends; then the machine goes on without.
    pub(crate) async fn run(mut self, mut shutdown: Shutdown) {
        self.find().await;
        loop {
            if self.step().await == Next::End {
                break;
            }
            let due = self.due();
            tokio::select! {
                () = shutdown.wait() => {
                    self.leave().await;
                    return;
                }
                () = sleep_until(due) => {}
                changed = self.objects.changed() => {
                    if changed.is_err() {
                        return self.leave().await;
                    }
                    let object = self.objects.borrow_and_update().clone();
                    match object {
                        Some(object) => self.see(&object),
                        None => self.is_gone = true,
                    }
                }
                input = self.inputs.recv() => {
                    let Some(input) = input else { return };
                    self.take(input).await;
                    // What has come meanwhile belongs to the same step.
                    while let Ok(more) = self.inputs.try_recv() {
                        self.take(more).await;
                    }
                }
                // Ended tasks are of no interest, but must not pile up.
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }

    /// Fairway ends. A process that is being started is taken to where it can be found.
    async fn leave(&mut self) {
        let started = async {
            while matches!(self.life, Life::Starting) {
                match self.inputs.recv().await {
                    Some(Input::Started(_)) | None => return,
                    Some(_) => {}
                }
            }
        };
        let _ = tokio::time::timeout(LET_START, started).await;
    }

    /// Looks whether the process is there already.
    pub(super) async fn find(&mut self) {
        let found = adopt(self.home.path()).await;
        tracing::debug!(key = %self.key, ?found, "looked for the process of a machine");
        self.life = match found {
            Ok(Adopted::Running(machine)) => {
                self.hold(*machine).await;
                return;
            }
            Ok(Adopted::Silent(orphan)) => Life::Silent(format!(
                "the process {} of the machine does not answer: {}",
                orphan.pid(),
                orphan.why
            )),
            Ok(Adopted::Gone) => match &self.home.record.ended {
                Some(ended) => Life::Ended(ended.clone()),
                None => Life::None,
            },
            Err(error) => Life::Silent(error.to_string()),
        };
    }

    /// Takes a running machine in hand.
    async fn hold(&mut self, machine: Machine) {
        let started = match &self.home.record.built {
            Some(built) => (built.sockets, built.started_memory),
            None => (self.plan.cpu.sockets, self.plan.memory.guest),
        };
        let taken = Running::take(machine, &self.plan, started, &self.sender, &mut self.tasks).await;
        match taken {
            Ok(running) => {
                let reached = crate::registry::Reached {
                    machine: running.machine.clone(),
                    console: running.console.clone(),
                    agent: running.agent.clone(),
                    has_screen: self.plan.devices.graphics,
                    notes: self.sender.clone(),
                };
                self.context.registry.add(&self.key, &self.uid, reached);
                let cards = running::cards(&self.plan, self.home.path());
                self.context.cables.plug(&self.key, &self.plan.hostname, cards);
                self.life = Life::Running(Box::new(running));
            }
            // It does not talk any more: it is ending, or hangs.
            Err(error) => self.life = Life::Silent(error.to_string()),
        }
    }

    /// Takes in what happened.
    async fn take(&mut self, input: Input) {
        match input {
            Input::Claim(name) => self.claim_changed(&name),
            Input::Prepared(outcome) => self.prepared(*outcome),
            Input::Started(outcome) => match *outcome {
                Ok(machine) => {
                    self.failures = 0;
                    self.hold(machine).await;
                }
                Err(error) => {
                    self.life = Life::None;
                    self.fail(Obstacle::Start(error.to_string()));
                }
            },
            Input::Qemu(event) => self.hear(event).await,
            Input::Ended(exit) => self.ended(&exit),
            Input::Guest(guest) => {
                if let Life::Running(running) = &mut self.life {
                    running.guest = Some(*guest);
                }
            }
            Input::Frozen(is_frozen) => {
                if let Life::Running(running) = &mut self.life {
                    running.live.is_frozen = is_frozen;
                }
            }
        }
    }

    fn see(&mut self, object: &Value) {
        if object["metadata"]["uid"] != self.uid.as_str() {
            // Another of the same name: ours is gone.
            self.is_gone = true;
            return;
        }
        self.object = object.clone();
        self.vmi = read(object);
        if matches!(self.life, Life::None) && matches!(self.disks, Disks::Blocked(_)) {
            // Whoever changed it may have corrected what was wrong.
            self.retry_at = None;
        }
    }

    fn claim_changed(&mut self, name: &str) {
        let concerned = match &self.disks {
            Disks::Waiting(names) => names.iter().any(|it| it == name),
            Disks::Blocked(Obstacle::NoClaim(missing)) => missing == name,
            _ => false,
        };
        if concerned {
            self.disks = Disks::Untouched;
            self.retry_at = None;
        }
    }

    fn prepared(&mut self, outcome: Result<Prepared, NotReady>) {
        match outcome {
            Ok(prepared) => {
                for disk in &self.plan.disks {
                    let facts = VolumeFacts {
                        size: prepared.sizes.get(&disk.name).copied(),
                        claim: prepared.claims.get(&disk.name).map(claim_info),
                        hotplug: None,
                    };
                    self.volumes.insert(disk.name.clone(), facts);
                }
                self.disks = Disks::Ready(Box::new(prepared));
            }
            Err(NotReady::Unbound(claims)) => self.disks = Disks::Waiting(claims),
            Err(NotReady::Obstacle(obstacle)) => self.fail(obstacle),
        }
    }

    /// Something is in the way: told, and tried again later, each time after a longer while.
    pub(super) fn fail(&mut self, obstacle: Obstacle) {
        // The longest time between two attempts: looking for an object costs little, asking a registry more.
        let most = match obstacle {
            Obstacle::NoClaim(_) | Obstacle::Seed(_) => 5,
            Obstacle::Start(_) => 60,
            Obstacle::ErrImagePull(_) | Obstacle::ImagePullBackOff(_) => 300,
        };
        let wait = RETRY.saturating_mul(1 << self.failures.min(10));
        let wait = wait.min(Duration::from_secs(most));
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(Instant::now() + wait);
        let obstacle = match obstacle {
            Obstacle::ErrImagePull(why) if self.failures > 1 => Obstacle::ImagePullBackOff(why),
            other => other,
        };
        self.disks = Disks::Blocked(obstacle);
    }

    async fn hear(&mut self, event: Event) {
        let Life::Running(running) = &mut self.life else {
            return;
        };
        match event {
            Event::Port { id, is_open } if id == AGENT_PORT => match is_open {
                true => running.open_agent(&self.sender, &mut self.tasks),
                false => running.close_agent(),
            },
            Event::Stop
            | Event::Resume
            | Event::Suspend
            | Event::Wakeup
            | Event::BlockIoError { .. }
            | Event::GuestPanicked { .. }
            | Event::Migration { .. }
            | Event::MemorySize { .. }
            | Event::Missed(_) => {
                let before = std::mem::take(&mut running.state);
                // One that does not answer is ending, which is heard of soon.
                if running.look().await.is_err() {
                    running.state = before;
                    return;
                }
                let told = happening(&before, &running.state, &event);
                if let Some((severity, reason, message)) = told {
                    self.tell(severity, reason, message).await;
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, exit: &Exit) {
        let ended = judged(exit, self.killing.take());
        self.context.registry.remove(&self.key, &self.uid);
        self.context.cables.unplug(&self.key);
        self.home.record.ended = Some(ended.clone());
        if let Err(error) = self.home.save() {
            tracing::warn!(key = %self.key, %error, "the end of a machine is not written down");
        }
        self.life = Life::Ended(ended);
    }

    /// Observes, decides, acts and reports.
    async fn step(&mut self) -> Next {
        if let Life::Silent(_) = &self.life {
            self.find().await;
        }
        if self.is_gone || !crate::instances::concerns(&self.object, &self.context.node) {
            return self.bury().await;
        }
        self.replan().await;
        let observed = Observed {
            vmi: &self.vmi,
            placement: Placement::Node(self.context.node.clone()),
            disks: self.disks_seen(),
            process: self.process_seen(),
            agent: matches!(&self.life, Life::Running(running) if running.guest.is_some()),
            probe: None,
            lifeless: false,
            plan: &self.plan,
            now: Timestamp::now(),
            asked_to_stop: self.home.record.asked_to_stop,
        };
        let decision = phase::decide(&observed);
        let mut lets_go = false;
        for action in &decision.actions {
            match action {
                // The engine's business.
                Action::Schedule => {}
                Action::PrepareDisks => self.prepare(),
                Action::Start => self.start(),
                Action::AskToStop => self.ask_to_stop().await,
                Action::Kill { reason } => self.kill(reason),
                Action::CleanUp => self.clean_up(),
                Action::RemoveFinalizer => lets_go = true,
            }
        }
        self.press_again().await;
        self.write_at = None;
        self.report(&decision, lets_go).await;
        match self.is_gone && !matches!(self.life, Life::Running(_) | Life::Starting | Life::Silent(_)) {
            true => self.bury().await,
            false => Next::Wait,
        }
    }

    /// Plans the machine, as long as there is none.
    async fn replan(&mut self) {
        if !matches!(self.life, Life::None) || self.vmi.metadata.deletion_timestamp.is_some() {
            return;
        }
        if phase::Phase::parse(&self.vmi.status.phase).is_final() {
            return;
        }
        if self.facts.is_none() {
            match self.context.host.facts().await {
                Ok(facts) => self.facts = Some(facts),
                Err(error) if self.retry_at.is_none() => self.fail(Obstacle::Start(error.to_string())),
                Err(_) => {}
            }
        }
        if self.settings.is_none() {
            match crate::settings::of(&self.context.clients, &self.key.workspace).await {
                Ok(settings) => self.settings = Some(settings),
                Err(failure) if self.retry_at.is_none() => self.fail(Obstacle::Start(failure.sentence())),
                Err(_) => {}
            }
        }
        if let (Some(facts), Some(settings)) = (&self.facts, &self.settings) {
            self.plan = planned(&self.key, &self.vmi, &facts.capabilities(), settings);
        }
    }

    fn disks_seen(&self) -> Option<Result<(), Obstacle>> {
        match &self.disks {
            Disks::Ready(_) => Some(Ok(())),
            Disks::Blocked(obstacle) => Some(Err(obstacle.clone())),
            Disks::Untouched | Disks::Preparing | Disks::Waiting(_) => None,
        }
    }

    fn process_seen(&self) -> Process {
        match &self.life {
            // Whatever it is, it is there.
            Life::Silent(_) => Process::Running(None),
            Life::None => Process::None,
            Life::Starting => Process::Starting,
            Life::Running(running) => Process::Running(running.pause()),
            Life::Ended(ended) => Process::Ended {
                well: ended.well,
                message: ended.message.clone(),
            },
        }
    }

    /// When to look again without being told to.
    fn due(&self) -> Option<Instant> {
        let mut moments: Vec<Instant> = [self.retry_at, self.press_at, self.write_at]
            .into_iter()
            .flatten()
            .collect();
        if let Life::Silent(_) = self.life {
            moments.push(Instant::now() + KNOCK_AGAIN);
        }
        if let (Some(asked), Life::Running(_)) = (self.home.record.asked_to_stop, &self.life) {
            let passed = Timestamp::now().duration_since(asked).unsigned_abs();
            let left = Duration::from_secs(self.plan.grace_seconds).saturating_sub(passed);
            moments.push(Instant::now() + left);
        }
        moments.into_iter().min()
    }

    /// What is to be said beside what the decision says.
    pub(super) fn more_conditions(&self) -> Vec<view::Condition> {
        let Life::Silent(why) = &self.life else {
            return Vec::new();
        };
        let reason = "Synchronizing with the Domain failed.";
        vec![view::Condition::fails("Synchronized", reason, why.clone())]
    }

    /// How long to wait before a status is written again.
    pub(super) fn write_pause(&mut self) -> Duration {
        self.write_failures = self.write_failures.saturating_add(1);
        let wait = WRITE_AGAIN.saturating_mul(1 << self.write_failures.min(10));
        wait.min(WRITE_MOST)
    }

    /// The object is gone: the process ends, and nothing stays.
    async fn bury(&mut self) -> Next {
        match &self.life {
            Life::Running(running) => {
                let machine = running.machine.clone();
                if let Err(error) = machine.stop(Duration::ZERO).await {
                    tracing::warn!(key = %self.key, %error, "the machine of an instance that is gone does not end; trying again");
                    self.retry_at = Some(Instant::now() + KNOCK_AGAIN);
                    return Next::Wait;
                }
            }
            Life::Silent(_) => {
                if let Ok(Adopted::Silent(orphan)) = adopt(self.home.path()).await {
                    let _ = orphan.kill().await;
                }
            }
            // What is being started is heard of, and ended then.
            Life::Starting => return Next::Wait,
            Life::None | Life::Ended(_) => {}
        }
        self.context.cables.unplug(&self.key);
        self.context.registry.remove(&self.key, &self.uid);
        self.tasks.abort_all();
        if let Err(error) = self.home.remove() {
            tracing::warn!(key = %self.key, %error, "the directory of a machine is not removed");
        }
        Next::End
    }

    pub(super) async fn tell(&self, severity: Severity, reason: &'static str, message: impl Into<String>) {
        self.context
            .tell(&self.key, &self.uid, severity, reason, message.into())
            .await;
    }
}

/// What there is to tell of a change of QEMU's state, in upstream's words.
fn happening(before: &str, now: &str, event: &Event) -> Option<(Severity, &'static str, String)> {
    if let Event::BlockIoError { device, action, .. } = event
        && action == "stop"
    {
        let message = format!("VM Paused due to IO error at the volume: {device}");
        return Some((Severity::Warning, "IOerror", message));
    }
    match (before, now) {
        ("running", "paused") => Some((
            Severity::Normal,
            "Paused",
            "VirtualMachineInstance paused".to_owned(),
        )),
        ("paused" | "prelaunch" | "io-error", "running") => Some((
            Severity::Normal,
            "Unpaused",
            "VirtualMachineInstance unpaused".to_owned(),
        )),
        _ => None,
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A view of an instance. What its schema let through can be read; if not, it is as good as empty.
pub(super) fn read(object: &Value) -> VirtualMachineInstance {
    view::read("VirtualMachineInstance", object).unwrap_or_else(|error| {
        tracing::warn!(%error, "an instance cannot be read");
        VirtualMachineInstance::default()
    })
}

pub(super) fn planned(
    key: &ObjectKey,
    vmi: &VirtualMachineInstance,
    host: &Capabilities,
    settings: &Settings,
) -> MachinePlan {
    let origin = Origin {
        workspace: key.workspace.as_str(),
        mac_attempt: 0,
    };
    plan(vmi, origin, host, settings)
}

/// How an end is judged: `killing` is why we ended it, if it was us and not because it was asked to stop.
fn judged(exit: &Exit, killing: Option<String>) -> Ended {
    if let Some(message) = killing {
        return Ended { well: false, message };
    }
    match exit.reason.as_deref() {
        None => {
            let status = exit.status.map(|it| it.to_string()).unwrap_or_default();
            let message = [status.as_str(), exit.log.as_str()];
            let message: Vec<&str> = message.into_iter().filter(|it| !it.is_empty()).collect();
            Ended {
                well: false,
                message: format!("QEMU ended unexpectedly: {}", message.join(": ")),
            }
        }
        Some("guest-panic") => Ended {
            well: false,
            message: "the guest's kernel has given up".to_owned(),
        },
        Some(reason) => Ended {
            well: true,
            message: reason.to_owned(),
        },
    }
}

/// The layout of a machine that is to start, which its plan promised to have.
pub(super) fn layout(plan: &MachinePlan) -> Result<Layout, Obstacle> {
    Layout::of(plan).map_err(|error| Obstacle::Start(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_hear_of_pauses() {
        let io = |action: &str| Event::BlockIoError {
            device: "ua-root".to_owned(),
            action: action.to_owned(),
            no_space: true,
        };
        for (before, now, event, expected) in [
            ("running", "paused", Event::Stop, Some("Paused")),
            ("paused", "running", Event::Resume, Some("Unpaused")),
            ("running", "running", Event::Resume, None),
            ("running", "io-error", io("stop"), Some("IOerror")),
            ("running", "running", io("report"), None),
            ("inmigrate", "running", Event::Resume, None),
        ] {
            let told = happening(before, now, &event).map(|it| it.1);
            assert_eq!(told, expected, "{before} {now}");
        }
    }

    #[test]
    fn ends_are_judged() {
        let exit = |reason: Option<&str>| Exit {
            reason: reason.map(str::to_owned),
            by_guest: false,
            status: None,
            log: "bad disk".to_owned(),
        };
        for (exit_reason, killing, well, message) in [
            (Some("guest-shutdown"), None, true, "guest-shutdown"),
            (Some("host-qmp-quit"), None, true, "host-qmp-quit"),
            (
                Some("host-qmp-quit"),
                Some("the liveness probe failed"),
                false,
                "the liveness probe failed",
            ),
            (
                Some("guest-panic"),
                None,
                false,
                "the guest's kernel has given up",
            ),
            (None, None, false, "QEMU ended unexpectedly: bad disk"),
        ] {
            let ended = judged(&exit(exit_reason), killing.map(str::to_owned));
            assert_eq!(
                (ended.well, ended.message.as_str()),
                (well, message),
                "{exit_reason:?}"
            );
        }
    }
}
