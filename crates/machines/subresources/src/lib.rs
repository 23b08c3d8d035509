//! KubeVirt's subresources: what people and virtctl ask of machines beside their objects.
//!
//! | asked | answered by |
//! |---|---|
//! | start, stop, restart, migrate, volumes that come and go | a write to the machine, as [`decide`] says; the engine acts on it |
//! | pause, reset, freeze, what the guest knows | an [`Order`](fairway_machines_guests::Order) to the machine's node |
//! | console, screen, ports | bytes over a WebSocket, through [`Guests`](fairway_machines_guests::Guests) or [`Fabric`](fairway_fabric::Fabric) |
//!
//! The kernel has decided by then whether they may. What is done is done in this crate's own name ([`USER`]), so that somebody
//! can be let start machines without being let write them.
//!
//! ```ignore
//! for service in Service::versions(&clients, guests, fabric) {
//!     kernel.serve_api(&service)?;
//! }
//! ```
//!
//! Reaches machines through those two traits only: it must not know QEMU, nodes or the network.

mod answer;
mod backup;
pub mod decide;
mod door;
mod instance;
mod machine;
mod objects;
pub mod options;
pub mod refusal;
mod service;
mod size;
mod stream;
mod version;

pub use service::{GROUP, Service, VERSIONS};

/// Who does what people ask for.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-machines-subresources";
