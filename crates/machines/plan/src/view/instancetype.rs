//! Sizes (`VirtualMachineInstancetype`) and tastes (`VirtualMachinePreference`).
//!
//! What goes into a machine as it stands is kept as JSON, so that no field of it can get lost.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Amount, Hugepages};

/// `spec` of a size.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct InstancetypeSpec {
    /// Processors.
    pub cpu: CpuInstancetype,
    /// Memory.
    pub memory: MemoryInstancetype,
    /// Devices of the host.
    pub gpus: Option<Value>,
    /// Devices of the host.
    pub host_devices: Option<Value>,
    /// How disks share threads.
    pub io_threads_policy: Option<String>,
    /// Memory encryption.
    pub launch_security: Option<Value>,
    /// Annotations of instances.
    pub annotations: Map<String, Value>,
    /// Where instances run.
    pub node_selector: Option<Value>,
    /// Whose scheduler.
    pub scheduler_name: String,
}

/// Processors of a size.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CpuInstancetype {
    /// How many.
    pub guest: u32,
    /// Model.
    pub model: Option<String>,
    /// A host processor for each.
    #[serde(rename = "dedicatedCPUPlacement")]
    pub dedicated_cpu_placement: Option<bool>,
    /// A host processor for QEMU itself.
    pub isolate_emulator_thread: Option<bool>,
    /// Nodes of memory and processors.
    pub numa: Option<Value>,
    /// Real-time scheduling.
    pub realtime: Option<Value>,
    /// Sockets that machines can grow to.
    pub max_sockets: Option<u32>,
}

/// Memory of a size.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryInstancetype {
    /// What guests see.
    pub guest: Option<Amount>,
    /// Pages of a given size.
    pub hugepages: Option<Hugepages>,
    /// Percentage of memory that the node need not have.
    pub overcommit_percent: i64,
    /// What guests can grow to.
    pub max_guest: Option<Amount>,
}

/// `spec` of a taste.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PreferenceSpec {
    /// Clock, if the machine has none.
    pub clock: Option<ClockPreferences>,
    /// Processors.
    pub cpu: Option<CpuPreferences>,
    /// Devices: `preferred...`.
    pub devices: Option<Map<String, Value>>,
    /// Features: `preferred...`.
    pub features: Option<Map<String, Value>>,
    /// Firmware: `preferred...`.
    pub firmware: Option<FirmwarePreferences>,
    /// Board.
    pub machine: Option<MachinePreferences>,
    /// Storage class of disks.
    pub volumes: Option<VolumePreferences>,
    /// Subdomain, if the machine has none.
    pub preferred_subdomain: Option<String>,
    /// Time to shut down, if the machine has none.
    pub preferred_termination_grace_period_seconds: Option<i64>,
    /// What machines must have.
    pub requirements: Option<PreferenceRequirements>,
    /// Annotations of instances.
    pub annotations: Map<String, Value>,
    /// Whether a machine's own processor layout is kept.
    pub prefer_spread_socket_to_core_ratio: u32,
    /// Kind of processor.
    pub preferred_architecture: Option<String>,
}

/// Clock that is preferred.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ClockPreferences {
    /// UTC or a zone.
    pub preferred_clock_offset: Option<Map<String, Value>>,
    /// Sources of time.
    pub preferred_timer: Option<Value>,
}

/// Processors that are preferred.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CpuPreferences {
    /// What processors become: sockets, cores, threads or a mixture.
    #[serde(rename = "preferredCPUTopology")]
    pub preferred_cpu_topology: Option<String>,
    /// How a mixture is mixed.
    pub spread_options: Option<SpreadOptions>,
    /// Features to add.
    #[serde(rename = "preferredCPUFeatures")]
    pub preferred_cpu_features: Option<Value>,
}

/// How processors spread.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct SpreadOptions {
    /// Over what.
    pub across: Option<String>,
    /// How many to one.
    pub ratio: Option<u32>,
}

/// Firmware that is preferred.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct FirmwarePreferences {
    /// BIOS.
    pub preferred_use_bios: Option<bool>,
    /// BIOS on the serial console.
    pub preferred_use_bios_serial: Option<bool>,
    /// UEFI, the old way.
    pub preferred_use_efi: Option<bool>,
    /// Signed code only, the old way.
    pub preferred_use_secure_boot: Option<bool>,
    /// UEFI.
    pub preferred_efi: Option<Value>,
}

/// Board that is preferred.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct MachinePreferences {
    /// `q35`.
    pub preferred_machine_type: String,
}

/// Storage that is preferred.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumePreferences {
    /// A class.
    pub preferred_storage_class_name: String,
}

/// What machines must have.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PreferenceRequirements {
    /// At least so many processors.
    pub cpu: Option<CpuRequirement>,
    /// At least so much memory.
    pub memory: Option<MemoryRequirement>,
}

/// At least so many processors.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CpuRequirement {
    /// How many.
    pub guest: u32,
}

/// At least so much memory.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryRequirement {
    /// How much.
    pub guest: Option<Amount>,
}
