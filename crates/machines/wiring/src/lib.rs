//! Machines on the network: their addresses, Services and policies, as the switch of a node carries them.
//!
//! * [`run`]: the cluster's side. It gives every machine its address, and Services the endpoints that are machines. Several
//!   replicas may run it.
//! * [`Wiring`]: a node's side, a handle that clones share. Whoever starts machines plugs their cards in; a task behind it makes a
//!   picture of what the API says ([`frames::topology::Plan`]) and hands it to the switch.
//!
//! The crate must not judge frames, nor start machines.

mod address;
mod balancer;
mod cluster;
mod endpoints;
mod kinds;
mod node;
mod peers;
mod picture;
mod pools;
mod reservation;
mod settings;
mod view;
mod watches;
mod wiring;

use std::path::PathBuf;

use fairway_machines_frames::address::Mac;
use fairway_machines_plan::machine::CardNetwork;

pub use cluster::run;
pub use fairway_machines_frames as frames;
pub use settings::{NodeOptions, Options, Settings, TUNNEL_PORT, Tunnel};
pub use wiring::{Problem, Wiring};

/// Who the controllers here are.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-machines-wiring";

/// The address of a machine on the network that every machine has, written on its instance.
pub const ADDRESS_ANNOTATION: &str = "fairway.dev/address";

/// A card of a machine on this node, as whoever started the machine knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Name of card and network.
    pub name: String,
    /// Its address.
    pub mac: Mac,
    /// What it is connected to.
    pub network: CardNetwork,
    /// Where QEMU listens for the switch.
    pub socket: PathBuf,
}
