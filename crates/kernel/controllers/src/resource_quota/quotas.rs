//! The quotas as last seen, by namespace, and what an event about one of them asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairway_kernel_quota::{Evaluator, Quota};
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

/// The names of everything that some quota limits.
pub(super) type Names = BTreeSet<String>;
/// Namespace and name of a quota.
pub(super) type Place = (String, String);
type ByNamespace = BTreeMap<String, BTreeMap<String, Arc<Held>>>;

/// A quota, as it was read and as decisions see it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) object: DynamicObject,
    pub(super) quota: Quota,
}

/// All quotas.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    seen: ByNamespace,
    /// The list under way, which replaces the quotas when it is complete.
    relisted: Option<ByNamespace>,
}

/// What follows from an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Consequences {
    /// Quotas to count now.
    pub(super) due: Vec<Place>,
    /// Whether other resources may be limited than before.
    pub(super) names_changed: bool,
}

impl Quotas {
    /// Takes in what happened. A status that was only charged asks for nothing: the server has counted.
    pub(super) fn take(&mut self, event: Event<DynamicObject>) -> Consequences {
        match event {
            Event::Init => {
                self.relisted = Some(ByNamespace::new());
                Consequences::default()
            }
            Event::InitApply(object) => {
                if let Some(list) = &mut self.relisted {
                    insert(list, object);
                }
                Consequences::default()
            }
            Event::InitDone => {
                self.seen = self.relisted.take().unwrap_or_default();
                let due = self.all().map(|(place, _)| place).collect();
                Consequences {
                    due,
                    names_changed: true,
                }
            }
            Event::Apply(object) => {
                let (place, before, now) = insert(&mut self.seen, object);
                let names_changed = before.is_none_or(|before| before.quota.wanted != now.quota.wanted);
                let unsettled = now.quota.hard != now.quota.wanted;
                Consequences {
                    due: (names_changed || unsettled)
                        .then_some(place)
                        .into_iter()
                        .collect(),
                    names_changed,
                }
            }
            Event::Delete(object) => {
                let (namespace, name) = place(&object);
                if let Some(there) = self.seen.get_mut(&namespace) {
                    there.remove(&name);
                    if there.is_empty() {
                        self.seen.remove(&namespace);
                    }
                }
                Consequences {
                    due: Vec::new(),
                    names_changed: true,
                }
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (Place, &Arc<Held>)> {
        self.seen.iter().flat_map(|(namespace, quotas)| {
            quotas
                .iter()
                .map(move |(name, held)| ((namespace.clone(), name.clone()), held))
        })
    }

    /// A quota.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Held>> {
        self.seen.get(namespace)?.get(name).cloned()
    }

    /// The names of everything that is limited anywhere.
    pub(super) fn names(&self) -> Names {
        self.seen
            .values()
            .flat_map(BTreeMap::values)
            .flat_map(|held| held.quota.wanted.names())
            .map(str::to_owned)
            .collect()
    }

    /// The quotas, of a namespace or of all, that limit something which the objects of a kind use.
    pub(super) fn concerned(&self, evaluator: &Evaluator, namespace: Option<&str>) -> Vec<Place> {
        let measures = |held: &Held| held.quota.wanted.names().any(|name| evaluator.measures(name));
        match namespace {
            None => self
                .all()
                .filter(|(_, held)| measures(held))
                .map(|(place, _)| place)
                .collect(),
            Some(namespace) => {
                let there = self.seen.get(namespace).into_iter().flatten();
                there
                    .filter(|(_, held)| measures(held))
                    .map(|(name, _)| (namespace.to_owned(), name.clone()))
                    .collect()
            }
        }
    }
}

fn place(object: &DynamicObject) -> Place {
    (
        object.metadata.namespace.clone().unwrap_or_default(),
        object.metadata.name.clone().unwrap_or_default(),
    )
}

/// Puts a quota in; its place, what was there before, and what is there now.
fn insert(quotas: &mut ByNamespace, object: DynamicObject) -> (Place, Option<Arc<Held>>, Arc<Held>) {
    let (namespace, name) = place(&object);
    let value = serde_json::to_value(&object).unwrap_or_default();
    let held = Arc::new(Held {
        quota: Quota::from_object(&value),
        object,
    });
    let before = quotas
        .entry(namespace.clone())
        .or_default()
        .insert(name.clone(), Arc::clone(&held));
    ((namespace, name), before, held)
}
