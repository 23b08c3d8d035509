//! Sizes and tastes: what an instancetype and a preference make of a machine's template, and where they clash.
//!
//! A size has the last word: a machine that says the same thing itself is in conflict with it. A taste fills in what
//! nobody said. Both work on the JSON of the template, in upstream's order.

use serde_json::{Value, json};
use thiserror::Error;

use crate::defaults::whole;
use crate::edit::{append, at, is_set, set};
use crate::view::{InstanceSpec, InstancetypeSpec, PreferenceSpec};

mod preference;
mod requirements;

pub use requirements::{RequirementError, check_requirements};

/// The fields in which a machine clashes with its size.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("VM field(s) {} conflicts with selected instance type", .0.join(", "))]
pub struct Conflicts(pub Vec<String>);

/// How processors spread, with upstream's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    Sockets,
    Cores,
    Threads,
    Any,
    SpreadSocketsCores(u32),
    SpreadCoresThreads(u32),
    SpreadSocketsCoresThreads(u32),
}

impl Topology {
    fn preferred(preference: Option<&PreferenceSpec>) -> Self {
        let cpu = preference.and_then(|it| it.cpu.as_ref());
        let word = cpu
            .and_then(|it| it.preferred_cpu_topology.as_deref())
            .unwrap_or("sockets");
        match word {
            "preferCores" | "cores" => Self::Cores,
            "preferThreads" | "threads" => Self::Threads,
            "preferAny" | "any" => Self::Any,
            "preferSpread" | "spread" => {
                let old = preference
                    .map(|it| it.prefer_spread_socket_to_core_ratio)
                    .filter(|it| *it != 0);
                let options = cpu.and_then(|it| it.spread_options.as_ref());
                let ratio = options.and_then(|it| it.ratio).or(old).unwrap_or(2).max(1);
                match options.and_then(|it| it.across.as_deref()) {
                    Some("CoresThreads") => Self::SpreadCoresThreads(ratio),
                    Some("SocketsCoresThreads") => Self::SpreadSocketsCoresThreads(ratio),
                    _ => Self::SpreadSocketsCores(ratio),
                }
            }
            _ => Self::Sockets,
        }
    }

    /// Sockets, cores and threads for a number of processors.
    fn of(self, count: u32) -> [u32; 3] {
        if count == 1 {
            return [1, 1, 1];
        }
        match self {
            Self::Sockets | Self::Any => [count, 1, 1],
            Self::Cores => [1, count, 1],
            Self::Threads => [1, 1, count],
            Self::SpreadSocketsCores(ratio) => [count / ratio, ratio, 1],
            Self::SpreadCoresThreads(ratio) => [1, count / ratio, ratio],
            Self::SpreadSocketsCoresThreads(ratio) => [count / 2 / ratio, ratio, 2],
        }
    }
}

/// Puts a size and a taste into a machine's template (`metadata` and `spec`). On conflict the template is of no use.
pub fn expand(
    template: &mut Value,
    instancetype: Option<&InstancetypeSpec>,
    preferred: Option<&PreferenceSpec>,
) -> Result<(), Conflicts> {
    if let Some(size) = instancetype {
        let mut found = Vec::new();
        let spec = &mut template["spec"];
        node_and_scheduler(size, spec, &mut found);
        cpu(size, preferred, spec, &mut found);
        memory(size, spec, &mut found);
        whole_fields(size, spec, &mut found);
        annotations(size, template, &mut found);
        if !found.is_empty() {
            return Err(Conflicts(found));
        }
    }
    if let Some(taste) = preferred {
        preference::apply(taste, template);
    }
    Ok(())
}

