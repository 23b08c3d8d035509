//! Network cards and what they are connected to.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use fairway_kernel_scalar::names;

use super::{CauseType, Causes};
use crate::identity;
use crate::pci::PciAddress;
use crate::settings::Settings;
use crate::view::{InstanceSpec, Interface, Network};

const MODELS: [&str; 7] = ["e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio"];

pub(super) fn check(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    networks(path, spec, causes);
    let by_name: HashMap<&str, &Network> = spec.networks.iter().map(|it| (it.name.as_str(), it)).collect();
    let mut seen = HashSet::new();
    for (index, card) in spec.domain.devices.interfaces.iter().enumerate() {
        let field = format!("{path}.domain.devices.interfaces[{index}]");
        let network = by_name.get(card.name.as_str()).copied();
        if network.is_none() {
            let at = format!("{field}.name");
            causes.invalid(&at, format!("{at} '{}' not found.", card.name));
        }
        if !seen.insert(card.name.as_str()) {
            let message = "Only one interface can be connected to one specific network";
            causes.add(CauseType::Duplicate, format!("{field}.name"), message);
        }
        binding(&field, card, network, settings, causes);
        state(&field, card, network, causes);
        fields(&field, card, network, causes);
        dhcp(path, &field, card, causes);
    }
    let cards: HashSet<&str> = spec
        .domain
        .devices
        .interfaces
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    for (index, network) in spec.networks.iter().enumerate() {
        if !cards.contains(network.name.as_str()) {
            let at = format!("{path}.networks[{index}].name");
            causes.required(&at, format!("{at} '{}' not found.", network.name));
        }
    }
}

fn networks(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let pods = spec.networks.iter().filter(|it| it.pod.is_some()).count();
    if pods > 1 {
        let field = format!("{path}.interfaces");
        let message = format!("more than one interface is connected to a pod network in {field}");
        causes.add(CauseType::Duplicate, field, message);
    }
    let defaults = spec
        .networks
        .iter()
        .filter(|it| it.multus.as_ref().is_some_and(|it| it.default))
        .count();
    if defaults > 1 {
        causes.invalid(
            format!("{path}.networks"),
            "Multus CNI should only have one default network",
        );
    }
    if pods > 0 && defaults > 0 {
        let message = "Pod network cannot be defined when Multus default network is defined";
        causes.invalid(format!("{path}.networks"), message);
    }
    let mut seen = HashSet::new();
    for (index, network) in spec.networks.iter().enumerate() {
        let field = format!("{path}.networks[{index}]");
        match (&network.pod, &network.multus) {
            (None, None) => causes.required(&field, "should have a network type"),
            (Some(_), Some(_)) => causes.required(&field, "should have only one network type"),
            _ => {}
        }
        if network
            .multus
            .as_ref()
            .is_some_and(|it| it.network_name.is_empty())
        {
            causes.required(&field, "CNI delegating plugin must have a networkName");
        }
        if !seen.insert(network.name.as_str()) {
            let message = format!(
                "Network with name {:?} already exists, every network must have a unique name",
                network.name
            );
            causes.add(CauseType::Duplicate, format!("{field}.name"), message);
        }
    }
}

fn binding(
    field: &str,
    card: &Interface,
    network: Option<&Network>,
    settings: &Settings,
    causes: &mut Causes,
) {
    let on_pod = network.is_some_and(|it| it.pod.is_some());
    let at = format!("{field}.name");
    if card.binding.is_some() && card.has_method() {
        let message = format!(
            "logical {} interface cannot have both binding plugin and interface binding method",
            card.name
        );
        causes.invalid(format!("{field}.binding"), message);
    }
    if card.masquerade.is_some() && !on_pod {
        causes.invalid(&at, "Masquerade interface only implemented with pod network");
    }
    if card.masquerade.is_some() && identity::is_reserved_mac(&card.mac_address) {
        let message =
            "The requested MAC address is reserved for the in-pod bridge. Please choose another one.";
        causes.invalid(format!("{field}.macAddress"), message);
    }
    if card.bridge.is_some() && on_pod && !settings.bridge_on_pod_network {
        causes.invalid(
            &at,
            "Bridge on pod network configuration is not enabled under kubevirt-config",
        );
    }
    if card.macvtap.is_some() {
        if !settings.gate("Macvtap") {
            causes.invalid(&at, "Macvtap feature gate is not enabled");
        }
        if network.is_some_and(|it| it.multus.is_none()) {
            causes.invalid(&at, "Macvtap interface only implemented with Multus network");
        }
    }
    if card.passt.is_some() {
        if !settings.gate("Passt") {
            causes.invalid(&at, "Passt feature gate is not enabled");
        }
        if !on_pod {
            causes.invalid(&at, "Passt interface only implemented with pod network");
        }
    }
    if card.slirp.is_some() {
        let message = if on_pod {
            "Slirp interface is not enabled in kubevirt-config"
        } else {
            "Slirp interface only implemented with pod network"
        };
        causes.invalid(&at, message);
    }
}

