//! What a decision asks for, done. What takes time is begun here and comes back as an input.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_machines_plan::argv::Host;
use fairway_machines_plan::phase::Obstacle;
use fairway_machines_qemu::{MachineError, start};
use fairway_machines_volumes::moment;
use jiff::Timestamp;
use tokio::time::Instant;

use super::disks::{NotReady, Preparing};
use super::home::Built;
use super::input::Input;
use super::launch::{launch, sockets, supervised};
use super::memory::{self, LoadError, Remembered};
use super::runner::{Disks, Life, Runner, layout};
use super::{confining, firmware};

fn unmark(volumes: &[PathBuf]) -> Result<(), MachineError> {
    volumes.iter().try_for_each(|directory| {
        moment::unmark(directory).map_err(|source| MachineError::File {
            action: "changing",
            path: directory.clone(),
            source,
        })
    })
}

/// A guest that is busy booting does not see the power button: it is pressed again so often.
const PRESS_AGAIN: Duration = Duration::from_secs(10);

impl Runner {
    /// Whether something that failed has to wait for its turn.
    fn must_wait(&mut self) -> bool {
        match self.retry_at {
            Some(moment) if moment > Instant::now() => true,
            _ => {
                self.retry_at = None;
                false
            }
        }
    }

    /// Begins to make the disks ready.
    pub(super) fn prepare(&mut self) {
        let idle = matches!(self.disks, Disks::Untouched | Disks::Blocked(_));
        let (Some(facts), Some(_), true) = (self.facts.clone(), &self.settings, idle) else {
            return;
        };
        if self.must_wait() {
            return;
        }
        let layout = match layout(&self.plan) {
            Ok(layout) => layout,
            Err(obstacle) => return self.fail(obstacle),
        };
        if let Err(error) = self.home.make() {
            return self.fail(Obstacle::Start(error.to_string()));
        }
        self.disks = Disks::Preparing;
        self.stirred.look();
        let context = self.context.clone();
        let (key, vmi, plan) = (self.key.clone(), self.vmi.clone(), self.plan.clone());
        let (directory, listener) = (self.home.path().to_owned(), self.sender.clone());
        self.tasks.spawn(async move {
            let api = context.api(&key);
            let host_disks = crate::settings::allow_host_disks(&context.clients);
            let preparing = Preparing {
                api: &api,
                images: &*context.disks,
                key: &key,
                vmi: &vmi,
                plan: &plan,
                layout: &layout,
                directory: &directory,
                host_disks: vmi.spec.volumes.iter().any(|it| it.host_disk.is_some())
                    && host_disks.await.unwrap_or(false),
            };
            let outcome = match preparing.all().await {
                Ok(mut prepared) => match firmware::prepare(&plan, &facts, &directory) {
                    Ok(files) => {
                        prepared.firmware = files;
                        let with = (facts.qemu_version(), memory::word(facts.accelerator()));
                        let found =
                            memory::find(preparing.machines(), &key.workspace, &prepared, &plan, with);
                        prepared.memory = found.map(|it| it.map(Box::new));
                        Ok(prepared)
                    }
                    Err(why) => Err(NotReady::Obstacle(Obstacle::Start(why))),
                },
                Err(not_ready) => Err(not_ready),
            };
            let _ = listener.send(Input::Prepared(Box::new(outcome))).await;
        });
    }

