//! Backends that are a [`crate::log_store::LogStore`] with an engine chosen hand every call on to it.

/// Implements [`crate::Store`] and `Debug` for a tuple struct around a store.
macro_rules! forward_store {
    ($backend:ident) => {
        impl Store for $backend {
            fn txn(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, StoreError>> {
                self.0.txn(txn)
            }

            fn range(&self, range: Range) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
                self.0.range(range)
            }

            fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream, StoreError>> {
                self.0.watch(request)
            }

            fn revision(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
                self.0.revision()
            }

            fn compact(&self, before: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
                self.0.compact(before)
            }

            fn lease_grant(&self, ttl_seconds: u64) -> BoxFuture<'_, Result<LeaseId, StoreError>> {
                self.0.lease_grant(ttl_seconds)
            }

            fn lease_keep_alive(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
                self.0.lease_keep_alive(lease)
            }

            fn lease_revoke(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
                self.0.lease_revoke(lease)
            }

            fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
                self.0.close()
            }
        }

        impl fmt::Debug for $backend {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($backend)).field(&self.0).finish()
            }
        }
    };
}

pub(crate) use forward_store;
