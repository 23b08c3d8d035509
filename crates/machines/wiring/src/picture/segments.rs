//! Cards on networks that NetworkAttachmentDefinitions describe.
//!
//! A bridge and a VLAN in it are one network within a workspace, whichever definition names them. Between workspaces nothing is shared.

use std::collections::HashMap;

use fairway_api::kubevirt::{NETWORK_ATTACHMENT_DEFINITION, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::ObjectKey;
use fairway_machines_frames::topology::SegmentCard;
use fairway_machines_plan::machine::CardNetwork;

use super::{Drawing, Remark, World, named};

impl Drawing<'_> {
    pub(super) fn segments(&self, world: &World, remarks: &mut Vec<Remark>) -> Vec<SegmentCard> {
        let mut cards = Vec::new();
        let mut macs: HashMap<_, &ObjectKey> = HashMap::new();
        for (key, plugged) in &world.plugged {
            for card in &plugged.cards {
                let CardNetwork::Multus { namespace, name, .. } = &card.network else {
                    continue;
                };
                let mut complain = |reason: &'static str, why: String| {
                    let message = format!("The card {} is not connected: {why}", card.name);
                    remarks.push(Remark::about(&VIRTUAL_MACHINE_INSTANCE, key, reason, message));
                };
                let at = ObjectKey::new(&key.workspace, namespace, name);
                let bridge = match world.attachments.get(&at).map(AsRef::as_ref) {
                    Some(found) => match &found.0 {
                        Ok(bridge) => bridge,
                        Err(why) => {
                            complain("NetworkNotServed", format!("{why}."));
                            continue;
                        }
                    },
                    None => {
                        let kind = NETWORK_ATTACHMENT_DEFINITION.kind;
                        complain(
                            "NetworkNotFound",
                            format!("there is no {kind} {namespace}/{name}."),
                        );
                        continue;
                    }
                };
                if card.mac.is_group() {
                    complain(
                        "InvalidMacAddress",
                        format!("{} is the address of a group.", card.mac),
                    );
                    continue;
                }
                let segment = self.numbers.segment(&key.workspace, bridge);
                if let Some(other) = macs.get(&(segment, card.mac)) {
                    let other = named("machine", other, key);
                    complain(
                        "MacAddressConflict",
                        format!(
                            "{other} has the MAC address {} on the same network, too.",
                            card.mac
                        ),
                    );
                    continue;
                }
                macs.insert((segment, card.mac), key);
                cards.push(SegmentCard {
                    segment,
                    mac: card.mac,
                    port: self.numbers.port(&card.socket),
                });
            }
        }
        cards
    }
}
