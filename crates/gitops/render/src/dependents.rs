//! Which of many results a commit touches.
//!
//! [`Inputs`] say of one result what it depends on. A GitOps engine has thousands of results and a commit of a few files;
//! asking every result about every file would cost more than the few renders that follow. [`Dependents`] turns the
//! inputs around: from a path to whoever asked about it.
//!
//! Its answer is exact as far as the tree is concerned: a result is touched when something that it asked of the old tree
//! has another answer in the new one. So a file that appears touches those who looked for it in vain or listed its
//! directory, and a file that was written again with the same content touches nobody.

use std::collections::btree_map::{BTreeMap, Entry as Slot};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Bound;

use fairway_gitops_tree::{Entry, Inputs, Tree, path};

/// Stands for a key: paths have many dependents, and keys may be long.
type Id = u32;

/// Results by what they depend on. `K` names a result; what it is, is the caller's affair.
#[derive(Debug, Clone)]
pub struct Dependents<K> {
    ids: HashMap<K, Id>,
    results: BTreeMap<Id, Result<K>>,
    next: Id,
    files: ByPath,
    missing: ByPath,
    present: ByPath,
    listed: ByPath,
}

#[derive(Debug, Clone)]
struct Result<K> {
    key: K,
    inputs: Inputs,
}

impl<K> Default for Dependents<K> {
    fn default() -> Self {
        Self {
            ids: HashMap::new(),
            results: BTreeMap::new(),
            next: 0,
            files: ByPath::default(),
            missing: ByPath::default(),
            present: ByPath::default(),
            listed: ByPath::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Dependents<K> {
    /// Notes what a result depends on, in place of what was noted before. Failed renders belong here, too: a commit may
    /// bring what they lack.
    pub fn insert(&mut self, key: K, inputs: Inputs) {
        if let Some(id) = self.ids.get(&key)
            && let Some(result) = self.results.get(id)
        {
            // As a rule a commit changes what is in the files, not which files are read.
            if result.inputs == inputs {
                return;
            }
            self.remove(&key);
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.files.add(id, &inputs.files);
        self.missing.add(id, &inputs.missing);
        self.present.add(id, &inputs.present);
        self.listed.add(id, inputs.directories.keys());
        self.ids.insert(key.clone(), id);
        self.results.insert(id, Result { key, inputs });
    }

    /// Forgets a result.
    pub fn remove(&mut self, key: &K) {
        let Some(id) = self.ids.remove(key) else {
            return;
        };
        let Some(Result { inputs, .. }) = self.results.remove(&id) else {
            return;
        };
        self.files.remove(id, &inputs.files);
        self.missing.remove(id, &inputs.missing);
        self.present.remove(id, &inputs.present);
        self.listed.remove(id, inputs.directories.keys());
    }

    /// How many results there are.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The results that must be made again when `old` becomes `new`, in the order in which they were noted. `changed` are
    /// the normalised paths of all files and links that differ; paths that do not differ do no harm.
    ///
    /// `old` is the tree that the results are right for. A result that was made of an older one is right for it, too,
    /// if this function was asked about every step in between.
    pub fn touched<'c>(&self, changed: impl IntoIterator<Item = &'c str>, old: &Tree, new: &Tree) -> Vec<&K> {
        let mut found = BTreeSet::new();
        for path in changed {
            self.touched_by(path, old, new, &mut found);
        }
        found
            .iter()
            .filter_map(|id| self.results.get(id).map(|result| &result.key))
            .collect()
    }

    fn touched_by(&self, changed: &str, old: &Tree, new: &Tree, found: &mut BTreeSet<Id>) {
        let (before, after) = (old.entry(changed), new.entry(changed));
        // What cannot be read may have changed.
        if before.is_ok() && before == after {
            return;
        }
        self.files.at(changed, found);
        match (before, after) {
            // Whoever wants to know what is behind a link has followed it.
            (Ok(Some(Entry::File(_))), Ok(Some(Entry::File(_))))
            | (Ok(Some(Entry::Link(_))), Ok(Some(Entry::Link(_)))) => {
                return;
            }
            _ => {}
        }
        self.missing.below(changed, found);
        // The change goes up as far as directories come and go with it.
        let mut entry = changed;
        loop {
            self.missing.at(entry, found);
            self.present.at(entry, found);
            self.listed.at(entry, found);
            if entry.is_empty() {
                return;
            }
            let directory = path::parent(entry);
            self.listed.at(directory, found);
            if old.entry(directory) == new.entry(directory) {
                return;
            }
            entry = directory;
        }
    }
}

/// Who asked about a path.
#[derive(Debug, Clone, Default)]
struct ByPath(BTreeMap<String, Vec<Id>>);

impl ByPath {
    fn add<'p>(&mut self, id: Id, paths: impl IntoIterator<Item = &'p String>) {
        for path in paths {
            match self.0.get_mut(path) {
                Some(ids) => ids.push(id),
                None => {
                    self.0.insert(path.clone(), vec![id]);
                }
            }
        }
    }

    fn remove<'p>(&mut self, id: Id, paths: impl IntoIterator<Item = &'p String>) {
        for path in paths {
            if let Slot::Occupied(mut slot) = self.0.entry(path.clone()) {
                slot.get_mut().retain(|other| *other != id);
                if slot.get().is_empty() {
                    slot.remove();
                }
            }
        }
    }

    fn at(&self, path: &str, found: &mut BTreeSet<Id>) {
        found.extend(self.0.get(path).into_iter().flatten());
    }

    /// Of paths within a path that is no directory on one side of the change.
    fn below(&self, path: &str, found: &mut BTreeSet<Id>) {
        let within = format!("{path}/");
        let from = (Bound::Included(within.as_str()), Bound::Unbounded);
        for (_, ids) in self
            .0
            .range::<str, _>(from)
            .take_while(|(at, _)| at.starts_with(&within))
        {
            found.extend(ids);
        }
    }
}

#[cfg(test)]
mod tests;
