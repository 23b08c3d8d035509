//! Nobody may give away rights that he does not have himself.

use fairway_kernel_authz::{Binding, EscalationError, Kind, PolicyRule, RBAC_GROUP};
use serde_json::Value;

use crate::rest::call::{Call, meta};
use crate::status::{About, ApiError};

/// Refuses roles and bindings that would raise their author above himself.
pub fn confirm(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    if call.def.group != RBAC_GROUP {
        return Ok(());
    }
    let Some(kind) = Kind::from_resource(&call.def.resource) else {
        return Ok(());
    };
    let (namespace, name) = (call.namespace(), meta(object, "name"));
    let unchanged = |field: &str| old.is_some_and(|old| old.get(field) == object.get(field));
    let outcome = match kind {
        Kind::Role | Kind::ClusterRole => {
            if unchanged("rules") && unchanged("aggregationRule") {
                return Ok(());
            }
            let rules = PolicyRule::list_from(object.get("rules"));
            let aggregates = object.get("aggregationRule").is_some_and(|r| !r.is_null());
            call.kernel.authorizer.with(call.cluster, |policy| {
                policy.may_write_role(call.user, kind, namespace, name, &rules, aggregates)
            })
        }
        Kind::RoleBinding | Kind::ClusterRoleBinding => {
            if unchanged("roleRef") && unchanged("subjects") {
                return Ok(());
            }
            let Some(binding) = Binding::from_object(object) else {
                return Ok(());
            };
            call.kernel.authorizer.with(call.cluster, |policy| {
                policy.may_bind(call.user, &binding.role_ref, namespace)
            })
        }
    };
    outcome.map_err(|error| match error {
        EscalationError::RoleNotFound(role) => ApiError {
            message: role.to_string(),
            ..ApiError::not_found(About {
                group: RBAC_GROUP,
                resource: "clusterroles",
                name,
            })
        },
        other => ApiError::forbidden(call.about(name), other),
    })
}
