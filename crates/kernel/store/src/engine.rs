//! What a store needs of whatever keeps its bytes, so that engines can be exchanged and made to fail.
//!
//! An engine is an append-only sequence of records, ordered by [`RecordId`], plus a few facts beside it (leases, how
//! far history has been compacted). It decides nothing: revisions, comparisons and watches are the business of
//! [`crate::log_store`]. The whole contract of durability is [`Engine::commit`]: all of a batch or nothing, and on
//! stable storage when it returns. The one exception is a new store that is not settled yet
//! ([`Engine::settle`]).

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

use crate::api::{Event, KeyValue, LeaseId, Revision, StoreError};

pub mod crash;
pub mod memory;
pub mod sqlite;

/// Bits of a [`RecordId`] that number the changes within one revision.
const SEQUENCE_BITS: u32 = 20;

/// The most changes that one transaction can make (a range deletion may touch more keys than it has operations).
pub const MAX_CHANGES: usize = 1 << SEQUENCE_BITS;

/// The place of a record in history: its revision, then its number within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(u64);

impl RecordId {
    /// Number `sequence` of a revision. Sequences beyond [`MAX_CHANGES`] are refused before they get here.
    #[must_use]
    pub fn new(revision: Revision, sequence: usize) -> Self {
        Self((revision.0 << SEQUENCE_BITS) | (sequence as u64 & (MAX_CHANGES as u64 - 1)))
    }

    /// The first place of a revision; also the end of the one before it.
    #[must_use]
    pub fn first_of(revision: Revision) -> Self {
        Self::new(revision, 0)
    }

    /// The revision.
    #[must_use]
    pub fn revision(self) -> Revision {
        Revision(self.0 >> SEQUENCE_BITS)
    }

    /// The number within the revision.
    #[must_use]
    pub fn sequence(self) -> usize {
        (self.0 & (MAX_CHANGES as u64 - 1)) as usize
    }

    /// The number as it is stored. It fits `i64` for the next 8 * 10^12 revisions.
    #[must_use]
    pub fn to_i64(self) -> i64 {
        self.0.cast_signed()
    }

    /// Back from a stored number.
    #[must_use]
    pub fn from_i64(stored: i64) -> Self {
        Self(stored.cast_unsigned())
    }
}

/// One version of a key as an engine returns it. A `version` of 0 marks a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where in history.
    pub id: RecordId,
    /// The key as of then; its `mod_revision` is that of the id.
    pub kv: KeyValue,
}

/// A record without its value: what the index is built from when a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// Where in history.
    pub id: RecordId,
    /// The key.
    pub key: &'a [u8],
    /// Revision of the creation of this incarnation.
    pub create_revision: Revision,
    /// Number of writes since creation; 0: deleted.
    pub version: u64,
    /// The lease that it is attached to.
    pub lease: Option<LeaseId>,
}

/// All changes of one revision. Event number `n` is stored under `RecordId::new(revision, n)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The revision.
    pub revision: Revision,
    /// Its changes in order, each with what was there before.
    pub events: Vec<Event>,
}

impl Commit {
    /// What it costs to keep in memory, roughly.
    #[must_use]
    pub fn cost(&self) -> usize {
        let of = |kv: &KeyValue| kv.key.len() + kv.value.len() + 128;
        self.events
            .iter()
            .map(|event| of(&event.kv) + event.prev.as_ref().map_or(0, of))
            .sum::<usize>()
            + 64
    }
}

/// A change to the leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// A new lease and its time to live.
    Granted {
        /// Which.
        lease: LeaseId,
        /// Its time to live.
        ttl_seconds: u64,
    },
    /// It was revoked or has expired.
    Ended(LeaseId),
}

/// What an engine makes durable in one go.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// New history, in rising order of revision.
    pub commits: Vec<Arc<Commit>>,
    /// Changes of leases.
    pub leases: Vec<LeaseChange>,
    /// History before this revision is forgotten from now on.
    pub compacted: Option<Revision>,
    /// Records that no reader can ask for any more.
    pub erased: Vec<RecordId>,
}

/// What an engine knew when it was opened, beside its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The oldest revision that can be read.
    pub compacted: Revision,
    /// Leases and their times to live.
    pub leases: Vec<(LeaseId, u64)>,
    /// The highest lease that was ever granted; numbers are not used twice.
    pub last_lease: i64,
}

/// Reading. A reader sees every batch whose commit returned before the read began.
pub trait EngineReader: Send {
    /// The value of a record; `None` if there is no such record (any more).
    fn value(&mut self, id: RecordId) -> Result<Option<Bytes>, StoreError>;

    /// The values of many records, in the same order; `None` if one of them is not there (any more).
    fn values(&mut self, ids: &[RecordId]) -> Result<Option<Vec<Bytes>>, StoreError> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    /// Visits the records `from <= id < below` in order, until told to stop.
    fn scan(
        &mut self,
        from: RecordId,
        below: RecordId,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;
}

/// The one writer.
pub trait Engine: EngineReader {
    /// Visits every record in order, and tells each time how far history has been compacted. Called once, before anything
    /// else.
    fn load(&mut self, visit: &mut dyn FnMut(Revision, RecordHeader<'_>)) -> Result<Loaded, StoreError>;

    /// Makes a batch durable, all or nothing. After `DiskFull` the engine goes on; after any other error it is not
    /// written to any more.
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;

    /// Ends the first filling of a new store: all that was committed is durable from now on, and so is every further commit when
    /// it returns. Before, a crash may leave only the first of the commits.
    fn settle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A further reader, for another thread.
    fn reader(&self) -> Result<Box<dyn EngineReader>, StoreError>;

    /// Whether reads may have to wait for a disk, and must therefore not run on an executor's thread.
    fn reads_block(&self) -> bool;

    /// Housekeeping that nobody waits for; called between batches.
    fn tidy(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Releases everything. The last call.
    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
