//! The controllers on a real kernel over a memory store: what a user sees, through a client like any other.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests may fail as tests do"
)]

mod certificates;
mod api_services;
mod content;
mod definitions;
mod endpoints;
mod garbage;
mod harness;
mod jobs;
mod namespaces;
mod tokens;
mod quotas;
