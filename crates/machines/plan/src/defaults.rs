//! What a machine gets that its author did not write, as KubeVirt's mutating webhooks fill it in.
//!
//! [`machine`] is for VirtualMachines, when they are written; [`instance_spec`] is for what they are checked with, and
//! [`instance`] for VirtualMachineInstances, when they are made.

use serde_json::{Value, json};
use thiserror::Error;

use fairway_kernel_scalar::quantity::{Format, Quantity};

use crate::edit::{append, at, is_set, items, set, set_if_unset};
use crate::settings::{DefaultBinding, Settings};
use crate::view::{self, InstanceSpec, PreferenceSpec};
use crate::{identity, memory_hotplug};

/// An upper bound for processors that a machine may grow to.
const MAX_VCPUS: u32 = 512;

/// Settings that contradict each other.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DefaultsError {
    /// The card that nobody asked for is not allowed.
    #[error("bridge interface is not enabled in kubevirt-config")]
    BridgeDisabled,
    /// A binding that is no longer served.
    #[error("slirp interface is deprecated as of v1.3")]
    Slirp,
}

/// Completes a VirtualMachine (the whole object).
pub fn machine(vm: &mut Value, settings: &Settings, preference: Option<&PreferenceSpec>) {
    for (matcher, kind) in [
        ("instancetype", "virtualmachineclusterinstancetype"),
        ("preference", "virtualmachineclusterpreference"),
    ] {
        if at(vm, &["spec", matcher]).is_some() {
            set_if_unset(vm, &["spec", matcher, "kind"], kind);
        }
    }
    if at(vm, &["spec", "template"]).is_none() {
        // Validation says so.
        return;
    }
    let preferred = preference.and_then(|it| it.preferred_architecture.clone());
    let architecture = preferred.unwrap_or_else(|| settings.architecture.clone());
    set_if_unset(vm, &["spec", "template", "spec", "architecture"], architecture);
    let preferred = preference.and_then(|it| it.machine.as_ref());
    let preferred = preferred.map(|it| it.preferred_machine_type.clone());
    let board = preferred.filter(|it| !it.is_empty());
    set_if_unset(
        vm,
        &["spec", "template", "spec", "domain", "machine", "type"],
        board.unwrap_or_else(|| settings.machine_type.clone()),
    );
    let class = preference.and_then(|it| it.volumes.as_ref());
    let class = class.map_or("", |it| it.preferred_storage_class_name.as_str());
    if class.is_empty() {
        return;
    }
    for template in items(vm, &["spec", "dataVolumeTemplates"]) {
        for part in ["pvc", "storage"] {
            if at(template, &["spec", part]).is_some()
                && at(template, &["spec", part, "storageClassName"]).is_none()
            {
                set(template, &["spec", part, "storageClassName"], class);
            }
        }
    }
}

/// Completes the spec of an instance, as far as the check of a VirtualMachine does.
pub fn instance_spec(spec: &mut Value, settings: &Settings) -> Result<(), DefaultsError> {
    set_if_unset(spec, &["architecture"], settings.architecture.clone());
    set_if_unset(
        spec,
        &["domain", "machine", "type"],
        settings.machine_type.clone(),
    );
    resource_requests(spec, settings);
    guest_memory(spec);
    cpu_topology(spec);
    pull_policies(spec);
    if at(spec, &["evictionStrategy"]).is_none()
        && let Some(strategy) = &settings.eviction_strategy
    {
        set(spec, &["evictionStrategy"], strategy.clone());
    }
    network_interface(spec, settings)?;
    volume_disks(spec);
    Ok(())
}

