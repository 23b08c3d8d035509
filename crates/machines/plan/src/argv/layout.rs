//! Which device is where.
//!
//! PCI Express devices hang on root ports, one each, network cards first: the guest's firmware numbers the buses in the
//! order of the ports, so that the first card is `enp1s0` as on KubeVirt. Ports that are left over are for devices that
//! come later. A layout is made when a machine starts and goes along with it: a device that came later has its place in
//! it, and a machine that moves is built the same way on the other side.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::machine::{CardModel, DiskBus, MachinePlan, PointerBus};
use crate::pci::PciAddress;

/// Ports that are kept free for devices that come later.
const SPARE_PORTS: u8 = 6;
/// The first slot for root ports, eight to a slot.
const PORT_SLOT: u8 = 2;
/// Slots for root ports end before those for devices of the old kind.
const MAX_PORTS: u8 = 8 * (OLD_SLOT - PORT_SLOT);
/// The first slot for devices of the old kind.
const OLD_SLOT: u8 = 0x10;
/// Slots end before those of the chip set.
const END_OF_SLOTS: u8 = 0x1f;
/// Disks on one AHCI controller.
const SATA_PORTS: u8 = 6;
/// Disks on the SCSI controller.
const SCSI_TARGETS: u8 = 255;

/// Why a device has no place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// There are no ports left.
    #[error("there is no port left for {device:?}; a machine has room for {MAX_PORTS} devices of this kind")]
    NoPort {
        /// The device.
        device: String,
    },
    /// There is no place of this kind left.
    #[error("there is no place left for {device:?} on {bus}")]
    NoSlot {
        /// The device.
        device: String,
        /// What is full.
        bus: &'static str,
    },
    /// The layout is that of another machine.
    #[error("{device:?} is not part of the layout of this machine; the layout must be extended first")]
    Unknown {
        /// The device.
        device: String,
    },
}

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// On a root port.
    Port(u8),
    /// On the root itself, in a slot.
    Slot(u8),
    /// On an AHCI controller: controller 0 is part of the board.
    Sata(u8, u8),
    /// On the SCSI controller.
    Scsi(u8),
    /// On the USB controller.
    Usb(u8),
}

/// Where all devices of a machine are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    places: BTreeMap<String, Place>,
    ports: u8,
}

/// The key of a disk.
pub(super) fn disk_key(name: &str) -> String {
    format!("disk:{name}")
}

/// The key of a card.
pub(super) fn card_key(name: &str) -> String {
    format!("card:{name}")
}

impl Layout {
    /// The layout of a machine that starts.
    pub fn of(plan: &MachinePlan) -> Result<Self, LayoutError> {
        let mut layout = Self::default();
        layout.extend(plan)?;
        if plan.hotplug {
            layout.ports = layout.ports.saturating_add(SPARE_PORTS).min(MAX_PORTS);
        }
        Ok(layout)
    }

    /// Gives a place to each device that has none. Places of devices that are gone are free again.
    pub fn extend(&mut self, plan: &MachinePlan) -> Result<(), LayoutError> {
        let wanted = wanted(plan);
        let keys: BTreeSet<&str> = wanted.iter().map(|it| it.key.as_str()).collect();
        self.places.retain(|key, _| keys.contains(key.as_str()));
        let new: Vec<Wanted> = wanted
            .into_iter()
            .filter(|it| !self.places.contains_key(&it.key))
            .collect();
        // Who asks for an address gets it before somebody else is given it by chance.
        let (asking, others): (Vec<Wanted>, Vec<Wanted>) =
            new.into_iter().partition(|it| it.address.is_some());
        for device in asking.into_iter().chain(others) {
            let place = self.free_place(&device)?;
            self.places.insert(device.key, place);
        }
        Ok(())
    }

    fn taken(&self, place: Place) -> bool {
        self.places.values().any(|it| *it == place)
    }

    fn free_place(&mut self, device: &Wanted) -> Result<Place, LayoutError> {
        let full = |bus| LayoutError::NoSlot {
            device: device.key.clone(),
            bus,
        };
        let first = |mut range: std::ops::Range<u8>, place: &dyn Fn(u8) -> Place| {
            range.find(|index| !self.taken(place(*index))).map(place)
        };
        match device.on {
            On::Express => {
                let asked = device
                    .address
                    .filter(|it| (it.domain, it.slot, it.function) == (0, 0, 0));
                // Bus N is behind port N - 1.
                let asked = asked
                    .and_then(|it| it.bus.checked_sub(1))
                    .filter(|it| *it < MAX_PORTS);
                let asked = asked.filter(|port| !self.taken(Place::Port(*port)));
                let port = asked.or_else(|| (0..MAX_PORTS).find(|port| !self.taken(Place::Port(*port))));
                let port = port.ok_or_else(|| LayoutError::NoPort {
                    device: device.key.clone(),
                })?;
                self.ports = self.ports.max(port + 1);
                Ok(Place::Port(port))
            }
            On::Old => first(OLD_SLOT..END_OF_SLOTS, &Place::Slot).ok_or_else(|| full("the PCI root")),
            On::Sata => {
                let ports = (0..SATA_PORTS).flat_map(|at| (0..4).map(move |of| Place::Sata(of, at)));
                let mut ports: Vec<Place> = ports.collect();
                ports.sort();
                let free = ports.into_iter().find(|place| !self.taken(*place));
                free.ok_or_else(|| full("four AHCI controllers"))
            }
            On::Scsi => first(0..SCSI_TARGETS, &Place::Scsi).ok_or_else(|| full("the SCSI controller")),
            On::Usb => first(1..16, &Place::Usb).ok_or_else(|| full("the USB controller")),
        }
    }

