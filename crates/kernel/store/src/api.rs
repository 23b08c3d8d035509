//! The trait that every backend implements, and the words it is spoken in.
//!
//! The model is etcd's: one global revision that rises with every transaction that writes; compare-and-set
//! transactions; reads of the past as far back as it has not been compacted; watches that replay from a revision and then
//! follow. What a caller may rely on, whatever the backend:
//!
//! * When `txn` returns, its writes are durable and every later `range` or `watch` sees them.
//! * Revisions of one store never go back, not even after a crash.
//! * A watch delivers every change in its range exactly once, in order of revision, and all changes of one revision
//!   in one batch.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Largest key or value, and the most operations of a transaction: etcd's limits, on every backend.
pub const MAX_VALUE_BYTES: usize = 1_536 * 1024;
/// The most operations in one branch of a transaction.
pub const MAX_TXN_OPS: usize = 128;

/// A point in the history of the whole store. 0 is before the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A lease; keys attached to it vanish when it expires or is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// A key with its value and history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value; empty in a delete event.
    pub value: Bytes,
    /// Revision of the creation of this incarnation.
    pub create_revision: Revision,
    /// Revision of the last change.
    pub mod_revision: Revision,
    /// Number of writes since creation, from 1.
    pub version: u64,
    /// The lease that it is attached to.
    pub lease: Option<LeaseId>,
}

/// The keys `start <= key < end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub start: Bytes,
    /// First key that is not in the range any more; empty: no upper end.
    pub end: Bytes,
}

impl KeyRange {
    /// Only this key.
    #[must_use]
    pub fn single(key: &[u8]) -> Self {
        let mut end = Vec::with_capacity(key.len() + 1);
        end.extend_from_slice(key);
        end.push(0);
        // Both ends share one buffer.
        let end = Bytes::from(end);
        Self {
            start: end.slice(..key.len()),
            end,
        }
    }

    /// Every key that begins with this; an empty prefix: all keys.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                break;
            }
        }
        Self {
            start: Bytes::copy_from_slice(prefix),
            end: Bytes::from(end),
        }
    }

    /// Whether a key lies in the range.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= *key && (self.end.is_empty() || *key < *self.end)
    }
}

/// One condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The key.
    pub key: Bytes,
    /// What of it must be equal to what.
    pub target: CompareTarget,
}

/// What a [`Compare`] looks at. All are equalities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareTarget {
    /// Revision of the last change; 0: the key does not exist.
    ModRevision(Revision),
    /// Revision of the creation; 0: the key does not exist.
    CreateRevision(Revision),
    /// Number of writes; 0: the key does not exist.
    Version(u64),
    /// The value; false where the key does not exist.
    Value(Bytes),
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Writes a key.
    Put {
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// The lease that it shall be attached to.
        lease: Option<LeaseId>,
    },
    /// Deletes every key of the range.
    Delete(KeyRange),
    /// Reads.
    Get(Range),
}

/// What an [`Op`] answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpResponse {
    /// The value that was overwritten.
    Put(Option<KeyValue>),
    /// What was deleted.
    Delete(Vec<KeyValue>),
    /// What was read.
    Get(RangeResponse),
}

/// If all comparisons hold, `success` is carried out, else `failure`; atomically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// The conditions.
    pub compare: Vec<Compare>,
    /// Carried out if they hold.
    pub success: Vec<Op>,
    /// Carried out if they do not.
    pub failure: Vec<Op>,
}

/// Outcome of a [`Txn`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnResponse {
    /// Whether the comparisons held.
    pub succeeded: bool,
    /// The store's revision after it; that of the writes, if there were any.
    pub revision: Revision,
    /// One per operation.
    pub responses: Vec<OpResponse>,
}

/// A read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Which keys.
    pub keys: KeyRange,
    /// As of when; `None`: now.
    pub revision: Option<Revision>,
    /// The most keys to return; 0: all.
    pub limit: usize,
    /// Leave the values out.
    pub keys_only: bool,
    /// Only count.
    pub count_only: bool,
}

