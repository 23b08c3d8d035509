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
//!
//! Steps are in [`step`], inputs in [`hear`], and what begins with a running machine in [`company`].

mod company;
mod hear;
mod step;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::events::Severity;
use fairway_controller::{ObjectKey, Shutdown};
use fairway_machines_plan::argv::Layout;
use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_plan::phase::Obstacle;
use fairway_machines_plan::plan::{Capabilities, Origin, plan};
use fairway_machines_plan::settings::Settings;
use fairway_machines_plan::view::{self, VirtualMachineInstance};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::disks::Prepared;
use super::home::{Ended, Home, Owner};
use super::input::Input;
use super::live::Change;
use super::migration::{Arriving, Sending, Unsaid};
use super::running::Running;
use super::status::VolumeFacts;
use super::stirred::{Bell, Stirred};
use super::{changing, confining, credentials, network};
use crate::context::Context;
use crate::host::Facts;

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
    /// What the probes say.
    is_ready: Option<bool>,
    is_lifeless: bool,
    /// What became of keys and passwords.
    credentials: Option<credentials::Outcome>,
    /// The change that is under way, those that failed, and claims that others wait for.
    pub(super) changing: Option<Change>,
    pub(super) failed: Vec<changing::Failed>,
    pub(super) unbound: Vec<String>,
    /// Tells of claims of the namespace that have changed, and which of them did so while they were looked at.
    claims: Arc<Bell>,
    pub(super) stirred: Stirred,
    /// Says when something about networks is to be said anew.
    troubles: Option<watch::Receiver<u64>>,
    /// Since when the guest has done nothing about memory that it should have, or give back.
    pub(super) memory_since: Option<Instant>,
    /// How far a machine is that leaves, or comes.
    pub(super) sending: Option<Sending>,
    pub(super) arriving: Option<Arriving>,
    /// A failure of a migration that could not be written yet.
    pub(super) unsaid: Option<Unsaid>,
    /// When a target ends a migration that was cancelled, if its source has not.
    pub(super) end_at: Option<Instant>,
    /// Marks beside the disks of claims, by which another node knows them.
    pub(super) marks: Vec<(String, PathBuf)>,
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
        self.context.processors.leave(&confining::name(self.home.path()));
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
        claims: Arc<Bell>,
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
        let troubles = context.cables.troubles();
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
            is_ready: None,
            is_lifeless: false,
            credentials: None,
            changing: None,
            failed: Vec::new(),
            unbound: Vec::new(),
            claims,
            stirred: Stirred::default(),
            troubles,
            memory_since: None,
            sending: None,
            arriving: None,
            unsaid: None,
            end_at: None,
            marks: Vec::new(),
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

    /// Until the instance is gone or is no business of this node, or Fairway ends; then the machine goes on without. Returns where the instance is
    /// heard of, if it is still there: something may have been said that this task has not looked at any more.
    pub(crate) async fn run(mut self, mut shutdown: Shutdown) -> Option<watch::Receiver<Option<Arc<Value>>>> {
        self.find().await;
        loop {
            if self.step().await == Next::End {
                return (!self.is_gone).then(|| self.objects.clone());
            }
            let due = self.due();
            tokio::select! {
                () = shutdown.wait() => {
                    self.leave().await;
                    return None;
                }
                () = sleep_until(due) => {}
                changed = self.objects.changed() => {
                    if changed.is_err() {
                        self.leave().await;
                        return None;
                    }
                    let object = self.objects.borrow_and_update().clone();
                    match object {
                        Some(object) => self.see(&object),
                        None => self.is_gone = true,
                    }
                }
                input = self.inputs.recv() => {
                    let input = input?;
                    self.take(input).await;
                    // What has come meanwhile belongs to the same step.
                    while let Ok(more) = self.inputs.try_recv() {
                        self.take(more).await;
                    }
                }
                names = self.claims.heard() => {
                    for name in names {
                        self.claim_changed(&name);
                    }
                }
                // The next step says it.
                () = network::changed(&mut self.troubles) => {}
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

    pub(super) async fn tell(&self, severity: Severity, reason: &'static str, message: impl Into<String>) {
        self.context
            .tell(&self.key, &self.uid, severity, reason, message.into())
            .await;
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

/// The layout of a machine that is to start, which its plan promised to have.
pub(super) fn layout(plan: &MachinePlan) -> Result<Layout, Obstacle> {
    Layout::of(plan).map_err(|error| Obstacle::Start(error.to_string()))
}
