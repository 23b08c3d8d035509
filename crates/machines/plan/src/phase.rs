//! What to do next with a VirtualMachineInstance on its node, and what its status says.
//!
//! ```text
//!   Pending ──▶ Scheduling ──▶ Scheduled ──▶ Running ──▶ Succeeded   the guest shut down, or was asked to
//!      │            │              │            └──────▶ Failed      QEMU died, or the node was lost
//!      └────────────┴──────────────┴───────────────────▶ Failed      deleted before it ran, or its disks cannot be had
//! ```
//!
//! An instance goes forward only. [`decide`] is given what is seen of it and gives actions, the phase with the moments of
//! all transitions, and conditions in upstream's words.

use jiff::{SignedDuration, Timestamp};

use crate::machine::MachinePlan;
use crate::unsupported::{self, Unsupported};
use crate::view::{Condition, PhaseTransition, VirtualMachineInstance};

mod conditions;
mod migratable;

pub use migratable::live_migratable;

/// How far an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It exists.
    Pending,
    /// It waits for a node.
    Scheduling,
    /// It has a node.
    Scheduled,
    /// Its guest runs.
    Running,
    /// Its guest ended well.
    Succeeded,
    /// It ended otherwise.
    Failed,
}

impl Phase {
    const ALL: [Self; 6] = [
        Self::Pending,
        Self::Scheduling,
        Self::Scheduled,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
    ];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Scheduling => "Scheduling",
            Self::Scheduled => "Scheduled",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// By its word; what is none has just begun.
    pub fn parse(word: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|it| it.word() == word)
            .unwrap_or(Self::Pending)
    }

    /// Nothing comes after it.
    pub fn is_final(self) -> bool {
        self >= Self::Succeeded
    }
}

/// Why an instance's disks are not there, or why it does not start although they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A claim or DataVolume does not exist.
    NoClaim(String),
    /// An image cannot be had.
    ErrImagePull(String),
    /// An image could not be had, and is tried again later.
    ImagePullBackOff(String),
    /// A seed cannot be made.
    Seed(String),
    /// The process did not start, or something on the node is not as it should be; tried again later.
    Start(String),
}

/// Where an instance is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Nobody looked yet.
    Unknown,
    /// No node will do, and why.
    Unschedulable(String),
    /// Here.
    Node(String),
}

/// Why a guest that could run does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Somebody asked.
    User,
    /// A disk could not be read or written.
    IoError,
    /// It was asked to start that way.
    StartStrategy,
    /// It moves.
    Migration,
}

/// The process of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    /// There is none, which somebody who looked for it knows: a machine that was running is lost.
    None,
    /// It was started and has not answered.
    Starting,
    /// It runs its guest, or keeps it paused.
    Running(Option<Pause>),
    /// It ended: well if the guest shut down or was ended on purpose.
    Ended {
        /// Well.
        well: bool,
        /// What is known of it.
        message: String,
    },
}

/// What is known of an instance.
#[derive(Clone, Debug)]
pub struct Observed<'o> {
    /// The instance.
    pub vmi: &'o VirtualMachineInstance,
    /// Where it is to run.
    pub placement: Placement,
    /// Its disks are there, or why not; nothing while they are being prepared.
    pub disks: Option<Result<(), Obstacle>>,
    /// Its process.
    pub process: Process,
    /// The agent in the guest answers.
    pub agent: bool,
    /// What the readiness probe says; nothing if there is none, or it has not said anything yet.
    pub probe: Option<bool>,
    /// The liveness probe failed too often.
    pub lifeless: bool,
    /// The machine that it is.
    pub plan: &'o MachinePlan,
    /// The moment.
    pub now: Timestamp,
    /// When the guest was asked to shut down.
    pub asked_to_stop: Option<Timestamp>,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Find a node.
    Schedule,
    /// Get the disks ready.
    PrepareDisks,
    /// Start the process.
    Start,
    /// Ask the guest to shut down.
    AskToStop,
    /// End the process.
    Kill {
        /// Why.
        reason: String,
    },
    /// Put away what is left: sockets, seeds, disks that live as long as the instance.
    CleanUp,
    /// Let the object go.
    RemoveFinalizer,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Actions, in order.
    pub actions: Vec<Action>,
    /// How far it is.
    pub phase: Phase,
    /// When it came into each phase.
    pub transitions: Vec<PhaseTransition>,
    /// What is to be said about it, sorted.
    pub conditions: Vec<Condition>,
    /// Look again after so many seconds.
    pub look_again: Option<u64>,
}

