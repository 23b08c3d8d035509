//! Whether a request may be carried out: RBAC on what the cache knows, kept current by watching it; nodes are judged by what is
//! placed on them first.

pub(crate) mod nodes;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use fairway_kernel_authz::{
    Attributes, Decision, Kind, Policy, RBAC_GROUP, ResourceAttributes, UserInfo, bootstrap,
    forbidden_message, node,
};

use crate::cache::{Cache, Change, ChangeKind};
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, ROOT_CLUSTER, split_suffix};
use crate::query::Query;
use crate::registry::split_identity;
use crate::request::RequestInfo;
use crate::rest::call::Call;
use crate::selector::FieldSelector;
use crate::status::{About, ApiError};

/// The policies of all workspaces, shared by everything that asks.
///
/// The default roles and bindings are objects of the root workspace, where an administrator may change them. All others
/// inherit the defaults without having them, and a workspace without roles of its own costs nothing here.
pub struct Authorizer {
    policies: RwLock<HashMap<Box<str>, Policy>>,
    inherited: Policy,
}

const KINDS: [Kind; 4] = [
    Kind::Role,
    Kind::ClusterRole,
    Kind::RoleBinding,
    Kind::ClusterRoleBinding,
];

impl Authorizer {
    /// Reads the roles and bindings there are, and follows them from then on. A change counts from the moment when it
    /// is acknowledged.
    pub fn follow(cache: &Cache) -> Arc<Self> {
        let authorizer = Arc::new(Self {
            policies: RwLock::default(),
            inherited: Policy::inheriting(bootstrap::policy()),
        });
        for kind in KINDS {
            let prefix = KindPrefix::new(RBAC_GROUP, kind.resource(), BUILTIN_IDENTITY);
            let watcher = Arc::clone(&authorizer);
            cache
                .kind(prefix.as_str())
                .observe(Box::new(move |change| watcher.take(kind, change)));
        }
        authorizer
    }

    fn take(&self, kind: Kind, change: &Change) {
        let (cluster, namespace, name) = split_suffix(&change.suffix);
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        let empty = || {
            if cluster == ROOT_CLUSTER {
                Policy::new()
            } else {
                self.inherited.clone()
            }
        };
        let policy = policies.entry(cluster.into()).or_insert_with(empty);
        match change.object.value() {
            Ok(object) if change.kind != ChangeKind::Deleted => policy.upsert(kind, namespace, name, &object),
            _ => policy.remove(kind, namespace, name),
        }
        if policy.is_empty() {
            policies.remove(cluster);
        }
    }

    /// Asks the policy of a workspace something. For all workspaces at once, only what every one inherits counts.
    pub fn with<T>(&self, cluster: &str, ask: impl FnOnce(&Policy) -> T) -> T {
        let policies = self.policies.read().unwrap_or_else(PoisonError::into_inner);
        ask(policies.get(cluster).unwrap_or(&self.inherited))
    }
}

impl Kernel {
    /// The reason why something is allowed in a workspace, or 403.
    pub fn authorize(&self, cluster: &str, attributes: &Attributes<'_>) -> Result<String, ApiError> {
        match self.decide(cluster, attributes) {
            Decision::Allow { reason } => Ok(reason.into_owned()),
            refused => Err(refusal(attributes, refused.reason())),
        }
    }

    /// What all authorizers together say about a request in a workspace.
    pub fn decide(&self, cluster: &str, attributes: &Attributes<'_>) -> Decision {
        let by_roles = || {
            self.authorizer
                .with(cluster, |policy| policy.authorize(attributes))
        };
        let Some(name) = node::name_of(attributes.user) else {
            return by_roles();
        };
        let seen = nodes::Seen {
            kernel: self,
            cluster,
        };
        match node::decide(name, cluster == ROOT_CLUSTER, attributes, &seen) {
            allowed @ Decision::Allow { .. } => allowed,
            other => match by_roles() {
                Decision::NoOpinion { reason } if reason.is_empty() => other,
                decided => decided,
            },
        }
    }
}

fn refusal(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    let message = forbidden_message(attributes, reason);
    let Some(resource) = &attributes.resource else {
        return ApiError::forbidden_text(message);
    };
    let about = About {
        group: resource.group,
        resource: resource.resource,
        name: resource.name,
    };
    ApiError {
        message,
        ..ApiError::forbidden(about, "")
    }
}

/// What RBAC is asked about a request.
pub fn attributes<'a>(user: &'a UserInfo, info: &'a RequestInfo, only_name: &'a str) -> Attributes<'a> {
    Attributes {
        user,
        verb: info.verb,
        path: &info.path,
        resource: info.resource.as_ref().map(|r| ResourceAttributes {
            group: &r.group,
            version: &r.version,
            resource: split_identity(&r.resource).0,
            subresource: &r.subresource,
            namespace: r.namespace.as_deref().unwrap_or(""),
            name: if r.name.is_empty() { only_name } else { &r.name },
            ..ResourceAttributes::default()
        }),
    }
}

/// The one object that a list, watch or deletecollection is about, if its selector leaves one: a right on that name is
/// then enough, so that an informer on one object needs no right on all.
pub fn selected_name(info: &RequestInfo, query: &Query) -> String {
    if !matches!(info.verb, "list" | "watch" | "deletecollection") {
        return String::new();
    }
    let selector = FieldSelector::parse(query.get("fieldSelector").unwrap_or("")).unwrap_or_default();
    selector.name().unwrap_or("").to_owned()
}

/// Another verb on the same object (apply that creates, PUT that creates).
pub fn require(call: &Call<'_>, verb: &str) -> Result<(), ApiError> {
    let attributes = Attributes {
        user: call.user,
        verb,
        path: "",
        resource: Some(ResourceAttributes {
            group: &call.def.group,
            version: &call.def.version,
            resource: &call.def.resource,
            subresource: &call.path.subresource,
            namespace: call.path.namespace.as_deref().unwrap_or(""),
            name: &call.path.name,
            ..ResourceAttributes::default()
        }),
    };
    match call.visit {
        // A visitor has no rights of his own here: the consumer's binding, or what the type gives a worker, is what counts.
        Some(visit) if visit.may_create && verb == "create" => Ok(()),
        Some(visit) if visit.worker.is_some() => Err(refusal(&attributes, "")),
        Some(_) => Err(refusal(
            &attributes,
            "failed to find suitable reason to allow access in APIBinding",
        )),
        None => call.kernel.authorize(call.cluster, &attributes).map(|_| ()),
    }
}
