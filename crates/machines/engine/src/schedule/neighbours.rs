//! Instances that have a node, as far as others want to be near to them or far from them.
//!
//! Only instances of the same workspace are neighbours: what tenants run must not be found out by trying.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodAffinityTerm, TopologySpreadConstraint};

use super::labels::{Labels, picks, picks_node};
use super::needs::Needs;
use super::node::Node;
use super::place::World;

/// An instance that has a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbour {
    /// Namespace.
    pub(crate) namespace: String,
    /// Labels.
    pub(crate) labels: Labels,
    /// Where it is.
    pub(crate) node: String,
    /// It is about to end.
    pub(crate) leaving: bool,
    /// What it must not be near to.
    pub(crate) avoids: Vec<PodAffinityTerm>,
}

/// Whether a term of an instance is about another.
pub(crate) fn is_about(
    term: &PodAffinityTerm,
    own: (&str, &Labels),
    other: (&str, &Labels),
    namespaces: &BTreeMap<String, Labels>,
) -> bool {
    let listed = term.namespaces.as_deref().unwrap_or_default();
    let within = match (&term.namespace_selector, listed) {
        (None, []) => other.0 == own.0,
        (selector, listed) => {
            let none = Labels::new();
            let labels = namespaces.get(other.0).unwrap_or(&none);
            listed.iter().any(|it| it == other.0) || picks(selector.as_ref(), labels)
        }
    };
    let same = |key: &String| own.1.get(key).is_none_or(|value| other.1.get(key) == Some(value));
    let differs = |key: &String| own.1.get(key).is_none_or(|value| other.1.get(key) != Some(value));
    within
        && picks(term.label_selector.as_ref(), other.1)
        && term.match_label_keys.iter().flatten().all(same)
        && term.mismatch_label_keys.iter().flatten().all(differs)
}

/// Values that the label of a topology has where there is somebody whom a term is about, and how many there are.
pub(crate) fn domains(term: &PodAffinityTerm, needs: &Needs, world: &World<'_>) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for neighbour in world.neighbours {
        let Some(value) = world.label(&neighbour.node, &term.topology_key) else {
            continue;
        };
        let own = (needs.namespace.as_str(), &needs.labels);
        let other = (neighbour.namespace.as_str(), &neighbour.labels);
        if is_about(term, own, other, world.namespaces) {
            *found.entry(value.to_owned()).or_default() += 1;
        }
    }
    found
}

/// What an instance's neighbours make of nodes, worked out once for all of them.
pub(crate) struct Neighbourhood<'w> {
    near: Vec<(&'w str, BTreeMap<String, i64>)>,
    far: Vec<(&'w str, BTreeMap<String, i64>)>,
    /// Labels of topologies that must not have these values, as neighbours have it.
    kept_out: BTreeSet<(String, String)>,
    spread: Vec<Spread<'w>>,
    /// It is the first of its like, and wants to be near to those.
    first: bool,
}

struct Spread<'w> {
    constraint: &'w TopologySpreadConstraint,
    counts: BTreeMap<String, i64>,
    least: i64,
    itself: i64,
}

