//! What an instance takes of a node, and where it wants to be.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairway_kernel_scalar::quantity::Quantity;
use fairway_machines_plan::compatibility::RunsOn;
use fairway_machines_plan::machine::CpuModel;
use fairway_machines_plan::node::DEDICATED_CPUS;
use fairway_machines_plan::view::{Amount, Cpu, Memory, NamedDevice, Resources};
use k8s_openapi::api::core::v1::{
    Affinity, NodeSelector, PodAffinityTerm, Toleration, TopologySpreadConstraint,
};
use serde::Deserialize;
use serde_json::Value;

use super::MILLI_PER_VCPU;
use super::labels::Labels;

/// What QEMU itself takes beside the guest's memory.
const OVERHEAD: i64 = 96 << 20;
/// And for every processor of the guest.
const OVERHEAD_PER_VCPU: i64 = 8 << 20;
/// The tables of a guest's memory take one part in so many of it.
const TABLES: i64 = 512;

/// Resources that are memory in large pages begin so.
const LARGE_PAGES: &str = "hugepages-";

/// Amounts by the names of resources: thousandths of processors, bytes, devices.
pub(crate) type Amounts = BTreeMap<Box<str>, i64>;

/// The part of an instance's domain that takes something of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Domain {
    resources: Resources,
    cpu: Option<Cpu>,
    memory: Option<Memory>,
    devices: Devices,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Devices {
    gpus: Vec<NamedDevice>,
    host_devices: Vec<NamedDevice>,
}

impl Domain {
    /// What it takes.
    pub(crate) fn amounts(&self) -> Amounts {
        let mut amounts = Amounts::new();
        amounts.insert("cpu".into(), self.processors());
        if self.is_alone() {
            amounts.insert(DEDICATED_CPUS.into(), self.vcpus() + self.emulator());
        }
        let guest = self.memory.as_ref().and_then(|it| it.guest);
        let asked = self.resources.request("memory");
        let memory = match (asked, guest) {
            (0, Some(guest)) => guest.value(),
            (asked, _) => asked,
        };
        let pages = self.memory.as_ref().and_then(|it| it.hugepages.as_ref());
        let pages = pages.filter(|it| !it.page_size.is_empty());
        let overhead = match self.resources.overcommit_guest_overhead {
            true => 0,
            false => self.overhead(guest.map_or(memory, Amount::value)),
        };
        match pages {
            Some(pages) => {
                // Nodes write sizes in one way only.
                let size = Quantity::parse(&pages.page_size)
                    .map_or_else(|| pages.page_size.clone(), Quantity::canonical);
                amounts.insert(format!("{LARGE_PAGES}{size}").into(), memory);
                amounts.insert("memory".into(), overhead);
            }
            None => drop(amounts.insert("memory".into(), memory.saturating_add(overhead))),
        }
        for device in self.devices.gpus.iter().chain(&self.devices.host_devices) {
            *amounts.entry(device.device_name.as_str().into()).or_default() += 1;
        }
        amounts
    }

    fn vcpus(&self) -> i64 {
        i64::from(self.cpu.as_ref().map_or(1, Cpu::count))
    }

    fn processors(&self) -> i64 {
        let said = |from: &BTreeMap<String, Amount>| from.get("cpu").map(|it| it.0.milli_value());
        let asked = said(&self.resources.requests).or_else(|| said(&self.resources.limits));
        let guest = asked.filter(|it| *it > 0).unwrap_or(match self.is_alone() {
            true => 1000 * self.vcpus(),
            false => MILLI_PER_VCPU * self.vcpus(),
        });
        guest + 1000 * self.emulator()
    }

    /// Whether it shares its processors with nobody.
    fn is_alone(&self) -> bool {
        self.cpu.as_ref().is_some_and(|it| it.dedicated_cpu_placement)
    }

    /// Processors for QEMU itself.
    fn emulator(&self) -> i64 {
        let isolated = self.cpu.as_ref().is_some_and(|it| it.isolate_emulator_thread);
        i64::from(isolated && self.is_alone())
    }

