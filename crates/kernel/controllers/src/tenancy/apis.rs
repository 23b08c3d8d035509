//! What is offered and what is taken: exports, schemas and bindings, as small views, and who is bound to what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairway_controller::cache::Cache;
use fairway_controller::glimpse::{Glimpse, Kept};
use fairway_controller::watch::follow;
use fairway_controller::{Json, Manager, ObjectKey, Reach, WorkspaceId};
use fairway_kernel_tenancy::binding::{Fingerprint, offered};
use fairway_kernel_tenancy::export::ApiExport;
use fairway_kernel_tenancy::glance;
use fairway_kernel_tenancy::names::APIS;
use fairway_kernel_tenancy::schema::ApiResourceSchema;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::Queues;
use super::tree::{Tree, cluster_key, everywhere, follow_changes, meta_of};
use crate::users;

/// What is kept of an APIBinding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BindingView {
    /// The export that it is bound to, once that was found.
    export: Option<ObjectKey>,
    /// So far that a new workspace may be used.
    pub(super) ready: bool,
    /// What it has taken, if there is nothing more to say about it.
    taken: Option<Fingerprint>,
}

/// What is kept of an APIExportEndpointSlice: the name of its export.
type SliceView = Box<str>;

/// Exports with the bindings to them, and bindings whose export was not found yet.
#[derive(Default)]
struct Consumers {
    of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    pending: BTreeSet<ObjectKey>,
}

/// The views. Clones share them.
#[derive(Clone)]
pub(super) struct Apis {
    pub(super) exports: Arc<Cache<ApiExport>>,
    pub(super) schemas: Arc<Cache<ApiResourceSchema>>,
    pub(super) bindings: Arc<Cache<BindingView>>,
    slices: Arc<Cache<SliceView>>,
    consumers: Arc<Mutex<Consumers>>,
    /// What exports offer, as long as no export and no schema changes: thousands of bindings are compared with it.
    offers: Arc<Mutex<BTreeMap<ObjectKey, Option<Fingerprint>>>>,
}

impl Apis {
    pub(super) fn new(reach: &Reach) -> Self {
        Self {
            exports: Arc::new(Cache::new(reach)),
            schemas: Arc::new(Cache::new(reach)),
            bindings: Arc::new(Cache::new(reach)),
            slices: Arc::new(Cache::new(reach)),
            consumers: Arc::default(),
            offers: Arc::default(),
        }
    }

