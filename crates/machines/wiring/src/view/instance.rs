//! VirtualMachineInstances.

use std::net::Ipv4Addr;

use fairway_controller::ObjectKey;
use fairway_machines_frames::address::Mac;
use fairway_machines_plan::identity::{CardOwner, mac_address};
use fairway_machines_plan::view::{self, DhcpOptions, Interface, VirtualMachineInstance};
use serde_json::Value;

use super::{NamedPort, protocol, strings};
use crate::ADDRESS_ANNOTATION;

/// The longest label of a name in DNS.
const MAX_LABEL: usize = 63;

/// What is kept of an instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Instance {
    pub(crate) uid: String,
    pub(crate) created: String,
    /// Those that KubeVirt puts on the pod of an instance, by which Services and policies select it.
    pub(crate) labels: Value,
    /// What its annotation says.
    pub(crate) address: Option<Ipv4Addr>,
    /// Its card on the network that every machine has; none if it has no such card.
    pub(crate) card: Option<PodCard>,
    /// Its cards on networks of NetworkAttachmentDefinitions.
    pub(crate) cards: Vec<OtherCard>,
    pub(crate) node: String,
    /// The node that it moves to.
    pub(crate) target: Option<String>,
    /// It has ended, and will not run again.
    pub(crate) is_final: bool,
    pub(crate) is_deleting: bool,
    pub(crate) is_ready: bool,
    pub(crate) hostname: String,
    pub(crate) subdomain: String,
    /// Ports with names, of all cards.
    pub(crate) ports: Vec<NamedPort>,
    pub(crate) dns: Dns,
}

/// What an instance says about names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dns {
    /// `Default` and `None` do without the names of the installation's Services.
    pub(crate) is_cluster_first: bool,
    /// Nobody else is asked than whom it names.
    pub(crate) is_own: bool,
    pub(crate) servers: Vec<Ipv4Addr>,
    pub(crate) search: Vec<String>,
}

/// A card on the network that every machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodCard {
    pub(crate) name: String,
    pub(crate) mac: Option<Mac>,
    /// The ports that are let through; all if none are named.
    pub(crate) accepts: Option<Vec<(u8, u16)>>,
    /// What DHCP tells beside the usual, by number.
    pub(crate) options: Vec<(u8, Vec<u8>)>,
}

/// A card on the network of a NetworkAttachmentDefinition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherCard {
    pub(crate) mac: Mac,
    /// The definition's.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Instance {
    /// Whether it has a card on any network.
    pub(crate) fn has_cards(&self) -> bool {
        self.card.is_some() || !self.cards.is_empty()
    }

    /// Reads an object.
    pub(crate) fn read(key: &ObjectKey, object: &Value) -> Self {
        let Ok(instance) = view::read::<VirtualMachineInstance>("VirtualMachineInstance", object) else {
            return Self::default();
        };
        let metadata = &instance.metadata;
        let status = &instance.status;
        let hostname = hostname(&key.name, &instance.spec.hostname);
        let interfaces = &instance.spec.domain.devices.interfaces;
        let card = pod_card(key, &instance);
        Self {
            labels: labels(object, &key.name, &hostname),
            address: metadata
                .annotations
                .get(ADDRESS_ANNOTATION)
                .and_then(|text| text.parse().ok()),
            card,
            cards: other_cards(key, &instance),
            node: status.node_name.clone(),
            target: status
                .migration_state
                .as_ref()
                .and_then(|state| target(state, &status.node_name)),
            is_final: matches!(status.phase.as_str(), "Succeeded" | "Failed"),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_ready: status
                .conditions
                .iter()
                .any(|condition| condition.kind == "Ready" && condition.status == "True"),
            subdomain: instance.spec.subdomain.clone(),
            ports: interfaces.iter().flat_map(named_ports).collect(),
            dns: dns(&instance.spec.dns_policy, instance.spec.dns_config.as_ref()),
            uid: metadata.uid.clone(),
            created: metadata.creation_timestamp.clone().unwrap_or_default(),
            hostname,
        }
    }
}

/// Where an instance moves to, if it does.
fn target(state: &Value, node: &str) -> Option<String> {
    let target = state.get("targetNode")?.as_str()?;
    let has_failed = state.get("failed").and_then(Value::as_bool) == Some(true);
    (!has_failed && !target.is_empty() && target != node).then(|| target.to_owned())
}

/// What a guest is called, as KubeVirt finds it.
pub(crate) fn hostname(name: &str, wanted: &str) -> String {
    if !wanted.is_empty() {
        return wanted.to_owned();
    }
    let first = name.split('.').next().unwrap_or(name);
    first.get(..MAX_LABEL).unwrap_or(first).to_owned()
}

