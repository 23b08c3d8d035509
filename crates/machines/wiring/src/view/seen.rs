//! What nodes are told of machines that run on others: as much as the network needs, and nothing of their specification or annotations, which are
//! their author's own.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::instance::PodCard;
use super::{Instance, NamedPort, OtherCard};

/// A machine as every node may see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Seen {
    node: String,
    /// The node that it moves to.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    created: String,
    labels: Value,
    /// Of its card on the network that every machine has; empty if it has none.
    mac: String,
    hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subdomain: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<(String, u8, u16)>,
    /// The ports that its card lets through; all if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepts: Option<Vec<(u8, u16)>>,
    /// Cards on other networks: address, and namespace and name of the NetworkAttachmentDefinition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cards: Vec<(String, String, String)>,
}

impl Seen {
    /// What is told of an instance; nothing, if it is nowhere or has no card.
    pub(crate) fn of(instance: &Instance) -> Option<Self> {
        if instance.node.is_empty() || instance.is_final || !instance.has_cards() {
            return None;
        }
        let card = instance.card.as_ref();
        let mac = card.and_then(|card| card.mac).map(|mac| mac.to_string());
        let other = |card: &OtherCard| (card.mac.to_string(), card.namespace.clone(), card.name.clone());
        let port = |port: &NamedPort| (port.name.clone(), port.protocol, port.port);
        Some(Self {
            node: instance.node.clone(),
            target: instance.target.clone(),
            created: instance.created.clone(),
            labels: instance.labels.clone(),
            mac: mac.unwrap_or_default(),
            hostname: instance.hostname.clone(),
            subdomain: instance.subdomain.clone(),
            ports: instance.ports.iter().map(port).collect(),
            accepts: card.and_then(|card| card.accepts.clone()),
            cards: instance.cards.iter().map(other).collect(),
        })
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// The instance, as far as it is known. Without a card on the network that every machine has, the address is reserved, and nobody's.
    pub(crate) fn instance(&self, address: Ipv4Addr) -> Instance {
        let port = |(name, protocol, port): &(String, u8, u16)| NamedPort {
            name: name.clone(),
            protocol: *protocol,
            port: *port,
        };
        let other = |(mac, namespace, name): &(String, String, String)| {
            Some(OtherCard {
                mac: mac.parse().ok()?,
                namespace: namespace.clone(),
                name: name.clone(),
            })
        };
        let card = self.mac.parse().ok().map(|mac| PodCard {
            name: String::new(),
            mac: Some(mac),
            accepts: self.accepts.clone(),
            options: Vec::new(),
        });
        Instance {
            created: self.created.clone(),
            labels: self.labels.clone(),
            address: card.is_some().then_some(address),
            card,
            cards: self.cards.iter().filter_map(other).collect(),
            node: self.node.clone(),
            target: self.target.clone(),
            hostname: self.hostname.clone(),
            subdomain: self.subdomain.clone(),
            ports: self.ports.iter().map(port).collect(),
            ..Instance::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::{ObjectKey, WorkspaceId};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_is_told_as_far_as_the_network_needs() {
        let key = ObjectKey::new(&WorkspaceId::root(), "shop", "web");
        let mut object = json!({
            "metadata": {
                "name": "web", "uid": "u", "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"fairway.dev/address": "10.88.3.4", "secret": "word"},
            },
            "spec": {
                "subdomain": "pool",
                "domain": {"devices": {"interfaces": [
                    {"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:07", "ports": [{"name": "http", "port": 80}]},
                    {"name": "lan", "bridge": {}},
                ]}},
                "networks": [{"name": "default", "pod": {}}, {"name": "lan", "multus": {"networkName": "nets/lan"}}],
                "volumes": [{"name": "seed", "cloudInitNoCloud": {"userData": "secret"}}],
            },
            "status": {"phase": "Running", "nodeName": "n1", "migrationState": {"targetNode": "n2"}},
        });
        let instance = Instance::read(&key, &object);
        let seen = Seen::of(&instance).unwrap();
        let text = serde_json::to_string(&seen).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(serde_json::from_str::<Seen>(&text).unwrap(), seen);
        let found = seen.instance("10.88.3.4".parse().unwrap());
        assert_eq!(Seen::of(&found).as_ref(), Some(&seen));
        assert_eq!((found.address, &found.cards), (instance.address, &instance.cards));
        // Of a machine that is on other networks alone no address is told.
        let mut elsewhere = object.clone();
        elsewhere["spec"]["networks"] = json!([{"name": "lan", "multus": {"networkName": "nets/lan"}}]);
        let elsewhere = Seen::of(&Instance::read(&key, &elsewhere)).unwrap();
        let found = elsewhere.instance("10.88.3.4".parse().unwrap());
        assert_eq!(
            (found.address, found.card.is_none(), &found.cards),
            (None, true, &instance.cards)
        );
        // Who is nowhere is not told of.
        object["status"]["phase"] = "Failed".into();
        assert_eq!(Seen::of(&Instance::read(&key, &object)), None);
        object["status"] = json!({"phase": "Pending"});
        assert_eq!(Seen::of(&Instance::read(&key, &object)), None);
    }
}
