//! What a namespace may hold: the decisions of LimitRange and ResourceQuota.
//!
//! Pure: objects in, decisions out. The API server asks [`limits`] for the defaults and bounds of a new pod or claim, and
//! [`check`] whether a write fits into the quotas of its namespace and what they are to be charged. The controller asks
//! [`recount`] which kinds a quota counts and what it holds. Both measure with the same [`Evaluator`], so that a charge
//! and a recount cannot disagree.
//!
//! Names, rules and messages are those that Kubernetes users know. What is not here: the configuration of limits that
//! apply without a quota (`limitedResources`), and device classes that stand for extended resources.

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "test tables hand over JSON literals; borrowing them would only add noise"
    )
)]

mod amounts;
mod check;
mod claim;
mod device;
mod evaluator;
pub mod limits;
mod pod;
mod pod_resources;
mod quota;
pub mod recount;
mod scope;
mod service;

pub use amounts::Amounts;
pub use check::{Charge, Operation, Request, check};
pub use evaluator::{Evaluator, count_name, is_ignored};
pub use quota::Quota;

#[cfg(test)]
mod tests;
