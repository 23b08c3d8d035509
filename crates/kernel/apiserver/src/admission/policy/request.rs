//! A write as policies see it.

use std::sync::Arc;

use fairway_kernel_authz::{Attributes, ResourceAttributes, UserInfo};
use fairway_kernel_policy::{Resource, Target};
use fairway_text_cel::{AccessCheck, AccessTarget, Authorizer, Decision};
use serde_json::{Value, json};

use super::user_info;
use crate::admission::Operation;
use crate::convert;
use crate::kernel::Kernel;
use crate::query;
use crate::registry::ResourceDef;
use crate::rest::call::{Call, meta};
use crate::status::ApiError;
use crate::subresource;

/// The request, with the objects in its own version.
pub(super) struct Request<'a> {
    operation: &'static str,
    subresource: &'a str,
    name: String,
    namespace: String,
    namespace_object: Value,
    namespace_labels: Value,
    resource: Resource,
    equivalents: Vec<Resource>,
    object: Value,
    old_object: Value,
    dry_run: bool,
}

/// The same in the version that a policy was written for.
pub(super) struct Versioned {
    pub(super) request: Value,
    pub(super) object: Value,
    pub(super) old_object: Value,
}

impl<'a> Request<'a> {
    pub(super) fn new(
        call: &'a Call<'_>,
        operation: Operation,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Self, ApiError> {
        let def = &call.def;
        let subresource = call.subresource().unwrap_or("");
        // Whoever scales sees a Scale, not what is scaled.
        let view = |object: &Value| match subresource {
            "scale" => subresource::scale_of(call, object),
            _ => Ok(object.clone()),
        };
        let object_now = if operation == Operation::Delete {
            Value::Null
        } else {
            view(object)?
        };
        let name = match call.path.name.as_str() {
            "" => meta(object, "name"),
            given => given,
        };
        let own = def.is("", "namespaces");
        let namespace = if own { name } else { call.namespace() };
        let stored = find_namespace(call, namespace);
        let labels = if own && operation != Operation::Delete && subresource.is_empty() {
            object["metadata"]["labels"].clone()
        } else {
            stored["metadata"]["labels"].clone()
        };
        Ok(Self {
            operation: match operation {
                Operation::Create => "CREATE",
                Operation::Update => "UPDATE",
                Operation::Delete => "DELETE",
            },
            subresource,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            // A namespace does not see itself as the place that it is in.
            namespace_object: if own { Value::Null } else { stored },
            namespace_labels: labels,
            resource: resource_of(def),
            equivalents: call
                .kernel
                .apis
                .of(call.cluster)
                .iter()
                .filter(|other| {
                    other.prefix.as_str() == def.prefix.as_str() && other.api_version() != def.api_version()
                })
                .map(|other| resource_of(other))
                .collect(),
            object: object_now,
            old_object: old.map(view).transpose()?.unwrap_or(Value::Null),
            dry_run: query::dry_run(call.query.all("dryRun")).unwrap_or(false),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn namespace_object(&self) -> &Value {
        &self.namespace_object
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target {
            operation: self.operation,
            resource: self.resource.clone(),
            equivalents: self.equivalents.clone(),
            subresource: self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            namespace_labels: &self.namespace_labels,
            object: &self.object,
            old_object: &self.old_object,
        }
    }

    /// The request as a policy for this resource sees it.
    pub(super) fn in_version_of(&self, call: &Call<'_>, resource: &Resource) -> Result<Versioned, ApiError> {
        let (mut object, mut old_object) = (self.object.clone(), self.old_object.clone());
        if *resource != self.resource && self.subresource != "scale" {
            let registry = call.kernel.apis.of(call.cluster);
            let def = registry
                .find(&resource.group, &resource.version, &resource.resource)
                .ok_or_else(|| {
                    ApiError::internal(format!("unable to convert to {resource:?}: unknown kind"))
                })?;
            for value in [&mut object, &mut old_object]
                .into_iter()
                .filter(|v| !v.is_null())
            {
                convert::to_storage(&call.def, value);
                convert::to_request(def, value);
            }
        }
        let kind = |resource: &Resource| match call.def.subresource(self.subresource) {
            Some(sub) if self.subresource == "scale" => {
                json!({"group": sub.group, "version": sub.version, "kind": sub.kind})
            }
            _ => json!({"group": resource.group, "version": resource.version, "kind": resource.kind}),
        };
        let plural = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "resource": resource.resource});
        let options = match self.operation {
            "CREATE" => "CreateOptions",
            "UPDATE" => "UpdateOptions",
            _ => "DeleteOptions",
        };
        let request = json!({
            "kind": kind(resource), "resource": plural(resource), "subResource": self.subresource,
            "requestKind": kind(&self.resource), "requestResource": plural(&self.resource),
            "requestSubResource": self.subresource,
            "name": self.name, "namespace": self.namespace, "operation": self.operation,
            "userInfo": user_info(call), "dryRun": self.dry_run,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": options},
        });
        Ok(Versioned {
            request,
            object,
            old_object,
        })
    }

    /// Answers for the user of the request.
    pub(super) fn authorizer(&self, call: &Call<'_>) -> Arc<dyn Authorizer> {
        Arc::new(Rights {
            cluster: call.cluster.into(),
            kernel: Arc::clone(call.kernel),
            user: call.user.clone(),
        })
    }

    /// The resource of the request, as an access check has it.
    pub(super) fn attributes(&self) -> fairway_text_cel::ResourceAttributes {
        fairway_text_cel::ResourceAttributes {
            group: self.resource.group.as_str().into(),
            resource: self.resource.resource.as_str().into(),
            subresource: self.subresource.into(),
            namespace: self.namespace.as_str().into(),
            name: self.name.as_str().into(),
            ..Default::default()
        }
    }
}

fn resource_of(def: &ResourceDef) -> Resource {
    Resource {
        group: def.group.clone(),
        version: def.version.clone(),
        resource: def.resource.clone(),
        kind: def.kind.clone(),
    }
}

fn find_namespace(call: &Call<'_>, name: &str) -> Value {
    let cache = &call.kernel.storage.cache;
    cache
        .built_in("", "namespaces", call.cluster, "", name)
        .and_then(|object| object.value().ok())
        .unwrap_or(Value::Null)
}

/// What the user of a request, or a service account, may do.
struct Rights {
    kernel: Arc<Kernel>,
    cluster: Box<str>,
    user: UserInfo,
}

impl Authorizer for Rights {
    fn authorize(&self, check: &AccessCheck) -> Decision {
        let account = check.service_account.as_ref().map(|(namespace, name)| {
            UserInfo::new(
                format!("system:serviceaccount:{namespace}:{name}"),
                [
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    crate::authn::AUTHENTICATED.to_owned(),
                ],
            )
        });
        let (path, resource) = match &check.target {
            AccessTarget::Path(path) => (&**path, None),
            AccessTarget::Resource(resource) => (
                "",
                Some(ResourceAttributes {
                    group: &resource.group,
                    version: "*",
                    resource: &resource.resource,
                    subresource: &resource.subresource,
                    namespace: &resource.namespace,
                    name: &resource.name,
                    ..ResourceAttributes::default()
                }),
            ),
        };
        let attributes = Attributes {
            user: account.as_ref().unwrap_or(&self.user),
            verb: &check.verb,
            path,
            resource,
        };
        let decision = self
            .kernel
            .authorizer
            .with(&self.cluster, |policy| policy.authorize(&attributes));
        Decision {
            allowed: decision.is_allowed(),
            reason: decision.reason().to_owned(),
            error: None,
        }
    }
}
