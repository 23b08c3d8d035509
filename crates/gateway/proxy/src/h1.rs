//! HTTP/1, written for a proxy: strict about what comes in, one task for a request's whole way, and as few system calls as
//! the protocol allows.
//!
//! hyper's connection would do the same work with a task and a channel more on the side of backends, and accepts what a proxy
//! must not (docs/decisions/0009-gateway-data-plane.md). `head`, `response` and `chunked` are functions of bytes; `exchange`
//! is one request to a backend and its answer; `server` is a client's connection.

pub(crate) mod chunked;
pub(crate) mod client_body;
pub(crate) mod exchange;
pub(crate) mod head;
pub(crate) mod response;
pub(crate) mod server;
pub(crate) mod writer;
