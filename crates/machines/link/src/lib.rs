//! The stream that a node keeps to the API server, and through which the server reaches the machines of the node.
//!
//! A node is reached by nobody: it may be behind a firewall or an address translation. So it dials, with its own certificate, and the
//! two change roles on the connection: the server asks, the node answers.
//!
//! ```text
//!   node ── TLS, HTTP/1.1 ── GET .../nodes/NAME/link, Upgrade: websocket ──► API server (service)
//!   node ◄─────────── HTTP/2 inside of the WebSocket: CONNECT, POST ──────── API server (links)
//! ```
//!
//! HTTP/2 brings streams with flow control of their own (who does not read is not read from), bounds, and pings by which either end
//! notices that the other is gone. A console, a screen or a forwarded port is a CONNECT whose header says what for; an order is a
//! POST; figures are a GET, and are put together by [`figures`]. The words are in [`wire`]. A node that loses its stream dials again; what was open is cut.
//!
//! Tasks: on a node one that dials and serves; on the server one for each node that is connected. Nothing runs where nobody dials.
//!
//! The crate must not know QEMU, or who may dial: the server's authorizer lets each node in as itself alone.

pub mod figures;
mod links;
mod node;
mod service;
mod tube;
pub mod wire;

pub use links::Links;
pub use node::{Answers, keep};
pub use service::Service;

/// Where nodes dial.
pub const GROUP: &str = "machines.fairway.dev";
/// The version.
pub const VERSION: &str = "v1";
/// The subprotocol of the WebSocket.
const PROTOCOL: &str = "link.machines.fairway.dev";

/// The path of a node's stream.
pub fn path(node: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/nodes/{node}/link")
}

#[cfg(test)]
mod tests;
