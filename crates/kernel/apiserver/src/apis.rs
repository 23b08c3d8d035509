//! Which resources each workspace has.
//!
//! Built-in kinds are everywhere. What a workspace has besides are layers: its own CRDs, and what it binds from exports.
//! Most workspaces have the same ones, and a layer is shared by all that have it. What all workspaces together have is
//! asked for by every request that looks at all of them, so it is made anew only when a layer comes or goes, not when one
//! more workspace has a layer that others have.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::Value;

use crate::custom::ProvidedKind;
use crate::custom::provided::provided_layer;
use crate::registry::{Layer, Registry};
use crate::workspaces::EVERY_CLUSTER;

/// The resources of all workspaces.
pub struct Apis {
    /// Of workspaces that have nothing of their own.
    plain: Arc<Registry>,
    /// Kinds of the program's domains, which all have that have none of the same name.
    provided: Arc<Layer>,
    /// The same with all that is known of them.
    kinds: Box<[ProvidedKind]>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    workspaces: HashMap<Box<str>, Workspace>,
    /// Every layer, by its address, which is its own as long as it is here.
    layers: HashMap<usize, Used>,
    /// Counts layers, so that they keep their order.
    serial: u64,
    /// All layers together, made on first use.
    everywhere: OnceLock<Arc<Registry>>,
}

/// A layer, and how many workspaces have it.
struct Used {
    layer: Arc<Layer>,
    serial: u64,
    count: usize,
}

struct Workspace {
    own: Option<Arc<Layer>>,
    bound: Vec<Arc<Layer>>,
    registry: Arc<Registry>,
}

impl Workspace {
    fn layers(&self) -> impl Iterator<Item = &Arc<Layer>> {
        self.own.iter().chain(&self.bound)
    }
}

impl Apis {
    /// No workspace has anything of its own yet.
    pub fn new(kinds: Vec<ProvidedKind>) -> Self {
        let provided = Arc::new(provided_layer(&kinds));
        Self {
            plain: Arc::new(Registry::new([], &provided)),
            provided,
            kinds: kinds.into(),
            state: RwLock::default(),
        }
    }

    /// The kinds of the program's domains.
    pub fn provided(&self) -> &Layer {
        &self.provided
    }

    /// The whole definition of one of them.
    pub fn provided_definition(&self, group: &str, resource: &str) -> Option<Value> {
        let is_it = |kind: &&ProvidedKind| {
            let spec = &kind.head["spec"];
            spec["group"] == group && spec["names"]["plural"] == resource
        };
        self.kinds.iter().find(is_it).map(|kind| (kind.definition)())
    }

    /// What a workspace serves now, or all of them.
    pub fn of(&self, cluster: &str) -> Arc<Registry> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if cluster == EVERY_CLUSTER {
            return Arc::clone(state.everywhere.get_or_init(|| state.everywhere(&self.provided)));
        }
        let found = state.workspaces.get(cluster).map(|workspace| &workspace.registry);
        Arc::clone(found.unwrap_or(&self.plain))
    }

    /// Puts the kinds of a workspace's own CRDs in place.
    pub fn set_own(&self, cluster: &str, own: Layer) {
        let own = (!own.is_empty()).then(|| Arc::new(own));
        self.edit(cluster, |workspace| workspace.own = own);
    }

    /// Puts the kinds in place that a workspace has bound.
    pub fn set_bound(&self, cluster: &str, bound: Vec<Arc<Layer>>) {
        self.edit(cluster, |workspace| workspace.bound = bound);
    }

    fn edit(&self, cluster: &str, edit: impl FnOnce(&mut Workspace)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = state.workspaces.remove(cluster).unwrap_or_else(|| Workspace {
            own: None,
            bound: Vec::new(),
            registry: Arc::clone(&self.plain),
        });
        let before: Vec<Arc<Layer>> = workspace.layers().cloned().collect();
        edit(&mut workspace);
        // What comes is counted before what goes, so that what stays is not gone in between.
        workspace.layers().for_each(|layer| state.come(layer));
        before.iter().for_each(|layer| state.go(layer));
        if workspace.layers().next().is_some() {
            workspace.registry = Arc::new(Registry::new(workspace.layers().cloned(), &self.provided));
            state.workspaces.insert(cluster.into(), workspace);
        }
    }
}

fn address(layer: &Arc<Layer>) -> usize {
    Arc::as_ptr(layer).addr()
}

impl State {
    fn come(&mut self, layer: &Arc<Layer>) {
        if let Some(used) = self.layers.get_mut(&address(layer)) {
            used.count += 1;
            return;
        }
        self.serial += 1;
        let used = Used {
            layer: Arc::clone(layer),
            serial: self.serial,
            count: 1,
        };
        self.layers.insert(address(layer), used);
        self.everywhere = OnceLock::new();
    }

    fn go(&mut self, layer: &Arc<Layer>) {
        let Some(used) = self.layers.get_mut(&address(layer)) else {
            return;
        };
        used.count -= 1;
        if used.count == 0 {
            self.layers.remove(&address(layer));
            self.everywhere = OnceLock::new();
        }
    }

    /// Every layer once, however many workspaces share it.
    fn everywhere(&self, provided: &Arc<Layer>) -> Arc<Registry> {
        let mut layers: Vec<&Used> = self.layers.values().collect();
        layers.sort_unstable_by_key(|used| used.serial);
        let layers = layers.into_iter().map(|used| Arc::clone(&used.layer));
        Arc::new(Registry::everywhere(layers, provided))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Apis, EVERY_CLUSTER};
    use crate::registry::{Layer, Registry};

    /// A layer of some built-in kind: which one does not matter here.
    fn layer(apis: &Apis, number: usize) -> Arc<Layer> {
        let def = apis.of("nowhere").iter().nth(number).unwrap().clone();
        Arc::new(Layer::new([def]))
    }

    fn size(registry: &Registry) -> usize {
        registry.iter().count()
    }

    #[test]
    fn what_all_have_follows_layers_and_not_workspaces() {
        let apis = Apis::new(Vec::new());
        let (a, b) = (layer(&apis, 0), layer(&apis, 1));
        let plain = size(&apis.of(EVERY_CLUSTER));
        apis.set_bound("one", vec![Arc::clone(&a)]);
        let with_a = apis.of(EVERY_CLUSTER);
        assert_eq!(size(&with_a), plain + 1);
        apis.set_bound("two", vec![Arc::clone(&a)]);
        apis.set_bound("one", vec![Arc::clone(&a)]);
        assert!(
            Arc::ptr_eq(&with_a, &apis.of(EVERY_CLUSTER)),
            "one more that has the same changes nothing"
        );
        apis.set_bound("two", vec![Arc::clone(&a), Arc::clone(&b)]);
        assert_eq!(size(&apis.of(EVERY_CLUSTER)), plain + 2);
        apis.set_bound("two", vec![Arc::clone(&b)]);
        assert_eq!(size(&apis.of(EVERY_CLUSTER)), plain + 2, "the other still has it");
        apis.set_bound("one", Vec::new());
        assert_eq!(size(&apis.of(EVERY_CLUSTER)), plain + 1);
        assert!(Arc::ptr_eq(&apis.of("one"), &apis.plain));
        apis.set_own("two", Layer::new(a.iter().cloned()));
        assert_eq!(size(&apis.of("two")), plain + 2);
        apis.set_own("two", Layer::default());
        apis.set_bound("two", Vec::new());
        assert_eq!(size(&apis.of(EVERY_CLUSTER)), plain);
        let state = apis.state.read().unwrap();
        assert!(state.layers.is_empty() && state.workspaces.is_empty());
    }
}
