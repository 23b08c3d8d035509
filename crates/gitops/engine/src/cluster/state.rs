//! What is known of a place. It knows no clock and no client: watches and writes tell it, and it says whom to wake.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fairway_controller::kinds::{GroupResource, Kind};
use fairway_controller::{ObjectKey, ShutdownTrigger, WorkspaceId};
use fairway_gitops_sync::annotation;
use fairway_gitops_sync::key::ResourceKey;
use fairway_gitops_sync::tracking::DEFAULT_LABEL;
use serde_json::Value;

use super::family::Family;

/// An object in its workspace.
type Place = (WorkspaceId, ResourceKey);

/// A marked object.
#[derive(Debug)]
struct Held {
    version: u64,
    /// Of which watch.
    resource: Arc<GroupResource>,
    marks: Vec<Box<str>>,
    uid: Box<str>,
    text: Arc<[u8]>,
}

/// A watch that runs.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) resource: Arc<GroupResource>,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) users: HashSet<ObjectKey>,
    pub(super) is_listed: bool,
    /// What the list under way has seen, to find what has vanished.
    relisted: Option<HashSet<Place>>,
    /// Ends the watch when it is dropped.
    pub(super) _end: ShutdownTrigger,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) watches: BTreeMap<GroupResource, Watch>,
    objects: HashMap<Place, Held>,
    /// By what they are marked with.
    by_mark: HashMap<(WorkspaceId, Box<str>), BTreeSet<ResourceKey>>,
    /// Who wants to hear of an object.
    interested: HashMap<Place, Vec<ObjectKey>>,
    interests: HashMap<ObjectKey, (WorkspaceId, BTreeSet<ResourceKey>)>,
    /// Applications by their mark: an object may be marked that its application has not declared.
    instances: HashMap<(WorkspaceId, Box<str>), Vec<ObjectKey>>,
    waiting: HashSet<ObjectKey>,
    /// Labels that mark, beside the default one.
    labels: BTreeSet<String>,
    /// Who owns whom, among all objects of watched kinds.
    pub(super) family: Family,
    /// Marked objects by their UIDs.
    by_uid: HashMap<(WorkspaceId, Box<str>), ResourceKey>,
    /// Kinds that are watched for an application because its objects have children of them.
    pub(super) child_kinds: HashMap<ObjectKey, Vec<Arc<Kind>>>,
    /// What has gone lately, and at which version: the answer to a deletion may come after the news that it is done.
    gone: HashMap<Place, u64>,
}

/// How many of those that have gone are remembered.
const GONE: usize = 4096;

impl Watch {
    pub(super) fn new(kind: &Kind, end: ShutdownTrigger) -> Self {
        Self {
            resource: Arc::new(kind.name()),
            group: kind.resource.group.clone(),
            kind: kind.resource.kind.clone(),
            users: HashSet::new(),
            is_listed: false,
            relisted: None,
            _end: end,
        }
    }
}

impl State {
    pub(super) fn first_unlisted(&self, kinds: &[Arc<Kind>]) -> Option<GroupResource> {
        let is_open = |name: &GroupResource| !self.watches.get(name).is_some_and(|watch| watch.is_listed);
        kinds.iter().map(|kind| kind.name()).find(is_open)
    }

    pub(super) fn interest(
        &mut self,
        application: &ObjectKey,
        workspace: &WorkspaceId,
        keys: BTreeSet<ResourceKey>,
    ) {
        if let Some((before, old)) = self.interests.get(application)
            && *before == *workspace
            && *old == keys
        {
            return;
        }
        if let Some((before, old)) = self.interests.remove(application) {
            for instance in instances(application) {
                let at = (before.clone(), instance);
                if let Some(list) = self.instances.get_mut(&at) {
                    list.retain(|other| other != application);
                    if list.is_empty() {
                        self.instances.remove(&at);
                    }
                }
            }
            for key in old {
                let place = (before.clone(), key);
                if let Some(list) = self.interested.get_mut(&place) {
                    list.retain(|other| other != application);
                    if list.is_empty() {
                        self.interested.remove(&place);
                    }
                }
            }
        }
        if keys.is_empty() {
            return;
        }
        for instance in instances(application) {
            let list = self.instances.entry((workspace.clone(), instance)).or_default();
            list.push(application.clone());
        }
        for key in &keys {
            let list = self
                .interested
                .entry((workspace.clone(), key.clone()))
                .or_default();
            list.push(application.clone());
        }
        self.interests
            .insert(application.clone(), (workspace.clone(), keys));
    }

