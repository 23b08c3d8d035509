//! Network cards: what the machine has, where it is reached, and what the guest makes of it.

use fairway_machines_plan::machine::{CardNetwork, CardPlan};
use fairway_machines_qemu::agent::Interface;
use serde_json::{Map, Value, json};

use super::Seen;

/// More interfaces than this of a guest's own are not told: a guest can make as many as it likes.
const MAX_OWN: usize = 32;
const DOMAIN: &str = "domain";
const AGENT: &str = "guest-agent";

pub(super) fn list(seen: &Seen<'_>) -> Vec<Value> {
    // Before the machine runs there is nothing to be reached.
    if seen.live.is_none() {
        return Vec::new();
    }
    let guests = seen.guest.map_or(&[][..], |it| it.interfaces.as_slice());
    let mut known = Vec::new();
    let mut all = Vec::new();
    for card in &seen.plan.cards {
        let theirs = guests.iter().find(|it| is_of(it, card));
        known.extend(theirs.map(|it| it.name.as_str()));
        all.push(of_card(seen, card, theirs));
    }
    // What the guest has made itself.
    let own = guests
        .iter()
        .filter(|it| it.name != "lo" && !known.contains(&it.name.as_str()));
    all.extend(own.take(MAX_OWN).map(of_guest));
    all
}

fn is_of(theirs: &Interface, card: &CardPlan) -> bool {
    theirs
        .mac
        .as_ref()
        .is_some_and(|it| it.eq_ignore_ascii_case(&card.mac))
}

fn of_card(seen: &Seen<'_>, card: &CardPlan, theirs: Option<&Interface>) -> Value {
    let mut addresses = theirs.map(addresses).unwrap_or_default();
    // On the network that every machine has, its address is what it was given, whatever the guest says.
    let is_main = matches!(
        card.network,
        CardNetwork::Pod | CardNetwork::Multus { default: true, .. }
    );
    if let Some(address) = seen.address.filter(|_| is_main) {
        let address = address.to_string();
        addresses.retain(|it| *it != address);
        addresses.insert(0, address);
    }
    let mut interface = Map::new();
    put_addresses(&mut interface, addresses);
    interface.insert("mac".to_owned(), card.mac.as_str().into());
    interface.insert("name".to_owned(), card.name.as_str().into());
    let source = match theirs {
        Some(theirs) => {
            interface.insert("interfaceName".to_owned(), theirs.name.as_str().into());
            format!("{DOMAIN}, {AGENT}")
        }
        None => DOMAIN.to_owned(),
    };
    interface.insert("infoSource".to_owned(), source.into());
    interface.insert("queueCount".to_owned(), json!(1));
    let link = if card.link_up { "up" } else { "down" };
    interface.insert("linkState".to_owned(), link.into());
    Value::Object(interface)
}

fn of_guest(theirs: &Interface) -> Value {
    let mut interface = Map::new();
    put_addresses(&mut interface, addresses(theirs));
    if let Some(mac) = &theirs.mac {
        interface.insert("mac".to_owned(), mac.as_str().into());
    }
    interface.insert("interfaceName".to_owned(), theirs.name.as_str().into());
    interface.insert("infoSource".to_owned(), AGENT.into());
    Value::Object(interface)
}

/// Addresses without those that mean something on one cable only.
fn addresses(theirs: &Interface) -> Vec<String> {
    let all = theirs.addresses.iter().map(|(address, _)| address);
    all.filter(|it| !it.starts_with("fe80:")).cloned().collect()
}

fn put_addresses(interface: &mut Map<String, Value>, addresses: Vec<String>) {
    if let Some(first) = addresses.first() {
        interface.insert("ipAddress".to_owned(), first.as_str().into());
        interface.insert("ipAddresses".to_owned(), addresses.into());
    }
}
