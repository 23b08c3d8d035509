//! Whether the memory of a machine can grow while it runs.

use thiserror::Error;

use crate::view::{Amount, InstanceSpec};

/// What memory is plugged in: at least the size of a large page of the host.
pub const BLOCK: u64 = 2 << 20;
/// The same with pages of 1Gi.
const LARGE_BLOCK: u64 = 1 << 30;
/// Below this there is too little for the tables that growing needs.
const LEAST: u64 = 1 << 30;

/// Why memory cannot grow, in upstream's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HotplugError {
    /// Fixed by real-time scheduling.
    #[error("Memory hotplug is not compatible with realtime VMs")]
    Realtime,
    /// Fixed by the host's nodes.
    #[error("Memory hotplug is not compatible with guest mapping passthrough")]
    Numa,
    /// Fixed by encryption.
    #[error("Memory hotplug is not compatible with encrypted VMs")]
    Encrypted,
    /// There is nothing to grow from.
    #[error("Guest memory must be configured when memory hotplug is enabled")]
    NoGuest,
    /// There is nothing to grow to.
    #[error("Max guest memory must be configured when memory hotplug is enabled")]
    NoMaximum,
    /// It is already larger.
    #[error("Guest memory is greater than the configured maxGuest memory")]
    Greater,
    /// It does not consist of whole blocks.
    #[error("Guest memory must be {0} aligned")]
    GuestAlignment(String),
    /// It does not consist of whole blocks.
    #[error("MaxGuest must be {0} aligned")]
    MaximumAlignment(String),
    /// Another kind of processor.
    #[error("Memory hotplug is only available for x86_64 and arm64 VMs")]
    Architecture,
    /// Too little.
    #[error("Memory hotplug is only available for VMs with at least 1Gi of guest memory")]
    TooSmall,
}

/// The size of the pieces in which the memory of a machine grows.
pub fn block(spec: &InstanceSpec) -> u64 {
    let pages = spec.domain.memory.as_ref().and_then(|it| it.hugepages.as_ref());
    if pages.is_some_and(|it| it.page_size == "1Gi") {
        LARGE_BLOCK
    } else {
        BLOCK
    }
}

/// Whether memory can grow up to a maximum.
pub fn check(spec: &InstanceSpec, maximum: Option<Amount>) -> Result<(), HotplugError> {
    let domain = &spec.domain;
    let cpu = domain.cpu.as_ref();
    if cpu.is_some_and(|it| it.realtime.is_some()) {
        return Err(HotplugError::Realtime);
    }
    let numa = cpu.and_then(|it| it.numa.as_ref());
    if numa.is_some_and(|it| it.guest_mapping_passthrough.is_some()) {
        return Err(HotplugError::Numa);
    }
    if domain.launch_security.is_some() {
        return Err(HotplugError::Encrypted);
    }
    let block = block(spec);
    let guest = domain
        .memory
        .as_ref()
        .and_then(|it| it.guest)
        .ok_or(HotplugError::NoGuest)?;
    let maximum = maximum.ok_or(HotplugError::NoMaximum)?;
    let pieces = if block == LARGE_BLOCK { "1Gi" } else { "2Mi" }.to_owned();
    if guest > maximum {
        return Err(HotplugError::Greater);
    }
    if !guest.bytes().is_multiple_of(block) {
        return Err(HotplugError::GuestAlignment(pieces));
    }
    if !maximum.bytes().is_multiple_of(block) {
        return Err(HotplugError::MaximumAlignment(pieces));
    }
    if !matches!(spec.architecture.as_str(), "amd64" | "arm64") {
        return Err(HotplugError::Architecture);
    }
    if guest.bytes() < LEAST {
        return Err(HotplugError::TooSmall);
    }
    Ok(())
}
