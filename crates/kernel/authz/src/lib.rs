//! RBAC: the decision on a request, with its reason.
//!
//! A [`Policy`] is an index over one workspace's roles and bindings, kept up to date object by object. It answers
//! [`Policy::authorize`] for every request, lists a user's rules for the rules review, refuses escalation when a
//! role or binding is written, and says which aggregated cluster roles are out of date. [`bootstrap`] holds the
//! roles and bindings that every Kubernetes 1.36 server starts with. Nodes are judged beside the policy, by [`node`].
//!
//! The crate must not know how objects are stored or how users are authenticated: it sees JSON objects and a
//! [`UserInfo`], and everything in it is a function of those.

mod aggregation;
mod attributes;
mod binding;
pub mod bootstrap;
mod escalation;
pub mod node;
mod policy;
mod rule;
mod sorted;

pub use aggregation::{LabelSelector, PendingAggregation};
pub use attributes::{Attributes, Decision, ResourceAttributes, UserInfo, forbidden_message};
pub use binding::{Binding, RoleRef, Subject};
pub use escalation::{EscalationError, compact_rules, covers};
pub use policy::{EffectiveRules, NonResourceRule, Policy, ResourceRule, RoleNotFound};
pub use rule::PolicyRule;

/// The API group of roles and bindings.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The group whose members may do everything, whatever the policy says.
pub const PRIVILEGED_GROUP: &str = "system:masters";

/// The four kinds that make up a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Rules within one namespace.
    Role,
    /// Rules for the whole workspace, or a template for bindings of any namespace.
    ClusterRole,
    /// Grants a role within its namespace.
    RoleBinding,
    /// Grants a cluster role everywhere.
    ClusterRoleBinding,
}

impl Kind {
    /// The kind that a resource of the RBAC group holds, by the resource's plural name.
    pub fn from_resource(resource: &str) -> Option<Self> {
        match resource {
            "roles" => Some(Self::Role),
            "clusterroles" => Some(Self::ClusterRole),
            "rolebindings" => Some(Self::RoleBinding),
            "clusterrolebindings" => Some(Self::ClusterRoleBinding),
            _ => None,
        }
    }

    /// The resource's plural name.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
            Self::RoleBinding => "rolebindings",
            Self::ClusterRoleBinding => "clusterrolebindings",
        }
    }
}
