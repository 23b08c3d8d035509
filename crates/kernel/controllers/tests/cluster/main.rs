//! The controllers on a real kernel over a memory store: what a user sees, through a client like any other.

mod content;
mod definitions;
mod garbage;
mod harness;
mod jobs;
mod namespaces;
