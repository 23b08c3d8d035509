//! `spec.domain`: the machine without its devices.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Amount, Devices, FeatureState, Present};

/// The machine.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Domain {
    /// What it takes of its node.
    pub resources: Resources,
    /// Processors.
    pub cpu: Option<Cpu>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Board.
    pub machine: Option<Machine>,
    /// What starts the guest.
    pub firmware: Option<Firmware>,
    /// Time of the guest.
    pub clock: Option<Clock>,
    /// Switches of the hypervisor.
    pub features: Option<Features>,
    /// Devices.
    pub devices: Devices,
    /// How disks share threads.
    pub io_threads_policy: Option<String>,
    /// How many threads there are to share.
    pub io_threads: Option<IoThreads>,
    /// What the guest sees of its case.
    pub chassis: Option<Chassis>,
    /// Memory encryption.
    pub launch_security: Option<Value>,
}

/// What is taken of the node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Resources {
    /// At least.
    pub requests: BTreeMap<String, Amount>,
    /// At most.
    pub limits: BTreeMap<String, Amount>,
    /// Do not count what QEMU itself needs.
    pub overcommit_guest_overhead: bool,
}

impl Resources {
    /// The amount asked for, or nothing.
    pub fn request(&self, name: &str) -> i64 {
        self.requests.get(name).map_or(0, |it| it.value())
    }

    /// The upper limit, or nothing.
    pub fn limit(&self, name: &str) -> i64 {
        self.limits.get(name).map_or(0, |it| it.value())
    }
}

/// Processors.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Cpu {
    /// Cores of a socket.
    pub cores: u32,
    /// Sockets.
    pub sockets: u32,
    /// Sockets that the machine can grow to.
    pub max_sockets: u32,
    /// Threads of a core.
    pub threads: u32,
    /// Model: `host-model`, `host-passthrough` or a name.
    pub model: String,
    /// Features to add or take away.
    pub features: Vec<CpuFeature>,
    /// A host processor for each.
    pub dedicated_cpu_placement: bool,
    /// Nodes of memory and processors.
    pub numa: Option<Numa>,
    /// A host processor for QEMU itself.
    pub isolate_emulator_thread: bool,
    /// Real-time scheduling.
    pub realtime: Option<Value>,
}

impl Cpu {
    /// Processors that the guest starts with.
    pub fn count(&self) -> u32 {
        [self.sockets, self.cores, self.threads]
            .into_iter()
            .fold(1_u32, |product, part| product.saturating_mul(part.max(1)))
    }
}

/// A feature of a processor.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CpuFeature {
    /// Name.
    pub name: String,
    /// `force`, `require`, `optional`, `disable` or `forbid`.
    pub policy: String,
}

/// Nodes of memory and processors.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Numa {
    /// The guest sees the host's.
    pub guest_mapping_passthrough: Option<Present>,
}

/// Memory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Memory {
    /// Pages of a given size.
    pub hugepages: Option<Hugepages>,
    /// What the guest sees.
    pub guest: Option<Amount>,
    /// What it can grow to.
    pub max_guest: Option<Amount>,
}

/// Pages of a given size.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Hugepages {
    /// `2Mi`, `1Gi`.
    pub page_size: String,
}

/// Board.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Machine {
    /// `q35` or a version of it.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What starts the guest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Firmware {
    /// Who the machine is.
    pub uuid: String,
    /// BIOS or UEFI.
    pub bootloader: Option<Bootloader>,
    /// Serial number.
    pub serial: String,
    /// A kernel from outside of the disks.
    pub kernel_boot: Option<KernelBoot>,
    /// Tables for the guest.
    pub acpi: Option<Acpi>,
}

/// BIOS or UEFI.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Bootloader {
    /// BIOS.
    pub bios: Option<Bios>,
    /// UEFI.
    pub efi: Option<Efi>,
}

/// BIOS.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Bios {
    /// Show it on the serial console.
    pub use_serial: Option<bool>,
}

/// UEFI.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Efi {
    /// Only signed code; on if nobody says otherwise.
    pub secure_boot: Option<bool>,
    /// Variables survive restarts.
    pub persistent: Option<bool>,
}

/// A kernel from outside of the disks.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct KernelBoot {
    /// The kernel's command line.
    pub kernel_args: String,
    /// Where it is.
    pub container: Option<KernelBootContainer>,
}

/// An image with a kernel.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct KernelBootContainer {
    /// The image.
    pub image: String,
    /// A Secret for its registry.
    pub image_pull_secret: String,
    /// When to ask the registry.
    pub image_pull_policy: String,
    /// The kernel in it.
    pub kernel_path: String,
    /// The initial RAM disk in it.
    pub initrd_path: String,
}

/// Tables for the guest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Acpi {
    /// A volume with a licence table.
    pub slic_name_ref: String,
}

/// Time of the guest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Clock {
    /// UTC, perhaps with an offset.
    pub utc: Option<ClockUtc>,
    /// A zone's time.
    pub timezone: Option<String>,
    /// Sources of time.
    pub timer: Option<Timer>,
}

/// UTC, perhaps with an offset.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ClockUtc {
    /// Seconds that the guest's clock is ahead.
    pub offset_seconds: Option<i64>,
}

/// Sources of time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Timer {
    /// High precision event timer.
    pub hpet: Option<TimerState>,
    /// The hypervisor's clock.
    pub kvm: Option<TimerState>,
    /// Interval timer.
    pub pit: Option<TimerState>,
    /// Real-time clock.
    pub rtc: Option<TimerState>,
    /// Windows' reference clock.
    pub hyperv: Option<TimerState>,
}

/// A source of time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct TimerState {
    /// Whether it is there.
    pub present: Option<bool>,
    /// What happens to ticks that came too late.
    pub tick_policy: String,
    /// What it follows.
    pub track: String,
}

/// Switches of the hypervisor.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Features {
    /// ACPI; on if nobody says otherwise.
    pub acpi: FeatureState,
    /// Interrupt controller.
    pub apic: Option<Value>,
    /// Windows' interfaces.
    pub hyperv: Option<BTreeMap<String, Value>>,
    /// All of Windows' interfaces that the host has.
    pub hyperv_passthrough: Option<FeatureState>,
    /// System management mode.
    pub smm: Option<FeatureState>,
    /// KVM's signature.
    pub kvm: Option<KvmFeature>,
    /// Paravirtual spin locks.
    pub pvspinlock: Option<FeatureState>,
}

/// KVM's signature.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct KvmFeature {
    /// The guest does not see it.
    pub hidden: bool,
}

/// How many threads disks share.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct IoThreads {
    /// Threads of the pool.
    pub supplemental_pool_thread_count: Option<u32>,
}

/// What the guest sees of its case.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Chassis {
    /// Manufacturer.
    pub manufacturer: String,
    /// Version.
    pub version: String,
    /// Serial number.
    pub serial: String,
    /// Asset tag.
    pub asset: String,
    /// Stock keeping unit.
    pub sku: String,
}

impl Firmware {
    /// UEFI, if that starts the guest.
    pub fn efi(&self) -> Option<&Efi> {
        self.bootloader.as_ref().and_then(|it| it.efi.as_ref())
    }

    /// Whether only signed code starts.
    pub fn secure_boot(&self) -> bool {
        self.efi().is_some_and(|it| it.secure_boot.unwrap_or(true))
    }
}
