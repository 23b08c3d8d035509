//! The status of an instance, as a document: from what is seen of a machine to what people read.
//!
//! It is a function of values. What others write into a status (the engine: migrations, evacuations, conditions of its own) stays as
//! it is; what is no longer so goes.

mod conditions;
mod interfaces;
mod volumes;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use fairway_machines_plan::machine::MachinePlan;
use fairway_machines_plan::phase::Decision;
use fairway_machines_plan::view::{Condition, VirtualMachineInstance};
use serde_json::{Map, Value, json};

use super::guest::Guest;

pub(crate) use volumes::{Hotplug, VolumeFacts, claim_info};

/// A machine as it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// The board's whole name, such as `pc-q35-7.2`.
    pub(crate) machine_type: String,
    /// Sockets that have processors in them.
    pub(crate) sockets: u32,
    /// Bytes of memory at start.
    pub(crate) memory_at_boot: u64,
    /// Bytes of memory that it has now.
    pub(crate) memory: u64,
    /// The guest's file systems stand still because somebody asked for it.
    pub(crate) is_frozen: bool,
}

/// Everything that a status is made of.
pub(crate) struct Seen<'a> {
    pub(crate) decision: &'a Decision,
    pub(crate) vmi: &'a VirtualMachineInstance,
    /// The machine as it was built, or as it will be.
    pub(crate) plan: &'a MachinePlan,
    /// The machine as it runs.
    pub(crate) live: Option<&'a Live>,
    /// What the agent says.
    pub(crate) guest: Option<&'a Guest>,
    /// Its address on the network that every machine has.
    pub(crate) address: Option<Ipv4Addr>,
    /// Disks.
    pub(crate) volumes: &'a BTreeMap<String, VolumeFacts>,
    /// What is to be said beyond the decision.
    pub(crate) conditions: Vec<Condition>,
    /// Upstream's word for why the machine ended, where there is one.
    pub(crate) reason: Option<&'a str>,
    /// As whom the process runs.
    pub(crate) user: u32,
    /// The moment, as objects write it.
    pub(crate) now: &'a str,
}

/// The status as it should be, given what it is.
pub(crate) fn document(before: &Value, seen: &Seen<'_>) -> Value {
    let mut status = before.as_object().cloned().unwrap_or_default();
    let decision = seen.decision;
    status.insert("phase".to_owned(), decision.phase.word().into());
    let transitions = decision
        .transitions
        .iter()
        .map(|it| json!({"phase": it.phase, "phaseTransitionTimestamp": it.phase_transition_timestamp}));
    status.insert("phaseTransitionTimestamps".to_owned(), transitions.collect());
    let ours = decision.conditions.iter().chain(&seen.conditions);
    put_list(
        &mut status,
        "conditions",
        conditions::merged(&before["conditions"], ours, seen.now),
    );
    put_list(&mut status, "volumeStatus", volumes::list(seen));
    put(&mut status, "migrationMethod", migration_method(seen).into());
    put(&mut status, "qosClass", quality(seen.vmi).into());
    put(&mut status, "runtimeUser", seen.user.into());
    if let Some(reason) = seen.reason {
        put(&mut status, "reason", reason.into());
    }
    if decision.phase.is_final() {
        // Nobody answers at these any more.
        put_list(&mut status, "interfaces", Vec::new());
        return Value::Object(status);
    }
    put_list(&mut status, "interfaces", interfaces::list(seen));
    match seen.guest.and_then(|it| it.os.as_ref()) {
        Some(os) => put(&mut status, "guestOSInfo", guest_os(os)),
        None if seen.guest.is_none() => put(&mut status, "guestOSInfo", json!({})),
        None => {}
    }
    if let Some(live) = seen.live {
        running(&mut status, seen, live);
    }
    Value::Object(status)
}

/// Whether disks are copied when the machine moves, or all of them are where other nodes have them, too.
fn migration_method(seen: &Seen<'_>) -> &'static str {
    let is_shared = |name: &str| {
        let claim = seen.volumes.get(name).and_then(|it| it.claim.as_ref());
        let modes = claim.and_then(|it| it["accessModes"].as_array());
        modes.is_some_and(|modes| modes.iter().any(|it| it == "ReadWriteMany"))
    };
    match seen.vmi.spec.volumes.iter().all(|it| is_shared(&it.name)) {
        true => "LiveMigration",
        false => "BlockMigration",
    }
}

fn running(status: &mut Map<String, Value>, seen: &Seen<'_>, live: &Live) {
    if !live.machine_type.is_empty() {
        put(status, "machine", json!({"type": live.machine_type}));
    }
    let cpu = &seen.plan.cpu;
    let topology = json!({"sockets": live.sockets, "cores": cpu.cores, "threads": cpu.threads});
    put(status, "currentCPUTopology", topology);
    let requested = seen.vmi.spec.domain.memory.as_ref().and_then(|it| it.guest);
    let requested = requested.map_or_else(|| quantity(live.memory_at_boot), |it| it.text());
    let memory = json!({
        "guestAtBoot": quantity(live.memory_at_boot),
        "guestCurrent": quantity(live.memory),
        "guestRequested": requested,
    });
    put(status, "memory", memory);
    put(status, "migrationTransport", "Unix".into());
    if live.is_frozen {
        put(status, "fsFreezeStatus", "frozen".into());
    } else {
        status.shift_remove("fsFreezeStatus");
    }
}

fn put(status: &mut Map<String, Value>, field: &str, value: Value) {
    status.insert(field.to_owned(), value);
}

/// A list that is empty is left out.
fn put_list(status: &mut Map<String, Value>, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        status.shift_remove(field);
    } else {
        put(status, field, list.into());
    }
}

fn guest_os(os: &fairway_machines_qemu::agent::OsInfo) -> Value {
    let mut info = Map::new();
    for (field, value) in [
        ("name", &os.name),
        ("kernelRelease", &os.kernel_release),
        ("version", &os.version),
        ("prettyName", &os.pretty_name),
        ("versionId", &os.version_id),
        ("kernelVersion", &os.kernel_version),
        ("machine", &os.machine),
        ("id", &os.id),
    ] {
        if !value.is_empty() {
            info.insert(field.to_owned(), value.as_str().into());
        }
    }
    Value::Object(info)
}

/// Bytes as the API writes them.
pub(crate) fn quantity(bytes: u64) -> String {
    for (shift, suffix) in [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Kubernetes' word for how an instance is treated when there is too little of something.
fn quality(vmi: &VirtualMachineInstance) -> &'static str {
    let resources = &vmi.spec.domain.resources;
    let cpu = vmi.spec.domain.cpu.as_ref();
    let is_alone = cpu.is_some_and(|it| it.dedicated_cpu_placement);
    let guaranteed = ["cpu", "memory"].into_iter().all(|name| {
        let limit = resources.limits.get(name);
        limit.is_some() && resources.requests.get(name).is_none_or(|it| Some(it) == limit)
    });
    if guaranteed || is_alone {
        "Guaranteed"
    } else if resources.requests.is_empty() && resources.limits.is_empty() && vmi.spec.domain.memory.is_none()
    {
        "BestEffort"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests;
