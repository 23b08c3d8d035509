//! Which of several nodes is the best.
//!
//! Each wish is worth up to 100, times the weight that Kubernetes' scheduler gives it. In whole numbers, so that the
//! result is the same everywhere.

use k8s_openapi::api::core::v1::{PreferredSchedulingTerm, Taint, WeightedPodAffinityTerm};

use super::labels::picks_node;
use super::needs::{Needs, taken};
use super::neighbours::{domains, spread_counts};
use super::node::Node;
use super::place::{World, is_tolerated};

/// The most that a wish is worth, before its weight.
const MOST: i64 = 100;
const TAINTS: i64 = 3;
const WISHES: i64 = 2;
const ROOM: i64 = 1;

/// The best node: that of the highest score, and of several the first by name.
pub(crate) fn best<'n>(needs: &Needs, nodes: &[&'n Node], world: &World<'_>) -> Option<&'n Node> {
    let mut scores: Vec<i64> = nodes.iter().map(|node| ROOM * room(needs, node, world)).collect();
    let mut add = |weight: i64, raw: &[i64], less_is_better: bool| {
        for (score, value) in scores.iter_mut().zip(normal(raw, less_is_better)) {
            *score += weight * value;
        }
    };
    add(TAINTS, &each(nodes, |node| taints(needs, node)), true);
    add(WISHES, &each(nodes, |node| node_wishes(needs, node)), false);
    add(WISHES, &near_and_far(needs, nodes, world), false);
    for constraint in needs
        .spread
        .iter()
        .filter(|it| it.when_unsatisfiable == "ScheduleAnyway")
    {
        let counts = spread_counts(constraint, needs, world);
        let count = |node: &Node| {
            let value = node.labels.get(&constraint.topology_key);
            // A node outside of the topology is as bad as the fullest.
            let fullest = counts.values().copied().max().unwrap_or(0) + 1;
            value.and_then(|it| counts.get(it)).copied().unwrap_or(fullest)
        };
        add(WISHES, &each(nodes, count), true);
    }
    let ranked = nodes.iter().zip(&scores);
    let best = ranked.max_by(|(a, left), (b, right)| left.cmp(right).then_with(|| b.name.cmp(&a.name)));
    best.map(|(node, _)| *node)
}

fn each(nodes: &[&Node], value: impl Fn(&Node) -> i64) -> Vec<i64> {
    nodes.iter().map(|node| value(node)).collect()
}

/// Brings values to 0 to [`MOST`]; all alike are worth nothing.
fn normal(raw: &[i64], less_is_better: bool) -> Vec<i64> {
    let (least, most) = (
        raw.iter().copied().min().unwrap_or(0),
        raw.iter().copied().max().unwrap_or(0),
    );
    let range = most - least;
    let scaled = |value: i64| match (range, less_is_better) {
        (0, _) => 0,
        (range, true) => (most - value) * MOST / range,
        (range, false) => (value - least) * MOST / range,
    };
    raw.iter().map(|value| scaled(*value)).collect()
}

/// How much of a node is free afterwards.
fn room(needs: &Needs, node: &Node, world: &World<'_>) -> i64 {
    let taken = taken(&needs.amounts, &node.allocatable);
    let shares = ["cpu", "memory"].map(|resource| {
        let has = node.allocatable.get(resource).copied().unwrap_or(0);
        let taken = taken.get(resource).copied().unwrap_or(0);
        let left = (world.free(node, resource) - taken).max(0);
        match has {
            0 => 0,
            has => i64::try_from(i128::from(left) * i128::from(MOST) / i128::from(has)).unwrap_or(0),
        }
    });
    shares.iter().sum::<i64>() / 2
}

fn taints(needs: &Needs, node: &Node) -> i64 {
    let unwelcome = |it: &&Taint| it.effect == "PreferNoSchedule" && !is_tolerated(&needs.tolerations, it);
    i64::try_from(node.taints.iter().filter(unwelcome).count()).unwrap_or(i64::MAX)
}

fn node_wishes(needs: &Needs, node: &Node) -> i64 {
    let affinity = needs.affinity.node_affinity.as_ref();
    let wishes = affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
    let granted = |it: &&PreferredSchedulingTerm| picks_node(&it.preference, &node.name, &node.labels);
    let wishes = wishes.into_iter().flatten().filter(granted);
    wishes.map(|it| i64::from(it.weight)).sum()
}

fn near_and_far(needs: &Needs, nodes: &[&Node], world: &World<'_>) -> Vec<i64> {
    let mut scores = vec![0; nodes.len()];
    let mut add = |terms: Option<&Vec<WeightedPodAffinityTerm>>, sign: i64| {
        for wish in terms.into_iter().flatten() {
            let term = &wish.pod_affinity_term;
            let found = domains(term, needs, world);
            for (score, node) in scores.iter_mut().zip(nodes) {
                let there = node.labels.get(&term.topology_key).and_then(|it| found.get(it));
                *score += sign * i64::from(wish.weight) * there.copied().unwrap_or(0);
            }
        }
    };
    let near = needs.affinity.pod_affinity.as_ref();
    add(
        near.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref()),
        1,
    );
    let far = needs.affinity.pod_anti_affinity.as_ref();
    add(
        far.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref()),
        -1,
    );
    scores
}
