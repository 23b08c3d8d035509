//! Cards on networks that NetworkAttachmentDefinitions describe.
//!
//! A bridge and a VLAN in it are one network within a workspace, whichever definition names them, over all nodes. Between workspaces
//! nothing is shared. Only networks that a machine of this node is on are drawn.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fairway_api::kubevirt::{NETWORK_ATTACHMENT_DEFINITION, VIRTUAL_MACHINE_INSTANCE};
use fairway_controller::ObjectKey;
use fairway_machines_frames::address::Mac;
use fairway_machines_frames::topology::{SegmentCard, SegmentId};
use fairway_machines_plan::machine::CardNetwork;

use super::{Drawing, Remark, World, named};
use crate::Card;
use crate::view::Instance;

/// A card that wants to be on a network.
struct Wish<'w> {
    key: &'w ObjectKey,
    instance: &'w Instance,
    segment: SegmentId,
    mac: Mac,
    /// The card itself, if it is plugged in here.
    here: Option<&'w Card>,
}

/// Why a card is on no network.
struct Trouble(&'static str, String);

impl Drawing<'_> {
    /// Cards of this node and of others. Of two with one address the older machine's stays, on whichever node, so that every node decides the
    /// same.
    pub(super) fn segments(
        &self,
        world: &World,
        is_here: &dyn Fn(&ObjectKey) -> bool,
        remarks: &mut Vec<Remark>,
    ) -> Vec<SegmentCard> {
        let unknown = Arc::new(Instance::default());
        let instances: HashMap<&ObjectKey, &Arc<Instance>> =
            world.instances.iter().map(|(key, it)| (key, it)).collect();
        let mut complain = |key: &ObjectKey, card: &Card, Trouble(reason, why): Trouble| {
            let message = format!("The card {} is not connected: {why}", card.name);
            remarks.push(Remark::about(&VIRTUAL_MACHINE_INSTANCE, key, reason, message));
        };
        let mut wishes = Vec::new();
        for (key, plugged) in &world.plugged {
            for card in &plugged.cards {
                let CardNetwork::Multus { namespace, name, .. } = &card.network else {
                    continue;
                };
                match segment(world, key, namespace, name, card.mac) {
                    Ok(segment) => wishes.push(Wish {
                        key,
                        instance: instances.get(key).unwrap_or(&&unknown),
                        segment,
                        mac: card.mac,
                        here: Some(card),
                    }),
                    Err(trouble) => complain(key, card, trouble),
                }
            }
        }
        let drawn: BTreeSet<SegmentId> = wishes.iter().map(|wish| wish.segment).collect();
        for (key, instance) in &world.instances {
            if !is_here(key) || world.plugged.contains_key(key) || instance.is_final {
                continue;
            }
            for card in &instance.cards {
                // Their own node tells of what is wrong with them.
                let found = segment(world, key, &card.namespace, &card.name, card.mac);
                if let Some(segment) = found.ok().filter(|it| drawn.contains(it)) {
                    wishes.push(Wish {
                        key,
                        instance,
                        segment,
                        mac: card.mac,
                        here: None,
                    });
                }
            }
        }
        wishes.sort_by(|a, b| (&a.instance.created, a.key).cmp(&(&b.instance.created, b.key)));
        let mut macs: HashMap<(SegmentId, Mac), &ObjectKey> = HashMap::new();
        let mut cards = Vec::new();
        for wish in wishes {
            if let Some(other) = macs.get(&(wish.segment, wish.mac)) {
                if let Some(card) = wish.here {
                    let other = named("machine", other, wish.key);
                    let why = format!(
                        "{other} has the MAC address {} on the same network, too.",
                        wish.mac
                    );
                    complain(wish.key, card, Trouble("MacAddressConflict", why));
                }
                continue;
            }
            macs.insert((wish.segment, wish.mac), wish.key);
            cards.push(SegmentCard {
                segment: wish.segment,
                mac: wish.mac,
                ports: self.ports_of(world, wish.instance, wish.here),
            });
        }
        cards
    }
}

/// The network that a definition describes, for a machine's card.
fn segment(
    world: &World,
    key: &ObjectKey,
    namespace: &str,
    name: &str,
    mac: Mac,
) -> Result<SegmentId, Trouble> {
    let at = ObjectKey::new(&key.workspace, namespace, name);
    let bridge = match world.attachments.get(&at).map(|it| &it.0) {
        Some(Ok(bridge)) => bridge,
        Some(Err(why)) => return Err(Trouble("NetworkNotServed", format!("{why}."))),
        None => {
            let kind = NETWORK_ATTACHMENT_DEFINITION.kind;
            let why = format!("there is no {kind} {namespace}/{name}.");
            return Err(Trouble("NetworkNotFound", why));
        }
    };
    if mac.is_group() {
        let why = format!("{mac} is the address of a group.");
        return Err(Trouble("InvalidMacAddress", why));
    }
    Ok(bridge.segment(&key.workspace))
}