/// An instance's own labels, and those that only its pod would have.
fn labels(object: &Value, name: &str, hostname: &str) -> Value {
    let mut labels = strings(object, "/metadata/labels");
    labels["kubevirt.io"] = "virt-launcher".into();
    labels["kubevirt.io/created-by"] = super::text(object, "/metadata/uid").into();
    labels["vm.kubevirt.io/name"] = hostname.into();
    if name.len() <= MAX_LABEL {
        // Newer clients expose machines by this one.
        labels["vmi.kubevirt.io/id"] = name.into();
    }
    labels
}

fn named_ports(interface: &Interface) -> impl Iterator<Item = NamedPort> {
    interface.ports.iter().filter_map(|port| {
        Some(NamedPort {
            name: port.name.clone(),
            protocol: protocol(&port.protocol)?,
            port: u16::try_from(port.port).ok().filter(|port| *port != 0)?,
        })
    })
}

/// The address of a card: its author's, or the one that follows from names.
fn mac_of(key: &ObjectKey, interface: &Interface) -> Option<Mac> {
    let mac = if interface.mac_address.is_empty() {
        mac_address(&CardOwner {
            workspace: key.workspace.as_str(),
            namespace: &key.namespace,
            machine: &key.name,
            interface: &interface.name,
            attempt: 0,
        })
    } else {
        interface.mac_address.to_ascii_lowercase().replace('-', ":")
    };
    mac.parse().ok()
}

