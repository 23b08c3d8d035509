//! Devices that come and go while the machine runs.
//!
//! A device goes into a free slot that the machine was given for that (`bus`). Taking one away needs the guest's consent: QEMU asks
//! it, and tells when the device is gone. Whatever fails on the way is undone, so that the same can be tried again.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::event::Event;
use crate::machine::Machine;
use crate::qmp::QmpError;
use crate::{Format, MachineError};

/// A disk to plug in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// Its name, by which it is taken away again. The nodes behind it are named after it.
    pub id: String,
    /// The file, relative to the machine's directory.
    pub file: String,
    /// How it is kept.
    pub format: Format,
    /// Whether the guest can only read it.
    pub read_only: bool,
    /// `virtio-blk-pci` or `scsi-hd`.
    pub driver: String,
    /// The slot or controller.
    pub bus: String,
    /// What the guest sees as its serial number.
    pub serial: Option<String>,
}

/// A network interface to plug in, which talks to a switch by a socket on which QEMU listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Its name.
    pub id: String,
    /// Its hardware address.
    pub mac: String,
    /// The name of the socket in the machine's directory.
    pub socket: String,
    /// The slot.
    pub bus: String,
}

impl Disk {
    fn nodes(&self) -> (String, String) {
        (format!("{}-file", self.id), format!("{}-disk", self.id))
    }
}

