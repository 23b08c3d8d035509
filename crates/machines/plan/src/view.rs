//! What Fairway acts on in KubeVirt's objects, as Rust types.
//!
//! They are views: an object has more fields than these, and nothing is ever written back from them. What is written
//! goes into the JSON itself ([`crate::defaults`], [`crate::instancetype`]), so that no field gets lost on the way. Types
//! have been checked by the schemas of the kinds before anything comes here; what they cannot say is left to
//! [`crate::validate`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use thiserror::Error;

use fairway_kernel_scalar::quantity::Quantity;

mod access;
mod data_volume;
mod devices;
mod domain;
mod instance;
mod instancetype;
mod machine;
mod metadata;
mod volumes;

pub use access::{AccessCredential, Propagation, SecretSource, SshPublicKey, UserPassword};
pub use data_volume::{DataVolumeSpec, DataVolumeTemplate};
pub use devices::{
    BlockSize, CustomBlockSize, Devices, DhcpOptions, DhcpPrivateOption, Disk, DiskTarget, Filesystem, Input,
    Interface, NamedDevice, Port, Sound, Tpm, Watchdog, WatchdogDevice,
};
pub use domain::{
    Acpi, Bios, Bootloader, Chassis, Clock, ClockUtc, Cpu, CpuFeature, Domain, Efi, Features, Firmware,
    Hugepages, IoThreads, KernelBoot, KernelBootContainer, Machine, Memory, Numa, Resources, Timer,
    TimerState,
};
pub use instance::{
    InstanceSpec, InstanceStatus, Network, PhaseTransition, PodNetwork, Probe, VirtualMachineInstance,
};
pub use instancetype::{
    CpuInstancetype, InstancetypeSpec, MemoryInstancetype, PreferenceRequirements, PreferenceSpec,
};
pub use machine::{
    Matcher, RunStrategy, StartFailure, StateChangeRequest, Template, VirtualMachine, VirtualMachineSpec,
    VirtualMachineStatus,
};
pub use metadata::{Condition, Metadata, OwnerReference};
pub use volumes::{
    CloudInit, ConfigMapVolume, ContainerDisk, DataVolumeRef, DownwardApiField, DownwardApiVolume, EmptyDisk,
    Ephemeral, FieldRef, HostDisk, MemoryDump, PersistentVolumeClaimRef, Reference, SecretVolume,
    ServiceAccountVolume, Sysprep, Volume,
};

/// An object that is not what its kind says. Schemas refuse such objects; one that was stored before them may exist.
#[derive(Debug, Error)]
#[error(
    "reading a {kind}: the object does not have the form of its kind; compare it with `kubectl explain {kind}`"
)]
pub struct ViewError {
    kind: &'static str,
    source: serde_json::Error,
}

/// Reads a view of an object.
pub fn read<T: DeserializeOwned>(kind: &'static str, object: &Value) -> Result<T, ViewError> {
    T::deserialize(object).map_err(|source| ViewError { kind, source })
}

/// Presence is all there is to know: `rng: {}`, `masquerade: {}`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Present {}

/// `enabled`, which is on if nobody says otherwise.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct FeatureState {
    /// Nothing means on.
    pub enabled: Option<bool>,
}

impl FeatureState {
    /// Whether the feature is on, given that it is mentioned.
    pub fn is_on(self) -> bool {
        self.enabled.unwrap_or(true)
    }
}

/// An amount as it was written, and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Amount(pub Quantity);

impl Amount {
    /// Whole units (bytes, processors), rounded up.
    pub fn value(self) -> i64 {
        self.0.value()
    }

    /// Bytes: what is below zero is none.
    pub fn bytes(self) -> u64 {
        u64::try_from(self.0.value()).unwrap_or(0)
    }

    /// Thousandths, rounded up: what is below zero is none.
    pub fn milli(self) -> u64 {
        u64::try_from(self.0.milli_value()).unwrap_or(0)
    }

    /// As the API shows it.
    pub fn text(self) -> String {
        self.0.canonical()
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Quantity::from_value(&value)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(format!("{value} is not a quantity")))
    }
}
