//! The queue between watches and a controller.
//!
//! A key waits at most once, is worked on at most once at a time, and what is added meanwhile is done again afterwards.
//! Workspaces take turns ([`turns::Turns`]): whoever has ten thousand keys waiting delays a neighbour's one key by one.
//! The rules are in [`State`], which knows no clock; [`Queue`] adds waiting to it.

mod turns;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use self::turns::Turns;
use crate::key::{ObjectKey, WorkspaceId};

/// What names a piece of work.
pub trait WorkKey: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// On whose behalf it is done. Workspaces take turns.
    fn workspace(&self) -> &WorkspaceId;
}

impl WorkKey for ObjectKey {
    fn workspace(&self) -> &WorkspaceId {
        &self.workspace
    }
}

/// A name, for controllers that work within one workspace.
impl WorkKey for String {
    fn workspace(&self) -> &WorkspaceId {
        WorkspaceId::root_ref()
    }
}

/// The queue without its clock.
#[derive(Debug)]
struct State<K> {
    ready: Turns<K>,
    /// Handed out and not yet given back; `true`: was added again meanwhile.
    working: HashMap<K, bool>,
    delayed: BTreeMap<(Instant, u64), K>,
    due: HashMap<K, (Instant, u64)>,
    failures: HashMap<K, u32>,
    serial: u64,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            ready: Turns::default(),
            working: HashMap::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
            serial: 0,
        }
    }
}

impl<K: WorkKey> State<K> {
    fn add(&mut self, key: K) {
        if let Some(again) = self.working.get_mut(&key) {
            *again = true;
        } else {
            self.ready.add(key);
        }
    }

    /// Adds the key at that time, unless it comes earlier anyway.
    fn add_at(&mut self, key: K, at: Instant) {
        if let Some(known) = self.due.get(&key) {
            if known.0 <= at {
                return;
            }
            self.delayed.remove(known);
        }
        self.serial += 1;
        let slot = (at, self.serial);
        self.due.insert(key.clone(), slot);
        self.delayed.insert(slot, key);
    }

    fn next(&mut self, now: Instant) -> Option<K> {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key);
        }
        if self.delayed.is_empty() {
            turns::trim(&mut self.due);
        }
        let key = self.ready.next()?;
        self.working.insert(key.clone(), false);
        Some(key)
    }

    fn next_due(&self) -> Option<Instant> {
        self.delayed.keys().next().map(|(at, _)| *at)
    }

    fn done(&mut self, key: &K) {
        if self.working.remove(key) == Some(true) {
            self.add(key.clone());
        }
        turns::trim(&mut self.working);
    }

    fn forget(&mut self, key: &K) {
        self.failures.remove(key);
        turns::trim(&mut self.failures);
    }

    fn fail(&mut self, key: &K) -> u32 {
        let count = self.failures.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// A queue of keys; clones share it.
#[derive(Debug)]
pub struct Queue<K>(Arc<Shared<K>>);

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: WorkKey> Default for Queue<K> {
    fn default() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }
}

impl<K: WorkKey> Queue<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        // No method panics half-way through a change, so the state is sound even then.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key, to be worked on as soon as possible.
    pub fn add(&self, key: K) {
        self.state().add(key);
        self.0.changed.notify_one();
    }

    /// Adds a key after some time. An earlier time that is already set stays.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.state().add_at(key, Instant::now() + delay);
        self.0.changed.notify_one();
    }

    /// The next key. There is one dispatcher for a queue; what it takes it must give back with [`Queue::done`].
    pub async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.state();
                if let Some(key) = state.next(Instant::now()) {
                    return key;
                }
                state.next_due()
            };
            let changed = self.0.changed.notified();
            match due {
                None => changed.await,
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Gives a key back.
    pub fn done(&self, key: &K) {
        self.state().done(key);
        self.0.changed.notify_one();
    }

    /// Counts a failure of the key, and says how many there were in a row.
    pub fn fail(&self, key: &K) -> u32 {
        self.state().fail(key)
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.state().forget(key);
    }

    /// How many keys wait, those for a later time included.
    pub fn depth(&self) -> usize {
        let state = self.state();
        state.ready.len() + state.delayed.len()
    }
}

#[cfg(test)]
mod tests;