impl Machine {
    /// Plugs a disk in.
    pub async fn add_disk(&self, disk: &Disk) -> Result<(), MachineError> {
        let (file, node) = disk.nodes();
        let layer = json!({
            "driver": disk.format.word(), "node-name": node, "read-only": disk.read_only, "discard": "unmap",
            "file": {"driver": "file", "filename": disk.file, "node-name": file, "read-only": disk.read_only, "discard": "unmap"},
        });
        self.qmp().execute("blockdev-add", layer).await?;
        let mut device = Map::new();
        for (name, value) in [
            ("driver", Some(disk.driver.clone())),
            ("id", Some(disk.id.clone())),
            ("bus", Some(disk.bus.clone())),
            ("drive", Some(node.clone())),
            ("serial", disk.serial.clone()),
        ] {
            if let Some(value) = value {
                device.insert(name.to_owned(), value.into());
            }
        }
        if let Err(error) = self.qmp().execute("device_add", Value::Object(device)).await {
            let _ = self
                .qmp()
                .execute("blockdev-del", json!({"node-name": node}))
                .await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Takes a disk away, and lets its file go.
    pub async fn remove_disk(&self, id: &str, timeout: Duration) -> Result<(), MachineError> {
        self.remove_device(id, timeout).await?;
        let node = format!("{id}-disk");
        match self
            .qmp()
            .execute("blockdev-del", json!({"node-name": node}))
            .await
        {
            Ok(_) => Ok(()),
            // It is gone already: an earlier attempt came so far.
            Err(error) if is_unknown(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Plugs a network interface in.
    pub async fn add_nic(&self, nic: &Nic) -> Result<(), MachineError> {
        let netdev = format!("{}-net", nic.id);
        let backend = json!({
            "type": "stream", "id": netdev, "server": true, "addr": {"type": "unix", "path": nic.socket},
        });
        self.qmp().execute("netdev_add", backend).await?;
        let device = json!({
            "driver": "virtio-net-pci", "id": nic.id, "netdev": netdev, "mac": nic.mac, "bus": nic.bus, "romfile": "",
        });
        if let Err(error) = self.qmp().execute("device_add", device).await {
            let _ = self.qmp().execute("netdev_del", json!({"id": netdev})).await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Takes a network interface away.
    pub async fn remove_nic(&self, id: &str, timeout: Duration) -> Result<(), MachineError> {
        self.remove_device(id, timeout).await?;
        let netdev = format!("{id}-net");
        match self.qmp().execute("netdev_del", json!({"id": netdev})).await {
            Ok(_) => Ok(()),
            Err(error) if is_unknown(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a device away, and waits until the guest has let it go.
    pub async fn remove_device(&self, id: &str, timeout: Duration) -> Result<(), MachineError> {
        let mut events = self.qmp().events();
        match self.qmp().execute("device_del", json!({"id": id})).await {
            Ok(_) => {}
            Err(error) if error.is_class("DeviceNotFound") => return Ok(()),
            // The guest was asked before, and has not answered yet.
            Err(QmpError::Refused { description, .. }) if description.contains("already in the process") => {}
            Err(error) => return Err(error.into()),
        }
        let answered = events.find(|event| match event {
            Event::DeviceDeleted { device: Some(device) } if device == id => Some(true),
            Event::DeviceUnplugFailed { device: Some(device) } if device == id => Some(false),
            _ => None,
        });
        match tokio::time::timeout(timeout, answered).await {
            Ok(Some(true)) => Ok(()),
            Ok(Some(false)) => Err(MachineError::Failed(format!(
                "the guest does not let the device {id} go"
            ))),
            Ok(None) => Err(QmpError::Closed.into()),
            Err(_) => Err(MachineError::Late {
                what: format!("the removal of the device {id} by the guest"),
                seconds: timeout.as_secs(),
            }),
        }
    }

    /// Plugs processors in until there are so many; how many there are. Machines have a maximum from their start, and never less
    /// than they started with.
    pub async fn set_processors(&self, count: usize) -> Result<usize, MachineError> {
        let slots = self.qmp().execute("query-hotpluggable-cpus", Value::Null).await?;
        let slots = slots.as_array().map_or(&[][..], Vec::as_slice);
        let (used, free): (Vec<&Value>, Vec<&Value>) =
            slots.iter().partition(|slot| slot.get("qom-path").is_some());
        let mut present = used.len();
        if count > slots.len() {
            return Err(MachineError::Failed(format!(
                "the machine has room for {} processors, not for {count}; it has to be started anew with more",
                slots.len()
            )));
        }
        // QEMU lists the last first.
        for slot in free.iter().rev() {
            if present >= count {
                break;
            }
            let mut device = slot["props"].as_object().cloned().unwrap_or_default();
            device.insert("driver".to_owned(), slot["type"].clone());
            device.insert("id".to_owned(), format!("cpu{present}").into());
            self.qmp().execute("device_add", Value::Object(device)).await?;
            present += 1;
        }
        Ok(present)
    }

    /// Plugs a piece of memory in. The machine needs a free slot for it (`-m ...,slots=N,maxmem=...`).
    pub async fn add_memory(&self, id: &str, bytes: u64) -> Result<(), MachineError> {
        let backend = format!("{id}-ram");
        let arguments = json!({"qom-type": "memory-backend-ram", "id": backend, "size": bytes});
        self.qmp().execute("object-add", arguments).await?;
        let device = json!({"driver": "pc-dimm", "id": id, "memdev": backend});
        if let Err(error) = self.qmp().execute("device_add", device).await {
            let _ = self.qmp().execute("object-del", json!({"id": backend})).await;
            return Err(error.into());
        }
        Ok(())
    }

    /// Gives a `virtio-mem` device another size; the guest takes or gives back as it can, and events tell how far it is.
    pub async fn set_requested_memory(&self, id: &str, bytes: u64) -> Result<(), MachineError> {
        let arguments = json!({"path": format!("/machine/peripheral/{id}"), "property": "requested-size", "value": bytes});
        self.qmp().execute("qom-set", arguments).await?;
        Ok(())
    }

    /// Asks the guest to make do with so much memory. It needs a balloon device.
    pub async fn set_balloon(&self, bytes: u64) -> Result<(), MachineError> {
        self.qmp().execute("balloon", json!({"value": bytes})).await?;
        Ok(())
    }

    /// Makes a disk larger, while the guest uses it.
    pub async fn grow_disk(&self, node: &str, bytes: u64) -> Result<(), MachineError> {
        let arguments = json!({"node-name": node, "size": bytes});
        self.qmp().execute("block_resize", arguments).await?;
        Ok(())
    }

    /// Limits what the guest can do with a disk in a second.
    pub async fn limit_disk(&self, device: &str, limits: &Throttle) -> Result<(), MachineError> {
        // What has the disk may be a part of the device, which has no name but its place.
        let all = self.qmp().execute("query-block", Value::Null).await?;
        let places = all.as_array().map_or(&[][..], Vec::as_slice);
        let mut places = places.iter().filter_map(|it| it["qdev"].as_str());
        let device = places
            .find(|it| it.split('/').any(|part| part == device))
            .unwrap_or(device);
        let (bytes, operations) = (&limits.bytes, &limits.operations);
        let arguments = json!({
            "id": device, "bps": bytes.both, "bps_rd": bytes.reads, "bps_wr": bytes.writes,
            "iops": operations.both, "iops_rd": operations.reads, "iops_wr": operations.writes,
        });
        self.qmp().execute("block_set_io_throttle", arguments).await?;
        Ok(())
    }
}

/// How much of something there may be in a second; zero is no limit. QEMU takes one for both, or one for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rate {
    /// Reads and writes together.
    pub both: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// How much a guest may do with a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes.
    pub bytes: Rate,
    /// Operations.
    pub operations: Rate,
}

fn is_unknown(error: &QmpError) -> bool {
    match error {
        QmpError::Refused {
            class, description, ..
        } => {
            class == "DeviceNotFound"
                || description.contains("not found")
                || description.contains("Failed to find")
        }
        _ => false,
    }
}
