//! The memory backend: a whole store without a disk, for tests and for what may be lost.

use std::fmt;

use futures::future::BoxFuture;

use crate::api::{
    LeaseId, Range, RangeResponse, Revision, Store, StoreError, Txn, TxnResponse, WatchRequest, WatchStream,
};
use crate::engine::memory::MemoryEngine;
use crate::forward::forward_store;
use crate::log_store::{LogStore, Options};

/// A store in memory.
pub struct MemoryStore(LogStore);

impl MemoryStore {
    /// An empty store.
    ///
    /// # Panics
    ///
    /// If the machine cannot start another thread.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(&Options::default()).expect("a thread for the store")
    }

    /// An empty store with a clock or limits of its own.
    pub fn with_options(options: &Options) -> Result<Self, StoreError> {
        LogStore::start(Box::new(MemoryEngine::default()), options).map(Self)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

forward_store!(MemoryStore);