/// Upstream's finalizer of instances.
pub const FINALIZER: &str = "foregroundDeleteVirtualMachine";

/// Decides what to do next with an instance.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let vmi = observed.vmi;
    let before = Phase::parse(&vmi.status.phase);
    let mut actions = Vec::new();
    let mut look_again = None;
    let phase = if vmi.metadata.deletion_timestamp.is_some() {
        leaving(observed, before, &mut actions, &mut look_again)
    } else {
        going(observed, before, &mut actions)
    };
    Decision {
        actions,
        phase,
        transitions: transitions(observed, before, phase),
        conditions: conditions::all(observed, phase),
        look_again,
    }
}

fn going(observed: &Observed<'_>, before: Phase, actions: &mut Vec<Action>) -> Phase {
    if before.is_final() {
        match observed.process {
            Process::None => {}
            // Whoever thought the node lost may have started the machine elsewhere: this one must not go on.
            Process::Starting | Process::Running(_) => actions.push(Action::Kill {
                reason: format!("the instance is {} already", before.word()),
            }),
            Process::Ended { .. } => actions.push(Action::CleanUp),
        }
        return before;
    }
    match &observed.process {
        Process::Ended { well, .. } => {
            actions.push(Action::CleanUp);
            return if *well { Phase::Succeeded } else { Phase::Failed };
        }
        Process::Running(_) => {
            if observed.lifeless {
                let reason = "the liveness probe failed".to_owned();
                actions.push(Action::Kill { reason });
            }
            return Phase::Running;
        }
        // It ran, and nobody knows what became of it.
        Process::None if before == Phase::Running => return Phase::Failed,
        Process::Starting => return before.max(Phase::Scheduled),
        Process::None => {}
    }
    if unsupported::blocks(&observed.plan.unsupported) {
        return before;
    }
    let Placement::Node(_) = observed.placement else {
        actions.push(Action::Schedule);
        return before.max(Phase::Scheduling);
    };
    match &observed.disks {
        Some(Ok(())) => actions.push(Action::Start),
        _ => actions.push(Action::PrepareDisks),
    }
    Phase::Scheduled
}

/// An instance that is being deleted: its guest gets the time that it was given.
fn leaving(
    observed: &Observed<'_>,
    before: Phase,
    actions: &mut Vec<Action>,
    look_again: &mut Option<u64>,
) -> Phase {
    let grace = observed.plan.grace_seconds;
    match (&observed.process, observed.asked_to_stop) {
        (Process::Starting | Process::Running(_), None) if grace > 0 => {
            actions.push(Action::AskToStop);
            *look_again = Some(grace);
            before
        }
        (Process::Starting | Process::Running(_), asked) => {
            let given = SignedDuration::from_secs(i64::try_from(grace).unwrap_or(i64::MAX));
            let passed = asked.map_or(given, |it| observed.now.duration_since(it));
            if passed < given {
                let left = given.as_secs().saturating_sub(passed.as_secs());
                *look_again = u64::try_from(left).ok();
            } else {
                let reason = format!("the guest did not shut down within {grace} seconds");
                actions.push(Action::Kill { reason });
            }
            before
        }
        (Process::None | Process::Ended { .. }, _) => {
            if observed.process != Process::None {
                actions.push(Action::CleanUp);
            }
            if observed.vmi.metadata.finalizers.iter().any(|it| it == FINALIZER) {
                actions.push(Action::RemoveFinalizer);
            }
            match &observed.process {
                _ if before.is_final() => before,
                Process::Ended { well: false, .. } if observed.asked_to_stop.is_none() => Phase::Failed,
                Process::None if before < Phase::Running => Phase::Failed,
                _ => Phase::Succeeded,
            }
        }
    }
}

fn transitions(observed: &Observed<'_>, before: Phase, phase: Phase) -> Vec<PhaseTransition> {
    let mut all = observed.vmi.status.phase_transition_timestamps.clone();
    let known = |all: &[PhaseTransition], phase: Phase| all.iter().any(|it| it.phase == phase.word());
    let moment = observed.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for reached in [before, phase] {
        if !known(&all, reached) {
            all.push(PhaseTransition {
                phase: reached.word().to_owned(),
                phase_transition_timestamp: moment.clone(),
            });
        }
    }
    all
}

/// The condition about fields that are not honoured, if there are any.
fn not_honoured(all: &[Unsupported]) -> Option<Condition> {
    (!all.is_empty()).then(|| unsupported::condition(all))
}

#[cfg(test)]
mod tests;
