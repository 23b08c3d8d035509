//! In which order objects are synced: by phase, wave, kind, name; and what others need before those.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value;

use super::plan::Task;
use crate::hook::Phase;
use crate::key;

/// Kinds in the order in which they are applied; those that are not here come last.
pub const KINDS: &[&str] = &[
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

fn rank(kind: &str) -> usize {
    KINDS
        .iter()
        .position(|known| *known == kind)
        .unwrap_or(KINDS.len())
}

/// A deletion has phases of its own around the pruning of everything.
fn phase_rank(phase: Phase) -> u8 {
    match phase {
        Phase::PreSync | Phase::PreDelete => 0,
        Phase::Sync => 1,
        Phase::PostSync | Phase::PostDelete => 2,
        Phase::SyncFail => 3,
    }
}

fn compare(a: &Task, b: &Task) -> Ordering {
    let by = |task: &Task| (phase_rank(task.id.phase), task.wave, rank(&task.id.key.kind));
    by(a)
        .cmp(&by(b))
        .then_with(|| a.id.key.name.cmp(&b.id.key.name))
        // Argo CD leaves the rest to chance.
        .then_with(|| a.id.cmp(&b.id))
}

/// Puts tasks in order.
pub fn sort(tasks: &mut Vec<Task>) {
    tasks.sort_by(compare);
    lift(
        tasks,
        |object| key::is(object, "", "Namespace").then(|| key::name(object).to_owned()),
        |object| Some(key::namespace(object).to_owned()).filter(|namespace| !namespace.is_empty()),
    );
    let of_kind = |group: &str, kind: &str| format!("{group}/{kind}");
    lift(
        tasks,
        |object| key::defined_kind(object).map(|(group, kind)| of_kind(group, kind)),
        |object| Some(of_kind(key::group(object), key::kind(object))),
    );
}

/// Moves what others need (`provides`) before the first that needs it, into its wave and phase.
fn lift(
    tasks: &mut Vec<Task>,
    provides: impl Fn(&Value) -> Option<String>,
    needs: impl Fn(&Value) -> Option<String>,
) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for index in 0..tasks.len() {
        let Some(target) = &tasks[index].target else {
            continue;
        };
        if let Some(name) = provides(target) {
            let Some(&before) = first.get(&name) else {
                continue;
            };
            let (phase, wave) = (tasks[before].id.phase, tasks[before].wave);
            let mut task = tasks.remove(index);
            task.id.phase = phase;
            task.wave = wave;
            tasks.insert(before, task);
            first
                .values_mut()
                .filter(|place| **place >= before)
                .for_each(|place| *place += 1);
        } else if let Some(name) = needs(target) {
            first.entry(name).or_insert(index);
        }
    }
}

/// The waves of what is pruned, reversed among themselves: what came last goes first. What is pruned last goes after all
/// else of the phase.
pub(super) fn reverse_prune_waves(tasks: &mut [Task], is_last: impl Fn(&Task) -> bool) {
    let mut waves: Vec<i64> = tasks
        .iter()
        .filter(|task| task.is_prune())
        .map(|task| task.wave)
        .collect();
    waves.sort_unstable();
    waves.dedup();
    for task in tasks.iter_mut().filter(|task| task.is_prune()) {
        if let Ok(place) = waves.binary_search(&task.wave) {
            task.wave = waves[waves.len() - 1 - place];
        }
    }
    let in_sync = tasks.iter().filter(|task| task.id.phase == Phase::Sync);
    let after_all = in_sync.map(|task| task.wave).max().unwrap_or(0).max(0) + 1;
    for task in tasks.iter_mut().filter(|task| task.is_prune()) {
        if is_last(task) {
            task.wave = after_all;
        }
    }
}