fn other_cards(key: &ObjectKey, instance: &VirtualMachineInstance) -> Vec<OtherCard> {
    let spec = &instance.spec;
    let cards = spec.networks.iter().filter_map(|network| {
        let wanted = &network.multus.as_ref()?.network_name;
        let interface = (spec.domain.devices.interfaces.iter())
            .find(|interface| interface.name == network.name && interface.state != "absent")?;
        let own = (key.namespace.as_str(), wanted.as_str());
        let (namespace, name) = wanted.split_once('/').unwrap_or(own);
        Some(OtherCard {
            mac: mac_of(key, interface)?,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    });
    cards.collect()
}

fn pod_card(key: &ObjectKey, instance: &VirtualMachineInstance) -> Option<PodCard> {
    let spec = &instance.spec;
    let network = spec.networks.iter().find(|network| network.pod.is_some())?;
    let interface = (spec.domain.devices.interfaces.iter())
        .find(|interface| interface.name == network.name && interface.state != "absent")?;
    // As upstream: only a translation has ports that it lets through.
    let is_translated = interface.bridge.is_none();
    let accepts: Vec<(u8, u16)> = named_ports(interface)
        .map(|port| (port.protocol, port.port))
        .collect();
    Some(PodCard {
        name: interface.name.clone(),
        mac: mac_of(key, interface),
        accepts: (is_translated && !interface.ports.is_empty()).then_some(accepts),
        options: interface
            .dhcp_options
            .as_ref()
            .map(dhcp_options)
            .unwrap_or_default(),
    })
}

/// The options that an author may choose, by their numbers.
fn dhcp_options(wanted: &DhcpOptions) -> Vec<(u8, Vec<u8>)> {
    const TIME_SERVERS: u8 = 42;
    const TFTP_SERVER: u8 = 66;
    const BOOT_FILE: u8 = 67;
    let mut options = vec![
        (TFTP_SERVER, wanted.tftp_server_name.as_bytes().to_vec()),
        (BOOT_FILE, wanted.boot_file_name.as_bytes().to_vec()),
    ];
    let servers = wanted.ntp_servers.iter();
    let servers = servers.filter_map(|text| text.parse::<Ipv4Addr>().ok());
    options.push((TIME_SERVERS, servers.flat_map(|it| it.octets()).collect()));
    for private in &wanted.private_options {
        if let Ok(number @ 224..=254) = u8::try_from(private.option) {
            options.push((number, private.value.as_bytes().to_vec()));
        }
    }
    options.retain(|(_, value)| !value.is_empty());
    options
}

fn dns(policy: &str, config: Option<&Value>) -> Dns {
    let texts = |field: &str| {
        let list = config.and_then(|config| config.get(field)?.as_array());
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    Dns {
        is_cluster_first: !matches!(policy, "Default" | "None"),
        is_own: policy == "None",
        servers: texts("nameservers")
            .iter()
            .filter_map(|it| it.parse().ok())
            .collect(),
        search: texts("searches"),
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;
    use fairway_machines_frames::packet::{TCP, UDP};
    use serde_json::json;

    use super::*;

    fn read(object: &Value) -> Instance {
        let key = ObjectKey::new(&WorkspaceId::root(), "shop", "web.eu");
        Instance::read(&key, object)
    }

    #[test]
    fn an_instance_is_what_decisions_need() {
        let found = read(&json!({
            "metadata": {
                "name": "web.eu", "uid": "u", "labels": {"app": "web"},
                "annotations": {"fairway.dev/address": "10.88.3.4"},
            },
            "spec": {
                "subdomain": "pool",
                "domain": {"devices": {"interfaces": [
                    {"name": "default", "masquerade": {}, "macAddress": "02-00-00-00-00-09",
                     "ports": [{"name": "http", "port": 80}, {"port": 53, "protocol": "UDP"}]},
                    {"name": "lan", "bridge": {}},
                ]}},
                "networks": [{"name": "lan", "multus": {"networkName": "lan"}}, {"name": "default", "pod": {}}],
            },
            "status": {
                "phase": "Running", "nodeName": "n1", "conditions": [{"type": "Ready", "status": "True"}],
                "migrationState": {"targetNode": "n2"},
            },
        }));
        assert_eq!(found.target.as_deref(), Some("n2"));
        assert_eq!(
            (
                found.hostname.as_str(),
                found.subdomain.as_str(),
                found.node.as_str()
            ),
            ("web", "pool", "n1")
        );
        assert_eq!(found.address, Some(Ipv4Addr::new(10, 88, 3, 4)));
        assert!(found.is_ready && !found.is_final && !found.is_deleting);
        assert_eq!(found.ports.len(), 2);
        let card = found.card.unwrap();
        assert_eq!(card.mac.unwrap().to_string(), "02:00:00:00:00:09");
        assert_eq!(card.accepts, Some(vec![(TCP, 80), (UDP, 53)]));
        let [lan] = found.cards.as_slice() else {
            panic!("{:?}", found.cards);
        };
        assert_eq!((lan.namespace.as_str(), lan.name.as_str()), ("shop", "lan"));
        for (label, value) in [
            ("app", "web"),
            ("kubevirt.io", "virt-launcher"),
            ("kubevirt.io/created-by", "u"),
            ("vm.kubevirt.io/name", "web"),
            ("vmi.kubevirt.io/id", "web.eu"),
        ] {
            assert_eq!(found.labels[label], value, "{label}");
        }
    }

    #[test]
    fn only_a_translation_lets_single_ports_through() {
        for (interface, accepts, why) in [
            (json!({"name": "d", "masquerade": {}}), None, "no ports are named"),
            (
                json!({"name": "d", "masquerade": {}, "ports": [{"port": 80}]}),
                Some(vec![(TCP, 80)]),
                "one is",
            ),
            (
                json!({"name": "d", "bridge": {}, "ports": [{"port": 80}]}),
                None,
                "a bridge carries everything",
            ),
            (
                json!({"name": "d", "masquerade": {}, "ports": [{"port": 0}]}),
                Some(vec![]),
                "what is no port opens nothing",
            ),
        ] {
            let found = read(&json!({"metadata": {}, "spec": {
                "domain": {"devices": {"interfaces": [interface]}}, "networks": [{"name": "d", "pod": {}}]}}));
            assert_eq!(found.card.unwrap().accepts, accepts, "{why}");
        }
    }

    #[test]
    fn what_dhcp_and_names_say_is_read() {
        let found = read(&json!({"metadata": {}, "spec": {
            "dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.53", "fd00::1"], "searches": ["example.org"]},
            "domain": {"devices": {"interfaces": [{"name": "d", "dhcpOptions": {
                "bootFileName": "pxe", "ntpServers": ["192.0.2.1", "192.0.2.2"],
                "privateOptions": [{"option": 240, "value": "x"}, {"option": 1, "value": "no"}],
            }}]}},
            "networks": [{"name": "d", "pod": {}}],
        }}));
        assert_eq!(
            found.card.unwrap().options,
            [
                (67, b"pxe".to_vec()),
                (42, vec![192, 0, 2, 1, 192, 0, 2, 2]),
                (240, b"x".to_vec())
            ]
        );
        assert!(found.dns.is_own && !found.dns.is_cluster_first);
        assert_eq!(found.dns.servers, [Ipv4Addr::new(192, 0, 2, 53)]);
        assert_eq!(found.dns.search, ["example.org"]);
        assert!(read(&json!({"metadata": {}, "spec": {}})).dns.is_cluster_first);
    }

    #[test]
    fn cards_elsewhere_are_not_on_the_pod_network() {
        for (spec, why) in [
            (json!({}), "no network"),
            (
                json!({"domain": {"devices": {"interfaces": [{"name": "d"}]}}, "networks": [{"name": "d", "multus": {"networkName": "x", "default": true}}]}),
                "another network in its place",
            ),
            (
                json!({"domain": {"devices": {"interfaces": [{"name": "d", "state": "absent"}]}}, "networks": [{"name": "d", "pod": {}}]}),
                "a card that was taken out",
            ),
            (json!({"networks": [{"name": "d", "pod": {}}]}), "no card"),
        ] {
            assert_eq!(read(&json!({"metadata": {}, "spec": spec})).card, None, "{why}");
        }
    }
}
