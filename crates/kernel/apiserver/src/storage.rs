//! Writes: one compare-and-set transaction each, answered only when durable and visible to every reader.

use std::sync::Arc;

use bytes::Bytes;
use fairway_kernel_store::value::{self, KeyRing};
use fairway_kernel_store::{Compare, CompareTarget, KeyRange, Op, Revision, Store, Txn};
use serde_json::Value;

use crate::cache::{Cache, KindCache};
use crate::key::ObjectSuffix;
use crate::object::{self, Object};
use crate::registry::ResourceDef;
use crate::status::ApiError;

/// The store, the cache in front of it, and the keys of what is encrypted.
pub struct Storage {
    /// Where state lives.
    pub store: Arc<dyn Store>,
    /// What readers see.
    pub cache: Arc<Cache>,
    /// For what must not lie on disk in the clear.
    pub keys: Arc<KeyRing>,
}

/// What changes together with an object (addresses, ports, the use of quotas): all or nothing.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    /// Keys that must be free, and who takes them.
    pub take: Vec<(Bytes, Bytes)>,
    /// Keys that become free.
    pub release: Vec<Bytes>,
    /// Other objects that change with this one.
    pub replace: Vec<Replacement>,
    /// Other objects that must still have the revision at which they were judged.
    pub unchanged: Vec<(Bytes, u64)>,
}

/// An object that is rewritten together with another one, if nobody else has changed it.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Where it is.
    pub key: Bytes,
    /// The revision that it must still have.
    pub expected: u64,
    /// What is stored.
    pub value: Bytes,
}

/// How a write ended.
#[derive(Debug)]
pub enum Outcome {
    /// Durable, and visible.
    Done(Arc<Object>),
    /// Somebody else was quicker; nothing was written.
    Lost,
}

impl Storage {
    /// The cache of a resource's kind.
    pub fn kind(&self, def: &ResourceDef) -> Arc<KindCache> {
        self.cache.kind(def.prefix.as_str())
    }

    /// The object as it is now, every acknowledged write included.
    pub async fn get(
        &self,
        def: &ResourceDef,
        suffix: &ObjectSuffix,
    ) -> Result<Option<Arc<Object>>, ApiError> {
        self.cache.fresh().await?;
        Ok(self.kind(def).get(suffix.as_str()))
    }

    /// Writes an object if its revision is still `expected` (0: if it does not exist).
    pub async fn put(
        &self,
        def: &ResourceDef,
        suffix: &ObjectSuffix,
        object: &Value,
        expected: u64,
        reservations: Reservations,
    ) -> Result<Outcome, ApiError> {
        let key = def.prefix.object(suffix);
        let encoded = object::encode(object)?;
        let stored = if def.sealed {
            self.keys.seal(&key, &encoded).map_err(ApiError::internal)?
        } else {
            value::plain(&encoded)
        };
        let put = Op::Put {
            key: key.clone(),
            value: stored,
            lease: None,
        };
        let Some(revision) = self.commit(key, expected, put, reservations).await? else {
            return Ok(Outcome::Lost);
        };
        // The cache has decoded it already, unless somebody has written it again since.
        if let Some(cached) = self.kind(def).get(suffix.as_str())
            && cached.revision() == revision
        {
            return Ok(Outcome::Done(cached));
        }
        let object = Object::decode(&encoded, revision)
            .ok_or_else(|| ApiError::internal("an encoded object is damaged"))?;
        Ok(Outcome::Done(Arc::new(object)))
    }

    /// Deletes an object if its revision is still that of `last`.
    pub async fn delete(
        &self,
        def: &ResourceDef,
        suffix: &ObjectSuffix,
        last: &Object,
        reservations: Reservations,
    ) -> Result<Outcome, ApiError> {
        let key = def.prefix.object(suffix);
        let delete = Op::Delete(KeyRange::single(&key));
        match self.commit(key, last.revision(), delete, reservations).await? {
            Some(revision) => Ok(Outcome::Done(Arc::new(last.deleted_at(revision)))),
            None => Ok(Outcome::Lost),
        }
    }

    async fn commit(
        &self,
        key: Bytes,
        expected: u64,
        op: Op,
        reservations: Reservations,
    ) -> Result<Option<u64>, ApiError> {
        let mut txn = Txn {
            compare: vec![Compare {
                key,
                target: CompareTarget::ModRevision(Revision(expected)),
            }],
            success: vec![op],
            failure: Vec::new(),
        };
        for (key, value) in reservations.take {
            txn.compare.push(Compare {
                key: key.clone(),
                target: CompareTarget::ModRevision(Revision(0)),
            });
            txn.success.push(Op::Put {
                key,
                value,
                lease: None,
            });
        }
        for (key, revision) in reservations.unchanged {
            txn.compare.push(Compare {
                key,
                target: CompareTarget::ModRevision(Revision(revision)),
            });
        }
        for key in reservations.release {
            txn.success.push(Op::Delete(KeyRange::single(&key)));
        }
        for replacement in reservations.replace {
            txn.compare.push(Compare {
                key: replacement.key.clone(),
                target: CompareTarget::ModRevision(Revision(replacement.expected)),
            });
            txn.success.push(Op::Put {
                key: replacement.key,
                value: replacement.value,
                lease: None,
            });
        }
        let answer = self.store.txn(txn).await?;
        if !answer.succeeded {
            // What beat us must be visible before the caller looks again, or it would lose the same race forever.
            self.cache.fresh().await?;
            return Ok(None);
        }
        self.cache.wait_for(answer.revision.0).await?;
        Ok(Some(answer.revision.0))
    }
}
