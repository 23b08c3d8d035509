//! A machine as it is to be built: everything decided, nothing bound to a host yet. It can be written down, so that whoever finds
//! a machine running knows what it was built as.
// tidy: long: types without logic, read from top to bottom

use serde::{Deserialize, Serialize};

use crate::unsupported::Unsupported;
use crate::view::{DhcpOptions, Port};

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachinePlan {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What the guest is called.
    pub hostname: String,
    /// Who the machine is.
    pub uuid: String,
    /// Board.
    pub board: Board,
    /// Processors.
    pub cpu: CpuPlan,
    /// Memory.
    pub memory: MemoryPlan,
    /// What starts the guest.
    pub firmware: FirmwarePlan,
    /// What the guest reads about its hardware.
    pub smbios: Smbios,
    /// Time.
    pub clock: ClockPlan,
    /// Disks, in the order of the spec.
    pub disks: Vec<DiskPlan>,
    /// How many threads serve disks.
    pub io_threads: u32,
    /// Network cards, in the order of the spec.
    pub cards: Vec<CardPlan>,
    /// Everything else.
    pub devices: DevicePlan,
    /// Devices may come and go.
    pub hotplug: bool,
    /// Old and new virtio at once.
    pub transitional: bool,
    /// The guest waits until somebody lets it run.
    pub start_paused: bool,
    /// How long the guest may take to shut down.
    pub grace_seconds: u64,
    /// What was asked for and cannot be had.
    pub unsupported: Vec<Unsupported>,
}

/// Board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Board {
    /// `q35` or a version of it.
    pub machine_type: String,
    /// ACPI.
    pub acpi: bool,
    /// System management mode.
    pub smm: bool,
    /// High precision event timer; nothing is QEMU's choice.
    pub hpet: Option<bool>,
}

/// Model of the processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CpuModel {
    /// What the host has, or all that can be emulated.
    Host,
    /// By name.
    Named(String),
}

impl CpuModel {
    /// The model that an instance's word means.
    pub fn of(word: &str) -> Self {
        match word {
            "" | "host-model" | "host-passthrough" => Self::Host,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// Processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuPlan {
    /// Sockets at start.
    pub sockets: u32,
    /// Sockets that the machine can grow to.
    pub max_sockets: u32,
    /// Cores of a socket.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
    /// Model.
    pub model: CpuModel,
    /// Features by name: on or off.
    pub features: Vec<(String, bool)>,
    /// QEMU's properties that stand for Windows' interfaces and the like.
    pub properties: Vec<String>,
    /// A host processor for each.
    pub dedicated: bool,
    /// A host processor for QEMU itself.
    pub isolate_emulator: bool,
}

impl CpuPlan {
    /// Processors at start.
    pub fn count(&self) -> u32 {
        self.sockets
            .saturating_mul(self.cores)
            .saturating_mul(self.threads)
    }

    /// Processors that the machine can grow to.
    pub fn max_count(&self) -> u32 {
        self.max_sockets
            .saturating_mul(self.cores)
            .saturating_mul(self.threads)
    }
}

/// Memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryPlan {
    /// Bytes at start: whole mebibytes.
    pub guest: u64,
    /// How it can grow.
    pub growth: Option<Growth>,
    /// Bytes that it has grown by, for a machine that goes on elsewhere.
    #[serde(default)]
    pub grown: u64,
    /// Size of pages, in bytes.
    pub hugepages: Option<u64>,
}

/// How memory can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    /// Bytes that it can grow to, with those at start.
    pub most: u64,
    /// The pieces in which it grows.
    pub block: u64,
}

/// What starts the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirmwarePlan {
    /// BIOS or UEFI.
    pub loader: Loader,
    /// A kernel from outside of the disks.
    pub kernel: Option<KernelPlan>,
}

/// BIOS or UEFI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Loader {
    /// BIOS.
    Bios {
        /// It shows itself on the serial console.
        on_serial: bool,
    },
    /// UEFI.
    Efi {
        /// Only signed code.
        secure: bool,
        /// Variables survive restarts.
        persistent: bool,
    },
}

/// A kernel from outside of the disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelPlan {
    /// The image that has it.
    pub image: ImageRef,
    /// The kernel in it, or nothing.
    pub kernel: String,
    /// The initial RAM disk in it, or nothing.
    pub initrd: String,
    /// The kernel's command line.
    pub arguments: String,
}

/// An image of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageRef {
    /// Its name.
    pub image: String,
    /// When to ask the registry: `Always`, `IfNotPresent`, `Never`.
    pub pull_policy: String,
    /// A Secret for the registry, or nothing.
    pub pull_secret: String,
}

