//! Both sides of the wiring on a real API server in this process, in the root and in another workspace.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod addresses;
mod endpoints;
#[allow(dead_code, reason = "written for the switch's own tests")]
#[path = "../../../network/tests/switch/guest.rs"]
mod guest;
mod harness;
mod host_ports;
mod network;
mod nodes;
