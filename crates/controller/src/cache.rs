//! What a watch has seen, kept as small as the controller that asks needs it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use kube::Resource;
use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;

use crate::key::{ObjectKey, Reach, WorkspaceId};

/// A view of the objects of one kind, in the order of keys. `V` is what is kept of each: a few fields, seldom the whole object.
#[derive(Debug)]
pub struct Cache<V> {
    reach: Reach,
    seen: RwLock<Seen<V>>,
}

#[derive(Debug)]
struct Seen<V> {
    objects: BTreeMap<ObjectKey, Arc<V>>,
    /// The list under way, which replaces the objects when it is complete.
    relisted: Option<BTreeMap<ObjectKey, Arc<V>>>,
    synced: bool,
}

impl<V> Cache<V> {
    /// An empty cache.
    pub fn new(reach: &Reach) -> Self {
        Self {
            reach: reach.clone(),
            seen: RwLock::new(Seen {
                objects: BTreeMap::new(),
                relisted: None,
                synced: false,
            }),
        }
    }

    /// The key under which an object is kept.
    pub fn key_of(&self, meta: &ObjectMeta) -> ObjectKey {
        ObjectKey::of(&self.reach, meta)
    }

    /// Takes an event in and returns the keys to look at. A list that replaces an earlier one also names what has
    /// vanished meanwhile, so that no deletion is missed.
    pub fn take<K>(&self, event: Event<K>, keep: impl FnOnce(K) -> V) -> Vec<ObjectKey>
    where
        K: Resource,
    {
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Init => {
                seen.relisted = Some(BTreeMap::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                let key = ObjectKey::of(&self.reach, object.meta());
                let kept = Arc::new(keep(object));
                if let Some(list) = &mut seen.relisted {
                    list.insert(key, kept);
                }
                Vec::new()
            }
            Event::InitDone => {
                let list = seen.relisted.take().unwrap_or_default();
                let before = std::mem::replace(&mut seen.objects, list);
                seen.synced = true;
                let vanished = before.into_keys().filter(|key| !seen.objects.contains_key(key));
                let mut keys: Vec<ObjectKey> = vanished.collect();
                keys.extend(seen.objects.keys().cloned());
                keys
            }
            Event::Apply(object) => {
                let key = ObjectKey::of(&self.reach, object.meta());
                seen.objects.insert(key.clone(), Arc::new(keep(object)));
                vec![key]
            }
            Event::Delete(object) => {
                let key = ObjectKey::of(&self.reach, object.meta());
                seen.objects.remove(&key);
                vec![key]
            }
        }
    }

    /// Takes in an event of the first list, and names no keys: most need no look, and there may be very many.
    pub fn take_first<K: Resource>(&self, event: Event<K>, keep: impl FnOnce(K) -> V) {
        if !matches!(event, Event::InitDone) {
            self.take(event, keep);
            return;
        }
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        seen.objects = seen.relisted.take().unwrap_or_default();
        seen.synced = true;
    }

