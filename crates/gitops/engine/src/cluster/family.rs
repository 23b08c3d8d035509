//! Who owns whom: of every object of a watched kind that names an owner, as much as a tree needs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fairway_controller::WorkspaceId;
use fairway_controller::kinds::GroupResource;
use fairway_gitops_sync::children::{Owns, owns};
use fairway_gitops_sync::key::ResourceKey;
use serde_json::Value;

use crate::report::images_of;

/// Owners of owners are followed so far.
const MAX_DEPTH: usize = 16;
/// The most that a tree may have.
const MAX_NODES: usize = 5_000;

/// An object in its workspace.
type Place = (WorkspaceId, ResourceKey);
/// A UID in a workspace.
type Identity = (WorkspaceId, Box<str>);

/// What is known of an object that has an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    version: u64,
    resource: Arc<GroupResource>,
    pub(crate) api_version: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) owners: Vec<Box<str>>,
    pub(crate) images: Vec<Box<str>>,
}

/// A node of a tree, below those that somebody declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Descendant {
    pub(crate) key: ResourceKey,
    pub(crate) child: Child,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Family {
    children: HashMap<Place, Child>,
    by_owner: HashMap<Identity, BTreeSet<ResourceKey>>,
    by_uid: HashMap<Identity, ResourceKey>,
}

/// The UIDs of an object's owners.
fn owners(object: &Value) -> Vec<Box<str>> {
    let all = object["metadata"]["ownerReferences"].as_array();
    let uids = all
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str());
    uids.map(Box::from).collect()
}

impl Family {
    /// Takes an object in, if it has owners; whether that changes a tree.
    pub(super) fn put(
        &mut self,
        place: &Place,
        object: &Value,
        version: u64,
        resource: &Arc<GroupResource>,
    ) -> bool {
        let owners = owners(object);
        let known = self.children.get(place);
        if known.is_some_and(|known| known.version >= version) {
            return false;
        }
        if owners.is_empty() {
            return known.is_some() && self.remove(place, None);
        }
        let text = |value: &Value| Box::from(value.as_str().unwrap_or_default());
        let child = Child {
            version,
            resource: Arc::clone(resource),
            api_version: text(&object["apiVersion"]),
            uid: text(&object["metadata"]["uid"]),
            owners,
            images: images_of(object).into_iter().map(Into::into).collect(),
        };
        // Who has children tells of them by changing; of others only what a tree shows counts.
        let is_childless = owns(&place.1.group, &place.1.kind) == Owns::Only(&[]);
        let is_same = known.is_some_and(|known| {
            is_childless
                && known.uid == child.uid
                && known.owners == child.owners
                && known.images == child.images
        });
        self.forget(place);
        for owner in &child.owners {
            let list = self.by_owner.entry((place.0.clone(), owner.clone())).or_default();
            list.insert(place.1.clone());
        }
        self.by_uid
            .insert((place.0.clone(), child.uid.clone()), place.1.clone());
        self.children.insert(place.clone(), child);
        !is_same
    }

    /// Takes in that an object is gone, unless something newer is known of it; whether that changes a tree.
    pub(super) fn remove(&mut self, place: &Place, version: Option<u64>) -> bool {
        let newer = self.children.get(place).map(|child| child.version);
        if newer.zip(version).is_some_and(|(held, gone)| held > gone) {
            return false;
        }
        self.forget(place)
    }

    fn forget(&mut self, place: &Place) -> bool {
        let Some(child) = self.children.remove(place) else {
            return false;
        };
        self.by_uid.remove(&(place.0.clone(), child.uid));
        for owner in child.owners {
            let at = (place.0.clone(), owner);
            if let Some(list) = self.by_owner.get_mut(&at) {
                list.remove(&place.1);
                if list.is_empty() {
                    self.by_owner.remove(&at);
                }
            }
        }
        true
    }

    /// All that a watch has brought, but for these.
    pub(super) fn of_watch(&self, name: &GroupResource, but: &HashSet<Place>) -> Vec<Place> {
        let of = |(place, child): &(&Place, &Child)| *child.resource == *name && !but.contains(*place);
        self.children
            .iter()
            .filter(of)
            .map(|(place, _)| place.clone())
            .collect()
    }

    /// The UIDs above an object: its owners', theirs, and so on.
    pub(super) fn above(&self, place: &Place) -> BTreeSet<Box<str>> {
        let mut found = BTreeSet::new();
        let mut next = self.children.get(place).map(|child| child.owners.clone());
        for _ in 0..MAX_DEPTH {
            let Some(owners) = next.take().filter(|owners| !owners.is_empty()) else {
                break;
            };
            let mut above = Vec::new();
            for owner in owners {
                let key = self.by_uid.get(&(place.0.clone(), owner.clone()));
                let child = key.and_then(|key| self.children.get(&(place.0.clone(), key.clone())));
                above.extend(child.into_iter().flat_map(|child| child.owners.iter().cloned()));
                found.insert(owner);
            }
            next = Some(above);
        }
        found
    }