/// Completes a VirtualMachineInstance (the whole object).
pub fn instance(vmi: &mut Value, settings: &Settings) -> Result<(), DefaultsError> {
    let name = vmi["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let spec = vmi
        .as_object_mut()
        .map(|map| map.entry("spec").or_insert_with(|| json!({})));
    let Some(spec) = spec else {
        return Ok(());
    };
    instance_spec(spec, settings)?;
    // One whose name is yet to be chosen gets its own when it starts; all would have the same here.
    if !name.is_empty() {
        let uuid = identity::firmware_uuid(&name);
        set_if_unset(spec, &["domain", "firmware", "uuid"], uuid);
    }
    object_defaults(spec);
    disk_buses(spec);
    watchdog(spec);
    let model = settings
        .cpu_model
        .clone()
        .unwrap_or_else(|| "host-model".to_owned());
    set_if_unset(spec, &["domain", "cpu", "model"], model);
    if settings.live_update {
        cpu_hotplug(spec, settings);
        memory_maximum(spec, settings);
    }
    let cpu = spec["domain"]["cpu"].clone();
    let guest = at(spec, &["domain", "memory", "guest"]).cloned();
    if at(vmi, &["status", "currentCPUTopology"]).is_none() {
        let mut topology = json!({});
        for part in ["sockets", "cores", "threads"] {
            if is_set(&cpu, &[part]) {
                topology[part] = cpu[part].clone();
            }
        }
        set(vmi, &["status", "currentCPUTopology"], topology);
    }
    if let Some(guest) = guest {
        let memory = json!({"guestAtBoot": guest, "guestCurrent": guest, "guestRequested": guest});
        set(vmi, &["status", "memory"], memory);
    }
    Ok(())
}

fn quantity(spec: &Value, path: &[&str]) -> Option<Quantity> {
    at(spec, path).and_then(Quantity::from_value)
}

fn resource_requests(spec: &mut Value, settings: &Settings) {
    for name in ["cpu", "memory"] {
        let limit = quantity(spec, &["domain", "resources", "limits", name]).filter(|it| !it.is_zero());
        let request = quantity(spec, &["domain", "resources", "requests", name]);
        if limit.is_some() && request.is_none_or(Quantity::is_zero) {
            let limit = spec["domain"]["resources"]["limits"][name].clone();
            set(spec, &["domain", "resources", "requests", name], limit);
        }
    }
    if at(spec, &["domain", "resources", "requests", "memory"]).is_none() {
        let memory = quantity(spec, &["domain", "memory", "guest"])
            .or_else(|| quantity(spec, &["domain", "memory", "hugepages", "pageSize"]));
        if let Some(memory) = memory.filter(|it| it.value() > 0) {
            let asked = memory.value().saturating_mul(100) / settings.memory_overcommit.max(1);
            let text = if settings.memory_overcommit == 100 {
                memory.canonical()
            } else {
                whole(asked, memory.format())
            };
            set(spec, &["domain", "resources", "requests", "memory"], text);
        }
    }
    let dedicated = is_set(spec, &["domain", "cpu", "dedicatedCpuPlacement"]);
    if let Some(request) = settings.cpu_request.as_ref().filter(|it| *it != "100m")
        && at(spec, &["domain", "resources", "requests", "cpu"]).is_none()
        && !dedicated
    {
        set(spec, &["domain", "resources", "requests", "cpu"], request.clone());
    }
}

/// A whole amount, shown in the way of another.
pub(crate) fn whole(value: i64, format: Format) -> String {
    let binary = format == Format::BinarySi;
    let text = if binary && value % 1024 == 0 {
        format!("{}Ki", value / 1024)
    } else {
        value.to_string()
    };
    Quantity::parse(&text).map_or(text, Quantity::canonical)
}

fn guest_memory(spec: &mut Value) {
    if at(spec, &["domain", "memory", "guest"]).is_some() {
        return;
    }
    let sources: [&[&str]; 3] = [
        &["domain", "resources", "requests", "memory"],
        &["domain", "resources", "limits", "memory"],
        &["domain", "memory", "hugepages", "pageSize"],
    ];
    let found = sources
        .iter()
        .find_map(|path| quantity(spec, path).filter(|it| !it.is_zero()));
    if let Some(guest) = found {
        set(spec, &["domain", "memory", "guest"], guest.canonical());
    }
}

fn cpu_topology(spec: &mut Value) {
    let said = ["cores", "sockets", "threads"]
        .iter()
        .any(|part| is_set(spec, &["domain", "cpu", part]));
    if said {
        return;
    }
    // Sockets, because guests do best with them.
    let sockets = quantity(spec, &["domain", "resources", "limits", "cpu"])
        .or_else(|| quantity(spec, &["domain", "resources", "requests", "cpu"]))
        .map_or(1, Quantity::value);
    for (part, count) in [("sockets", sockets), ("cores", 1), ("threads", 1)] {
        set(spec, &["domain", "cpu", part], count);
    }
}

fn pull_policies(spec: &mut Value) {
    for volume in items(spec, &["volumes"]) {
        let Some(image) = at(volume, &["containerDisk", "image"]).and_then(Value::as_str) else {
            continue;
        };
        let latest = image.ends_with(":latest") || !image.contains([':', '@']);
        let policy = if latest { "Always" } else { "IfNotPresent" };
        set_if_unset(volume, &["containerDisk", "imagePullPolicy"], policy);
    }
}

pub(crate) fn network_interface(spec: &mut Value, settings: &Settings) -> Result<(), DefaultsError> {
    let wanted = at(spec, &["domain", "devices", "autoattachPodInterface"]) != Some(&Value::Bool(false));
    if !wanted || is_set(spec, &["networks"]) || is_set(spec, &["domain", "devices", "interfaces"]) {
        return Ok(());
    }
    let interface = match settings.default_binding {
        DefaultBinding::Bridge if !settings.bridge_on_pod_network => {
            return Err(DefaultsError::BridgeDisabled);
        }
        DefaultBinding::Bridge => json!({"name": "default", "bridge": {}}),
        DefaultBinding::Masquerade => json!({"name": "default", "masquerade": {}}),
        DefaultBinding::Slirp => return Err(DefaultsError::Slirp),
    };
    set(spec, &["domain", "devices", "interfaces"], json!([interface]));
    set(spec, &["networks"], json!([{"name": "default", "pod": {}}]));
    Ok(())
}

/// A volume that no disk names gets one.
pub(crate) fn volume_disks(spec: &mut Value) {
    let names = |spec: &Value, path: &[&str]| -> Vec<String> {
        let items = at(spec, path).and_then(Value::as_array);
        let names = items.into_iter().flatten().filter_map(|it| it["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let mut known = names(spec, &["domain", "devices", "disks"]);
    known.extend(names(spec, &["domain", "devices", "filesystems"]));
    let missing: Vec<String> = names(spec, &["volumes"])
        .into_iter()
        .filter(|it| !known.contains(it))
        .collect();
    if !missing.is_empty() {
        let disks = missing.into_iter().map(|name| json!({"name": name}));
        append(spec, &["domain", "devices", "disks"], disks.collect());
    }
}

/// What upstream's types fill in by themselves: a disk is a disk, a feature that is mentioned is on, and so on.
fn object_defaults(spec: &mut Value) {
    for disk in items(spec, &["domain", "devices", "disks"]) {
        if !["disk", "lun", "cdrom"]
            .iter()
            .any(|target| at(disk, &[target]).is_some())
        {
            set(disk, &["disk"], json!({}));
        }
        if at(disk, &["cdrom"]).is_some() {
            if at(disk, &["cdrom", "readonly"]).is_none() {
                set(disk, &["cdrom", "readonly"], true);
            }
            set_if_unset(disk, &["cdrom", "tray"], "closed");
        }
    }
    for input in items(spec, &["domain", "devices", "inputs"]) {
        set_if_unset(input, &["bus"], "usb");
        set_if_unset(input, &["type"], "tablet");
    }
    if at(spec, &["domain", "features", "acpi", "enabled"]).is_none() {
        set(spec, &["domain", "features", "acpi", "enabled"], true);
    }
    for feature in ["apic", "smm", "pvspinlock", "hypervPassthrough"] {
        switch_on(spec, &["domain", "features", feature], "enabled");
    }
    for feature in names_of(spec, &["domain", "features", "hyperv"]) {
        switch_on(spec, &["domain", "features", "hyperv", &feature], "enabled");
    }
    let spinlocks = ["domain", "features", "hyperv", "spinlocks"];
    if at(spec, &spinlocks).is_some_and(|it| it["enabled"] == true && it["spinlocks"].is_null()) {
        set(
            spec,
            &["domain", "features", "hyperv", "spinlocks", "spinlocks"],
            4096,
        );
    }
    for timer in names_of(spec, &["domain", "clock", "timer"]) {
        switch_on(spec, &["domain", "clock", "timer", &timer], "present");
    }
    for probe in ["readinessProbe", "livenessProbe"] {
        if at(spec, &[probe]).is_none() {
            continue;
        }
        for (field, least) in [
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            if spec[probe][field].as_i64().unwrap_or(0) < 1 {
                set(spec, &[probe, field], least);
            }
        }
    }
}

fn names_of(spec: &Value, path: &[&str]) -> Vec<String> {
    let fields = at(spec, path).and_then(Value::as_object);
    fields.into_iter().flat_map(|map| map.keys().cloned()).collect()
}

/// What is mentioned is on.
fn switch_on(spec: &mut Value, path: &[&str], field: &str) {
    if at(spec, path).is_some_and(|it| it[field].is_null()) {
        set(spec, &[path, &[field]].concat(), true);
    }
}

fn disk_buses(spec: &mut Value) {
    for disk in items(spec, &["domain", "devices", "disks"]) {
        for target in ["disk", "cdrom", "lun"] {
            if at(disk, &[target]).is_some() {
                set_if_unset(disk, &[target, "bus"], "sata");
            }
        }
    }
}

fn watchdog(spec: &mut Value) {
    if at(spec, &["domain", "devices", "watchdog"]).is_some() {
        set_if_unset(
            spec,
            &["domain", "devices", "watchdog", "i6300esb", "action"],
            "reset",
        );
    }
}

fn count(spec: &Value, part: &str) -> u32 {
    let found = at(spec, &["domain", "cpu", part]).and_then(Value::as_u64);
    found.and_then(|it| u32::try_from(it).ok()).unwrap_or(0)
}

fn cpu_hotplug(spec: &mut Value, settings: &Settings) {
    if count(spec, "maxSockets") != 0 {
        return;
    }
    let sockets = count(spec, "sockets");
    let mut most = settings.max_cpu_sockets;
    if most != 0 {
        most = most.max(sockets);
    } else {
        most = sockets.saturating_mul(settings.max_hotplug_ratio);
        // Upstream multiplies what is written; nothing counts as one, or there would be nothing to limit.
        let each = count(spec, "cores")
            .max(1)
            .saturating_mul(count(spec, "threads").max(1));
        if most.saturating_mul(each) > MAX_VCPUS {
            most = (MAX_VCPUS / each).max(sockets);
        }
    }
    if most != 0 {
        set(spec, &["domain", "cpu", "maxSockets"], most);
    }
}

fn memory_maximum(spec: &mut Value, settings: &Settings) {
    if at(spec, &["domain", "memory", "maxGuest"]).is_some() {
        return;
    }
    let guest = quantity(spec, &["domain", "memory", "guest"]);
    let most = match (settings.max_guest, guest) {
        (Some(most), _) => most.text(),
        (None, Some(guest)) => whole(
            guest
                .value()
                .saturating_mul(i64::from(settings.max_hotplug_ratio)),
            Format::BinarySi,
        ),
        (None, None) => return,
    };
    let maximum = Quantity::parse(&most).map(view::Amount);
    let Ok(seen) = view::read::<InstanceSpec>("VirtualMachineInstance", spec) else {
        return;
    };
    if memory_hotplug::check(&seen, maximum).is_ok() {
        set(spec, &["domain", "memory", "maxGuest"], most);
    }
}

#[cfg(test)]
mod tests;
