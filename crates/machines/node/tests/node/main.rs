//! A node on a real API in this process, with real QEMU. Where QEMU is missing the tests are SKIPPED with a line that says so
//! (`scripts/tools.sh qemu` installs it).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and one that is skipped says so"
)]

mod backups;
mod carried;
mod changes;
mod confined;
mod gate;
mod guest;
mod lost;
mod moving;
mod probes;
mod restless;
mod trouble;
mod world;
