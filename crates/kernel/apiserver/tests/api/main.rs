//! The server as its clients see it, one file per area.
//!
//! One binary for all of them, because each link of the whole server costs more than the tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests, and helpers of tests"
)]

mod access;
mod apiservice;
mod audit;
mod bootstrap;
mod bound_kinds;
mod certificates;
mod custom;
mod delete;
mod encryption;
mod guests;
mod harness;
mod hostile;
mod kube_runtime;
mod lifecycle;
mod list;
mod machines;
mod neighbours;
mod patch;
mod policies;
mod provided;
mod quota;
mod random;
mod reviews;
mod scenarios;
mod services;
mod shared_apis;
mod tls;
mod verbs;
mod watch;
mod workspaces;