    /// Everything below some UIDs, each once, parents before children.
    pub(super) fn below(&self, workspace: &WorkspaceId, roots: &[&str]) -> Vec<Descendant> {
        let mut found: Vec<Descendant> = Vec::new();
        let mut seen: HashSet<ResourceKey> = HashSet::new();
        let mut level: Vec<Box<str>> = roots.iter().map(|uid| Box::from(*uid)).collect();
        for _ in 0..MAX_DEPTH {
            let mut next = Vec::new();
            for owner in level {
                let keys = self.by_owner.get(&(workspace.clone(), owner));
                for key in keys.into_iter().flatten() {
                    if found.len() >= MAX_NODES {
                        return found;
                    }
                    let child = self.children.get(&(workspace.clone(), key.clone()));
                    if let Some(child) = child.filter(|_| seen.insert(key.clone())) {
                        next.push(child.uid.clone());
                        found.push(Descendant {
                            key: key.clone(),
                            child: child.clone(),
                        });
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(kind: &str, name: &str) -> Place {
        let group = if kind == "Pod" { "" } else { "apps" };
        (
            WorkspaceId::root_ref().clone(),
            ResourceKey::new(group, kind, "shop", name),
        )
    }

    fn object(uid: &str, owner: &str, image: &str) -> Value {
        json!({"apiVersion": "apps/v1", "metadata": {"uid": uid, "ownerReferences": [{"uid": owner}]},
            "spec": {"containers": [{"image": image}]}})
    }

    fn family() -> Family {
        let mut family = Family::default();
        let name = Arc::new(("apps".to_owned(), "things".to_owned()));
        // The grandchild comes first.
        assert!(family.put(&place("Pod", "p"), &object("3", "2", "a"), 5, &name));
        assert!(family.put(&place("ReplicaSet", "r"), &object("2", "1", ""), 4, &name));
        assert!(family.put(&place("Pod", "stranger"), &object("9", "8", "a"), 6, &name));
        family
    }

    fn names(found: &[Descendant]) -> Vec<&str> {
        found.iter().map(|it| it.key.name.as_str()).collect()
    }

    #[test]
    fn a_tree_is_found_from_both_ends() {
        let family = family();
        let root = WorkspaceId::root_ref();
        assert_eq!(names(&family.below(root, &["1"])), ["r", "p"]);
        assert_eq!(names(&family.below(root, &["2"])), ["p"]);
        assert!(family.below(root, &["5"]).is_empty());
        let above: Vec<String> = family
            .above(&place("Pod", "p"))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(above, ["1", "2"]);
    }

    #[test]
    fn only_what_changes_a_tree_is_told() {
        let mut family = family();
        let name = Arc::new(("apps".to_owned(), "things".to_owned()));
        let pod = place("Pod", "p");
        assert!(
            !family.put(&pod, &object("3", "2", "a"), 6, &name),
            "nothing that counts"
        );
        let set = place("ReplicaSet", "r");
        assert!(
            family.put(&set, &object("2", "1", ""), 6, &name),
            "it may have a new child"
        );
        assert!(
            family.put(&pod, &object("3", "2", "b"), 7, &name),
            "another image"
        );
        assert!(!family.put(&pod, &object("3", "1", "b"), 3, &name), "it is older");
        assert!(!family.remove(&pod, Some(6)), "something newer is known");
        assert!(family.remove(&pod, Some(8)));
        assert!(!family.remove(&pod, Some(9)));
        assert_eq!(names(&family.below(WorkspaceId::root_ref(), &["1"])), ["r"]);
        let freed = json!({"metadata": {"uid": "2"}});
        assert!(
            family.put(&place("ReplicaSet", "r"), &freed, 9, &name),
            "it has no owner any more"
        );
        assert!(family.below(WorkspaceId::root_ref(), &["1"]).is_empty());
    }

    #[test]
    fn who_owns_himself_comes_once() {
        let mut family = Family::default();
        let name = Arc::new(("apps".to_owned(), "things".to_owned()));
        family.put(&place("A", "a"), &object("1", "2", ""), 1, &name);
        family.put(&place("A", "b"), &object("2", "1", ""), 1, &name);
        assert_eq!(family.below(WorkspaceId::root_ref(), &["1"]).len(), 2);
        assert_eq!(family.above(&place("A", "a")).len(), 2);
    }

    #[test]
    fn what_a_watch_has_brought() {
        let family = family();
        let name = ("apps".to_owned(), "things".to_owned());
        assert_eq!(family.of_watch(&name, &HashSet::new()).len(), 3);
        assert_eq!(family.of_watch(&name, &[place("Pod", "p")].into()).len(), 2);
        assert!(
            family
                .of_watch(&("x".to_owned(), "y".to_owned()), &HashSet::new())
                .is_empty()
        );
    }
}