    /// The keys of the objects that are wanted. `wanted` must not ask this cache.
    pub fn keys_where(&self, mut wanted: impl FnMut(&ObjectKey, &V) -> bool) -> Vec<ObjectKey> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        let found = seen.objects.iter().filter(|(key, kept)| wanted(key, kept));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// What is kept of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.objects.get(key).cloned()
    }

    /// Every object that there is, in the order of keys.
    pub fn all(&self) -> Vec<(ObjectKey, Arc<V>)> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.objects
            .iter()
            .map(|(k, v)| (k.clone(), Arc::clone(v)))
            .collect()
    }

    /// The objects of a workspace.
    pub fn of_workspace(&self, workspace: &WorkspaceId) -> Vec<(ObjectKey, Arc<V>)> {
        self.range(ObjectKey::new(workspace, "", ""), |key| {
            key.workspace == *workspace
        })
    }

    /// The objects of a namespace.
    pub fn of_namespace(&self, workspace: &WorkspaceId, namespace: &str) -> Vec<(ObjectKey, Arc<V>)> {
        self.range(ObjectKey::new(workspace, namespace, ""), |key| {
            key.workspace == *workspace && key.namespace == namespace
        })
    }

    fn range(&self, from: ObjectKey, within: impl Fn(&ObjectKey) -> bool) -> Vec<(ObjectKey, Arc<V>)> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.objects
            .range((Bound::Included(from), Bound::Unbounded))
            .take_while(|(key, _)| within(key))
            .map(|(k, v)| (k.clone(), Arc::clone(v)))
            .collect()
    }

    /// Whether the first list is complete. Before that, absence means nothing.
    pub fn is_synced(&self) -> bool {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).synced
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;
    use kube::runtime::watcher::Event;

    use super::Cache;
    use crate::key::{CLUSTER_ANNOTATION, Reach, WorkspaceId};

    fn named(name: &str) -> ConfigMap {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        ConfigMap {
            metadata,
            ..ConfigMap::default()
        }
    }

    #[test]
    fn a_new_list_names_what_has_vanished() {
        let cache = Cache::new(&Reach::Every);
        let take = |event: Event<ConfigMap>| {
            let mut names: Vec<String> = cache
                .take(event, |_| ())
                .into_iter()
                .map(|key| key.name)
                .collect();
            names.sort();
            names
        };
        assert!(take(Event::Init).is_empty());
        assert!(take(Event::InitApply(named("a"))).is_empty());
        assert!(take(Event::InitApply(named("b"))).is_empty());
        assert!(!cache.is_synced());
        assert_eq!(take(Event::InitDone), ["a", "b"]);
        assert!(cache.is_synced());
        assert_eq!(take(Event::Apply(named("c"))), ["c"]);
        assert_eq!(take(Event::Delete(named("a"))), ["a"]);
        assert_eq!(cache.keys_where(|key, ()| key.name == "b").len(), 1);
        assert!(take(Event::Init).is_empty());
        assert_eq!(
            cache.all().len(),
            2,
            "the old list counts until the new one is complete"
        );
        assert!(take(Event::InitApply(named("c"))).is_empty());
        assert_eq!(take(Event::InitDone), ["b", "c"]);
        assert_eq!(cache.all().len(), 1);
    }

    #[test]
    fn a_first_list_can_be_taken_in_silence() {
        let cache = Cache::new(&Reach::Every);
        for event in [
            Event::Init,
            Event::InitApply(named("a")),
            Event::InitApply(named("b")),
        ] {
            cache.take_first(event, |_: ConfigMap| ());
            assert!(!cache.is_synced() && cache.all().is_empty());
        }
        cache.take_first(Event::<ConfigMap>::InitDone, |_| ());
        assert!(cache.is_synced());
        assert_eq!(cache.all().len(), 2);
    }

    #[test]
    fn workspaces_and_namespaces_are_kept_apart() {
        let cache = Cache::new(&Reach::Every);
        let at = |workspace: &str, namespace: &str, name: &str| {
            let mut object = named(name);
            object.metadata.namespace = Some(namespace.to_owned());
            object.metadata.annotations =
                Some([(CLUSTER_ANNOTATION.to_owned(), workspace.to_owned())].into());
            object
        };
        for (workspace, namespace) in [("a", "n"), ("a", "nn"), ("ab", "n"), ("root", "n")] {
            for name in ["x", "y"] {
                cache.take(Event::Apply(at(workspace, namespace, name)), |_| ());
            }
        }
        let a = WorkspaceId::parse("a").unwrap();
        let keys = |found: Vec<(crate::ObjectKey, _)>| {
            let keys = found
                .into_iter()
                .map(|(key, _): (_, std::sync::Arc<()>)| key.to_string());
            keys.collect::<Vec<_>>()
        };
        assert_eq!(
            keys(cache.of_workspace(&a)),
            ["a|n/x", "a|n/y", "a|nn/x", "a|nn/y"]
        );
        assert_eq!(keys(cache.of_namespace(&a, "n")), ["a|n/x", "a|n/y"]);
        assert_eq!(keys(cache.of_namespace(&WorkspaceId::root(), "nn")), [""; 0]);
        cache.take(Event::Delete(at("a", "n", "x")), |_| ());
        assert_eq!(cache.all().len(), 7, "the same name in other workspaces stays");
    }
}
