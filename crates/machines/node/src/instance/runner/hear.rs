//! What the task hears: outcomes of what it began, words of QEMU, and changes of claims.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_plan::confinement::starved::{OOM_KILLED, Starved, told};
use fairway_machines_plan::machine::DiskLimits;
use fairway_machines_plan::phase::Obstacle;
use fairway_machines_qemu::agent::AgentError;
use fairway_machines_qemu::{Agent, Event, Exit};
use serde_json::Value;
use tokio::time::Instant;

use super::{Disks, Life, Runner, read};
use crate::instance::confining;
use crate::instance::disks::{NotReady, Prepared};
use crate::instance::home::Ended;
use crate::instance::input::Input;
use crate::instance::memory::Remembered;
use crate::instance::running::AGENT_PORT;
use crate::instance::status::{Hotplug, VolumeFacts, claim_info};

/// How long after a failure the first attempt is made again.
const RETRY: Duration = Duration::from_secs(1);
/// How often a guest's clock is tried to be set.
const CLOCK_ATTEMPTS: u32 = 20;

impl Runner {
    /// Takes in what happened.
    pub(super) async fn take(&mut self, input: Input) {
        match input {
            Input::Prepared(outcome) => self.prepared(*outcome),
            Input::Started(outcome) => match *outcome {
                Ok(machine) => {
                    self.failures = 0;
                    self.hold(machine).await;
                    self.remembered().await;
                }
                Err(error) => {
                    self.life = Life::None;
                    self.fail(Obstacle::Start(error.to_string()));
                }
            },
            Input::Forgotten(why) => self.forgotten(&why).await,
            Input::Qemu(event) => self.hear(event).await,
            Input::Ended(exit) => self.ended(&exit),
            Input::Probed { purpose, verdict } => self.probed(purpose, verdict).await,
            Input::Unaskable { purpose, why } => {
                let message = format!("{} probe cannot be asked: {why}", purpose.word());
                self.tell(Severity::Warning, "Unhealthy", message).await;
            }
            Input::Credentials(outcome) => self.credentials_set(outcome).await,
            Input::Changed(outcome) => self.changed(*outcome).await,
            Input::Sent(uid, outcome) => self.sent(&uid, outcome).await,
            Input::Listening(outcome) => self.listening(*outcome).await,
            Input::Awake(outcome) => self.awake(outcome).await,
            Input::Volume(name, facts) => self.volume_changed(&name, *facts),
            Input::Guest(guest) => {
                if let Life::Running(running) = &mut self.life {
                    running.heard_of(*guest);
                }
            }
            Input::Frozen(is_frozen) => {
                if let Life::Running(running) = &mut self.life {
                    running.live.is_frozen = is_frozen;
                }
            }
        }
    }

    pub(super) fn see(&mut self, object: &Value) {
        if object["metadata"]["uid"] != self.uid.as_str() {
            // Another of the same name: ours is gone.
            self.is_gone = true;
            return;
        }
        // What this task has written itself comes back later, and so does what was there before.
        if !is_newer(object, &self.object) {
            return;
        }
        let is_other = object["spec"] != self.object["spec"];
        self.object = object.clone();
        self.vmi = read(object);
        if is_other && matches!(self.life, Life::None) && matches!(self.disks, Disks::Blocked(_)) {
            // Whoever changed it may have corrected what was wrong.
            self.retry_at = None;
        }
    }

    /// A claim of its namespace has changed.
    pub(super) fn claim_changed(&mut self, name: &str) {
        self.stirred.changed(name);
        if let Life::Running(_) = self.life {
            return self.claim_of_running_changed(name);
        }
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
        let meanwhile = self.stirred.over();
        match outcome {
            Ok(prepared) => {
                for disk in &self.plan.disks {
                    let facts = VolumeFacts {
                        size: prepared.sizes.get(&disk.name).copied(),
                        claim: prepared.claims.get(&disk.name).map(claim_info),
                        hotplug: disk.hotpluggable.then_some(Hotplug::Ready),
                        // The machine is told when it runs.
                        limits: DiskLimits::default(),
                    };
                    self.volumes.insert(disk.name.clone(), facts);
                }
                self.disks = Disks::Ready(Box::new(prepared));
            }
            Err(NotReady::Unbound(claims)) => {
                self.disks = match meanwhile.waits_for(claims) {
                    Some(claims) => Disks::Waiting(claims),
                    None => Disks::Untouched,
                }
            }
            Err(NotReady::Obstacle(obstacle)) => self.fail(obstacle),
        }
    }

