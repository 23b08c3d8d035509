//! What every object says of itself, read leniently: a field of the wrong type counts as absent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::{ClusterId, WorkspacePath};
use crate::names::annotation;

/// An object's metadata, as far as decisions need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Set once it is being deleted.
    pub deletion_timestamp: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
}

impl Meta {
    /// The metadata of an object.
    pub fn read(object: &Value) -> Self {
        part(object, "metadata")
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// The workspace that the object lies in.
    pub fn cluster(&self) -> Option<ClusterId> {
        ClusterId::parse(self.annotation(annotation::CLUSTER)?).ok()
    }

    /// The path of the workspace that the object lies in, if the object says so; else its id.
    pub fn path(&self) -> Option<WorkspacePath> {
        self.annotation(annotation::PATH)
            .and_then(|path| WorkspacePath::parse(path).ok())
            .or_else(|| self.cluster().map(|cluster| cluster.path()))
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether a finalizer holds it.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|it| it == name)
    }
}

/// A part of an object as a type; empty where it is missing or not readable.
pub(crate) fn part<T: DeserializeOwned + Default>(object: &Value, field: &str) -> T {
    object
        .get(field)
        .and_then(|value| T::deserialize(value).ok())
        .unwrap_or_default()
}
