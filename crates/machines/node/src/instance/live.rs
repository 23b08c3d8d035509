//! What changed in an instance that its machine can follow while it runs.
//!
//! [`changes`] compares the machine as it is with the machine that the instance describes now. What it cannot follow is not its
//! business: whoever changed the template sets `RestartRequired`. Carrying out is in [`mod@apply`].

mod apply;

use fairway_machines_plan::machine::{CardNetwork, CardPlan, DiskPlan, MachinePlan};

pub(crate) use apply::{Applied, NotApplied, apply};

/// Something to be changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// So many sockets have processors.
    Sockets(u32),
    /// Bytes of memory.
    Memory(u64),
    /// A disk comes.
    PlugDisk(Box<DiskPlan>),
    /// A disk goes.
    UnplugDisk(String),
    /// A card comes.
    PlugCard(Box<CardPlan>),
    /// A card goes.
    UnplugCard(String),
    /// A cable is plugged in, or pulled.
    Link {
        /// The card.
        card: String,
        /// In.
        up: bool,
    },
}

impl Change {
    /// A name for it, by which failures are remembered.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Sockets(_) => "sockets".to_owned(),
            Self::Memory(_) => "memory".to_owned(),
            Self::PlugDisk(disk) => format!("disk {}", disk.name),
            Self::UnplugDisk(name) => format!("disk {name}"),
            Self::PlugCard(card) => format!("card {}", card.name),
            Self::UnplugCard(name) | Self::Link { card: name, .. } => format!("card {name}"),
        }
    }
}

/// What a machine has now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Present<'p> {
    pub(crate) plan: &'p MachinePlan,
    /// Sockets that have processors.
    pub(crate) sockets: u32,
    /// Bytes of memory at start, and those that it was last told to have.
    pub(crate) started_memory: u64,
    pub(crate) memory: u64,
}

/// What is to be changed, in the order in which it is done: what goes makes room for what comes.
pub(crate) fn changes(present: Present<'_>, wanted: &MachinePlan) -> Vec<Change> {
    let built = present.plan;
    let mut found = Vec::new();
    for disk in built.disks.iter().filter(|it| it.hotpluggable) {
        if wanted.disk(&disk.name).is_none() {
            found.push(Change::UnplugDisk(disk.name.clone()));
        }
    }
    let card = |plan: &MachinePlan, name: &str| plan.cards.iter().any(|it| it.name == name);
    for old in built.cards.iter().filter(|it| is_secondary(it)) {
        if !card(wanted, &old.name) {
            found.push(Change::UnplugCard(old.name.clone()));
        }
    }
    for disk in wanted.disks.iter().filter(|it| it.hotpluggable) {
        if built.disk(&disk.name).is_none() {
            found.push(Change::PlugDisk(Box::new(disk.clone())));
        }
    }
    for new in &wanted.cards {
        match built.cards.iter().find(|it| it.name == new.name) {
            None if is_secondary(new) => found.push(Change::PlugCard(Box::new(new.clone()))),
            Some(old) if old.link_up != new.link_up => found.push(Change::Link {
                card: new.name.clone(),
                up: new.link_up,
            }),
            _ => {}
        }
    }
    let sockets = wanted.cpu.sockets.min(built.cpu.max_sockets);
    if sockets > present.sockets {
        found.push(Change::Sockets(sockets));
    }
    if let Some(growth) = built.memory.growth {
        let memory = wanted.memory.guest.clamp(present.started_memory, growth.most);
        if memory != present.memory {
            found.push(Change::Memory(memory));
        }
    }
    found
}

/// The first card stays: it is how the guest is reached.
fn is_secondary(card: &CardPlan) -> bool {
    matches!(card.network, CardNetwork::Multus { default: false, .. })
}

#[cfg(test)]
mod tests {
    use fairway_machines_plan::plan::{Capabilities, Origin, plan};
    use fairway_machines_plan::settings::Settings;
    use fairway_machines_plan::view;
    use serde_json::{Value, json};

    use super::*;

