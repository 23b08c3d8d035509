//! The past beyond the window, read from the store.
//!
//! A client that was away for some minutes resumes its watch from a revision that the window has already dropped; a
//! client that pages through a long list wants the revision of its first page. Both are served from the store's history,
//! object by object, so they cost nothing to anybody else.

use std::sync::Arc;

use fairway_kernel_store::{Event, EventKind, KeyRange, KeyValue, Range, Revision, StoreError, WatchRequest};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::{Cache, Change, ChangeKind, KindCache, Listing, Scope, Signal};
use crate::object::Object;
use crate::status::ApiError;

impl Cache {
    /// Follows a kind from a revision that its window does not reach, from the store itself.
    pub async fn follow_history(
        self: &Arc<Self>,
        kind: &KindCache,
        scope: Scope,
        from: u64,
    ) -> Result<BoxStream<'static, Result<Signal, StoreError>>, StoreError> {
        let within = match &scope {
            Scope::Within(text) | Scope::One(text) => text,
        };
        let keys = KeyRange::prefix(format!("{}{within}", kind.prefix()).as_bytes());
        let stream = self
            .store
            .watch(WatchRequest {
                keys,
                from: Some(Revision(from + 1)),
                prev: true,
            })
            .await?;
        let prefix = kind.prefix().len();
        let cache = Arc::clone(self);
        let signals = stream.flat_map(move |batch| {
            let signals: Vec<_> = match batch {
                Err(error) => vec![Err(error)],
                Ok(batch) if batch.events.is_empty() => vec![Ok(Signal::Progress(batch.revision.0))],
                Ok(batch) => batch
                    .events
                    .iter()
                    .filter_map(|event| cache.change(event, prefix))
                    .filter(|change| scope.contains(&change.suffix))
                    .map(|change| Ok(Signal::Change(Arc::new(change))))
                    .collect(),
            };
            futures::stream::iter(signals)
        });
        Ok(signals.boxed())
    }

    fn change(&self, event: &Event, prefix: usize) -> Option<Change> {
        let suffix: Box<str> = std::str::from_utf8(event.kv.key.get(prefix..)?).ok()?.into();
        let read = |kv: &KeyValue| -> Option<Arc<Object>> { self.decode(kv).ok().map(Arc::new) };
        let prev = event.prev.as_ref().and_then(read);
        Some(match event.kind {
            EventKind::Put => {
                let kind = if event.kv.version == 1 {
                    ChangeKind::Added
                } else {
                    ChangeKind::Modified
                };
                Change::new(kind, suffix, read(&event.kv)?, prev)
            }
            EventKind::Delete => {
                let last = Arc::new(prev.as_ref()?.deleted_at(event.kv.mod_revision.0));
                Change::new(ChangeKind::Deleted, suffix, last, prev)
            }
        })
    }

    /// How many objects of a scope come after one, at a revision. The store counts by sections of its index; this cache
    /// would have to look at each, and a page must not cost as much as the whole list.
    pub async fn count_after(
        &self,
        kind: &KindCache,
        scope: &Scope,
        after: &str,
        revision: u64,
    ) -> Result<usize, ApiError> {
        let counted = self
            .store
            .range(Range {
                keys: keys_after(kind, scope, Some(after)),
                revision: Some(Revision(revision)),
                limit: 0,
                keys_only: true,
                count_only: true,
            })
            .await?;
        Ok(counted.count)
    }

    /// A page of a kind as it was at a revision.
    pub async fn list_at(
        &self,
        kind: &KindCache,
        scope: &Scope,
        after: Option<&str>,
        limit: usize,
        revision: u64,
    ) -> Result<(Listing, usize), ApiError> {
        self.wait_for(revision).await?;
        if kind.changed_at() <= revision && kind.window_covers(revision) {
            let (listing, more) = kind.list(scope, after, limit, revision);
            if listing.revision == revision {
                let more = match listing.objects.last() {
                    Some((last, _)) if more => self.count_after(kind, scope, last, revision).await?,
                    _ => 0,
                };
                return Ok((listing, more));
            }
        }
        let found = self
            .store
            .range(Range {
                keys: keys_after(kind, scope, after),
                revision: Some(Revision(revision)),
                limit,
                keys_only: false,
                count_only: false,
            })
            .await?;
        let mut objects = Vec::with_capacity(found.kvs.len());
        for kv in &found.kvs {
            let Some(Ok(suffix)) = kv.key.get(kind.prefix().len()..).map(std::str::from_utf8) else {
                continue;
            };
            if scope.contains(suffix) {
                objects.push((
                    suffix.into(),
                    Arc::new(self.decode(kv).map_err(ApiError::internal)?),
                ));
            }
        }
        let more = if found.more {
            found.count.saturating_sub(found.kvs.len())
        } else {
            0
        };
        Ok((Listing { objects, revision }, more))
    }
}

/// The keys of a scope, from the beginning or after an object.
fn keys_after(kind: &KindCache, scope: &Scope, after: Option<&str>) -> KeyRange {
    let within = match scope {
        Scope::Within(text) | Scope::One(text) => text,
    };
    let mut keys = KeyRange::prefix(format!("{}{within}", kind.prefix()).as_bytes());
    if let Some(after) = after {
        keys.start = format!("{}{after}\0", kind.prefix()).into_bytes().into();
    }
    keys
}
