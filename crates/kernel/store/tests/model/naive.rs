//! The simplest store there could be: a whole copy of all keys for every revision.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fairway_kernel_store::{
    Compare, CompareTarget, Event, EventKind, KeyRange, KeyValue, Op, OpResponse, Range, RangeResponse,
    Revision, StoreError, Txn, TxnResponse,
};

type Keys = BTreeMap<Bytes, KeyValue>;

pub(crate) struct Naive {
    /// The keys as of each revision, from 0.
    pub(crate) states: Vec<Keys>,
    /// The changes of each revision; none in revision 0.
    pub(crate) changes: Vec<Vec<Event>>,
    pub(crate) compacted: usize,
}

impl Naive {
    pub(crate) fn new() -> Self {
        Self {
            states: vec![Keys::new()],
            changes: vec![Vec::new()],
            compacted: 0,
        }
    }

    pub(crate) fn revision(&self) -> usize {
        self.states.len() - 1
    }

    fn now(&self) -> &Keys {
        &self.states[self.revision()]
    }

    pub(crate) fn compact(&mut self, before: usize) -> Result<(), StoreError> {
        if before > self.revision() {
            return Err(self.future(before));
        }
        self.compacted = self.compacted.max(before);
        Ok(())
    }

    fn future(&self, requested: usize) -> StoreError {
        StoreError::Future {
            requested: Revision(requested as u64),
            current: Revision(self.revision() as u64),
        }
    }

    fn state_at(&self, revision: usize) -> Result<&Keys, StoreError> {
        if revision < self.compacted {
            let oldest = Revision(self.compacted as u64);
            return Err(StoreError::Compacted {
                requested: Revision(revision as u64),
                oldest,
            });
        }
        self.states.get(revision).ok_or_else(|| self.future(revision))
    }

    pub(crate) fn range(&self, range: &Range) -> Result<RangeResponse, StoreError> {
        self.range_in(range, self.now(), self.revision())
    }

    fn range_in(&self, range: &Range, now: &Keys, current: usize) -> Result<RangeResponse, StoreError> {
        let state = match range.revision {
            None => now,
            Some(revision) => self.state_at(revision.0 as usize)?,
        };
        let all: Vec<&KeyValue> = state.values().filter(|kv| within(&range.keys, &kv.key)).collect();
        let limit = if range.limit == 0 { all.len() } else { range.limit };
        let mut kvs: Vec<KeyValue> = all.iter().take(limit).map(|kv| (*kv).clone()).collect();
        if range.keys_only {
            kvs.iter_mut().for_each(|kv| kv.value = Bytes::new());
        }
        let more = !range.count_only && all.len() > kvs.len();
        if range.count_only {
            kvs.clear();
        }
        Ok(RangeResponse {
            kvs,
            count: all.len(),
            more,
            revision: Revision(current as u64),
        })
    }

    fn holds(&self, compare: &Compare) -> bool {
        let kv = self.now().get(&compare.key);
        match &compare.target {
            CompareTarget::ModRevision(wanted) => kv.map_or(0, |kv| kv.mod_revision.0) == wanted.0,
            CompareTarget::CreateRevision(wanted) => kv.map_or(0, |kv| kv.create_revision.0) == wanted.0,
            CompareTarget::Version(wanted) => kv.map_or(0, |kv| kv.version) == *wanted,
            CompareTarget::Value(wanted) => kv.is_some_and(|kv| kv.value == wanted),
        }
    }

    fn duplicate(ops: &[Op]) -> bool {
        let mut seen = BTreeSet::new();
        let puts: Vec<&Bytes> = ops
            .iter()
            .filter_map(|op| {
                if let Op::Put { key, .. } = op {
                    Some(key)
                } else {
                    None
                }
            })
            .collect();
        puts.iter().any(|key| !seen.insert(*key))
            || ops
                .iter()
                .any(|op| matches!(op, Op::Delete(keys) if puts.iter().any(|key| within(keys, key))))
    }

    /// `None`: it is refused because it writes a key twice.
    pub(crate) fn txn(&mut self, txn: &Txn) -> Option<Result<TxnResponse, StoreError>> {
        if Self::duplicate(&txn.success) || Self::duplicate(&txn.failure) {
            return None;
        }
        let succeeded = txn.compare.iter().all(|compare| self.holds(compare));
        let ops = if succeeded { &txn.success } else { &txn.failure };
        let (mut keys, mut events, mut responses) = (self.now().clone(), Vec::new(), Vec::new());
        let next = Revision(self.revision() as u64 + 1);
        for op in ops {
            responses.push(match op {
                Op::Put { key, value, lease } => {
                    let prev = keys.get(key).cloned();
                    let kv = KeyValue {
                        key: key.clone(),
                        value: value.clone(),
                        create_revision: prev.as_ref().map_or(next, |prev| prev.create_revision),
                        mod_revision: next,
                        version: prev.as_ref().map_or(1, |prev| prev.version + 1),
                        lease: *lease,
                    };
                    keys.insert(key.clone(), kv.clone());
                    events.push(Event {
                        kind: EventKind::Put,
                        kv,
                        prev: prev.clone(),
                    });
                    OpResponse::Put(prev)
                }
                Op::Delete(range) => {
                    let doomed: Vec<KeyValue> = keys
                        .values()
                        .filter(|kv| within(range, &kv.key))
                        .cloned()
                        .collect();
                    for prev in &doomed {
                        keys.remove(&prev.key);
                        let kv = KeyValue {
                            key: prev.key.clone(),
                            value: Bytes::new(),
                            create_revision: Revision(0),
                            mod_revision: next,
                            version: 0,
                            lease: None,
                        };
                        events.push(Event {
                            kind: EventKind::Delete,
                            kv,
                            prev: Some(prev.clone()),
                        });
                    }
                    OpResponse::Delete(doomed)
                }
                Op::Get(range) => {
                    let current = self.revision() + usize::from(!events.is_empty());
                    match self.range_in(range, &keys, current) {
                        Ok(response) => OpResponse::Get(response),
                        Err(error) => return Some(Err(error)),
                    }
                }
            });
        }
        if !events.is_empty() {
            self.states.push(keys);
            self.changes.push(events);
        }
        Some(Ok(TxnResponse {
            succeeded,
            revision: Revision(self.revision() as u64),
            responses,
        }))
    }
}

pub(crate) fn within(range: &KeyRange, key: &[u8]) -> bool {
    &range.start[..] <= key && (range.end.is_empty() || key < &range.end[..])
}
