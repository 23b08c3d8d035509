//! Which namespaces live, for controllers that keep an object in each.

use std::sync::Arc;

use fairway_controller::cache::Cache;
use fairway_controller::{Manager, ObjectKey, Queue, watch};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PartialObjectMeta};
use kube::runtime::watcher;

use crate::{Setup, users};

/// Whether each namespace lives. Every change of one is work for the queue, under the namespace's own key.
pub(crate) fn follow(manager: &mut Manager, setup: &Setup, queue: &Queue<ObjectKey>) -> Arc<Cache<bool>> {
    let namespaces = Arc::new(Cache::new(&setup.workspace));
    let sink = queue.clone();
    manager.spawn(watch::follow_into(
        Api::<PartialObjectMeta<Namespace>>::all(manager.client(&setup.workspace, users::INFORMER)),
        watcher::Config::default(),
        manager.shutdown(),
        Arc::clone(&namespaces),
        |namespace| namespace.metadata.deletion_timestamp.is_none(),
        move |key| sink.add(key),
    ));
    namespaces
}
