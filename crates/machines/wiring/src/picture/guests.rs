//! Machines on the network that every machine has.

use std::collections::HashMap;

use fairway_api::kubevirt::VIRTUAL_MACHINE_INSTANCE;
use fairway_controller::ObjectKey;
use fairway_machines_frames::topology::{Guest, PortId};
use fairway_machines_plan::machine::CardNetwork;

use super::{Drawing, GATEWAY_MAC, Plugged, Remark, World, named};
use crate::Card;
use crate::view::Instance;

/// How many name servers DHCP tells of.
const SERVERS: usize = 3;

impl Drawing<'_> {
    /// Machines with an address: those of this node with their cards, those of others so that they are known by name and label. Of two that
    /// contradict each other the older stays.
    pub(super) fn guests(
        &self,
        world: &World,
        is_here: &dyn Fn(&ObjectKey) -> bool,
        remarks: &mut Vec<Remark>,
    ) -> Vec<Guest> {
        let mut instances: Vec<_> = world.instances.iter().filter(|(key, _)| is_here(key)).collect();
        instances.sort_by(|(one, a), (other, b)| (&a.created, one).cmp(&(&b.created, other)));
        let mut macs: HashMap<_, &ObjectKey> = HashMap::new();
        let mut addresses: HashMap<_, &ObjectKey> = HashMap::new();
        let mut guests = Vec::new();
        for (key, instance) in instances {
            let plugged = world.plugged.get(key);
            let card = plugged.and_then(pod_card);
            if plugged.is_none() && (instance.is_final || instance.card.is_none()) {
                continue;
            }
            let Some(address) = instance.address else {
                continue;
            };
            let mac = card
                .map(|card| card.mac)
                .or(instance.card.as_ref().and_then(|card| card.mac));
            // Whose machine it is speaks for it.
            let mut complain = |reason: &'static str, message: String| {
                if plugged.is_some() {
                    remarks.push(Remark::about(&VIRTUAL_MACHINE_INSTANCE, key, reason, message));
                }
            };
            let Some(mac) = mac.filter(|mac| !mac.is_group() && *mac != GATEWAY_MAC) else {
                let shown = mac.map(|mac| mac.to_string()).unwrap_or_default();
                complain(
                    "InvalidMacAddress",
                    format!(
                        "The card has no network, because {shown:?} is no address that a card may have: set another macAddress."
                    ),
                );
                continue;
            };
            let network = self.settings.machines;
            if !network.contains(address) || address == self.settings.gateway {
                complain(
                    "AddressOutsideNetwork",
                    format!(
                        "The machine has no network, because its address {address} is not out of {network}: remove the \
                         annotation {} from the instance to get another one.",
                        crate::ADDRESS_ANNOTATION
                    ),
                );
                continue;
            }
            if let Some(other) = addresses.get(&address) {
                let other = named("machine", other, key);
                complain(
                    "AddressConflict",
                    format!("The machine has no network, because {other} has the address {address}, too."),
                );
                continue;
            }
            if let Some(other) = macs.get(&(&key.workspace, mac)) {
                let other = named("machine", other, key);
                complain(
                    "MacAddressConflict",
                    format!(
                        "The machine has no network, because {other} has the MAC address {mac}, too: set another macAddress \
                         on one of them."
                    ),
                );
                continue;
            }
            addresses.insert(address, key);
            macs.insert((&key.workspace, mac), key);
            guests.push(Guest {
                tenant: self.numbers.tenant(&key.workspace),
                mac,
                address,
                ports: self.ports_of(world, instance, card),
                hostname: plugged.map_or_else(|| instance.hostname.clone(), |it| it.hostname.clone()),
                search: self.search(key, instance),
                resolvers: self.resolvers(instance),
                options: (instance.card.as_ref())
                    .map(|card| card.options.clone())
                    .unwrap_or_default(),
                accepts: instance.card.as_ref().and_then(|card| card.accepts.clone()),
            });
        }
        guests
    }

    /// Where a machine is: at its card, or behind the link to its node; and where it moves to.
    pub(super) fn ports_of(&self, world: &World, instance: &Instance, card: Option<&Card>) -> Vec<PortId> {
        let own = card.map(|card| self.numbers.port(&card.socket));
        let at = |node: &str| match node == self.node {
            true => own,
            false => world.links.get(node).copied(),
        };
        let mut places: Vec<PortId> = at(&instance.node)
            .into_iter()
            .chain(instance.target.as_deref().and_then(at))
            .collect();
        // A card that is plugged in here is here, whatever has been written yet.
        places.extend(own.filter(|own| !places.contains(own)));
        places
    }

    /// Domains in which short names are looked for, as a pod of the namespace would have them, KubeVirt's first.
    fn search(&self, key: &ObjectKey, instance: &Instance) -> Vec<String> {
        let domain = &self.settings.domain;
        let mut search = Vec::new();
        if instance.dns.is_cluster_first {
            let own = format!("{}.svc.{domain}", key.namespace);
            if !instance.subdomain.is_empty() {
                search.push(format!("{}.{own}", instance.subdomain));
            }
            search.extend([own, format!("svc.{domain}"), domain.clone()]);
        }
        search.extend(instance.dns.search.iter().cloned());
        search
    }

    /// Whom a machine asks; nobody named means the gateway.
    fn resolvers(&self, instance: &Instance) -> Vec<std::net::Ipv4Addr> {
        let dns = &instance.dns;
        let gateway = (!dns.is_own && !dns.servers.is_empty()).then_some(self.settings.gateway);
        let all = gateway.into_iter().chain(dns.servers.iter().copied());
        all.take(SERVERS).collect()
    }
}

/// The card on the network that every machine has.
fn pod_card(plugged: &Plugged) -> Option<&Card> {
    plugged.cards.iter().find(|card| card.network == CardNetwork::Pod)
}
