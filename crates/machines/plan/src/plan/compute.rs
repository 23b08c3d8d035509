//! Board, processors, memory and time.

use serde_json::Value;

use super::Capabilities;
use crate::machine::{Board, ClockPlan, CpuModel, CpuPlan, Growth, MemoryPlan};
use crate::memory_hotplug;
use crate::unsupported::Wishes;
use crate::view::{Domain, Features, InstanceSpec};
use fairway_kernel_scalar::quantity::Quantity;

/// Guests start from whole mebibytes.
const MEBIBYTE: u64 = 1 << 20;

pub(super) fn board(domain: &Domain, host: &Capabilities, wishes: &mut Wishes) -> Board {
    let features = domain.features.clone().unwrap_or_default();
    let kind = domain.machine.as_ref().map_or("", |it| it.kind.as_str());
    let mut machine_type = kind.to_owned();
    if kind.starts_with("pc-q35-rhel") {
        wishes.replaced(
            "domain.machine.type",
            format!("{kind} belongs to another build of QEMU; q35 stands in for it"),
        );
        machine_type = "q35".to_owned();
    } else if kind.is_empty() {
        machine_type = "q35".to_owned();
    }
    if features.pvspinlock.is_some_and(|it| !it.is_on()) && !host.kvm {
        wishes.ignored(
            "domain.features.pvspinlock",
            "there is nothing to switch off without KVM",
        );
    }
    let apic = features.apic.as_ref();
    if apic.is_some_and(|it| it["enabled"] == Value::Bool(false)) {
        wishes.ignored("domain.features.apic", "q35 always has an APIC");
    }
    if apic.is_some_and(|it| it["endOfInterrupt"] == Value::Bool(true)) {
        wishes.ignored(
            "domain.features.apic.endOfInterrupt",
            "how interrupts end is the hypervisor's own choice",
        );
    }
    let hpet = domain
        .clock
        .as_ref()
        .and_then(|it| it.timer.as_ref())
        .and_then(|it| it.hpet.as_ref());
    Board {
        machine_type,
        acpi: features.acpi.is_on(),
        smm: features.smm.is_some_and(|it| it.is_on()),
        hpet: hpet.and_then(|it| it.present),
    }
}

pub(super) fn cpu(domain: &Domain, host: &Capabilities, wishes: &mut Wishes) -> CpuPlan {
    let cpu = domain.cpu.clone().unwrap_or_default();
    let sockets = cpu.sockets.max(1);
    if cpu.model == "host-passthrough" && !host.kvm {
        let reason = "guests are emulated here; they get every feature that can be emulated";
        wishes.replaced("domain.cpu.model", reason);
    }
    let model = CpuModel::of(&cpu.model);
    let mut features = Vec::new();
    for feature in &cpu.features {
        let on = !matches!(feature.policy.as_str(), "disable" | "forbid");
        features.push((feature.name.clone(), on));
    }
    if cpu.dedicated_cpu_placement && !host.dedicated_cpus {
        let reason = "this node cannot give processors to one machine alone; its processors are shared";
        wishes.ignored("domain.cpu.dedicatedCpuPlacement", reason);
    }
    if cpu.isolate_emulator_thread && !host.dedicated_cpus {
        let reason = "no thread of a machine has a processor of this node for itself";
        wishes.ignored("domain.cpu.isolateEmulatorThread", reason);
    }
    if cpu
        .numa
        .as_ref()
        .is_some_and(|it| it.guest_mapping_passthrough.is_some())
    {
        let reason = "the guest sees one node of memory and processors";
        wishes.ignored("domain.cpu.numa.guestMappingPassthrough", reason);
    }
    if cpu.realtime.is_some() {
        wishes.ignored(
            "domain.cpu.realtime",
            "real-time scheduling is not available on this node",
        );
    }
    CpuPlan {
        sockets,
        max_sockets: cpu.max_sockets.max(sockets),
        cores: cpu.cores.max(1),
        threads: cpu.threads.max(1),
        model,
        features,
        properties: properties(domain.features.as_ref(), domain, host, wishes),
        dedicated: cpu.dedicated_cpu_placement && host.dedicated_cpus,
        isolate_emulator: cpu.isolate_emulator_thread && host.dedicated_cpus,
    }
}

