//! The index: every key with the versions of it that have not been compacted, without values.
//!
//! It is what makes a record log a store: the log is in order of time, the index in order of keys. It is kept in memory
//! whole, as etcd keeps its own; a hundred thousand keys take some 15 MB. Older versions are held only as long as
//! history reaches back, and compaction costs time in proportion to what changed, not to what is stored.

mod load;
mod tally;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::num::NonZeroI64;
use std::ops::Bound;

use bytes::Bytes;

pub(crate) use self::load::Loading;
use self::tally::Tally;
use crate::api::{KeyRange, KeyValue, LeaseId, Revision};
use crate::engine::{RecordHeader, RecordId};

/// The lease of a key, if it has one, in half the room of an `Option`. There is no lease 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached(Option<NonZeroI64>);

impl From<Option<LeaseId>> for Attached {
    fn from(lease: Option<LeaseId>) -> Self {
        Self(lease.and_then(|lease| NonZeroI64::new(lease.0)))
    }
}

impl Attached {
    fn get(self) -> Option<LeaseId> {
        self.0.map(|lease| LeaseId(lease.get()))
    }
}

/// One version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) id: RecordId,
    pub(crate) create_revision: Revision,
    /// 0: deleted.
    pub(crate) version: u64,
    pub(crate) lease: Attached,
}

impl Version {
    fn of(record: &RecordHeader<'_>) -> Self {
        Self {
            id: record.id,
            create_revision: record.create_revision,
            version: record.version,
            lease: record.lease.into(),
        }
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.version == 0
    }

    pub(crate) fn with(&self, key: Bytes, value: Bytes) -> KeyValue {
        KeyValue {
            key,
            value,
            create_revision: self.create_revision,
            mod_revision: self.id.revision(),
            version: self.version,
            lease: self.lease.get(),
        }
    }
}

/// A key as the index holds it: without room for anything but itself.
type Key = Box<[u8]>;

/// The versions of a key in order of time. The newest stands alone because most keys have no other.
#[derive(Debug)]
struct History {
    newest: Version,
    /// Boxed, since the room for a list would be empty with most keys.
    #[allow(clippy::box_collection, reason = "eight bytes instead of twenty-four")]
    older: Option<Box<Vec<Version>>>,
}

impl History {
    fn new(newest: Version) -> Self {
        Self { newest, older: None }
    }

    fn older(&self) -> &[Version] {
        self.older.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Takes up a newer version; returns the one before.
    fn push(&mut self, newest: Version) -> Version {
        let before = std::mem::replace(&mut self.newest, newest);
        self.older.get_or_insert_default().push(before);
        before
    }

    fn at(&self, revision: Revision) -> Option<&Version> {
        if self.newest.id.revision() <= revision {
            return Some(&self.newest);
        }
        let older = self.older();
        older[..older.partition_point(|version| version.id.revision() <= revision)].last()
    }
}

/// What a read found in the index; the values are still to be fetched.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) found: Vec<(Bytes, Version)>,
    /// Keys in the range in all.
    pub(crate) count: usize,
}

/// Room for so many changes is not worth giving back.
const ROOMY: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Index {
    keys: BTreeMap<Key, History>,
    /// The revision that this index shows.
    revision: Revision,
    /// The oldest revision that it can show.
    compacted: Revision,
    /// Changes that left something behind for compaction: an older version or a deletion, in order of time.
    superseding: VecDeque<(RecordId, Bytes)>,
    /// Keys that were new, since the oldest revision that can be shown: with `superseding`, all that has changed.
    births: VecDeque<(RecordId, Bytes)>,
    /// How many keys exist now.
    tally: Tally,
}

