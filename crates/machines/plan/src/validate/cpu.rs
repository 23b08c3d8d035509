//! Processors: dedicated ones, features, growth, real time.

use super::{CauseType, Causes};
use crate::settings::Settings;
use crate::view::{Cpu, InstanceSpec};

const POLICIES: [&str; 6] = ["", "force", "require", "optional", "disable", "forbid"];

/// Processors that are written; what is not written counts as one if anything is.
fn written(cpu: &Cpu) -> i64 {
    let parts = [cpu.sockets, cpu.cores, cpu.threads];
    let written: Vec<i64> = parts.into_iter().filter(|it| *it != 0).map(i64::from).collect();
    if written.is_empty() {
        0
    } else {
        written.iter().product()
    }
}

pub(super) fn placement(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(cpu) = spec.domain.cpu.as_ref() else {
        return;
    };
    if cpu.dedicated_cpu_placement {
        dedicated(path, spec, cpu, causes);
    }
    if cpu.isolate_emulator_thread && !cpu.dedicated_cpu_placement {
        causes.invalid(
            format!("{path}.domain.cpu.isolateEmulatorThread"),
            "IsolateEmulatorThread should be only set in combination with DedicatedCPUPlacement",
        );
    }
}

fn dedicated(path: &str, spec: &InstanceSpec, cpu: &Cpu, causes: &mut Causes) {
    let resources = &spec.domain.resources;
    let (requests, limits) = (
        format!("{path}.domain.resources.requests"),
        format!("{path}.domain.resources.limits"),
    );
    let placement = format!("{path}.domain.cpu.dedicatedCpuPlacement");
    let cores = format!("{path}.domain.cpu.cores");
    if resources.request("memory") == 0 && resources.limit("memory") == 0 {
        let message = format!("{requests}.memory or {limits}.memory should be provided");
        causes.invalid(format!("{limits}.memory"), message);
    }
    for (of, all, word) in [
        (&requests, &resources.requests, "requests"),
        (&limits, &resources.limits, "limits"),
    ] {
        if all
            .get("cpu")
            .is_some_and(|it| it.value() > 0 && !it.0.is_whole())
        {
            causes.invalid(
                format!("{of}.cpu"),
                format!("provided resources CPU {word} must be an interger"),
            );
        }
    }
    let (asked, most) = (resources.request("memory"), resources.limit("memory"));
    if asked > 0 && most > 0 && asked != most {
        let message = format!("{requests}.memory must be equal to {limits}.memory");
        causes.invalid(format!("{requests}.memory"), message);
    }
    let (asked, most, count) = (resources.request("cpu"), resources.limit("cpu"), written(cpu));
    if asked == 0 && most == 0 && count == 0 {
        let message = format!(
            "either {requests}.cpu or {limits}.cpu or {cores} must be provided when DedicatedCPUPlacement is true "
        );
        causes.invalid(&placement, message);
    }
    if asked > 0 && most > 0 && asked != most {
        let message =
            format!("{requests}.cpu or {limits}.cpu must be equal when DedicatedCPUPlacement is true ");
        causes.invalid(&placement, message);
    }
    if (asked > 0 || most > 0) && count > 0 && asked != count && most != count {
        let message = format!(
            "{requests}.cpu or {limits}.cpu must not be provided at the same time with {cores} when \
             DedicatedCPUPlacement is true "
        );
        causes.invalid(&placement, message);
    }
    if cpu.threads > 2 {
        let message = format!(
            "Not more than two threads must be provided at {path}.domain.cpu.threads (got {}) when \
             DedicatedCPUPlacement is true",
            cpu.threads
        );
        causes.invalid(&placement, message);
    }
}

pub(super) fn numa(path: &str, spec: &InstanceSpec, settings: &Settings, causes: &mut Causes) {
    let Some(cpu) = spec.domain.cpu.as_ref() else {
        return;
    };
    if cpu
        .numa
        .as_ref()
        .is_none_or(|it| it.guest_mapping_passthrough.is_none())
    {
        return;
    }
    let field = format!("{path}.domain.cpu.numa.guestMappingPassthrough");
    if !settings.gate("NUMA") {
        let message = format!("NUMA feature gate is not enabled in kubevirt-config, invalid entry {field}");
        causes.invalid(&field, message);
    }
    if !cpu.dedicated_cpu_placement {
        let message = format!(
            "{path}.domain.cpu.dedicatedCpuPlacement must be set to true when NUMA topology strategy is set in {field}"
        );
        causes.invalid(&field, message);
    }
    if spec
        .domain
        .memory
        .as_ref()
        .is_none_or(|it| it.hugepages.is_none())
    {
        let message = format!(
            "{path}.domain.memory.hugepages must be requested when NUMA topology strategy is set in {field}"
        );
        causes.invalid(&field, message);
    }
}

pub(super) fn features(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let features = spec.domain.cpu.iter().flat_map(|it| &it.features);
    for (index, feature) in features.enumerate() {
        if !POLICIES.contains(&feature.policy.as_str()) {
            causes.add(
                CauseType::NotSupported,
                format!("{path}.domain.cpu.features[{index}].policy"),
                format!(
                    "CPU feature {} uses policy {} that is not supported.",
                    feature.name, feature.policy
                ),
            );
        }
    }
}

pub(super) fn hotplug(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(cpu) = spec.domain.cpu.as_ref() else {
        return;
    };
    if cpu.max_sockets != 0 && cpu.sockets > cpu.max_sockets {
        causes.invalid(
            format!("{path}.domain.cpu.sockets"),
            "Number of sockets in CPU topology is greater than the maximum sockets allowed",
        );
    }
}

pub(super) fn realtime(path: &str, spec: &InstanceSpec, causes: &mut Causes) {
    let Some(cpu) = spec.domain.cpu.as_ref().filter(|it| it.realtime.is_some()) else {
        return;
    };
    let of = format!("{path}.domain.cpu.realtime");
    if !cpu.dedicated_cpu_placement {
        let field = format!("{path}.domain.cpu.dedicatedCpuPlacement");
        causes.required(&field, format!("{field} must be set to true when {of} is used"));
    }
    if cpu
        .numa
        .as_ref()
        .is_none_or(|it| it.guest_mapping_passthrough.is_none())
    {
        let field = format!("{path}.domain.cpu.numa.guestMappingPassthrough");
        causes.required(&field, format!("{field} must be defined when {of} is used"));
    }
}
