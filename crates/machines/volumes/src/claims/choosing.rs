//! On which node a disk is made for which nobody chose one.
//!
//! A volume of this class is where it was made, so the node comes before the disk. What decides, in this order: a copy is made where its
//! original is; a disk where the other disks of its machine are; the `nodeSelector` of its machine; the control plane's own node, if machines
//! run there. Else machines take turns over the nodes that are left, and disks without a machine go to the first by name, so that those
//! which become one machine's meet. Affinities are the scheduler's, which comes after.

use std::collections::BTreeSet;

use fairway_controller::{Failure, Requests};
use serde_json::{Value, json};

use super::{ASK_AGAIN, Came, Claims, Look, Step};
use crate::decide::source::Source;
use crate::decide::status::{Filling, Told};
use crate::names;
use crate::view::{Claim, DataVolume};

const NODES: &str = "/api/v1/nodes";
/// On nodes that run machines.
const SCHEDULABLE: &str = "kubevirt.io/schedulable";
/// So many disks of a machine are looked at.
const DISKS: usize = 64;

/// Where a disk is made.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Here,
    There(String),
    Nowhere,
    /// What it is copied from is on a node where its machine must not run.
    TooFar(String),
}

/// What is known of a disk that needs a node.
#[derive(Debug, Default, Clone, Copy)]
struct Wanted<'a> {
    /// The labels that its machine wants.
    selector: Option<&'a serde_json::Map<String, Value>>,
    /// Where its original is.
    original: Option<&'a str>,
    /// Where other disks of its machine are.
    beside: Option<&'a str>,
    /// By what machines take turns; empty is no machine's.
    turn: &'a str,
}

impl Wanted<'_> {
    /// Whether nothing leads to another node than this one.
    fn is_near(&self, own: &str) -> bool {
        let is_own = |node: Option<&str>| node.is_none_or(|node| node == own);
        let selector = self.selector.is_none_or(serde_json::Map::is_empty);
        selector && is_own(self.original) && is_own(self.beside) && !own.is_empty()
    }
}

fn choose(nodes: &[Value], wanted: Wanted<'_>, own: &str) -> Choice {
    let name = |node: &Value| node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let is_allowed = |node: &Value| {
        let labels = &node["metadata"]["labels"];
        let mut wanted = wanted.selector.into_iter().flatten();
        wanted.all(|(key, value)| labels[key] == *value)
    };
    let at = |chosen: &str| match chosen == own {
        true => Choice::Here,
        false => Choice::There(chosen.to_owned()),
    };
    if let Some(original) = wanted.original {
        // One that takes no new machines can still copy its disks.
        let found = nodes.iter().find(|node| name(node) == original);
        return match found.is_some_and(is_allowed) {
            true => at(original),
            false => Choice::TooFar(original.to_owned()),
        };
    }
    let is_ready = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array();
        let mut ready = conditions
            .into_iter()
            .flatten()
            .filter(|it| it["type"] == "Ready");
        node["metadata"]["labels"][SCHEDULABLE] == "true"
            && node["spec"]["unschedulable"] != true
            // One that is not heard of would not fill it.
            && ready.all(|it| it["status"] == "True")
    };
    let fitting = nodes.iter().filter(|node| is_ready(node) && is_allowed(node));
    let mut fitting: Vec<String> = fitting.map(name).collect();
    fitting.sort();
    let preferred = [wanted.beside, Some(own)].into_iter().flatten();
    for node in preferred {
        if fitting.iter().any(|it| it == node) {
            return at(node);
        }
    }
    let turn = wanted.turn.bytes().fold(0_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    match fitting.len() {
        0 => Choice::Nowhere,
        count => at(&fitting[turn % count]),
    }
}

impl Claims {
    /// Chooses a node for a DataVolume that has none; nothing if it is this one.
    pub(super) async fn choose(
        &self,
        look: &Look<'_>,
        volume: &DataVolume,
        source: &Source,
    ) -> Result<Option<Step>, Failure> {
        let owner = volume.metadata.controller();
        let machine = match owner.filter(|owner| owner.kind == "VirtualMachine") {
            Some(owner) => {
                let path = format!(
                    "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines/{}",
                    look.key.namespace, owner.name
                );
                look.requests.get(&path).await?.unwrap_or_default()
            }
            None => Value::Null,
        };
        let original = self.origins.node_of(look.key, source, &look.permit()).await?;
        let beside = match &machine {
            Value::Null => None,
            machine => self.beside(look, machine).await?,
        };
        let wanted = Wanted {
            selector: machine["spec"]["template"]["spec"]["nodeSelector"].as_object(),
            original: original.as_deref(),
            beside: beside.as_deref(),
            turn: machine["metadata"]["uid"].as_str().unwrap_or_default(),
        };
        let path = look.data_volume_path();
        self.decide(look, wanted, (&path, &volume.metadata.uid)).await
    }

    /// The same for a claim without a DataVolume.
    pub(super) async fn choose_for_claim(
        &self,
        look: &Look<'_>,
        claim: &Claim,
        source: &Source,
    ) -> Result<Option<Step>, Failure> {
        let class = match &claim.spec.storage_class_name {
            Some(name) => name.clone(),
            None => self.default_class(&look.requests).await?,
        };
        let class = match class.as_str() {
            "" => None,
            class => self.class(&look.requests, class).await?,
        };
        if class.is_none_or(|class| class.provisioner != crate::PROVISIONER) {
            return Ok(None);
        }
        let original = self.origins.node_of(look.key, source, &look.permit()).await?;
        let wanted = Wanted {
            original: original.as_deref(),
            ..Wanted::default()
        };
        let path = look.claim_path();
        self.decide(look, wanted, (&path, &claim.metadata.uid)).await
    }