impl Index {
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Takes up a record that is newer than all before it.
    pub(crate) fn apply(&mut self, record: &RecordHeader<'_>) {
        let newest = Version::of(record);
        self.revision = self.revision.max(record.id.revision());
        // A copy of its own: the caller's key may be a slice of a large buffer.
        let key = Bytes::copy_from_slice(record.key);
        if let Some(history) = self.keys.get_mut(record.key) {
            self.superseding.push_back((record.id, key));
            let before = history.push(newest);
            match (before.is_deleted(), newest.is_deleted()) {
                (true, false) => self.count_in(record.key),
                (false, true) => self.tally.remove(record.key),
                _ => {}
            }
            return;
        }
        if newest.is_deleted() {
            self.superseding.push_back((record.id, key));
        } else {
            self.births.push_back((record.id, key));
        }
        self.keys.insert(record.key.into(), History::new(newest));
        if !newest.is_deleted() {
            self.count_in(record.key);
        }
    }

    /// Counts a key that has come to exist.
    fn count_in(&mut self, key: &[u8]) {
        let Some(overflow) = self.tally.add(key) else {
            return;
        };
        let section = KeyRange {
            start: overflow.start.clone(),
            end: overflow.end.clone(),
        };
        let middle = range(&self.keys, &section)
            .filter(|(_, history)| !history.newest.is_deleted())
            .nth(overflow.half)
            .map(|(key, _)| Bytes::copy_from_slice(key));
        if let Some(middle) = middle {
            self.tally.cut(&overflow, middle);
        }
    }

