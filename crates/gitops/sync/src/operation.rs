//! A sync as a state machine.
//!
//! ```text
//!             plan ──▶ namespace ──▶ dry run ──▶ wave ──▶ wave ──▶ … ──▶ Succeeded
//!                                       │         │ ▲
//!                                       ▼         ▼ │ all healthy, hooks done
//!                                     Failed    running ──▶ SyncFail hooks ──▶ Failed
//! ```
//!
//! A [`Plan`] is made once from what is declared and what is there; [`step`] takes the [`State`] so far and what was
//! observed, and gives actions and the next state. The contract with whoever acts:
//!
//! 1. The state is stored **before** its actions are carried out. It says what is about to be done.
//! 2. All actions of a step may run at once; their outcomes go into the next step, together with live objects that are at
//!    least as new as those outcomes. Older ones would let a wave pass on the health of what was there before.
//! 3. After a crash, the stored state goes into the next step without outcomes. What was about to be done is looked for
//!    in the cluster: a hook that is there has been started and is not started again; anything else is applied again,
//!    which does no harm.
//!
//! Inside a wave objects are pruned first, then old hooks deleted, then the rest is applied kind by kind in Argo CD's
//! order ([`order`]). A wave begins when everything before it is healthy.

mod options;
pub mod order;
mod plan;
mod state;
mod step;

pub use options::{ApplyMode, Propagation, SyncOptions, is_dry_run_failure};
pub use plan::{Desired, NamespaceMetadata, Plan, Selected, Task, plan, plan_deletion};
pub use state::{OperationPhase, ResourceResult, ResultCode, State, TaskId};
pub use step::{Action, Observed, Outcome, Step, step};

#[cfg(test)]
mod tests;
