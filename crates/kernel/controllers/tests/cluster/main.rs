//! The controllers on a real kernel over a memory store: what a user sees, through a client like any other.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests may fail as tests do"
)]

mod api_services;
mod bound_kinds;
mod certificates;
mod content;
mod definitions;
mod endpoints;
mod garbage;
mod harness;
mod initializers;
mod jobs;
mod namespaces;
mod quotas;
mod service_request;
mod shared_apis;
mod sync_agent;
mod tenancy;
mod tokens;
mod workspaces;
