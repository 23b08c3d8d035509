//! Names, labels, owners and conditions, which all objects have alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `metadata`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Who it is, over time.
    pub uid: String,
    /// Counts changes of the spec.
    pub generation: i64,
    /// Set while it is being deleted.
    pub deletion_timestamp: Option<String>,
    /// When it was made.
    pub creation_timestamp: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Who must agree before it goes.
    pub finalizers: Vec<String>,
    /// Whom it belongs to.
    pub owner_references: Vec<OwnerReference>,
}

/// An entry of `ownerReferences`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerReference {
    /// Kind of the owner.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Whether it is the one that acts on the object.
    pub controller: Option<bool>,
}

/// A condition as it stands in a status. Times of transitions are the writer's business.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Which.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Condition {
    /// A condition that holds.
    pub fn holds(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, "True", reason, message)
    }

    /// A condition that does not hold.
    pub fn fails(kind: &str, reason: &str, message: impl Into<String>) -> Self {
        Self::new(kind, "False", reason, message)
    }

    fn new(kind: &str, status: &str, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Whether a list says that a condition holds.
    pub fn is_true(all: &[Self], kind: &str) -> bool {
        all.iter().any(|it| it.kind == kind && it.status == "True")
    }
}
