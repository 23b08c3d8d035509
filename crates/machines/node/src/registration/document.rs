//! The Node as a document: from facts to labels, capacity and conditions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use fairway_machines_plan::compatibility;
use fairway_machines_plan::node::{
    ACCELERATOR_LABEL, CPU_MANAGER_LABEL, DEDICATED_CPUS, FENCE_ANNOTATION, PROCESSOR_LABEL,
    SCHEDULABLE_LABEL, VENDOR_LABEL,
};
use fairway_machines_qemu::accel::Acceleration;
use serde_json::{Map, Value, json};

use super::{by_type, read};
use crate::host::{HUGEPAGES, hugepages, processor};
use crate::instance::status::quantity;
use crate::taps::DataPath;

/// How guests run on the node.
const ACCELERATED: &str = "fairway.dev/Accelerated";
/// Whether the kernel carries frames between machines, where the switch has allowed it.
const KERNEL_DATA_PATH: &str = "fairway.dev/KernelDataPath";
/// How far machines are kept apart.
const ISOLATED: &str = "fairway.dev/Isolated";
/// Memory that is kept for everything but machines.
const RESERVED: u64 = 256 << 20;
/// What a node without KVM says it has of it; upstream's number for one that has.
const KVM: &str = "1k";

/// The hardware and system below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) processors: usize,
    /// Bytes.
    pub(super) memory: u64,
    /// Bytes of it that are kept ready in large pages, by the size of a page.
    pub(super) hugepages: BTreeMap<u64, u64>,
    pub(super) kernel: String,
    pub(super) system: String,
    pub(super) machine_id: String,
    pub(super) boot_id: String,
    /// Its name, by which guests that move know it again.
    pub(super) processor: Option<String>,
}

impl Machine {
    pub(super) fn here() -> Self {
        let release = read("/etc/os-release");
        let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let memory = read("/proc/meminfo");
        Self {
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: total_memory(&memory),
            hugepages: hugepages(Path::new(HUGEPAGES)),
            kernel: read("/proc/sys/kernel/osrelease"),
            system: system.unwrap_or("Linux").trim_matches('"').to_owned(),
            machine_id: read("/etc/machine-id"),
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            processor: processor(),
        }
    }
}

/// Bytes of `MemTotal` in `/proc/meminfo`.
fn total_memory(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|it| it.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}

/// Whether machines have no room left to write.
pub(super) fn is_full(directory: &Path) -> bool {
    let Some(found) = directory.ancestors().find_map(|it| rustix::fs::statvfs(it).ok()) else {
        return false;
    };
    is_nearly_full(found.f_blocks, found.f_bavail)
}

/// Whether less than a twentieth is left.
fn is_nearly_full(all: u64, left: u64) -> bool {
    all > 0 && left.saturating_mul(20) < all
}

/// Everything that the Node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) address: Option<IpAddr>,
    pub(super) has_qemu: bool,
    /// Nothing until the first machine needed to know.
    pub(super) acceleration: Option<Acceleration>,
    /// What machines lack to be kept in.
    pub(super) missing: Vec<String>,
    /// What carries frames.
    pub(super) data_path: DataPath,
    /// After so many seconds without a renewed lease machines have ended.
    pub(super) fence: Option<u64>,
    pub(super) is_full: bool,
    /// Processors that can be given to one machine alone.
    pub(super) alone: usize,
    pub(super) machine: Machine,
}