    fn offers(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Option<Fingerprint>>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn consumers(&self) -> MutexGuard<'_, Consumers> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether everything that there is has been seen.
    pub(super) fn is_synced(&self) -> bool {
        self.exports.is_synced()
            && self.schemas.is_synced()
            && self.bindings.is_synced()
            && self.slices.is_synced()
    }

    /// Whether a binding has exactly what its export offers, as far as has been seen.
    pub(super) fn is_settled(&self, binding: &ObjectKey) -> bool {
        let view = self.bindings.get(binding);
        view.is_some_and(|view| self.has_all(&view))
    }

    fn has_all(&self, binding: &BindingView) -> bool {
        let (Some(taken), Some(export)) = (binding.taken, &binding.export) else {
            return false;
        };
        self.offered(export) == Some(taken)
    }

    /// What an export offers, as far as has been seen.
    fn offered(&self, export: &ObjectKey) -> Option<Fingerprint> {
        // Held while it is found out: what changes meanwhile is forgotten after it was noted.
        let mut offers = self.offers();
        if let Some(known) = offers.get(export) {
            return *known;
        }
        let schema = |name: &str| self.schemas.get(&ObjectKey::new(&export.workspace, "", name));
        let offer = self.exports.get(export);
        let offer = offer.and_then(|offer| offered(&offer, &schema));
        offers.insert(export.clone(), offer);
        offer
    }

    /// Notes who is bound to what, and names the exports and slices that there are. For the first look.
    pub(super) fn look(&self) -> (Vec<ObjectKey>, Vec<ObjectKey>, Vec<ObjectKey>) {
        let mut consumers = self.consumers();
        let unsettled = self.bindings.keys_where(|key, view| {
            consumers.note(key, None, Some(view));
            !self.has_all(view)
        });
        let exports = self.exports.keys_where(|_, _| true);
        (unsettled, exports, self.slices.keys_where(|_, _| true))
    }

    /// Whether anybody is bound to an export.
    pub(super) fn has_consumers(&self, export: &ObjectKey) -> bool {
        self.consumers().of.contains_key(export)
    }

    pub(super) fn follow(&self, manager: &mut Manager, queues: &Queues, tree: &Tree) {
        let client = manager.clients(users::API_BINDING_CONTROLLER).every();
        let reach = manager.reach().clone();
        let (apis, work, branches) = (self.clone(), queues.clone(), tree.clone());
        manager.spawn(follow_changes(
            everywhere(client.clone(), APIS, "v1alpha2", "APIExport", "apiexports"),
            manager.shutdown(),
            reach.clone(),
            Arc::clone(&self.exports),
            |object: Json| ApiExport::read(&object.value),
            move |key, _, _| {
                apis.offers().clear();
                apis.offer_changed(&key, &work);
                // New workspaces may wait for it.
                for (cluster, kept) in branches.clusters.all() {
                    if kept.initializing {
                        work.clusters.add(cluster);
                    }
                }
                work.exports.add(key);
            },
        ));
        let (apis, work) = (self.clone(), queues.clone());
        manager.spawn(follow_changes(
            everywhere(
                client.clone(),
                APIS,
                "v1alpha1",
                "APIResourceSchema",
                "apiresourceschemas",
            ),
            manager.shutdown(),
            reach.clone(),
            Arc::clone(&self.schemas),
            |object: Json| ApiResourceSchema::read(&object.value),
            move |key, _, _| {
                apis.offers().clear();
                for (export, kept) in apis.exports.of_workspace(&key.workspace) {
                    if kept.resources.iter().any(|it| it.schema == key.name) {
                        apis.offer_changed(&export, &work);
                    }
                }
            },
        ));
        let (apis, work) = (self.clone(), queues.clone());
        manager.spawn(follow_changes(
            everywhere(client.clone(), APIS, "v1alpha2", "APIBinding", "apibindings"),
            manager.shutdown(),
            reach.clone(),
            Arc::clone(&self.bindings),
            |object: Glimpse<BindingView>| object.kept,
            move |key, old, now| apis.binding_changed(key, old, now, &work),
        ));
        let work = queues.clone();
        manager.spawn(follow_changes(
            everywhere(
                client.clone(),
                APIS,
                "v1alpha1",
                "APIExportEndpointSlice",
                "apiexportendpointslices",
            ),
            manager.shutdown(),
            reach.clone(),
            Arc::clone(&self.slices),
            |object: Json| {
                let name = object.value.pointer("/spec/export/name").and_then(Value::as_str);
                name.unwrap_or_default().into()
            },
            move |key, _, _| work.slices.add(key),
        ));
        let (apis, work) = (self.clone(), queues.clone());
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        self.follow_secrets(manager, queues);
        manager.spawn(follow(
            definitions,
            watcher::Config::default(),
            manager.shutdown(),
            move |event| {
                // What a definition held may be free now.
                if let Event::Delete(definition) = event {
                    let workspace = reach.workspace_of(&definition.metadata);
                    apis.look_again_in(&workspace, &work);
                }
            },
        ));
    }

    /// An export whose identity lies in a Secret is looked at when that changes. Nothing is kept of Secrets.
    fn follow_secrets(&self, manager: &mut Manager, queues: &Queues) {
        let client = manager.clients(users::API_EXPORT_CONTROLLER).every();
        let (apis, work, reach) = (self.clone(), queues.clone(), manager.reach().clone());
        let secrets: Api<PartialObjectMeta<Secret>> = Api::all(client);
        let config = watcher::Config::default();
        manager.spawn(follow(secrets, config, manager.shutdown(), move |event| {
            // What there is at the start is read with the exports.
            if let Event::Apply(secret) | Event::Delete(secret) = event {
                let key = ObjectKey::of(&reach, &secret.metadata);
                for (export, kept) in apis.exports.of_workspace(&key.workspace) {
                    if kept.secret() == (key.namespace.as_str(), key.name.as_str()) {
                        work.exports.add(export);
                    }
                }
            }
        }));
    }

    /// Has every binding of a workspace looked at.
    fn look_again_in(&self, workspace: &WorkspaceId, work: &Queues) {
        for (key, _) in self.bindings.of_workspace(workspace) {
            work.bindings.add(key);
        }
    }

    fn offer_changed(&self, export: &ObjectKey, work: &Queues) {
        let consumers = self.consumers();
        let bound = consumers.of.get(export).into_iter().flatten();
        for key in bound.chain(&consumers.pending) {
            work.bindings.add(key.clone());
        }
        drop(consumers);
        self.slices_of(export, work);
    }

    fn slices_of(&self, export: &ObjectKey, work: &Queues) {
        for (key, name) in self.slices.all() {
            if **name == *export.name {
                work.slices.add(key);
            }
        }
    }

    fn binding_changed(
        &self,
        key: ObjectKey,
        old: Option<&BindingView>,
        now: Option<&BindingView>,
        work: &Queues,
    ) {
        let changed = self.consumers().note(&key, old, now);
        for export in changed {
            self.slices_of(&export, work);
        }
        if now.is_none() {
            // What it held may be free now.
            self.look_again_in(&key.workspace, work);
        }
        if old.map(|it| it.ready) != now.map(|it| it.ready) {
            work.clusters.add(cluster_key(&key.workspace));
        }
        work.bindings.add(key);
    }
}

impl Consumers {
    /// Notes a change of a binding, and says which exports have got their first or lost their last one by it.
    fn note(
        &mut self,
        key: &ObjectKey,
        old: Option<&BindingView>,
        now: Option<&BindingView>,
    ) -> Vec<ObjectKey> {
        let of = |view: Option<&BindingView>| view.and_then(|it| it.export.clone());
        let (old_export, new_export) = (of(old), of(now));
        let mut changed = Vec::new();
        if now.is_some() && new_export.is_none() {
            self.pending.insert(key.clone());
        } else {
            self.pending.remove(key);
        }
        if let Some(export) = old_export.filter(|it| Some(it) != new_export.as_ref())
            && let Some(bindings) = self.of.get_mut(&export)
        {
            bindings.remove(key);
            if bindings.is_empty() {
                self.of.remove(&export);
                changed.push(export);
            }
        }
        if let Some(export) = new_export {
            let bindings = self.of.entry(export.clone()).or_default();
            if bindings.is_empty() {
                changed.push(export);
            }
            bindings.insert(key.clone());
        }
        changed
    }
}

impl Kept for BindingView {
    type Wire<'a> = glance::Binding<'a>;

