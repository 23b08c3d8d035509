//! Board, firmware, and a kernel from outside of the disks.

use regex::Regex;

use super::Causes;
use super::volumes::absolute_path;
use crate::settings::Settings;
use crate::view::{Firmware, InstanceSpec};

/// Longer texts do not fit into what the guest reads.
pub(super) const MAX_TEXT: usize = 256;

/// What a serial number may consist of.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"_.+-".contains(&it))
}

pub(super) fn machine_type(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    let kind = spec.domain.machine.as_ref().map_or("", |it| it.kind.as_str());
    if kind.is_empty() {
        return;
    }
    let allowed = &settings.emulated_machines;
    // An expression of the settings that is none allows nothing.
    if allowed
        .iter()
        .any(|it| Regex::new(it).is_ok_and(|it| it.is_match(kind)))
    {
        return;
    }
    let field = format!("{path}.domain.machine.type");
    let message = format!(
        "{field} is not supported: {kind} (allowed values: [{}])",
        allowed.join(" ")
    );
    causes.invalid(field, message);
}

pub(super) fn serial(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let serial = spec.domain.firmware.as_ref().map_or("", |it| it.serial.as_str());
    let field = format!("{path}.domain.firmware.serial");
    if serial.len() > MAX_TEXT {
        causes.invalid(
            &field,
            format!("{field} must be less than or equal to {MAX_TEXT} in length, if specified"),
        );
    }
    if !is_plain(serial) {
        let message =
            format!("{field} must be made up of the following characters [A-Za-z0-9_.+-], if specified");
        causes.invalid(&field, message);
    }
}

pub(super) fn acpi(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(acpi) = spec.domain.firmware.as_ref().and_then(|it| it.acpi.as_ref()) else {
        return;
    };
    let field = format!("{path}.acpi");
    match spec.volumes.iter().find(|it| it.name == acpi.slic_name_ref) {
        Some(volume) if volume.secret.is_some() => {}
        Some(_) => causes.invalid(
            format!("{field}.slicNameRef"),
            format!("{field} refers to Volume of unsupported type."),
        ),
        None => causes.invalid(&field, format!("{field} does not have a matching Volume.")),
    }
}

pub(super) fn check(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(firmware) = &spec.domain.firmware else {
        return;
    };
    let field = format!("{path}.domain.firmware");
    if let Some(loader) = &firmware.bootloader
        && loader.bios.is_some()
        && loader.efi.is_some()
    {
        let field = format!("{field}.bootloader");
        causes.invalid(
            &field,
            format!("{field} has both EFI and BIOS configured, but they are mutually exclusive."),
        );
    }
    kernel_boot(&format!("{field}.kernelBoot"), firmware, causes);
    let smm = spec
        .domain
        .features
        .as_ref()
        .and_then(|it| it.smm)
        .is_some_and(|it| it.is_on());
    if firmware.secure_boot() && !smm {
        let field = format!("{path}.domain");
        let message = format!(
            "{field} has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled."
        );
        causes.invalid(field, message);
    }
}

fn kernel_boot(field: &str, firmware: &Firmware, causes: &mut Causes) {
    let Some(boot) = &firmware.kernel_boot else {
        return;
    };
    let Some(container) = &boot.container else {
        if !boot.kernel_args.is_empty() {
            causes.invalid(
                format!("{field}.kernelArgs"),
                "kernel arguments cannot be provided without an external kernel",
            );
        }
        return;
    };
    let field = format!("{field}.container");
    if container.image.is_empty() {
        causes.required(
            format!("{field}.image"),
            format!("{field} must be defined with an image"),
        );
    }
    if container.kernel_path.is_empty() && container.initrd_path.is_empty() {
        let message =
            format!("{field} must be defined with at least one of the following: kernelPath, initrdPath");
        causes.required(&field, message);
    }
    for (name, path) in [
        ("kernelPath", &container.kernel_path),
        ("initrdPath", &container.initrd_path),
    ] {
        if !path.is_empty() {
            absolute_path(&format!("{field}.{name}"), path, causes);
        }
    }
}