    /// Where a device is.
    pub(super) fn place(&self, key: &str) -> Result<Place, LayoutError> {
        let place = self.places.get(key).copied();
        place.ok_or_else(|| LayoutError::Unknown {
            device: key.to_owned(),
        })
    }

    /// Whether a machine that was started with that layout has a port for every device of this one.
    pub fn fits_into(&self, started: &Self) -> bool {
        self.ports <= started.ports
    }

    /// Where a disk is.
    pub fn disk(&self, name: &str) -> Result<Place, LayoutError> {
        self.place(&disk_key(name))
    }

    /// Where a network card is.
    pub fn card(&self, name: &str) -> Result<Place, LayoutError> {
        self.place(&card_key(name))
    }

    /// How many AHCI controllers there are beside the board's.
    pub(super) fn more_sata(&self) -> u8 {
        let of = |place: &Place| match place {
            Place::Sata(controller, _) => *controller,
            _ => 0,
        };
        self.places.values().map(of).max().unwrap_or(0)
    }

    /// The root ports, as devices.
    pub(super) fn ports(&self) -> Vec<Value> {
        let port = |index: u8| {
            let (slot, function) = (PORT_SLOT + index / 8, index % 8);
            let mut device = json!({
                "driver": "pcie-root-port",
                "id": port_id(index),
                "bus": "pcie.0",
                "port": u16::from(slot) * 8 + u16::from(function),
                "chassis": u16::from(index) + 1,
                "addr": format!("{slot:#x}.{function:#x}"),
            });
            if function == 0 {
                device["multifunction"] = json!(true);
            }
            device
        };
        (0..self.ports).map(port).collect()
    }

    /// What a device that hangs on PCI says about its place.
    pub(super) fn pci(&self, key: &str) -> Result<(String, String), LayoutError> {
        match self.place(key)? {
            Place::Port(port) => Ok((port_id(port), "0x0".to_owned())),
            Place::Slot(slot) => Ok(("pcie.0".to_owned(), format!("{slot:#x}"))),
            _ => Err(LayoutError::Unknown {
                device: key.to_owned(),
            }),
        }
    }
}

impl Place {
    /// Where the guest sees a device, if its firmware counts buses as firmware does.
    pub fn guest_address(self) -> Option<String> {
        match self {
            Self::Port(port) => Some(format!("0000:{:02x}:00.0", u16::from(port) + 1)),
            Self::Slot(slot) => Some(format!("0000:00:{slot:02x}.0")),
            _ => None,
        }
    }
}

fn port_id(index: u8) -> String {
    format!("rp{}", u16::from(index) + 1)
}

/// What a device hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Express,
    Old,
    Sata,
    Scsi,
    Usb,
}

#[derive(Debug)]
struct Wanted {
    key: String,
    on: On,
    address: Option<PciAddress>,
}

/// All devices of a machine that need a place, in the order in which places are given.
fn wanted(plan: &MachinePlan) -> Vec<Wanted> {
    let mut found = Vec::new();
    let mut add = |key: String, on: On, address: Option<PciAddress>| found.push(Wanted { key, on, address });
    // Old and new virtio at once exists on the old bus only.
    let virtio = if plan.transitional { On::Old } else { On::Express };
    for card in &plan.cards {
        let on = match card.model {
            CardModel::Virtio => virtio,
            CardModel::E1000e => On::Express,
            CardModel::E1000 | CardModel::Ne2kPci | CardModel::Pcnet | CardModel::Rtl8139 => On::Old,
        };
        add(card_key(&card.name), on, card.pci_address);
    }
    if plan.needs_usb() {
        add("usb".to_owned(), On::Express, None);
    }
    if plan.needs_scsi() {
        add("scsi0".to_owned(), virtio, None);
    }
    add("virtio-serial0".to_owned(), virtio, None);
    for disk in &plan.disks {
        let on = match disk.bus {
            DiskBus::Virtio => virtio,
            DiskBus::Scsi => On::Scsi,
            DiskBus::Sata => On::Sata,
            DiskBus::Usb => On::Usb,
        };
        add(disk_key(&disk.name), on, disk.pci_address);
    }
    for (name, bus) in &plan.devices.pointers {
        let on = match bus {
            PointerBus::Virtio => On::Express,
            PointerBus::Usb => On::Usb,
        };
        add(format!("pointer:{name}"), on, None);
    }
    if plan.devices.rng {
        add("rng0".to_owned(), virtio, None);
    }
    if plan.devices.balloon.is_some() {
        add("balloon0".to_owned(), virtio, None);
    }
    if plan.memory.growth.is_some() {
        add("memory1".to_owned(), On::Express, None);
    }
    if plan.devices.watchdog.is_some() {
        add("watchdog0".to_owned(), On::Old, None);
    }
    if plan.devices.sound.is_some() {
        add("sound0".to_owned(), On::Old, None);
    }
    for controller in 1..=extra_sata(plan) {
        add(format!("ahci{controller}"), On::Old, None);
    }
    found
}

/// AHCI controllers that are needed beside the board's.
fn extra_sata(plan: &MachinePlan) -> usize {
    let disks = plan.disks.iter().filter(|it| it.bus == DiskBus::Sata).count();
    disks.saturating_sub(1) / usize::from(SATA_PORTS)
}
