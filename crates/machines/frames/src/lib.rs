//! What the switch of a node does with a frame, as functions of values.
//!
//! The shell (`fairway-machines-network`) reads frames from the sockets of QEMU processes and writes frames to them. What
//! happens in between is decided here: [`decide::Switch::decide`] takes a port, a frame and the time, and says forward,
//! flood, answer, hand to the gateway, or drop and why. It knows the world through a [`topology::Topology`], an immutable
//! picture that is replaced as a whole when a machine, a Service or a NetworkPolicy changes, and it remembers
//! connections in a [`track::Tracker`], bounded in memory.
//!
//! Guests are hostile: every length is checked before it is believed, a port speaks with its own MAC and IP address
//! only, and a tenant's frames reach no other tenant, whatever they say.
//!
//! The crate must not open sockets, read clocks or know Kubernetes' clients. Times are milliseconds of a clock that
//! never goes back.

pub mod address;
pub mod allocation;
pub mod build;
pub mod checksum;
pub mod decide;
pub mod dhcp;
pub mod outside;
pub mod packet;
pub mod policy;
pub mod rewrite;
pub mod segment;
pub mod service;
pub mod topology;
pub mod track;

pub use address::{Cidr, Mac};
pub use decide::{Reason, Switch, Verdict};
pub use topology::{PortId, Tenant, Topology};
pub use track::Tuple;
