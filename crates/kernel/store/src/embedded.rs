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
}

forward_store!(EmbeddedStore);
