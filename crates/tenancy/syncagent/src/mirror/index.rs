//! What the watches have seen, by the key of the original that it is about.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::cache::Cache;
use fairway_controller::{ObjectKey, Reach, WorkspaceId};
use fairway_kernel_tenancy::naming::original_of;
use fairway_kernel_tenancy::published::{GroupVersionResource, Origin, Served};
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::Event;
use serde_json::json;

/// Paths of workspaces that are remembered; when there are more, all are asked for again.
const MOST_PATHS: usize = 50_000;

fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which copy an original has. Clones share it.
#[derive(Clone)]
pub(super) struct Copies(Arc<Shared>);

struct Shared {
    /// By the place of the copy: its original.
    seen: Cache<Option<ObjectKey>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_original: HashMap<ObjectKey, (String, String)>,
    by_copy: HashMap<ObjectKey, ObjectKey>,
}

impl Default for Copies {
    fn default() -> Self {
        Self(Arc::new(Shared {
            seen: Cache::new(&Reach::One(WorkspaceId::root())),
            known: Mutex::default(),
        }))
    }
}

impl Copies {
    /// Takes an event in, and returns the originals to look at.
    pub(super) fn take(&self, event: Event<PartialObjectMeta<DynamicObject>>) -> Vec<ObjectKey> {
        let changed = self.0.seen.take(event, |copy| {
            let meta = json!({"metadata": {
                "labels": copy.metadata.labels, "annotations": copy.metadata.annotations,
            }});
            let (cluster, namespace, name) = original_of(&meta)?;
            let workspace = WorkspaceId::parse(cluster.as_str()).ok()?;
            Some(ObjectKey::new(&workspace, &namespace, &name))
        });
        let mut known = open(&self.0.known);
        let mut originals = Vec::new();
        for key in changed {
            let now = self.0.seen.get(&key).and_then(|it| (*it).clone());
            let before = match &now {
                Some(original) => known.by_copy.insert(key.clone(), original.clone()),
                None => known.by_copy.remove(&key),
            };
            let place = (key.namespace, key.name);
            if let Some(before) = before.filter(|it| Some(it) != now.as_ref()) {
                if known.by_original.get(&before) == Some(&place) {
                    known.by_original.remove(&before);
                }
                originals.push(before);
            }
            if let Some(original) = now {
                known.by_original.insert(original.clone(), place);
                originals.push(original);
            }
        }
        originals
    }

    /// Namespace and name of an original's copy.
    pub(super) fn of(&self, original: &ObjectKey) -> Option<(String, String)> {
        open(&self.0.known).by_original.get(original).cloned()
    }

    /// Notes a copy that was just made: it may have to go before the watch tells of it.
    pub(super) fn note(&self, original: &ObjectKey, namespace: &str, name: &str) {
        let mut known = open(&self.0.known);
        let place = (namespace.to_owned(), name.to_owned());
        known.by_original.insert(original.clone(), place);
    }

    pub(super) fn is_synced(&self) -> bool {
        self.0.seen.is_synced()
    }
}

/// On which side a related object is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Consumer(WorkspaceId),
    Service,
}

/// Where a related object is, or would be. An empty name means any, an empty namespace too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) relation: usize,
    side: Side,
    pub(super) namespace: String,
    name: String,
}

