//! What the catalog knows without asking: an index of entities for each workspace, fed by watches, and which location reads which file.
//!
//! A request reads an index; a watch writes it. Objects of other parts that are entities, too (users, groups, templates) come beside
//! those from files, which win where both speak of the same entity: a file says more.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairway_controller::{Clients, Json, Manager, ObjectKey, Queue, Reach, WorkspaceId, watch};
use fairway_portal_entity::{EntityRef, Index, Record, object};
use kube::api::Api;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use crate::{Catalog, kinds};

/// How soon to look again whether everything has been seen.
const UNTIL_SYNCED: Duration = Duration::from_millis(20);

/// A kind of another part whose objects are entities.
#[derive(Clone)]
pub struct Foreign {
    /// The kind.
    pub resource: ApiResource,
    /// The entity that an object is; none if it is none.
    pub entity: fn(&Value) -> Option<Value>,
}

/// A workspace.
#[derive(Debug, Default)]
struct Place {
    index: Index,
    /// References by the objects that entities come from. The first part is the kind's plural.
    objects: HashMap<(String, ObjectKey), String>,
    /// Entities of other parts, also those that are not shown because a file has them.
    foreign: HashMap<String, Record>,
    /// References that files have.
    own: HashSet<String>,
}

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Known {
    places: RwLock<HashMap<WorkspaceId, Arc<RwLock<Place>>>>,
    readers: RwLock<Readers>,
    repositories: Queue<ObjectKey>,
    /// Watches that have not seen everything yet.
    missing: AtomicUsize,
}

/// Who reads what.
#[derive(Debug, Default)]
struct Readers {
    by_file: HashMap<String, HashSet<ObjectKey>>,
    by_repository: HashMap<String, HashSet<ObjectKey>>,
    of_location: HashMap<ObjectKey, (Vec<String>, Vec<String>)>,
    /// Locations that have read an entity which another location has, by the entity's object, and the other way round.
    waiting: HashMap<ObjectKey, HashSet<ObjectKey>>,
    awaited: HashMap<ObjectKey, Vec<String>>,
}

impl Readers {
    fn set(&mut self, key: &ObjectKey, files: Vec<String>, repositories: Vec<String>) {
        self.forget(key);
        for file in &files {
            self.by_file.entry(file.clone()).or_default().insert(key.clone());
        }
        for repository in &repositories {
            let of_repository = self.by_repository.entry(repository.clone()).or_default();
            of_repository.insert(key.clone());
        }
        self.of_location.insert(key.clone(), (files, repositories));
    }

    /// Notes which entities a location waits for; whether they are others than before.
    fn wait(&mut self, key: &ObjectKey, names: Vec<String>) -> bool {
        let before = self.awaited.remove(key).unwrap_or_default();
        let differ = before != names;
        for name in before {
            let entity = ObjectKey::new(&key.workspace, "", &name);
            if let Some(waiting) = self.waiting.get_mut(&entity) {
                waiting.remove(key);
                if waiting.is_empty() {
                    self.waiting.remove(&entity);
                }
            }
        }
        for name in &names {
            let entity = ObjectKey::new(&key.workspace, "", name);
            self.waiting.entry(entity).or_default().insert(key.clone());
        }
        if !names.is_empty() {
            self.awaited.insert(key.clone(), names);
        }
        differ
    }

    fn forget(&mut self, key: &ObjectKey) {
        let Some((files, repositories)) = self.of_location.remove(key) else {
            return;
        };
        let drop = |map: &mut HashMap<String, HashSet<ObjectKey>>, names: Vec<String>| {
            for name in names {
                if let Some(keys) = map.get_mut(&name) {
                    keys.remove(key);
                    if keys.is_empty() {
                        map.remove(&name);
                    }
                }
            }
        };
        drop(&mut self.by_file, files);
        drop(&mut self.by_repository, repositories);
    }
}

impl Known {
    /// Knows nothing, until so many watches have seen everything.
    pub(crate) fn waiting_for(watches: usize) -> Self {
        Self {
            missing: AtomicUsize::new(watches),
            ..Self::default()
        }
    }

    /// Asks an index; an empty one for a workspace without entities.
    pub(crate) fn ask<T>(&self, workspace: &WorkspaceId, question: impl FnOnce(&Index) -> T) -> T {
        let place = {
            let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
            places.get(workspace).cloned()
        };
        match place {
            Some(place) => question(&place.read().unwrap_or_else(PoisonError::into_inner).index),
            None => question(&Index::default()),
        }
    }