    fn overhead(&self, guest: i64) -> i64 {
        OVERHEAD + OVERHEAD_PER_VCPU * self.vcpus() + guest / TABLES
    }
}

/// Memory in large pages that something takes.
pub(crate) fn large_pages(amounts: &Amounts) -> impl Iterator<Item = (&str, i64)> {
    let all = amounts.iter().map(|(resource, amount)| (&**resource, *amount));
    all.filter(|(resource, _)| resource.starts_with(LARGE_PAGES))
}

/// What something takes of a node that has this: where large pages are not kept, ordinary memory stands in for them.
pub(crate) fn taken<'a>(amounts: &'a Amounts, node: &Amounts) -> Cow<'a, Amounts> {
    let has = |resource: &str| node.get(resource).is_some_and(|it| *it > 0);
    let mut taken = Cow::Borrowed(amounts);
    for (resource, amount) in large_pages(amounts).filter(|(resource, _)| !has(resource)) {
        let taken = taken.to_mut();
        taken.remove(resource);
        let memory = taken.entry("memory".into()).or_default();
        *memory = memory.saturating_add(amount);
    }
    taken
}

/// An instance that looks for a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Namespace.
    pub(crate) namespace: String,
    /// Labels, by which others want to be near to it or far from it.
    pub(crate) labels: Labels,
    /// What it takes.
    pub(crate) amounts: Amounts,
    /// Labels that the node must have.
    pub(crate) selector: Labels,
    /// What it wants to be near to, or far from.
    pub(crate) affinity: Affinity,
    /// What it bears.
    pub(crate) tolerations: Vec<Toleration>,
    /// How it spreads.
    pub(crate) spread: Vec<TopologySpreadConstraint>,
    /// Where its volumes are.
    pub(crate) volumes: Vec<NodeSelector>,
    /// Nodes that are out of the question.
    pub(crate) excluded: Vec<String>,
    /// What a guest runs on that is to go on elsewhere, and the model of its processor.
    pub(crate) goes_on: Option<(RunsOn, CpuModel)>,
}

