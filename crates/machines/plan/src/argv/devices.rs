//! Controllers, console, screen, agent, and the smaller devices.

use serde_json::{Value, json};

use super::{Arguments, ArgvError, Layout, Place, Sockets, escaped};
use crate::machine::{MachinePlan, PointerBus, SoundModel, WatchdogAction};

/// A device on PCI with its place.
fn placed(driver: &str, id: &str, key: &str, layout: &Layout) -> Result<Value, ArgvError> {
    let (bus, address) = layout.pci(key)?;
    Ok(json!({"driver": driver, "id": id, "bus": bus, "addr": address}))
}

/// The name of a virtio driver: old and new at once, or new.
fn virtio(plan: &MachinePlan, name: &str) -> String {
    if plan.transitional {
        format!("virtio-{name}-pci-transitional")
    } else {
        format!("virtio-{name}-pci")
    }
}

pub(super) fn controllers(
    plan: &MachinePlan,
    layout: &Layout,
    arguments: &mut Arguments,
) -> Result<(), ArgvError> {
    if plan.needs_usb() {
        let mut device = placed("qemu-xhci", "usb", "usb", layout)?;
        device["p2"] = json!(15);
        device["p3"] = json!(15);
        arguments.device(&device);
    }
    if plan.needs_scsi() {
        arguments.device(&placed(&virtio(plan, "scsi"), "scsi0", "scsi0", layout)?);
    }
    arguments.device(&placed(
        &virtio(plan, "serial"),
        "virtio-serial0",
        "virtio-serial0",
        layout,
    )?);
    for controller in 1..=layout.more_sata() {
        let id = format!("ahci{controller}");
        arguments.device(&placed("ich9-ahci", &id, &id, layout)?);
    }
    Ok(())
}

pub(super) fn devices(
    plan: &MachinePlan,
    layout: &Layout,
    sockets: &Sockets,
    arguments: &mut Arguments,
) -> Result<(), ArgvError> {
    let devices = &plan.devices;
    if devices.serial_console {
        arguments.socket("charserial0", &sockets.serial);
        arguments
            .device(&json!({"driver": "isa-serial", "id": "serial0", "chardev": "charserial0", "index": 0}));
    }
    arguments.socket("charagent0", &sockets.agent);
    arguments.device(&json!({
        "driver": "virtserialport", "id": "agent0", "bus": "virtio-serial0.0", "nr": 1, "chardev": "charagent0",
        "name": "org.qemu.guest_agent.0",
    }));
    arguments.option("display", "none");
    if devices.graphics {
        arguments.option("vnc", format!("unix:{}", escaped(&sockets.vnc)));
        arguments.device(&json!({
            "driver": "VGA", "id": "video0", "vgamem_mb": 16, "bus": "pcie.0", "addr": "0x1",
        }));
    }
    pointers(plan, layout, arguments)?;
    if let Some(persistent) = devices.tpm {
        arguments.option(
            "chardev",
            format!("socket,id=chartpm,path={}", escaped(&sockets.tpm)),
        );
        arguments.option("tpmdev", "emulator,id=tpm-tpm0,chardev=chartpm");
        // As upstream: the newer interface came along with persistence.
        let driver = if persistent { "tpm-crb" } else { "tpm-tis" };
        arguments.device(&json!({"driver": driver, "id": "tpm0", "tpmdev": "tpm-tpm0"}));
    }
    if devices.rng {
        arguments.object(&json!({"qom-type": "rng-random", "id": "objrng0", "filename": "/dev/urandom"}));
        let mut device = placed(&virtio(plan, "rng"), "rng0", "rng0", layout)?;
        device["rng"] = json!("objrng0");
        arguments.device(&device);
    }
    if let Some(reporting) = devices.balloon {
        let mut device = placed(&virtio(plan, "balloon"), "balloon0", "balloon0", layout)?;
        device["free-page-reporting"] = json!(reporting);
        arguments.device(&device);
    }
    if let Some(growth) = plan.memory.growth {
        let mut device = placed("virtio-mem-pci", "memory1", "memory1", layout)?;
        device["memdev"] = json!("vmem0");
        device["block-size"] = json!(growth.block);
        device["requested-size"] = json!(plan.memory.grown);
        arguments.device(&device);
    }
    if let Some(action) = devices.watchdog {
        arguments.device(&placed("i6300esb", "watchdog0", "watchdog0", layout)?);
        let word = match action {
            WatchdogAction::Reset => "reset",
            WatchdogAction::Poweroff => "poweroff",
            WatchdogAction::Shutdown => "shutdown",
        };
        arguments.option("action", format!("watchdog={word}"));
    }
    sound(plan, layout, arguments)?;
    Ok(())
}

fn pointers(plan: &MachinePlan, layout: &Layout, arguments: &mut Arguments) -> Result<(), ArgvError> {
    for (index, (name, bus)) in plan.devices.pointers.iter().enumerate() {
        let key = format!("pointer:{name}");
        let id = format!("input{index}");
        match bus {
            PointerBus::Virtio => arguments.device(&placed("virtio-tablet-pci", &id, &key, layout)?),
            PointerBus::Usb => {
                let mut device = json!({"driver": "usb-tablet", "id": id, "bus": "usb.0"});
                if let Place::Usb(port) = layout.place(&key)? {
                    device["port"] = json!(port.to_string());
                }
                arguments.device(&device);
            }
        }
    }
    Ok(())
}

fn sound(plan: &MachinePlan, layout: &Layout, arguments: &mut Arguments) -> Result<(), ArgvError> {
    let Some(model) = plan.devices.sound else {
        return Ok(());
    };
    // Nobody listens, but the guest finds its device.
    arguments.option("audiodev", "none,id=audio0");
    match model {
        SoundModel::Ac97 => {
            let mut device = placed("AC97", "sound0", "sound0", layout)?;
            device["audiodev"] = json!("audio0");
            arguments.device(&device);
        }
        SoundModel::Ich9 => {
            arguments.device(&placed("ich9-intel-hda", "sound0", "sound0", layout)?);
            arguments.device(&json!({
                "driver": "hda-duplex", "id": "sound0-codec0", "bus": "sound0.0", "cad": 0, "audiodev": "audio0",
            }));
        }
    }
    Ok(())
}
