//! The decisions of the GitOps engine: desired and live objects in, plans out.
//!
//! - [`key`], [`annotation`], [`tracking`], [`hook`]: what an object is, whose it is, and what its annotations ask for.
//! - [`diff`]: whether a live object is what was declared, without noise, and with secrets masked.
//! - [`compare`]: an application's objects in pairs, and whether it is in sync.
//! - [`operation`]: a sync as a state machine: phases, waves, hooks, pruning. Its state is data, so that it survives the
//!   process that runs it.
//! - [`automated`], [`retry`], [`window`]: when to sync, when to try again, and when not to.
//! - [`children`]: what objects bring about. [`history`]: what was synced, and what to go back to.
//! - [`project`], [`rbac`], [`guard`]: who may do what, and what nobody should do without being asked; [`impact`]: what a
//!   change does to what runs.
//!
//! Semantics are Argo CD's, version 3. Whoever acts on a plan makes no choices; whoever decides has no client and no
//! clock. The crate must not know Git, rendering or the API server.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

pub mod annotation;
pub mod automated;
pub mod children;
pub mod compare;
pub mod diff;
pub mod drift;
pub mod guard;
pub mod history;
pub mod hook;
pub mod impact;
pub mod key;
pub mod operation;
pub mod project;
pub mod rbac;
pub mod retry;
pub mod tracking;
pub mod window;