/// Why the processors of a size cannot be spread as a taste prefers.
pub fn uneven_spread(
    instancetype: Option<&InstancetypeSpec>,
    preferred: Option<&PreferenceSpec>,
) -> Option<String> {
    let count = instancetype?.cpu.guest;
    let by = "not divisible by the";
    match Topology::preferred(preferred) {
        Topology::SpreadSocketsCores(ratio) if !count.is_multiple_of(ratio) => Some(format!(
            "{count} vCPUs provided by the instance type are {by} Spec.PreferSpreadSocketToCoreRatio or \
             Spec.CPU.PreferSpreadOptions.Ratio of {ratio} provided by the preference"
        )),
        Topology::SpreadCoresThreads(ratio) if !count.is_multiple_of(ratio) => Some(format!(
            "{count} vCPUs provided by the instance type are {by} number of threads per core {ratio}"
        )),
        Topology::SpreadSocketsCoresThreads(ratio)
            if !count.is_multiple_of(2) || !(count / 2).is_multiple_of(ratio) =>
        {
            Some(format!(
                "{count} vCPUs provided by the instance type are {by} number of threads per core 2 and \
                 Spec.PreferSpreadSocketToCoreRatio or Spec.CPU.PreferSpreadOptions.Ratio of {ratio}"
            ))
        }
        _ => None,
    }
}

fn clash(found: &mut Vec<String>, path: &[&str]) {
    found.push(format!("spec.template.spec.{}", path.join(".")));
}

fn node_and_scheduler(size: &InstancetypeSpec, spec: &mut Value, found: &mut Vec<String>) {
    if let Some(selector) = &size.node_selector {
        if at(spec, &["nodeSelector"]).is_some() {
            clash(found, &["nodeSelector"]);
        } else {
            set(spec, &["nodeSelector"], selector.clone());
        }
    }
    if !size.scheduler_name.is_empty() {
        if is_set(spec, &["schedulerName"]) {
            clash(found, &["schedulerName"]);
        } else {
            set(spec, &["schedulerName"], size.scheduler_name.clone());
        }
    }
}

fn cpu(
    size: &InstancetypeSpec,
    preferred: Option<&PreferenceSpec>,
    spec: &mut Value,
    found: &mut Vec<String>,
) {
    let before = found.len();
    let cpu = &size.cpu;
    let said: [(&[&str], bool); 10] = [
        (&["domain", "resources", "requests", "cpu"], true),
        (&["domain", "resources", "limits", "cpu"], true),
        (&["domain", "cpu", "sockets"], true),
        (&["domain", "cpu", "cores"], true),
        (&["domain", "cpu", "threads"], true),
        (&["domain", "cpu", "model"], cpu.model.is_some()),
        (
            &["domain", "cpu", "dedicatedCpuPlacement"],
            cpu.dedicated_cpu_placement.is_some(),
        ),
        (
            &["domain", "cpu", "isolateEmulatorThread"],
            cpu.isolate_emulator_thread.is_some(),
        ),
        (&["domain", "cpu", "numa"], cpu.numa.is_some()),
        (&["domain", "cpu", "realtime"], cpu.realtime.is_some()),
    ];
    for (path, by_size) in said {
        // Whether an amount is there counts, not how much it is.
        let by_machine = if path[1] == "resources" {
            at(spec, path).is_some()
        } else {
            is_set(spec, path)
        };
        if by_size && by_machine {
            // Upstream names this one field in another spelling than the API.
            let named: Vec<&str> = path
                .iter()
                .map(|it| {
                    if *it == "dedicatedCpuPlacement" {
                        "dedicatedCPUPlacement"
                    } else {
                        it
                    }
                })
                .collect();
            clash(found, &named);
        }
    }
    if found.len() > before {
        return;
    }
    let text = |value: &Option<String>| value.clone().map(Value::from);
    let fields = [
        ("model", text(&cpu.model)),
        (
            "dedicatedCpuPlacement",
            cpu.dedicated_cpu_placement.map(Value::from),
        ),
        (
            "isolateEmulatorThread",
            cpu.isolate_emulator_thread.map(Value::from),
        ),
        ("numa", cpu.numa.clone()),
        ("realtime", cpu.realtime.clone()),
        ("maxSockets", cpu.max_sockets.map(Value::from)),
    ];
    for (field, value) in fields {
        if let Some(value) = value {
            set(spec, &["domain", "cpu", field], value);
        }
    }
    let parts = Topology::preferred(preferred).of(cpu.guest);
    for (part, count) in ["sockets", "cores", "threads"].into_iter().zip(parts) {
        set(spec, &["domain", "cpu", part], count);
    }
}

