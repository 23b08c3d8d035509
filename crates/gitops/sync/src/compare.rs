//! An application's objects in pairs, and whether the application is in sync.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::annotation::{self, COMPARE_OPTIONS, SYNC_OPTIONS};
use crate::diff::Difference;
use crate::hook::{self, Role};
use crate::key::{self, ResourceKey};
use crate::tracking::Tracking;

/// A declared object and the live one of the same name; at least one is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// What it is.
    pub key: ResourceKey,
    /// What is declared; none: extra.
    pub target: Option<Value>,
    /// What is there; none: missing.
    pub live: Option<Value>,
}

/// What was declared, sorted out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    /// What is compared and pruned.
    pub managed: Vec<Pair>,
    /// What runs in phases.
    pub hooks: Vec<Value>,
    /// Objects that were declared more than once; the last one counts.
    pub repeated: Vec<ResourceKey>,
}

/// Pairs declared objects with live ones. Where a declared object does not say its namespace, `namespace` is its own if its
/// kind has one, which `is_namespaced` tells (none: not known, so left as it is).
pub fn pair(
    targets: Vec<Value>,
    live: &BTreeMap<ResourceKey, Value>,
    namespace: &str,
    is_namespaced: &dyn Fn(&str, &str) -> Option<bool>,
) -> Pairs {
    let mut pairs = Pairs::default();
    let mut declared: BTreeMap<ResourceKey, Value> = BTreeMap::new();
    for mut target in targets {
        place(&mut target, namespace, is_namespaced);
        if hook::is_hook(&target) {
            pairs.hooks.push(target);
            continue;
        }
        let key = ResourceKey::of(&target);
        if declared.insert(key.clone(), target).is_some() {
            pairs.repeated.push(key);
        }
    }
    let mut rest = live.clone();
    for (key, target) in declared {
        let live = rest.remove(&key);
        pairs.managed.push(Pair {
            key,
            target: Some(target),
            live,
        });
    }
    let extra = rest.into_iter().map(|(key, live)| Pair {
        key,
        target: None,
        live: Some(live),
    });
    pairs.managed.extend(extra);
    pairs
}

fn place(target: &mut Value, namespace: &str, is_namespaced: &dyn Fn(&str, &str) -> Option<bool>) {
    let scope = is_namespaced(key::group(target), key::kind(target));
    let own = key::namespace(target).to_owned();
    let Some(metadata) = annotation::map_at(target, "metadata") else {
        return;
    };
    match scope {
        Some(true) if own.is_empty() => {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        // What lives in the cluster has no namespace, whatever its author wrote.
        Some(false) => {
            metadata.shift_remove("namespace");
        }
        _ => {}
    }
}

/// Whether something is as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum SyncStatus {
    /// It is.
    Synced,
    /// It is not.
    OutOfSync,
    /// It could not be found out.
    #[default]
    Unknown,
}

/// What is said of one object in `status.resources`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceState {
    /// None for hooks, skipped objects and copies, which do not count.
    pub status: Option<SyncStatus>,
    /// Whether it is a hook.
    pub hook: bool,
    /// Whether only pruning would bring it in sync.
    pub requires_pruning: bool,
    /// Whether its deletion must be confirmed.
    pub requires_deletion_confirmation: bool,
    /// The wave of the declared object.
    pub wave: i64,
    /// Whether it makes the application OutOfSync.
    pub counts: bool,
}

/// What the application says for all its objects.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy<'a> {
    /// The application's own sync options.
    pub options: &'a [String],
    /// The namespace that the application creates (`CreateNamespace`); empty if none.
    pub managed_namespace: &'a str,
}

/// Judges one pair. `permitted` is whether the project allows its kind.
pub fn judge(
    pair: &Pair,
    difference: &Difference,
    tracking: &Tracking,
    policy: Policy<'_>,
    permitted: bool,
) -> ResourceState {
    let (target, live) = (pair.target.as_ref(), pair.live.as_ref());
    let own = live.is_none_or(|live| tracking.is_self_referenced(live, target));
    let is_hook = live.or(target).is_some_and(hook::is_hook);
    let skipped = target.is_some_and(|target| hook::role(target) == Role::Skipped);
    // A namespace that the application creates beside its manifests is nothing that a manifest lacks.
    let created = target.is_some_and(|target| {
        key::is(target, "", "Namespace") && key::name(target) == policy.managed_namespace
    });
    let is_managed_namespace = created && live.is_none();
    let extra = target.is_none() && live.is_some();
    let differs = difference.is_modified() || target.is_none() || live.is_none();
    let status = match () {
        () if is_hook || skipped || !own => None,
        () if !permitted => Some(SyncStatus::Unknown),
        () if differs && !is_managed_namespace => Some(SyncStatus::OutOfSync),
        () => Some(SyncStatus::Synced),
    };
    let ignore_extra =
        live.is_some_and(|live| annotation::has_option(live, COMPARE_OPTIONS, "IgnoreExtraneous"));
    let confirm = |object: &Value| {
        let own = |option: &str| annotation::has_option(object, SYNC_OPTIONS, option);
        let all = |option: &str| policy.options.iter().any(|known| known == option);
        ["Delete=confirm", "Prune=confirm"]
            .iter()
            .any(|option| own(option) || all(option))
    };
    ResourceState {
        status,
        hook: is_hook,
        requires_pruning: extra && own && !is_hook,
        requires_deletion_confirmation: target.is_some_and(confirm) || live.is_some_and(confirm),
        wave: target.map_or(0, hook::wave),
        counts: status == Some(SyncStatus::OutOfSync) && !(extra && ignore_extra),
    }
}

/// The application's status from those of its objects. `unknown` is whether manifests or live objects could not be had.
pub fn overall<'a>(states: impl IntoIterator<Item = &'a ResourceState>, unknown: bool) -> SyncStatus {
    match (unknown, states.into_iter().any(|state| state.counts)) {
        (true, _) => SyncStatus::Unknown,
        (false, true) => SyncStatus::OutOfSync,
        (false, false) => SyncStatus::Synced,
    }
}

#[cfg(test)]
mod tests;
