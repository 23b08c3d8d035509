//! The proxy with real sockets: what clients send, what backends get, and what comes back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod backend;
mod forwarding;
mod hostile;
mod http2;
mod policies;
mod raw;
mod reload;
mod resilience;
mod rig;
mod tls;
