//! Watches that keep views of objects and tell only of what has changed in them: most writes of a status change nothing
//! that matters here.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use fairway_api::Kind;
use fairway_controller::cache::Cache;
use fairway_controller::{Clients, Json, ObjectKey, Reach, Shutdown, watch};
use kube::api::Api;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::runtime::watcher::{Config, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::resource;

/// What was kept of an object before and what is kept now.
pub(crate) struct Change<'c, V> {
    pub(crate) key: &'c ObjectKey,
    pub(crate) before: Option<&'c V>,
    pub(crate) now: Option<&'c V>,
}

/// Takes an event in and tells what it changed.
pub(crate) fn take<K: Resource, V: PartialEq>(
    cache: &Cache<V>,
    event: Event<K>,
    keep: impl FnOnce(K) -> V,
    mut changed: impl FnMut(Change<'_, V>),
) {
    let before: BTreeMap<ObjectKey, Arc<V>> = match &event {
        Event::Init | Event::InitApply(_) => BTreeMap::new(),
        Event::InitDone => cache.all().into_iter().collect(),
        Event::Apply(object) | Event::Delete(object) => {
            let key = cache.key_of(object.meta());
            cache.get(&key).map(|known| (key, known)).into_iter().collect()
        }
    };
    for key in cache.take(event, keep) {
        let (before, now) = (before.get(&key), cache.get(&key));
        if before != now.as_ref() {
            changed(Change {
                key: &key,
                before: before.map(AsRef::as_ref),
                now: now.as_deref(),
            });
        }
    }
}

/// Follows a kind over all workspaces into a cache.
pub(crate) async fn follow<V: PartialEq + Send + Sync>(
    clients: Clients,
    kind: Kind,
    config: Config,
    shutdown: Shutdown,
    cache: Arc<Cache<V>>,
    read: impl Fn(&ObjectKey, &Value) -> V + Send + Sync,
    changed: impl FnMut(Change<'_, V>) + Send,
) {
    let keep = move |key: &ObjectKey, object: Json| read(key, &object.value);
    follow_in(clients.every(), kind, config, shutdown, cache, keep, changed).await;
}

/// The same, for what a client reaches and as much of objects as `K` reads.
pub(crate) async fn follow_in<K, V>(
    client: Client,
    kind: Kind,
    config: Config,
    shutdown: Shutdown,
    cache: Arc<Cache<V>>,
    keep: impl Fn(&ObjectKey, K) -> V + Send + Sync,
    mut changed: impl FnMut(Change<'_, V>) + Send,
) where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
    V: PartialEq + Send + Sync,
{
    let api: Api<K> = Api::all_with(client, &resource(&kind));
    watch::follow(api, config, shutdown, |event| {
        let keep = |object: K| keep(&cache.key_of(object.meta()), object);
        take(&cache, event, keep, &mut changed);
    })
    .await;
}

/// Whether something is needed that costs memory, such as a watch. It is needed from the first time on.
#[derive(Clone)]
pub(crate) struct Needed(Arc<tokio::sync::watch::Sender<bool>>);

impl Needed {
    pub(crate) fn new() -> Self {
        Self(Arc::new(tokio::sync::watch::channel(false).0))
    }

    /// Says that it is.
    pub(crate) fn now(&self) {
        self.0.send_if_modified(|needed| !std::mem::replace(needed, true));
    }

    /// Waits until it is.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as this does.
        let _ = self.0.subscribe().wait_for(|needed| *needed).await.is_ok();
    }

    /// Runs a task once it is needed.
    pub(crate) fn then<F: Future<Output = ()> + Send>(
        &self,
        mut shutdown: Shutdown,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F> {
        let mut needed = self.0.subscribe();
        async move {
            let is_needed = async { needed.wait_for(|needed| *needed).await.is_ok() };
            let is_needed = tokio::select! {
                () = shutdown.wait() => false,
                is_needed = is_needed => is_needed,
            };
            if is_needed {
                task.await;
            }
        }
    }
}

/// The workspace of an object that was read as JSON.
pub(crate) fn workspace_of(reach: &Reach, object: &Value) -> fairway_controller::WorkspaceId {
    let annotations = object.pointer("/metadata/annotations");
    let annotations = annotations
        .and_then(|all| all.get(fairway_controller::key::CLUSTER_ANNOTATION))
        .and_then(Value::as_str)
        .map(|id| {
            [(
                fairway_controller::key::CLUSTER_ANNOTATION.to_owned(),
                id.to_owned(),
            )]
            .into()
        });
    reach.workspace_of(&kube::api::ObjectMeta {
        annotations,
        ..Default::default()
    })
}
