//! Objects in, picture out.
#![expect(
    clippy::needless_pass_by_value,
    reason = "cases are written where they are used"
)]

mod golden;

use std::cell::RefCell;
use std::fmt::Write as _;

use fairway_machines_frames::packet::TCP;
use fairway_machines_frames::policy::Attempt;
use fairway_machines_plan::machine::CardNetwork;
use serde_json::json;

use super::*;
use crate::kinds;

/// Numbers by the order of asking.
#[derive(Default)]
struct Counted {
    tenants: RefCell<Vec<WorkspaceId>>,
    ports: RefCell<Vec<std::path::PathBuf>>,
}

fn place<T: PartialEq>(list: &RefCell<Vec<T>>, wanted: T) -> u32 {
    let mut list = list.borrow_mut();
    let at = list.iter().position(|known| *known == wanted).unwrap_or_else(|| {
        list.push(wanted);
        list.len() - 1
    });
    u32::try_from(at).unwrap()
}

impl Numbers for Counted {
    fn tenant(&self, workspace: &WorkspaceId) -> Tenant {
        Tenant(place(&self.tenants, workspace.clone()))
    }
    fn port(&self, socket: &Path) -> PortId {
        PortId(place(&self.ports, socket.to_owned()))
    }
}

pub(super) fn workspace(name: &str) -> WorkspaceId {
    WorkspaceId::parse(name).unwrap()
}

