//! Which resources each workspace has.
//!
//! Built-in kinds are everywhere. What a workspace has besides are layers: its own CRDs, and what it binds from exports.
//! Most workspaces have the same ones, and a layer is shared by all that have it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use crate::registry::{Layer, Registry};
use crate::workspaces::EVERY_CLUSTER;

/// The resources of all workspaces.
pub struct Apis {
    /// Of workspaces that have nothing of their own.
    plain: Arc<Registry>,
    workspaces: RwLock<HashMap<Box<str>, Workspace>>,
}

#[derive(Default)]
struct Workspace {
    own: Arc<Layer>,
    bound: Vec<Arc<Layer>>,
    registry: Arc<Registry>,
}

impl Default for Apis {
    fn default() -> Self {
        Self {
            plain: Arc::new(Registry::default()),
            workspaces: RwLock::default(),
        }
    }
}

impl Apis {
    /// What a workspace serves now, or all of them.
    pub fn of(&self, cluster: &str) -> Arc<Registry> {
        let workspaces = self.workspaces.read().unwrap_or_else(PoisonError::into_inner);
        if cluster == EVERY_CLUSTER {
            return Arc::new(everywhere(workspaces.values()));
        }
        let found = workspaces.get(cluster).map(|workspace| &workspace.registry);
        Arc::clone(found.unwrap_or(&self.plain))
    }

    /// Puts the kinds of a workspace's own CRDs in place.
    pub fn set_own(&self, cluster: &str, own: Layer) {
        self.edit(cluster, |workspace| workspace.own = Arc::new(own));
    }

    /// Puts the kinds in place that a workspace has bound.
    pub fn set_bound(&self, cluster: &str, bound: Vec<Arc<Layer>>) {
        self.edit(cluster, |workspace| workspace.bound = bound);
    }

    fn edit(&self, cluster: &str, edit: impl FnOnce(&mut Workspace)) {
        let mut workspaces = self.workspaces.write().unwrap_or_else(PoisonError::into_inner);
        let workspace = workspaces.entry(cluster.into()).or_default();
        edit(workspace);
        if workspace.own.is_empty() && workspace.bound.is_empty() {
            workspaces.remove(cluster);
            return;
        }
        let layers = std::iter::once(&workspace.own).chain(&workspace.bound);
        workspace.registry = Arc::new(Registry::new(layers.cloned()));
    }
}

/// Every layer once, however many workspaces share it.
fn everywhere<'a>(workspaces: impl Iterator<Item = &'a Workspace>) -> Registry {
    let mut seen = HashSet::new();
    let layers = workspaces.flat_map(|workspace| std::iter::once(&workspace.own).chain(&workspace.bound));
    Registry::everywhere(layers.filter(|layer| seen.insert(Arc::as_ptr(layer))).cloned())
}
