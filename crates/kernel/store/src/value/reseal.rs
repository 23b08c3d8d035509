//! After a rotation: values that need an old key are sealed again under the current one.
//!
//! Each value is replaced by a compare-and-set of its own: whoever writes it meanwhile seals it under the current key
//! anyway, and wins. So the work can be broken off at any point, by a crash too, and is simply begun again. The past keeps
//! the old values until it is compacted; a key may be dropped when neither the present nor the past needs it.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{KeyRing, ValueError};
use crate::{
    Compare, CompareTarget, KeyRange, KeyValue, Op, Range, RangeResponse, Revision, Store, StoreError, Txn,
};

/// Values that are looked at in one read: few, so that nobody else waits long.
const PAGE: usize = 128;

/// Why values could not be sealed again.
#[derive(Debug, thiserror::Error)]
pub enum ResealError {
    /// The store failed.
    #[error("the values could not be read or written")]
    Store(#[from] StoreError),
    /// A value could not be opened or sealed.
    #[error("the value of {key} could not be sealed again")]
    Value {
        /// Which.
        key: String,
        /// Why.
        source: ValueError,
    },
}

/// What a look at all values found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Sealed values by the key that they need.
    pub by_key: BTreeMap<u32, u64>,
    /// No value that was written after this revision has been looked at; the past before it may need other keys.
    pub revision: Revision,
}

impl Survey {
    /// Values that need another key than this one.
    #[must_use]
    pub fn under_others(&self, current: u32) -> u64 {
        self.by_key
            .iter()
            .filter(|(id, _)| **id != current)
            .map(|(_, n)| n)
            .sum()
    }
}

/// Counts the sealed values below a prefix.
pub async fn survey(store: &dyn Store, prefix: &[u8]) -> Result<Survey, StoreError> {
    let mut survey = Survey::default();
    let mut pages = Pages::below(prefix);
    while let Some(page) = pages.next(store).await? {
        for kv in &page.kvs {
            if let Ok(Some(id)) = KeyRing::key_of(&kv.value) {
                *survey.by_key.entry(id).or_default() += 1;
            }
        }
        survey.revision = page.revision;
    }
    Ok(survey)
}

/// Seals every value below a prefix that needs another key than the current one. Returns how many that were.
pub async fn reseal(store: &dyn Store, keys: &KeyRing, prefix: &[u8]) -> Result<u64, ResealError> {
    let mut done = 0;
    let mut pages = Pages::below(prefix);
    while let Some(page) = pages.next(store).await? {
        for kv in &page.kvs {
            if let Some(value) = sealed_again(keys, kv)? {
                done += u64::from(store.txn(replacement(kv, value)).await?.succeeded);
            }
        }
        tokio::task::yield_now().await;
    }
    Ok(done)
}

/// The value under the current key; `None` if it needs no other.
fn sealed_again(keys: &KeyRing, kv: &KeyValue) -> Result<Option<Bytes>, ResealError> {
    let failed = |source| ResealError::Value {
        key: String::from_utf8_lossy(&kv.key).into_owned(),
        source,
    };
    match KeyRing::key_of(&kv.value).map_err(failed)? {
        Some(id) if id != keys.current() => {}
        _ => return Ok(None),
    }
    let plain = keys.open(&kv.key, &kv.value).map_err(failed)?;
    keys.seal(&kv.key, &plain).map(Some).map_err(failed)
}

fn replacement(kv: &KeyValue, value: Bytes) -> Txn {
    Txn {
        compare: vec![Compare {
            key: kv.key.clone(),
            target: CompareTarget::ModRevision(kv.mod_revision),
        }],
        success: vec![Op::Put {
            key: kv.key.clone(),
            value,
            lease: kv.lease,
        }],
        failure: Vec::new(),
    }
}

/// Whether history before this revision is gone.
pub async fn is_forgotten(store: &dyn Store, before: Revision) -> Result<bool, StoreError> {
    let Some(last) = before.0.checked_sub(1).filter(|r| *r > 0) else {
        return Ok(true);
    };
    let range = Range {
        keys: KeyRange::single(b"/"),
        revision: Some(Revision(last)),
        limit: 1,
        keys_only: true,
        count_only: false,
    };
    match store.range(range).await {
        Ok(_) => Ok(false),
        Err(StoreError::Compacted { .. }) => Ok(true),
        Err(other) => Err(other),
    }
}

/// All keys of a range, some at a time.
struct Pages {
    left: Option<KeyRange>,
}

impl Pages {
    fn below(prefix: &[u8]) -> Self {
        Self {
            left: Some(KeyRange::prefix(prefix)),
        }
    }

    async fn next(&mut self, store: &dyn Store) -> Result<Option<RangeResponse>, StoreError> {
        let Some(keys) = self.left.take() else {
            return Ok(None);
        };
        let end = keys.end.clone();
        let page = store
            .range(Range {
                keys,
                revision: None,
                limit: PAGE,
                keys_only: false,
                count_only: false,
            })
            .await?;
        if let Some(last) = page.kvs.last().filter(|_| page.more) {
            let mut start = last.key.to_vec();
            start.push(0);
            self.left = Some(KeyRange {
                start: start.into(),
                end,
            });
        }
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests;