    /// Waits until everything has been seen; whether it has.
    pub(crate) async fn synced(&self, limit: Duration) -> bool {
        let waiting = async {
            while self.missing.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(UNTIL_SYNCED).await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    /// Repositories that are to be looked into.
    pub(crate) fn repositories(&self) -> Queue<ObjectKey> {
        self.repositories.clone()
    }

    /// Notes what a location reads.
    pub(crate) fn reads(&self, key: &ObjectKey, files: Vec<String>, repositories: Vec<String>) {
        let mut readers = self.readers.write().unwrap_or_else(PoisonError::into_inner);
        readers.set(key, files, repositories);
    }

    /// Notes which entities a location has read and cannot have, because another one has them; whether any of them is new. Then it is to
    /// look once more: what has gone before it was noted is told to nobody.
    pub(crate) fn awaits(&self, key: &ObjectKey, names: Vec<String>) -> bool {
        let mut readers = self.readers.write().unwrap_or_else(PoisonError::into_inner);
        let is_waiting = !names.is_empty();
        readers.wait(key, names) && is_waiting
    }

    /// A location is gone.
    pub(crate) fn reads_no_more(&self, key: &ObjectKey) {
        let mut readers = self.readers.write().unwrap_or_else(PoisonError::into_inner);
        readers.forget(key);
        readers.wait(key, Vec::new());
    }

    /// An entity is free: it is gone, or an orphan. Whoever waits for it takes it over.
    fn freed(&self, entity: &ObjectKey, locations: &Queue<ObjectKey>) {
        let readers = self.readers.read().unwrap_or_else(PoisonError::into_inner);
        for key in readers.waiting.get(entity).into_iter().flatten() {
            locations.add(key.clone());
        }
    }

    /// A repository has moved: `owner/name` as addresses have it.
    pub(crate) fn pushed(
        &self,
        workspace: &WorkspaceId,
        owner: &str,
        name: &str,
        locations: &Queue<ObjectKey>,
    ) {
        self.repositories.add(ObjectKey::new(workspace, "", name));
        let readers = self.readers.read().unwrap_or_else(PoisonError::into_inner);
        let keys = readers.by_repository.get(&format!("{owner}/{name}"));
        for key in keys.into_iter().flatten() {
            locations.add(key.clone());
        }
    }

    /// An entity of a file has gone: whoever reads the file says whether it comes back.
    fn gone(&self, object: &Value, locations: &Queue<ObjectKey>) {
        let Some(file) = object.pointer("/spec/file").and_then(Value::as_str) else {
            return;
        };
        let readers = self.readers.read().unwrap_or_else(PoisonError::into_inner);
        for key in readers.by_file.get(file).into_iter().flatten() {
            locations.add(key.clone());
        }
    }

    /// Forgets an entity that was deleted a moment ago: who deleted it does not want to see it in his next list.
    pub(crate) fn forget(&self, workspace: &WorkspaceId, name: &str) {
        let key = (kinds::ENTITIES.to_owned(), ObjectKey::new(workspace, "", name));
        self.change(workspace, |place| place.remove(&key));
    }

    fn change(&self, workspace: &WorkspaceId, change: impl FnOnce(&mut Place)) {
        let place = {
            let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(places.entry(workspace.clone()).or_default())
        };
        let is_empty = {
            let mut place = place.write().unwrap_or_else(PoisonError::into_inner);
            change(&mut place);
            place.objects.is_empty()
        };
        if is_empty {
            let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have put something there meanwhile.
            let still = places
                .get(workspace)
                .is_some_and(|place| place.read().is_ok_and(|place| place.objects.is_empty()));
            if still {
                places.remove(workspace);
            }
        }
    }
}

impl Place {
    /// Takes an object in. `own`: it comes from a file.
    fn insert(&mut self, key: (String, ObjectKey), record: Option<Record>, own: bool) {
        let reference = record
            .as_ref()
            .and_then(|record| EntityRef::of(&record.entity))
            .map(|reference| reference.to_string());
        if self.objects.get(&key) != reference.as_ref() {
            self.remove(&key);
        }
        let (Some(record), Some(reference)) = (record, reference) else {
            return;
        };
        self.objects.insert(key, reference.clone());
        match own {
            true => {
                self.index.insert(&record);
                self.own.insert(reference);
            }
            false => {
                if !self.own.contains(&reference) {
                    self.index.insert(&record);
                }
                self.foreign.insert(reference, record);
            }
        }
    }

    fn remove(&mut self, key: &(String, ObjectKey)) {
        let Some(reference) = self.objects.remove(key) else {
            return;
        };
        if key.0 == kinds::ENTITIES {
            self.own.remove(&reference);
            self.index.remove(&reference);
            if let Some(other) = self.foreign.get(&reference) {
                self.index.insert(other);
            }
        } else {
            self.foreign.remove(&reference);
            if !self.own.contains(&reference) {
                self.index.remove(&reference);
            }
        }
    }
}

/// What a watch feeds: one kind.
struct Feed {
    known: Arc<Known>,
    locations: Queue<ObjectKey>,
    reach: Reach,
    kind: String,
    read: Read,
    /// What a list has brought until now.
    listed: Option<HashSet<ObjectKey>>,
    is_synced: bool,
}

enum Read {
    Own,
    Foreign(fn(&Value) -> Option<Value>),
}

impl Feed {
    fn take(&mut self, event: Event<Json>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(object) | Event::Apply(object) => {
                let key = ObjectKey::of(&self.reach, &object.metadata);
                if let Some(listed) = &mut self.listed {
                    listed.insert(key.clone());
                }
                let record = self.record(&object);
                let own = matches!(self.read, Read::Own);
                if own && object.value.pointer("/spec/orphan") == Some(&Value::Bool(true)) {
                    self.known.freed(&key, &self.locations);
                }
                let workspace = key.workspace.clone();
                let kind = self.kind.clone();
                self.known
                    .change(&workspace, |place| place.insert((kind, key), record, own));
            }
            Event::Delete(object) => {
                let key = ObjectKey::of(&self.reach, &object.metadata);
                let workspace = key.workspace.clone();
                let (kind, entity) = (self.kind.clone(), key.clone());
                self.known.change(&workspace, |place| place.remove(&(kind, key)));
                if matches!(self.read, Read::Own) {
                    self.known.gone(&object.value, &self.locations);
                    self.known.freed(&entity, &self.locations);
                }
            }
            Event::InitDone => {
                self.forget_others();
                if !self.is_synced {
                    self.is_synced = true;
                    self.known.missing.fetch_sub(1, Ordering::AcqRel);
                }
            }
        }
    }

    /// What was deleted while nobody looked is told by no event.
    fn forget_others(&mut self) {
        let Some(listed) = self.listed.take() else {
            return;
        };
        let places: Vec<(WorkspaceId, Arc<RwLock<Place>>)> = {
            let places = self.known.places.read().unwrap_or_else(PoisonError::into_inner);
            places
                .iter()
                .map(|(id, place)| (id.clone(), Arc::clone(place)))
                .collect()
        };
        for (workspace, place) in places {
            let gone: Vec<(String, ObjectKey)> = {
                let place = place.read().unwrap_or_else(PoisonError::into_inner);
                let ours = place.objects.keys().filter(|(kind, _)| *kind == self.kind);
                ours.filter(|(_, key)| !listed.contains(key)).cloned().collect()
            };
            for key in gone {
                self.known.change(&workspace, |place| place.remove(&key));
                self.known.freed(&key.1, &self.locations);
            }
        }
    }

    fn record(&self, object: &Json) -> Option<Record> {
        match self.read {
            Read::Own => object::read_entity(&object.value),
            Read::Foreign(entity) => Some(Record {
                uid: object.metadata.uid.clone().unwrap_or_default(),
                entity: entity(&object.value)?,
                location: String::new(),
                parent: None,
            }),
        }
    }
}

/// Starts the watches.
pub(crate) fn start(manager: &mut Manager, clients: &Clients, catalog: &Arc<Catalog>) {
    let foreign = catalog.options.foreign.iter();
    let all = std::iter::once((
        kinds::entities(clients.every()),
        kinds::ENTITIES.to_owned(),
        Read::Own,
    ))
    .chain(foreign.map(|foreign| {
        let api: Api<Json> = Api::all_with(clients.every(), &foreign.resource);
        let name = format!("{}.{}", foreign.resource.plural, foreign.resource.group);
        (api, name, Read::Foreign(foreign.entity))
    }));
    for (api, kind, read) in all {
        let mut feed = Feed {
            known: Arc::clone(&catalog.known),
            locations: catalog.locations.clone(),
            reach: clients.reach().clone(),
            kind,
            read,
            listed: None,
            is_synced: false,
        };
        let config = watcher::Config::default();
        manager.spawn(watch::follow(api, config, manager.shutdown(), move |event| {
            feed.take(event);
        }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(name: &str, title: &str) -> Record {
        Record {
            uid: title.to_owned(),
            entity: json!({
                "apiVersion": "backstage.io/v1alpha1", "kind": "User", "metadata": {"name": name}, "spec": {"memberOf": []},
            }),
            location: String::new(),
            parent: None,
        }
    }

    #[test]
    fn a_file_says_more_than_another_part() {
        let key = |kind: &str| (kind.to_owned(), ObjectKey::new(&WorkspaceId::root(), "", "x"));
        let mut place = Place::default();
        let uid = |place: &Place| {
            place
                .index
                .get("user:default/jo")
                .map(|found| found.uid().to_owned())
        };
        place.insert(key("users"), Some(record("jo", "realm")), false);
        assert_eq!(uid(&place).as_deref(), Some("realm"));
        place.insert(key(kinds::ENTITIES), Some(record("jo", "file")), true);
        assert_eq!(uid(&place).as_deref(), Some("file"));
        place.insert(key("users"), Some(record("jo", "realm-2")), false);
        assert_eq!(uid(&place).as_deref(), Some("file"));
        place.remove(&key(kinds::ENTITIES));
        assert_eq!(uid(&place).as_deref(), Some("realm-2"));
        place.remove(&key("users"));
        assert!(place.index.is_empty() && place.objects.is_empty());
        // An object that says something else now.
        place.insert(key("users"), Some(record("jo", "a")), false);
        place.insert(key("users"), Some(record("eve", "a")), false);
        assert!(uid(&place).is_none() && place.index.len() == 1);
        place.insert(key("users"), None, false);
        assert!(place.index.is_empty());
    }

    #[test]
    fn readers_of_files_are_found() {
        let known = Known::default();
        let locations: Queue<ObjectKey> = Queue::default();
        let key = ObjectKey::new(&WorkspaceId::root(), "", "loc");
        known.reads(&key, vec!["url:f".to_owned()], vec!["root/app".to_owned()]);
        known.gone(&json!({"spec": {"file": "url:f"}}), &locations);
        assert_eq!(locations.depth(), 1);
        known.reads(&key, vec!["url:g".to_owned()], vec!["root/other".to_owned()]);
        let others: Queue<ObjectKey> = Queue::default();
        known.gone(&json!({"spec": {"file": "url:f"}}), &others);
        known.pushed(&WorkspaceId::root(), "root", "app", &others);
        assert_eq!(others.depth(), 0);
        known.pushed(&WorkspaceId::root(), "root", "other", &others);
        assert_eq!(others.depth(), 1);
        known.reads_no_more(&key);
        assert!(known.readers.read().unwrap().by_file.is_empty());
    }

    #[test]
    fn who_waits_for_an_entity_is_told_when_it_is_free() {
        let known = Known::default();
        let object = |name: &str| ObjectKey::new(&WorkspaceId::root(), "", name);
        let told = |name: &str| {
            let locations: Queue<ObjectKey> = Queue::default();
            known.freed(&object(name), &locations);
            locations.depth()
        };
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(known.awaits(&object("loc"), names(&["a", "b"])));
        assert!(!known.awaits(&object("loc"), names(&["a", "b"])), "nothing new");
        assert!(known.awaits(&object("other"), names(&["a"])));
        assert_eq!((told("a"), told("b"), told("c")), (2, 1, 0));
        assert!(known.awaits(&object("loc"), names(&["c"])));
        assert_eq!((told("a"), told("b"), told("c")), (1, 0, 1));
        assert!(!known.awaits(&object("loc"), Vec::new()), "it has everything");
        known.reads_no_more(&object("other"));
        let readers = known.readers.read().unwrap();
        assert!(readers.waiting.is_empty() && readers.awaited.is_empty());
    }
}
