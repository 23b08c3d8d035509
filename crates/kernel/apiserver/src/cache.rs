//! Every current object in memory, and the recent past of each kind.
//!
//! One task reads the store's single stream of changes and is the only writer here (`ingest`). Everything that serves
//! clients only reads: a GET is a look-up, a LIST clones references, a watch is handed the same `Arc`s that lists use.
//!
//! Consistency: a write is answered only after its revision has been applied here ([`Cache::wait_for`]), and a read
//! first asks the store for its revision and waits for it, so a read sees every acknowledged write, whichever
//! replica took it. [`Listing::revision`] is exact: the objects are those of that revision, no newer and no older.
//!
//! Memory: the current objects, plus for each kind a window of changes bounded in number and bytes. A watch that begins
//! before the window is served from the store's history ([`history`]), so it costs memory only for itself.

mod history;
mod ingest;
mod kind;
mod sheet;
mod usage;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairway_kernel_store::value::KeyRing;
use fairway_kernel_store::{Revision, Store};
use tokio::sync::watch;

pub use ingest::LoadError;
pub use kind::{Change, ChangeKind, KindCache, Listing, Observer, Scope, Signal, Subscription, watch_frame};

pub use sheet::Sheet;
pub use usage::Usage;

use serde_json::Value;

use crate::key::{BUILTIN_IDENTITY, KindPrefix, ObjectSuffix};
use crate::object::Object;
use crate::status::ApiError;

/// How long a read waits for a revision that it knows of but that has not been applied yet.
const CATCH_UP: Duration = Duration::from_secs(3);

/// All kinds.
pub struct Cache {
    store: Arc<dyn Store>,
    keys: Arc<KeyRing>,
    kinds: RwLock<HashMap<Box<str>, Arc<KindCache>>>,
    applied: watch::Sender<u64>,
    usages: usage::Usages,
    /// Where history begins for kinds that appear later.
    loaded_at: std::sync::atomic::AtomicU64,
}

impl Cache {
    /// The cache of a kind, made on first use.
    pub fn kind(&self, prefix: &str) -> Arc<KindCache> {
        if let Some(kind) = self
            .kinds
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(prefix)
        {
            return Arc::clone(kind);
        }
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        let loaded_at = self.loaded_at.load(std::sync::atomic::Ordering::Acquire);
        Arc::clone(
            kinds
                .entry(prefix.into())
                .or_insert_with(|| Arc::new(KindCache::new(prefix, loaded_at))),
        )
    }

    /// An object of a kind that the kernel itself brings; the namespace of a cluster-scoped one is empty.
    pub fn built_in(
        &self,
        group: &str,
        resource: &str,
        cluster: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Object>> {
        let prefix = KindPrefix::new(group, resource, BUILTIN_IDENTITY);
        let suffix = ObjectSuffix::new(cluster, namespace, name);
        self.kind(prefix.as_str()).get(suffix.as_str())
    }

    /// [`Self::built_in`], parsed.
    pub fn built_in_value(
        &self,
        group: &str,
        resource: &str,
        cluster: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Value> {
        (self.built_in(group, resource, cluster, namespace, name)?)
            .value()
            .ok()
    }

    /// Every kind that has been seen.
    pub fn kinds(&self) -> Vec<Arc<KindCache>> {
        self.kinds
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Forgets a kind whose definition has gone. Its watchers' streams end.
    pub fn forget(&self, prefix: &str) {
        let gone = self
            .kinds
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(prefix);
        if let Some(kind) = gone {
            kind.close_watchers();
        }
    }

    /// What a workspace holds.
    pub fn usage(&self, cluster: &str) -> Usage {
        self.usages.of(cluster)
    }

    /// The revision up to which everything has been applied.
    pub fn applied(&self) -> u64 {
        *self.applied.borrow()
    }

    /// Waits until a revision has been applied.
    pub async fn wait_for(&self, revision: u64) -> Result<(), ApiError> {
        if self.applied() >= revision {
            return Ok(());
        }
        let mut applied = self.applied.subscribe();
        match tokio::time::timeout(CATCH_UP, applied.wait_for(|at| *at >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ApiError::unavailable("the server is shutting down")),
            Err(_) => Err(ApiError::future_version(revision, self.applied())),
        }
    }

    /// Waits until every acknowledged write has been applied; returns the revision.
    pub async fn fresh(&self) -> Result<u64, ApiError> {
        let Revision(revision) = self.store.revision().await?;
        self.wait_for(revision).await?;
        Ok(revision.max(self.applied()))
    }
}
