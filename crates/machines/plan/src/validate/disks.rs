//! Disks: what they are attached to, and in which order they are tried.

use std::collections::{HashMap, HashSet};

use fairway_kernel_scalar::names;

use super::firmware::{MAX_TEXT, is_plain};
use super::{CauseType, Causes};
use crate::pci::PciAddress;
use crate::view::{Disk, InstanceSpec, Volume};

const MIN_BLOCK: u64 = 512;
const MAX_BLOCK: u64 = 2 << 20;

/// Every volume belongs to a disk or a shared directory.
pub(super) fn every_volume_is_used(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let devices = &spec.domain.devices;
    let disks = devices.disks.iter().map(|it| it.name.as_str());
    let known: HashSet<&str> = disks
        .chain(devices.filesystems.iter().map(|it| it.name.as_str()))
        .collect();
    for (index, volume) in spec.volumes.iter().enumerate() {
        if volume.memory_dump.is_none() && !known.contains(volume.name.as_str()) {
            let field = format!("{path}.domain.volumes[{index}].name");
            causes.invalid(&field, format!("{field} '{}' not found.", volume.name));
        }
    }
}

/// Disks and volumes fit together, and no place in the order is taken twice.
pub(super) fn boot_order(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let volumes: HashMap<&str, &Volume> = spec.volumes.iter().map(|it| (it.name.as_str(), it)).collect();
    let mut taken = HashSet::new();
    for (index, disk) in spec.domain.devices.disks.iter().enumerate() {
        let field = format!("{path}.domain.devices.disks[{index}]");
        let volume = volumes.get(disk.name.as_str());
        match volume {
            None => {
                causes.invalid(
                    format!("{field}.name"),
                    format!("{field}.Name '{}' not found.", disk.name),
                );
            }
            Some(volume) => {
                let claim = volume.persistent_volume_claim.is_some() || volume.data_volume.is_some();
                if disk.lun.is_some() && !claim {
                    let field = format!("{field}.lun");
                    let message = format!(
                        "{field} can only be mapped to a DataVolume or PersistentVolumeClaim volume."
                    );
                    causes.invalid(field, message);
                }
            }
        }
        if let Some(order) = disk.boot_order {
            if taken.contains(&order) {
                duplicate_order(&format!("{field}.bootOrder"), causes);
            }
            taken.insert(order);
        }
    }
    for (index, card) in spec.domain.devices.interfaces.iter().enumerate() {
        let Some(order) = card.boot_order else {
            continue;
        };
        if order < 1 {
            let message = format!("{path}[{index}] must have a boot order > 0, if supplied");
            causes.invalid(format!("{path}[{index}].bootOrder"), message);
            continue;
        }
        if taken.contains(&order) {
            duplicate_order(
                &format!("{path}.domain.devices.interfaces[{index}].bootOrder"),
                causes,
            );
        }
        taken.insert(order);
    }
}

fn duplicate_order(field: &str, causes: &mut Causes) {
    causes.invalid(
        field,
        format!("Boot order for {field} already set for a different device."),
    );
}

/// Each disk for itself. `path` is that of the list.
pub(super) fn check(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let disks = &spec.domain.devices.disks;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, disk) in disks.iter().enumerate() {
        let field = format!("{path}[{index}]");
        // Where upstream appends the whole way to a path that has it already, so do we: tools match on it.
        let doubled = format!("{path}.domain.devices.disks[{index}]");
        if let Some(other) = seen.get(disk.name.as_str()) {
            let message = format!("{field} and {path}[{other}] must not have the same Name.");
            causes.invalid(format!("{field}.name"), message);
        }
        seen.entry(&disk.name).or_insert(index);
        let targets = [&disk.disk, &disk.lun, &disk.cdrom];
        if targets.into_iter().flatten().count() > 1 {
            causes.invalid(
                &field,
                format!("{field} can only have a single target type defined"),
            );
        }
        pci_address(path, index, disk, causes);
        if disk.boot_order.is_some_and(|it| it < 1) {
            let message = format!("{field} must have a boot order > 0, if supplied");
            causes.invalid(format!("{field}.bootOrder"), message);
        }
        bus(&field, &doubled, disk, causes);
        serial(&field, disk, causes);
        modes(path, &field, &doubled, disk, causes);
        for message in names::is_dns1123_label(&disk.name) {
            causes.invalid(format!("{doubled}.name"), message);
        }
        block_size(&field, disk, causes);
    }
}

