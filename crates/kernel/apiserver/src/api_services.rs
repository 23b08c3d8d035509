//! APIs that domains serve behind the kernel: who serves which path, and how that is shown.
//!
//! A service is registered once, while the parts are wired. Requests for its resources take the same way as all others
//! (`service`), up to the point where the kernel would read the body; from there on they are the service's (`forward`).

pub(crate) mod documents;
mod forward;
mod leash;

use std::sync::Arc;

use fairway_apiservice::{ApiService, Handler, Resource};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::kernel::Kernel;
use crate::request::{RequestInfo, ResourcePath};
use crate::status::ApiError;

/// Connections that one service may have taken over at once.
const MAX_UPGRADED: usize = 1_024;

/// The services there are. Replaced as a whole when one is added.
#[derive(Clone, Default)]
pub struct ApiServices {
    services: Vec<Arc<Registered>>,
}

/// A service and what it said of itself.
pub(crate) struct Registered {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resources: Vec<Arc<Resource>>,
    pub(crate) openapi: Option<Value>,
    handler: Handler,
    upgraded: Arc<Semaphore>,
}

/// Where a request goes.
pub(crate) struct Route {
    service: Arc<Registered>,
    pub(crate) resource: Arc<Resource>,
}

/// Why a service cannot be served.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RegisterError {
    /// A name that no URL can have.
    #[error("{what} {name:?} of an API service is not a name")]
    Name {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Somebody else answers there.
    #[error("{resource} of {group}/{version} is served already")]
    Taken {
        /// The group.
        group: String,
        /// The version.
        version: String,
        /// The resource.
        resource: String,
    },
}

impl Kernel {
    /// Serves a domain's API from now on.
    pub fn serve_api(&self, service: &dyn ApiService) -> Result<(), RegisterError> {
        let (group, version) = service.group_version();
        let new = Arc::new(Registered {
            group: group.to_owned(),
            version: version.to_owned(),
            resources: service.resources().into_iter().map(Arc::new).collect(),
            openapi: service.openapi_v3(),
            handler: service.handler(),
            upgraded: Arc::new(Semaphore::new(MAX_UPGRADED)),
        });
        self.check_service(&new)?;
        self.api_services.rcu(|known| {
            let mut services = ApiServices::clone(known);
            services.services.push(Arc::clone(&new));
            services
        });
        Ok(())
    }

    fn check_service(&self, new: &Registered) -> Result<(), RegisterError> {
        let is_name = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
        };
        let wrong = |what, name: &str| RegisterError::Name {
            what,
            name: name.to_owned(),
        };
        if !is_name(&new.group) && !new.group.is_empty() {
            return Err(wrong("the group", &new.group));
        }
        if !is_name(&new.version) {
            return Err(wrong("the version", &new.version));
        }
        let registry = self.apis.of(crate::key::ROOT_CLUSTER);
        let services = self.api_services.load();
        for (at, resource) in new.resources.iter().enumerate() {
            let (name, sub) = resource.split();
            if !is_name(name) || (resource.name.contains('/') && !is_name(sub)) {
                return Err(wrong("the resource", &resource.name));
            }
            let stored = registry
                .find(&new.group, &new.version, name)
                .is_some_and(|def| sub.is_empty() || def.subresource(sub).is_some());
            let twice = new.resources[..at]
                .iter()
                .any(|other| other.name == resource.name);
            if stored || twice || services.find(&new.group, &new.version, name, sub).is_some() {
                return Err(RegisterError::Taken {
                    group: new.group.clone(),
                    version: new.version.clone(),
                    resource: resource.name.clone(),
                });
            }
        }
        Ok(())
    }
}

impl ApiServices {
    fn find(&self, group: &str, version: &str, resource: &str, subresource: &str) -> Option<Route> {
        let services = self
            .services
            .iter()
            .filter(|s| s.group == group && s.version == version);
        for service in services {
            if let Some(found) = service
                .resources
                .iter()
                .find(|r| r.split() == (resource, subresource))
            {
                return Some(Route {
                    service: Arc::clone(service),
                    resource: Arc::clone(found),
                });
            }
        }
        None
    }

    /// Who answers a request, if a service does.
    pub(crate) fn route(&self, info: &RequestInfo) -> Option<Route> {
        if self.services.is_empty() {
            return None;
        }
        let path = info.resource.as_ref()?;
        self.find(&path.group, &path.version, &path.resource, &path.subresource)
    }

    /// The services of a group and version.
    pub(crate) fn of<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Registered>> {
        self.services
            .iter()
            .filter(move |s| s.group == group && s.version == version)
    }

    /// All.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.services.iter()
    }
}

impl Route {
    /// Whether the path has the resource's scope and the verb is one of its own.
    pub(crate) fn check(&self, path: &ResourcePath, verb: &str) -> Result<(), ApiError> {
        let resource = &self.resource;
        let everywhere = path.name.is_empty() && matches!(verb, "list" | "watch");
        let fits = match (&path.namespace, resource.namespaced) {
            (Some(_), namespaced) => namespaced,
            (None, namespaced) => !namespaced || everywhere,
        };
        // A subresource is of an object.
        if !fits || (!path.subresource.is_empty() && path.name.is_empty()) {
            return Err(ApiError::no_such_path());
        }
        if !resource.verbs.iter().any(|known| known == verb) {
            return Err(ApiError::method_not_allowed());
        }
        Ok(())
    }
}
