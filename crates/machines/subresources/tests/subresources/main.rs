//! The subresources behind the kernel in one process, with stand-ins for machines and their network: in the root workspace and
//! in another one, over HTTP and over WebSockets, and with the real virtctl.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests may fail as tests do"
)]

mod machines;
mod rights;
mod stand_in;
mod streams;
mod verbs;
mod virtctl;
mod world;