impl World {
    /// Takes an object of a workspace in, as the watches would.
    fn take(&mut self, place: &str, mut object: Value) {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or("shop").to_owned();
        let name = metadata["name"].as_str().unwrap().to_owned();
        let kind = object["kind"].as_str().unwrap().to_owned();
        let cluster_wide = kind == "Namespace";
        let key = ObjectKey::new(
            &workspace(place),
            if cluster_wide { "" } else { &namespace },
            &name,
        );
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("{place}-{name}").into();
        }
        match kind.as_str() {
            "VirtualMachineInstance" => {
                let instance = Instance::read(&key, &object);
                self.instances.push((key, Arc::new(instance)));
            }
            "Service" => self.services.push((key, Arc::new(Service::read(&object)))),
            "EndpointSlice" => self.slices.push((key, Arc::new(Slice::read(&object)))),
            "NetworkPolicy" => self.policies.push((key, Arc::new(object["spec"].clone()))),
            "Namespace" => {
                let labels = crate::view::strings(&object, "/metadata/labels");
                self.namespaces.push((key, Arc::new(labels)));
            }
            "NetworkAttachmentDefinition" => {
                self.attachments.insert(key, Arc::new(Attachment::read(&object)));
            }
            other => panic!("{other}"),
        }
    }

    /// A running machine with an address, plugged in here, whose card's MAC address ends like its own address.
    fn machine(&mut self, place: &str, name: &str, last: u8, more: Value) {
        let mut object = json!({
            "kind": "VirtualMachineInstance",
            "metadata": {
                "name": name, "labels": {"app": name}, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"fairway.dev/address": format!("10.88.0.{last}")},
            },
            "spec": {
                "domain": {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},
                "networks": [{"name": "default", "pod": {}}],
            },
            "status": {"phase": "Running", "nodeName": "n1", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        merge(&mut object, &more);
        self.take(place, object);
        let card = Card {
            name: "default".into(),
            mac: Mac([2, 0, 0, 0, 1, last]),
            network: CardNetwork::Pod,
            socket: format!("/run/{place}/{name}/net0").into(),
        };
        self.plug(place, name, card);
    }

    fn plug(&mut self, place: &str, name: &str, card: Card) {
        let key = ObjectKey::new(&workspace(place), "shop", name);
        let plugged = self.plugged.entry(key).or_insert_with(|| Plugged {
            hostname: name.to_owned(),
            cards: Vec::new(),
        });
        plugged.cards.push(card);
    }

    fn service(&mut self, place: &str, name: &str, address: &str, spec: Value) {
        let mut object = json!({
            "kind": "Service",
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"clusterIP": address, "clusterIPs": [address], "ports": [{"name": "http", "port": 80}]},
        });
        merge(&mut object["spec"], &spec);
        let status = object["spec"].as_object_mut().unwrap().shift_remove("status");
        object["status"] = status.unwrap_or_default();
        self.take(place, object);
    }

    /// A slice of a Service: addresses, each with whether it is ready and its node.
    fn slice(&mut self, place: &str, service: &str, port: u16, endpoints: &[(&str, bool, &str)]) {
        let endpoints: Vec<Value> = endpoints
            .iter()
            .map(|(address, ready, node)| {
                json!({"addresses": [address], "conditions": {"ready": ready}, "nodeName": node})
            })
            .collect();
        self.take(
            place,
            json!({
                "kind": "EndpointSlice",
                "metadata": {"name": format!("{service}-{port}"), "labels": {"kubernetes.io/service-name": service}},
                "addressType": "IPv4", "ports": [{"name": "http", "port": port}], "endpoints": endpoints,
            }),
        );
    }
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn draw(world: &World) -> Picture {
    let settings = Settings::default();
    let numbers = Counted::default();
    let drawing = Drawing {
        settings: &settings,
        node: "n1",
        numbers: &numbers,
        pools: &crate::pools::Pools::new(&settings).all(),
    };
    drawing.draw(world)
}

/// The picture as text, a line for each thing.
fn shown(picture: &Picture) -> String {
    let mut text = String::new();
    for guest in &picture.plan.guests {
        let ports: Vec<u32> = guest.ports.iter().map(|port| port.0).collect();
        let _ = writeln!(
            text,
            "guest {} tenant {} mac {} ports {ports:?} {:?} search {}",
            guest.address,
            guest.tenant.0,
            guest.mac,
            guest.hostname,
            guest.search.join(" ")
        );
        if let Some(accepts) = &guest.accepts {
            let _ = writeln!(text, "  accepts {accepts:?}");
        }
        if !guest.resolvers.is_empty() || !guest.options.is_empty() {
            let _ = writeln!(
                text,
                "  resolvers {:?} options {:?}",
                guest.resolvers, guest.options
            );
        }
    }
    let segments = RefCell::default();
    for card in &picture.plan.cards {
        let ports: Vec<u32> = card.ports.iter().map(|port| port.0).collect();
        // By the order in which they come: their names are hashes.
        let segment = place(&segments, card.segment);
        let _ = writeln!(text, "card {} segment {segment} ports {ports:?}", card.mac);
    }
    for port in &picture.plan.services {
        let behind: Vec<String> = (port.backends.iter())
            .map(|backend| format!("{}:{}", backend.address, backend.port))
            .collect();
        let _ = writeln!(
            text,
            "service tenant {} {}:{}/{} -> {}{}",
            port.tenant.0,
            port.address,
            port.port,
            crate::view::protocol_name(port.protocol),
            behind.join(" "),
            if port.by_client { " by client" } else { "" }
        );
    }
    for door in &picture.doors {
        let allowed = match &door.allowed {
            Some(allowed) => format!(" only {allowed:?}"),
            None => String::new(),
        };
        let protocol = crate::view::protocol_name(door.protocol);
        let _ = writeln!(text, "door {}/{protocol} -> {}{allowed}", door.at, door.to);
    }
    for (workspace, names) in &picture.names {
        for service in &names.services {
            let _ = writeln!(
                text,
                "name {workspace} {}.{} {:?}",
                service.name, service.namespace, service.kind
            );
        }
        for machine in &names.machines {
            let _ = writeln!(
                text,
                "machine {workspace} {}.{} {:?} {:?} {}",
                machine.name, machine.namespace, machine.hostname, machine.subdomain, machine.address
            );
        }
    }
    for remark in &picture.remarks {
        let _ = writeln!(
            text,
            "remark {} {} {}: {}",
            remark.kind, remark.key, remark.reason, remark.message
        );
    }
    text
}

/// Whether policies let a connection pass.
fn passes(picture: &Picture, from: &str, to: &str, port: u16) -> bool {
    let attempt = Attempt {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        protocol: TCP,
        port,
    };
    let policies = &picture.plan.policies;
    policies
        .of(attempt.from)
        .is_none_or(|policy| policy.lets_out(&attempt))
        && policies
            .of(attempt.to)
            .is_none_or(|policy| policy.admits(&attempt))
}

#[test]
fn policies_select_machines_of_their_own_workspace() {
    let mut world = World::default();
    for place in ["root", "team"] {
        for (name, labels) in [("shop", json!({"kind": "shop"})), ("lab", json!({"kind": "lab"}))] {
            world.take(
                place,
                json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
            );
        }
    }
    world.machine("root", "web", 2, json!({}));
    world.machine("root", "db", 3, json!({}));
    world.machine("root", "probe", 4, json!({"metadata": {"namespace": "lab"}}));
    world.machine("team", "web", 5, json!({}));
    world.machine("team", "db", 6, json!({}));
    world.take(
        "root",
        json!({"kind": "NetworkPolicy", "metadata": {"name": "db"}, "spec": {
            "podSelector": {"matchLabels": {"app": "db"}},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"vm.kubevirt.io/name": "web"}}},
                {"namespaceSelector": {"matchLabels": {"kind": "lab"}}}, {"ipBlock": {"cidr": "fd00::/8"}}],
                "ports": [{"port": 5432}]}],
        }}),
    );
    let picture = draw(&world);
    for (why, from, to, port, expected) in [
        (
            "a neighbour whom a label allows",
            "10.88.0.2",
            "10.88.0.3",
            5432,
            true,
        ),
        ("on another port", "10.88.0.2", "10.88.0.3", 22, false),
        (
            "from a namespace that is allowed",
            "10.88.0.4",
            "10.88.0.3",
            5432,
            true,
        ),
        ("of another workspace", "10.88.0.5", "10.88.0.3", 5432, false),
        (
            "nobody selects the other workspace's",
            "10.88.0.5",
            "10.88.0.6",
            22,
            true,
        ),
        ("nor the one that opens", "10.88.0.3", "10.88.0.2", 22, true),
    ] {
        assert_eq!(passes(&picture, from, to, port), expected, "{why}");
    }
    let [remark] = picture.remarks.as_slice() else {
        panic!("{:?}", picture.remarks);
    };
    assert_eq!(
        (remark.kind, remark.reason),
        (kinds::NETWORK_POLICY.kind, "PartlyIgnored")
    );
    assert!(
        remark.message.contains("ipBlock is not an IPv4 network"),
        "{}",
        remark.message
    );
}

