//! Schemas that are gone as objects and still in use.
//!
//! A provider may delete a schema while consumers are bound to it: their objects exist, so the kind stays served. The
//! deletion leaves a copy behind, in its own transaction and outside the keys of objects; a server that starts
//! later compiles from it. Copies that no binding needs any more are removed at the next start.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use fairway_kernel_store::{KeyRange, MAX_TXN_OPS, Op, Range, Store, StoreError, Txn};
use serde_json::Value;

const PREFIX: &str = "!schema/";

/// The copies, by the UID of the schema.
#[derive(Default)]
pub(super) struct Kept(RwLock<HashMap<Box<str>, Bytes>>);

fn key(uid: &str) -> Bytes {
    format!("{PREFIX}{uid}").into()
}

impl Kept {
    /// Reads the copies that there are.
    pub(super) async fn load(store: &Arc<dyn Store>) -> Result<Self, StoreError> {
        let all = Range {
            keys: KeyRange::prefix(PREFIX.as_bytes()),
            revision: None,
            limit: 0,
            keys_only: false,
            count_only: false,
        };
        let found = store.range(all).await?.kvs.into_iter().filter_map(|it| {
            let uid = std::str::from_utf8(&it.key).ok()?.strip_prefix(PREFIX)?;
            Some((uid.into(), it.value))
        });
        Ok(Self(RwLock::new(found.collect())))
    }

    pub(super) fn get(&self, uid: &str) -> Option<Value> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        serde_json::from_slice(all.get(uid)?).ok()
    }

    /// What is to be stored when this schema is deleted.
    pub(super) fn add(&self, uid: &str, schema: &Value) -> (Bytes, Bytes) {
        let copy = Bytes::from(schema.to_string());
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(uid.into(), copy.clone());
        (key(uid), copy)
    }

    /// Removes the copies that nobody needs.
    pub(super) async fn prune(
        &self,
        store: &Arc<dyn Store>,
        is_needed: impl Fn(&str) -> bool,
    ) -> Result<(), StoreError> {
        let mut gone: Vec<Bytes> = Vec::new();
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|uid, _| {
                let stays = is_needed(uid);
                if !stays {
                    gone.push(key(uid));
                }
                stays
            });
        for some in gone.chunks(MAX_TXN_OPS) {
            let delete = some.iter().map(|key| Op::Delete(KeyRange::single(key)));
            let txn = Txn {
                compare: Vec::new(),
                success: delete.collect(),
                failure: Vec::new(),
            };
            store.txn(txn).await?;
        }
        Ok(())
    }
}
