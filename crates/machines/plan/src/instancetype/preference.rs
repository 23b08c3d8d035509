//! What a taste fills in.

use serde_json::{Map, Value, json};

use super::add_features;
use crate::edit::{at, items, set, set_if_unset};
use crate::view::PreferenceSpec;

pub(super) fn apply(taste: &PreferenceSpec, template: &mut Value) {
    let spec = &mut template["spec"];
    if let Some(features) = taste
        .cpu
        .as_ref()
        .and_then(|it| it.preferred_cpu_features.as_ref())
    {
        add_features(spec, features);
    }
    if let Some(preferred) = &taste.devices {
        devices(preferred, spec);
    }
    if let Some(preferred) = &taste.features {
        features(preferred, spec);
    }
    firmware(taste, spec);
    if let Some(board) = taste
        .machine
        .as_ref()
        .filter(|it| !it.preferred_machine_type.is_empty())
    {
        set_if_unset(
            spec,
            &["domain", "machine", "type"],
            board.preferred_machine_type.clone(),
        );
    }
    clock(taste, spec);
    if let Some(subdomain) = &taste.preferred_subdomain {
        set_if_unset(spec, &["subdomain"], subdomain.clone());
    }
    let seconds = taste.preferred_termination_grace_period_seconds;
    if let Some(seconds) = seconds.filter(|_| at(spec, &["terminationGracePeriodSeconds"]).is_none()) {
        set(spec, &["terminationGracePeriodSeconds"], seconds);
    }
    for (key, value) in &taste.annotations {
        if at(template, &["metadata", "annotations", key]).is_none() {
            set(template, &["metadata", "annotations", key], value.clone());
        }
    }
}

/// Fields of a machine's devices that a taste may fill in if they are not there, by the taste's names.
const DEVICES: [(&str, &str); 10] = [
    ("preferredAutoattachGraphicsDevice", "autoattachGraphicsDevice"),
    ("preferredAutoattachMemBalloon", "autoattachMemBalloon"),
    ("preferredAutoattachPodInterface", "autoattachPodInterface"),
    ("preferredAutoattachSerialConsole", "autoattachSerialConsole"),
    ("preferredUseVirtioTransitional", "useVirtioTransitional"),
    ("preferredBlockMultiQueue", "blockMultiQueue"),
    (
        "preferredNetworkInterfaceMultiQueue",
        "networkInterfaceMultiqueue",
    ),
    ("preferredAutoattachInputDevice", "autoattachInputDevice"),
    ("preferredRng", "rng"),
    ("preferredTPM", "tpm"),
];

fn devices(preferred: &Map<String, Value>, spec: &mut Value) {
    for (theirs, ours) in DEVICES {
        if let Some(value) = preferred.get(theirs).filter(|it| !it.is_null())
            && at(spec, &["domain", "devices", ours]).is_none()
        {
            set(spec, &["domain", "devices", ours], value.clone());
        }
    }
    // Upstream cannot tell whether somebody set this one, and overrides it.
    if let Some(value) = preferred
        .get("preferredDisableHotplug")
        .filter(|it| !it.is_null())
    {
        set(spec, &["domain", "devices", "disableHotplug"], value.clone());
    }
    if let Some(model) = words(preferred, "preferredSoundModel")
        && at(spec, &["domain", "devices", "sound"]).is_some()
    {
        set_if_unset(spec, &["domain", "devices", "sound", "model"], model);
    }
    disks(preferred, spec);
    interfaces(preferred, spec);
    for input in items(spec, &["domain", "devices", "inputs"]) {
        for (theirs, ours) in [("preferredInputBus", "bus"), ("preferredInputType", "type")] {
            if let Some(word) = words(preferred, theirs) {
                set_if_unset(input, &[ours], word);
            }
        }
    }
}

fn words<'p>(preferred: &'p Map<String, Value>, name: &str) -> Option<&'p str> {
    preferred
        .get(name)
        .and_then(Value::as_str)
        .filter(|it| !it.is_empty())
}

fn disks(preferred: &Map<String, Value>, spec: &mut Value) {
    for disk in items(spec, &["domain", "devices", "disks"]) {
        if !["disk", "cdrom", "lun"]
            .iter()
            .any(|target| at(disk, &[target]).is_some())
        {
            set(disk, &["disk"], json!({}));
        }
        if at(disk, &["disk"]).is_none() {
            for (target, bus) in [("cdrom", "preferredCdromBus"), ("lun", "preferredLunBus")] {
                if let Some(bus) = words(preferred, bus).filter(|_| at(disk, &[target]).is_some()) {
                    set_if_unset(disk, &[target, "bus"], bus);
                }
            }
            continue;
        }
        if let Some(bus) = words(preferred, "preferredDiskBus") {
            set_if_unset(disk, &["disk", "bus"], bus);
        }
        if let Some(size) = preferred.get("preferredDiskBlockSize").filter(|it| !it.is_null()) {
            set_if_unset(disk, &["blockSize"], size.clone());
        }
        for (theirs, ours) in [("preferredDiskCache", "cache"), ("preferredDiskIO", "io")] {
            if let Some(word) = words(preferred, theirs) {
                set_if_unset(disk, &[ours], word);
            }
        }
        let thread = preferred
            .get("preferredDiskDedicatedIoThread")
            .filter(|it| !it.is_null());
        if let Some(thread) = thread
            && at(disk, &["dedicatedIOThread"]).is_none()
            && disk["disk"]["bus"] == "virtio"
        {
            set(disk, &["dedicatedIOThread"], thread.clone());
        }
    }
}

