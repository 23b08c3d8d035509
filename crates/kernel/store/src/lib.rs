//! Revisioned key-value store with watch: one trait, several backends.

mod api;

pub use api::{
    Compare, CompareTarget, Event, EventKind, KeyRange, KeyValue, LeaseId, Op, OpResponse, Range, RangeResponse,
    Revision, Store, StoreError, Txn, TxnResponse, WatchBatch, WatchRequest, WatchStream,
};
