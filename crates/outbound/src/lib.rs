//! Requests to addresses that a tenant names: webhooks of repositories, notifications.
//!
//! Whoever may name an address could make this server speak to its own neighbours. So every address is judged before a
//! connection is made ([`hosts`]), after its name has become an IP address, and the connection goes to that address and no
//! other. Answers and times are bounded; redirections are followed only for files ([`Outbound::get`]), and judged. The crate must not know who sends what to whom.

pub mod hosts;
mod send;
mod stream;

pub use hosts::AllowedHosts;
pub use send::{Message, Outbound, Reply, SendError, Target, target};
pub use stream::Download;
