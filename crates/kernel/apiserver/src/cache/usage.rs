//! How much each workspace holds, so that one cannot grow at the others' expense.
//!
//! The root workspace is not counted: it is the platform's, and most installations have no other.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::key::{ROOT_CLUSTER, split_suffix};

/// What a workspace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects of all kinds.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What all workspaces hold.
#[derive(Default)]
pub(super) struct Usages(RwLock<HashMap<Box<str>, Usage>>);

impl Usages {
    /// Takes note of a change: the sizes of an object before and after, each if there was or is one.
    pub(super) fn note(&self, suffix: &str, before: Option<usize>, after: Option<usize>) {
        let (cluster, _, _) = split_suffix(suffix);
        if cluster == ROOT_CLUSTER {
            return;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let usage = match all.get_mut(cluster) {
            Some(usage) => usage,
            None => all.entry(cluster.into()).or_default(),
        };
        let change =
            |held: u64, lost: usize, gained: usize| (held + gained as u64).saturating_sub(lost as u64);
        let count = |size: Option<usize>| usize::from(size.is_some());
        usage.objects = change(usage.objects, count(before), count(after));
        usage.bytes = change(usage.bytes, before.unwrap_or(0), after.unwrap_or(0));
        if usage.objects == 0 {
            all.remove(cluster);
        }
    }

    /// What one holds.
    pub(super) fn of(&self, cluster: &str) -> Usage {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(cluster).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_is_counted() {
        let usages = Usages::default();
        for (suffix, before, after, objects, bytes) in [
            ("a/n/x", None, Some(10), 1, 10),
            ("a//y", None, Some(5), 2, 15),
            ("a/n/x", Some(10), Some(20), 2, 25),
            ("b/n/x", None, Some(7), 2, 25),
            ("root/n/x", None, Some(7), 2, 25),
            ("a/n/x", Some(20), None, 1, 5),
            ("a//y", Some(5), None, 0, 0),
        ] {
            usages.note(suffix, before, after);
            assert_eq!(usages.of("a"), Usage { objects, bytes }, "{suffix}");
        }
        assert_eq!(usages.of(ROOT_CLUSTER), Usage::default());
    }
}
