//! `spec.domain.devices`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FeatureState, Present};

/// Devices of a machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Devices {
    /// Old and new virtio at once.
    pub use_virtio_transitional: Option<bool>,
    /// Nothing is plugged in or out.
    pub disable_hotplug: bool,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Restarts a guest that hangs.
    pub watchdog: Option<Watchdog>,
    /// Network cards.
    pub interfaces: Vec<Interface>,
    /// Pointers.
    pub inputs: Vec<Input>,
    /// A network card of its own accord.
    pub autoattach_pod_interface: Option<bool>,
    /// A screen.
    pub autoattach_graphics_device: Option<bool>,
    /// A serial console.
    pub autoattach_serial_console: Option<bool>,
    /// What the console says is kept.
    pub log_serial_console: Option<bool>,
    /// A memory balloon.
    pub autoattach_mem_balloon: Option<bool>,
    /// A pointer.
    pub autoattach_input_device: Option<bool>,
    /// Sockets between host and guest.
    #[serde(rename = "autoattachVSOCK")]
    pub autoattach_vsock: Option<bool>,
    /// Randomness.
    pub rng: Option<Present>,
    /// A queue for each processor.
    pub block_multi_queue: Option<bool>,
    /// A queue for each processor.
    #[serde(rename = "networkInterfaceMultiqueue")]
    pub network_interface_multiqueue: Option<bool>,
    /// Graphics processors of the host.
    pub gpus: Vec<NamedDevice>,
    /// Metrics of the host.
    pub downward_metrics: Option<Present>,
    /// Shared directories.
    pub filesystems: Vec<Filesystem>,
    /// Devices of the host.
    pub host_devices: Vec<NamedDevice>,
    /// USB from the viewer's machine.
    pub client_passthrough: Option<Value>,
    /// Sound.
    pub sound: Option<Sound>,
    /// Trusted platform module.
    pub tpm: Option<Tpm>,
}

/// A disk.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Disk {
    /// Its volume's name.
    pub name: String,
    /// A disk as most are.
    pub disk: Option<DiskTarget>,
    /// A unit that takes commands directly.
    pub lun: Option<DiskTarget>,
    /// A CD-ROM.
    pub cdrom: Option<DiskTarget>,
    /// The smallest is tried first.
    pub boot_order: Option<i64>,
    /// What the guest sees as serial number.
    pub serial: String,
    /// A thread of its own.
    #[serde(rename = "dedicatedIOThread")]
    pub dedicated_io_thread: Option<bool>,
    /// `none`, `writethrough` or `writeback`.
    pub cache: String,
    /// `native` or `threads`.
    pub io: String,
    /// A word for the guest.
    pub tag: String,
    /// Sizes of blocks.
    pub block_size: Option<BlockSize>,
    /// Other machines may have it, too.
    pub shareable: Option<bool>,
    /// What happens when reading or writing fails.
    pub error_policy: Option<String>,
}

/// How a disk is attached. One type for disks, units and CD-ROMs, as they differ in nothing but what is left out.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DiskTarget {
    /// `virtio`, `scsi`, `sata` or `usb`.
    pub bus: String,
    /// The guest cannot write.
    pub readonly: Option<bool>,
    /// Where the guest sees it.
    pub pci_address: String,
    /// Persistent reservations.
    pub reservation: bool,
    /// `open` or `closed`.
    pub tray: String,
}

/// Sizes of blocks.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct BlockSize {
    /// These.
    pub custom: Option<CustomBlockSize>,
    /// Those of what lies below.
    pub match_volume: Option<FeatureState>,
}

/// Sizes of blocks.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CustomBlockSize {
    /// What the guest addresses.
    pub logical: u64,
    /// What is written at once.
    pub physical: u64,
}

/// Restarts a guest that hangs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Watchdog {
    /// Name.
    pub name: String,
    /// Intel's.
    pub i6300esb: Option<WatchdogDevice>,
    /// That of another architecture.
    pub diag288: Option<WatchdogDevice>,
}

/// What a watchdog does.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct WatchdogDevice {
    /// `reset`, `poweroff` or `shutdown`.
    pub action: String,
}

/// A network card.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Interface {
    /// Its network's name.
    pub name: String,
    /// What card it is.
    pub model: String,
    /// On the network as it is.
    pub bridge: Option<Present>,
    /// Behind an address translation.
    pub masquerade: Option<Present>,
    /// A slice of a card of the host.
    pub sriov: Option<Present>,
    /// No longer served.
    pub slirp: Option<Present>,
    /// No longer served.
    pub macvtap: Option<Present>,
    /// No longer served.
    pub passt: Option<Present>,
    /// By an extension.
    pub binding: Option<NamedDevice>,
    /// Ports that are let through; all if there are none.
    pub ports: Vec<Port>,
    /// Its address.
    pub mac_address: String,
    /// The smallest is tried first.
    pub boot_order: Option<i64>,
    /// Where the guest sees it.
    pub pci_address: String,
    /// What DHCP says.
    pub dhcp_options: Option<DhcpOptions>,
    /// A word for the guest.
    pub tag: String,
    /// A number by which the guest names it.
    pub acpi_index: i64,
    /// `up`, `down` or `absent`.
    pub state: String,
}

/// What DHCP says.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DhcpOptions {
    /// Option 67.
    pub boot_file_name: String,
    /// Option 66.
    pub tftp_server_name: String,
    /// Time servers.
    pub ntp_servers: Vec<String>,
    /// Options 224 to 254.
    pub private_options: Vec<DhcpPrivateOption>,
}

/// An option between 224 and 254.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct DhcpPrivateOption {
    /// Its number.
    pub option: i64,
    /// Its value.
    pub value: String,
}

/// A port that is let through.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Port {
    /// Name.
    pub name: String,
    /// `TCP` or `UDP`.
    pub protocol: String,
    /// Number.
    pub port: i64,
}

/// A pointer.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Input {
    /// `virtio` or `usb`.
    pub bus: String,
    /// `tablet`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A shared directory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Filesystem {
    /// Its volume's name.
    pub name: String,
}

/// Something of the host, by name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct NamedDevice {
    /// Name.
    pub name: String,
    /// What it is.
    pub device_name: String,
}

/// Sound.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Sound {
    /// Name.
    pub name: String,
    /// `ich9` or `ac97`.
    pub model: String,
}

/// Trusted platform module.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Tpm {
    /// On if nobody says otherwise.
    pub enabled: Option<bool>,
    /// What it holds survives restarts.
    pub persistent: Option<bool>,
}

impl Disk {
    /// How the disk is attached, and its upstream word. A disk that does not say is a disk.
    pub fn target(&self) -> Option<(&'static str, &DiskTarget)> {
        let targets = [("disk", &self.disk), ("lun", &self.lun), ("cdrom", &self.cdrom)];
        targets
            .into_iter()
            .find_map(|(word, target)| target.as_ref().map(|it| (word, it)))
    }
}

impl Interface {
    /// Whether one of the bindings that are built in is chosen.
    pub fn has_method(&self) -> bool {
        let methods = [
            &self.bridge,
            &self.masquerade,
            &self.sriov,
            &self.slirp,
            &self.macvtap,
            &self.passt,
        ];
        methods.into_iter().any(Option::is_some)
    }
}
