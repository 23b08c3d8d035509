//! What a whole pod asks for: its containers together, its init containers one after the other, its overhead.

use std::collections::HashMap;

use fairway_kernel_kinds::read::{has, list, part, text};
use serde_json::Value;

use crate::Amounts;

/// What the kubelet has said about a container, if it has.
struct Reported<'a> {
    by_container: HashMap<&'a str, &'a Value>,
    /// The wish for more cannot be met here, so it does not count.
    infeasible: bool,
}

/// Whether a figure for the whole pod may be given.
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Whether the pod itself, not its containers, says what it needs.
pub(crate) fn has_pod_level(pod: &Value, fields: &[&str]) -> bool {
    let resources = part(part(pod, "spec"), "resources");
    fields
        .iter()
        .any(|field| Amounts::read(resources, field).names().any(is_pod_level))
}

/// What the pod requests, with what it really has been given.
pub(crate) fn requests(pod: &Value) -> Amounts {
    let mut sum = aggregate(pod, "requests", Some(&Reported::of(pod)));
    override_by_pod(pod, "requests", &mut sum, is_pod_level);
    sum.add_all(&Amounts::read(part(pod, "spec"), "overhead"));
    sum
}

/// What the pod is limited to, with what it really has been given.
pub(crate) fn limits(pod: &Value) -> Amounts {
    let mut sum = aggregate(pod, "limits", Some(&Reported::of(pod)));
    override_by_pod(pod, "limits", &mut sum, is_pod_level);
    for (name, overhead) in Amounts::read(part(pod, "spec"), "overhead").iter() {
        if sum.get(name).is_some_and(|limit| limit.sign() != 0) {
            sum.add(name, overhead);
        }
    }
    sum
}

/// What the pod's specification says, which is what limit ranges look at.
pub(crate) fn specified(pod: &Value, field: &str) -> Amounts {
    let mut sum = aggregate(pod, field, None);
    override_by_pod(pod, field, &mut sum, |name| matches!(name, "cpu" | "memory"));
    sum
}

fn override_by_pod(pod: &Value, field: &str, sum: &mut Amounts, may: impl Fn(&str) -> bool) {
    for (name, amount) in Amounts::read(part(part(pod, "spec"), "resources"), field).iter() {
        if may(name) {
            sum.set(name, amount);
        }
    }
}

/// The sum over containers. Init containers run before, each for itself but beside those that keep running (sidecars),
/// so they only raise the sum where one of them needs more than all containers together.
fn aggregate(pod: &Value, field: &str, reported: Option<&Reported<'_>>) -> Amounts {
    let spec = part(pod, "spec");
    let of = |container: &Value, resizable: bool| {
        let said = Amounts::read(part(container, "resources"), field);
        match reported {
            Some(reported) if resizable => reported.effective(text(container, "name"), field, said),
            _ => said,
        }
    };
    let mut sum = Amounts::default();
    for container in list(spec, "containers") {
        sum.add_all(&of(container, true));
    }
    let (mut sidecars, mut highest) = (Amounts::default(), Amounts::default());
    for container in list(spec, "initContainers") {
        let sidecar = text(container, "restartPolicy") == "Always";
        let mut while_it_runs = of(container, sidecar);
        if sidecar {
            sum.add_all(&while_it_runs);
            sidecars.add_all(&while_it_runs);
            while_it_runs = sidecars.clone();
        } else {
            while_it_runs.add_all(&sidecars);
        }
        highest.raise_to(&while_it_runs);
    }
    sum.raise_to(&highest);
    sum
}

impl<'a> Reported<'a> {
    fn of(pod: &'a Value) -> Self {
        let status = part(pod, "status");
        let infeasible = list(status, "conditions")
            .iter()
            .find(|condition| text(condition, "type") == "PodResizePending")
            .is_some_and(|condition| text(condition, "reason") == "Infeasible");
        let by_container = ["containerStatuses", "initContainerStatuses"]
            .iter()
            .flat_map(|field| list(status, field))
            .filter(|container| has(container, "resources"))
            .map(|container| (text(container, "name"), container))
            .collect();
        Self {
            by_container,
            infeasible,
        }
    }

    /// While a container is being resized, the larger of what it shall have and what it has.
    fn effective(&self, name: &str, field: &str, said: Amounts) -> Amounts {
        let Some(status) = self.by_container.get(name) else {
            return said;
        };
        let mut amounts = if self.infeasible { Amounts::default() } else { said };
        amounts.raise_to(&Amounts::read(part(status, "resources"), field));
        if field == "requests" {
            amounts.raise_to(&Amounts::read(status, "allocatedResources"));
        }
        amounts
    }
}