/// What the guest reads about its hardware. Empty texts are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Smbios {
    /// Serial number of the machine.
    pub serial: String,
    /// The case: name of the property and its value.
    pub chassis: Vec<(String, String)>,
}

/// Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClockPlan {
    /// Seconds that the guest's clock is ahead of UTC.
    pub offset_seconds: i64,
    /// Ticks that came too late are made up for.
    pub catch_up: bool,
    /// The clock follows the guest's own time rather than the host's.
    pub follows_guest: bool,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskPlan {
    /// Name of disk and volume.
    pub name: String,
    /// What it is.
    pub device: DiskDevice,
    /// What it is attached to.
    pub bus: DiskBus,
    /// Where its content comes from.
    pub source: DiskSource,
    /// The guest cannot write.
    pub read_only: bool,
    /// The smallest is tried first.
    pub boot_index: Option<u32>,
    /// What the guest sees as serial number; empty for none.
    pub serial: String,
    /// How writes are kept.
    pub cache: Cache,
    /// Reads and writes by the host's asynchronous interface, not by threads.
    pub native_io: bool,
    /// What happens when reading or writing fails.
    pub on_error: OnError,
    /// The thread that serves it: a number below [`MachinePlan::io_threads`].
    pub io_thread: Option<u32>,
    /// A queue for each processor: how many.
    pub queues: Option<u32>,
    /// Sizes of blocks: logical and physical.
    pub blocks: Option<(u64, u64)>,
    /// Other machines may write, too.
    pub shared: bool,
    /// How much may be read and written.
    pub limits: DiskLimits,
    /// Where the guest is to see it.
    pub pci_address: Option<crate::pci::PciAddress>,
    /// A word for the guest.
    pub tag: String,
    /// The tray is open.
    pub tray_open: bool,
    /// It came while the guest ran, or may go while it runs.
    pub hotpluggable: bool,
}

/// What a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskDevice {
    /// A disk.
    Disk,
    /// A CD-ROM.
    Cdrom,
    /// A unit that takes commands directly.
    Lun,
}

/// What a disk is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskBus {
    /// virtio-blk.
    Virtio,
    /// virtio-scsi.
    Scsi,
    /// AHCI.
    Sata,
    /// USB storage.
    Usb,
}

/// Where the content of a disk comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskSource {
    /// A disk in an image; changes are thrown away.
    ContainerDisk {
        /// The image.
        image: ImageRef,
        /// The disk in it; empty for the only one.
        path: String,
    },
    /// A PersistentVolumeClaim.
    Claim {
        /// Its name.
        name: String,
    },
    /// A DataVolume.
    DataVolume {
        /// Its name.
        name: String,
    },
    /// A claim; changes are thrown away.
    Ephemeral {
        /// The claim's name.
        claim: String,
    },
    /// Nothing yet; changes are thrown away.
    Empty {
        /// Bytes.
        capacity: u64,
    },
    /// A file of the host.
    HostFile {
        /// Where it is.
        path: String,
        /// Made if it is not there, with so many bytes.
        create: Option<u64>,
    },
    /// A seed.
    Seed(SeedKind),
    /// Files out of an object.
    Files {
        /// The object.
        of: FilesOf,
        /// What the guest sees as label.
        label: String,
    },
}

impl DiskSource {
    /// A guest can start from it.
    pub fn may_boot(&self) -> bool {
        !matches!(self, Self::Seed(_) | Self::Files { .. } | Self::Empty { .. })
    }

    /// It is made anew at each start.
    pub fn is_ephemeral(&self) -> bool {
        !matches!(
            self,
            Self::Claim { .. } | Self::DataVolume { .. } | Self::HostFile { .. }
        )
    }
}

/// Kinds of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SeedKind {
    /// NoCloud, label `cidata`.
    NoCloud,
    /// ConfigDrive, label `config-2`.
    ConfigDrive,
}

/// Objects whose content becomes files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FilesOf {
    /// A ConfigMap.
    ConfigMap {
        /// Its name.
        name: String,
        /// It need not exist.
        optional: bool,
    },
    /// A Secret.
    Secret {
        /// Its name.
        name: String,
        /// It need not exist.
        optional: bool,
    },
    /// The token of a ServiceAccount.
    ServiceAccount {
        /// Its name.
        name: String,
    },
    /// Facts about the machine's own object: file and field.
    DownwardApi {
        /// Files and the fields that are in them.
        fields: Vec<(String, String)>,
    },
    /// Answers for Windows' installer in a ConfigMap or Secret.
    Sysprep {
        /// Its name.
        name: String,
        /// It is a Secret.
        secret: bool,
    },
}

