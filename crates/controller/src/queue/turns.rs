//! Keys that wait, each once. Workspaces take turns; within one, keys come in the order in which they were added.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use super::WorkKey;
use crate::key::WorkspaceId;

/// A map that is empty and has held more than this gives its memory back: after a burst over ten thousand workspaces
/// every controller would keep room for ten thousand keys.
const ROOMY: usize = 64;

/// The keys that wait.
#[derive(Debug)]
pub(super) struct Turns<K> {
    /// Of each workspace that has keys.
    keys: HashMap<WorkspaceId, VecDeque<K>>,
    /// The same workspaces, the next one first.
    order: VecDeque<WorkspaceId>,
    /// All keys.
    waiting: HashSet<K>,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            order: VecDeque::new(),
            waiting: HashSet::new(),
        }
    }
}

impl<K: WorkKey> Turns<K> {
    /// Adds a key, unless it waits already.
    pub(super) fn add(&mut self, key: K) {
        if !self.waiting.insert(key.clone()) {
            return;
        }
        if let Some(keys) = self.keys.get_mut(key.workspace()) {
            keys.push_back(key);
            return;
        }
        let workspace = key.workspace().clone();
        self.order.push_back(workspace.clone());
        self.keys.insert(workspace, VecDeque::from([key]));
    }

    /// Takes the next key, and puts its workspace at the end.
    pub(super) fn next(&mut self) -> Option<K> {
        let workspace = self.order.pop_front()?;
        let keys = self.keys.get_mut(&workspace)?;
        let key = keys.pop_front()?;
        if keys.is_empty() {
            self.keys.remove(&workspace);
        } else {
            self.order.push_back(workspace);
        }
        self.waiting.remove(&key);
        if self.waiting.is_empty() && self.waiting.capacity() > ROOMY {
            *self = Self::default();
        }
        Some(key)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Gives the memory of an empty map back.
pub(super) fn trim<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.is_empty() && map.capacity() > ROOMY {
        *map = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use crate::key::{ObjectKey, WorkspaceId};

    fn key(text: &str) -> ObjectKey {
        let (workspace, name) = text.split_once('|').unwrap();
        ObjectKey::new(&WorkspaceId::parse(workspace).unwrap(), "", name)
    }

    #[test]
    fn workspaces_take_turns() {
        let cases: [(&str, &[&str], &[&str]); 5] = [
            (
                "one workspace is first in, first out",
                &["a|1", "a|2", "a|3"],
                &["a|1", "a|2", "a|3"],
            ),
            ("a key waits once", &["a|1", "a|1"], &["a|1"]),
            (
                "two alternate",
                &["a|1", "a|2", "a|3", "b|1", "b|2"],
                &["a|1", "b|1", "a|2", "b|2", "a|3"],
            ),
            (
                "who comes first has the first turn",
                &["c|1", "a|1", "b|1", "c|2"],
                &["c|1", "a|1", "b|1", "c|2"],
            ),
            (
                "the same name in two workspaces is two keys",
                &["a|1", "b|1"],
                &["a|1", "b|1"],
            ),
        ];
        for (name, added, want) in cases {
            let mut turns = Turns::default();
            added.iter().for_each(|text| turns.add(key(text)));
            assert_eq!(turns.len(), want.len(), "{name}");
            let order: Vec<String> = std::iter::from_fn(|| turns.next())
                .map(|key| key.to_string())
                .collect();
            assert_eq!(order, want, "{name}");
            assert!(
                turns.keys.is_empty() && turns.order.is_empty() && turns.waiting.is_empty(),
                "{name}"
            );
        }
    }

    /// Against the rule itself, by chance: no workspace is served twice while another waits all along, nothing is lost,
    /// nothing comes twice, and the order within a workspace is that of its additions.
    #[test]
    fn nobody_is_passed_over() {
        let mut seed = 7_u64;
        let mut chance = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut turns = Turns::default();
        // The model: keys in the order of their additions, and who was served since when.
        let mut waiting: Vec<ObjectKey> = Vec::new();
        let mut served_since: Vec<(WorkspaceId, Vec<WorkspaceId>)> = Vec::new();
        for step in 0..20_000 {
            if chance(5) < 3 {
                // A few loud workspaces, many quiet ones.
                let workspace = if chance(2) == 0 { chance(2) } else { 2 + chance(20) };
                let added = key(&format!("w{workspace}|{}", chance(8)));
                turns.add(added.clone());
                if !waiting.contains(&added) {
                    if waiting.iter().all(|other| other.workspace != added.workspace) {
                        served_since.push((added.workspace.clone(), Vec::new()));
                    }
                    waiting.push(added);
                }
            } else {
                let next = turns.next();
                assert_eq!(next.is_none(), waiting.is_empty(), "step {step}");
                let Some(next) = next else { continue };
                let first = waiting.iter().position(|other| other.workspace == next.workspace);
                assert_eq!(
                    first.map(|at| waiting.remove(at)),
                    Some(next.clone()),
                    "step {step}"
                );
                served_since.retain(|(workspace, _)| *workspace != next.workspace);
                for (workspace, served) in &mut served_since {
                    assert!(
                        !served.contains(&next.workspace),
                        "step {step}: {workspace} was passed over"
                    );
                    served.push(next.workspace.clone());
                }
                if waiting.iter().any(|other| other.workspace == next.workspace) {
                    served_since.push((next.workspace.clone(), Vec::new()));
                }
            }
            assert_eq!(turns.len(), waiting.len(), "step {step}");
        }
    }
}
