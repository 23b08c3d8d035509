//! Network cards.

use super::{Capabilities, Origin};
use crate::identity::{CardOwner, mac_address};
use crate::machine::{CardBinding, CardModel, CardNetwork, CardPlan};
use crate::pci::PciAddress;
use crate::unsupported::Wishes;
use crate::view::{Interface, Network, VirtualMachineInstance};

pub(super) fn cards(
    vmi: &VirtualMachineInstance,
    origin: Origin<'_>,
    host: &Capabilities,
    wishes: &mut Wishes,
) -> Vec<CardPlan> {
    let devices = &vmi.spec.domain.devices;
    if devices.network_interface_multiqueue == Some(true) && !devices.interfaces.is_empty() {
        let reason = "network cards have one queue each";
        wishes.ignored("domain.devices.networkInterfaceMultiqueue", reason);
    }
    let mut found = Vec::new();
    for (index, card) in devices.interfaces.iter().enumerate() {
        // Somebody took it out; it is listed only so that everybody knows.
        if card.state == "absent" {
            continue;
        }
        let field = format!("domain.devices.interfaces[{index}]");
        let Some(network) = vmi.spec.networks.iter().find(|it| it.name == card.name) else {
            wishes.blocks(&field, format!("there is no network {:?}", card.name));
            continue;
        };
        let Some(binding) = binding(&field, card, network, wishes) else {
            continue;
        };
        if let Some(pod) = network.pod.as_ref().filter(|it| !it.vm_network_cidr.is_empty()) {
            let reason = format!(
                "the guest gets the machine's own address, which is not out of {}",
                pod.vm_network_cidr
            );
            wishes.replaced(format!("networks[{}].pod.vmNetworkCIDR", network.name), reason);
        }
        if network
            .pod
            .as_ref()
            .is_some_and(|it| !it.vm_ipv6_network_cidr.is_empty())
        {
            wishes.ignored(
                format!("networks[{}].pod.vmIPv6NetworkCIDR", network.name),
                "the network of machines is IPv4 alone",
            );
        }
        let mac = if card.mac_address.is_empty() {
            mac_address(&CardOwner {
                workspace: origin.workspace,
                namespace: &vmi.metadata.namespace,
                machine: &vmi.metadata.name,
                interface: &card.name,
                attempt: origin.mac_attempt,
            })
        } else {
            card.mac_address.to_ascii_lowercase().replace('-', ":")
        };
        found.push(CardPlan {
            name: card.name.clone(),
            model: model(&field, card, host, wishes),
            mac,
            binding,
            network: network_of(vmi, network),
            ports: card.ports.clone(),
            dhcp: card.dhcp_options.clone(),
            boot_index: card.boot_order.and_then(|it| u32::try_from(it).ok()),
            pci_address: PciAddress::parse(&card.pci_address),
            acpi_index: u32::try_from(card.acpi_index).ok().filter(|it| *it != 0),
            link_up: card.state != "down",
            tag: card.tag.clone(),
        });
    }
    found
}

fn binding(field: &str, card: &Interface, network: &Network, wishes: &mut Wishes) -> Option<CardBinding> {
    if card.sriov.is_some() {
        wishes.blocks(
            format!("{field}.sriov"),
            "this node has no network card that can be divided",
        );
        return None;
    }
    let replaced = [
        ("slirp", card.slirp),
        ("macvtap", card.macvtap),
        ("passt", card.passt),
    ];
    for (name, _) in replaced.iter().filter(|(_, set)| set.is_some()) {
        let reason = "the built-in switch connects the card in its place";
        wishes.replaced(format!("{field}.{name}"), reason);
    }
    if let Some(plugin) = &card.binding {
        let reason = format!(
            "the built-in switch connects the card in place of the extension {:?}",
            plugin.name
        );
        wishes.replaced(format!("{field}.binding"), reason);
    }
    Some(
        if card.bridge.is_some() || network.multus.is_some() || card.macvtap.is_some() {
            CardBinding::Bridge
        } else {
            CardBinding::Masquerade
        },
    )
}

fn network_of(vmi: &VirtualMachineInstance, network: &Network) -> CardNetwork {
    match &network.multus {
        None => CardNetwork::Pod,
        Some(multus) => {
            let own = (vmi.metadata.namespace.as_str(), multus.network_name.as_str());
            let (namespace, name) = multus.network_name.split_once('/').unwrap_or(own);
            CardNetwork::Multus {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                default: multus.default,
            }
        }
    }
}

fn model(field: &str, card: &Interface, host: &Capabilities, wishes: &mut Wishes) -> CardModel {
    match card.model.as_str() {
        "e1000" => CardModel::E1000,
        "e1000e" => CardModel::E1000e,
        "ne2k_pci" => CardModel::Ne2kPci,
        "pcnet" => CardModel::Pcnet,
        "rtl8139" => CardModel::Rtl8139,
        "igb" => {
            let (major, minor) = host.qemu;
            let reason = format!("QEMU {major}.{minor} is driven without igb; e1000e stands in for it");
            wishes.replaced(format!("{field}.model"), reason);
            CardModel::E1000e
        }
        _ => CardModel::Virtio,
    }
}