/// How writes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cache {
    /// What suits the host's file system.
    Default,
    /// Past the host's memory.
    None,
    /// In the host's memory, and done when they are on disk.
    WriteThrough,
    /// In the host's memory.
    WriteBack,
}

/// What happens when reading or writing fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnError {
    /// The guest is paused.
    Stop,
    /// The guest is told.
    Report,
    /// Nothing.
    Ignore,
    /// The guest is paused if there is no space, and told otherwise.
    Enospace,
}

/// How much may be read and written in a second; nothing means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct DiskLimits {
    /// Operations.
    pub iops: u64,
    /// Reads.
    pub iops_read: u64,
    /// Writes.
    pub iops_write: u64,
    /// Bytes.
    pub bytes_per_second: u64,
    /// Bytes read.
    pub read_bytes_per_second: u64,
    /// Bytes written.
    pub write_bytes_per_second: u64,
}

impl DiskLimits {
    /// Whether anything is limited.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CardPlan {
    /// Name of card and network.
    pub name: String,
    /// What card it is.
    pub model: CardModel,
    /// Its address.
    pub mac: String,
    /// How it is connected.
    pub binding: CardBinding,
    /// What it is connected to.
    pub network: CardNetwork,
    /// Ports that are let through; all if there are none.
    pub ports: Vec<Port>,
    /// What DHCP says beside addresses.
    pub dhcp: Option<DhcpOptions>,
    /// The smallest is tried first.
    pub boot_index: Option<u32>,
    /// Where the guest is to see it.
    pub pci_address: Option<crate::pci::PciAddress>,
    /// A number by which the guest names it.
    pub acpi_index: Option<u32>,
    /// The cable is in.
    pub link_up: bool,
    /// A word for the guest.
    pub tag: String,
}

/// What card it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CardModel {
    /// virtio-net.
    Virtio,
    /// Intel 82540EM.
    E1000,
    /// Intel 82574L.
    E1000e,
    /// NE2000.
    Ne2kPci,
    /// AMD PCnet.
    Pcnet,
    /// Realtek 8139.
    Rtl8139,
}

/// How a card is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CardBinding {
    /// The guest has the network's address.
    Bridge,
    /// The guest is behind an address translation.
    Masquerade,
}

/// What a card is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CardNetwork {
    /// The network that everything has.
    Pod,
    /// One that a NetworkAttachmentDefinition describes.
    Multus {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// It takes the place of the network that everything has.
        default: bool,
    },
}

/// What a watchdog does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchdogAction {
    /// Restart the guest.
    Reset,
    /// End the machine.
    Poweroff,
    /// Ask the guest to shut down.
    Shutdown,
}

/// What a pointer is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PointerBus {
    /// virtio.
    Virtio,
    /// USB.
    Usb,
}

/// Sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SoundModel {
    /// Intel HDA.
    Ich9,
    /// AC97.
    Ac97,
}

/// Devices that are neither disks nor network cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DevicePlan {
    /// A screen.
    pub graphics: bool,
    /// A serial console.
    pub serial_console: bool,
    /// What the console says is kept.
    pub log_console: bool,
    /// A memory balloon; whether free memory goes back to the host.
    pub balloon: Option<bool>,
    /// Randomness.
    pub rng: bool,
    /// Restarts a guest that hangs.
    pub watchdog: Option<WatchdogAction>,
    /// Pointers: name and bus.
    pub pointers: Vec<(String, PointerBus)>,
    /// Trusted platform module; whether what it holds survives restarts.
    pub tpm: Option<bool>,
    /// Sound.
    pub sound: Option<SoundModel>,
}

impl MachinePlan {
    /// Whether anything hangs on USB.
    pub fn needs_usb(&self) -> bool {
        let disks = self.disks.iter().any(|it| it.bus == DiskBus::Usb);
        disks
            || self
                .devices
                .pointers
                .iter()
                .any(|(_, bus)| *bus == PointerBus::Usb)
    }

    /// Whether there is a SCSI controller: for disks that are there, or for those that may come.
    pub fn needs_scsi(&self) -> bool {
        self.hotplug || self.disks.iter().any(|it| it.bus == DiskBus::Scsi)
    }

    /// The disk of a name.
    pub fn disk(&self, name: &str) -> Option<&DiskPlan> {
        self.disks.iter().find(|it| it.name == name)
    }
}
