//! One request on one resource: everything that a verb needs to know.

use std::sync::{Arc, Mutex, PoisonError};

use fairway_kernel_authz::UserInfo;
use http::{HeaderMap, Response};
use serde_json::Value;

use crate::http::body::{self, BodyFormat, Parsed, ResponseBody};
use crate::http::negotiate::Accept;
use crate::kernel::Kernel;
use crate::key::ObjectSuffix;
use crate::object::Object;
use crate::query::Query;
use crate::registry::ResourceDef;
use crate::request::ResourcePath;
use crate::status::{About, ApiError};
use crate::virtual_workspace::Visit;

/// A request on a resource, authenticated and authorised.
pub struct Call<'a> {
    /// The kernel.
    pub kernel: &'a Arc<Kernel>,
    /// The resource.
    pub def: Arc<ResourceDef>,
    /// The workspace's logical cluster.
    pub cluster: &'a str,
    /// What the URL names.
    pub path: &'a ResourcePath,
    /// Parameters.
    pub query: &'a Query,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Who asks.
    pub user: &'a UserInfo,
    /// What the client wants to read.
    pub accept: Accept,
    /// Now, RFC 3339 with whole seconds.
    pub now: String,
    /// What a provider may see and do, where one comes in.
    pub(crate) visit: Option<&'a Visit>,
    warnings: Mutex<Vec<String>>,
}

/// What verbs return.
pub(crate) type Answer = Result<Response<ResponseBody>, ApiError>;

/// The most warnings, and bytes of warnings, that an answer carries.
const MAX_WARNINGS: usize = 32;

impl<'a> Call<'a> {
    /// A call at `now`.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a part of the request, and there is one caller"
    )]
    pub fn new(
        kernel: &'a Arc<Kernel>,
        def: Arc<ResourceDef>,
        cluster: &'a str,
        path: &'a ResourcePath,
        query: &'a Query,
        headers: &'a HeaderMap,
        user: &'a UserInfo,
        accept: Accept,
    ) -> Self {
        let now = kernel.clock.rfc3339();
        Self {
            kernel,
            def,
            cluster,
            path,
            query,
            headers,
            user,
            accept,
            now,
            visit: None,
            warnings: Mutex::default(),
        }
    }

    /// The same, as a provider's.
    pub(crate) fn visited_by(self, visit: Option<&'a Visit>) -> Self {
        Self { visit, ..self }
    }

    /// What an error about the named object is about.
    pub fn about<'b>(&'b self, name: &'b str) -> About<'b> {
        About {
            group: &self.def.group,
            resource: &self.def.resource,
            name,
        }
    }

    /// The same, with the kind in place of the resource, as validation errors have it.
    pub fn about_kind<'b>(&'b self, name: &'b str) -> About<'b> {
        About {
            // Events have two doors and one kind.
            group: if self.def.is("events.k8s.io", "events") {
                ""
            } else {
                &self.def.group
            },
            resource: &self.def.kind,
            name,
        }
    }

    /// The namespace part of keys: empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        if self.def.namespaced {
            self.path.namespace.as_deref().unwrap_or("")
        } else {
            ""
        }
    }

    /// The key of the object of that name.
    pub fn suffix(&self, name: &str) -> ObjectSuffix {
        ObjectSuffix::new(self.cluster, self.namespace(), name)
    }

    /// The subresource, if the URL names one.
    pub fn subresource(&self) -> Option<&str> {
        (!self.path.subresource.is_empty()).then_some(self.path.subresource.as_str())
    }

    /// The named object as it is now.
    pub async fn current(&self, name: &str) -> Result<Option<Arc<Object>>, ApiError> {
        let found = self.kernel.storage.get(&self.def, &self.suffix(name)).await?;
        // What a provider may not see is not there for it.
        let labels = self
            .visit
            .map(|visit| visit.labels.as_slice())
            .unwrap_or_default();
        let is_seen =
            |object: &Arc<Object>| labels.iter().all(|(key, value)| object.label(key) == Some(value));
        Ok(found.filter(is_seen))
    }

    /// The named object as it is now, or 404.
    pub async fn existing(&self, name: &str) -> Result<Arc<Object>, ApiError> {
        self.current(name)
            .await?
            .ok_or_else(|| ApiError::not_found(self.about(name)))
    }

    /// Tells the client something that does not stop the request.
    pub fn warn(&self, warning: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        let warning = warning.into();
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// What the client has been told so far.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads an object out of a request's body.
    pub fn parse_body(&self, bytes: &[u8]) -> Result<Parsed, ApiError> {
        let format = body::format(self.headers)?;
        // There are no messages for kinds that came later; a scale is Kubernetes' own whatever it scales.
        if format == BodyFormat::Protobuf
            && self.def.custom().is_some()
            && self.subresource() != Some("scale")
        {
            return Err(ApiError::unsupported_media_type(body::ACCEPTED_OF_CUSTOM));
        }
        let unrecognized = |why: &str| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {why} ({})",
                self.def.kind,
                body::summary(bytes)
            ))
        };
        let parsed = body::parse(bytes, format).map_err(|e| unrecognized(&e.message))?;
        if let Some(fault) = body::identity_fault(&parsed.value) {
            return Err(unrecognized(&fault));
        }
        // Nobody else knows what a custom object is.
        for (field, name) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
            if self.def.custom().is_some()
                && self.subresource() != Some("scale")
                && parsed.value[field].as_str().unwrap_or("").is_empty()
            {
                let shown = String::from_utf8_lossy(bytes);
                return Err(unrecognized(&format!("Object '{name}' is missing in '{shown}'")));
            }
        }
        Ok(parsed)
    }

    /// The `User-Agent`.
    pub fn user_agent(&self) -> &str {
        self.headers
            .get(http::header::USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("")
    }
}

/// A string inside `metadata`.
pub(crate) fn meta<'v>(object: &'v Value, field: &str) -> &'v str {
    object
        .get("metadata")
        .and_then(|m| m.get(field))
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// Whether a list inside `metadata` has elements.
pub(crate) fn has_items(object: &Value, field: &str) -> bool {
    object
        .get("metadata")
        .and_then(|m| m.get(field))
        .and_then(Value::as_array)
        .is_some_and(|items| !items.is_empty())
}

/// `metadata`, made if it is missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut serde_json::Map<String, Value> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    match object.get_mut("metadata") {
        Some(Value::Object(map)) => map,
        _ => unreachable!("it was made one line above"),
    }
}
