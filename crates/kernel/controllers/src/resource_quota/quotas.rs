//! The quotas as last seen, by workspace and namespace, and what an event about one of them asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use fairway_controller::{ObjectKey, Reach, WorkspaceId};
use fairway_kernel_quota::{Evaluator, Quota};
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

/// The names of everything that some quota limits.
pub(super) type Names = BTreeSet<String>;
type ByKey = BTreeMap<ObjectKey, Arc<Held>>;

/// A quota, as it was read and as decisions see it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) object: DynamicObject,
    pub(super) quota: Quota,
}

/// All quotas.
#[derive(Debug)]
pub(super) struct Quotas {
    reach: Reach,
    seen: ByKey,
    /// The list under way, which replaces the quotas when it is complete.
    relisted: Option<ByKey>,
}

/// What follows from an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Consequences {
    /// Quotas to count now.
    pub(super) due: Vec<ObjectKey>,
    /// Whether other resources may be limited than before.
    pub(super) names_changed: bool,
}

impl Quotas {
    pub(super) fn new(reach: &Reach) -> Self {
        Self {
            reach: reach.clone(),
            seen: ByKey::new(),
            relisted: None,
        }
    }

    /// Takes in what happened. A status that was only charged asks for nothing: the server has counted.
    pub(super) fn take(&mut self, event: Event<DynamicObject>) -> Consequences {
        match event {
            Event::Init => {
                self.relisted = Some(ByKey::new());
                Consequences::default()
            }
            Event::InitApply(object) => {
                let key = ObjectKey::of(&self.reach, &object.metadata);
                if let Some(list) = &mut self.relisted {
                    list.insert(key, Held::new(object));
                }
                Consequences::default()
            }
            Event::InitDone => {
                self.seen = self.relisted.take().unwrap_or_default();
                Consequences {
                    due: self.seen.keys().cloned().collect(),
                    names_changed: true,
                }
            }
            Event::Apply(object) => {
                let key = ObjectKey::of(&self.reach, &object.metadata);
                let now = Held::new(object);
                let before = self.seen.insert(key.clone(), Arc::clone(&now));
                let names_changed = before.is_none_or(|before| before.quota.wanted != now.quota.wanted);
                let unsettled = now.quota.hard != now.quota.wanted;
                Consequences {
                    due: (names_changed || unsettled).then_some(key).into_iter().collect(),
                    names_changed,
                }
            }
            Event::Delete(object) => {
                self.seen.remove(&ObjectKey::of(&self.reach, &object.metadata));
                Consequences {
                    due: Vec::new(),
                    names_changed: true,
                }
            }
        }
    }

    /// A quota.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Held>> {
        self.seen.get(key).cloned()
    }

    /// The names of everything that is limited anywhere.
    pub(super) fn names(&self) -> Names {
        self.seen
            .values()
            .flat_map(|held| held.quota.wanted.names())
            .map(str::to_owned)
            .collect()
    }

    /// The quotas, of a namespace or of all, that limit something which the objects of a kind use.
    pub(super) fn concerned(
        &self,
        evaluator: &Evaluator,
        place: Option<(&WorkspaceId, &str)>,
    ) -> Vec<ObjectKey> {
        let measures = |held: &Held| held.quota.wanted.names().any(|name| evaluator.measures(name));
        let from = match place {
            None => Bound::Unbounded,
            Some((workspace, namespace)) => Bound::Included(ObjectKey::new(workspace, namespace, "")),
        };
        let within = |key: &ObjectKey| {
            place.is_none_or(|(workspace, namespace)| {
                key.workspace == *workspace && key.namespace == namespace
            })
        };
        self.seen
            .range((from, Bound::Unbounded))
            .take_while(|(key, _)| within(key))
            .filter(|(_, held)| measures(held))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

impl Held {
    fn new(object: DynamicObject) -> Arc<Self> {
        let value = serde_json::to_value(&object).unwrap_or_default();
        Arc::new(Self {
            quota: Quota::from_object(&value),
            object,
        })
    }
}