fn labels(facts: &Facts) -> Map<String, Value> {
    let labels = [
        ("beta.kubernetes.io/arch", architecture()),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
        ("kubernetes.io/hostname", &facts.name),
        ("kubernetes.io/os", "linux"),
        (SCHEDULABLE_LABEL, if facts.has_qemu { "true" } else { "false" }),
        (CPU_MANAGER_LABEL, if facts.alone > 0 { "true" } else { "false" }),
    ];
    let labels = labels
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()));
    let mut labels: Map<String, Value> = labels.collect();
    if let Some(acceleration) = &facts.acceleration {
        labels.insert(ACCELERATOR_LABEL.to_owned(), acceleration.word().into());
    }
    if let Some(processor) = &facts.machine.processor {
        let vendor = format!("{VENDOR_LABEL}{}", compatibility::maker(processor));
        labels.insert(vendor, "true".into());
        labels.insert(PROCESSOR_LABEL.to_owned(), processor.as_str().into());
    }
    labels
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The Node as it is made.
pub(super) fn node(facts: &Facts) -> Value {
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": facts.name, "labels": labels(facts)},
    });
    if let Some(seconds) = facts.fence {
        node["metadata"]["annotations"] = json!({FENCE_ANNOTATION: seconds.to_string()});
    }
    node
}

/// Labels and annotations that are not as they should be. Those that people add stay.
pub(super) fn to_change(found: &Value, facts: &Facts) -> Option<Value> {
    let present = &found["metadata"]["labels"];
    let mut labels = labels(facts);
    labels.retain(|key, value| present[key.as_str()] != *value);
    let mut change = json!({});
    if !labels.is_empty() {
        change["labels"] = labels.into();
    }
    let promise = facts.fence.map_or(Value::Null, |it| it.to_string().into());
    if found["metadata"]["annotations"][FENCE_ANNOTATION] != promise {
        change["annotations"] = json!({FENCE_ANNOTATION: promise});
    }
    (change != json!({})).then_some(change)
}

/// Whether the Node says otherwise than we would that it is ready.
pub(super) fn is_doubted(found: &Value, facts: &Facts) -> bool {
    let ready = by_type(&found["status"]["conditions"], "Ready");
    let wanted = if facts.has_qemu { "True" } else { "False" };
    ready.is_none_or(|it| it["status"] != wanted)
}

/// The status, given what it was.
pub(super) fn status(before: &Value, facts: &Facts, now: &str) -> Value {
    let machine = &facts.machine;
    let mut capacity = json!({
        "cpu": machine.processors.to_string(),
        "memory": format!("{}Ki", machine.memory >> 10),
        "pods": "110",
        DEDICATED_CPUS: facts.alone.to_string(),
    });
    if facts.acceleration == Some(Acceleration::Kvm) {
        capacity["devices.kubevirt.io/kvm"] = KVM.into();
    }
    for (size, bytes) in &machine.hugepages {
        capacity[format!("hugepages-{}", quantity(*size))] = quantity(*bytes).into();
    }
    let mut allocatable = capacity.clone();
    // What lies in large pages is nobody's else.
    let kept = machine.hugepages.values().sum::<u64>().saturating_add(RESERVED);
    allocatable["memory"] = format!("{}Ki", machine.memory.saturating_sub(kept) >> 10).into();
    let mut addresses = vec![json!({"type": "Hostname", "address": facts.name})];
    if let Some(address) = facts.address {
        addresses.insert(0, json!({"type": "InternalIP", "address": address.to_string()}));
    }
    let version = concat!("fairway-", env!("CARGO_PKG_VERSION"));
    json!({
        "addresses": addresses,
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": conditions(&before["conditions"], facts, now),
        "nodeInfo": {
            "architecture": architecture(), "operatingSystem": "linux", "kernelVersion": machine.kernel,
            "osImage": machine.system, "machineID": machine.machine_id, "systemUUID": machine.machine_id,
            "bootID": machine.boot_id, "containerRuntimeVersion": format!("qemu://{version}"),
            "kubeletVersion": version, "kubeProxyVersion": version,
        },
    })
}

