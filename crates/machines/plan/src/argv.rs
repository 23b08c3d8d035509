//! A machine on a host as arguments of QEMU.
//!
//! Everything has an id, a bus and an address of its own: that is what plugging in, taking out and migrating need. Where
//! QEMU takes JSON, it gets JSON, so that no name or path can turn into another option; the same values go to QMP when a
//! device comes later ([`disk_nodes`], [`disk_device`], [`card_backend`], [`card_device`]). QEMU runs in the machine's private
//! directory, so that sockets have names without a path ([`Sockets`]), however deep it lies.
//!
//! The arguments say what the machine is. Those by which whoever starts QEMU keeps hold of it and locks it in (control socket, file
//! with the process's number, sandbox, form of messages, no defaults) are added there, in `fairway-machines-qemu`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use thiserror::Error;

use crate::machine::MachinePlan;

mod board;
mod cards;
mod devices;
mod disks;
mod layout;

use cards::card_device_backend;
pub use cards::{card_backend, card_device, card_id};
pub use disks::{disk_device, disk_id, disk_nodes, node_name, throttle_group, top_node};
pub use layout::{Layout, LayoutError, Place};

/// How guests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// On the processor itself.
    Kvm,
    /// Emulated.
    Tcg,
}

/// Format of a disk's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The content as it is.
    Raw,
    /// QEMU's own.
    Qcow2,
}

/// The file behind a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Where it is.
    pub file: String,
    /// Its format.
    pub format: Format,
    /// It is a device of the host, not a file.
    pub block_device: bool,
    /// Its file system lets reads and writes go past the host's memory.
    pub direct: bool,
}

/// Files of UEFI firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareFiles {
    /// Code, which all machines share.
    pub code: String,
    /// The machine's own copy of the variables.
    pub variables: String,
}

/// A kernel from outside of the disks, on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelFiles {
    /// The kernel.
    pub kernel: Option<String>,
    /// The initial RAM disk.
    pub initrd: Option<String>,
}

/// What a host contributes to a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where the machine is reached.
    pub sockets: Sockets,
    /// How guests run.
    pub accelerator: Accelerator,
    /// Numbers of open files that are network devices of the kernel, by the cards' names. Other cards have sockets.
    pub taps: BTreeMap<String, i32>,
    /// Files behind disks, by the disks' names.
    pub backings: BTreeMap<String, Backing>,
    /// UEFI firmware for this machine.
    pub firmware: Option<FirmwareFiles>,
    /// Kernel for this machine.
    pub kernel: Option<KernelFiles>,
    /// The moment, for clocks that are ahead of it.
    pub now: Timestamp,
    /// The machine waits for another that moves here.
    pub incoming: bool,
    /// The guest does not run before somebody says so.
    pub stopped: bool,
}

/// Why a machine cannot be written as arguments.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ArgvError {
    /// Nobody prepared a disk.
    #[error("disk {disk:?} of {machine} has no file on this node; its volume must be prepared first")]
    NoBacking {
        /// The machine.
        machine: String,
        /// The disk.
        disk: String,
    },
    /// Nobody prepared the firmware.
    #[error("{machine} starts by UEFI, but no firmware files were prepared for it")]
    NoFirmware {
        /// The machine.
        machine: String,
    },
    /// Nobody prepared the kernel.
    #[error("{machine} starts from a kernel of image {image:?}, which was not prepared")]
    NoKernel {
        /// The machine.
        machine: String,
        /// The image.
        image: String,
    },
    /// A device has no place.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// Where a machine is reached: names of Unix sockets in its directory, which whoever starts QEMU knows, too. QEMU listens on all but
/// the TPM's, where it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// The serial console.
    pub serial: String,
    /// The agent in the guest.
    pub agent: String,
    /// The screen.
    pub vnc: String,
    /// The TPM, on which its emulator listens.
    pub tpm: String,
}

/// What QEMU itself may write to, in the machine's directory: its sockets are there.
pub const LIVE: &str = "live";

/// The socket of a network card in the machine's directory, to which the switch connects.
pub fn card_socket(card: &str) -> String {
    format!("{LIVE}/{}.sock", node_name("net", card))
}

/// Arguments, as they come together.
#[derive(Debug, Default)]
struct Arguments(Vec<String>);

impl Arguments {
    fn flag(&mut self, option: &str) {
        self.0.push(format!("-{option}"));
    }

    fn option(&mut self, option: &str, value: impl Into<String>) {
        self.0.push(format!("-{option}"));
        self.0.push(value.into());
    }

    fn json(&mut self, option: &str, value: &Value) {
        self.option(option, value.to_string());
    }

    fn device(&mut self, value: &Value) {
        self.json("device", value);
    }

    fn object(&mut self, value: &Value) {
        self.json("object", value);
    }

    /// A socket on which QEMU listens.
    fn socket(&mut self, id: &str, name: &str) {
        self.option(
            "chardev",
            format!("socket,id={id},path={},server=on,wait=off", escaped(name)),
        );
    }
}

/// A value inside of an option that is a list of them: commas are doubled.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

/// Arguments of QEMU for a machine on a host. The layout is [`Layout::of`] the plan, or the one that a machine which
/// moves here has had from its start.
pub fn argv(plan: &MachinePlan, host: &Host, layout: &Layout) -> Result<Vec<String>, ArgvError> {
    let mut arguments = Arguments::default();
    board::identity(plan, &mut arguments);
    board::machine(plan, host, &mut arguments)?;
    board::processors(plan, host, &mut arguments);
    board::memory(plan, &mut arguments);
    board::time(plan, host, &mut arguments);
    board::boot(plan, host, &mut arguments)?;
    for port in layout.ports() {
        arguments.device(&port);
    }
    devices::controllers(plan, layout, &mut arguments)?;
    for thread in 0..plan.io_threads {
        arguments.object(&json!({"qom-type": "iothread", "id": format!("iothread{thread}")}));
    }
    for disk in &plan.disks {
        let backing = host
            .backings
            .get(&disk.name)
            .ok_or_else(|| ArgvError::NoBacking {
                machine: format!("{}/{}", plan.namespace, plan.name),
                disk: disk.name.clone(),
            })?;
        if let Some(object) = disks::throttle_group(disk) {
            arguments.object(&object);
        }
        for node in disk_nodes(disk, backing) {
            arguments.json("blockdev", &node);
        }
        arguments.device(&disk_device(plan, disk, layout)?);
    }
    for card in &plan.cards {
        let backend = match host.taps.get(&card.name) {
            Some(file) => card_device_backend(card, *file),
            None => card_backend(card),
        };
        arguments.json("netdev", &backend);
        arguments.device(&card_device(plan, card, layout)?);
    }
    devices::devices(plan, layout, &host.sockets, &mut arguments)?;
    if host.incoming {
        arguments.option("incoming", "defer");
    }
    if host.stopped || plan.start_paused {
        arguments.flag("S");
    }
    Ok(arguments.0)
}

#[cfg(test)]
mod tests;