fn memory(size: &InstancetypeSpec, spec: &mut Value, found: &mut Vec<String>) {
    let taken: [&[&str]; 3] = [
        &["domain", "memory"],
        &["domain", "resources", "requests", "memory"],
        &["domain", "resources", "limits", "memory"],
    ];
    if let Some(path) = taken.into_iter().find(|path| at(spec, path).is_some()) {
        clash(found, path);
        return;
    }
    let Some(guest) = size.memory.guest else {
        return;
    };
    let mut memory = json!({"guest": guest.text()});
    if let Some(pages) = &size.memory.hugepages {
        memory["hugepages"] = json!({"pageSize": pages.page_size});
    }
    if let Some(most) = size.memory.max_guest {
        memory["maxGuest"] = json!(most.text());
    }
    set(spec, &["domain", "memory"], memory);
    let percent = size.memory.overcommit_percent;
    if percent > 0 {
        let kept = i128::from(guest.value()) * i128::from((100 - percent).max(0)) / 100;
        let asked = whole(i64::try_from(kept).unwrap_or(i64::MAX), guest.0.format());
        set(spec, &["domain", "resources", "requests", "memory"], asked);
    }
}

fn whole_fields(size: &InstancetypeSpec, spec: &mut Value, found: &mut Vec<String>) {
    let policy = size.io_threads_policy.clone().map(Value::from);
    let fields: [(&[&str], Option<Value>); 4] = [
        (&["domain", "ioThreadsPolicy"], policy),
        (&["domain", "launchSecurity"], size.launch_security.clone()),
        (&["domain", "devices", "gpus"], size.gpus.clone()),
        (&["domain", "devices", "hostDevices"], size.host_devices.clone()),
    ];
    for (path, value) in fields {
        let Some(value) = value.filter(|it| it.as_array().is_none_or(|items| !items.is_empty())) else {
            continue;
        };
        if is_set(spec, path) {
            clash(found, path);
        } else {
            set(spec, path, value);
        }
    }
}

fn annotations(size: &InstancetypeSpec, template: &mut Value, found: &mut Vec<String>) {
    for (key, value) in &size.annotations {
        match at(template, &["metadata", "annotations", key]) {
            Some(own) if own != value => found.push(format!("annotations.{key}")),
            Some(_) => {}
            None => set(template, &["metadata", "annotations", key], value.clone()),
        }
    }
}

/// The names of features that a list has.
fn feature_names(spec: &Value, path: &[&str]) -> Vec<String> {
    let features = at(spec, path).and_then(Value::as_array);
    let names = features
        .into_iter()
        .flatten()
        .filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

fn add_features(spec: &mut Value, preferred: &Value) {
    let own = feature_names(spec, &["domain", "cpu", "features"]);
    let new: Vec<Value> = preferred
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| {
            it["name"]
                .as_str()
                .is_some_and(|name| !own.iter().any(|it| it == name))
        })
        .cloned()
        .collect();
    if !new.is_empty() {
        append(spec, &["domain", "cpu", "features"], new);
    }
}

/// How many processors a machine has in the dimensions that a taste looks at, and what these are called.
fn counted(topology: Topology, spec: &InstanceSpec) -> (u32, Vec<&'static str>, &'static str) {
    let cpu = spec.domain.cpu.clone().unwrap_or_default();
    let product = |parts: &[u32]| {
        parts
            .iter()
            .fold(1_u32, |product, part| product.saturating_mul(*part))
    };
    match topology {
        Topology::Threads => (cpu.threads, vec!["threads"], "threads"),
        Topology::Cores => (cpu.cores, vec!["cores"], "cores"),
        Topology::Sockets => (cpu.sockets, vec!["sockets"], "sockets"),
        Topology::Any => (
            product(&[cpu.cores, cpu.sockets, cpu.threads]),
            vec!["cores", "sockets", "threads"],
            "cores, sockets and threads",
        ),
        Topology::SpreadSocketsCores(_) => (
            product(&[cpu.sockets, cpu.cores]),
            vec!["sockets", "cores"],
            "SocketsCores",
        ),
        Topology::SpreadCoresThreads(_) => (
            product(&[cpu.cores, cpu.threads]),
            vec!["cores", "threads"],
            "CoresThreads",
        ),
        Topology::SpreadSocketsCoresThreads(_) => (
            product(&[cpu.sockets, cpu.cores, cpu.threads]),
            vec!["sockets", "cores", "threads"],
            "SocketsCoresThreads",
        ),
    }
}

#[cfg(test)]
mod tests;
