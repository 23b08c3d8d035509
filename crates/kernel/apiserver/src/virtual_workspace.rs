//! The virtual workspace of an export: all of its consumers' objects of the kinds that it offers, and of those that they let
//! it see, and nothing else.
//!
//! A provider comes in through `/services/apiexport/<cluster>/<export>/clusters/<consumer or *>/…`. Its rights are those that
//! the export's own workspace gives it on `apiexports/content`; what it may touch in a consumer's workspace follows
//! from the consumer's binding. The consumer's roles are not asked: the binding is its consent.

use std::sync::Arc;

use fairway_kernel_authz::{Attributes, ResourceAttributes, UserInfo, forbidden_message};
use fairway_kernel_tenancy::ClusterId;
use fairway_kernel_tenancy::binding::ApiBinding;
use fairway_kernel_tenancy::claims::{self, Access, Answer};
use fairway_kernel_tenancy::export::ApiExport;
use fairway_kernel_tenancy::lifecycle::Worker;
use fairway_kernel_tenancy::names::{APIS, POLICY_PREFIX, label};

use crate::cache::Scope;
use crate::custom::Origin;
use crate::kernel::Kernel;
use crate::key::{BUILTIN_IDENTITY, KindPrefix, scope_prefix};
use crate::registry::{Layer, Registry, ResourceDef, split_identity};
use crate::request::{Door, RequestInfo};
use crate::status::ApiError;
use crate::workspaces::EVERY_CLUSTER;

const BINDINGS: &str = "apibindings";
const CREATE: &str = "create";

/// What a provider's request may see and do.
pub(crate) struct Visit {
    /// The resources that there are for it.
    pub(crate) registry: Arc<Registry>,
    /// The labels of what it sees, where that is not everything.
    pub(crate) labels: Vec<(String, String)>,
    /// The consumer's answer that lets it write.
    pub(crate) answer: Option<Answer>,
    /// Whether a write may make an object that it was only to change.
    pub(crate) may_create: bool,
    /// The initializer or terminator that it is.
    pub(crate) worker: Option<Worker>,
    /// Whether it works in the workspace as its users do, so that what bounds them bounds it.
    pub(crate) is_inside: bool,
}

impl Visit {
    /// One that sees all objects of these resources.
    pub(crate) fn of(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            labels: Vec::new(),
            answer: None,
            may_create: false,
            worker: None,
            is_inside: false,
        }
    }
}

/// Opens the door to a provider, or says why not.
pub(crate) fn visit(kernel: &Kernel, user: &UserInfo, info: &RequestInfo) -> Result<Visit, ApiError> {
    let Door::Export { cluster, name } = &info.door else {
        return Err(ApiError::page_not_found());
    };
    let export = (kernel.storage.cache)
        .built_in_value(APIS, "apiexports", cluster, "", name)
        .map(|object| ApiExport::read(&object))
        .filter(|_| !info.cluster.is_empty());
    may_see_content(kernel, user, info, info.verb, cluster, name)?;
    let export = export.ok_or_else(ApiError::page_not_found)?;
    let home = ClusterId::parse(cluster).map_err(|_| ApiError::page_not_found())?;
    let registry = Arc::new(registry(kernel, cluster, &export));
    let Some(path) = &info.resource else {
        return Ok(Visit::of(registry));
    };
    let (group, resource) = (path.group.as_str(), split_identity(&path.resource).0);
    let is_offered = export
        .resources
        .iter()
        .any(|r| r.group == group && r.name == resource);
    let claim = export
        .claims
        .iter()
        .find(|c| c.group == group && c.resource == resource);
    if info.cluster == EVERY_CLUSTER {
        let label = match claim {
            _ if is_offered => None,
            Some(claim) => Some(claims::claim_label(&home, name, claim)),
            None if (group, resource) == (APIS, BINDINGS) => {
                Some((label::EXPORT.to_owned(), claims::export_label_value(&home, name)))
            }
            None => return Err(ApiError::page_not_found()),
        };
        return Ok(Visit {
            labels: label.into_iter().collect(),
            ..Visit::of(registry)
        });
    }
    let binding = binding_of(kernel, &info.cluster, &export);
    let access = claims::access(&export, binding.as_ref(), group, resource, info.verb)
        .map_err(|why| refusal(user, info, why))?;
    let (label, answer) = match access {
        Access::Bound => (None, None),
        Access::Claimed(answer) => {
            let label = claims::claim_label(&home, name, &answer.claim);
            (Some(label), Some(answer.clone()))
        }
        Access::OwnBinding => {
            let value = claims::export_label_value(&home, name);
            (Some((label::EXPORT.to_owned(), value)), None)
        }
    };
    let may_create = matches!(info.verb, "patch" | "update")
        && may_see_content(kernel, user, info, CREATE, cluster, name).is_ok()
        && claims::access(&export, binding.as_ref(), group, resource, CREATE).is_ok();
    Ok(Visit {
        labels: label.into_iter().collect(),
        answer,
        may_create,
        ..Visit::of(registry)
    })
}

