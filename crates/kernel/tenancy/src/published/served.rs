//! A kind as one side serves it: its names, and the addresses of its objects.

use serde_json::Value;

use super::{GroupVersionResource, flag, text};

/// A kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version that is spoken.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name.
    pub plural: String,
    /// Whether objects are in namespaces.
    pub namespaced: bool,
    /// Whether the status has an address of its own.
    pub has_status: bool,
}

impl Served {
    /// The kind of a definition, in the version in which objects are stored.
    pub fn of(definition: &Value) -> Result<Self, String> {
        let spec = definition.get("spec").unwrap_or(&Value::Null);
        let versions = spec.get("versions").and_then(Value::as_array);
        let stored = versions.into_iter().flatten().find(|it| flag(it, "storage"));
        let stored = stored.ok_or_else(|| "CRD does not contain a storage version".to_owned())?;
        let names = spec.get("names").unwrap_or(&Value::Null);
        Ok(Self {
            group: text(spec, "group").to_owned(),
            version: text(stored, "name").to_owned(),
            kind: text(names, "kind").to_owned(),
            plural: text(names, "plural").to_owned(),
            namespaced: text(spec, "scope") == "Namespaced",
            has_status: stored
                .pointer("/subresources/status")
                .is_some_and(|it| !it.is_null()),
        })
    }

    /// A kind that discovery told of: an entry of an APIResourceList, and its neighbours for the subresources.
    pub fn discovered(named: &GroupVersionResource, resources: &Value) -> Option<Self> {
        let list = resources.get("resources").and_then(Value::as_array)?;
        let entry = list.iter().find(|it| text(it, "name") == named.resource)?;
        let status = format!("{}/status", named.resource);
        Some(Self {
            group: named.group.clone(),
            version: named.version.clone(),
            kind: text(entry, "kind").to_owned(),
            plural: named.resource.clone(),
            namespaced: flag(entry, "namespaced"),
            has_status: list.iter().any(|it| text(it, "name") == status),
        })
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The address of the kind's objects: of a namespace, or of all (empty).
    pub fn collection(&self, namespace: &str) -> String {
        let root = group_path(&self.group, &self.version);
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{root}/{}", self.plural)
        }
    }

    /// The address of an object. The names must have been checked: they are taken as they are.
    pub fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}

impl GroupVersionResource {
    /// Where discovery lists the version's resources.
    pub fn discovery(&self) -> String {
        group_path(&self.group, &self.version)
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

fn group_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}