    /// Something is in the way: told, and tried again later, each time after a longer while.
    pub(in crate::instance) fn fail(&mut self, obstacle: Obstacle) {
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
                if matches!(&event, Event::Migration { status } if status == "completed") {
                    // Nobody says so again, whatever the machine answers now.
                    self.arrived();
                }
                let Life::Running(running) = &mut self.life else {
                    return;
                };
                let before = std::mem::take(&mut running.state);
                // One that does not answer is ending, which is heard of soon.
                if running.look().await.is_err() {
                    running.state = before;
                    return;
                }
                let told = happening(&before, &running.state, &event);
                if let Event::MemorySize { .. } = event {
                    self.memory_changed();
                }
                if let Some((severity, reason, message)) = told {
                    self.tell(severity, reason, message).await;
                }
            }
            _ => {}
        }
    }

    /// A machine has started: if it was to go on with its memory, it does.
    pub(super) async fn remembered(&mut self) {
        if self.home.record.is_resuming {
            self.home.record.is_resuming = false;
            self.home.record.remembered = Some(Remembered::well());
            if let Life::Running(running) = &self.life {
                // Its clock stood still as long as the snapshot is old.
                let agent = running.agent.clone();
                self.tasks.spawn(async move { set_clock(&agent).await });
            }
        }
        let Some(remembered) = &self.home.record.remembered else {
            return;
        };
        let (severity, message) = match remembered.is_done {
            true => (Severity::Normal, remembered.message.clone()),
            false => (Severity::Warning, remembered.message.clone()),
        };
        if let Err(error) = self.home.save() {
            tracing::warn!(key = %self.key, %error, "it is not written down that a machine went on");
        }
        self.tell(severity, "MemoryRestored", message).await;
    }

    /// Memory could not be brought back: the machine is planned and started anew, from its disks.
    async fn forgotten(&mut self, why: &str) {
        tracing::warn!(key = %self.key, why, "the memory of a machine cannot be used");
        self.life = Life::None;
        self.disks = Disks::Untouched;
        self.home.record.is_resuming = false;
        self.home.record.built = None;
        self.home.record.remembered = Some(Remembered::not(why));
        let saved = self.home.save().and_then(|()| self.home.tidy());
        if let Err(error) = saved {
            self.fail(Obstacle::Start(error.to_string()));
        }
    }

    fn ended(&mut self, exit: &Exit) {
        let starved = self.context.isolation.starved(&confining::name(self.home.path()));
        let ended = judged(exit, self.killing.take(), starved);
        self.context.registry.remove(&self.key, &self.uid);
        self.context.cables.unplug(&self.key);
        self.context.isolation.ended(&confining::name(self.home.path()));
        self.home.record.ended = Some(ended.clone());
        self.life = Life::Ended(ended);
        self.release_processors();
        if let Err(error) = self.home.save() {
            tracing::warn!(key = %self.key, %error, "the end of a machine is not written down");
        }
    }
}

/// Sets a guest's clock by its agent, which may take a moment to answer again, or is not there at all.
async fn set_clock(agent: &Agent) {
    for _ in 0..CLOCK_ATTEMPTS {
        let now = jiff::Timestamp::now().as_nanosecond();
        let set = agent.set_time(i64::try_from(now).unwrap_or(i64::MAX)).await;
        match set {
            Err(AgentError::Silent | AgentError::Timeout { .. }) => tokio::time::sleep(RETRY).await,
            _ => return,
        }
    }
}

/// Whether an object is another one than was last seen of the same, and not an older one. Versions are numbers that grow.
fn is_newer(object: &Value, seen: &Value) -> bool {
    let version = |it: &Value| it["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
    match (version(object), version(seen)) {
        (Some(found), Some(seen)) => found > seen,
        _ => true,
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

/// How an end is judged: `killing` is why we ended it, if it was us and not because it was asked to stop; `starved`, what its control group says
/// of memory.
fn judged(exit: &Exit, killing: Option<String>, starved: Option<Starved>) -> Ended {
    let ended = |well: bool, message: String| Ended {
        well,
        message,
        reason: None,
    };
    if let Some(message) = killing {
        return ended(false, message);
    }
    match exit.reason.as_deref() {
        None => {
            let status = exit.status.map(|it| it.to_string());
            let why = told(starved, exit.status.and_then(|it| it.signal()));
            let parts = [status, why, Some(exit.log.clone())].into_iter().flatten();
            let parts: Vec<String> = parts.filter(|it| !it.is_empty()).collect();
            Ended {
                reason: starved.map(|_| OOM_KILLED.to_owned()),
                ..ended(false, format!("QEMU ended unexpectedly: {}", parts.join(": ")))
            }
        }
        Some("guest-panic") => ended(false, "the guest's kernel has given up".to_owned()),
        Some(reason) => ended(true, reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_old_is_no_news() {
        let object = |version: Value| json!({"metadata": {"resourceVersion": version}});
        for (found, seen, expected) in [
            (json!("10"), json!("9"), true),
            (json!("9"), json!("10"), false),
            (json!("10"), json!("10"), false),
            (json!("word"), json!("10"), true),
            (json!("10"), json!(null), true),
        ] {
            let is_news = is_newer(&object(found.clone()), &object(seen.clone()));
            assert_eq!(is_news, expected, "{found} {seen}");
        }
    }

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
            let ended = judged(&exit(exit_reason), killing.map(str::to_owned), None);
            assert_eq!(
                (ended.well, ended.message.as_str()),
                (well, message),
                "{exit_reason:?}"
            );
        }
    }

    #[test]
    fn an_end_for_want_of_memory_is_told() {
        let exit = |signal: i32| Exit {
            reason: None,
            by_guest: false,
            status: Some(std::process::ExitStatus::from_raw(signal)),
            log: String::new(),
        };
        let starved = Some(Starved::Machine(Some(300 << 20)));
        let ended = judged(&exit(9), None, starved);
        assert_eq!((ended.well, ended.reason.as_deref()), (false, Some("OOMKilled")));
        let begins = "QEMU ended unexpectedly: signal: 9 (SIGKILL): OOMKilled: the machine came to its limit of 300 MiB";
        assert!(ended.message.starts_with(begins), "{}", ended.message);
        let killed = judged(&exit(9), None, None);
        assert_eq!(killed.reason, None);
        assert!(killed.message.contains("dmesg"), "{}", killed.message);
        let crashed = judged(&exit(11), None, None);
        assert!(
            crashed
                .message
                .starts_with("QEMU ended unexpectedly: signal: 11 (SIGSEGV)"),
            "{}",
            crashed.message
        );
        let ours = judged(&exit(9), Some("the liveness probe failed".to_owned()), starved);
        assert_eq!(
            (ours.message.as_str(), ours.reason),
            ("the liveness probe failed", None)
        );
    }
}