#[derive(Deserialize)]
struct Wire {
    metadata: WireMeta,
    spec: WireSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireMeta {
    namespace: String,
    labels: Option<Labels>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpec {
    domain: Domain,
    architecture: String,
    node_selector: Option<Labels>,
    affinity: Option<Affinity>,
    tolerations: Option<Vec<Toleration>>,
    topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
}

impl Needs {
    /// What an instance says. `volumes`: where its disks are.
    pub(crate) fn of(vmi: &Value, volumes: Vec<NodeSelector>) -> Result<Self, serde_json::Error> {
        let Wire { metadata, spec } = Wire::deserialize(vmi)?;
        let mut selector = spec.node_selector.unwrap_or_default();
        let mut also = |key: &str, value: &str| {
            selector.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        };
        also(fairway_machines_plan::node::SCHEDULABLE_LABEL, "true");
        if !spec.architecture.is_empty() {
            also("kubernetes.io/arch", &spec.architecture);
        }
        Ok(Self {
            namespace: metadata.namespace,
            labels: metadata.labels.unwrap_or_default(),
            amounts: spec.domain.amounts(),
            selector,
            affinity: spec.affinity.unwrap_or_default(),
            tolerations: spec.tolerations.unwrap_or_default(),
            spread: spec.topology_spread_constraints.unwrap_or_default(),
            volumes,
            excluded: Vec::new(),
            goes_on: None,
        })
    }

    /// Everything that it says about neighbours.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        let near = self.affinity.pod_affinity.iter();
        let far = self.affinity.pod_anti_affinity.iter();
        let near = near.map(|it| {
            (
                &it.required_during_scheduling_ignored_during_execution,
                &it.preferred_during_scheduling_ignored_during_execution,
            )
        });
        let far = far.map(|it| {
            (
                &it.required_during_scheduling_ignored_during_execution,
                &it.preferred_during_scheduling_ignored_during_execution,
            )
        });
        near.chain(far).flat_map(|(must, may)| {
            let may = may.iter().flatten().map(|it| &it.pod_affinity_term);
            must.iter().flatten().chain(may)
        })
    }
}

/// An amount as nodes write it.
pub(crate) fn amount(resource: &str, quantity: Quantity) -> i64 {
    match resource {
        "cpu" => quantity.milli_value(),
        _ => quantity.value(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amounts(domain: Value) -> Vec<(String, i64)> {
        let domain: Domain = serde_json::from_value(domain).unwrap();
        let amounts = domain.amounts().into_iter();
        amounts.map(|(name, amount)| (name.into(), amount)).collect()
    }

    #[test]
    fn what_instances_take() {
        const MI: i64 = 1 << 20;
        let two = |cpu: i64, memory: i64| vec![("cpu".to_owned(), cpu), ("memory".to_owned(), memory)];
        for (domain, expected) in [
            (
                json!({"memory": {"guest": "1Gi"}}),
                two(100, 1024 * MI + 104 * MI + 2 * MI),
            ),
            (
                json!({"cpu": {"sockets": 2, "cores": 2}, "memory": {"guest": "1Gi"}, "resources": {"requests": {"memory": "512Mi"}}}),
                two(400, 512 * MI + 96 * MI + 32 * MI + 2 * MI),
            ),
            (
                json!({"cpu": {"cores": 4}, "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}, "overcommitGuestOverhead": true}}),
                two(1500, 1024 * MI),
            ),
            (
                json!({"resources": {"limits": {"cpu": 2}, "requests": {"memory": "1Gi"}, "overcommitGuestOverhead": true}}),
                two(2000, 1024 * MI),
            ),
        ] {
            assert_eq!(amounts(domain.clone()), expected, "{domain}");
        }
        let special = amounts(json!({
            "memory": {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}},
            "devices": {"gpus": [{"name": "a", "deviceName": "x/gpu"}, {"name": "b", "deviceName": "x/gpu"}]},
        }));
        let expected = [
            ("cpu", 100),
            ("hugepages-2Mi", 1024 * MI),
            ("memory", 106 * MI),
            ("x/gpu", 2),
        ];
        assert_eq!(special, expected.map(|(name, amount)| (name.to_owned(), amount)));
        for (isolate, count) in [(false, 4), (true, 5)] {
            let alone = amounts(json!({
                "cpu": {"cores": 4, "dedicatedCpuPlacement": true, "isolateEmulatorThread": isolate},
                "resources": {"requests": {"memory": "1Gi"}, "overcommitGuestOverhead": true},
            }));
            let expected = [
                ("cpu", 1000 * count),
                (DEDICATED_CPUS, count),
                ("memory", 1024 * MI),
            ];
            assert_eq!(alone, expected.map(|(name, amount)| (name.to_owned(), amount)));
        }
    }

    #[test]
    fn ordinary_memory_stands_in_for_large_pages() {
        let asked: Amounts = [("hugepages-2Mi".into(), 8), ("memory".into(), 1)].into();
        let has: Amounts = [("hugepages-2Mi".into(), 4)].into();
        assert_eq!(*taken(&asked, &has), asked);
        assert_eq!(*taken(&asked, &Amounts::new()), [("memory".into(), 9)].into());
    }

    #[test]
    fn every_instance_wants_a_node_for_machines() {
        let vmi = json!({
            "metadata": {"namespace": "vms", "labels": {"app": "web"}},
            "spec": {"architecture": "amd64", "nodeSelector": {"disk": "ssd"}, "domain": {}},
        });
        let needs = Needs::of(&vmi, Vec::new()).unwrap();
        let expected = [
            ("disk", "ssd"),
            ("kubernetes.io/arch", "amd64"),
            ("kubevirt.io/schedulable", "true"),
        ];
        let expected: Labels = expected
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(needs.selector, expected);
        assert_eq!(
            (needs.namespace.as_str(), needs.labels["app"].as_str()),
            ("vms", "web")
        );
    }
}
