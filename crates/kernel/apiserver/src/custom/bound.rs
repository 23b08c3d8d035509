//! The kinds that workspaces bind from exports.
//!
//! An APIBinding's status says which schemas it brings, and under which identity. Each schema is compiled once for all
//! workspaces that bind it. It happens under the lock of bindings, so that a workspace whose binding has been
//! acknowledged as bound serves the kinds at once.

mod kept;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bytes::Bytes;
use fairway_kernel_store::{Store, StoreError};
use fairway_kernel_tenancy::binding::ApiBinding;
use fairway_kernel_tenancy::glance;
use fairway_kernel_tenancy::names::APIS;
use fairway_kernel_tenancy::schema;
use serde_json::Value;
use tracing::warn;

use self::kept::Kept;
use super::compile::{Origin, resources};
use crate::cache::{Cache, Change, ChangeKind, Scope};
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, scope_prefix, split_suffix};
use crate::object::Object;
use crate::registry::Layer;

/// The UID of a schema and the identity of its export.
type LayerKey = (Box<str>, Box<str>);

/// By workspace, then by the name of the binding.
type ByBinding<T> = HashMap<Box<str>, BTreeMap<Box<str>, T>>;

/// What each binding of a workspace brings, by its name. Most workspaces have a few, for which a tree would be mostly room.
type Brought = Vec<(Box<str>, Box<[Arc<Layer>]>)>;

/// Follows the bindings.
#[derive(Default)]
pub struct Bound {
    /// What each binding brings.
    bindings: Mutex<HashMap<Box<str>, Brought>>,
    /// What is compiled already and still in use.
    layers: Mutex<HashMap<LayerKey, Weak<Layer>>>,
    /// Bindings that let a provider see more than its own kinds.
    consents: RwLock<ByBinding<Arc<ApiBinding>>>,
    /// Schemas that are in use and gone.
    kept: Kept,
}

fn prefix(resource: &str) -> KindPrefix {
    KindPrefix::new(APIS, resource, BUILTIN_IDENTITY)
}

impl Bound {
    /// Nothing yet but the schemas that bindings may need.
    pub async fn load(store: &Arc<dyn Store>) -> Result<Self, StoreError> {
        Ok(Self {
            kept: Kept::load(store).await?,
            ..Self::default()
        })
    }

    /// Takes up the bindings that there are, and every change from then on.
    pub async fn follow(kernel: &Arc<Kernel>) {
        let weak = Arc::downgrade(kernel);
        let bindings = kernel.storage.cache.kind(prefix("apibindings").as_str());
        bindings.observe(Box::new(move |change| {
            if let Some(kernel) = weak.upgrade() {
                kernel.bound.take(&kernel, change);
            }
        }));
        let bound = &kernel.bound;
        let pruned = bound
            .kept
            .prune(&kernel.storage.store, |uid| bound.is_in_use(uid));
        if let Err(reason) = pruned.await {
            warn!(%reason, "schemas that nobody uses any more could not be removed; the next start will try again");
        }
    }

    /// Whether a workspace serves what a schema says.
    fn is_in_use(&self, uid: &str) -> bool {
        let layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_schema = layers.iter().filter(|((of, _), _)| **of == *uid);
        of_schema.any(|(_, layer)| layer.strong_count() > 0)
    }

    /// What a schema leaves behind when it is deleted: a copy, if anybody uses it or might be about to.
    pub fn left_behind(&self, cache: &Cache, cluster: &str, schema: &Value) -> Option<(Bytes, Bytes)> {
        let uid = schema["metadata"]["uid"].as_str()?;
        let exports = cache.kind(prefix("apiexports").as_str());
        let (exports, _) = exports.snapshot(&Scope::Within(scope_prefix(cluster, None).into()), 0);
        let is_offered = || {
            let mut resources = exports.iter().filter_map(|export| export.value().ok());
            resources.any(|export| {
                let offered = export["spec"]["resources"].as_array().into_iter().flatten();
                offered
                    .into_iter()
                    .any(|it| it["schema"] == schema["metadata"]["name"])
            })
        };
        (self.is_in_use(uid) || is_offered()).then(|| self.kept.add(uid, schema))
    }

