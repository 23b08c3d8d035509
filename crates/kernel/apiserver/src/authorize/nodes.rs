//! What the node authorizer asks about: objects of a workspace, out of the cache.

use fairway_kernel_authz::node::Objects;
use serde_json::Value;

use crate::cache::Scope;
use crate::kernel::Kernel;
use crate::key::{ObjectSuffix, scope_prefix};

/// The objects of a workspace.
pub(crate) struct Seen<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) cluster: &'a str,
}

impl Seen<'_> {
    fn all(&self, group: &str, resource: &str, namespace: &str) -> Vec<Value> {
        let registry = self.kernel.apis.of(self.cluster);
        let Some(def) = registry
            .iter()
            .find(|it| it.group == group && it.resource == resource)
        else {
            return Vec::new();
        };
        let scope = Scope::Within(scope_prefix(self.cluster, Some(namespace)).into_boxed_str());
        let storage = &self.kernel.storage;
        let (objects, _) = storage.kind(def).snapshot(&scope, storage.cache.applied());
        objects.iter().filter_map(|it| it.value().ok()).collect()
    }
}

impl Objects for Seen<'_> {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let registry = self.kernel.apis.of(self.cluster);
        let def = registry
            .iter()
            .find(|it| it.group == group && it.resource == resource)?;
        let suffix = ObjectSuffix::new(self.cluster, namespace, name);
        let found = self.kernel.storage.kind(def).get(suffix.as_str())?;
        found.value().ok()
    }

    fn instances(&self, namespace: &str) -> Vec<Value> {
        self.all("kubevirt.io", "virtualmachineinstances", namespace)
    }

    fn data_volumes(&self, namespace: &str) -> Vec<Value> {
        self.all("cdi.kubevirt.io", "datavolumes", namespace)
    }
}
