//! What an Application's objects bring about: which kinds of children they have, so that those are watched, and the tree of all.
//!
//! A kind is watched when some managed object has a child of it, and no longer. Whether there is one is looked for when something
//! happens to the Application: in the few kinds that a known kind may own, and in all kinds for one that nobody knows, but then
//! only if the object itself has changed, and not too often.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::kinds::{GroupResource, Kind, Kinds};
use fairway_controller::{Failure, ObjectKey, Requests};
use fairway_gitops_sync::children::{Owns, may_be_owned, owns};
use fairway_gitops_sync::key::{self, ResourceKey};
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Engine;
use crate::act::kind_of;
use crate::application::Application;
use crate::cluster::{Descendant, Known};
use crate::observe::{Observation, Scene, read_anew};
use crate::report::images_of;

/// How often all kinds are looked through for the children of one Application.
const REST: Duration = Duration::from_secs(5);
/// Children of children that are looked for at once.
const MAX_LEVELS: usize = 4;
/// How many objects of a kind are looked at in a namespace.
const PAGE: u32 = 1_000;
/// How many children are read for their health.
const MAX_READ: usize = 500;

/// When all kinds were last looked through for an Application, and what its objects were then.
#[derive(Default)]
pub(crate) struct Looked(Mutex<HashMap<ObjectKey, (u64, Instant)>>);

impl Looked {
    pub(super) fn forget(&self, application: &ObjectKey) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(application);
    }

    /// Whether to look now, or when.
    fn turn(&self, application: &ObjectKey, stamp: u64) -> Turn {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(application) {
            Some((known, _)) if *known == stamp => Turn::Needless,
            Some((_, at)) if now < *at + REST => Turn::In(*at + REST - now),
            _ => {
                all.insert(application.clone(), (stamp, now));
                Turn::Now
            }
        }
    }
}

enum Turn {
    Now,
    Needless,
    In(Duration),
}

/// An object that may have children.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Parent {
    group: String,
    kind: String,
    namespace: String,
    uid: String,
}

/// Kinds to look into: in which namespaces, for children of whom.
type Wanted = BTreeMap<GroupResource, (Arc<Kind>, BTreeSet<String>, HashSet<String>)>;

impl Engine {
    /// Sees to it that the kinds of children are watched, and takes in what is known of them; when to look again, if that must
    /// wait.
    pub(super) async fn look_for_children(
        &self,
        scene: &Scene<'_>,
        observation: &mut Observation,
    ) -> Option<Duration> {
        let (application, place) = (&scene.application.key, scene.place);
        let mut parents = Vec::new();
        let mut hasher = DefaultHasher::new();
        for live in observation
            .objects
            .iter()
            .filter_map(|seen| seen.pair.live.as_ref())
        {
            let parent = parent(live);
            match owns(&parent.group, &parent.kind) {
                Owns::Only([]) => continue,
                Owns::Only(_) => {}
                Owns::Anything => {
                    (&parent.uid, live["metadata"]["resourceVersion"].as_str()).hash(&mut hasher);
                }
            }
            parents.push(parent);
        }
        let managed = observation.kinds.watchable();
        if parents.is_empty() {
            if !place.cluster.child_kinds(application).is_empty() {
                place.cluster.watch_children(application, &managed, Vec::new());
            }
            return None;
        }
        // Watches that were begun and have not told yet what there is: by what is known now nobody could say that they are needless.
        let mut begun = place.cluster.child_kinds(application);
        begun.retain(|kind| !place.cluster.is_listed(kind));
        let uids: Vec<&str> = parents.iter().map(|parent| parent.uid.as_str()).collect();
        let known = place.cluster.below(&place.workspace, &uids);
        // What cannot be found out now is found out by the next pass.
        let served = place.cluster.served.of(&place.workspace).await.ok()?;
        let has_unknown = parents
            .iter()
            .any(|parent| owns(&parent.group, &parent.kind) == Owns::Anything);
        let turn = match has_unknown {
            true => self.looked.turn(application, hasher.finish()),
            false => Turn::Needless,
        };
        let everywhere = matches!(turn, Turn::Now);
        let watched = |kind: &Arc<Kind>| place.cluster.is_listed(kind);
        let mut kinds: BTreeMap<GroupResource, Arc<Kind>> =
            begun.into_iter().map(|kind| (kind.name(), kind)).collect();
        for it in &known {
            if let Some(kind) = kind_of(&served, &it.key) {
                kinds.insert(kind.name(), Arc::clone(kind));
            }
        }
        let mut frontier = parents;
        frontier.extend(known.iter().map(descended));
        for _ in 0..MAX_LEVELS {
            let wanted = wanted(&frontier, &served, everywhere, &watched);
            frontier = Vec::new();
            for (name, (kind, namespaces, uids)) in wanted {
                let children = self.children_in(scene, &kind, &namespaces, &uids).await;
                if !children.is_empty() {
                    kinds.insert(name, kind);
                }
                frontier.extend(children);
            }
            if frontier.is_empty() {
                break;
            }
        }
        for kind in &managed {
            kinds.remove(&kind.name());
        }
        place
            .cluster
            .watch_children(application, &managed, kinds.into_values().collect());
        let images = known.iter().flat_map(|it| it.child.images.iter());
        observation.child_images = images.map(ToString::to_string).collect();
        match turn {
            Turn::In(delay) => Some(delay),
            Turn::Now | Turn::Needless => None,
        }
    }

