//! What is known of a node.

use fairway_kernel_scalar::quantity::Quantity;
use fairway_machines_plan::argv::Accelerator;
use fairway_machines_plan::compatibility::RunsOn;
use fairway_machines_plan::node::{ACCELERATOR_LABEL, PROCESSOR_LABEL};
use k8s_openapi::api::core::v1::{Node as Object, Taint};

use super::labels::Labels;
use super::needs::{Amounts, amount};

/// A node whose condition `Ready` is false.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// A node that has not been heard of.
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// A node on which nothing new is placed.
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A node, as far as placement is concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    /// Name.
    pub(crate) name: String,
    /// Labels.
    pub(crate) labels: Labels,
    /// What keeps machines away.
    pub(crate) taints: Vec<Taint>,
    /// Nothing new is placed on it.
    pub(crate) cordoned: bool,
    /// What there is for machines.
    pub(crate) allocatable: Amounts,
}

impl Node {
    /// What guests run on here; nothing as long as no machine has needed to know.
    pub(crate) fn runs_on(&self) -> Option<RunsOn> {
        let label = |key: &str| self.labels.get(key).map(String::as_str);
        let accelerator = match label(ACCELERATOR_LABEL)? {
            "kvm" => Accelerator::Kvm,
            _ => Accelerator::Tcg,
        };
        Some(RunsOn::new(accelerator, label(PROCESSOR_LABEL)))
    }
}

impl From<Object> for Node {
    fn from(node: Object) -> Self {
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let mut taints = spec.taints.unwrap_or_default();
        let ready = status
            .conditions
            .iter()
            .flatten()
            .find(|it| it.type_ == "Ready")
            .map(|it| it.status.as_str());
        // Who marks nodes may not have come to it yet.
        let sign = match ready {
            Some("True") => None,
            Some("Unknown") => Some(UNREACHABLE),
            _ => Some(NOT_READY),
        };
        if let Some(key) = sign.filter(|key| !taints.iter().any(|it| it.key == *key)) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Taint::default()
            });
        }
        let allocatable = status.allocatable.into_iter().flatten();
        let allocatable = allocatable.filter_map(|(name, text)| {
            let quantity = Quantity::parse(&text.0)?;
            let amount = amount(&name, quantity);
            Some((name.into_boxed_str(), amount))
        });
        Self {
            name: node.metadata.name.unwrap_or_default(),
            labels: node.metadata.labels.unwrap_or_default(),
            taints,
            cordoned: spec.unschedulable == Some(true),
            allocatable: allocatable.collect(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn node(object: Value) -> Node {
        serde_json::from_value::<Object>(object).unwrap().into()
    }

    #[test]
    fn what_is_read_of_a_node() {
        let seen = node(json!({
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {"unschedulable": true, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "2500m", "memory": "4Gi", "x/gpu": "1"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }));
        assert_eq!(seen.allocatable[&Box::from("cpu")], 2500);
        assert_eq!(seen.allocatable[&Box::from("memory")], 4 << 30);
        assert!(seen.cordoned);
        assert_eq!(seen.taints.len(), 1);
        for (status, taint) in [
            (json!({}), Some(NOT_READY)),
            (
                json!({"conditions": [{"type": "Ready", "status": "False"}]}),
                Some(NOT_READY),
            ),
            (
                json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}),
                Some(UNREACHABLE),
            ),
            (json!({"conditions": [{"type": "Ready", "status": "True"}]}), None),
        ] {
            let seen = node(json!({"metadata": {"name": "n1"}, "status": status}));
            assert_eq!(seen.taints.first().map(|it| it.key.as_str()), taint, "{status}");
        }
    }
}
