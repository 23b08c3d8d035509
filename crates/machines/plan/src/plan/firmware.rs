//! What starts the guest, and what it reads about its hardware.

use super::Capabilities;
use crate::machine::{FirmwarePlan, ImageRef, KernelPlan, Loader, Smbios};
use crate::unsupported::Wishes;
use crate::view::Domain;

pub(super) fn firmware(domain: &Domain, host: &Capabilities, wishes: &mut Wishes) -> FirmwarePlan {
    let firmware = domain.firmware.clone().unwrap_or_default();
    let loader = match firmware.efi() {
        Some(efi) => {
            let secure = firmware.secure_boot();
            if !host.uefi {
                wishes.blocks(
                    "domain.firmware.bootloader.efi",
                    "this node has no UEFI firmware; install OVMF on it",
                );
            } else if secure && !host.secure_boot {
                let reason =
                    "this node has no UEFI firmware for signed code; install it, or set secureBoot to false";
                wishes.blocks("domain.firmware.bootloader.efi.secureBoot", reason);
            }
            if efi.persistent == Some(true) {
                wishes.ignored(
                    "domain.firmware.bootloader.efi.persistent",
                    "what the firmware and the guest store in UEFI variables goes when the instance ends",
                );
            }
            Loader::Efi {
                secure,
                persistent: efi.persistent == Some(true),
            }
        }
        None => {
            let bios = firmware.bootloader.as_ref().and_then(|it| it.bios.as_ref());
            Loader::Bios {
                on_serial: bios.is_some_and(|it| it.use_serial == Some(true)),
            }
        }
    };
    if firmware.acpi.is_some_and(|it| !it.slic_name_ref.is_empty()) {
        wishes.ignored(
            "domain.firmware.acpi.slicNameRef",
            "licence tables are not passed to guests",
        );
    }
    let boot = firmware.kernel_boot.as_ref();
    let kernel = boot
        .and_then(|it| it.container.as_ref())
        .map(|container| KernelPlan {
            image: ImageRef {
                image: container.image.clone(),
                pull_policy: container.image_pull_policy.clone(),
                pull_secret: container.image_pull_secret.clone(),
            },
            kernel: container.kernel_path.clone(),
            initrd: container.initrd_path.clone(),
            arguments: boot.map(|it| it.kernel_args.clone()).unwrap_or_default(),
        });
    FirmwarePlan { loader, kernel }
}

pub(super) fn smbios(domain: &Domain) -> Smbios {
    let chassis = domain.chassis.clone().unwrap_or_default();
    let parts = [
        ("manufacturer", chassis.manufacturer),
        ("version", chassis.version),
        ("serial", chassis.serial),
        ("asset", chassis.asset),
        ("sku", chassis.sku),
    ];
    Smbios {
        serial: domain
            .firmware
            .as_ref()
            .map(|it| it.serial.clone())
            .unwrap_or_default(),
        chassis: parts
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}