fn pci_address(path: &str, index: usize, disk: &Disk, causes: &mut Causes) {
    let Some(target) = disk.disk.as_ref().filter(|it| !it.pci_address.is_empty()) else {
        return;
    };
    let field = format!("{path}.domain.devices.disks.disk[{index}]");
    if target.bus != "virtio" {
        let message =
            format!("disk {field}.name - setting a PCI address is only possible with bus type virtio.");
        causes.invalid(format!("{field}.pciAddress"), message);
    }
    if PciAddress::parse(&target.pci_address).is_none() {
        let message = format!(
            "disk {field}.name has malformed PCI address ({}).",
            target.pci_address
        );
        causes.invalid(format!("{field}.pciAddress"), message);
    }
}

fn bus(field: &str, doubled: &str, disk: &Disk, causes: &mut Causes) {
    let Some((kind, target)) = disk.target().filter(|(_, target)| !target.bus.is_empty()) else {
        return;
    };
    let bus = target.bus.as_str();
    let at = format!("{field}.{kind}.bus");
    match bus {
        "ide" => causes.invalid(at, "IDE bus is not supported"),
        "virtio" if kind == "cdrom" => {
            causes.invalid(at, format!("Bus type {bus} is invalid for CD-ROM device"));
        }
        "sata" if kind == "disk" && target.readonly == Some(true) => {
            causes.invalid(at, format!("{bus} hard-disks do not support read-only."));
        }
        "virtio" | "sata" | "scsi" | "usb" => {}
        _ => {
            let message = format!(
                "{field} is set with an unrecognized bus {bus}, must be one of: [virtio scsi sata usb]"
            );
            causes.invalid(at, message);
        }
    }
    if disk.dedicated_io_thread == Some(true) && bus != "virtio" {
        let message = format!("IOThreads are not supported for disks on a {bus} bus");
        causes.add(CauseType::NotSupported, doubled, message);
    }
}

fn serial(field: &str, disk: &Disk, causes: &mut Causes) {
    let at = format!("{field}.serial");
    if !is_plain(&disk.serial) {
        let message =
            format!("{field} must be made up of the following characters [A-Za-z0-9_.+-], if specified");
        causes.invalid(&at, message);
    }
    if disk.serial.chars().count() > MAX_TEXT {
        causes.invalid(
            at,
            format!("{field} must be less than or equal to {MAX_TEXT} in length, if specified"),
        );
    }
}

fn modes(path: &str, field: &str, doubled: &str, disk: &Disk, causes: &mut Causes) {
    if !["", "none", "writethrough", "writeback"].contains(&disk.cache.as_str()) {
        let at = format!("{field}.cache");
        causes.invalid(&at, format!("{at} has invalid value {}", disk.cache));
    }
    if !["", "native", "threads"].contains(&disk.io.as_str()) {
        let message =
            format!("Disk IO mode for {path} is not supported. Supported modes are: native, threads.");
        causes.add(CauseType::NotSupported, format!("{doubled}.io"), message);
    }
    let policy = disk.error_policy.as_deref();
    if policy.is_some_and(|it| !["stop", "ignore", "report", "enospace"].contains(&it)) {
        let at = format!("{field}.errorPolicy");
        let message = format!("{at} has invalid value \"{}\"", policy.unwrap_or_default());
        causes.invalid(at, message);
    }
}

fn block_size(field: &str, disk: &Disk, causes: &mut Causes) {
    let Some(size) = &disk.block_size else {
        return;
    };
    let Some(custom) = &size.custom else {
        return;
    };
    if size.match_volume.is_some_and(|it| it.is_on()) {
        causes.invalid(
            format!("{field}.blockSize"),
            "Block size matching can't be enabled together with a custom value",
        );
    }
    if custom.logical > custom.physical {
        let message = format!(
            "Logical size {} must be the same or less than the physical size of {}",
            custom.logical, custom.physical
        );
        causes.invalid(format!("{field}.blockSize.custom.logical"), message);
        return;
    }
    for (name, size) in [("logical", custom.logical), ("physical", custom.physical)] {
        let message = if size < MIN_BLOCK {
            format!("Provided size of {size} is less than the supported minimum size of {MIN_BLOCK}")
        } else if size > MAX_BLOCK {
            format!("Provided size of {size} is greater than the supported maximum size of {MAX_BLOCK}")
        } else if !size.is_power_of_two() {
            format!("Provided size of {size} is not a power of 2")
        } else {
            continue;
        };
        causes.invalid(format!("{field}.blockSize.custom.{name}"), message);
    }
}