/// Windows' interfaces: upstream's words and QEMU's.
const HYPERV: [(&str, &str); 13] = [
    ("relaxed", "hv-relaxed"),
    ("vapic", "hv-vapic"),
    ("spinlocks", "hv-spinlocks"),
    ("vpindex", "hv-vpindex"),
    ("runtime", "hv-runtime"),
    ("synic", "hv-synic"),
    ("synictimer", "hv-stimer"),
    ("reset", "hv-reset"),
    ("vendorid", "hv-vendor-id"),
    ("frequencies", "hv-frequencies"),
    ("reenlightenment", "hv-reenlightenment"),
    ("tlbflush", "hv-tlbflush"),
    ("ipi", "hv-ipi"),
];

fn properties(
    features: Option<&Features>,
    domain: &Domain,
    host: &Capabilities,
    wishes: &mut Wishes,
) -> Vec<String> {
    let mut found = Vec::new();
    let Some(features) = features else {
        return found;
    };
    let on = |state: &Value| state["enabled"] != Value::Bool(false);
    let wanted: Vec<(&String, &Value)> = features
        .hyperv
        .iter()
        .flatten()
        .filter(|(_, state)| on(state))
        .collect();
    let passthrough = features.hyperv_passthrough.is_some_and(|it| it.is_on());
    if !host.kvm {
        if !wanted.is_empty() {
            wishes.ignored(
                "domain.features.hyperv",
                "Windows' interfaces need KVM, which this node does not have",
            );
        }
        if passthrough {
            let reason = "Windows' interfaces need KVM, which this node does not have";
            wishes.ignored("domain.features.hypervPassthrough", reason);
        }
        if features.kvm.as_ref().is_some_and(|it| it.hidden) {
            wishes.ignored("domain.features.kvm.hidden", "there is no KVM to hide");
        }
        return found;
    }
    if passthrough {
        found.push("hv-passthrough=on".to_owned());
    }
    for (name, state) in wanted {
        match HYPERV.iter().find(|(theirs, _)| theirs == name) {
            Some((_, "hv-spinlocks")) => {
                let retries = state["spinlocks"].as_u64().unwrap_or(4096);
                found.push(format!("hv-spinlocks={retries}"));
            }
            Some((_, "hv-vendor-id")) => {
                let vendor = state["vendorid"].as_str().unwrap_or_default();
                let plain = !vendor.is_empty()
                    && vendor.len() <= 12
                    && vendor.bytes().all(|it| it.is_ascii_alphanumeric());
                if plain {
                    found.push(format!("hv-vendor-id={vendor}"));
                } else {
                    let reason = "not up to 12 letters and digits; the hypervisor keeps its own";
                    wishes.ignored("domain.features.hyperv.vendorid", reason);
                }
            }
            Some((_, "hv-stimer")) => {
                found.push("hv-stimer=on".to_owned());
                if state["direct"].is_object() && on(&state["direct"]) {
                    found.push("hv-stimer-direct=on".to_owned());
                }
            }
            Some((_, property)) => found.push(format!("{property}=on")),
            None => wishes.ignored(
                format!("domain.features.hyperv.{name}"),
                "not available on this node",
            ),
        }
    }
    let timers = domain.clock.as_ref().and_then(|it| it.timer.as_ref());
    if timers
        .and_then(|it| it.hyperv.as_ref())
        .is_some_and(|it| it.present != Some(false))
    {
        found.push("hv-time=on".to_owned());
    }
    if timers
        .and_then(|it| it.kvm.as_ref())
        .is_some_and(|it| it.present == Some(false))
    {
        found.push("kvmclock=off".to_owned());
    }
    if features.kvm.as_ref().is_some_and(|it| it.hidden) {
        found.push("kvm=off".to_owned());
    }
    if features.pvspinlock.is_some_and(|it| !it.is_on()) {
        found.push("kvm-pv-unhalt=off".to_owned());
    }
    found
}