/// Whether the export's own workspace gives the user this verb on what the export holds.
fn may_see_content(
    kernel: &Kernel,
    user: &UserInfo,
    info: &RequestInfo,
    verb: &str,
    cluster: &str,
    name: &str,
) -> Result<(), ApiError> {
    let attributes = Attributes {
        user,
        verb,
        path: "",
        resource: Some(ResourceAttributes {
            group: APIS,
            version: "v1alpha2",
            resource: "apiexports",
            subresource: "content",
            name,
            ..ResourceAttributes::default()
        }),
    };
    if kernel.workspaces.resolve(cluster).is_none() {
        return Err(refusal(
            user,
            info,
            "the export does not exist or access is not permitted",
        ));
    }
    kernel.authorize(cluster, &attributes).map(|_| ())
}

fn refusal(user: &UserInfo, info: &RequestInfo, why: &str) -> ApiError {
    let only_name = String::new();
    ApiError::forbidden_text(forbidden_message(
        &crate::authorize::attributes(user, info, &only_name),
        why,
    ))
}

/// What the export offers, what it claims, and the bindings to it.
fn registry(kernel: &Kernel, cluster: &str, export: &ApiExport) -> Registry {
    let cache = &kernel.storage.cache;
    let name = &export.meta.name;
    let offered = export.resources.iter().filter_map(|resource| {
        let identity = &export.identity_hash;
        if identity.is_empty() {
            return None;
        }
        kernel
            .bound
            .compiled(cache, cluster, name, &resource.schema, None, identity)
    });
    let offered: Vec<Arc<Layer>> = offered.collect();
    let is_offered = |def: &ResourceDef| {
        export
            .resources
            .iter()
            .any(|r| r.group == def.group && r.name == def.resource)
    };
    let everywhere = kernel.apis.of(EVERY_CLUSTER);
    let claimed = everywhere.iter().filter(|def| {
        let own = def.is(APIS, BINDINGS);
        let asked = export.claims.iter().any(|claim| {
            let identity = if claim.identity_hash.is_empty() {
                BUILTIN_IDENTITY
            } else {
                &claim.identity_hash
            };
            def.is(&claim.group, &claim.resource) && def.prefix.identity() == identity
        });
        (own || asked) && !is_offered(def)
    });
    let claimed = Arc::new(Layer::new(claimed.cloned().collect::<Vec<_>>()));
    Registry::only(offered.into_iter().chain([claimed]))
}

/// The consumer's binding to an export.
fn binding_of(kernel: &Kernel, consumer: &str, export: &ApiExport) -> Option<ApiBinding> {
    let prefix = KindPrefix::new(APIS, BINDINGS, BUILTIN_IDENTITY);
    let scope = Scope::Within(scope_prefix(consumer, None).into());
    let (bindings, _) = kernel.storage.cache.kind(prefix.as_str()).snapshot(&scope, 0);
    bindings
        .iter()
        .filter_map(|object| object.value().ok())
        .map(|object| ApiBinding::read(&object))
        .find(|binding| binding.is_bound_to(export))
}

/// Asks the export of a bound kind whether its consumers may do this at all. The provider grants it in its own workspace, to
/// the consumers' users and groups under a prefix.
pub(crate) fn check_maximal_policy(
    kernel: &Kernel,
    user: &UserInfo,
    info: &RequestInfo,
    def: &ResourceDef,
) -> Result<(), ApiError> {
    let Some(Origin::Export { cluster, export, .. }) = def.custom().map(|c| &c.origin) else {
        return Ok(());
    };
    let policy = (kernel.storage.cache)
        .built_in_value(APIS, "apiexports", cluster, "", export)
        .is_some_and(|e| ApiExport::read(&e).has_policy);
    if !policy || user.in_group(fairway_kernel_authz::PRIVILEGED_GROUP) {
        return Ok(());
    }
    let name = match user.name.strip_prefix("system:serviceaccount:") {
        Some(account) => format!(
            "{POLICY_PREFIX}system:kcp:serviceaccount:{}:{account}",
            info.cluster
        ),
        None => format!("{POLICY_PREFIX}{}", user.name),
    };
    let groups = user.groups.iter().map(|group| format!("{POLICY_PREFIX}{group}"));
    let abroad = UserInfo::new(name, groups);
    let only_name = String::new();
    let asked = crate::authorize::attributes(&abroad, info, &only_name);
    let allowed = kernel
        .authorizer
        .with(cluster, |p| p.authorize(&asked))
        .is_allowed();
    if allowed {
        return Ok(());
    }
    Err(refusal(
        user,
        info,
        "the API's provider does not permit it (maximal permission policy)",
    ))
}
