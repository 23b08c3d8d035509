//! Revisioned key-value store with watch: one trait, several backends.

mod api;
mod clock;
mod compaction;
mod crash_test;
mod embedded;
pub mod engine;
mod evaluate;
mod forward;
mod hub;
mod index;
mod lease;
mod limits;
mod log_store;
mod memory;
pub mod value;

pub use api::{
    Compare, CompareTarget, Event, EventKind, KeyRange, KeyValue, LeaseId, MAX_TXN_OPS, MAX_VALUE_BYTES, Op,
    OpResponse, Range, RangeResponse, Revision, Store, StoreError, Txn, TxnResponse, WatchBatch,
    WatchRequest, WatchStream,
};
pub use clock::{Clock, ManualClock, MonotonicClock, OnSet};
pub use compaction::{CompactionSchedule, DEFAULT_RETENTION};
pub use crash_test::CrashTestStore;
pub use embedded::EmbeddedStore;
pub use engine::sqlite::import::Import;
pub use limits::MAX_TXN_BYTES;
pub use log_store::{LogStore, Options};
pub use memory::MemoryStore;
pub use value::{KeyRing, ValueError};
