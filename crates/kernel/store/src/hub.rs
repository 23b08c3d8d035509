//! Recent changes, held once for all watchers.
//!
//! There is one ring of commits, bounded in bytes. A watcher has no queue of its own: it remembers the first revision
//! that it has not read, and reads on from there. So a thousand watchers cost no more memory than one, and a slow one
//! costs nothing: when what it has not read falls off the end of the ring, it is told so and ends.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::api::{KeyRange, Revision, StoreError};
use crate::engine::{Commit, RecordId};

/// However large they are, this many commits stay, so that a reader that is awake is not called slow.
const MIN_COMMITS: usize = 16;

/// The most commits that a watcher takes out in one go.
const READ_COMMITS: usize = 64;

#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<State>,
    max_bytes: usize,
}

#[derive(Debug)]
struct State {
    ring: VecDeque<Arc<Commit>>,
    bytes: usize,
    /// Every commit from this revision on is in the ring.
    covers_from: Revision,
    /// The last revision that was published.
    head: Revision,
    watchers: HashMap<u64, Watcher>,
    next_watcher: u64,
    closed: Option<String>,
}

#[derive(Debug)]
struct Watcher {
    keys: KeyRange,
    /// Nothing before this is wanted.
    from: Revision,
    /// The first revision that concerns it and that it has not read.
    unread: Option<Revision>,
    wake: Arc<Notify>,
}

/// What a watcher finds when it looks.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Commits that concern it (not all events in them need to).
    Commits { commits: Vec<Arc<Commit>> },
    /// Nothing new.
    Nothing { head: Revision },
    /// It came too late.
    Lost,
    /// The store is closed.
    Closed(String),
}

impl Hub {
    pub(crate) fn new(head: Revision, max_bytes: usize) -> Self {
        let state = State {
            ring: VecDeque::new(),
            bytes: 0,
            covers_from: Revision(head.0 + 1),
            head,
            watchers: HashMap::new(),
            next_watcher: 0,
            closed: None,
        };
        Self {
            state: Mutex::new(state),
            max_bytes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows commits to everybody, in order.
    pub(crate) fn publish(&self, commits: &[Arc<Commit>]) {
        let mut state = self.state();
        for commit in commits {
            state.head = commit.revision;
            state.bytes += commit.cost();
            state.ring.push_back(Arc::clone(commit));
            for watcher in state.watchers.values_mut() {
                let concerned = watcher.unread.is_none()
                    && commit.revision >= watcher.from
                    && concerns(commit, &watcher.keys);
                if concerned {
                    watcher.unread = Some(commit.revision);
                    watcher.wake.notify_one();
                }
            }
        }
        while state.bytes > self.max_bytes && state.ring.len() > MIN_COMMITS {
            let Some(oldest) = state.ring.pop_front() else {
                break;
            };
            state.bytes -= oldest.cost();
            state.covers_from = Revision(oldest.revision.0 + 1);
        }
    }

    pub(crate) fn head(&self) -> Revision {
        self.state().head
    }

    /// A value that is still in the ring.
    pub(crate) fn value(&self, id: RecordId) -> Option<Bytes> {
        let state = self.state();
        let revision = id.revision();
        if revision < state.covers_from {
            return None;
        }
        let place = state.ring.partition_point(|commit| commit.revision < revision);
        let commit = state
            .ring
            .get(place)
            .filter(|commit| commit.revision == revision)?;
        commit
            .events
            .get(id.sequence())
            .map(|event| event.kv.value.clone())
    }

    /// Registers a watcher that wants everything from a revision on. `None`: the ring does not reach back that far,
    /// and the caller has to read what is missing from the engine first. Without a revision: from now on.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        keys: &KeyRange,
        from: Option<Revision>,
    ) -> Option<Subscription> {
        let mut state = self.state();
        let from = from.unwrap_or(Revision(state.head.0 + 1));
        if from < state.covers_from {
            return None;
        }
        let start = state.ring.partition_point(|commit| commit.revision < from);
        let unread = state
            .ring
            .range(start..)
            .find(|commit| concerns(commit, keys))
            .map(|commit| commit.revision);
        let wake = Arc::new(Notify::new());
        let id = state.next_watcher;
        state.next_watcher += 1;
        let watcher = Watcher {
            keys: keys.clone(),
            from,
            unread,
            wake: Arc::clone(&wake),
        };
        state.watchers.insert(id, watcher);
        Some(Subscription {
            hub: Arc::clone(self),
            id,
            wake,
        })
    }

    /// Ends all watches.
    pub(crate) fn close(&self, why: &str) {
        let mut state = self.state();
        if state.closed.is_none() {
            state.closed = Some(why.to_owned());
        }
        for watcher in state.watchers.values() {
            watcher.wake.notify_one();
        }
    }

    /// Whether it has been closed, as the error that callers get.
    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        match &self.state().closed {
            Some(why) => Err(StoreError::Closed(why.clone())),
            None => Ok(()),
        }
    }
}

fn concerns(commit: &Commit, keys: &KeyRange) -> bool {
    commit.events.iter().any(|event| keys.contains(&event.kv.key))
}

/// A watcher's place in the hub; it leaves when dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    id: u64,
    wake: Arc<Notify>,
}

impl Subscription {
    /// What has come since the last call.
    pub(crate) fn read(&self) -> Unread {
        let mut guard = self.hub.state();
        let state = &mut *guard;
        let Some(watcher) = state.watchers.get_mut(&self.id) else {
            return Unread::Lost;
        };
        let Some(unread) = watcher.unread else {
            return match &state.closed {
                Some(why) => Unread::Closed(why.clone()),
                None => Unread::Nothing { head: state.head },
            };
        };
        if unread < state.covers_from {
            return Unread::Lost;
        }
        let mut commits = Vec::new();
        watcher.unread = None;
        let start = state.ring.partition_point(|commit| commit.revision < unread);
        for commit in state.ring.range(start..) {
            if !concerns(commit, &watcher.keys) {
                continue;
            }
            if commits.len() == READ_COMMITS {
                watcher.unread = Some(commit.revision);
                break;
            }
            commits.push(Arc::clone(commit));
        }
        Unread::Commits { commits }
    }

    /// Waits until there may be something to read.
    pub(crate) async fn wait(&self) {
        self.wake.notified().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.state().watchers.remove(&self.id);
    }
}
