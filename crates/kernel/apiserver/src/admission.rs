//! What must hold beyond the object itself: its namespace, the rights of who writes it, the limits of its namespace, the
//! addresses it needs.
//!
//! A write passes four steps, and inside each the order is upstream's:
//!
//! 1. [`mutate`] may still change the object: NamespaceLifecycle, LimitRanger's defaults, ServiceAccount. Mutating policies and
//!    then webhooks belong at its end, so that they see what the server has filled in; there the kind's domain is asked.
//! 2. The kind prepares and validates; [`reserve`] chooses addresses and ports, [`complete`] adds what the server contributes.
//! 3. [`validate`] only says yes or no: rights, LimitRanger's bounds, signers, validating policies. Webhooks belong at its
//!    end, and so does the kind's domain.
//! 4. [`charge`] is last, because nothing may be refused any more once a quota has been charged: ResourceQuota. Its
//!    charges and the reservations are part of the transaction that stores the object.

pub mod account;
pub mod certificates;
mod domain;
pub mod limits;
pub mod node;
pub mod policy;
mod quota;
pub mod rbac;
pub mod service;
pub(crate) mod tenancy;

use serde_json::Value;

pub(crate) use domain::tell_impact;
pub use limits::Limits;
pub(crate) use quota::charge;
pub use service::Reserve;

use crate::cache::Cache;
use crate::rest::call::{Call, meta};
use crate::status::{About, ApiError, Cause};
use crate::storage::Reservations;
use crate::workspaces::Phase;

/// What is being done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It does not exist yet.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

/// Namespaces that cannot be deleted: the cluster needs them.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Completes an object before it is prepared and validated. What is set here has no field owner.
pub async fn mutate(
    call: &Call<'_>,
    operation: Operation,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if operation == Operation::Create {
        tenancy::fits(call, object)?;
        namespace_lives(call, object)?;
    }
    limits::complete(call, operation, object, old);
    if call.def.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::custom::provided::settle(call, operation, object, old);
    }
    tenancy::complete(call, operation, object)?;
    account::admit(call, operation, object).await?;
    domain::complete(call, operation, object, old)
}

/// Adds what the server itself contributes to an object of this kind.
pub fn complete(call: &Call<'_>, operation: Operation, object: &mut Value) {
    if call.def.is("apiextensions.k8s.io", "customresourcedefinitions") {
        crate::custom::admit_definition(call, object);
    }
    if operation == Operation::Create && call.def.is("certificates.k8s.io", "certificatesigningrequests") {
        let user = serde_json::json!({
            "username": call.user.name, "uid": call.user.uid, "groups": call.user.groups, "extra": call.user.extra,
        });
        fairway_kernel_kinds::certificates::set_requestor(object, &user);
    }
}

/// Says no where the object is right but the moment or the person is not.
pub async fn validate(
    call: &Call<'_>,
    operation: Operation,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let name = meta(object, "name");
    let is_immortal = call.def.is("", "namespaces") && IMMORTAL.contains(&name);
    // A workspace takes them along.
    let goes = || matches!(call.kernel.workspaces.get(call.cluster), Some(w) if w.phase == Phase::Deleting);
    if operation == Operation::Delete && is_immortal && !goes() {
        return Err(ApiError::forbidden(
            call.about(name),
            "this namespace may not be deleted",
        ));
    }
    tenancy::confirm(call, operation, object, old)?;
    if operation != Operation::Delete {
        rbac::confirm(call, object, old)?;
        limits::confirm(call, operation, object, old)?;
        certificates::confirm(call, operation, object, old)?;
        node::confirm(call, object, old)?;
    }
    policy::judge(call, operation, object, old)?;
    domain::judge(call, operation, object, old)
}

/// Objects can be created only in a namespace that exists and is not being deleted.
fn namespace_lives(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    if !call.def.namespaced {
        return Ok(());
    }
    let namespace = call.namespace();
    let about = About {
        group: "",
        resource: "namespaces",
        name: namespace,
    };
    match phase(&call.kernel.storage.cache, call.cluster, namespace) {
        None if is_presumed(call) => Ok(()),
        None => Err(ApiError::not_found(about)),
        Some(terminating) if terminating => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut error = ApiError::forbidden(call.about(meta(object, "name")), why);
            if let Some(details) = &mut error.details {
                details.causes = vec![Cause {
                    reason: "NamespaceTerminating".to_owned(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                }];
            }
            Err(error)
        }
        Some(_) => Ok(()),
    }
}

/// A dry run may ask what would be said if the namespace existed, as whoever is about to make it wants to know. Rights are judged as ever,
/// and nothing is stored.
fn is_presumed(call: &Call<'_>) -> bool {
    let is_dry = crate::query::dry_run(call.query.all("dryRun")).unwrap_or(false);
    is_dry && call.query.flag("presumeNamespace")
}

/// Whether a namespace exists, and if so whether it is being terminated.
fn phase(cache: &Cache, cluster: &str, namespace: &str) -> Option<bool> {
    let object = cache.built_in("", "namespaces", cluster, "", namespace)?;
    // The mark of a terminating namespace is rare: looking for the bytes first spares parsing in every create.
    let marked = memchr::memmem::find(object.bytes(), b"\"deletionTimestamp\"").is_some();
    Some(
        marked
            && object
                .value()
                .is_ok_and(|v| !meta(&v, "deletionTimestamp").is_empty()),
    )
}

/// What a write has to reserve.
pub fn reserve(
    call: &Call<'_>,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Reserve, ApiError> {
    if call.def.is("", "services") && call.subresource().is_none() {
        return service::reserve(call, object, old, dry_run);
    }
    Ok(Reserve::default())
}

/// What a new object relies on: it is stored only if this has not changed since it was judged.
pub(crate) fn rely_on(call: &Call<'_>, object: &Value) -> Result<Vec<(bytes::Bytes, u64)>, ApiError> {
    if call.def.is("apiextensions.k8s.io", "customresourcedefinitions") {
        tenancy::definition_relies_on(call, object)
    } else {
        Ok(Vec::new())
    }
}

/// What a deletion gives back.
pub fn release(call: &Call<'_>, object: &Value) -> Reservations {
    if call.def.is("", "services") {
        service::release(object)
    } else if call.def.is("apis.kcp.io", "apiresourceschemas") {
        let kernel = call.kernel;
        let copy = kernel
            .bound
            .left_behind(&kernel.storage.cache, call.cluster, object);
        Reservations {
            take: copy.into_iter().collect(),
            ..Reservations::default()
        }
    } else {
        Reservations::default()
    }
}
