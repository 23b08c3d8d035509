//! What names an object in one cluster.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Group, kind, namespace and name. The version is no part of it: an object has one identity in all its versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ResourceKey {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for what lives in the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ResourceKey {
    /// A key of its parts.
    pub fn new(group: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The key of an object, as it says itself.
    pub fn of(object: &Value) -> Self {
        let (group, _) = group_version(object);
        Self::new(group, kind(object), namespace(object), name(object))
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

/// Group and version of an object.
pub fn group_version(object: &Value) -> (&str, &str) {
    let text = object["apiVersion"].as_str().unwrap_or_default();
    text.split_once('/').unwrap_or(("", text))
}

/// The group of an object.
pub fn group(object: &Value) -> &str {
    group_version(object).0
}

/// The kind of an object.
pub fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// The name of an object.
pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The namespace of an object.
pub fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// Whether an object is of a kind.
pub fn is(object: &Value, wanted_group: &str, wanted_kind: &str) -> bool {
    group(object) == wanted_group && kind(object) == wanted_kind
}

/// Whether an object defines a kind.
pub fn is_definition(object: &Value) -> bool {
    is(object, "apiextensions.k8s.io", "CustomResourceDefinition")
}

/// The group and kind that a definition defines.
pub fn defined_kind(object: &Value) -> Option<(&str, &str)> {
    if !is_definition(object) {
        return None;
    }
    let spec = &object["spec"];
    Some((spec["group"].as_str()?, spec["names"]["kind"].as_str()?))
}