    fn planned(change: fn(&mut Value)) -> MachinePlan {
        let mut object = json!({
            "metadata": {"name": "web", "namespace": "n"},
            "spec": {
                "architecture": "amd64",
                "domain": {
                    "cpu": {"sockets": 1, "maxSockets": 4, "cores": 2, "threads": 1},
                    "memory": {"guest": "1Gi", "maxGuest": "4Gi"},
                    "devices": {
                        "disks": [{"name": "root", "disk": {"bus": "virtio"}}, {"name": "old", "disk": {"bus": "scsi"}}],
                        "interfaces": [{"name": "default", "masquerade": {}}, {"name": "lan", "bridge": {}}],
                    },
                },
                "networks": [{"name": "default", "pod": {}}, {"name": "lan", "multus": {"networkName": "lan"}}],
                "volumes": [
                    {"name": "root", "dataVolume": {"name": "root"}},
                    {"name": "old", "dataVolume": {"name": "old", "hotpluggable": true}},
                ],
            },
        });
        change(&mut object["spec"]);
        let vmi = view::read("VirtualMachineInstance", &object).unwrap();
        plan(
            &vmi,
            Origin::default(),
            &Capabilities::default(),
            &Settings::default(),
        )
    }

    #[test]
    fn what_can_be_followed_is_followed() {
        type Case = (&'static str, fn(&mut Value), &'static [&'static str]);
        let cases: [Case; 9] = [
            ("nothing", |_| {}, &[]),
            (
                "sockets",
                |it| it["domain"]["cpu"]["sockets"] = json!(3),
                &["Sockets(3)"],
            ),
            (
                "more sockets than there can be",
                |it| it["domain"]["cpu"]["sockets"] = json!(9),
                &["Sockets(4)"],
            ),
            (
                "memory",
                |it| it["domain"]["memory"]["guest"] = json!("2Gi"),
                &["Memory(2147483648)"],
            ),
            (
                "less memory than at start",
                |it| it["domain"]["memory"]["guest"] = json!("512Mi"),
                &[],
            ),
            (
                "a disk comes, another goes",
                |it| {
                    it["domain"]["devices"]["disks"][1]["name"] = json!("new");
                    it["volumes"][1] = json!({"name": "new", "persistentVolumeClaim": {"claimName": "new", "hotpluggable": true}});
                },
                &["UnplugDisk(\"old\")", "PlugDisk(new)"],
            ),
            (
                "a disk that was there from the start stays",
                |it| {
                    it["domain"]["devices"]["disks"] = json!([it["domain"]["devices"]["disks"][1]]);
                    it["volumes"] = json!([it["volumes"][1]]);
                },
                &[],
            ),
            (
                "a card goes, another comes",
                |it| {
                    it["domain"]["devices"]["interfaces"][1]["state"] = json!("absent");
                    let push = |list: &mut Value, item: Value| list.as_array_mut().unwrap().push(item);
                    push(
                        &mut it["domain"]["devices"]["interfaces"],
                        json!({"name": "dmz", "bridge": {}}),
                    );
                    push(
                        &mut it["networks"],
                        json!({"name": "dmz", "multus": {"networkName": "dmz"}}),
                    );
                },
                &["UnplugCard(\"lan\")", "PlugCard(dmz)"],
            ),
            (
                "a cable is pulled",
                |it| it["domain"]["devices"]["interfaces"][0]["state"] = json!("down"),
                &["Link { card: \"default\", up: false }"],
            ),
        ];
        let built = planned(|_| {});
        let present = Present {
            plan: &built,
            sockets: 1,
            started_memory: 1 << 30,
            memory: 1 << 30,
        };
        for (name, change, expected) in cases {
            let wanted = planned(change);
            let found: Vec<String> = changes(present, &wanted)
                .iter()
                .map(|it| match it {
                    Change::PlugDisk(disk) => format!("PlugDisk({})", disk.name),
                    Change::PlugCard(card) => format!("PlugCard({})", card.name),
                    other => format!("{other:?}"),
                })
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}
