//! What to do next with a VirtualMachine, and what its status says.
//!
//! ```text
//!               start ┌───────────────────────────────────────────────┐ the strategy, a request
//!                     ▼                                               │
//!   no instance ── CreateInstance ──▶ instance ── ends or is asked to end ──▶ DeleteInstance ──▶ no instance
//!        ▲                                │ a change that can be made while it runs
//!        │ starts that failed             └──▶ UpdateInstance
//!        └── wait, longer each time
//! ```
//!
//! [`decide`] knows the machine, its instance and its volumes as they were last seen, and the time. It gives actions, in
//! order, and the whole status. It has no memory: whatever must not be forgotten is in the status.

use jiff::Timestamp;

use crate::settings::Settings;
use crate::view::{
    Condition, RunStrategy, StartFailure, StateChangeRequest, VirtualMachine, VirtualMachineInstance,
};

pub(crate) mod live_update;
mod moved;
mod start_failure;
mod status;
mod strategy;
mod template_metadata;

pub use live_update::{HOTPLUG_FAILED, LiveChange, Revision, Update};
pub use moved::to_be_moved;
pub use start_failure::delay_seconds;
pub use template_metadata::FROM_TEMPLATE;

/// Keeps a machine until its instance is gone.
pub const FINALIZER: &str = "kubevirt.io/virtualMachineControllerFinalize";
/// Says that somebody wants to restart a machine themselves.
pub const RESTART_ANNOTATION: &str = "fairway.dev/restart";

/// The volumes of a machine, as far as they stand in its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    /// DataVolumes of the templates that do not exist yet.
    pub missing: Vec<String>,
    /// One is being filled.
    pub provisioning: bool,
    /// One failed, and why.
    pub failed: Option<String>,
    /// A claim has no volume yet.
    pub unbound: bool,
}

/// An action of before that is not seen in the world yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// An instance was created.
    Start,
    /// The instance was deleted.
    Stop,
}

/// What is known of a machine.
#[derive(Clone, Debug)]
pub struct Observed<'o> {
    /// The machine.
    pub vm: &'o VirtualMachine,
    /// Its instance.
    pub vmi: Option<&'o VirtualMachineInstance>,
    /// Templates: what the instance was started from, and what it is to be now.
    pub revision: Option<Revision<'o>>,
    /// Its volumes.
    pub volumes: Volumes,
    /// An action that is not seen in the world yet.
    pub expected: Option<Expected>,
    /// The last change of the spec came from Git.
    pub changed_by_sync: bool,
    /// The moment.
    pub now: Timestamp,
    /// A number by chance, to keep machines that fail together from starting together.
    pub chance: u32,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Keep the machine until its instance is gone.
    AddFinalizer,
    /// Let the machine go.
    RemoveFinalizer,
    /// Create these DataVolumes of the templates.
    CreateDataVolumes(Vec<String>),
    /// Create an instance.
    CreateInstance {
        /// The guest waits until somebody lets it run.
        paused: bool,
    },
    /// Delete the instance, which shuts its guest down.
    DeleteInstance {
        /// Which.
        uid: String,
    },
    /// Let an instance that ended go, now that the machine knows.
    ReleaseInstance {
        /// Which.
        uid: String,
    },
    /// Make the spec say that the machine runs.
    SetRunning,
    /// Change the instance while it runs.
    UpdateInstance(Vec<LiveChange>),
}

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// It is a warning.
    pub warning: bool,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// `status` of a machine, as far as it is decided here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// There is an instance.
    pub created: bool,
    /// It is ready.
    pub ready: bool,
    /// What people see.
    pub printable_status: &'static str,
    /// What is to be said about it, sorted.
    pub conditions: Vec<Condition>,
    /// What people asked for and was not done yet.
    pub state_change_requests: Vec<StateChangeRequest>,
    /// Starts that failed in a row.
    pub start_failure: Option<StartFailure>,
    /// The strategy in force.
    pub run_strategy: Option<RunStrategy>,
    /// The generation of the spec that was acted on.
    pub desired_generation: i64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Actions, in order.
    pub actions: Vec<Action>,
    /// The whole status.
    pub status: Status,
    /// What to tell.
    pub events: Vec<Event>,
    /// Look again after so many seconds, whether anything happened or not.
    pub look_again: Option<u64>,
}

/// A failure to bring a machine to where it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure {
    reason: &'static str,
    message: String,
}