    /// Begins to start the process.
    pub(super) fn start(&mut self) {
        let (Disks::Ready(prepared), Some(facts)) = (&self.disks, &self.facts) else {
            return;
        };
        let resume = match &prepared.memory {
            Some(Ok(resume)) => Some(resume.clone()),
            Some(Err(why)) => {
                self.home.record.remembered = Some(Remembered::not(why));
                None
            }
            None => None,
        };
        let mut built = match &resume {
            Some(resume) => resume.built.clone(),
            None => match self.new_build() {
                Ok(built) => built,
                Err(obstacle) => return self.fail(obstacle),
            },
        };
        built.volumes.clone_from(&self.volumes);
        built.runs_on = facts.runs_on().to_string();
        let host = Host {
            sockets: sockets(),
            accelerator: facts.accelerator(),
            taps: self.context.data_path.files(&built.plan),
            backings: prepared.backings.clone(),
            firmware: prepared.firmware.clone(),
            kernel: prepared.kernel.clone(),
            now: Timestamp::now(),
            incoming: false,
            // One that goes on runs when its memory is there.
            stopped: resume.is_some(),
        };
        let program = self.context.host.program();
        let mut launch = match launch(program, self.home.path(), &built.plan, &host, &built.layout) {
            Ok(launch) => launch,
            Err(error) => return self.fail(Obstacle::Start(error.to_string())),
        };
        supervised(
            &mut launch,
            self.context.fencing.as_ref(),
            &self.context.directory,
        );
        self.context
            .data_path
            .equip(&mut launch, &built.plan, self.home.path());
        if let Err(too_few) = self.claim_processors(&built) {
            return self.fail(Obstacle::Start(too_few.to_string()));
        }
        launch.starter.splice(0..0, self.context.processors.starter());
        let name = confining::name(self.home.path());
        let most = built.memory.max(built.started_memory);
        let limits = confining::limits(&built.plan, &self.vmi, facts, most);
        let admitted = self.context.isolation.admit(&name, &limits);
        let admitted = admitted
            .map_err(|error| error.to_string())
            .and_then(|confinement| {
                confining::admit(&confinement, self.home.path(), &built.plan, prepared)?;
                Ok(confinement)
            });
        launch.confinement = match admitted {
            Ok(confinement) => confinement,
            Err(why) => return self.fail(Obstacle::Start(why)),
        };
        // Written down before there is a process: one that is found has a record beside it.
        self.home.record.ended = None;
        self.home.record.is_resuming = resume.is_some();
        self.home.record.processors = self.own_processors();
        self.plan = built.plan.clone();
        self.home.record.built = Some(built);
        if let Err(error) = self.home.save() {
            return self.fail(Obstacle::Start(error.to_string()));
        }
        self.life = Life::Starting;
        let (listener, machines) = (self.sender.clone(), self.context.directory.clone());
        let processors = Arc::clone(&self.context.processors);
        let is_alone = self.plan.cpu.dedicated;
        let tpm = firmware::Tpm::of(&self.plan, facts, self.home.path(), &launch.confinement);
        let volumes: Vec<PathBuf> = prepared.volumes.values().cloned().collect();
        self.tasks.spawn(async move {
            let outcome = async {
                if resume.is_none() {
                    // The guest is about to write: no memory knows its disks from now on.
                    unmark(&volumes).map_err(LoadError::Start)?;
                }
                if let Some(tpm) = tpm {
                    tpm.start().await.map_err(LoadError::Start)?;
                }
                if is_alone {
                    // Who shares makes room first.
                    processors.tell_all().await;
                }
                let machine = start(&launch).await.map_err(LoadError::Start)?;
                if let Some(resume) = resume {
                    let confinement = &launch.confinement;
                    resume.load(&machine, confinement, &machines, &volumes).await?;
                }
                Ok(machine)
            };
            let said = match outcome.await {
                Ok(machine) => Input::Started(Box::new(Ok(machine))),
                Err(LoadError::Start(error)) => Input::Started(Box::new(Err(error))),
                Err(LoadError::Memory(why)) => Input::Forgotten(why),
            };
            let _ = listener.send(said).await;
        });
    }

    /// A machine that starts from its disks.
    fn new_build(&self) -> Result<Built, Obstacle> {
        Ok(Built {
            layout: layout(&self.plan)?,
            plan: self.plan.clone(),
            sockets: self.plan.cpu.sockets,
            started_memory: self.plan.memory.guest,
            memory: self.plan.memory.guest,
            volumes: BTreeMap::new(),
            runs_on: String::new(),
        })
    }

    /// Asks the guest to shut down. The time that it has counts from here, also if Fairway ends meanwhile.
    pub(super) async fn ask_to_stop(&mut self) {
        let Life::Running(_) = &self.life else {
            return;
        };
        self.home.record.asked_to_stop = Some(Timestamp::now());
        if let Err(error) = self.home.save() {
            tracing::warn!(key = %self.key, %error, "it is not written down that a machine was asked to stop");
        }
        self.press_at = Some(Instant::now());
        self.tell(Severity::Normal, "ShuttingDown", "Signaled Graceful Shutdown")
            .await;
    }

    /// Presses the power button, if it is time to.
    pub(super) async fn press_again(&mut self) {
        let Life::Running(running) = &self.life else {
            self.press_at = None;
            return;
        };
        if self.home.record.asked_to_stop.is_none() || self.killing.is_some() {
            return;
        }
        if self.press_at.is_some_and(|moment| moment > Instant::now()) {
            return;
        }
        self.press_at = Some(Instant::now() + PRESS_AGAIN);
        let machine = &running.machine;
        // One that is paused would not see it.
        if matches!(running.state.as_str(), "paused" | "prelaunch") {
            let _ = machine.resume().await;
        }
        if !self.plan.board.acpi && running.guest.is_some() {
            // There is no button.
            let _ = running.agent.shutdown(false).await;
        }
        let _ = machine.press_power_button().await;
    }

    /// Ends the process.
    pub(super) fn kill(&mut self, reason: &str) {
        let Life::Running(running) = &self.life else {
            return;
        };
        if self.killing.is_some() {
            return;
        }
        tracing::info!(key = %self.key, reason, "ending a machine");
        self.killing = Some(reason.to_owned());
        let machine = running.machine.clone();
        let key = self.key.clone();
        self.tasks.spawn(async move {
            if let Err(error) = machine.stop(Duration::ZERO).await {
                tracing::warn!(%key, %error, "a machine does not end");
            }
        });
    }

    /// Puts away what the process leaves.
    pub(super) fn clean_up(&mut self) {
        if self.is_tidy {
            return;
        }
        match self.home.tidy() {
            Ok(()) => self.is_tidy = true,
            Err(error) => tracing::warn!(key = %self.key, %error, "what a machine left is not removed"),
        }
    }
}
