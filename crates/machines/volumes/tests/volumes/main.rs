//! Volumes end to end, through the API: a kernel in this process, real files, and servers on the loopback.
//!
//! Each scenario runs in the root workspace and in another one. Machines are objects only: nothing here runs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may fail as tests do"
)]

mod claims;
mod clones;
mod copying;
mod harness;
mod imports;
mod joined;
mod registries;
mod server;
mod snapshots;
mod sources;
mod uploads;
