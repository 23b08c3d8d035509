//! Real guests in real QEMU processes. Processors are emulated, so that the tests run everywhere in the same way; where QEMU is
//! missing they are SKIPPED with a line that says so (`scripts/tools.sh qemu` installs it).
//!
//! A guest takes seconds to boot, so each test does everything that one guest is good for. They run one after the other.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and one that is skipped says so"
)]

#[path = "guest/bench.rs"]
mod bench;
#[path = "guest/checkpoints.rs"]
mod checkpoints;
#[path = "guest/lifecycle.rs"]
mod lifecycle;
#[path = "guest/memory.rs"]
mod memory;
#[path = "guest/migration.rs"]
mod migration;
#[path = "guest/seed.rs"]
mod seed;
