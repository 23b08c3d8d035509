//! What a transaction does: pure evaluation against the index and what earlier transactions of the same batch have
//! drafted.
//!
//! A batch of transactions is evaluated one after the other into a [`Draft`]; nobody sees it before the engine has made
//! it durable. If the engine cannot, the draft is dropped and the index has never changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::{
    Compare, CompareTarget, Event, EventKind, KeyRange, KeyValue, LeaseId, Op, OpResponse, Range,
    RangeResponse, Revision, StoreError, Txn, TxnResponse,
};
use crate::engine::{Commit, MAX_CHANGES, RecordId};
use crate::index::{self, Index, Version};

/// Where values come from: memory or disk.
pub(crate) trait Values {
    /// The value of a record that the index names.
    fn value(&mut self, id: RecordId) -> Result<Bytes, StoreError>;
}

/// Whether a lease may be attached to.
pub(crate) trait LeaseCheck {
    fn exists(&self, lease: LeaseId) -> bool;
}

#[derive(Clone, Debug)]
struct Drafted {
    version: Version,
    value: Bytes,
}

/// The keys of a range; those of the index still without their values.
type Merged = BTreeMap<Bytes, (Version, Option<Bytes>)>;

/// Changes that are not durable yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) revision: Revision,
    pub(crate) commits: Vec<Arc<Commit>>,
    changed: BTreeMap<Bytes, Drafted>,
}

impl Draft {
    pub(crate) fn on(index: &Index) -> Self {
        Self {
            revision: index.revision(),
            commits: Vec::new(),
            changed: BTreeMap::new(),
        }
    }
}

/// Evaluates transactions into a draft.
pub(crate) struct Evaluator<'a> {
    pub(crate) index: &'a Index,
    pub(crate) leases: &'a dyn LeaseCheck,
    pub(crate) values: &'a mut dyn Values,
    pub(crate) draft: &'a mut Draft,
}

/// The changes of one transaction, and how to take them back if a later operation of it fails.
struct Changes {
    revision: Revision,
    events: Vec<Event>,
    undo: Vec<(Bytes, Option<Drafted>)>,
}

