//! Gateways, routes and what they refer to, made into one [`table::Table`] that a data plane serves, and into the statuses
//! that tell people what became of their objects.
//!
//! Everything here is a function of values: which listener a route hangs on, which rule a request belongs to, what is refused
//! and why. The crate must not open sockets, read clocks or know clients, nor know what policies mean: a rule has a name
//! ([`table::RuleKey`]) and policies find it by that.

pub mod table;
