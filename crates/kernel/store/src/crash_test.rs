//! The crash-test backend: a store on a simulated disk, for whoever builds on a store and wants to see it fail.

use std::fmt;

use futures::future::BoxFuture;

use crate::api::{
    LeaseId, Range, RangeResponse, Revision, Store, StoreError, Txn, TxnResponse, WatchRequest, WatchStream,
};
use crate::engine::crash::{CrashEngine, SimulatedDisk};
use crate::forward::forward_store;
use crate::log_store::{LogStore, Options};

/// A store on a disk that can lose power.
pub struct CrashTestStore(LogStore);

impl CrashTestStore {
    /// Opens the store that a disk holds.
    pub fn open(disk: &SimulatedDisk, options: &Options) -> Result<Self, StoreError> {
        LogStore::start(Box::new(CrashEngine::new(disk.clone())), options).map(Self)
    }
}

forward_store!(CrashTestStore);
