//! Which namespaces live, for controllers that keep an object in each. They share one watch.

use std::sync::{Arc, Mutex, PoisonError};

use fairway_controller::cache::Cache;
use fairway_controller::{Manager, Metadata, ObjectKey, Queue, Reach, watch};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource};
use kube::runtime::watcher;

use crate::users;

/// Whether each namespace lives.
pub(crate) struct LivingNamespaces {
    cache: Arc<Cache<bool>>,
    queues: Mutex<Vec<Queue<ObjectKey>>>,
}

impl LivingNamespaces {
    pub(crate) fn new(reach: &Reach) -> Self {
        Self {
            cache: Arc::new(Cache::new(reach)),
            queues: Mutex::default(),
        }
    }

    /// Makes every change of a namespace work for the queue, under the namespace's own key. What there is at the start is
    /// in the cache, and no work.
    pub(crate) fn tell(&self, queue: &Queue<ObjectKey>) -> Arc<Cache<bool>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.push(queue.clone());
        Arc::clone(&self.cache)
    }

    /// Begins to watch, when all who want to know have said so.
    pub(crate) fn follow(self, manager: &mut Manager) {
        let queues = self.queues.into_inner().unwrap_or_else(PoisonError::into_inner);
        let client = manager.clients(users::INFORMER).every();
        manager.spawn(watch::follow_news_into(
            Api::<Metadata>::all_with(client, &ApiResource::erase::<Namespace>(&())),
            watcher::Config::default(),
            manager.shutdown(),
            self.cache,
            |namespace: Metadata| namespace.metadata.deletion_timestamp.is_none(),
            move |key| queues.iter().for_each(|queue| queue.add(key.clone())),
        ));
    }
}
