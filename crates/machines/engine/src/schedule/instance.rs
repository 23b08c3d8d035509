//! What is kept of instances: what they take, and who must not be near to them.

use std::borrow::Cow;

use fairway_controller::glimpse::Kept;
use k8s_openapi::api::core::v1::{Affinity, NodeSelector, PodAffinityTerm};
use kube::api::ObjectMeta;
use serde::Deserialize;

use super::labels::{Labels, picks_node};
use super::needs::{Amounts, Domain};
use super::node::Node;
use crate::wake::glimpse::{WireMeta, WireVolume, claims};

/// What is kept of an instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Instance {
    /// Who it is.
    pub(crate) uid: Box<str>,
    /// Where it is; empty if it has no node.
    pub(crate) node: Box<str>,
    /// Where it moves to; empty if it does not.
    pub(crate) target: Box<str>,
    /// Where it is to move away from; empty if it may stay.
    pub(crate) evacuates: Box<str>,
    /// It has ended.
    pub(crate) ended: bool,
    /// It is about to end.
    pub(crate) leaving: bool,
    /// Labels.
    pub(crate) labels: Labels,
    /// What it takes.
    pub(crate) amounts: Amounts,
    /// What it must not be near to.
    pub(crate) avoids: Vec<PodAffinityTerm>,
    /// Its disks, by their claims.
    pub(crate) disks: Box<[Box<str>]>,
    /// What it asks of the labels of its node; nothing if it does not care, as most.
    pub(crate) wants: Option<Box<Wants>>,
}

/// What an instance asks of the labels of its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wants {
    selector: Labels,
    required: Option<NodeSelector>,
}

impl Wants {
    /// Whether a node has that.
    pub(crate) fn holds(&self, node: &Node) -> bool {
        let has = |(key, value): (&String, &String)| node.labels.get(key) == Some(value);
        let named = self.required.as_ref().is_none_or(|it| {
            let mut terms = it.node_selector_terms.iter();
            terms.any(|term| picks_node(term, &node.name, &node.labels))
        });
        self.selector.iter().all(has) && named
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wire<'a> {
    #[serde(borrow)]
    metadata: WireMeta<'a>,
    #[serde(borrow)]
    spec: WireSpec<'a>,
    #[serde(borrow)]
    status: WireStatus<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
#[serde(rename_all = "camelCase")]
struct WireSpec<'a> {
    domain: Domain,
    node_selector: Option<Labels>,
    affinity: Option<Affinity>,
    #[serde(borrow)]
    volumes: Option<Vec<WireVolume<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireStatus<'a> {
    #[serde(borrow)]
    node_name: Cow<'a, str>,
    #[serde(borrow)]
    phase: Cow<'a, str>,
    #[serde(borrow)]
    evacuation_node_name: Cow<'a, str>,
    #[serde(borrow)]
    migration_state: Option<WireMigration<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireMigration<'a> {
    #[serde(borrow)]
    target_node: Cow<'a, str>,
    #[serde(borrow)]
    end_timestamp: Option<Cow<'a, str>>,
}

impl Kept for Instance {
    type Wire<'a> = Wire<'a>;

    fn keep(wire: &Wire<'_>) -> (ObjectMeta, Self) {
        let (spec, status) = (&wire.spec, &wire.status);
        let away = spec
            .affinity
            .as_ref()
            .and_then(|it| it.pod_anti_affinity.as_ref());
        let avoids = away.and_then(|it| it.required_during_scheduling_ignored_during_execution.clone());
        let near = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
        let wants = Wants {
            selector: spec.node_selector.clone().unwrap_or_default(),
            required: near.and_then(|it| it.required_during_scheduling_ignored_during_execution.clone()),
        };
        let moving = status
            .migration_state
            .as_ref()
            .filter(|it| it.end_timestamp.is_none());
        let instance = Self {
            uid: Box::from(&*wire.metadata.uid),
            node: Box::from(&*status.node_name),
            target: moving.map(|it| Box::from(&*it.target_node)).unwrap_or_default(),
            evacuates: Box::from(&*status.evacuation_node_name),
            ended: matches!(&*status.phase, "Succeeded" | "Failed"),
            leaving: wire.metadata.deletion_timestamp.is_some(),
            labels: wire.metadata.labels.clone().unwrap_or_default(),
            amounts: spec.domain.amounts(),
            avoids: avoids.unwrap_or_default(),
            disks: claims(spec.volumes.iter().flatten()),
            wants: (wants != Wants::default()).then(|| Box::new(wants)),
        };
        (wire.metadata.meta(), instance)
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::glimpse::Glimpse;

    use super::*;

    #[test]
    fn what_is_kept_of_an_instance() {
        let text = r#"{
            "metadata": {"name": "web", "namespace": "vms", "uid": "u", "labels": {"app": "web"},
                "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "domain": {"cpu": {"cores": 2}, "memory": {"guest": "1Gi"},
                    "resources": {"requests": {"memory": "1Gi"}, "overcommitGuestOverhead": true}, "devices": {"disks": []}},
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
                "volumes": [{"name": "a", "dataVolume": {"name": "root"}}]
            },
            "status": {"phase": "Running", "nodeName": "n1", "migrationState": {"targetNode": "n2"}, "conditions": []}
        }"#;
        let kept = serde_json::from_str::<Glimpse<Instance>>(text).unwrap().kept;
        assert_eq!((&*kept.uid, &*kept.node, &*kept.target), ("u", "n1", "n2"));
        assert!(kept.leaving && !kept.ended);
        assert_eq!(kept.amounts["cpu"], 200);
        assert_eq!(kept.avoids[0].topology_key, "zone");
        assert_eq!(kept.disks, [Box::from("root")].into());
        let over = r#"{"metadata": {"name": "x"}, "spec": {"domain": {}},
            "status": {"phase": "Failed", "migrationState": {"targetNode": "n2", "endTimestamp": "t"}}}"#;
        let kept = serde_json::from_str::<Glimpse<Instance>>(over).unwrap().kept;
        assert!(kept.ended && kept.target.is_empty());
    }
}
