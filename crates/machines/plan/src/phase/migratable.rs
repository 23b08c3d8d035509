//! Whether an instance can move to another node while it runs.
//!
//! Disks are mirrored and the switch keeps addresses, so that less stands in the way than upstream: claims that one node
//! alone can write, and cards that are on the network as it is, move along.

use crate::view::{Condition, InstanceSpec};

/// The conditions `LiveMigratable` and `StorageLiveMigratable`.
pub fn live_migratable(spec: &InstanceSpec) -> Vec<Condition> {
    let obstacle = obstacle(spec);
    ["LiveMigratable", "StorageLiveMigratable"]
        .into_iter()
        .map(|kind| match &obstacle {
            None => Condition::holds(kind, "", ""),
            Some((reason, message)) => Condition::fails(kind, reason, message.clone()),
        })
        .collect()
}

fn obstacle(spec: &InstanceSpec) -> Option<(&'static str, String)> {
    let devices = &spec.domain.devices;
    if !devices.host_devices.is_empty() || !devices.gpus.is_empty() {
        return Some((
            "HostDeviceNotLiveMigratable",
            "VMI uses a PCI host devices".to_owned(),
        ));
    }
    if devices.interfaces.iter().any(|it| it.sriov.is_some()) {
        let message = "cannot migrate VMI: a network card of the host belongs to it";
        return Some(("InterfaceNotLiveMigratable", message.to_owned()));
    }
    if !devices.filesystems.is_empty() {
        return Some(("VirtIOFSNotLiveMigratable", "VMI uses virtiofs".to_owned()));
    }
    if spec.domain.launch_security.is_some() {
        return Some(("SEVNotLiveMigratable", "VMI uses SEV".to_owned()));
    }
    let host_disk = spec.volumes.iter().find(|it| it.host_disk.is_some())?;
    let message = format!(
        "cannot migrate VMI: volume {} is a file of its node",
        host_disk.name
    );
    Some(("DisksNotLiveMigratable", message))
}
