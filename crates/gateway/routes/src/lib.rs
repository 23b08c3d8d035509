//! Gateways, routes and what they refer to, made into one [`table::Table`] that a data plane serves, and into the statuses
//! that tell people what became of their objects.
//!
//! ```text
//! objects ─ observed (parsed once, when they change) ─┐
//! settings (addresses, ports, domain) ────────────────┴─ build ─┬ table    → the data plane, which compiles it by lookup
//!                                                               └ statuses → written back by a controller
//! ```
//!
//! Everything here is a function of values: which listener a route hangs on, which rule a request belongs to, what is refused
//! and why. The crate must not open sockets, read clocks or know clients, nor know what policies mean: a rule has a name
//! ([`table::RuleKey`]) and policies find it by that. Nothing of one workspace refers to another: every reference is looked
//! up in the workspace of the object that has it.

pub mod build;
pub mod hostname;
pub mod lookup;
pub mod observed;
pub mod settings;
pub mod status;
pub mod table;

pub use build::{Built, Memo, build, build_with};
pub use observed::{Kind, Observed};
pub use settings::Settings;
