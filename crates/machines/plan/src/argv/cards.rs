//! Network cards.

use serde_json::{Value, json};

use super::disks::node_name;
use super::layout::card_key;
use super::{ArgvError, Layout, card_socket};
use crate::machine::{CardModel, CardPlan, MachinePlan};

/// What a card's frames go to: a socket on which QEMU listens, so that a switch which went away can come back.
pub fn card_backend(card: &CardPlan) -> Value {
    json!({
        "type": "stream",
        "id": node_name("net", &card.name),
        "server": true,
        "addr": {"type": "unix", "path": card_socket(&card.name)},
    })
}

/// What a card's frames go to where it has a device of the kernel, whose open file QEMU finds under a number. Frames have no header before them, so
/// that the guest is offered what it is with a socket, and can move to a node where it has one.
pub(super) fn card_device_backend(card: &CardPlan, file: i32) -> Value {
    json!({
        "type": "tap",
        "id": node_name("net", &card.name),
        "fd": file.to_string(),
        "vhost": false,
    })
}

/// The name of a card's device. It differs from that of a disk with the same name.
pub fn card_id(name: &str) -> String {
    format!("card-{name}")
}

/// The device of a card.
pub fn card_device(plan: &MachinePlan, card: &CardPlan, layout: &Layout) -> Result<Value, ArgvError> {
    let driver = match card.model {
        CardModel::Virtio if plan.transitional => "virtio-net-pci-transitional",
        CardModel::Virtio => "virtio-net-pci",
        CardModel::E1000 => "e1000",
        CardModel::E1000e => "e1000e",
        CardModel::Ne2kPci => "ne2k_pci",
        CardModel::Pcnet => "pcnet",
        CardModel::Rtl8139 => "rtl8139",
    };
    let (bus, address) = layout.pci(&card_key(&card.name))?;
    let mut device = json!({
        "driver": driver,
        "id": card_id(&card.name),
        "netdev": node_name("net", &card.name),
        "mac": card.mac,
        "bus": bus,
        "addr": address,
    });
    match card.boot_index {
        Some(index) => device["bootindex"] = json!(index),
        // Only a card that may start the guest needs a program for it.
        None => device["romfile"] = json!(""),
    }
    if let Some(index) = card.acpi_index {
        device["acpi-index"] = json!(index);
    }
    Ok(device)
}
