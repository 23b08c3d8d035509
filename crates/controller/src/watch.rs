//! A watch as a task: it lists, follows, resumes after interruptions and ends with the process.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::Resource;
use kube::api::Api;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use serde::de::DeserializeOwned;
use tracing::{debug, warn};

use crate::cache::Cache;
use crate::key::ObjectKey;
use crate::shutdown::Shutdown;

/// Objects that a list brings at once. With many workspaces a list is long, and the text of a larger part would be so large
/// that the allocator keeps room for the like of it ever after, in each of its arenas.
const PAGE: u32 = 100;

/// Hands every event to `take` until the end. `take` must be quick: it puts keys into queues.
///
/// For metadata alone, watch an `Api<PartialObjectMeta<K>>`.
pub async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    mut shutdown: Shutdown,
    mut take: impl FnMut(Event<K>) + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let what = api.resource_url().to_owned();
    let events = watch_kind(api, config.page_size(PAGE)).backoff(DefaultBackoff::default());
    let mut events = std::pin::pin!(events);
    let mut failing = false;
    loop {
        tokio::select! {
            biased;
            () = shutdown.wait() => return,
            event = events.next() => match event {
                None => return,
                Some(Ok(event)) => {
                    failing = false;
                    take(event);
                }
                // The stream goes on by itself after a delay. The first failure is often only a server that has ended a
                // stream; the second in a row deserves a line.
                Some(Err(error)) if failing => warn!(what, %error, "a watch keeps failing"),
                Some(Err(error)) => {
                    failing = true;
                    debug!(what, %error, "a watch failed");
                }
            }
        }
    }
}

/// Follows a kind into a cache, and tells which keys to look at.
pub async fn follow_into<K, V>(
    api: Api<K>,
    config: watcher::Config,
    shutdown: Shutdown,
    cache: Arc<Cache<V>>,
    keep: impl Fn(&K) -> V + Send + Sync,
    mut changed: impl FnMut(ObjectKey) + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    V: Send + Sync,
{
    follow(api, config, shutdown, |event| {
        for key in cache.take(event, |object| keep(&object)) {
            changed(key);
        }
    })
    .await;
}

/// [`follow_into`], but what the first list has is not told: whoever keeps something in many places waits for his caches
/// ([`once`]) and looks only where they say that something is to be done.
pub async fn follow_news_into<K, V>(
    api: Api<K>,
    config: watcher::Config,
    shutdown: Shutdown,
    cache: Arc<Cache<V>>,
    keep: impl Fn(K) -> V + Send + Sync,
    mut changed: impl FnMut(ObjectKey) + Send,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    V: Send + Sync,
{
    follow(api, config, shutdown, |event| {
        if !cache.is_synced() {
            cache.take_first(event, &keep);
            return;
        }
        cache.take(event, &keep).into_iter().for_each(&mut changed);
    })
    .await;
}

/// How soon to look again whether everything has been seen.
const UNTIL_SYNCED: Duration = Duration::from_millis(20);

/// Does something when everything has been seen, unless the end comes first.
pub async fn once(synced: impl Fn() -> bool + Send, mut shutdown: Shutdown, then: impl FnOnce() + Send) {
    while !synced() {
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(UNTIL_SYNCED) => {}
        }
    }
    then();
}