impl Evaluator<'_> {
    /// Carries out a transaction whose limits have been checked. If it fails, the draft is as it was.
    pub(crate) fn txn(&mut self, txn: Txn) -> Result<TxnResponse, StoreError> {
        let mut succeeded = true;
        for compare in &txn.compare {
            if !self.holds(compare)? {
                succeeded = false;
                break;
            }
        }
        let ops = if succeeded { txn.success } else { txn.failure };
        let responses = self.change(|this, changes| {
            ops.into_iter()
                .map(|op| this.op(op, changes))
                .collect::<Result<Vec<_>, StoreError>>()
        })?;
        Ok(TxnResponse {
            succeeded,
            revision: self.draft.revision,
            responses,
        })
    }

    /// Deletes keys, all in one revision: what becomes of the keys of a lease.
    pub(crate) fn delete(&mut self, keys: &[Bytes]) -> Result<(), StoreError> {
        self.change(|this, changes| {
            for key in keys {
                if let Some(prev) = this.get(key)? {
                    this.delete_key(prev, changes)?;
                }
            }
            Ok(())
        })
    }

    /// Runs `body` as one revision; if it changed nothing there is none, and if it fails it never was.
    fn change<T>(
        &mut self,
        body: impl FnOnce(&mut Self, &mut Changes) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut changes = Changes {
            revision: Revision(self.draft.revision.0 + 1),
            events: Vec::new(),
            undo: Vec::new(),
        };
        match body(self, &mut changes) {
            Ok(outcome) => {
                if !changes.events.is_empty() {
                    self.draft.revision = changes.revision;
                    self.draft.commits.push(Arc::new(Commit {
                        revision: changes.revision,
                        events: changes.events,
                    }));
                }
                Ok(outcome)
            }
            Err(error) => {
                for (key, before) in changes.undo.into_iter().rev() {
                    match before {
                        Some(drafted) => self.draft.changed.insert(key, drafted),
                        None => self.draft.changed.remove(&key),
                    };
                }
                Err(error)
            }
        }
    }

    fn holds(&mut self, compare: &Compare) -> Result<bool, StoreError> {
        let current = self.version(&compare.key);
        Ok(match &compare.target {
            CompareTarget::ModRevision(wanted) => current.map_or(Revision(0), |v| v.id.revision()) == *wanted,
            CompareTarget::CreateRevision(wanted) => {
                current.map_or(Revision(0), |v| v.create_revision) == *wanted
            }
            CompareTarget::Version(wanted) => current.map_or(0, |v| v.version) == *wanted,
            CompareTarget::Value(wanted) => self.get(&compare.key)?.is_some_and(|kv| kv.value == *wanted),
        })
    }

    fn op(&mut self, op: Op, changes: &mut Changes) -> Result<OpResponse, StoreError> {
        Ok(match op {
            Op::Put { key, value, lease } => OpResponse::Put(self.put(key, value, lease, changes)?),
            Op::Delete(keys) => {
                let doomed = self.now(&keys, 0)?.0;
                for prev in &doomed {
                    self.delete_key(prev.clone(), changes)?;
                }
                OpResponse::Delete(doomed)
            }
            Op::Get(range) => OpResponse::Get(self.range(&range, changes)?),
        })
    }

    fn put(
        &mut self,
        key: Bytes,
        value: Bytes,
        lease: Option<LeaseId>,
        changes: &mut Changes,
    ) -> Result<Option<KeyValue>, StoreError> {
        if let Some(lease) = lease.filter(|lease| !self.leases.exists(*lease)) {
            return Err(StoreError::LeaseNotFound(lease));
        }
        let prev = self.get(&key)?;
        let version = Version {
            id: RecordId::new(changes.revision, changes.events.len()),
            create_revision: prev
                .as_ref()
                .map_or(changes.revision, |prev| prev.create_revision),
            version: prev.as_ref().map_or(0, |prev| prev.version) + 1,
            lease: lease.into(),
        };
        self.record(EventKind::Put, key, value, version, prev.clone(), changes)?;
        Ok(prev)
    }

    fn delete_key(&mut self, prev: KeyValue, changes: &mut Changes) -> Result<(), StoreError> {
        let version = Version {
            id: RecordId::new(changes.revision, changes.events.len()),
            create_revision: Revision(0),
            version: 0,
            lease: None.into(),
        };
        self.record(
            EventKind::Delete,
            prev.key.clone(),
            Bytes::new(),
            version,
            Some(prev),
            changes,
        )
    }

    fn record(
        &mut self,
        kind: EventKind,
        key: Bytes,
        value: Bytes,
        version: Version,
        prev: Option<KeyValue>,
        changes: &mut Changes,
    ) -> Result<(), StoreError> {
        if changes.events.len() >= MAX_CHANGES {
            let (what, size) = (
                "the number of keys that a transaction changes",
                changes.events.len() + 1,
            );
            return Err(StoreError::TooLarge {
                what,
                size,
                limit: MAX_CHANGES,
            });
        }
        let before = self.draft.changed.insert(
            key.clone(),
            Drafted {
                version,
                value: value.clone(),
            },
        );
        changes.undo.push((key.clone(), before));
        changes.events.push(Event {
            kind,
            kv: version.with(key, value),
            prev,
        });
        Ok(())
    }

    /// The key as it is for the next operation, if it exists.
    fn version(&self, key: &[u8]) -> Option<Version> {
        match self.draft.changed.get(key) {
            Some(drafted) => Some(drafted.version).filter(|version| !version.is_deleted()),
            None => self.index.get(key),
        }
    }

    fn get(&mut self, key: &Bytes) -> Result<Option<KeyValue>, StoreError> {
        if let Some(Drafted { version, value }) = self.draft.changed.get(key) {
            return Ok((!version.is_deleted()).then(|| version.with(key.clone(), value.clone())));
        }
        let Some(version) = self.index.get(key) else {
            return Ok(None);
        };
        Ok(Some(version.with(key.clone(), self.values.value(version.id)?)))
    }

    /// The keys of a range as they are for the next operation, and how many there are whatever the limit.
    fn now(&mut self, keys: &KeyRange, limit: usize) -> Result<(Vec<KeyValue>, usize), StoreError> {
        if index::range(&self.draft.changed, keys).next().is_none() {
            let selection = self.index.select(keys, self.index.revision(), limit);
            return Ok((self.fetch(selection.found)?, selection.count));
        }
        let mut merged = self.indexed(keys);
        for (key, Drafted { version, value }) in index::range(&self.draft.changed, keys) {
            if version.is_deleted() {
                merged.remove(key);
            } else {
                merged.insert(key.clone(), (*version, Some(value.clone())));
            }
        }
        self.fill(merged, limit)
    }

    /// The keys of a range as of a revision, which an earlier transaction of this very batch may have drafted.
    fn at(
        &mut self,
        keys: &KeyRange,
        revision: Revision,
        limit: usize,
    ) -> Result<(Vec<KeyValue>, usize), StoreError> {
        if revision <= self.index.revision() {
            let selection = self.index.select(keys, revision, limit);
            return Ok((self.fetch(selection.found)?, selection.count));
        }
        let mut merged = self.indexed(keys);
        for commit in self
            .draft
            .commits
            .iter()
            .filter(|commit| commit.revision <= revision)
        {
            for (sequence, event) in commit.events.iter().enumerate() {
                let kv = &event.kv;
                if event.kind == EventKind::Delete {
                    merged.remove(&kv.key);
                } else if keys.contains(&kv.key) {
                    let version = Version {
                        id: RecordId::new(commit.revision, sequence),
                        create_revision: kv.create_revision,
                        version: kv.version,
                        lease: kv.lease.into(),
                    };
                    merged.insert(kv.key.clone(), (version, Some(kv.value.clone())));
                }
            }
        }
        self.fill(merged, limit)
    }

    /// The keys of a range as the index has them.
    fn indexed(&self, keys: &KeyRange) -> Merged {
        let found = self.index.select(keys, self.index.revision(), 0).found;
        found
            .into_iter()
            .map(|(key, version)| (key, (version, None)))
            .collect()
    }

    /// Fetches the values that are still missing, up to a limit.
    fn fill(&mut self, merged: Merged, limit: usize) -> Result<(Vec<KeyValue>, usize), StoreError> {
        let count = merged.len();
        let limit = if limit == 0 { count } else { limit };
        let mut kvs = Vec::with_capacity(count.min(limit));
        for (key, (version, value)) in merged.into_iter().take(limit) {
            let value = match value {
                Some(value) => value,
                None => self.values.value(version.id)?,
            };
            kvs.push(version.with(key, value));
        }
        Ok((kvs, count))
    }

    fn fetch(&mut self, found: Vec<(Bytes, Version)>) -> Result<Vec<KeyValue>, StoreError> {
        found
            .into_iter()
            .map(|(key, version)| Ok(version.with(key, self.values.value(version.id)?)))
            .collect()
    }

    fn range(&mut self, range: &Range, changes: &Changes) -> Result<RangeResponse, StoreError> {
        // Who only counts needs no values.
        let limit = if range.count_only { 1 } else { range.limit };
        let (mut kvs, count) = match range.revision {
            None => self.now(&range.keys, limit)?,
            Some(revision) => {
                check_revision(self.index, self.draft.revision, revision)?;
                self.at(&range.keys, revision, limit)?
            }
        };
        if range.count_only {
            kvs.clear();
        }
        if range.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
        }
        let more = !range.count_only && count > kvs.len();
        let revision = if changes.events.is_empty() {
            self.draft.revision
        } else {
            changes.revision
        };
        Ok(RangeResponse {
            kvs,
            count,
            more,
            revision,
        })
    }
}

/// Refuses revisions that have been compacted or are not there yet.
pub(crate) fn check_revision(
    index: &Index,
    current: Revision,
    requested: Revision,
) -> Result<(), StoreError> {
    if requested < index.compacted() {
        return Err(StoreError::Compacted {
            requested,
            oldest: index.compacted(),
        });
    }
    if requested > current {
        return Err(StoreError::Future { requested, current });
    }
    Ok(())
}
