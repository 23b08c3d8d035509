//! Both sides of the wiring on a real API server in this process, in the root and in another workspace.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod addresses;
mod endpoints;
mod harness;
