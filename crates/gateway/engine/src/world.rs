//! What was seen of the API: what a build reads, and what writers compare with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairway_controller::{ObjectKey, Reach};
use fairway_gateway_routes::observed::{Kind, Name, Observed};
use fairway_gateway_routes::settings::GatewayName;
use serde_json::Value;
use tokio::sync::Notify;

use crate::kinds::{has_status, is_large};
use crate::services;

/// Which object.
pub(crate) type Id = (Kind, ObjectKey);

/// Shared by the watches, which fill it, and those who read it.
pub(crate) struct World {
    pub(crate) reach: Reach,
    seen: Mutex<Seen>,
    /// Something has changed that a build looks at.
    pub(crate) changed: Notify,
    /// There is a Gateway or a Route: kinds of which there are many have to be watched.
    needed: tokio::sync::watch::Sender<bool>,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) observed: Observed,
    /// Objects with a status, as it was last seen.
    pub(crate) current: HashMap<Id, Current>,
    /// Services and EndpointSlices that are ours.
    pub(crate) own: BTreeMap<Id, Value>,
    /// What each kind's watch has brought, so that a new list tells what has vanished.
    keys: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    synced: BTreeSet<Kind>,
}

/// What a writer must know of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Current {
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) status: Value,
    /// `spec.infrastructure` of Gateways: what is written on what is made for them.
    pub(crate) infrastructure: Value,
    /// Of everything but the status.
    print: u64,
}

impl Current {
    /// Whether nothing but the status has changed.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.print == other.print && self.uid == other.uid
    }
}

impl World {
    pub(crate) fn new(reach: &Reach) -> Self {
        Self {
            reach: reach.clone(),
            seen: Mutex::default(),
            changed: Notify::new(),
            needed: tokio::sync::watch::channel(false).0,
        }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to serve.
    pub(crate) async fn until_needed(&self) {
        // The sender lives as long as this does.
        let _ = self.needed.subscribe().wait_for(|needed| *needed).await.is_ok();
    }

    /// Whether everything that a build looks at has been listed.
    pub(crate) fn is_synced(&self) -> bool {
        let needed = *self.needed.borrow();
        let seen = self.seen();
        let mut waited_for = Kind::ALL.iter().filter(|kind| needed || !is_large(**kind));
        waited_for.all(|kind| seen.synced.contains(kind))
    }

    /// An object is there, or has changed.
    pub(crate) fn put(&self, kind: Kind, key: ObjectKey, object: &mut Value) {
        if matches!(kind, Kind::Gateway | Kind::Route) {
            self.needed
                .send_if_modified(|needed| !std::mem::replace(needed, true));
        }
        if self.seen().put(kind, key, object) {
            self.changed.notify_one();
        }
    }

    pub(crate) fn remove(&self, kind: Kind, key: &ObjectKey) {
        if self.seen().remove(kind, key) {
            self.changed.notify_one();
        }
    }

    /// A list is complete: what it did not bring is gone.
    pub(crate) fn listed(&self, kind: Kind, brought: &BTreeSet<ObjectKey>) {
        let mut seen = self.seen();
        let gone: Vec<ObjectKey> = (seen.keys.entry(kind).or_default())
            .difference(brought)
            .cloned()
            .collect();
        for key in &gone {
            seen.remove(kind, key);
        }
        seen.synced.insert(kind);
        drop(seen);
        self.changed.notify_one();
    }
}

impl Seen {
    /// All Gateways, whoever serves them.
    pub(crate) fn gateways(&self) -> BTreeSet<GatewayName> {
        let all = self.observed.workspaces.iter();
        let named = all.flat_map(|(workspace, held)| {
            held.gateways.keys().map(|name| GatewayName {
                workspace: workspace.clone(),
                name: name.clone(),
            })
        });
        named.collect()
    }

