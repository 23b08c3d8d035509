//! The proxy with real sockets: what clients send, what backends get, and what comes back.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by it, and helpers of tests are not seen as such"
)]

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