fn interfaces(preferred: &Map<String, Value>, spec: &mut Value) {
    let networks = at(spec, &["networks"]).and_then(Value::as_array);
    let on_pod_network: Vec<String> = networks
        .into_iter()
        .flatten()
        .filter(|it| !it["pod"].is_null())
        .filter_map(|it| it["name"].as_str().map(str::to_owned))
        .collect();
    for card in items(spec, &["domain", "devices", "interfaces"]) {
        if let Some(model) = words(preferred, "preferredInterfaceModel") {
            set_if_unset(card, &["model"], model);
        }
        let bindings = [
            "bridge",
            "slirp",
            "masquerade",
            "sriov",
            "macvtap",
            "passt",
            "binding",
        ];
        let unbound = bindings.iter().all(|it| at(card, &[it]).is_none());
        let name = card["name"].as_str().unwrap_or_default().to_owned();
        if let Some(masquerade) = preferred
            .get("preferredInterfaceMasquerade")
            .filter(|it| !it.is_null())
            && unbound
            && on_pod_network.contains(&name)
        {
            set(card, &["masquerade"], masquerade.clone());
        }
    }
}

fn features(preferred: &Map<String, Value>, spec: &mut Value) {
    if let Some(acpi) = preferred.get("preferredAcpi").filter(|it| !it.is_null()) {
        // Upstream cannot tell whether somebody set this one, and overrides it.
        set(spec, &["domain", "features", "acpi"], acpi.clone());
    }
    let fields = [
        ("preferredApic", "apic"),
        ("preferredKvm", "kvm"),
        ("preferredPvspinlock", "pvspinlock"),
        ("preferredSmm", "smm"),
    ];
    for (theirs, ours) in fields {
        if let Some(value) = preferred.get(theirs).filter(|it| !it.is_null())
            && at(spec, &["domain", "features", ours]).is_none()
        {
            set(spec, &["domain", "features", ours], value.clone());
        }
    }
    let hyperv = preferred.get("preferredHyperv").and_then(Value::as_object);
    for (name, value) in hyperv.into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        if at(spec, &["domain", "features", "hyperv", name]).is_none() {
            set(spec, &["domain", "features", "hyperv", name], value.clone());
        }
    }
}

fn firmware(taste: &PreferenceSpec, spec: &mut Value) {
    let Some(preferred) = &taste.firmware else {
        return;
    };
    let chosen =
        |spec: &Value, loader: &str| at(spec, &["domain", "firmware", "bootloader", loader]).is_some();
    if preferred.preferred_use_bios == Some(true) && !chosen(spec, "bios") && !chosen(spec, "efi") {
        set(spec, &["domain", "firmware", "bootloader", "bios"], json!({}));
    }
    let serial = ["domain", "firmware", "bootloader", "bios", "useSerial"];
    if let Some(wanted) = preferred.preferred_use_bios_serial
        && chosen(spec, "bios")
        && at(spec, &serial).is_none()
    {
        set(spec, &serial, wanted);
    }
    if let Some(efi) = &preferred.preferred_efi
        && !chosen(spec, "efi")
        && !chosen(spec, "bios")
    {
        set(spec, &["domain", "firmware", "bootloader", "efi"], efi.clone());
        return;
    }
    if preferred.preferred_use_efi == Some(true) && !chosen(spec, "efi") && !chosen(spec, "bios") {
        set(spec, &["domain", "firmware", "bootloader", "efi"], json!({}));
    }
    let secure = ["domain", "firmware", "bootloader", "efi", "secureBoot"];
    if let Some(wanted) = preferred.preferred_use_secure_boot
        && chosen(spec, "efi")
        && at(spec, &secure).is_none()
    {
        set(spec, &secure, wanted);
    }
}

fn clock(taste: &PreferenceSpec, spec: &mut Value) {
    let Some(preferred) = &taste.clock else {
        return;
    };
    let own = ["utc", "timezone"]
        .iter()
        .any(|it| at(spec, &["domain", "clock", it]).is_some());
    if let Some(offset) = &preferred.preferred_clock_offset
        && !own
    {
        for (name, value) in offset {
            set(spec, &["domain", "clock", name], value.clone());
        }
    }
    if let Some(timer) = &preferred.preferred_timer
        && at(spec, &["domain", "clock", "timer"]).is_none()
    {
        set(spec, &["domain", "clock", "timer"], timer.clone());
    }
}
