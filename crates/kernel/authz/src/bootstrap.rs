//! The roles and bindings that a Kubernetes 1.36 server starts with, a few `system:controller:fairway-*` for what
//! upstream does without a user of its own, and those of the domains that Fairway brings.
//!
//! The tables below this module hold the facts in a short form; [`objects`] spells them out. Lists are in the
//! alphabetical order in which upstream stores them, so that an object read here equals one read there. A test
//! compares every object to upstream's where its Go module is at hand.

mod catalog_roles;
mod component_roles;
mod controller_roles;
mod fairway_roles;
mod gateway_roles;
mod gitops_roles;
mod grants;
mod machine_roles;
mod namespaced;
mod node_roles;
mod portal_roles;
mod reconcile;
mod tenancy_roles;
mod user_roles;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::{Kind, Policy, RBAC_GROUP};
use catalog_roles::{CATALOG_CONTROLLER_ROLES, CATALOG_ROLES};
use component_roles::COMPONENT_ROLES;
use controller_roles::CONTROLLER_ROLES;
use fairway_roles::FAIRWAY_ROLES;
use gateway_roles::{GATEWAY_CONTROLLER_ROLES, GATEWAY_GRANTS, GATEWAY_ROLES};
use gitops_roles::{GITOPS_GRANTS, GITOPS_ROLES};
use grants::{CLUSTER_GRANTS, NAMESPACED_GRANTS};
use machine_roles::{MACHINE_CONTROLLER_ROLES, MACHINE_GRANTS, MACHINE_ROLES};
use namespaced::NAMESPACED_ROLES;
use node_roles::{NODE_CONTROLLER_ROLES, NODE_GRANTS};
use portal_roles::PORTAL_ROLES;
pub use reconcile::{Reconciliation, reconcile};
use tenancy_roles::{TENANCY_GRANTS, TENANCY_ROLES};
use user_roles::USER_ROLES;

/// The prefix of controllers' roles; the rest of the name is the controller's service account.
const CONTROLLER_PREFIX: &str = "system:controller:";

const READ: &[&str] = &["get", "list", "watch"];
const READ_UPDATE: &[&str] = &["get", "list", "patch", "update", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const CORE: &[&str] = &[""];
/// Whoever does something may report it.
const EVENTS: Rule = on(
    &["create", "patch", "update"],
    &["", "events.k8s.io"],
    &["events"],
);

/// A default role or binding.
#[derive(Debug, Clone, PartialEq)]
pub struct BootstrapObject {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for cluster scope.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The whole object, without what the server sets.
    pub object: Value,
}

struct Role {
    name: &'static str,
    namespace: &'static str,
    /// The aggregated role that gathers this one.
    aggregates_to: Option<&'static str>,
    /// The aggregated role whose label this one gathers.
    gathers: Option<&'static str>,
    rules: &'static [Rule],
}

#[derive(Clone, Copy)]
struct Rule {
    verbs: &'static [&'static str],
    groups: &'static [&'static str],
    resources: &'static [&'static str],
    names: &'static [&'static str],
    urls: &'static [&'static str],
}

struct Grant {
    name: &'static str,
    namespace: &'static str,
    role: &'static str,
    subjects: &'static [Holder],
}

