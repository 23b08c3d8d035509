//! The one task that writes the cache: load what there is, then follow.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use fairway_kernel_store::value::KeyRing;
use fairway_kernel_store::{
    Event, EventKind, KeyRange, KeyValue, Range, Revision, Store, StoreError, WatchRequest, WatchStream,
};
use futures::StreamExt;
use tokio::sync::{mpsc, watch};
use tracing::{error, warn};

use super::{Cache, KindCache};
use crate::key::KindPrefix;
use crate::object::Object;

/// Keys read at once while loading.
const LOAD_PAGE: usize = 1_000;
/// How often idle watchers are told how far they are.
const PROGRESS_EVERY: Duration = Duration::from_secs(20);
/// Wait before the store's stream is opened again after a failure.
const RETRY: Duration = Duration::from_millis(200);

/// Why the cache could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store did not answer.
    #[error("could not read the store while starting")]
    Store(#[source] StoreError),
    /// A value could not be decoded; serving without it would lose data in silence.
    #[error("the stored object {key} cannot be decoded: {why}")]
    Value {
        /// Its key.
        key: String,
        /// What is wrong.
        why: String,
    },
}

impl Cache {
    /// Loads every object and starts to follow the store. The task ends with the cache's last user, or when the store is
    /// closed.
    pub async fn load(store: Arc<dyn Store>, keys: Arc<KeyRing>) -> Result<Arc<Self>, LoadError> {
        let Revision(at) = store.revision().await.map_err(LoadError::Store)?;
        let cache = Arc::new(Self {
            store,
            keys,
            kinds: RwLock::new(HashMap::new()),
            applied: watch::channel(at).0,
            usages: super::usage::Usages::default(),
            loaded_at: AtomicU64::new(at),
        });
        cache.load_all(at).await?;
        let changes = cache.follow(at + 1).await.map_err(LoadError::Store)?;
        tokio::spawn(run(Arc::downgrade(&cache), changes));
        Ok(cache)
    }

    async fn load_all(&self, at: u64) -> Result<(), LoadError> {
        if at == 0 {
            return Ok(());
        }
        let (sender, mut pages) = mpsc::channel(1);
        let reading = tokio::spawn(read_pages(Arc::clone(&self.store), at, sender));
        let mut loading = Loading::default();
        while let Some(page) = pages.recv().await {
            for kv in &page {
                let Some((prefix, suffix)) = KindPrefix::split(&kv.key) else {
                    continue;
                };
                let object = self.decode(kv).map_err(|why| LoadError::Value {
                    key: key_text(&kv.key),
                    why,
                })?;
                loading.add(self, prefix, suffix, object);
            }
        }
        loading.finish();
        reading
            .await
            .unwrap_or_else(|ended| Err(StoreError::Closed(format!("reading it was broken off: {ended}"))))
            .map_err(LoadError::Store)
    }

    async fn follow(&self, from: u64) -> Result<WatchStream, StoreError> {
        self.store
            .watch(WatchRequest {
                keys: everything(),
                from: Some(Revision(from)),
                prev: false,
            })
            .await
    }

    fn place(&self, kv: &KeyValue) -> Option<(Arc<KindCache>, String)> {
        let (prefix, suffix) = KindPrefix::split(&kv.key)?;
        Some((self.kind(prefix), suffix.to_owned()))
    }

    pub(super) fn decode(&self, kv: &KeyValue) -> Result<Object, String> {
        let plain = self.keys.open(&kv.key, &kv.value).map_err(|e| e.to_string())?;
        let object =
            Object::decode(&plain, kv.mod_revision.0).ok_or_else(|| "its frame is damaged".to_owned())?;
        Ok(object.with_identity(hash(&kv.key)))
    }

    fn take_in(&self, event: &Event) {
        let Some((kind, suffix)) = self.place(&event.kv) else {
            return;
        };
        match event.kind {
            EventKind::Delete => {
                let before = kind.delete(&suffix, event.kv.mod_revision.0);
                self.usages.note(&suffix, before, None);
            }
            EventKind::Put => match self.decode(&event.kv) {
                Ok(object) => {
                    let size = object.bytes().len();
                    let before = kind.put(&suffix, Arc::new(object));
                    self.usages.note(&suffix, before, Some(size));
                }
                Err(why) => error!(
                    key = key_text(&event.kv.key),
                    why, "a stored object cannot be decoded"
                ),
            },
        }
    }
}

/// Objects come in the order of their keys, so those of a kind come together and are handed over together.
#[derive(Default)]
struct Loading {
    kind: Option<Arc<KindCache>>,
    objects: Vec<(Box<str>, Arc<Object>)>,
}

impl Loading {
    fn add(&mut self, cache: &Cache, prefix: &str, suffix: &str, object: Object) {
        cache.usages.note(suffix, None, Some(object.bytes().len()));
        if self.kind.as_ref().is_none_or(|kind| kind.prefix() != prefix) {
            self.finish();
            self.kind = Some(cache.kind(prefix));
        }
        self.objects.push((suffix.into(), Arc::new(object)));
    }

    fn finish(&mut self) {
        if let Some(kind) = self.kind.take() {
            kind.load(std::mem::take(&mut self.objects));
        }
    }
}

/// Reads every object, page by page, while the page before is taken in.
async fn read_pages(
    store: Arc<dyn Store>,
    at: u64,
    pages: mpsc::Sender<Vec<KeyValue>>,
) -> Result<(), StoreError> {
    let KeyRange { mut start, end } = everything();
    loop {
        let page = store
            .range(Range {
                keys: KeyRange {
                    start,
                    end: end.clone(),
                },
                revision: Some(Revision(at)),
                limit: LOAD_PAGE,
                keys_only: false,
                count_only: false,
            })
            .await?;
        let next = page.kvs.last().filter(|_| page.more);
        let next = next.map(|last| [&last.key[..], b"\0"].concat().into());
        // Nobody takes it any more: one of the pages before could not be read.
        if pages.send(page.kvs).await.is_err() {
            return Ok(());
        }
        match next {
            Some(next) => start = next,
            None => return Ok(()),
        }
    }
}

/// The keys of all objects; reservations live outside.
fn everything() -> KeyRange {
    KeyRange::prefix(b"/")
}

/// FNV-1a: short, and the same in every process.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn key_text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

async fn run(cache: std::sync::Weak<Cache>, mut changes: WatchStream) {
    let mut progress = tokio::time::interval(PROGRESS_EVERY);
    progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let batch = tokio::select! {
            batch = changes.next() => batch,
            _ = progress.tick() => {
                let Some(cache) = cache.upgrade() else { return };
                let applied = cache.applied();
                cache.kinds().iter().for_each(|kind| kind.progress(applied));
                continue;
            }
        };
        let Some(cache) = cache.upgrade() else { return };
        match batch {
            Some(Ok(batch)) => {
                batch.events.iter().for_each(|event| cache.take_in(event));
                cache.applied.send_replace(batch.revision.0);
            }
            Some(Err(StoreError::Closed(_))) | None => {
                cache.kinds().iter().for_each(|kind| kind.close_watchers());
                return;
            }
            Some(Err(reason)) => {
                warn!(%reason, "the store's stream of changes broke off; resuming");
                loop {
                    match cache.follow(cache.applied() + 1).await {
                        Ok(stream) => {
                            changes = stream;
                            break;
                        }
                        Err(StoreError::Closed(_)) => return,
                        Err(reason) => warn!(%reason, "the store's stream of changes cannot be resumed yet"),
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