impl<'w> Neighbourhood<'w> {
    pub(crate) fn of(needs: &'w Needs, world: &World<'_>) -> Self {
        let required = |terms: Option<&'w Vec<PodAffinityTerm>>| -> Vec<(&'w str, BTreeMap<String, i64>)> {
            let terms = terms.into_iter().flatten();
            terms
                .map(|term| (term.topology_key.as_str(), domains(term, needs, world)))
                .collect()
        };
        let affinity = needs.affinity.pod_affinity.as_ref();
        let near = affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
        let away = needs.affinity.pod_anti_affinity.as_ref();
        let far = away.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
        let own = (needs.namespace.as_str(), &needs.labels);
        let likes_itself = |term: &PodAffinityTerm| is_about(term, own, own, world.namespaces);
        let found = required(near);
        let first = found.iter().all(|(_, domains)| domains.is_empty())
            && near.into_iter().flatten().all(likes_itself);
        let mut kept_out = BTreeSet::new();
        for neighbour in world.neighbours {
            let theirs = (neighbour.namespace.as_str(), &neighbour.labels);
            for term in &neighbour.avoids {
                if let Some(value) = world.label(&neighbour.node, &term.topology_key)
                    && is_about(term, theirs, own, world.namespaces)
                {
                    kept_out.insert((term.topology_key.clone(), value.to_owned()));
                }
            }
        }
        let hard = needs
            .spread
            .iter()
            .filter(|it| it.when_unsatisfiable != "ScheduleAnyway");
        Self {
            near: found,
            far: required(far),
            kept_out,
            spread: hard.map(|it| Spread::of(it, needs, world)).collect(),
            first,
        }
    }

    /// Why a node will not do.
    pub(crate) fn refusal(&self, node: &Node) -> Option<&'static str> {
        for spread in &self.spread {
            if let Some(reason) = spread.refusal(node) {
                return Some(reason);
            }
        }
        let label = |key: &str| node.labels.get(key);
        let near = |(key, domains): &(&str, BTreeMap<String, i64>)| {
            label(key).is_some_and(|value| self.first || domains.contains_key(value))
        };
        if !self.near.iter().all(near) {
            return Some("node(s) didn't match pod affinity rules");
        }
        let far = |(key, domains): &(&str, BTreeMap<String, i64>)| {
            label(key).is_none_or(|value| !domains.contains_key(value))
        };
        if !self.far.iter().all(far) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        let kept_out = |(key, value): &(String, String)| label(key) == Some(value);
        if self.kept_out.iter().any(kept_out) {
            return Some("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        None
    }
}

/// Whether an instance wants to be on a node at all, by the labels of that.
pub(crate) fn wants(needs: &Needs, node: &Node) -> bool {
    let selected = needs
        .selector
        .iter()
        .all(|(key, value)| node.labels.get(key) == Some(value));
    let affinity = needs.affinity.node_affinity.as_ref();
    let required = affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
    let named = required.is_none_or(|it| {
        let terms = &it.node_selector_terms;
        terms
            .iter()
            .any(|term| picks_node(term, &node.name, &node.labels))
    });
    selected && named
}

/// How many of those that a constraint is about are in each domain.
pub(crate) fn spread_counts(
    constraint: &TopologySpreadConstraint,
    needs: &Needs,
    world: &World<'_>,
) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    let ignores_affinity = constraint.node_affinity_policy.as_deref() == Some("Ignore");
    for node in world.nodes {
        if let Some(value) = node.labels.get(&constraint.topology_key)
            && (ignores_affinity || wants(needs, node))
        {
            counts.entry(value.clone()).or_default();
        }
    }
    for neighbour in world.neighbours {
        let alike = neighbour.namespace == needs.namespace && !neighbour.leaving;
        if let Some(value) = world.label(&neighbour.node, &constraint.topology_key)
            && alike
            && is_counted(constraint, &needs.labels, &neighbour.labels)
            && let Some(count) = counts.get_mut(value)
        {
            *count += 1;
        }
    }
    counts
}

fn is_counted(constraint: &TopologySpreadConstraint, own: &Labels, other: &Labels) -> bool {
    let same = |key: &String| own.get(key).is_none_or(|value| other.get(key) == Some(value));
    picks(constraint.label_selector.as_ref(), other) && constraint.match_label_keys.iter().flatten().all(same)
}

impl<'w> Spread<'w> {
    fn of(constraint: &'w TopologySpreadConstraint, needs: &Needs, world: &World<'_>) -> Self {
        let counts = spread_counts(constraint, needs, world);
        let domains = i64::try_from(counts.len()).unwrap_or(i64::MAX);
        let enough = domains >= i64::from(constraint.min_domains.unwrap_or(1));
        Self {
            constraint,
            least: match enough {
                true => counts.values().copied().min().unwrap_or(0),
                false => 0,
            },
            counts,
            itself: i64::from(is_counted(constraint, &needs.labels, &needs.labels)),
        }
    }

    fn refusal(&self, node: &Node) -> Option<&'static str> {
        let Some(value) = node.labels.get(&self.constraint.topology_key) else {
            return Some("node(s) didn't match pod topology spread constraints (missing required label)");
        };
        let count = self.counts.get(value).copied().unwrap_or(0);
        let skew = count + self.itself - self.least;
        (skew > i64::from(self.constraint.max_skew))
            .then_some("node(s) didn't match pod topology spread constraints")
    }
}