/// What comes together while deciding.
#[derive(Debug, Default)]
struct Course {
    actions: Vec<Action>,
    events: Vec<Event>,
    requests: Vec<StateChangeRequest>,
    look_again: Option<u64>,
    failure: Option<Failure>,
    /// A restart is needed, and why; nothing leaves it as it was.
    restart_required: Option<String>,
    /// An instance was started or ended: nothing waits for a restart any more.
    restarted: bool,
}

/// Decides what to do next with a machine.
pub fn decide(observed: &Observed<'_>, settings: &Settings) -> Decision {
    let vm = observed.vm;
    let mut course = Course {
        requests: vm.status.state_change_requests.clone(),
        ..Course::default()
    };
    if vm.metadata.deletion_timestamp.is_some() {
        going(observed, &mut course);
    } else {
        staying(observed, settings, &mut course);
    }
    status::write(observed, course)
}

/// A machine that is being deleted.
fn going(observed: &Observed<'_>, course: &mut Course) {
    let metadata = &observed.vm.metadata;
    let orphaned = metadata.finalizers.iter().any(|it| it == "orphan");
    match observed.vmi {
        Some(vmi) if !orphaned => strategy::stop(vmi, observed, course),
        _ if metadata.finalizers.iter().any(|it| it == FINALIZER) => {
            course.actions.push(Action::RemoveFinalizer);
        }
        _ => {}
    }
}

fn staying(observed: &Observed<'_>, settings: &Settings, course: &mut Course) {
    let vm = observed.vm;
    if !vm.metadata.finalizers.iter().any(|it| it == FINALIZER) {
        course.actions.push(Action::AddFinalizer);
    }
    // What was begun must be seen before something else is.
    if observed.expected.is_some() {
        return;
    }
    let volumes = &observed.volumes;
    if !volumes.missing.is_empty() {
        course
            .actions
            .push(Action::CreateDataVolumes(volumes.missing.clone()));
    }
    let waiting = !volumes.missing.is_empty() || volumes.provisioning || volumes.failed.is_some();
    // A machine that is to be halted need not wait for its disks.
    if waiting && observed.vmi.is_none() && vm.spec.strategy() != RunStrategy::Halted {
        if let Some(message) = &volumes.failed {
            course.failure = Some(Failure {
                reason: "FailedCreate",
                message: format!("Error encountered while creating DataVolumes: {message}"),
            });
        }
        return;
    }
    strategy::follow(observed, course);
    let acted = course.actions.iter().any(|it| {
        matches!(
            it,
            Action::CreateInstance { .. } | Action::DeleteInstance { .. } | Action::SetRunning
        )
    });
    if !acted {
        changes(observed, settings, course);
    }
}

/// What changed since the instance was started.
fn changes(observed: &Observed<'_>, settings: &Settings, course: &mut Course) {
    let (Some(vmi), Some(revision)) = (observed.vmi, &observed.revision) else {
        return;
    };
    if vmi.metadata.deletion_timestamp.is_some() || is_final(vmi) {
        return;
    }
    let required = Condition::is_true(&observed.vm.status.conditions, "RestartRequired");
    match live_update::update(revision, vmi, settings) {
        // Whatever would have needed a restart was taken back.
        Update::Nothing => course.restarted = required,
        Update::Restart(why) => restart(observed, vmi, why, course),
        Update::Wait(why) => {
            course.failure = Some(Failure {
                reason: "HotPlugError",
                message: why,
            });
            course.look_again = Some(5);
        }
        Update::Live(changes) => {
            course.restarted = required;
            course.actions.push(Action::UpdateInstance(changes));
        }
    }
}

/// A change that needs a restart: made at once if Git asks for it, left to a person otherwise.
fn restart(observed: &Observed<'_>, vmi: &VirtualMachineInstance, why: String, course: &mut Course) {
    let by_hand = observed
        .vm
        .metadata
        .annotations
        .get(RESTART_ANNOTATION)
        .is_some_and(|it| it == "manual");
    if !observed.changed_by_sync || by_hand {
        course.restart_required = Some(why);
        return;
    }
    course.events.push(Event {
        warning: false,
        reason: "Restart",
        message: format!("Restarting the virtual machine for a change from Git: {why}"),
    });
    strategy::stop(vmi, observed, course);
    // Other strategies would leave it stopped.
    if observed.vm.spec.strategy() != RunStrategy::Always {
        course.requests.push(StateChangeRequest {
            action: "Start".to_owned(),
            ..StateChangeRequest::default()
        });
    }
}

/// An instance that ended.
fn is_final(vmi: &VirtualMachineInstance) -> bool {
    matches!(vmi.status.phase.as_str(), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;