    pub(super) fn is_needed_by_others(
        &self,
        application: &ObjectKey,
        workspace: &WorkspaceId,
        key: &ResourceKey,
    ) -> bool {
        let declared = self.interested.get(&(workspace.clone(), key.clone()));
        let is_other = |other: &ObjectKey| other != application;
        if declared.is_some_and(|list| list.iter().any(is_other)) {
            return true;
        }
        key.group.is_empty()
            && key.kind == "Namespace"
            && self.interests.iter().any(|(other, (place, keys))| {
                is_other(other) && place == workspace && keys.iter().any(|own| own.namespace == key.name)
            })
    }

    pub(super) fn wait_for_kinds(&mut self, application: &ObjectKey, waits: bool) {
        match waits {
            true => self.waiting.insert(application.clone()),
            false => self.waiting.remove(application),
        };
    }

    pub(super) fn waiting(&self) -> Vec<ObjectKey> {
        self.waiting.iter().cloned().collect()
    }

    /// Objects with a mark; a label that was not known before is looked for from now on.
    pub(super) fn marked(&mut self, workspace: &WorkspaceId, mark: &str, label: &str) -> Vec<Arc<[u8]>> {
        if label != DEFAULT_LABEL {
            self.labels.insert(label.to_owned());
        }
        let Some(keys) = self.by_mark.get(&(workspace.clone(), mark.into())) else {
            return Vec::new();
        };
        keys.iter()
            .filter_map(|key| self.objects.get(&(workspace.clone(), key.clone())))
            .map(|held| Arc::clone(&held.text))
            .collect()
    }

    pub(super) fn text(&self, workspace: &WorkspaceId, key: &ResourceKey) -> Option<Arc<[u8]>> {
        let held = self.objects.get(&(workspace.clone(), key.clone()))?;
        Some(Arc::clone(&held.text))
    }

    /// What an object is marked with.
    fn marks(&self, object: &Value) -> Vec<Box<str>> {
        let mut marks: Vec<Box<str>> = Vec::new();
        let id = annotation::get(object, annotation::TRACKING_ID);
        if let Some((application, _)) = id.split_once(':') {
            marks.push(application.into());
        }
        let labels = self.labels.iter().map(String::as_str).chain([DEFAULT_LABEL]);
        for label in labels {
            let value = annotation::label(object, label);
            if !value.is_empty() && !marks.iter().any(|mark| **mark == *value) {
                marks.push(value.into());
            }
        }
        marks
    }

