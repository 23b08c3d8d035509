//! Requests to addresses that a tenant names: webhooks of repositories, notifications.
//!
//! Whoever may name an address could make this server speak to its own neighbours. So every address is judged before a
//! connection is made ([`hosts`]), after its name has become an IP address, and the connection goes to that address and no
//! other. Redirections are not followed, answers and times are bounded. The crate must not know who sends what to whom.

pub mod hosts;
mod send;

pub use hosts::AllowedHosts;
pub use send::{Message, Outbound, Reply, SendError, target};
