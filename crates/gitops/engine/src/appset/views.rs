//! The Applications of all workspaces as they were last seen.
//!
//! A workspace may have a definition of its own by the name of Argo CD's. Its objects come by a watch of their own, which must
//! not make those of others forgotten: each kind has its own memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use fairway_controller::cache::Cache;
use fairway_controller::glimpse::Glimpse;
use fairway_controller::kinds::GroupResource;
use fairway_controller::{ObjectKey, Reach, WorkspaceId};
use kube::runtime::watcher::Event;
use serde_json::Value;

use super::view::View;

type ByKind = BTreeMap<GroupResource, Arc<Cache<View>>>;

/// What was seen, by kind.
pub(crate) struct Views {
    reach: Reach,
    kinds: RwLock<ByKind>,
}

impl Views {
    pub(crate) fn new(reach: &Reach) -> Self {
        Self {
            reach: reach.clone(),
            kinds: RwLock::default(),
        }
    }

    fn all(&self) -> Vec<Arc<Cache<View>>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.values().cloned().collect()
    }

    /// Takes in what a watch tells.
    pub(crate) fn take(&self, kind: &GroupResource, event: Event<Glimpse<View>>) {
        let known = {
            let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
            kinds.get(kind).cloned()
        };
        let cache = known.unwrap_or_else(|| {
            let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
            let made = kinds
                .entry(kind.clone())
                .or_insert_with(|| Arc::new(Cache::new(&self.reach)));
            Arc::clone(made)
        });
        cache.take(event, |it| it.kept);
    }

    /// The workspaces that have Applications of a kind.
    pub(crate) fn workspaces(&self, kind: &GroupResource) -> BTreeSet<WorkspaceId> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let all = kinds.get(kind).map(|cache| cache.all()).unwrap_or_default();
        all.into_iter().map(|(key, _)| key.workspace).collect()
    }

    /// Takes in that a kind is served no more.
    pub(crate) fn forget(&self, kind: &GroupResource) {
        self.kinds
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(kind);
    }

    /// Takes the answer to a write in before its watch brings it, if it was seen before.
    pub(crate) fn written(&self, key: &ObjectKey, written: &Value) {
        let Some(cache) = self.all().into_iter().find(|cache| cache.get(key).is_some()) else {
            return;
        };
        if let Ok(glimpse) = serde_json::from_value::<Glimpse<View>>(written.clone()) {
            cache.take(Event::Apply(glimpse), |it| it.kept);
        }
    }

    /// An Application.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<View>> {
        self.all().iter().find_map(|cache| cache.get(key))
    }

    /// The Applications of a set, in the order of names.
    pub(crate) fn of_set(&self, key: &ObjectKey, uid: &str) -> Vec<Arc<View>> {
        let caches = self.all();
        let all = caches
            .iter()
            .flat_map(|cache| cache.of_namespace(&key.workspace, &key.namespace));
        let mut own: Vec<Arc<View>> = all
            .map(|(_, view)| view)
            .filter(|view| view.is_of(&key.name, uid))
            .collect();
        own.sort_by(|a, b| a.name().cmp(b.name()));
        own
    }

    /// Whether Applications were listed. A kind that somebody has just defined is not waited for: its set finds out when it
    /// writes.
    pub(crate) fn is_synced(&self) -> bool {
        self.all().iter().any(|cache| cache.is_synced())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn glimpse(workspace: &str, name: &str) -> Glimpse<View> {
        let object = json!({
            "metadata": {"name": name, "namespace": "argocd", "resourceVersion": "1", "uid": name,
                "annotations": {"kcp.io/cluster": workspace},
                "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "s",
                    "uid": "u", "controller": true}]},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn one_kind_does_not_make_another_forgotten() {
        let views = Views::new(&Reach::Every);
        let common = ("argoproj.io".to_owned(), "applications".to_owned());
        let own = ("argoproj.io".to_owned(), "applications:abc".to_owned());
        assert!(!views.is_synced());
        for (kind, workspace, name) in [
            (&common, "root", "b"),
            (&common, "root", "a"),
            (&own, "team", "c"),
        ] {
            views.take(kind, Event::Apply(glimpse(workspace, name)));
        }
        let set = |workspace: &str| {
            let id = WorkspaceId::parse(workspace).unwrap();
            ObjectKey::new(&id, "argocd", "s")
        };
        let names = |workspace: &str| -> Vec<String> {
            let all = views.of_set(&set(workspace), "u");
            all.iter().map(|view| view.name().to_owned()).collect()
        };
        // Listed again, it is empty.
        views.take(&own, Event::Init);
        views.take(&own, Event::InitDone);
        assert!(views.is_synced());
        assert_eq!(
            (names("root"), names("team").len()),
            (vec!["a".to_owned(), "b".to_owned()], 0)
        );
        views.take(&own, Event::Apply(glimpse("team", "c")));
        assert_eq!(names("team"), ["c"]);
        views.forget(&own);
        assert_eq!((names("root").len(), names("team").len()), (2, 0));
    }
}