    /// The objects of a kind that somebody of these owns.
    async fn children_in(
        &self,
        scene: &Scene<'_>,
        kind: &Arc<Kind>,
        namespaces: &BTreeSet<String>,
        uids: &HashSet<String>,
    ) -> Vec<Parent> {
        let place = scene.place;
        let mut found = Vec::new();
        for namespace in namespaces {
            let client = place.cluster.readers.of(&place.workspace);
            let api = kind.api::<DynamicObject>(client, namespace);
            let Ok(list) = api.list_metadata(&ListParams::default().limit(PAGE)).await else {
                continue;
            };
            let is_owned = |object: &&PartialObjectMeta<DynamicObject>| {
                let owners = object.metadata.owner_references.iter().flatten();
                owners.into_iter().any(|owner| uids.contains(&owner.uid))
            };
            found.extend(list.items.iter().filter(is_owned).map(|object| Parent {
                group: kind.resource.group.clone(),
                kind: kind.resource.kind.clone(),
                namespace: object.metadata.namespace.clone().unwrap_or_default(),
                uid: object.metadata.uid.clone().unwrap_or_default(),
            }));
        }
        found
    }

    /// What an Application manages, with what that has brought about: Argo CD's `ApplicationTree`. The inner error is for people.
    pub(crate) async fn tree(
        &self,
        key: &ObjectKey,
        object: Value,
    ) -> Result<Result<Value, String>, Failure> {
        let requests = Requests::new(self.clients.of(&key.workspace));
        let application = match Application::read(key, object) {
            Ok(application) => application,
            Err((why, _)) => return Ok(Err(why)),
        };
        let ground = match self.ground(&requests, &application).await? {
            Ok(ground) => ground,
            Err(groundless) => return Ok(Err(groundless.condition.message)),
        };
        let scene = ground.scene(&application, &self.destinations.hub);
        let place = scene.place;
        let served = place.cluster.served.of(&place.workspace).await?;
        let (mut nodes, mut roots) = (Vec::new(), Vec::new());
        let mut known_as: HashMap<String, Value> = HashMap::new();
        let listed = application.status()["resources"].as_array();
        for entry in listed.into_iter().flatten() {
            let text = |field: &str| entry[field].as_str().unwrap_or_default();
            let named = ResourceKey::new(text("group"), text("kind"), text("namespace"), text("name"));
            let Some(live) = self.live(&scene, &served, &named).await else {
                let missing = json!({"status": "Missing"});
                nodes.push(node_of(
                    &named,
                    text("version"),
                    missing,
                    &Value::Null,
                    Vec::new(),
                ));
                continue;
            };
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            known_as.insert(uid.clone(), reference(&named, key::group_version(&live).1, &uid));
            nodes.push(self.node(&scene, &named, &live, Vec::new()));
            roots.push(uid);
        }
        let uids: Vec<&str> = roots.iter().map(String::as_str).collect();
        for (place_in_tree, it) in place.cluster.below(&place.workspace, &uids).iter().enumerate() {
            let parents: Vec<Value> = it
                .child
                .owners
                .iter()
                .filter_map(|uid| known_as.get(&**uid).cloned())
                .collect();
            let version = it.child.api_version.rsplit('/').next().unwrap_or_default();
            known_as.insert(
                it.child.uid.to_string(),
                reference(&it.key, version, &it.child.uid),
            );
            let live = match place_in_tree < MAX_READ {
                true => self.live(&scene, &served, &it.key).await,
                false => None,
            };
            nodes.push(match live {
                Some(live) => self.node(&scene, &it.key, &live, parents),
                None => node_of(&it.key, version, Value::Null, &Value::Null, parents),
            });
        }
        Ok(Ok(json!({
            "apiVersion": fairway_api::argoproj::API_VERSION, "kind": "ApplicationTree",
            "metadata": {"name": key.name, "namespace": key.namespace}, "nodes": nodes,
        })))
    }

