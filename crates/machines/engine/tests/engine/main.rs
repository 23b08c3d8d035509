//! The controllers of machines on a real kernel over a memory store, in the root and in another workspace. In place of a host
//! there is somebody who writes what a node writes, and in place of disks objects that say that they are filled.
#![allow(
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests may fail as tests do, and are handed JSON literals"
)]

mod changes;
mod cost;
mod deletion;
mod disks;
mod foresight;
mod harness;
mod host;
mod installations;
mod migrations;
mod nodes;
mod placement;
mod sizes;
mod strategies;
