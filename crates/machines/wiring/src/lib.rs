//! Machines on the network: their addresses, Services and policies, as the switch of a node carries them.

use std::path::PathBuf;

/// A card of a machine on this node, as whoever started the machine knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Name of card and network.
    pub name: String,
    /// Its address.
    pub mac: fairway_machines_frames::address::Mac,
    /// What it is connected to.
    pub network: fairway_machines_plan::machine::CardNetwork,
    /// Where QEMU listens for the switch.
    pub socket: PathBuf,
}
