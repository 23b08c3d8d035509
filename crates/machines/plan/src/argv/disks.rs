//! Disks.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::layout::disk_key;
use super::{ArgvError, Backing, Format, Layout, Place};
use crate::machine::{Cache, DiskBus, DiskDevice, DiskPlan, MachinePlan, OnError};

/// Names of nodes must not be longer.
const MAX_NODE_NAME: usize = 31;

/// The name of a node in QEMU's graph of block devices: readable if it fits, unique in any case.
pub fn node_name(prefix: &str, name: &str) -> String {
    let plain = format!("{prefix}-{name}");
    if plain.len() <= MAX_NODE_NAME {
        return plain;
    }
    let digest = Sha256::digest(name.as_bytes());
    let tail: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    let kept = MAX_NODE_NAME - tail.len() - 1;
    let head: String = plain.chars().take_while(char::is_ascii).take(kept).collect();
    format!("{head}-{tail}")
}

/// Limits of a disk as an object.
pub fn throttle_group(disk: &DiskPlan) -> Option<Value> {
    let limits = &disk.limits;
    if !limits.any() {
        return None;
    }
    let mut group = json!({"qom-type": "throttle-group", "id": node_name("limits", &disk.name)});
    let values = [
        ("x-iops-total", limits.iops),
        ("x-iops-read", limits.iops_read),
        ("x-iops-write", limits.iops_write),
        ("x-bps-total", limits.bytes_per_second),
        ("x-bps-read", limits.read_bytes_per_second),
        ("x-bps-write", limits.write_bytes_per_second),
    ];
    for (name, value) in values.into_iter().filter(|(_, value)| *value > 0) {
        group[name] = json!(value);
    }
    Some(group)
}

/// The nodes of a disk, from the file up; the last is what the device uses.
pub fn disk_nodes(disk: &DiskPlan, backing: &Backing) -> Vec<Value> {
    let direct = match disk.cache {
        Cache::None => true,
        Cache::WriteThrough | Cache::WriteBack => false,
        Cache::Default => backing.direct && !disk.read_only,
    };
    let cache = json!({"direct": direct, "no-flush": false});
    let (file, format) = (node_name("f", &disk.name), node_name("d", &disk.name));
    let mut storage = json!({
        "driver": if backing.block_device { "host_device" } else { "file" },
        "node-name": file,
        "filename": backing.file,
        "aio": if disk.native_io && direct { "native" } else { "threads" },
        "cache": cache,
        "read-only": disk.read_only,
        "discard": "unmap",
    });
    if disk.read_only || disk.shared {
        // QEMU's lock would keep others from what they may read.
        storage["locking"] = json!("off");
    }
    let driver = match backing.format {
        Format::Raw => "raw",
        Format::Qcow2 => "qcow2",
    };
    let mut nodes = vec![
        storage,
        json!({
            "driver": driver,
            "node-name": format,
            "file": file,
            "cache": cache,
            "read-only": disk.read_only,
            "discard": "unmap",
        }),
    ];
    if disk.limits.any() {
        nodes.push(json!({
            "driver": "throttle",
            "node-name": node_name("t", &disk.name),
            "throttle-group": node_name("limits", &disk.name),
            "file": format,
        }));
    }
    nodes
}

/// The node that a disk's device uses.
pub fn top_node(disk: &DiskPlan) -> String {
    let top = if disk.limits.any() { "t" } else { "d" };
    node_name(top, &disk.name)
}

/// The name of a disk's device.
pub fn disk_id(name: &str) -> String {
    format!("ua-{name}")
}

/// The device of a disk.
pub fn disk_device(plan: &MachinePlan, disk: &DiskPlan, layout: &Layout) -> Result<Value, ArgvError> {
    let cdrom = disk.device == DiskDevice::Cdrom;
    let driver = match (disk.bus, cdrom) {
        (DiskBus::Virtio, _) if plan.transitional => "virtio-blk-pci-transitional",
        (DiskBus::Virtio, _) => "virtio-blk-pci",
        (DiskBus::Scsi, false) => "scsi-hd",
        (DiskBus::Scsi, true) => "scsi-cd",
        (DiskBus::Sata, false) => "ide-hd",
        (DiskBus::Sata, true) => "ide-cd",
        (DiskBus::Usb, _) => "usb-storage",
    };
    let mut device = json!({
        "driver": driver,
        "id": disk_id(&disk.name),
        "drive": top_node(disk),
    });
    place(&mut device, disk, layout)?;
    let (write, read) = match disk.on_error {
        OnError::Stop => ("stop", "stop"),
        OnError::Report => ("report", "report"),
        OnError::Ignore => ("ignore", "ignore"),
        OnError::Enospace => ("enospc", "report"),
    };
    device["werror"] = json!(write);
    device["rerror"] = json!(read);
    if !disk.read_only && !cdrom {
        device["write-cache"] = json!(if disk.cache == Cache::WriteThrough {
            "off"
        } else {
            "on"
        });
    }
    if let Some(index) = disk.boot_index {
        device["bootindex"] = json!(index);
    }
    if !disk.serial.is_empty() {
        device["serial"] = json!(disk.serial);
    }
    if disk.shared {
        device["share-rw"] = json!(true);
    }
    if let Some((logical, physical)) = disk.blocks {
        device["logical_block_size"] = json!(logical);
        device["physical_block_size"] = json!(physical);
    }
    if let Some(thread) = disk.io_thread.filter(|_| disk.bus == DiskBus::Virtio) {
        device["iothread"] = json!(format!("iothread{thread}"));
    }
    if let Some(queues) = disk.queues {
        device["num-queues"] = json!(queues);
    }
    Ok(device)
}

fn place(device: &mut Value, disk: &DiskPlan, layout: &Layout) -> Result<(), ArgvError> {
    let key = disk_key(&disk.name);
    match layout.place(&key)? {
        Place::Port(_) | Place::Slot(_) => {
            let (bus, address) = layout.pci(&key)?;
            device["bus"] = json!(bus);
            device["addr"] = json!(address);
        }
        Place::Sata(0, port) => device["bus"] = json!(format!("ide.{port}")),
        Place::Sata(controller, port) => device["bus"] = json!(format!("ahci{controller}.{port}")),
        Place::Scsi(target) => {
            device["bus"] = json!("scsi0.0");
            device["channel"] = json!(0);
            device["scsi-id"] = json!(target);
            device["lun"] = json!(0);
            device["device_id"] = json!(format!("drive-{}", disk.name));
        }
        Place::Usb(port) => {
            device["bus"] = json!("usb.0");
            device["port"] = json!(port.to_string());
            device["removable"] = json!(disk.device == DiskDevice::Cdrom);
        }
    }
    Ok(())
}