impl Place {
    pub(super) fn new(relation: usize, side: Side, namespace: &str, name: &str) -> Self {
        Self {
            relation,
            side,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Whom a change of a related object concerns. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<Mutex<Notes>>);

#[derive(Default)]
struct Notes {
    by_place: HashMap<Place, BTreeSet<ObjectKey>>,
    by_primary: HashMap<ObjectKey, Vec<Place>>,
    /// The copies on the service cluster that each published object has use for. Whoever is in here has been looked at.
    kept: HashMap<ObjectKey, Vec<Place>>,
    /// The copies that each is about to make.
    intended: HashMap<ObjectKey, Vec<Place>>,
    users: HashMap<Place, BTreeSet<ObjectKey>>,
}

impl Notes {
    fn drop_kept(&mut self, primary: &ObjectKey) -> Vec<Place> {
        let before = self.kept.remove(primary).unwrap_or_default();
        let intended = self.intended.remove(primary).unwrap_or_default();
        for copy in before.iter().chain(&intended) {
            if let Some(users) = self.users.get_mut(copy) {
                users.remove(primary);
                if users.is_empty() {
                    self.users.remove(copy);
                }
            }
        }
        before
    }
}

impl Watched {
    /// Notes what a published object looks at, in place of what it looked at before.
    pub(super) fn note(&self, primary: &ObjectKey, places: Vec<Place>) {
        let mut notes = open(&self.0);
        for place in notes.by_primary.remove(primary).unwrap_or_default() {
            if let Some(concerned) = notes.by_place.get_mut(&place) {
                concerned.remove(primary);
                if concerned.is_empty() {
                    notes.by_place.remove(&place);
                }
            }
        }
        for place in &places {
            let concerned = notes.by_place.entry(place.clone()).or_default();
            concerned.insert(primary.clone());
        }
        if !places.is_empty() {
            notes.by_primary.insert(primary.clone(), places);
        }
    }

    /// Notes a copy that a published object is about to make, so that nobody deletes it meanwhile.
    pub(super) fn intend(&self, primary: &ObjectKey, copy: &Place) {
        let mut notes = open(&self.0);
        notes
            .users
            .entry(copy.clone())
            .or_default()
            .insert(primary.clone());
        notes
            .intended
            .entry(primary.clone())
            .or_default()
            .push(copy.clone());
    }

    /// Notes which copies a published object has use for, and returns which it had before.
    pub(super) fn keep(&self, primary: &ObjectKey, copies: Vec<Place>) -> Vec<Place> {
        let mut notes = open(&self.0);
        let before = notes.drop_kept(primary);
        for copy in &copies {
            notes
                .users
                .entry(copy.clone())
                .or_default()
                .insert(primary.clone());
        }
        notes.kept.insert(primary.clone(), copies);
        before
    }

    /// Forgets a published object that is gone.
    pub(super) fn forget(&self, primary: &ObjectKey) {
        self.note(primary, Vec::new());
        open(&self.0).drop_kept(primary);
    }

    /// Whether a copy is of use to any published object.
    pub(super) fn is_kept(&self, copy: &Place) -> bool {
        open(&self.0).users.contains_key(copy)
    }

    /// Whether all of these have been looked at, so that what none of them keeps is of no use.
    pub(super) fn knows(&self, mut primaries: impl Iterator<Item = ObjectKey>) -> bool {
        let notes = open(&self.0);
        primaries.all(|it| notes.kept.contains_key(&it))
    }

    /// The published objects that look at a place.
    pub(super) fn concerned(&self, place: &Place) -> BTreeSet<ObjectKey> {
        let notes = open(&self.0);
        let mut any_name = place.clone();
        any_name.name.clear();
        let mut anywhere = any_name.clone();
        anywhere.namespace.clear();
        let found = [place, &any_name, &anywhere]
            .into_iter()
            .filter_map(|it| notes.by_place.get(it));
        found.flatten().cloned().collect()
    }
}

/// Paths of workspaces. A path does not change while the workspace lives.
#[derive(Default)]
pub(super) struct Paths(Mutex<HashMap<WorkspaceId, String>>);

impl Paths {
    pub(super) fn get(&self, workspace: &WorkspaceId) -> Option<String> {
        open(&self.0).get(workspace).cloned()
    }

    pub(super) fn put(&self, workspace: &WorkspaceId, path: &str) {
        let mut paths = open(&self.0);
        if paths.len() >= MOST_PATHS {
            paths.clear();
        }
        paths.insert(workspace.clone(), path.to_owned());
    }
}

/// Kinds of related objects, as each side serves them.
#[derive(Default)]
pub(super) struct Kinds(Mutex<HashMap<(bool, String), Served>>);

impl Kinds {
    fn key(origin: Origin, named: &GroupVersionResource) -> (bool, String) {
        (
            origin == Origin::Kcp,
            format!("{}/{}", named.discovery(), named.resource),
        )
    }

    pub(super) fn get(&self, origin: Origin, named: &GroupVersionResource) -> Option<Served> {
        open(&self.0).get(&Self::key(origin, named)).cloned()
    }

    pub(super) fn put(&self, origin: Origin, named: &GroupVersionResource, served: &Served) {
        open(&self.0).insert(Self::key(origin, named), served.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_concerns_those_who_look_there() {
        let root = WorkspaceId::root();
        let (a, b) = (ObjectKey::new(&root, "n", "a"), ObjectKey::new(&root, "n", "b"));
        let at = |side: Side, namespace: &str, name: &str| Place::new(0, side, namespace, name);
        let consumer = || Side::Consumer(root.clone());
        let watched = Watched::default();
        watched.note(&a, vec![at(consumer(), "n", "s"), at(Side::Service, "m", "")]);
        watched.note(&b, vec![at(consumer(), "", "")]);
        let concerned = |place: &Place| {
            let keys = watched.concerned(place).into_iter();
            keys.map(|key| key.name).collect::<Vec<_>>()
        };
        assert_eq!(concerned(&at(consumer(), "n", "s")), ["a", "b"]);
        assert_eq!(concerned(&at(consumer(), "n", "t")), ["b"]);
        assert_eq!(concerned(&at(Side::Service, "m", "x")), ["a"]);
        assert_eq!(concerned(&Place::new(1, Side::Service, "m", "x")), [""; 0]);
        let elsewhere = Side::Consumer(WorkspaceId::parse("other").unwrap());
        assert_eq!(concerned(&at(elsewhere, "n", "s")), [""; 0]);
        watched.note(&a, Vec::new());
        assert_eq!(concerned(&at(Side::Service, "m", "x")), [""; 0]);
    }

    #[test]
    fn a_copy_is_of_use_as_long_as_somebody_keeps_it() {
        let root = WorkspaceId::root();
        let (a, b) = (ObjectKey::new(&root, "n", "a"), ObjectKey::new(&root, "n", "b"));
        let copy = Place::new(0, Side::Service, "m", "s");
        let watched = Watched::default();
        assert!(!watched.knows([a.clone()].into_iter()));
        watched.keep(&a, vec![copy.clone()]);
        watched.keep(&b, vec![copy.clone()]);
        assert!(watched.knows([a.clone(), b.clone()].into_iter()));
        assert_eq!(watched.keep(&a, Vec::new()), std::slice::from_ref(&copy));
        assert!(watched.is_kept(&copy));
        watched.forget(&b);
        watched.intend(&b, &copy);
        assert!(watched.is_kept(&copy));
        watched.forget(&b);
        assert!(!watched.is_kept(&copy) && !watched.knows([b].into_iter()));
    }
}