    fn keep(binding: &glance::Binding<'_>) -> (ObjectMeta, Self) {
        let export = binding.export().and_then(|(cluster, name)| {
            let workspace = WorkspaceId::parse(cluster).ok()?;
            Some(ObjectKey::new(&workspace, "", name))
        });
        let kept = Self {
            export,
            ready: binding.is_initially_bound(),
            taken: binding.taken(),
        };
        (meta_of(&binding.metadata), kept)
    }
}

#[cfg(test)]
mod tests {
    use fairway_controller::{ObjectKey, WorkspaceId};

    use super::{BindingView, Consumers};

    #[test]
    fn only_the_first_and_the_last_consumer_change_an_export() {
        let at = |name: &str| ObjectKey::new(&WorkspaceId::root(), "", name);
        let bound = |export: Option<&str>| BindingView {
            export: export.map(at),
            ready: false,
            taken: None,
        };
        let mut consumers = Consumers::default();
        let (none, x, y) = (bound(None), bound(Some("x")), bound(Some("y")));
        for (step, key, old, now, changed, pending) in [
            (1, "a", None, Some(&none), vec![], 1),
            (2, "a", Some(&none), Some(&x), vec![at("x")], 0),
            (3, "b", None, Some(&x), vec![], 0),
            (4, "a", Some(&x), Some(&x), vec![], 0),
            (5, "a", Some(&x), Some(&y), vec![at("y")], 0),
            (6, "b", Some(&x), None, vec![at("x")], 0),
            (7, "c", None, Some(&none), vec![], 1),
            (8, "c", Some(&none), None, vec![], 0),
        ] {
            assert_eq!(consumers.note(&at(key), old, now), changed, "step {step}");
            assert_eq!(consumers.pending.len(), pending, "step {step}");
        }
        assert_eq!(consumers.of.len(), 1);
    }
}
