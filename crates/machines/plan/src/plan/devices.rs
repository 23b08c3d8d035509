//! Devices that are neither disks nor network cards.

use super::Capabilities;
use crate::machine::{DevicePlan, PointerBus, SoundModel, WatchdogAction};
use crate::settings::Settings;
use crate::unsupported::Wishes;
use crate::view::Domain;

pub(super) fn devices(
    domain: &Domain,
    host: &Capabilities,
    settings: &Settings,
    wishes: &mut Wishes,
) -> DevicePlan {
    let devices = &domain.devices;
    unserved(domain, wishes);
    let on = |field: Option<bool>| field.unwrap_or(true);
    let serial_console = on(devices.autoattach_serial_console);
    let mut pointers = Vec::new();
    for input in &devices.inputs {
        let bus = if input.bus == "virtio" {
            PointerBus::Virtio
        } else {
            PointerBus::Usb
        };
        pointers.push((input.name.clone(), bus));
    }
    if devices.autoattach_input_device == Some(true) && pointers.is_empty() {
        pointers.push(("default-0".to_owned(), PointerBus::Usb));
    }
    let tpm = devices.tpm.as_ref().filter(|it| it.enabled.unwrap_or(true));
    if tpm.is_some() && !host.tpm {
        wishes.blocks(
            "domain.devices.tpm",
            "this node cannot emulate TPMs; install swtpm on it",
        );
    }
    if tpm.is_some_and(|it| it.persistent == Some(true)) {
        wishes.ignored(
            "domain.devices.tpm.persistent",
            "what the TPM holds goes when the instance ends",
        );
    }
    // Pages that belong to one machine for good cannot be given back.
    let fixed = domain.memory.as_ref().is_some_and(|it| it.hugepages.is_some())
        || domain
            .cpu
            .as_ref()
            .is_some_and(|it| it.dedicated_cpu_placement || it.realtime.is_some());
    DevicePlan {
        graphics: on(devices.autoattach_graphics_device),
        serial_console,
        log_console: serial_console && devices.log_serial_console.unwrap_or(settings.log_serial_console),
        balloon: on(devices.autoattach_mem_balloon).then_some(settings.free_page_reporting && !fixed),
        rng: devices.rng.is_some(),
        watchdog: watchdog(domain, wishes),
        pointers,
        tpm: tpm.map(|it| it.persistent == Some(true)),
        sound: devices.sound.as_ref().map(|it| match it.model.as_str() {
            "ac97" => SoundModel::Ac97,
            _ => SoundModel::Ich9,
        }),
    }
}

fn watchdog(domain: &Domain, wishes: &mut Wishes) -> Option<WatchdogAction> {
    let watchdog = domain.devices.watchdog.as_ref()?;
    if watchdog.diag288.is_some() {
        wishes.ignored(
            "domain.devices.watchdog.diag288",
            "it belongs to another kind of processor",
        );
    }
    let device = watchdog.i6300esb.as_ref()?;
    Some(match device.action.as_str() {
        "poweroff" => WatchdogAction::Poweroff,
        "shutdown" => WatchdogAction::Shutdown,
        _ => WatchdogAction::Reset,
    })
}

fn unserved(domain: &Domain, wishes: &mut Wishes) {
    let devices = &domain.devices;
    for (index, gpu) in devices.gpus.iter().enumerate() {
        let reason = format!("this node has no device {}", gpu.device_name);
        wishes.blocks(format!("domain.devices.gpus[{index}]"), reason);
    }
    for (index, device) in devices.host_devices.iter().enumerate() {
        let reason = format!("this node has no device {}", device.device_name);
        wishes.blocks(format!("domain.devices.hostDevices[{index}]"), reason);
    }
    for (index, filesystem) in devices.filesystems.iter().enumerate() {
        let reason = format!(
            "directories are not shared with guests; attach volume {} as a disk",
            filesystem.name
        );
        wishes.blocks(format!("domain.devices.filesystems[{index}]"), reason);
    }
    if devices.autoattach_vsock == Some(true) {
        wishes.ignored(
            "domain.devices.autoattachVSOCK",
            "sockets between host and guest are not available",
        );
    }
    if devices.downward_metrics.is_some() {
        wishes.ignored(
            "domain.devices.downwardMetrics",
            "metrics of the node are not passed to guests",
        );
    }
    if devices.client_passthrough.is_some() {
        wishes.ignored(
            "domain.devices.clientPassthrough",
            "USB devices of viewers are not passed to guests",
        );
    }
}
