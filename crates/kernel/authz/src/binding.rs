//! Bindings: to whom a role is granted.

use fairway_text_gotext::strings::push_quoted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attributes::UserInfo;

/// Someone to whom a binding grants its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The API group; empty for service accounts.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The name.
    pub name: String,
    /// A service account's namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleRef {
    /// The API group of roles.
    #[serde(default)]
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The role's name.
    pub name: String,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The role that is granted.
    pub role_ref: RoleRef,
    /// To whom.
    pub subjects: Vec<Subject>,
}

/// What an index looks a subject up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubjectKey {
    User(String),
    Group(String),
}

impl Binding {
    /// Reads a binding object. One without a usable `roleRef` grants nothing and is none.
    pub fn from_object(object: &Value) -> Option<Self> {
        let role_ref = RoleRef::deserialize(object.get("roleRef")?).ok()?;
        let subjects = match object.get("subjects") {
            Some(Value::Array(subjects)) => subjects
                .iter()
                .filter_map(|subject| Subject::deserialize(subject).ok())
                .collect(),
            _ => Vec::new(),
        };
        Some(Self { role_ref, subjects })
    }
}

impl Subject {
    /// The users or the group that this subject stands for, in a binding of `namespace` (empty for cluster scope).
    pub(crate) fn key(&self, namespace: &str) -> Option<SubjectKey> {
        match self.kind.as_str() {
            "User" => Some(SubjectKey::User(self.name.clone())),
            "Group" => Some(SubjectKey::Group(self.name.clone())),
            "ServiceAccount" => {
                // A binding may leave out the namespace of an account of its own namespace.
                let namespace = if self.namespace.is_empty() {
                    namespace
                } else {
                    &self.namespace
                };
                let complete = !namespace.is_empty() && !self.name.is_empty();
                complete.then(|| SubjectKey::User(format!("system:serviceaccount:{namespace}:{}", self.name)))
            }
            _ => None,
        }
    }

    /// Whether it stands for the user of this name, in a binding of `namespace` (empty for cluster scope).
    pub(crate) fn is_user(&self, user: &str, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => self.name == user,
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() {
                    namespace
                } else {
                    &self.namespace
                };
                let account = user
                    .strip_prefix("system:serviceaccount:")
                    .and_then(|rest| rest.strip_prefix(namespace)?.strip_prefix(':'));
                !namespace.is_empty() && !self.name.is_empty() && account == Some(self.name.as_str())
            }
            _ => false,
        }
    }

    /// Whether it stands for the group of this name.
    pub(crate) fn is_group(&self, group: &str) -> bool {
        self.kind == "Group" && self.name == group
    }

    /// Whether a binding of `namespace` (empty for cluster scope) with this subject applies to `user`.
    pub fn applies_to(&self, user: &UserInfo, namespace: &str) -> bool {
        self.is_user(&user.name, namespace) || (self.kind == "Group" && user.in_group(&self.name))
    }

    /// The subject as reasons name it. Upstream writes a service account's name before its namespace.
    pub(crate) fn describe(&self, out: &mut String, namespace: &str) {
        out.push_str(&self.kind);
        out.push(' ');
        if self.kind == "ServiceAccount" {
            let namespace = if self.namespace.is_empty() {
                namespace
            } else {
                &self.namespace
            };
            push_quoted(out, &format!("{}/{namespace}", self.name));
        } else {
            push_quoted(out, &self.name);
        }
    }
}

/// The reason that an allowed request carries.
pub(crate) fn describe_grant(
    namespace: &str,
    name: &str,
    binding: &Binding,
    subject: Option<&Subject>,
) -> String {
    let mut out = String::with_capacity(128);
    out.push_str("RBAC: allowed by ");
    if namespace.is_empty() {
        out.push_str("ClusterRoleBinding ");
        push_quoted(&mut out, name);
    } else {
        out.push_str("RoleBinding ");
        push_quoted(&mut out, &format!("{name}/{namespace}"));
    }
    out.push_str(" of ");
    out.push_str(&binding.role_ref.kind);
    out.push(' ');
    push_quoted(&mut out, &binding.role_ref.name);
    if let Some(subject) = subject {
        out.push_str(" to ");
        subject.describe(&mut out, namespace);
    }
    out
}