fn conditions(before: &Value, facts: &Facts, now: &str) -> Vec<Value> {
    let mut ours = Vec::new();
    let mut say = |kind: &str, status: &str, reason: &str, message: String| {
        let known = by_type(before, kind);
        let moment = known
            .filter(|it| it["status"] == status)
            .and_then(|it| it["lastTransitionTime"].as_str())
            .unwrap_or(now);
        ours.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": moment,
        }));
    };
    let full = if facts.is_full { "True" } else { "False" };
    let (reason, message) = match facts.is_full {
        true => (
            "KubeletHasDiskPressure",
            "less than a twentieth of the machines' file system is free: remove images or machines",
        ),
        false => ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    };
    say("DiskPressure", full, reason, message.to_owned());
    say(
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available".to_owned(),
    );
    say(
        "PIDPressure",
        "False",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available".to_owned(),
    );
    match facts.has_qemu {
        true => say("Ready", "True", "KubeletReady", "the node runs machines".to_owned()),
        false => say(
            "Ready",
            "False",
            "NoQemu",
            "QEMU is not installed: install it on this node (on Debian: apt-get install qemu-system-x86 qemu-utils)"
                .to_owned(),
        ),
    }
    match &facts.acceleration {
        None => say(
            ACCELERATED,
            "Unknown",
            "NotProbed",
            "it is found out when there is a first machine".to_owned(),
        ),
        Some(Acceleration::Kvm) => say(
            ACCELERATED,
            "True",
            "KVM",
            "guests run on the processor".to_owned(),
        ),
        Some(Acceleration::Emulated(why)) => say(
            ACCELERATED,
            "False",
            "Emulated",
            format!("guests are emulated: {why}"),
        ),
    }
    match facts.missing.as_slice() {
        [] => say(
            ISOLATED,
            "True",
            "Complete",
            "each machine has a seccomp filter, a directory, a user and a control group of its own"
                .to_owned(),
        ),
        missing => say(
            ISOLATED,
            "False",
            "Incomplete",
            format!(
                "machines have a seccomp filter and a directory of their own; {}",
                missing.join("; ")
            ),
        ),
    }
    let (status, reason, message) = match &facts.data_path {
        DataPath::Kernel(taps) => (
            "True",
            "Tap",
            format!(
                "the kernel carries busy connections between machines that the switch has allowed, in the network namespace {}",
                taps.space.path().display()
            ),
        ),
        DataPath::Switch => (
            "False",
            "Userspace",
            "the switch carries every frame; --machine-network tap lets the kernel help".to_owned(),
        ),
        DataPath::Incomplete(why) => (
            "False",
            "Incomplete",
            format!("the switch carries every frame, as devices of the kernel are not to be had: {why}"),
        ),
    };
    say(KERNEL_DATA_PATH, status, reason, message);
    let others = before.as_array().into_iter().flatten();
    let others: Vec<Value> = others
        .filter(|it| {
            by_type(
                &Value::Array(ours.clone()),
                it["type"].as_str().unwrap_or_default(),
            )
            .is_none()
        })
        .cloned()
        .collect();
    ours.extend(others);
    ours.sort_by_key(|it| it["type"].as_str().unwrap_or_default().to_owned());
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            name: "here".to_owned(),
            address: Some("192.0.2.1".parse().unwrap()),
            has_qemu: true,
            acceleration: Some(Acceleration::Emulated("no KVM".to_owned())),
            missing: vec!["no cgroup".to_owned()],
            data_path: DataPath::Incomplete("no nft".to_owned()),
            fence: None,
            is_full: false,
            alone: 3,
            machine: Machine {
                processors: 4,
                memory: 8 << 30,
                ..Machine::default()
            },
        }
    }

    #[test]
    fn what_there_is_is_said() {
        let before = json!({"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "t0"},
            {"type": "NetworkUnavailable", "status": "False", "lastTransitionTime": "t0"},
        ]});
        let status = status(&before, &facts(), "t1");
        assert_eq!(status["capacity"]["memory"], "8388608Ki");
        assert_eq!(status["allocatable"]["memory"], "8126464Ki");
        assert_eq!(status["capacity"].get("devices.kubevirt.io/kvm"), None);
        let mut large = facts();
        large.machine.hugepages = [(2 << 20, 1 << 30), (1 << 30, 2 << 30)].into();
        let large = super::status(&before, &large, "t1");
        assert_eq!(
            large["allocatable"],
            json!({
                "cpu": "4", "memory": "4980736Ki", "pods": "110", "fairway.dev/dedicated-cpus": "3", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "2Gi",
            })
        );
        assert_eq!(large["capacity"]["hugepages-2Mi"], "1Gi");
        assert_eq!(status["addresses"][0]["address"], "192.0.2.1");
        let ready = by_type(&status["conditions"], "Ready").unwrap();
        assert_eq!(
            (&ready["lastTransitionTime"], &ready["lastHeartbeatTime"]),
            (&json!("t0"), &json!("t1"))
        );
        assert!(
            by_type(&status["conditions"], "NetworkUnavailable").is_some(),
            "others' conditions stay"
        );
        let isolated = by_type(&status["conditions"], ISOLATED).unwrap();
        assert_eq!(
            isolated["message"],
            "machines have a seccomp filter and a directory of their own; no cgroup"
        );
        let kernel = by_type(&status["conditions"], KERNEL_DATA_PATH).unwrap();
        assert_eq!(
            (&kernel["status"], &kernel["reason"]),
            (&json!("False"), &json!("Incomplete"))
        );
        assert!(kernel["message"].as_str().unwrap().ends_with("no nft"));
        let object = json!({ "status": status });
        assert!(!is_doubted(&object, &facts()));
        let mut without = facts();
        without.has_qemu = false;
        without.acceleration = Some(Acceleration::Kvm);
        assert!(is_doubted(&object, &without) && is_doubted(&json!({}), &facts()));
        let status = super::status(&status, &without, "t2");
        assert_eq!(
            by_type(&status["conditions"], "Ready").unwrap()["lastTransitionTime"],
            "t2"
        );
        assert_eq!(status["capacity"]["devices.kubevirt.io/kvm"], "1k");
    }

    #[test]
    fn what_guests_run_on_is_a_label() {
        let mut facts = facts();
        facts.machine.processor = Some("Intel-6-85-7-aa".to_owned());
        let made = node(&facts);
        let label = |key: &str| made["metadata"]["labels"][key].clone();
        assert_eq!(label("fairway.dev/accelerator"), "tcg");
        assert_eq!(label("fairway.dev/processor"), "Intel-6-85-7-aa");
        assert_eq!(label("cpu-vendor.node.kubevirt.io/Intel"), "true");
        facts.acceleration = None;
        assert_eq!(
            to_change(&made, &facts),
            None,
            "what was found out once stays until it is again"
        );
        facts.acceleration = Some(Acceleration::Kvm);
        let change = json!({"labels": {"fairway.dev/accelerator": "kvm"}});
        assert_eq!(to_change(&made, &facts), Some(change));
    }

    #[test]
    fn what_people_write_stays() {
        let made = node(&facts());
        assert_eq!(to_change(&made, &facts()), None);
        let mut found = made;
        found["metadata"]["labels"]["zone"] = json!("a");
        found["metadata"]["labels"][SCHEDULABLE_LABEL] = json!("false");
        let change = to_change(&found, &facts()).unwrap();
        assert_eq!(change, json!({"labels": {SCHEDULABLE_LABEL: "true"}}));
        let mut crowded = facts();
        crowded.alone = 0;
        let change = to_change(&node(&facts()), &crowded).unwrap();
        assert_eq!(change, json!({"labels": {CPU_MANAGER_LABEL: "false"}}));
        let mut fenced = facts();
        fenced.fence = Some(40);
        let change = to_change(&node(&facts()), &fenced).unwrap();
        assert_eq!(change, json!({"annotations": {FENCE_ANNOTATION: "40"}}));
        let change = to_change(&node(&fenced), &facts()).unwrap();
        assert_eq!(
            change,
            json!({"annotations": {FENCE_ANNOTATION: null}}),
            "a promise that is not kept is taken back"
        );
    }

    #[test]
    fn memory_is_read() {
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       24 kB\n"), 24 << 10);
        assert_eq!(total_memory(""), 0);
        for (all, left, expected) in [(100, 5, false), (100, 4, true), (0, 0, false)] {
            assert_eq!(is_nearly_full(all, left), expected, "{left} of {all}");
        }
    }
}