    /// The key as it is now, if it exists.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Version> {
        self.keys
            .get(key)
            .map(|history| history.newest)
            .filter(|version| !version.is_deleted())
    }

    /// The version of a key before the one with this id, unless it was a deletion or has been compacted.
    pub(crate) fn before(&self, key: &[u8], id: RecordId) -> Option<Version> {
        let history = self.keys.get(key)?;
        let before = if history.newest.id < id {
            Some(&history.newest)
        } else {
            let older = history.older();
            older[..older.partition_point(|version| version.id < id)].last()
        };
        before.copied().filter(|version| !version.is_deleted())
    }

    /// Keys of a range as of a revision, which must lie between `compacted` and `revision`.
    pub(crate) fn select(&self, keys: &KeyRange, revision: Revision, limit: usize) -> Selection {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let mut selection = Selection::default();
        for (key, history) in range(&self.keys, keys) {
            let Some(version) = history.at(revision).filter(|version| !version.is_deleted()) else {
                continue;
            };
            if selection.found.len() == limit {
                selection.count = self.count(keys, revision);
                return selection;
            }
            selection.found.push((Bytes::copy_from_slice(key), *version));
        }
        selection.count = selection.found.len();
        selection
    }

    /// How many keys of a range existed at a revision: those that exist now, and what has changed since.
    fn count(&self, keys: &KeyRange, revision: Revision) -> usize {
        let looked_at = |start: &[u8], end: &[u8]| {
            let part = KeyRange {
                start: Bytes::copy_from_slice(start),
                end: Bytes::copy_from_slice(end),
            };
            range(&self.keys, &part)
                .filter(|(_, history)| !history.newest.is_deleted())
                .count()
        };
        let now = self.tally.count(&keys.start, &keys.end, looked_at);
        let since = [&self.superseding, &self.births]
            .map(|log| (log, log.partition_point(|(id, _)| id.revision() <= revision)));
        let changes: usize = since.iter().map(|(log, first)| log.len() - first).sum();
        if changes > now {
            let existed = |history: &History| history.at(revision).is_some_and(|v| !v.is_deleted());
            return range(&self.keys, keys)
                .filter(|(_, history)| existed(history))
                .count();
        }
        let mut changed = HashSet::new();
        for (log, first) in since {
            changed.extend(
                log.range(first..)
                    .map(|(_, key)| key)
                    .filter(|key| keys.contains(key)),
            );
        }
        let (mut came, mut went) = (0, 0);
        for history in changed.into_iter().filter_map(|key| self.keys.get(&key[..])) {
            let before = history.at(revision).is_some_and(|version| !version.is_deleted());
            match (before, !history.newest.is_deleted()) {
                (false, true) => came += 1,
                (true, false) => went += 1,
                _ => {}
            }
        }
        now + went - came
    }

    /// Every key that exists, with its lease: for rebuilding what leases hold.
    pub(crate) fn leased(&self) -> impl Iterator<Item = (Bytes, LeaseId)> {
        self.keys.iter().filter_map(|(key, history)| {
            let lease = history.newest.lease.get()?;
            Some((Bytes::copy_from_slice(key), lease))
        })
    }

    /// From now on nothing before this revision can be asked for. The versions themselves go in `trim`.
    pub(crate) fn forget_before(&mut self, revision: Revision) {
        self.compacted = self.compacted.max(revision);
        let gone = self
            .births
            .partition_point(|(id, _)| id.revision() <= self.compacted);
        self.births.drain(..gone);
    }

    /// Drops versions that no read can reach any more, after looking at no more than `budget` changes; returns their
    /// ids, and whether all is done.
    pub(crate) fn trim(&mut self, budget: usize) -> (Vec<RecordId>, bool) {
        let mut dropped = Vec::new();
        for _ in 0..budget {
            match self.superseding.front() {
                Some((id, _)) if id.revision() < self.compacted => {
                    if let Some((_, key)) = self.superseding.pop_front() {
                        self.trim_key(&key, &mut dropped);
                    }
                }
                _ => {
                    // A watch may still begin at the compacted revision itself, so its deletions stay (and stay queued)
                    // until the next compaction.
                    let last = self.compacted;
                    let at_end: Vec<Bytes> = self
                        .superseding
                        .iter()
                        .take_while(|(id, _)| id.revision() <= last)
                        .map(|(_, key)| key.clone())
                        .collect();
                    for key in &at_end {
                        self.trim_key(key, &mut dropped);
                    }
                    tighten(&mut self.superseding);
                    tighten(&mut self.births);
                    return (dropped, true);
                }
            }
        }
        (dropped, false)
    }

    fn trim_key(&mut self, key: &[u8], dropped: &mut Vec<RecordId>) {
        let Some(history) = self.keys.get_mut(key) else {
            return;
        };
        let reachable = |version: &Version| version.id.revision() <= self.compacted;
        if reachable(&history.newest) {
            // Taken, not drained: the room for older versions would stay with every key that was ever changed.
            let older = history.older.take().map(|older| *older).unwrap_or_default();
            dropped.extend(older.into_iter().map(|version| version.id));
            if history.newest.is_deleted() && history.newest.id.revision() < self.compacted {
                dropped.push(history.newest.id);
                self.keys.remove(key);
            }
            return;
        }
        // The last version that is not newer than the compacted revision is what a read there finds; it stays, unless
        // it says that there is nothing.
        let Some(older) = history.older.as_deref_mut() else {
            return;
        };
        let Some(last) = older.partition_point(reachable).checked_sub(1) else {
            return;
        };
        let gone = older[last].is_deleted() && older[last].id.revision() < self.compacted;
        dropped.extend(older.drain(..last + usize::from(gone)).map(|version| version.id));
        if older.is_empty() {
            history.older = None;
        }
    }
}

/// Gives back the room that a burst of changes has left behind.
fn tighten<T>(log: &mut VecDeque<T>) {
    if log.capacity() > ROOMY && log.capacity() / 4 > log.len() {
        log.shrink_to(2 * log.len());
    }
}

/// The entries of a map that lie in a range; none, if it ends before it begins.
pub(crate) fn range<'a, K: Borrow<[u8]> + Ord, V>(
    map: &'a BTreeMap<K, V>,
    keys: &KeyRange,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    let (start, end) = (&keys.start[..], &keys.end[..]);
    // `BTreeMap::range` panics on inverted bounds.
    let bounds = match end {
        [] => (Bound::Included(start), Bound::Unbounded),
        end if end <= start => (Bound::Included(start), Bound::Excluded(start)),
        end => (Bound::Included(start), Bound::Excluded(end)),
    };
    map.range::<[u8], _>(bounds)
}
