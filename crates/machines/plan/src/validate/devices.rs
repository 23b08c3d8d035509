//! Devices that are neither disks nor cards, and probes.

use super::Causes;
use crate::settings::Settings;
use crate::view::{InstanceSpec, Probe};

pub(super) fn inputs(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    for (index, input) in spec.domain.devices.inputs.iter().enumerate() {
        let field = format!("{path}.domain.devices.inputs[{index}]");
        if !["", "virtio", "usb"].contains(&input.bus.as_str()) {
            causes.invalid(
                format!("{field}.bus"),
                "Input device can have only virtio or usb bus.",
            );
        }
        if input.kind != "tablet" {
            causes.invalid(format!("{field}.type"), "Input device can have only tablet type.");
        }
    }
}

pub(super) fn io_threads(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(policy) = spec.domain.io_threads_policy.as_deref() else {
        return;
    };
    let field = format!("{path}.domain.ioThreadsPolicy");
    if !["shared", "auto", "supplementalPool"].contains(&policy) {
        causes.invalid(&field, format!("Invalid IOThreadsPolicy ({policy})"));
    }
    let count = spec
        .domain
        .io_threads
        .as_ref()
        .and_then(|it| it.supplemental_pool_thread_count);
    if policy == "supplementalPool" && count.unwrap_or(0) < 1 {
        let message = "the number of iothreads needs to be set and positive for the dedicated policy";
        causes.invalid(format!("{path}.domain.ioThreads.count"), message);
    }
}

pub(super) fn probes(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let probes = [
        ("readinessProbe", &spec.readiness_probe),
        ("livenessProbe", &spec.liveness_probe),
    ];
    for (name, probe) in probes {
        if let Some(probe) = probe {
            handlers(&format!("{path}.{name}"), probe, causes);
        }
    }
    if spec.networks.iter().any(|it| it.pod.is_some()) {
        return;
    }
    for (name, probe) in probes {
        let Some(probe) = probe else {
            continue;
        };
        let field = format!("{path}.{name}");
        for (handler, set) in [
            ("httpGet", probe.http_get.is_some()),
            ("tcpSocket", probe.tcp_socket.is_some()),
        ] {
            if set {
                let message = format!("{field}.{handler} is only allowed if the Pod Network is attached");
                causes.invalid(format!("{field}.{handler}"), message);
            }
        }
    }
}

fn handlers(field: &str, probe: &Probe, causes: &mut Causes) {
    let set = [
        probe.http_get.is_some(),
        probe.tcp_socket.is_some(),
        probe.exec.is_some(),
        probe.guest_agent_ping.is_some(),
    ];
    match set.iter().filter(|set| **set).count() {
        0 => {
            let message = format!(
                "either {field}.tcpSocket, {field}.exec or {field}.httpGet must be set if a {field} is specified"
            );
            causes.required(field, message);
        }
        1 => {}
        _ => causes.invalid(field, format!("{field} must have exactly one probe type set")),
    }
}

/// What somebody must have switched on.
pub(super) fn gated(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    let devices = &spec.domain.devices;
    let field = format!("{path}.domain.devices");
    if devices.autoattach_vsock == Some(true) && !settings.gate("VSOCK") {
        causes.invalid(
            format!("{field}.autoattachVSOCK"),
            "VSOCK feature gate is not enabled in kubevirt-config",
        );
    }
    let reservations = devices
        .disks
        .iter()
        .any(|it| it.lun.as_ref().is_some_and(|it| it.reservation));
    if reservations && !settings.gate("PersistentReservation") {
        causes.invalid(
            format!("{field}.disks.luns.reservation"),
            "PersistentReservation feature gate is not enabled in kubevirt-config",
        );
    }
    if !settings.gate("VMPersistentState") {
        let message = "VMPersistentState feature gate is not enabled in kubevirt-config";
        if devices.tpm.as_ref().is_some_and(|it| it.persistent == Some(true)) {
            causes.invalid(format!("{field}.tpm.persistent"), message);
        }
        let efi = spec.domain.firmware.as_ref().and_then(|it| it.efi());
        if efi.is_some_and(|it| it.persistent == Some(true)) {
            causes.invalid(
                format!("{path}.domain.firmware.bootloader.efi.persistent"),
                message,
            );
        }
    }
    if devices.downward_metrics.is_some() && !settings.gate("DownwardMetrics") {
        causes.invalid(
            format!("{field}.downwardMetrics"),
            "downwardMetrics virtio serial is not allowed: DownwardMetrics feature gate is not enabled",
        );
    }
    let eviction = spec.eviction_strategy.as_deref();
    if eviction.is_some_and(|it| !["LiveMigrate", "LiveMigrateIfPossible", "None", "External"].contains(&it))
    {
        let at = format!("{path}.evictionStrategy");
        let message = format!(
            "{at} is set with an unrecognized option: {}",
            eviction.unwrap_or_default()
        );
        causes.invalid(at, message);
    }
    if !devices.host_devices.is_empty() && !settings.gate("HostDevices") {
        let message = "Host Devices feature gate is not enabled in kubevirt-config";
        causes.invalid(format!("{path}.HostDevices"), message);
    }
    if spec.domain.launch_security.is_some() && !settings.gate("WorkloadEncryptionSEV") {
        let message = "WorkloadEncryptionSEV feature gate is not enabled in kubevirt-config";
        causes.invalid(format!("{path}.launchSecurity"), message);
    }
    if let Some(sound) = &devices.sound {
        let at = format!("{path}.Sound");
        if !["", "ich9", "ac97"].contains(&sound.model.as_str()) {
            causes.invalid(
                &at,
                "Sound device type is not supported. Options: 'ich9' or 'ac97'",
            );
        }
        if sound.name.is_empty() {
            causes.invalid(&at, "Sound device requires a name field.");
        }
    }
    for filesystem in &devices.filesystems {
        let Some(volume) = spec.volumes.iter().find(|it| it.name == filesystem.name) else {
            continue;
        };
        let of_config = volume.config_map.is_some()
            || volume.secret.is_some()
            || volume.service_account.is_some()
            || volume.downward_api.is_some();
        let of_storage = volume.persistent_volume_claim.is_some() || volume.data_volume.is_some();
        let old = settings.gate("ExperimentalVirtiofsSupport");
        let at = format!("{field}.filesystems");
        if of_config && !old && !settings.gate("EnableVirtioFsConfigVolumes") {
            causes.invalid(
                at,
                "virtiofs is not allowed: virtiofs feature gate is not enabled for config volumes",
            );
        } else if of_storage && !old && !settings.gate("EnableVirtioFsStorageVolumes") {
            causes.invalid(
                at,
                "virtiofs is not allowed: virtiofs feature gate is not enabled for PVC",
            );
        }
    }
}