pub(super) fn memory(spec: &InstanceSpec, host: &Capabilities, wishes: &mut Wishes) -> MemoryPlan {
    let memory = spec.domain.memory.clone().unwrap_or_default();
    let asked = memory
        .guest
        .map(|it| it.bytes())
        .unwrap_or_else(|| u64::try_from(spec.domain.resources.request("memory")).unwrap_or(0));
    let guest = asked.div_ceil(MEBIBYTE).saturating_mul(MEBIBYTE);
    let size = memory
        .hugepages
        .as_ref()
        .and_then(|it| Quantity::parse(&it.page_size));
    let size = size.and_then(|it| u64::try_from(it.value()).ok());
    let hugepages = size.filter(|size| host.hugepages.contains(size));
    if size.is_some() && hugepages.is_none() {
        let pages = memory.hugepages.as_ref().map_or("", |it| it.page_size.as_str());
        let reason = format!("this node keeps no pages of {pages} ready; ordinary memory stands in for them");
        wishes.replaced("domain.memory.hugepages", reason);
    }
    let growth = memory
        .max_guest
        .filter(|most| most.bytes() > guest)
        .and_then(|most| match memory_hotplug::check(spec, Some(most)) {
            Ok(()) => Some(Growth {
                most: most.bytes(),
                block: memory_hotplug::block(spec),
            }),
            Err(error) => {
                wishes.ignored("domain.memory.maxGuest", error.to_string());
                None
            }
        });
    MemoryPlan {
        guest,
        growth,
        grown: 0,
        hugepages,
    }
}

pub(super) fn clock(domain: &Domain, host: &Capabilities, wishes: &mut Wishes) -> ClockPlan {
    let Some(clock) = &domain.clock else {
        return ClockPlan::default();
    };
    let zone = clock
        .timezone
        .as_deref()
        .filter(|it| !matches!(*it, "" | "UTC" | "Etc/UTC" | "GMT"));
    if let Some(zone) = zone {
        let reason = format!("the guest's clock runs in UTC; set the zone {zone} in the guest");
        wishes.replaced("domain.clock.timezone", reason);
    }
    let timer = clock.timer.clone().unwrap_or_default();
    let rtc = timer.rtc.clone().unwrap_or_default();
    if rtc.present == Some(false) {
        wishes.ignored("domain.clock.timer.rtc", "q35 always has a real-time clock");
    }
    let pit = timer.pit.unwrap_or_default();
    if pit.present == Some(false) {
        wishes.ignored("domain.clock.timer.pit", "q35 always has an interval timer");
    } else if !matches!(pit.tick_policy.as_str(), "" | "delay") {
        wishes.ignored(
            "domain.clock.timer.pit.tickPolicy",
            "late ticks of the interval timer are delayed",
        );
    }
    let policy = timer.hpet.map(|it| it.tick_policy).unwrap_or_default();
    if !matches!(policy.as_str(), "" | "delay") {
        wishes.ignored(
            "domain.clock.timer.hpet.tickPolicy",
            "late ticks of the event timer are delayed",
        );
    }
    if !host.kvm && timer.kvm.is_some_and(|it| it.present != Some(false)) {
        wishes.ignored("domain.clock.timer.kvm", "there is no KVM on this node");
    }
    if !host.kvm && timer.hyperv.is_some_and(|it| it.present != Some(false)) {
        wishes.ignored(
            "domain.clock.timer.hyperv",
            "Windows' clock needs KVM, which this node does not have",
        );
    }
    ClockPlan {
        offset_seconds: clock.utc.as_ref().and_then(|it| it.offset_seconds).unwrap_or(0),
        catch_up: rtc.tick_policy == "catchup",
        follows_guest: rtc.track == "guest",
    }
}
