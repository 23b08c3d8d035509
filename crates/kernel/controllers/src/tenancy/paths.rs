//! Where the kinds of workspaces are served, and what changes between two readings of them.

use serde_json::{Map, Value, json};

pub(super) const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";
pub(super) const TYPES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes";
pub(super) const CLUSTERS: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters";
pub(super) const CLUSTER: &str = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster";
pub(super) const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
pub(super) const EXPORTS: &str = "/apis/apis.kcp.io/v1alpha2/apiexports";
pub(super) const SLICES: &str = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices";
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The merge patch from one map of texts to the other.
pub(super) fn difference(
    old: &std::collections::BTreeMap<String, String>,
    new: &std::collections::BTreeMap<String, String>,
) -> Value {
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(value)) {
        patch.insert(key.clone(), json!(value));
    }
    Value::Object(patch)
}
