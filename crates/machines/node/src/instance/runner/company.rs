//! A running machine comes into the task's hands, and what goes along with it begins: others may reach it, its cards are plugged in, probes ask it,
//! and its keys follow their Secrets.

use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_plan::view;
use fairway_machines_qemu::launch::Adopted;
use fairway_machines_qemu::{Machine, adopt};

use super::{Life, Runner};
use crate::instance::confining;
use crate::instance::credentials;
use crate::instance::disks::claim_of;
use crate::instance::input::Input;
use crate::instance::migration::{Role, role};
use crate::instance::probe::{self, Asker, Checking, Purpose};
use crate::instance::running::{self, Running};
use crate::registry::Reached;

impl Runner {
    /// Looks whether the process is there already.
    pub(in crate::instance) async fn find(&mut self) {
        let found = adopt(self.home.path()).await;
        tracing::debug!(key = %self.key, ?found, "looked for the process of a machine");
        self.life = match found {
            Ok(Adopted::Running(machine)) if self.is_half_loaded(&machine).await => {
                // Fairway ended while its memory was brought back, and the guest has not run: it is begun again.
                let _ = machine.stop(Duration::ZERO).await;
                match self.home.tidy() {
                    Ok(()) => Life::None,
                    Err(error) => Life::Silent(error.to_string()),
                }
            }
            Ok(Adopted::Running(machine)) => {
                self.hold(*machine).await;
                if self.home.record.is_resuming {
                    self.remembered().await;
                }
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

    /// Whether a machine that was found was to go on with its memory, and has not come so far.
    async fn is_half_loaded(&self, machine: &Machine) -> bool {
        self.home.record.is_resuming && machine.state().await.is_ok_and(|state| state != "running")
    }

    /// Takes a running machine in hand.
    pub(in crate::instance) async fn hold(&mut self, machine: Machine) {
        let started = match &self.home.record.built {
            Some(built) => (built.sockets, built.started_memory),
            None => (self.plan.cpu.sockets, self.plan.memory.guest),
        };
        let taken = Running::take(machine, &self.plan, started, &self.sender, &mut self.tasks).await;
        match taken {
            Ok(running) => {
                let name = confining::name(self.home.path());
                self.context.processors.hold(&name, &running.machine).await;
                self.life = Life::Running(Box::new(running));
                self.memory_changed();
                // One that is only about to come is nobody's business yet.
                if !matches!(role(&self.object, &self.context.node), Role::Target(_)) {
                    self.announce();
                }
            }
            // It does not talk any more: it is ending, or hangs.
            Err(error) => self.life = Life::Silent(error.to_string()),
        }
    }

    /// A machine runs here: others may reach it, and what goes along with it begins.
    pub(in crate::instance) fn announce(&mut self) {
        let Life::Running(running) = &self.life else {
            return;
        };
        let reached = Reached {
            machine: running.machine.clone(),
            console: running.console.clone(),
            agent: running.agent.clone(),
            answers: Arc::clone(&running.answers),
            has_screen: self.plan.devices.graphics,
            cards: running::addresses(&self.plan),
            history: Arc::default(),
            notes: self.sender.clone(),
        };
        self.context.registry.add(&self.key, &self.uid, reached);
        let cards = running::cards(&self.plan, self.home.path());
        self.context.cables.plug(&self.key, &self.plan.hostname, cards);
        self.accompany();
    }

    /// Begins what goes along with a machine that runs: probes, and keys that follow their Secrets.
    fn accompany(&mut self) {
        let Life::Running(running) = &self.life else {
            return;
        };
        let spec = &self.vmi.spec;
        // One that was well before Fairway restarted, or before it came here, is so until a probe says otherwise.
        if view::Condition::is_true(&self.vmi.status.conditions, "Ready") {
            self.is_ready = Some(true);
        }
        for (purpose, probe) in [
            (Purpose::Readiness, &spec.readiness_probe),
            (Purpose::Liveness, &spec.liveness_probe),
        ] {
            let Some(probe) = probe else { continue };
            match Checking::of(probe) {
                Ok(checking) => {
                    let asker = Asker {
                        key: self.key.clone(),
                        agent: running.agent.clone(),
                        cables: Arc::clone(&self.context.cables),
                    };
                    self.tasks
                        .spawn(probe::follow(checking, purpose, asker, self.sender.clone()));
                }
                Err(why) => {
                    let listener = self.sender.clone();
                    self.tasks.spawn(async move {
                        let _ = listener.send(Input::Unaskable { purpose, why }).await;
                    });
                }
            }
        }
        if !credentials::secrets(&spec.access_credentials).is_empty() {
            let following = credentials::follow(
                Arc::clone(&self.context),
                self.key.clone(),
                spec.access_credentials.clone(),
                running.agent.clone(),
                self.sender.clone(),
            );
            self.tasks.spawn(following);
        }
        let claims: Vec<String> = self
            .plan
            .disks
            .iter()
            .filter_map(|it| claim_of(&it.source).map(str::to_owned))
            .collect();
        for claim in claims {
            self.claim_of_running_changed(&claim);
        }
    }

    pub(super) async fn probed(&mut self, purpose: Purpose, verdict: Result<(), String>) {
        let is_well = verdict.is_ok();
        // One that somebody paused is not ill.
        let is_paused = matches!(&self.life, Life::Running(running) if running.pause().is_some());
        match purpose {
            Purpose::Readiness => self.is_ready = Some(is_well),
            Purpose::Liveness => self.is_lifeless = !is_well && !is_paused,
        }
        if let Err(why) = verdict
            && !is_paused
        {
            let message = format!("{} probe failed: {why}", purpose.word());
            self.tell(Severity::Warning, "Unhealthy", message).await;
        }
    }

    pub(super) async fn credentials_set(&mut self, outcome: credentials::Outcome) {
        if self.credentials.as_ref() == Some(&outcome) {
            return;
        }
        if outcome.is_done {
            let message = "Access credentials sync successful.";
            self.tell(Severity::Normal, "AccessCredentialsSyncSuccess", message)
                .await;
        } else if self.credentials.is_some() || outcome.message != "Guest agent is offline" {
            // A guest that is booting has no agent yet.
            let message = format!("Access credentials sync failed: {}", outcome.message);
            self.tell(Severity::Warning, "AccessCredentialsSyncFailed", message)
                .await;
        }
        self.credentials = Some(outcome);
    }
}
