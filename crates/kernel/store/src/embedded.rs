//! The embedded backend, the default: a store in a directory of its own, durable, without another process.

use std::fmt;
use std::path::Path;

use futures::future::BoxFuture;

use crate::api::{
    LeaseId, Range, RangeResponse, Revision, Store, StoreError, Txn, TxnResponse, WatchRequest, WatchStream,
};
use crate::engine::sqlite::SqliteEngine;
use crate::forward::forward_store;
use crate::log_store::{LogStore, Options};

/// A store in a directory.
pub struct EmbeddedStore(LogStore);

impl EmbeddedStore {
    /// Opens the store of a directory, and creates it if it is not there. The directory belongs to one process at a
    /// time.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, StoreError> {
        LogStore::start(Box::new(SqliteEngine::open(directory)?), options).map(Self)
    }

    /// As [`EmbeddedStore::open`], for a program that fills a new store before anybody can see it: of what is written into
    /// a store that was not there, a crash leaves a beginning until [`EmbeddedStore::settle`] returns. A store that was
    /// there is as durable as ever.
    pub fn open_unsettled(directory: &Path, options: &Options) -> Result<Self, StoreError> {
        LogStore::start(Box::new(SqliteEngine::open_unsettled(directory)?), options).map(Self)
    }

    /// Makes durable what was written since a new store was opened, and every later write when it is acknowledged.
    pub async fn settle(&self) -> Result<(), StoreError> {
        self.0.settle().await
    }
}

forward_store!(EmbeddedStore);