    async fn decide(
        &self,
        look: &Look<'_>,
        wanted: Wanted<'_>,
        (path, uid): (&str, &str),
    ) -> Result<Option<Step>, Failure> {
        if wanted.is_near(&self.node) {
            return Ok(None);
        }
        let nodes = Requests::new(self.clients.root()).list(NODES).await?;
        let why = match choose(&nodes, wanted, &self.node) {
            Choice::Here => return Ok(None),
            Choice::There(node) => {
                let patch = json!({"metadata": {"uid": uid, "annotations": {names::SELECTED_NODE: node}}});
                look.requests.merge(path, &patch).await?;
                return Ok(Some(Step::NotOurs));
            }
            Choice::Nowhere if wanted.selector.is_none_or(serde_json::Map::is_empty) => {
                "no node runs machines; let one join with `fairway node join`".to_owned()
            }
            Choice::Nowhere => format!(
                "no node that runs machines has the labels {} of the machine's nodeSelector",
                json!(wanted.selector)
            ),
            Choice::TooFar(node) => format!(
                "what it is copied from is on the node {node}, which is gone or excluded by the machine's nodeSelector; \
                 disks are copied on one node only"
            ),
        };
        let told = Told {
            reason: "WaitingForNode",
            message: why,
        };
        Ok(Some(Step::Came(
            Came::new(Filling::NoClaim(Some(told))).after(ASK_AGAIN),
        )))
    }

    /// The node on which another disk of a machine is, or shall be.
    async fn beside(&self, look: &Look<'_>, machine: &Value) -> Result<Option<String>, Failure> {
        let volumes = machine["spec"]["template"]["spec"]["volumes"].as_array();
        let named = volumes.into_iter().flatten().filter_map(|volume| {
            let name = &volume["dataVolume"]["name"];
            let name = name
                .as_str()
                .or(volume["persistentVolumeClaim"]["claimName"].as_str());
            name.filter(|name| *name != look.key.name && !name.contains('/'))
        });
        let others: BTreeSet<&str> = named.take(DISKS).collect();
        for name in others {
            let namespace = &look.key.namespace;
            for path in [
                format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"),
                format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datavolumes/{name}"),
            ] {
                let found = look.requests.get(&path).await?.unwrap_or_default();
                if let Some(node) = found["metadata"]["annotations"][names::SELECTED_NODE].as_str() {
                    return Ok(Some(node.to_owned()));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_made_where_its_machine_may_run() {
        let node = |name: &str, zone: &str, open: bool| {
            json!({
                "metadata": {"name": name, "labels": {"zone": zone, SCHEDULABLE: "true"}},
                "spec": {"unschedulable": !open},
            })
        };
        let nodes = [
            node("c", "b", true),
            node("b", "b", true),
            node("a", "b", false),
            node("own", "a", true),
            json!({
                "metadata": {"name": "0", "labels": {"zone": "b", SCHEDULABLE: "true"}}, "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            }),
        ];
        let there = |name: &str| Choice::There(name.to_owned());
        for (selector, own, original, beside, turn, expected, why) in [
            (json!({}), "own", None, None, "", Choice::Here, "nothing is said"),
            (
                json!({"zone": "a"}),
                "own",
                None,
                None,
                "",
                Choice::Here,
                "it may run here",
            ),
            (
                json!({"zone": "b"}),
                "own",
                None,
                None,
                "",
                there("b"),
                "the first that is open",
            ),
            (
                json!({"zone": "c"}),
                "own",
                None,
                None,
                "",
                Choice::Nowhere,
                "no node fits",
            ),
            (
                json!({}),
                "",
                None,
                None,
                "",
                there("b"),
                "no machines run here: the first by name",
            ),
            (
                json!({}),
                "",
                None,
                None,
                "\u{1}",
                there("c"),
                "machines take turns",
            ),
            (
                json!({}),
                "own",
                Some("c"),
                None,
                "",
                there("c"),
                "a copy is where its original is",
            ),
            (json!({}), "own", Some("own"), None, "", Choice::Here, "also here"),
            (
                json!({}),
                "own",
                Some("a"),
                None,
                "",
                there("a"),
                "also where no new machine starts",
            ),
            (
                json!({"zone": "a"}),
                "own",
                Some("c"),
                None,
                "",
                Choice::TooFar("c".to_owned()),
                "its machine could never have it",
            ),
            (
                json!({}),
                "own",
                Some("gone"),
                None,
                "",
                Choice::TooFar("gone".to_owned()),
                "its original is out of reach",
            ),
            (
                json!({}),
                "own",
                None,
                Some("c"),
                "",
                there("c"),
                "where the machine's other disk is",
            ),
            (
                json!({"zone": "a"}),
                "own",
                None,
                Some("c"),
                "",
                Choice::Here,
                "unless it must not run there",
            ),
        ] {
            let wanted = Wanted {
                selector: selector.as_object(),
                original,
                beside,
                turn,
            };
            assert_eq!(choose(&nodes, wanted, own), expected, "{why}");
        }
        assert_eq!(choose(&[], Wanted::default(), ""), Choice::Nowhere);
    }
}