    /// `false`: nothing has changed that a build looks at.
    fn put(&mut self, kind: Kind, key: ObjectKey, object: &mut Value) -> bool {
        let id = (kind, key);
        let mut is_news = true;
        if has_status(kind) {
            let current = current(object);
            let before = self.current.get(&id);
            is_news = before.is_none_or(|before| !before.is_same(&current));
            self.current.insert(id.clone(), current);
        }
        if matches!(kind, Kind::Service | Kind::EndpointSlice) {
            match services::is_own(object) {
                true => drop(self.own.insert(id.clone(), object.clone())),
                false => drop(self.own.remove(&id)),
            }
        }
        let (kind, key) = id;
        if is_news {
            self.observed.put(key.workspace.as_str(), kind, object);
        }
        self.keys.entry(kind).or_default().insert(key);
        is_news
    }

    /// `false`: it was not there.
    fn remove(&mut self, kind: Kind, key: &ObjectKey) -> bool {
        let known = self.keys.get_mut(&kind).is_some_and(|keys| keys.remove(key));
        if !known {
            return false;
        }
        let name = Name::new(key.namespace.clone(), key.name.clone());
        self.observed.remove(key.workspace.as_str(), kind, &name);
        let id = (kind, key.clone());
        self.current.remove(&id);
        self.own.remove(&id);
        true
    }
}

/// Takes the status out of an object, and what changes with every write.
pub(crate) fn current(object: &mut Value) -> Current {
    let text = |pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (uid, version) = (text("/metadata/uid"), text("/metadata/resourceVersion"));
    let status = object.get_mut("status").map(Value::take).unwrap_or_default();
    let infrastructure = object
        .pointer("/spec/infrastructure")
        .cloned()
        .unwrap_or_default();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    Current {
        uid,
        version,
        status,
        infrastructure,
        print: hasher.finish(),
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_build_looks_at_is_news() {
        let world = World::new(&Reach::Every);
        let key = ObjectKey::new(&WorkspaceId::root(), "n", "g");
        let gateway = |generation: i64, version: &str, status: &str| {
            json!({
                "metadata": {"namespace": "n", "name": "g", "uid": "u", "resourceVersion": version, "generation": generation},
                "spec": {"gatewayClassName": "fairway", "listeners": []}, "status": {"a": status},
            })
        };
        let put = |mut object: Value| world.seen().put(Kind::Gateway, key.clone(), &mut object);
        for (generation, version, status, news, reason) in [
            (1, "1", "x", true, "it is new"),
            (1, "2", "y", false, "the status alone"),
            (2, "3", "y", true, "the spec"),
        ] {
            assert_eq!(put(gateway(generation, version, status)), news, "{reason}");
        }
        let seen = world.seen();
        let current = &seen.current[&(Kind::Gateway, key.clone())];
        assert_eq!(
            (current.version.as_str(), &current.status),
            ("3", &json!({"a": "y"}))
        );
    }

    #[test]
    fn what_is_being_built_does_not_change() {
        let world = World::new(&Reach::Every);
        let put = |name: &str| {
            let key = ObjectKey::new(&WorkspaceId::root(), "n", name);
            let mut object = json!({"metadata": {"namespace": "n", "name": name}, "spec": {}});
            world.put(Kind::Gateway, key, &mut object);
        };
        put("a");
        let before = world.seen().observed.clone();
        put("b");
        let after = world.seen().observed.clone();
        let gateways = |observed: &Observed| observed.workspaces["root"].gateways.clone();
        assert_eq!((gateways(&before).len(), gateways(&after).len()), (1, 2));
        for (name, gateway) in gateways(&before).iter() {
            assert!(
                std::sync::Arc::ptr_eq(gateway, &gateways(&after)[name]),
                "objects are shared"
            );
        }
    }

    #[test]
    fn a_list_tells_what_has_vanished() {
        let world = World::new(&Reach::Every);
        let key = |name| ObjectKey::new(&WorkspaceId::root(), "n", name);
        for name in ["a", "b"] {
            let mut object = json!({"metadata": {"namespace": "n", "name": name}, "spec": {}});
            world.put(Kind::Gateway, key(name), &mut object);
        }
        world.listed(Kind::Gateway, &[key("b")].into());
        let seen = world.seen();
        assert_eq!(seen.observed.workspaces["root"].gateways.len(), 1);
        assert_eq!(seen.current.len(), 1);
    }
}
