//! The data plane of gateways: serves a [`Table`] over HTTP/1.1, HTTP/2, TLS and TCP.
//!
//! ```text
//! door (socket) ─ TLS by server name ─ h1::server | h2 ─ intake: what is refused at once, where it came from
//!   ─ plan: listener → route ─ guards: may it pass ─ filters ─ forward: which backend, again if it failed
//!   ─ upstream: pool, breakers, health ─ fabric
//! ```
//!
//! [`Proxy::serve`] replaces everything at once: requests that arrive afterwards see the new table, also on connections that
//! were there before, and those under way end with the table that they began with. Nothing is dropped.
//!
//! Tasks: each worker is a thread with a runtime of its own, so a request's whole way, client to backend and back, is one
//! task on one thread. Workers share the table (`ArcSwap`) and counters; each has its own idle connections. One more thread
//! writes the access log. The crate must not know where tables come from, nor what policies mean.

mod access_log;
mod activity;
mod affinity;
mod applied;
mod body;
mod chance;
mod clients;
mod door;
mod explain;
mod filters;
mod forward;
mod forwarded;
mod grpc;
mod guards;
mod h1;
mod h2;
mod health_check;
mod hops;
mod intake;
mod metrics;
mod mirror;
mod options;
mod path;
mod peer;
mod permit;
mod pipeline;
mod plan;
mod proxy;
mod record;
mod rewound;
mod tls;
mod tunnel;
mod upstream;
mod watch;

pub use applied::{Applied, Problem};
pub use explain::{Explanation, Probe, ProbeRequest, Stage, StageKind};
pub use fairway_gateway_routes::table::HealthCheck;
pub use guards::Guards;
pub use options::{AccessLog, Balance, Breaker, Limits, Options, Outliers, Timeouts, Trust};
pub use proxy::{Proxy, StartError};

#[cfg(doc)]
use fairway_gateway_routes::table::Table;
