//! Which node an instance runs on: a pure choice.
//!
//! As Kubernetes' scheduler, nodes that will not do are left out, each with its reason, and of the others the best is taken.
//! Nothing is left to chance: the same world gives the same node.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_machines_plan::compatibility::misfit;
use k8s_openapi::api::core::v1::{Taint, Toleration};

use super::labels::{Labels, picks_node};
use super::needs::{Amounts, Needs, large_pages, taken};
use super::neighbours::{Neighbour, Neighbourhood, wants};
use super::node::{Node, UNSCHEDULABLE};
use super::score;

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World<'w> {
    /// Nodes, by name.
    pub(crate) nodes: &'w [Arc<Node>],
    /// What is taken of each, by instances of all workspaces.
    pub(crate) used: &'w BTreeMap<String, Amounts>,
    /// Instances of the same workspace that have a node.
    pub(crate) neighbours: &'w [Neighbour],
    /// Labels of namespaces, as far as somebody asks for them.
    pub(crate) namespaces: &'w BTreeMap<String, Labels>,
}

impl World<'_> {
    /// A label of a node.
    pub(crate) fn label(&self, node: &str, key: &str) -> Option<&str> {
        let node = self.nodes.iter().find(|it| it.name == node)?;
        node.labels.get(key).map(String::as_str)
    }

    /// What is left of something on a node.
    pub(crate) fn free(&self, node: &Node, resource: &str) -> i64 {
        let has = node.allocatable.get(resource).copied().unwrap_or(0);
        let used = self.used.get(&node.name).and_then(|it| it.get(resource));
        has - used.copied().unwrap_or(0)
    }
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// This one.
    Node(String),
    /// None, and why not.
    None(String),
}

/// Chooses a node.
pub(crate) fn place(needs: &Needs, world: &World<'_>) -> Placement {
    if world.nodes.is_empty() {
        return Placement::None("no nodes available to schedule pods".to_owned());
    }
    let neighbourhood = Neighbourhood::of(needs, world);
    // Large pages are waited for where they will be; where no node has them, ordinary memory stands in.
    let none = Amounts::new();
    let waits = large_pages(&needs.amounts).all(|(resource, amount)| {
        world.nodes.iter().any(|node| {
            let has = node.allocatable.get(resource).copied().unwrap_or(0);
            has >= amount && refusals(needs, &none, node, world, &neighbourhood).is_empty()
        })
    });
    let mut able = Vec::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for node in world.nodes {
        let amounts = match waits {
            true => Cow::Borrowed(&needs.amounts),
            false => taken(&needs.amounts, &node.allocatable),
        };
        let found = refusals(needs, &amounts, node, world, &neighbourhood);
        if found.is_empty() {
            able.push(node.as_ref());
        }
        for reason in found {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    match score::best(needs, &able, world) {
        Some(node) => Placement::Node(node.name.clone()),
        None => Placement::None(told(&reasons, world.nodes.len())),
    }
}

/// What stands in the way, in the words of Kubernetes' scheduler.
fn told(reasons: &BTreeMap<String, usize>, nodes: usize) -> String {
    let mut told: Vec<String> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    told.sort();
    format!("0/{nodes} nodes are available: {}.", told.join(", "))
}

/// Why a node will not do: the reasons of the first rule that it breaks.
fn refusals(
    needs: &Needs,
    amounts: &Amounts,
    node: &Node,
    world: &World<'_>,
    neighbourhood: &Neighbourhood<'_>,
) -> Vec<String> {
    let one = |reason: &str| vec![reason.to_owned()];
    let cordon = Taint {
        key: UNSCHEDULABLE.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    if node.cordoned && !is_tolerated(&needs.tolerations, &cordon) {
        return one("node(s) were unschedulable");
    }
    let repels = |it: &&Taint| {
        matches!(it.effect.as_str(), "NoSchedule" | "NoExecute") && !is_tolerated(&needs.tolerations, it)
    };
    if let Some(taint) = node.taints.iter().find(repels) {
        let value = taint.value.as_deref().unwrap_or_default();
        return vec![format!(
            "node(s) had untolerated taint {{{}: {value}}}",
            taint.key
        )];
    }
    if !wants(needs, node) {
        return one("node(s) didn't match Pod's node affinity/selector");
    }
    if needs.excluded.contains(&node.name) {
        return one("node(s) didn't match pod anti-affinity rules");
    }
    // What a node has that has not looked yet it finds out as the target, which may be too late, but not wrong.
    if let (Some((guest, model)), Some(there)) = (&needs.goes_on, node.runs_on())
        && let Some(why) = misfit(guest, model, &there)
    {
        return vec![format!("node(s) {why}")];
    }
    let short = amounts
        .iter()
        .filter(|(resource, amount)| **amount > 0 && world.free(node, resource) < **amount)
        .map(|(resource, _)| format!("Insufficient {resource}"));
    let short: Vec<String> = short.collect();
    if !short.is_empty() {
        return short;
    }
    let reachable = needs.volumes.iter().all(|volume| {
        let terms = &volume.node_selector_terms;
        terms
            .iter()
            .any(|term| picks_node(term, &node.name, &node.labels))
    });
    if !reachable {
        return one("node(s) didn't match PersistentVolume's node affinity");
    }
    neighbourhood.refusal(node).map(one).unwrap_or_default()
}

/// Whether somebody bears a taint.
pub(crate) fn is_tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|it| {
        let said = |text: &Option<String>| text.clone().unwrap_or_default();
        let (effect, key) = (said(&it.effect), said(&it.key));
        let exists = it.operator.as_deref() == Some("Exists");
        let same_effect = effect.is_empty() || effect == taint.effect;
        let same_key = (key.is_empty() && exists) || key == taint.key;
        same_effect && same_key && (exists || said(&it.value) == said(&taint.value))
    })
}

#[cfg(test)]
mod tests;