#[test]
fn workspaces_without_anything_here_are_not_drawn() {
    let mut world = World::default();
    world.machine("root", "web", 2, json!({}));
    world.service("team", "web", "10.96.0.1", json!({}));
    world.machine("team", "web", 3, json!({}));
    world.plugged.retain(|key, _| key.workspace.is_root());
    let picture = draw(&world);
    assert_eq!((picture.plan.guests.len(), picture.plan.services.len()), (1, 0));
    assert_eq!(picture.names.len(), 1);
}

#[test]
fn every_picture_is_a_topology() {
    // Whatever contradicts itself, the switch can use the rest.
    let mut world = World::default();
    world.machine("root", "one", 2, json!({}));
    world.machine(
        "root",
        "same-address",
        2,
        json!({"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}}),
    );
    world.machine(
        "team",
        "other",
        2,
        json!({"metadata": {"creationTimestamp": "2026-01-03T00:00:00Z"}}),
    );
    world.machine("root", "gateway", 1, json!({}));
    world.machine(
        "root",
        "far",
        3,
        json!({"metadata": {"annotations": {"fairway.dev/address": "192.0.2.1"}}}),
    );
    world.machine("root", "fine", 4, json!({}));
    for (name, mac) in [("fine", [1, 0, 0, 0, 0, 1]), ("one", [2, 0, 0, 0, 1, 2])] {
        let key = ObjectKey::new(&workspace("root"), "shop", name);
        world.plugged.get_mut(&key).unwrap().cards[0].mac = Mac(mac);
    }
    let picture = draw(&world);
    let reasons: Vec<(&str, &str)> = (picture.remarks.iter())
        .map(|remark| (remark.key.name.as_str(), remark.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            ("far", "AddressOutsideNetwork"),
            ("fine", "InvalidMacAddress"),
            ("gateway", "AddressOutsideNetwork"),
            ("same-address", "AddressConflict"),
            ("other", "AddressConflict"),
        ]
    );
    let other = picture.remarks.last().unwrap();
    assert!(
        other.message.contains("a machine of another workspace"),
        "{}",
        other.message
    );
    fairway_machines_frames::Topology::new(1, picture.plan).unwrap();
}
