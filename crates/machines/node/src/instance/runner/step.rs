//! A step of the task: observe, decide, act, report; and when the next one is due.

use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_plan::phase::{self, Action, Observed, Obstacle, Placement, Process};
use fairway_machines_plan::view;
use fairway_machines_qemu::adopt;
use fairway_machines_qemu::launch::Adopted;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{Disks, Life, Next, Runner, planned};
use crate::instance::migration::{Role, role};
use crate::instance::{confining, network};

/// A process that does not talk is tried again so often.
const KNOCK_AGAIN: Duration = Duration::from_secs(5);
/// How soon a status that could not be written is written again: at once if somebody was quicker, later if the API does not answer.
const WRITE_AGAIN: Duration = Duration::from_millis(5);
const WRITE_MOST: Duration = Duration::from_secs(5);

impl Runner {
    /// Observes, decides, acts and reports.
    pub(super) async fn step(&mut self) -> Next {
        if let Life::Silent(_) = &self.life {
            self.find().await;
        }
        self.write_at = None;
        // Nothing else is decided before that is known.
        self.say_failure().await;
        if self.unsaid.is_some() {
            return Next::Wait;
        }
        let role = role(&self.object, &self.context.node);
        if self.is_gone || role == Role::None {
            return self.bury().await;
        }
        if let Role::Target(state) = &role {
            self.step_target(state).await;
            return Next::Wait;
        }
        if let Role::Source(state) = &role {
            self.step_source(state).await;
        }
        if self.has_left() {
            return self.await_confirmation().await;
        }
        if role == Role::Owner {
            self.stop_sending();
        }
        self.replan().await;
        let observed = Observed {
            vmi: &self.vmi,
            placement: Placement::Node(self.context.node.clone()),
            disks: self.disks_seen(),
            process: self.process_seen(),
            agent: matches!(&self.life, Life::Running(running) if running.guest.is_some()),
            probe: self.is_ready,
            lifeless: self.is_lifeless,
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
        if decision.phase.is_final() {
            self.release_processors();
        }
        self.press_again().await;
        self.follow_changes().await;
        self.report(&decision, lets_go).await;
        match self.is_gone && !matches!(self.life, Life::Running(_) | Life::Starting | Life::Silent(_)) {
            true => self.bury().await,
            false => Next::Wait,
        }
    }

    /// The guest has left: the target says when it runs there, and this one ends then. As long as nobody says anything it may run
    /// there, cut off from the API, so that it must neither go on here nor be started anew: who knows that the target has ended says that
    /// the migration failed, and then the guest is lost.
    async fn await_confirmation(&mut self) -> Next {
        let state = &self.object["status"]["migrationState"];
        let uid = self.sending.as_ref().map(|it| it.uid.as_str());
        // Another one can only have been laid down when this one was over, and it was not over well: the machine is still this node's.
        if state["failed"] != true && state["migrationUid"].as_str() == uid {
            return Next::Wait;
        }
        let message = "The VirtualMachineInstance's domain was never observed on the target after the migration completed";
        let patch = serde_json::json!({"status": {"phase": "Failed"}});
        if self.write(patch).await {
            self.tell(Severity::Warning, "Migrated", message).await;
            self.kill(message);
            self.sending = None;
        }
        Next::Wait
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
            self.plan = planned(&self.key, &self.vmi, &self.capabilities(facts), settings);
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
    pub(super) fn due(&self) -> Option<Instant> {
        let mut moments: Vec<Instant> = [
            self.retry_at,
            self.press_at,
            self.write_at,
            self.end_at.filter(|it| *it > Instant::now()),
        ]
        .into_iter()
        .flatten()
        .collect();
        moments.extend(self.change_due());
        moments.extend(
            self.sending
                .iter()
                .filter(|it| it.sent_at.is_none())
                .map(|it| it.course.due()),
        );
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
    pub(in crate::instance) fn more_conditions(&self) -> Vec<view::Condition> {
        let mut found = self.change_conditions();
        if let Life::Silent(why) = &self.life {
            let reason = "Synchronizing with the Domain failed.";
            found.push(view::Condition::fails("Synchronized", reason, why.clone()));
        }
        found.extend(self.processors_condition());
        found.extend(
            self.sending
                .iter()
                .filter_map(|it| it.course.condition().cloned()),
        );
        found.extend(network::condition(&self.context.cables.problems(&self.key)));
        if let Some(remembered) = &self.home.record.remembered {
            found.push(remembered.condition());
        }
        if let (Life::Running(_), Some(outcome)) = (&self.life, &self.credentials) {
            let kind = "AccessCredentialsSynchronized";
            found.push(match outcome.is_done {
                true => view::Condition::holds(kind, "", ""),
                false => view::Condition::fails(kind, "", outcome.message.clone()),
            });
        }
        found
    }

    /// How long to wait before a status is written again.
    pub(in crate::instance) fn write_pause(&mut self) -> Duration {
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
        self.context
            .processors
            .release(&confining::name(self.home.path()));
        self.tasks.abort_all();
        self.discard_copied().await;
        match self.home.remove() {
            Ok(()) => self.context.isolation.gone(&confining::name(self.home.path())),
            Err(error) => {
                tracing::warn!(key = %self.key, %error, "the directory of a machine is not removed");
            }
        }
        Next::End
    }
}
