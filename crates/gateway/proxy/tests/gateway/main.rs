//! The proxy with real sockets: what clients send, what backends get, and what comes back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod backend;
mod explained;
mod forwarding;
mod frames;
mod hostile;
mod hostile_random;
mod http2;
mod http2_hostile;
mod http2_random;
mod mirrors;
mod permits;
mod policies;
mod raw;
mod recorder;
mod reload;
mod resilience;
mod rig;
mod soak;
mod tls;