    fn take(&self, kernel: &Kernel, change: &Change) {
        let (cluster, _, name) = split_suffix(&change.suffix);
        let lives = change.kind != ChangeKind::Deleted;
        let glance = serde_json::from_slice::<glance::Binding<'_>>(change.object.bytes()).ok();
        let glance = glance.filter(|_| lives);
        let brought = glance
            .as_ref()
            .map(|it| self.layers_of(&kernel.storage.cache, it));
        let mut all = self.bindings.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.entry(cluster.into()).or_default();
        let at = here.binary_search_by(|(other, _)| (**other).cmp(name));
        match (brought.filter(|layers| !layers.is_empty()), at) {
            (Some(layers), Ok(at)) => here[at].1 = layers.into(),
            (Some(layers), Err(at)) => {
                here.reserve_exact(1);
                here.insert(at, (name.into(), layers.into()));
            }
            (None, Ok(at)) => drop(here.remove(at)),
            (None, Err(_)) => {}
        }
        let layers = here.iter().flat_map(|(_, layers)| layers).cloned().collect();
        if here.is_empty() {
            all.remove(cluster);
        }
        kernel.apis.set_bound(cluster, layers);
        drop(all);
        // Few consent to anything, and only those are read whole.
        let consents = glance.filter(glance::Binding::consents);
        let consents = consents.and_then(|_| Some(ApiBinding::read(&change.object.value().ok()?)));
        self.take_consent(cluster, name, consents);
    }

    fn take_consent(&self, cluster: &str, name: &str, consents: Option<ApiBinding>) {
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

    fn layers_of(&self, cache: &Cache, binding: &glance::Binding<'_>) -> Vec<Arc<Layer>> {
        let Some((cluster, export)) = binding.export() else {
            return Vec::new();
        };
        let bound = binding.bound().iter();
        bound
            .filter_map(|it| {
                let (name, uid) = (it.schema.name.as_str(), it.schema.uid.as_str());
                let identity = it.schema.identity_hash.as_str();
                self.compiled(cache, cluster, export, name, Some(uid), identity)
            })
            .collect()
    }

    /// What is compiled already.
    fn known(&self, uid: &str, identity: &str) -> Option<Arc<Layer>> {
        let layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        let key: LayerKey = (uid.into(), identity.into());
        layers.get(&key).and_then(Weak::upgrade)
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
        // Schemas are large and never change, and thousands of bindings ask for the same few: each is read once. One that
        // is in use stays in use when its object goes.
        if let Some(uid) = uid
            && let Some(layer) = self.known(uid, identity)
        {
            return Some(layer);
        }
        let stored = cache.built_in(APIS, "apiresourceschemas", cluster, "", name);
        let stored_schema = stored.and_then(|it| Some((uid_of(&it)?, it)));
        let (found, object) = match (stored_schema, uid) {
            (Some((found, _)), None) if self.known(&found, identity).is_some() => {
                return self.known(&found, identity);
            }
            (Some((found, schema)), _) if uid.is_none_or(|uid| uid == &*found) => {
                (found, schema.value().ok()?)
            }
            (_, Some(uid)) => (uid.into(), self.kept.get(uid)?),
            (_, None) => return None,
        };
        let key = (found, Box::from(identity));
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

/// The UID of an object, without reading the rest of it.
fn uid_of(object: &Object) -> Option<Box<str>> {
    #[derive(serde::Deserialize)]
    struct Meta {
        uid: Box<str>,
    }
    #[derive(serde::Deserialize)]
    struct Identified {
        metadata: Meta,
    }
    let found: Identified = serde_json::from_slice(&object.partial_metadata()).ok()?;
    Some(found.metadata.uid)
}
