//! WebSocket (RFC 6455) as a way for a stream of bytes: a console, a screen, a forwarded port.
//!
//! What matters to such a stream are the bytes, not the messages that they come in. So data is handed on piece by piece as
//! it arrives, however large a message is; a connection holds one buffer, and nobody can make it hold more. Pings,
//! closes and the rules of the protocol are kept apart from the data ([`Event`]).
//!
//! [`frame`] is the format, [`Reader`] and [`Writer`] are the two halves of a connection, [`handshake`] is what a client says
//! first. The server's side of that is `fairway-apiservice`'s.
//!
//! Must not know what the bytes are.

pub mod frame;
pub mod handshake;
mod reader;
mod writer;

pub use reader::{Close, Event, ReadError, Reader};
pub use writer::Writer;

/// Which end of the connection this is. A client masks what it sends, a server does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// Codes of a close (RFC 6455, section 7.4.1), and one of Fairway's own.
pub mod code {
    /// What was to be done is done.
    pub const NORMAL: u16 = 1000;
    /// One end goes away.
    pub const GOING_AWAY: u16 = 1001;
    /// The other end broke the rules.
    pub const PROTOCOL: u16 = 1002;
    /// Messages of a kind that is not taken.
    pub const UNSUPPORTED: u16 = 1003;
    /// What was to be done failed.
    pub const FAILED: u16 = 1011;
    /// Nothing more will be sent, and the rest of what the other end has to send is waited for: the half close of TCP, which
    /// WebSocket does not have. From the range for private use.
    pub const END_OF_INPUT: u16 = 4000;
}

#[cfg(test)]
mod tests;
