//! The index: every key with the versions of it that have not been compacted, without values.
//!
//! It is what makes a record log a store: the log is in order of time, the index in order of keys. It is kept in memory
//! whole, as etcd keeps its own; a hundred thousand keys take some 20 MB. Older versions are held only as long as
//! history reaches back, and compaction costs time in proportion to what changed, not to what is stored.

mod tally;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Bound;

use bytes::Bytes;

use self::tally::Tally;
use crate::api::{KeyRange, KeyValue, LeaseId, Revision};
use crate::engine::{RecordHeader, RecordId};

/// One version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) id: RecordId,
    pub(crate) create_revision: Revision,
    /// 0: deleted.
    pub(crate) version: u64,
    pub(crate) lease: Option<LeaseId>,
}

impl Version {
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
            lease: self.lease,
        }
    }
}

/// The versions of a key in order of time. The newest stands alone because most keys have no other.
#[derive(Debug)]
struct History {
    older: Vec<Version>,
    newest: Version,
}

impl History {
    fn at(&self, revision: Revision) -> Option<&Version> {
        if self.newest.id.revision() <= revision {
            return Some(&self.newest);
        }
        self.older[..self
            .older
            .partition_point(|version| version.id.revision() <= revision)]
            .last()
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
    keys: BTreeMap<Bytes, History>,
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
        let newest = Version {
            id: record.id,
            create_revision: record.create_revision,
            version: record.version,
            lease: record.lease,
        };
        self.revision = self.revision.max(record.id.revision());
        if let Some((key, history)) = get_with_key(&mut self.keys, record.key) {
            self.superseding.push_back((record.id, key));
            let before = std::mem::replace(&mut history.newest, newest);
            history.older.push(before);
            match (before.is_deleted(), newest.is_deleted()) {
                (true, false) => self.count_in(record.key),
                (false, true) => self.tally.remove(record.key),
                _ => {}
            }
            return;
        }
        // A copy of its own: the caller's key may be a slice of a large buffer.
        let key = Bytes::copy_from_slice(record.key);
        if newest.is_deleted() {
            self.superseding.push_back((record.id, key.clone()));
        } else {
            self.births.push_back((record.id, key.clone()));
        }
        self.keys.insert(
            key,
            History {
                older: Vec::new(),
                newest,
            },
        );
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
            .map(|(key, _)| key.clone());
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
            history.older[..history.older.partition_point(|version| version.id < id)].last()
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
            selection.found.push((key.clone(), *version));
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
        for history in changed.into_iter().filter_map(|key| self.keys.get(key)) {
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
    pub(crate) fn leased(&self) -> impl Iterator<Item = (&Bytes, LeaseId)> {
        self.keys
            .iter()
            .filter_map(|(key, history)| history.newest.lease.map(|lease| (key, lease)))
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
            dropped.extend(
                std::mem::take(&mut history.older)
                    .into_iter()
                    .map(|version| version.id),
            );
            if history.newest.is_deleted() && history.newest.id.revision() < self.compacted {
                dropped.push(history.newest.id);
                self.keys.remove(key);
            }
            return;
        }
        // The last version that is not newer than the compacted revision is what a read there finds; it stays, unless
        // it says that there is nothing.
        let Some(last) = history.older.partition_point(reachable).checked_sub(1) else {
            return;
        };
        let gone = history.older[last].is_deleted() && history.older[last].id.revision() < self.compacted;
        dropped.extend(
            history
                .older
                .drain(..last + usize::from(gone))
                .map(|version| version.id),
        );
        if history.older.is_empty() {
            history.older.shrink_to_fit();
        }
    }
}

/// Gives back the room that a burst of changes has left behind.
fn tighten<T>(log: &mut VecDeque<T>) {
    if log.capacity() > ROOMY && log.capacity() / 4 > log.len() {
        log.shrink_to(2 * log.len());
    }
}

/// The entry of a key, and a handle on the key as the map holds it.
fn get_with_key<'a>(keys: &'a mut BTreeMap<Bytes, History>, key: &[u8]) -> Option<(Bytes, &'a mut History)> {
    keys.range_mut::<[u8], _>((Bound::Included(key), Bound::Included(key)))
        .next()
        .map(|(key, history)| (key.clone(), history))
}

/// The entries of a map that lie in a range; none, if it ends before it begins.
pub(crate) fn range<'a, V>(
    map: &'a BTreeMap<Bytes, V>,
    keys: &KeyRange,
) -> impl Iterator<Item = (&'a Bytes, &'a V)> {
    let (start, end) = (&keys.start[..], &keys.end[..]);
    // `BTreeMap::range` panics on inverted bounds.
    let bounds = match end {
        [] => (Bound::Included(start), Bound::Unbounded),
        end if end <= start => (Bound::Included(start), Bound::Excluded(start)),
        end => (Bound::Included(start), Bound::Excluded(end)),
    };
    map.range::<[u8], _>(bounds)
}
