//! What a kind of objects uses of which resources.

use serde_json::Value;

use crate::scope::Scope;
use crate::{Amounts, Operation, Quota, claim, device, pod, service};

/// Kinds that quotas leave alone: those that are asked and never stored, and events.
const IGNORED: &[(&str, &str)] = &[
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// Kinds that are counted under their plain name too, which is older than `count/`.
const BY_PLAIN_NAME: &[&str] = &[
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];

/// Whether quotas leave this kind alone.
pub fn is_ignored(group: &str, resource: &str) -> bool {
    IGNORED.contains(&(group, resource))
}

/// `count/deployments.apps`, `count/pods`: the name under which objects of a kind are counted.
pub fn count_name(group: &str, resource: &str) -> String {
    if group.is_empty() {
        format!("count/{resource}")
    } else {
        format!("count/{resource}.{group}")
    }
}

/// Measures the objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    /// Pods: compute resources and numbers.
    Pods,
    /// Services: numbers, node ports, load balancers.
    Services,
    /// PersistentVolumeClaims: numbers and storage, also by storage class.
    PersistentVolumeClaims,
    /// ResourceClaims: numbers and devices by class.
    ResourceClaims,
    /// All others: numbers, under these names.
    Count(Vec<String>),
}

impl Evaluator {
    /// The evaluator of a kind; `None` for those that quotas leave alone.
    pub fn of(group: &str, resource: &str) -> Option<Self> {
        if is_ignored(group, resource) {
            return None;
        }
        Some(match (group, resource) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::PersistentVolumeClaims,
            ("resource.k8s.io", "resourceclaims") => Self::ResourceClaims,
            _ => {
                let plain = group.is_empty() && BY_PLAIN_NAME.contains(&resource);
                let names = [count_name(group, resource)];
                Self::Count(
                    names
                        .into_iter()
                        .chain(plain.then(|| resource.to_owned()))
                        .collect(),
                )
            }
        })
    }

    /// Whether numbers are all that is measured: then an object need not be read to be counted.
    pub fn counts_only(&self) -> bool {
        matches!(self, Self::Count(_))
    }

    /// Whether a write can change what is used.
    pub(crate) fn handles(
        &self,
        operation: Operation,
        subresource: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> bool {
        let create = operation == Operation::Create;
        match (self, subresource) {
            (Self::Count(_), "") => create,
            (Self::Pods, "") => create || old.is_some_and(|old| pod::scope_changed(old, object)),
            (Self::Pods, "resize") => !create,
            (Self::PersistentVolumeClaims, "status") => {
                old.is_some_and(|old| claim::usage_may_have_changed(old, object))
            }
            (Self::Services | Self::PersistentVolumeClaims | Self::ResourceClaims, "") => true,
            _ => false,
        }
    }

    /// Whether a resource of a quota is one that this kind uses.
    pub fn measures(&self, name: &str) -> bool {
        match self {
            Self::Pods => pod::measures(name),
            Self::Services => service::measures(name),
            Self::PersistentVolumeClaims => claim::measures(name),
            Self::ResourceClaims => device::measures(name),
            Self::Count(names) => names.iter().any(|known| known == name),
        }
    }

    fn in_scope(&self, scope: &Scope, object: &Value) -> bool {
        match self {
            Self::Pods => pod::in_scope(scope, object),
            Self::PersistentVolumeClaims => claim::in_scope(scope, object),
            Self::Services | Self::ResourceClaims | Self::Count(_) => false,
        }
    }

    /// Whether all scopes of a quota hold for an object.
    pub fn in_scopes(&self, quota: &Quota, object: &Value) -> bool {
        quota.scopes.iter().all(|scope| self.in_scope(scope, object))
    }

    /// What an object must say about the resources that a quota limits, and does not.
    pub(crate) fn missing(&self, limited: &[&str], object: &Value) -> Option<String> {
        match self {
            Self::Pods => pod::missing(limited, object),
            _ => None,
        }
    }

    /// What an object uses. `now` is RFC 3339.
    pub fn usage(&self, object: &Value, now: &str) -> Amounts {
        match self {
            Self::Pods => pod::usage(object, now),
            Self::Services => service::usage(object),
            Self::PersistentVolumeClaims => claim::usage(object),
            Self::ResourceClaims => device::usage(object),
            Self::Count(names) => {
                let mut used = Amounts::default();
                names.iter().for_each(|name| used.one(name));
                used
            }
        }
    }
}
