//! What pods use: numbers, compute resources, huge pages, extended resources.

use std::collections::{BTreeMap, BTreeSet};

use fairway_kernel_kinds::read::{has, int, list, part, text};
use serde_json::Value;

use crate::Amounts;
use crate::pod_resources::{has_pod_level, limits, requests};
use crate::scope::Scope;

const COUNT: &str = "count/pods";
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// If a quota limits one of these, every container must say what it needs. Upstream regrets it and keeps it.
const MUST_BE_SAID: [&str; 6] = [
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Whether a quota's resource is one that pods use.
pub(crate) fn measures(name: &str) -> bool {
    let plain = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    name == COUNT
        || name == "pods"
        || COMPUTE.contains(&plain)
        || name.starts_with("hugepages-")
        || name.strip_prefix("requests.").is_some_and(|rest| {
            rest.starts_with("hugepages-") || is_extended(rest) || rest.starts_with(DEVICE_CLASS)
        })
}

/// Resources with a domain that is not Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// Whether a pod ends by itself after some time.
fn is_terminating(pod: &Value) -> bool {
    int(part(pod, "spec"), "activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0)
}

/// Whether an update moved a pod between the scopes `Terminating` and `NotTerminating`.
pub(crate) fn scope_changed(old: &Value, new: &Value) -> bool {
    is_terminating(old) != is_terminating(new)
}

pub(crate) fn in_scope(scope: &Scope, pod: &Value) -> bool {
    match scope.name.as_str() {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = text(part(pod, "spec"), "priorityClassName");
            let names: &[&str] = if class.is_empty() { &[] } else { &[class] };
            scope.matches_any(names)
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

/// Whether nothing in the pod asks for processor time or memory.
fn is_best_effort(pod: &Value) -> bool {
    let class = text(part(pod, "status"), "qosClass");
    if !class.is_empty() {
        return class == "BestEffort";
    }
    let asks = |resources: &Value| {
        ["requests", "limits"].iter().any(|field| {
            let amounts = Amounts::read(resources, field);
            ["cpu", "memory"]
                .iter()
                .any(|name| amounts.get(name).is_some_and(|amount| amount.sign() > 0))
        })
    };
    let spec = part(pod, "spec");
    if has(spec, "resources") {
        return !asks(part(spec, "resources"));
    }
    !["containers", "initContainers"]
        .iter()
        .flat_map(|field| list(spec, field))
        .any(|container| asks(part(container, "resources")))
}

/// Whether the pod wants to be near, or far from, pods of other namespaces.
fn crosses_namespaces(pod: &Value) -> bool {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let affinity = part(part(pod, "spec"), "affinity");
    ["podAffinity", "podAntiAffinity"].iter().any(|field| {
        let field = part(affinity, field);
        let required = list(field, REQUIRED).iter();
        let preferred = list(field, PREFERRED)
            .iter()
            .map(|term| part(term, "podAffinityTerm"));
        required
            .chain(preferred)
            .any(|term| !list(term, "namespaces").is_empty() || has(term, "namespaceSelector"))
    })
}

/// Which containers do not say what they need, although a quota limits it.
pub(crate) fn missing(limited: &[&str], pod: &Value) -> Option<String> {
    if has_pod_level(pod, &["requests", "limits"]) {
        return None;
    }
    let required: Vec<&str> = limited
        .iter()
        .copied()
        .filter(|name| MUST_BE_SAID.contains(name))
        .collect();
    if required.is_empty() {
        return None;
    }
    let mut silent: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let spec = part(pod, "spec");
    for container in ["containers", "initContainers"]
        .iter()
        .flat_map(|field| list(spec, field))
    {
        let resources = part(container, "resources");
        let said = compute(
            &Amounts::read(resources, "requests"),
            &Amounts::read(resources, "limits"),
        );
        for name in required.iter().filter(|name| !said.has(name)) {
            silent.entry(name).or_default().insert(text(container, "name"));
        }
    }
    if silent.is_empty() {
        return None;
    }
    let parts: Vec<String> = silent
        .into_iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    Some(format!("must specify {}", parts.join("; ")))
}

/// What a pod uses. One that has ended, or should have, counts as an object only.
pub(crate) fn usage(pod: &Value, now: &str) -> Amounts {
    let mut used = Amounts::default();
    used.one(COUNT);
    if is_alive(pod, now) {
        used.add_all(&compute(&requests(pod), &limits(pod)));
    }
    used
}

/// Requests and limits under the names that quotas have for them.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::default();
    used.one("pods");
    for name in COMPUTE {
        if let Some(request) = requests.get(name) {
            used.set(name, request);
            used.set(format!("requests.{name}"), request);
        }
        if let Some(limit) = limits.get(name) {
            used.set(format!("limits.{name}"), limit);
        }
    }
    for (name, request) in requests.iter() {
        if name.starts_with("hugepages-") {
            used.set(name, request);
            used.set(format!("requests.{name}"), request);
        }
        if is_extended(name) || name.starts_with(DEVICE_CLASS) {
            used.set(format!("requests.{name}"), request);
        }
    }
    used
}

/// Whether a pod still uses what it asked for.
fn is_alive(pod: &Value, now: &str) -> bool {
    if matches!(text(part(pod, "status"), "phase"), "Failed" | "Succeeded") {
        return false;
    }
    let metadata = part(pod, "metadata");
    let seconds = |text: &str| {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(jiff::Timestamp::as_second)
    };
    let marked = seconds(text(metadata, "deletionTimestamp"));
    match (marked, int(metadata, "deletionGracePeriodSeconds"), seconds(now)) {
        // The mark itself lies in the future by the grace; upstream waits for it twice, and so do we.
        (Some(marked), Some(grace), Some(now)) => now <= marked.saturating_add(grace),
        _ => true,
    }
}