enum Holder {
    User(&'static str),
    Group(&'static str),
    /// Namespace and name.
    ServiceAccount(&'static str, &'static str),
}

impl Role {
    const NONE: Self = Self {
        name: "",
        namespace: "",
        aggregates_to: None,
        gathers: None,
        rules: &[],
    };
}

impl Grant {
    const NONE: Self = Self {
        name: "",
        namespace: "",
        role: "",
        subjects: &[],
    };
}

type Names = &'static [&'static str];

const fn on(verbs: Names, groups: Names, resources: Names) -> Rule {
    named(verbs, groups, resources, &[])
}

const fn named(verbs: Names, groups: Names, resources: Names, names: Names) -> Rule {
    Rule {
        verbs,
        groups,
        resources,
        names,
        urls: &[],
    }
}

const fn at(verbs: Names, urls: Names) -> Rule {
    Rule {
        verbs,
        groups: &[],
        resources: &[],
        names: &[],
        urls,
    }
}

/// Every default object: roles before the bindings that refer to them. The aggregated roles have no rules yet; see
/// [`crate::Policy::pending_aggregations`].
pub fn objects() -> Vec<BootstrapObject> {
    let mut all = Vec::new();
    for role in USER_ROLES
        .iter()
        .chain(COMPONENT_ROLES)
        .chain(CONTROLLER_ROLES)
        .chain(FAIRWAY_ROLES)
        .chain(TENANCY_ROLES)
        .chain(GITOPS_ROLES)
        .chain(PORTAL_ROLES)
        .chain(MACHINE_CONTROLLER_ROLES)
        .chain(MACHINE_ROLES)
        .chain(GATEWAY_CONTROLLER_ROLES)
        .chain(GATEWAY_ROLES)
        .chain(CATALOG_CONTROLLER_ROLES)
        .chain(CATALOG_ROLES)
        .chain(NAMESPACED_ROLES)
        .chain(NODE_CONTROLLER_ROLES)
    {
        all.push(role.object());
    }
    for grant in CLUSTER_GRANTS
        .iter()
        .chain(TENANCY_GRANTS)
        .chain(GITOPS_GRANTS)
        .chain(MACHINE_GRANTS)
        .chain(GATEWAY_GRANTS)
        .chain(NODE_GRANTS)
        .chain(NAMESPACED_GRANTS)
    {
        all.push(grant.object());
    }
    all.extend(
        CONTROLLER_ROLES
            .iter()
            .chain(FAIRWAY_ROLES)
            .chain(MACHINE_CONTROLLER_ROLES)
            .chain(GATEWAY_CONTROLLER_ROLES)
            .chain(CATALOG_CONTROLLER_ROLES)
            .chain(NODE_CONTROLLER_ROLES)
            .map(controller_binding),
    );
    all
}

/// The default objects as a policy: what holds in a workspace that has no copies of them.
pub fn policy() -> Arc<Policy> {
    static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| {
        let mut policy = Policy::new();
        let mut defaults = objects();
        for default in &defaults {
            policy.upsert(default.kind, default.namespace, default.name, &default.object);
        }
        loop {
            let pending = policy.pending_aggregations();
            if pending.is_empty() {
                return Arc::new(policy);
            }
            for role in pending {
                let gathered = defaults
                    .iter_mut()
                    .find(|o| o.kind == Kind::ClusterRole && o.name == role.name);
                let Some(default) = gathered else { continue };
                default.object["rules"] = json!(role.rules);
                policy.upsert(Kind::ClusterRole, "", default.name, &default.object);
            }
        }
    });
    Arc::clone(&POLICY)
}

/// Each controller's role is held by the service account of its name.
fn controller_binding(role: &Role) -> BootstrapObject {
    let account = role.name.strip_prefix(CONTROLLER_PREFIX).unwrap_or(role.name);
    let subjects = json!([{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]);
    binding(role.namespace, role.name, role.name, &subjects)
}

fn metadata(namespace: &str, name: &str) -> Value {
    let mut metadata = json!({
        "name": name,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn aggregation_label(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

impl Role {
    fn object(&self) -> BootstrapObject {
        let kind = if self.namespace.is_empty() {
            Kind::ClusterRole
        } else {
            Kind::Role
        };
        let mut metadata = metadata(self.namespace, self.name);
        if let Some(role) = self.aggregates_to {
            metadata["labels"][aggregation_label(role)] = json!("true");
        }
        let mut object = json!({
            "apiVersion": format!("{RBAC_GROUP}/v1"),
            "kind": if kind == Kind::Role { "Role" } else { "ClusterRole" },
            "metadata": metadata,
        });
        if let Some(role) = self.gathers {
            let label = json!({aggregation_label(role): "true"});
            object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": label}]});
            object["rules"] = Value::Null;
        } else {
            object["rules"] = self.rules.iter().map(Rule::object).collect();
        }
        BootstrapObject {
            kind,
            namespace: self.namespace,
            name: self.name,
            object,
        }
    }
}

impl Rule {
    fn object(&self) -> Value {
        let mut rule = json!({});
        for (field, items) in [
            ("apiGroups", self.groups),
            ("nonResourceURLs", self.urls),
            ("resourceNames", self.names),
            ("resources", self.resources),
            ("verbs", self.verbs),
        ] {
            if !items.is_empty() {
                rule[field] = json!(items);
            }
        }
        rule
    }
}

impl Grant {
    fn object(&self) -> BootstrapObject {
        let subjects: Value = self.subjects.iter().map(Holder::object).collect();
        binding(self.namespace, self.name, self.role, &subjects)
    }
}

impl Holder {
    fn object(&self) -> Value {
        match self {
            Self::User(name) => json!({"apiGroup": RBAC_GROUP, "kind": "User", "name": name}),
            Self::Group(name) => json!({"apiGroup": RBAC_GROUP, "kind": "Group", "name": name}),
            Self::ServiceAccount(namespace, name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
            }
        }
    }
}

fn binding(namespace: &'static str, name: &'static str, role: &str, subjects: &Value) -> BootstrapObject {
    let (kind, kind_name, role_kind) = match namespace {
        "" => (Kind::ClusterRoleBinding, "ClusterRoleBinding", "ClusterRole"),
        _ => (Kind::RoleBinding, "RoleBinding", "Role"),
    };
    let mut object = json!({
        "apiVersion": format!("{RBAC_GROUP}/v1"),
        "kind": kind_name,
        "metadata": metadata(namespace, name),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": role_kind, "name": role},
    });
    if subjects.as_array().is_some_and(|list| !list.is_empty()) {
        object["subjects"] = subjects.clone();
    }
    BootstrapObject {
        kind,
        namespace,
        name,
        object,
    }
}

#[cfg(test)]
mod tests;