fn state(field: &str, card: &Interface, network: Option<&Network>, causes: &mut Causes) {
    let at = format!("{field}.state");
    let (name, state) = (&card.name, card.state.as_str());
    if !["", "absent", "down", "up"].contains(&state) {
        causes.invalid(
            &at,
            format!("logical {name} interface state value is unsupported: {state}"),
        );
    }
    if card.sriov.is_some() && matches!(state, "down" | "up") {
        causes.invalid(
            &at,
            format!("{name:?} interface's state {state:?} is not supported for SR-IOV NICs"),
        );
    }
    if state != "absent" {
        return;
    }
    if card.bridge.is_none() {
        let message = format!("{name:?} interface's state {state:?} is supported only for bridge binding");
        causes.invalid(&at, message);
    }
    let default = |it: &Network| it.pod.is_some() || it.multus.as_ref().is_some_and(|it| it.default);
    if network.is_some_and(default) {
        let message = format!("{name:?} interface's state {state:?} is not supported on default networks");
        causes.invalid(&at, message);
    }
}

fn fields(field: &str, card: &Interface, network: Option<&Network>, causes: &mut Causes) {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if card.name.is_empty() || !card.name.chars().all(plain) {
        let message = "Network interface name can only contain alphabetical characters, numbers, dashes (-) or \
                       underscores (_)";
        causes.invalid(format!("{field}.name"), message);
    }
    if !card.model.is_empty() && !MODELS.contains(&card.model.as_str()) {
        let message = format!(
            "interface {field}.name uses model {} that is not supported.",
            card.model
        );
        causes.add(CauseType::NotSupported, format!("{field}.model"), message);
    }
    if !card.mac_address.is_empty() {
        let problem = match identity::parse_mac(&card.mac_address) {
            None => Some("malformed"),
            Some(bytes) if bytes.len() > 6 => Some("too long"),
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let message = format!(
                "interface {field}.name has {problem} MAC address ({}).",
                card.mac_address
            );
            causes.invalid(format!("{field}.macAddress"), message);
        }
    }
    if !card.pci_address.is_empty() && PciAddress::parse(&card.pci_address).is_none() {
        let message = format!(
            "interface {field}.name has malformed PCI address ({}).",
            card.pci_address
        );
        causes.invalid(format!("{field}.pciAddress"), message);
    }
    if network.is_some_and(|it| it.pod.is_some()) {
        ports(field, card, causes);
    }
}

fn ports(field: &str, card: &Interface, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for (index, port) in card
        .ports
        .iter()
        .enumerate()
        .filter(|(_, it)| !it.name.is_empty())
    {
        let at = format!("{field}.ports[{index}].name");
        if !seen.insert(port.name.as_str()) {
            causes.add(
                CauseType::Duplicate,
                &at,
                format!("Duplicate name of the port: {}", port.name),
            );
        }
        if !names::is_valid_port_name(&port.name).is_empty() {
            causes.invalid(&at, format!("Invalid name of the port: {}", port.name));
        }
    }
    for (index, port) in card.ports.iter().enumerate() {
        let at = format!("{field}.ports[{index}]");
        if port.port == 0 {
            causes.required(&at, "Port field is mandatory.");
        }
        if !(0..=65536).contains(&port.port) {
            causes.invalid(&at, "Port field must be in range 0 < x < 65536.");
        }
        if !["", "TCP", "UDP"].contains(&port.protocol.as_str()) {
            causes.invalid(
                format!("{at}.protocol"),
                "Unknown protocol, only TCP or UDP allowed",
            );
        }
    }
}

fn dhcp(path: &str, field: &str, card: &Interface, causes: &mut Causes) {
    let Some(options) = &card.dhcp_options else {
        return;
    };
    let numbers: HashSet<i64> = options.private_options.iter().map(|it| it.option).collect();
    if numbers.len() < options.private_options.len() {
        causes.invalid(
            path,
            "Found Duplicates: you have provided duplicate DHCPPrivateOptions",
        );
    }
    for option in &options.private_options {
        if !(224..=254).contains(&option.option) {
            causes.invalid(
                path,
                "provided DHCPPrivateOptions are out of range, must be in range 224 to 254",
            );
        }
    }
    for (index, server) in options.ntp_servers.iter().enumerate() {
        if server.parse::<Ipv4Addr>().is_err() {
            let at = format!("{field}.dhcpOptions.ntpServers[{index}]");
            causes.invalid(at, "NTP servers must be a list of valid IPv4 addresses.");
        }
    }
}