/// What a [`Range`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeResponse {
    /// Keys in order.
    pub kvs: Vec<KeyValue>,
    /// Keys in the range in all, whatever the limit.
    pub count: usize,
    /// Whether the limit cut something off.
    pub more: bool,
    /// The store's revision at the time of the read (not the one that was asked for).
    pub revision: Revision,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Created or changed.
    Put,
    /// Deleted.
    Delete,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The key as it is now; for a deletion the key, an empty value, and the revision of the deletion.
    pub kv: KeyValue,
    /// What it was before, if asked for, and if it existed and has not been compacted.
    pub prev: Option<KeyValue>,
}

/// A wish to see changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// Of which keys.
    pub keys: KeyRange,
    /// First revision to be delivered; `None`: only what happens from now on.
    pub from: Option<Revision>,
    /// Whether events carry the previous value.
    pub prev: bool,
}

/// All changes of a watch in one revision, or a sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchBatch {
    /// Everything up to this revision has been delivered.
    pub revision: Revision,
    /// The changes; empty in a progress notification.
    pub events: Vec<Event>,
}

/// Changes as they come. It ends after an error: `Compacted` if it asked for the distant past, `SlowWatcher` if the
/// reader did not keep up (it may resume from the last revision it saw).
pub type WatchStream = BoxStream<'static, Result<WatchBatch, StoreError>>;

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// The past that was asked for is gone.
    #[error("revision {requested} has been compacted; the oldest still there is {oldest}", requested = .requested.0, oldest = .oldest.0)]
    Compacted {
        /// What was asked for.
        requested: Revision,
        /// What could have been.
        oldest: Revision,
    },
    /// The revision lies in the future.
    #[error("revision {requested} is in the future; the store is at {current}", requested = .requested.0, current = .current.0)]
    Future {
        /// What was asked for.
        requested: Revision,
        /// Where the store is.
        current: Revision,
    },
    /// A value, key or transaction is over the limit.
    #[error("{what} is {size} but may be at most {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// The same key twice in one transaction.
    #[error("key {0:?} is written twice in one transaction")]
    DuplicateKey(String),
    /// A key may not be empty.
    #[error("a key may not be empty")]
    EmptyKey,
    /// No such lease.
    #[error("lease {id} does not exist or has expired", id = .0.0)]
    LeaseNotFound(LeaseId),
    /// The watcher fell too far behind.
    #[error("the watcher fell too far behind and was closed; resume from the last revision seen")]
    SlowWatcher,
    /// No space is left: writes fail, reads go on.
    #[error("the store's disk is full: {0}; free some space, writes will then succeed again")]
    DiskFull(String),
    /// The data on disk cannot be used.
    #[error("the store's data cannot be used: {0}")]
    Unusable(String),
    /// The store has been closed, or cannot write any more after a failure.
    #[error("the store is closed: {0}")]
    Closed(String),
    /// Input or output failed.
    #[error("the store could not {attempted}: {cause}")]
    Io {
        /// What was attempted.
        attempted: &'static str,
        /// What went wrong.
        cause: String,
    },
}

/// A revisioned store. All methods may be called from any number of tasks.
pub trait Store: Send + Sync + 'static {
    /// Carries out a transaction; when it returns, the writes are durable.
    fn txn(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, StoreError>>;

    /// Reads keys, now or in the past.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangeResponse, StoreError>>;

    /// Follows changes.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StoreError>>;

    /// The revision that includes every acknowledged write, whichever replica took it.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>>;

    /// Forgets history before this revision.
    fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Grants a lease.
    fn lease_grant(&self, ttl_seconds: u64) -> BoxFuture<'_, Result<LeaseId, StoreError>>;

    /// Renews a lease to its full time.
    fn lease_keep_alive(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Ends a lease and deletes its keys.
    fn lease_revoke(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Finishes pending writes and releases files. Later calls answer `Closed`.
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}
