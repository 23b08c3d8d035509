//! Snapshots, restores and clones of machines, on an API with the controllers of volumes; the machines themselves are played.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may fail as tests do"
)]

mod clones;
mod restores;
mod snapshots;
mod world;