    async fn live(&self, scene: &Scene<'_>, served: &Kinds, named: &ResourceKey) -> Option<Value> {
        if let Known::Is(object) = scene.place.cluster.known(&scene.place.workspace, named) {
            return Some(object);
        }
        let kind = kind_of(served, named)?;
        let version = kind.resource.api_version.clone();
        read_anew(scene, kind, &version, named).await.ok().flatten()
    }

    fn node(&self, scene: &Scene<'_>, named: &ResourceKey, live: &Value, parents: Vec<Value>) -> Value {
        let health = scene.settings.judge.health(live, Timestamp::now());
        let health = health.map_or(Value::Null, |health| {
            let mut shown = json!({"status": health.status_or_healthy().as_str()});
            if !health.message.is_empty() {
                shown["message"] = health.message.as_str().into();
            }
            shown
        });
        node_of(named, key::group_version(live).1, health, live, parents)
    }
}

fn parent(live: &Value) -> Parent {
    let text = |field: &str| live["metadata"][field].as_str().unwrap_or_default().to_owned();
    Parent {
        group: key::group(live).to_owned(),
        kind: key::kind(live).to_owned(),
        namespace: text("namespace"),
        uid: text("uid"),
    }
}

fn descended(it: &Descendant) -> Parent {
    Parent {
        group: it.key.group.clone(),
        kind: it.key.kind.clone(),
        namespace: it.key.namespace.clone(),
        uid: it.child.uid.to_string(),
    }
}

/// Where children may be that no watch tells of.
fn wanted(
    parents: &[Parent],
    served: &Kinds,
    everywhere: bool,
    is_watched: &dyn Fn(&Arc<Kind>) -> bool,
) -> Wanted {
    let mut wanted = Wanted::new();
    let mut add = |kind: &Arc<Kind>, parent: &Parent| {
        // Owners in a namespace own in that namespace; those in none own what is in none.
        let fits = kind.namespaced != parent.namespace.is_empty();
        if !fits || !kind.can(&["list", "watch"]) || is_watched(kind) {
            return;
        }
        let entry = wanted
            .entry(kind.name())
            .or_insert_with(|| (Arc::clone(kind), BTreeSet::new(), HashSet::new()));
        entry.1.insert(parent.namespace.clone());
        entry.2.insert(parent.uid.clone());
    };
    for parent in parents {
        match owns(&parent.group, &parent.kind) {
            Owns::Only(list) => {
                for (group, kind) in list {
                    if let Some(kind) = kind_of(served, &ResourceKey::new(group, kind, "", "")) {
                        add(kind, parent);
                    }
                }
            }
            Owns::Anything if everywhere => {
                let all = served.iter();
                all.filter(|kind| may_be_owned(&kind.resource.group, &kind.resource.kind))
                    .for_each(|kind| add(kind, parent));
            }
            Owns::Anything => {}
        }
    }
    wanted
}

fn reference(named: &ResourceKey, version: &str, uid: &str) -> Value {
    let mut found = json!({"version": version, "kind": named.kind, "name": named.name, "uid": uid});
    for (field, value) in [("group", &named.group), ("namespace", &named.namespace)] {
        if !value.is_empty() {
            found[field] = value.as_str().into();
        }
    }
    found
}

fn node_of(named: &ResourceKey, version: &str, health: Value, live: &Value, parents: Vec<Value>) -> Value {
    let metadata = &live["metadata"];
    let mut node = reference(named, version, metadata["uid"].as_str().unwrap_or_default());
    if !parents.is_empty() {
        node["parentRefs"] = parents.into();
    }
    if !health.is_null() {
        node["health"] = health;
    }
    for (field, from) in [
        ("resourceVersion", "resourceVersion"),
        ("createdAt", "creationTimestamp"),
    ] {
        if let Some(value) = metadata.get(from) {
            node[field] = value.clone();
        }
    }
    let images = images_of(live);
    if !images.is_empty() {
        node["images"] = json!(images);
    }
    node
}
