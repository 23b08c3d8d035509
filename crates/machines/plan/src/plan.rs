//! From a VirtualMachineInstance to a machine.
//!
//! The object is complete ([`crate::defaults`]) and valid ([`crate::validate`]). What it asks for and cannot be had ends
//! up in [`MachinePlan::unsupported`], each with its field: nothing is dropped in silence.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::argv::{Layout, LayoutError, Place};
use crate::identity;
use crate::machine::MachinePlan;
use crate::pci::PciAddress;
use crate::settings::Settings;
use crate::unsupported::Wishes;
use crate::view::{InstanceSpec, VirtualMachineInstance};

mod cards;
mod compute;
mod devices;
mod disks;
mod firmware;

/// The annotation with limits for disks, as JSON: `{"rootdisk": {"iops": 500}}`.
pub const DISK_LIMITS: &str = "fairway.dev/disk-limits";

/// Seconds that a guest may take to shut down if nobody says otherwise.
const GRACE_SECONDS: i64 = 30;

/// What a node can do, as far as machines can ask for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Guests run on the processor itself.
    pub kvm: bool,
    /// Sizes of large pages that the host keeps ready, in bytes.
    pub hugepages: BTreeSet<u64>,
    /// Host processors can be given to one machine.
    pub dedicated_cpus: bool,
    /// TPMs can be emulated.
    pub tpm: bool,
    /// UEFI firmware is there.
    pub uefi: bool,
    /// UEFI firmware that starts only signed code is there.
    pub secure_boot: bool,
    /// QEMU's version.
    pub qemu: (u32, u32),
}

/// Where a machine belongs, which its object does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'n> {
    /// Identity of the workspace.
    pub workspace: &'n str,
    /// Counts up when a MAC address turned out to be taken.
    pub mac_attempt: u32,
}

/// Plans a machine.
pub fn plan(
    vmi: &VirtualMachineInstance,
    origin: Origin<'_>,
    host: &Capabilities,
    settings: &Settings,
) -> MachinePlan {
    let mut wishes = Wishes::default();
    let spec = &vmi.spec;
    let domain = &spec.domain;
    let cpu = compute::cpu(domain, host, &mut wishes);
    let disks = disks::disks(vmi, &cpu, &mut wishes);
    let uuid = domain
        .firmware
        .as_ref()
        .map(|it| it.uuid.clone())
        .filter(|it| !it.is_empty());
    let name = &vmi.metadata.name;
    unserved(spec, &mut wishes);
    let mut plan = MachinePlan {
        namespace: vmi.metadata.namespace.clone(),
        name: name.clone(),
        hostname: hostname(vmi),
        uuid: uuid.unwrap_or_else(|| identity::firmware_uuid(name)),
        board: compute::board(domain, host, &mut wishes),
        memory: compute::memory(spec, host, &mut wishes),
        firmware: firmware::firmware(domain, host, &mut wishes),
        smbios: firmware::smbios(domain),
        clock: compute::clock(domain, host, &mut wishes),
        cards: cards::cards(vmi, origin, host, &mut wishes),
        devices: devices::devices(domain, host, settings, &mut wishes),
        hotplug: !domain.devices.disable_hotplug,
        transitional: domain.devices.use_virtio_transitional == Some(true),
        start_paused: spec.start_strategy.as_deref() == Some("Paused"),
        grace_seconds: u64::try_from(spec.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS))
            .unwrap_or(0),
        io_threads: disks.io_threads,
        disks: disks.disks,
        cpu,
        unsupported: Vec::new(),
    };
    placement(&plan, spec, &mut wishes);
    plan.unsupported = wishes.sorted();
    plan
}

/// Addresses that somebody asked for are either got or named.
fn placement(plan: &MachinePlan, spec: &InstanceSpec, wishes: &mut Wishes) {
    let layout = match Layout::of(plan) {
        Ok(layout) => layout,
        Err(error) => {
            wishes.blocks("domain.devices", error.to_string());
            return;
        }
    };
    let got = |place: Result<Place, LayoutError>| {
        let address = place.ok().and_then(Place::guest_address);
        address.as_deref().and_then(PciAddress::parse)
    };
    let cards = spec.domain.devices.interfaces.iter().enumerate();
    let cards = cards.map(|(at, it)| {
        (
            format!("interfaces[{at}].pciAddress"),
            &it.pci_address,
            layout.card(&it.name),
        )
    });
    let disks = spec
        .domain
        .devices
        .disks
        .iter()
        .enumerate()
        .filter_map(|(at, it)| {
            let target = it.disk.as_ref()?;
            Some((
                format!("disks[{at}].disk.pciAddress"),
                &target.pci_address,
                layout.disk(&it.name),
            ))
        });
    for (field, asked, place) in cards.chain(disks).filter(|(_, asked, _)| !asked.is_empty()) {
        if PciAddress::parse(asked) != got(place) {
            let reason = format!("{asked} cannot be given; buses are counted from 01, with one device each");
            wishes.replaced(format!("domain.devices.{field}"), reason);
        }
    }
}

/// What the guest is called: `hostname`, or the machine's name as far as that is a name for a host.
fn hostname(vmi: &VirtualMachineInstance) -> String {
    if !vmi.spec.hostname.is_empty() {
        return vmi.spec.hostname.clone();
    }
    let name = vmi.metadata.name.split('.').next().unwrap_or_default();
    let short: String = name.chars().take(63).collect();
    short.trim_end_matches('-').to_owned()
}

/// Fields without a home in any part of the plan.
fn unserved(spec: &InstanceSpec, wishes: &mut Wishes) {
    if spec
        .domain
        .launch_security
        .as_ref()
        .is_some_and(|it| !it.is_null())
    {
        wishes.blocks(
            "domain.launchSecurity",
            "memory encryption is not available on this node",
        );
    }
    if !spec.scheduler_name.is_empty() && spec.scheduler_name != "default-scheduler" {
        wishes.replaced(
            "schedulerName",
            format!(
                "there is no scheduler {:?}; the built-in one places the machine",
                spec.scheduler_name
            ),
        );
    }
    if !spec.priority_class_name.is_empty() {
        wishes.ignored(
            "priorityClassName",
            "machines do not take each other's place; it counts for the claims of its disks",
        );
    }
    for (at, volume) in spec.volumes.iter().enumerate() {
        if volume.memory_dump.is_some() {
            let reason = "memory is not dumped; take a VirtualMachineSnapshot, which keeps it";
            wishes.ignored(format!("volumes[{at}].memoryDump"), reason);
        }
    }
    let each = |value: &'_ Option<Value>| {
        value
            .as_ref()
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    for (at, toleration) in each(&spec.tolerations).iter().enumerate() {
        if !toleration["tolerationSeconds"].is_null() {
            let reason = "a machine that bears a taint bears it for good";
            wishes.ignored(format!("tolerations[{at}].tolerationSeconds"), reason);
        }
    }
    for (at, constraint) in each(&spec.topology_spread_constraints).iter().enumerate() {
        if constraint["nodeTaintsPolicy"] == "Honor" {
            let reason = "nodes count whatever their taints are";
            wishes.ignored(
                format!("topologySpreadConstraints[{at}].nodeTaintsPolicy"),
                reason,
            );
        }
    }
    if spec
        .dns_config
        .as_ref()
        .is_some_and(|it| it["options"].as_array().is_some_and(|it| !it.is_empty()))
    {
        wishes.ignored(
            "dnsConfig.options",
            "guests learn of name servers by DHCP, which has no such options; use cloud-init",
        );
    }
}

#[cfg(test)]
pub(crate) mod tests;
