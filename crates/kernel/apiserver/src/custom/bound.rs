//! The kinds that workspaces bind from exports.
//!
//! An APIBinding's status says which schemas it brings, and under which identity. Each schema is compiled once for all
//! workspaces that bind it. It happens under the lock of bindings, so that a workspace whose binding has been
//! acknowledged as bound serves the kinds at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use fairway_kernel_tenancy::binding::{ApiBinding, BoundResource};
use fairway_kernel_tenancy::claims::Answer;
use fairway_kernel_tenancy::names::APIS;
use fairway_kernel_tenancy::schema;

use super::compile::{Origin, resources};
use crate::cache::{Cache, Change, ChangeKind};
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, split_suffix};
use crate::registry::Layer;

/// The UID of a schema and the identity of its export.
type LayerKey = (Box<str>, Box<str>);

/// By workspace, then by the name of the binding.
type ByBinding<T> = HashMap<Box<str>, BTreeMap<Box<str>, T>>;

/// Follows the bindings.
#[derive(Default)]
pub struct Bound {
    /// What each binding brings.
    bindings: Mutex<ByBinding<Vec<Arc<Layer>>>>,
    /// What is compiled already and still in use.
    layers: Mutex<HashMap<LayerKey, Weak<Layer>>>,
    /// Bindings that let a provider see more than its own kinds.
    consents: RwLock<ByBinding<Arc<ApiBinding>>>,
}

fn prefix(resource: &str) -> KindPrefix {
    KindPrefix::new(APIS, resource, BUILTIN_IDENTITY)
}

impl Bound {
    /// Takes up the bindings that there are, and every change from then on.
    pub fn follow(kernel: &Arc<Kernel>) {
        let weak = Arc::downgrade(kernel);
        let bindings = kernel.storage.cache.kind(prefix("apibindings").as_str());
        bindings.observe(Box::new(move |change| {
            if let Some(kernel) = weak.upgrade() {
                kernel.bound.take(&kernel, change);
            }
        }));
    }

    fn take(&self, kernel: &Kernel, change: &Change) {
        let (cluster, _, name) = split_suffix(&change.suffix);
        let binding = match change.object.value() {
            Ok(object) if change.kind != ChangeKind::Deleted => Some(ApiBinding::read(&object)),
            _ => None,
        };
        let brought = binding.as_ref().map(|b| self.layers_of(&kernel.storage.cache, b));
        let mut all = self.bindings.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.entry(cluster.into()).or_default();
        match brought.filter(|layers| !layers.is_empty()) {
            Some(layers) => drop(here.insert(name.into(), layers)),
            None => drop(here.remove(name)),
        }
        let layers = here.values().flatten().cloned().collect();
        if here.is_empty() {
            all.remove(cluster);
        }
        kernel.apis.set_bound(cluster, layers);
        drop(all);
        self.take_consent(cluster, name, binding);
    }

    fn take_consent(&self, cluster: &str, name: &str, binding: Option<ApiBinding>) {
        let consents = binding.filter(|b| b.answers.iter().any(Answer::is_accepted));
        let mut all = self.consents.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(binding) = consents {
            let here = all.entry(cluster.into()).or_default();
            here.insert(name.into(), Arc::new(binding));
        } else if let Some(here) = all.get_mut(cluster) {
            here.remove(name);
            if here.is_empty() {
                all.remove(cluster);
            }
        }
    }

    /// The bindings of a workspace that let somebody see more than his own kinds.
    pub fn consents(&self, cluster: &str) -> Vec<Arc<ApiBinding>> {
        let all = self.consents.read().unwrap_or_else(PoisonError::into_inner);
        all.get(cluster)
            .into_iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect()
    }

    fn layers_of(&self, cache: &Cache, binding: &ApiBinding) -> Vec<Arc<Layer>> {
        let Some((cluster, export)) = binding.export() else {
            return Vec::new();
        };
        let bound = binding.bound.iter();
        bound
            .filter_map(|resource| self.layer(cache, cluster.as_str(), export, resource))
            .collect()
    }

    /// The kinds of one schema of an export.
    fn layer(&self, cache: &Cache, cluster: &str, export: &str, bound: &BoundResource) -> Option<Arc<Layer>> {
        let (uid, identity) = (bound.schema.uid.as_str(), bound.schema.identity_hash.as_str());
        self.compiled(cache, cluster, export, &bound.schema.name, Some(uid), identity)
    }

    /// The kinds of one schema, under an identity.
    pub fn compiled(
        &self,
        cache: &Cache,
        cluster: &str,
        export: &str,
        name: &str,
        uid: Option<&str>,
        identity: &str,
    ) -> Option<Arc<Layer>> {
        let object = cache.built_in_value(APIS, "apiresourceschemas", cluster, "", name)?;
        let found = object["metadata"]["uid"].as_str().unwrap_or_default();
        if uid.is_some_and(|uid| uid != found) {
            return None;
        }
        let key = (Box::from(found), Box::from(identity));
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layer) = layers.get(&key).and_then(Weak::upgrade) {
            return Some(layer);
        }
        // Objects that are older than the export's last change may have been written under another schema.
        let since =
            (cache.built_in(APIS, "apiexports", cluster, "", export)).map_or(0, |export| export.revision());
        let origin = Origin::Export {
            cluster: cluster.into(),
            export: export.into(),
            schema: name.into(),
        };
        let defs = resources(&schema::to_crd(&object), &origin, identity, since);
        let layer = Arc::new(Layer::new(defs));
        layers.retain(|_, layer| layer.strong_count() > 0);
        layers.insert(key, Arc::downgrade(&layer));
        Some(layer)
    }
}