    /// Takes an object in; whom to wake. `watched` is the watch that brought it, if one did.
    pub(super) fn put(
        &mut self,
        workspace: &WorkspaceId,
        mut object: Value,
        watched: Option<&GroupResource>,
    ) -> Vec<ObjectKey> {
        let place = (workspace.clone(), ResourceKey::of(&object));
        let version = version(&object);
        let mut wake = self.put_child(&place, &object, version, watched);
        let known = self.objects.get(&place).map(|held| held.version);
        if known.is_some_and(|known| known >= version) {
            return wake;
        }
        if self.gone.get(&place).is_some_and(|gone| *gone >= version) {
            return Vec::new();
        }
        self.gone.remove(&place);
        let marks = self.marks(&object);
        wake.extend(self.whom(&place, &marks));
        if let Some(held) = self.forget(&place) {
            wake.extend(self.whom(&place, &held.marks));
        }
        let watch = match watched {
            Some(name) => self.watches.get(name),
            None => self
                .watches
                .values()
                .find(|watch| watch.group == place.1.group && watch.kind == place.1.kind),
        };
        let resource = watch.map(|watch| Arc::clone(&watch.resource));
        if let Some(resource) = resource.filter(|_| !marks.is_empty()) {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.shift_remove("managedFields");
            }
            for mark in &marks {
                let list = self.by_mark.entry((place.0.clone(), mark.clone())).or_default();
                list.insert(place.1.clone());
            }
            let uid: Box<str> = object["metadata"]["uid"].as_str().unwrap_or_default().into();
            self.by_uid
                .insert((place.0.clone(), uid.clone()), place.1.clone());
            let held = Held {
                version,
                resource,
                marks,
                uid,
                text: serde_json::to_vec(&object).unwrap_or_default().into(),
            };
            self.objects.insert(place, held);
        }
        wake.sort_unstable();
        wake.dedup();
        wake
    }

    /// Takes in who owns an object; whom to wake.
    fn put_child(
        &mut self,
        place: &Place,
        object: &Value,
        version: u64,
        watched: Option<&GroupResource>,
    ) -> Vec<ObjectKey> {
        let is_gone = self.gone.get(place).is_some_and(|gone| *gone >= version);
        let Some(watch) = watched
            .and_then(|name| self.watches.get(name))
            .filter(|_| !is_gone)
        else {
            return Vec::new();
        };
        let resource = Arc::clone(&watch.resource);
        let before = self.whom_above(place);
        match self.family.put(place, object, version, &resource) {
            true => before.into_iter().chain(self.whom_above(place)).collect(),
            false => Vec::new(),
        }
    }

    /// Whose objects own an object, directly or not.
    fn whom_above(&self, place: &Place) -> Vec<ObjectKey> {
        let mut wake = Vec::new();
        for uid in self.family.above(place) {
            let Some(key) = self.by_uid.get(&(place.0.clone(), uid)) else {
                continue;
            };
            let above = (place.0.clone(), key.clone());
            if let Some(held) = self.objects.get(&above) {
                wake.extend(self.whom(&above, &held.marks));
            }
        }
        wake
    }

    /// Takes in that an object is gone, unless something newer is known of it; whom to wake.
    pub(super) fn remove(
        &mut self,
        workspace: &WorkspaceId,
        key: &ResourceKey,
        version: Option<u64>,
    ) -> Vec<ObjectKey> {
        let place = (workspace.clone(), key.clone());
        let above = self.whom_above(&place);
        let mut wake = match self.family.remove(&place, version) {
            true => above,
            false => Vec::new(),
        };
        let newer = self.objects.get(&place).map(|held| held.version);
        if newer.zip(version).is_some_and(|(held, gone)| held > gone) {
            return wake;
        }
        if let Some(version) = version {
            if self.gone.len() >= GONE {
                self.gone.clear();
            }
            self.gone.insert(place.clone(), version);
        }
        let marks = self.forget(&place).map(|held| held.marks).unwrap_or_default();
        wake.extend(self.whom(&place, &marks));
        wake.sort_unstable();
        wake.dedup();
        wake
    }

    fn whom(&self, place: &Place, marks: &[Box<str>]) -> Vec<ObjectKey> {
        let mut wake: Vec<ObjectKey> = self.interested.get(place).cloned().unwrap_or_default();
        for mark in marks {
            let at = (place.0.clone(), mark.clone());
            wake.extend(self.instances.get(&at).into_iter().flatten().cloned());
        }
        wake
    }

    fn forget(&mut self, place: &Place) -> Option<Held> {
        let held = self.objects.remove(place)?;
        self.by_uid.remove(&(place.0.clone(), held.uid.clone()));
        for mark in &held.marks {
            let at = (place.0.clone(), mark.clone());
            if let Some(list) = self.by_mark.get_mut(&at) {
                list.remove(&place.1);
                if list.is_empty() {
                    self.by_mark.remove(&at);
                }
            }
        }
        Some(held)
    }

    pub(super) fn begin_list(&mut self, name: &GroupResource) {
        if let Some(watch) = self.watches.get_mut(name) {
            watch.relisted = Some(HashSet::new());
        }
    }

    pub(super) fn listed(&mut self, name: &GroupResource, workspace: &WorkspaceId, key: &ResourceKey) {
        if let Some(seen) = self
            .watches
            .get_mut(name)
            .and_then(|watch| watch.relisted.as_mut())
        {
            seen.insert((workspace.clone(), key.clone()));
        }
    }

    /// A list is complete: what it did not have is gone. Whom to wake.
    pub(super) fn end_list(&mut self, name: &GroupResource) -> Vec<ObjectKey> {
        let Some(watch) = self.watches.get_mut(name) else {
            return Vec::new();
        };
        watch.is_listed = true;
        let seen = watch.relisted.take().unwrap_or_default();
        let mut vanished: Vec<Place> = self
            .objects
            .iter()
            .filter(|(place, held)| *held.resource == *name && !seen.contains(place))
            .map(|(place, _)| place.clone())
            .collect();
        vanished.extend(self.family.of_watch(name, &seen));
        let mut wake = Vec::new();
        for (workspace, key) in vanished {
            wake.extend(self.remove(&workspace, &key, None));
        }
        wake
    }

    /// Ends a watch: nothing of its kind is known any more.
    pub(super) fn end_watch(&mut self, name: &GroupResource) {
        if self.watches.remove(name).is_none() {
            return;
        }
        let places: Vec<Place> = self
            .objects
            .iter()
            .filter(|(_, held)| *held.resource == *name)
            .map(|(place, _)| place.clone())
            .collect();
        for place in places {
            self.forget(&place);
        }
        for place in self.family.of_watch(name, &HashSet::new()) {
            self.family.remove(&place, None);
        }
    }
}

/// The marks that an application may have left: with and without its namespace.
fn instances(application: &ObjectKey) -> [Box<str>; 2] {
    let ObjectKey { namespace, name, .. } = application;
    [name.as_str().into(), format!("{namespace}_{name}").into()]
}

/// The version of an object as a number; all servers that we speak to count.
fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// The version in an object's metadata.
pub(super) fn version_of(text: Option<&str>) -> Option<u64> {
    text.and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests;
