//! The engine end to end, through the API.
//!
//! Each scenario runs against a kernel in this process, in the root workspace and in another one. With
//! `FAIRWAY_ENGINE_KUBECONFIG` it runs against the cluster of that kubeconfig instead.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests may fail as tests do"
)]

mod application_sets;
mod beyond;
mod charts;
mod children;
mod cost;
mod deletion;
mod domain;
mod harness;
mod hooks;
mod hub_spoke;
mod operations;
mod reconcile;
mod sources;
mod trouble;
