//! What was seen of the objects that matter, by workspace. Each object is read once, when it changes; a build only follows
//! references between what was read.
//!
//! An object that cannot be read stays here with the reason, so that its status can tell.

mod credential;
mod gateway;
mod http_filter;
mod http_match;
mod http_route;
mod openshift;
mod policy;
mod read;
mod reference;
mod service;
mod stream_route;
mod traffic;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use credential::{Authorities, Credential};
pub use gateway::{
    Address, AllowedRoutes, From, Gateway, GatewayClass, Listener, ListenerTls, Protocol, Validation,
};
pub use http_filter::{Filter, Mirror};
pub use http_route::{HttpRoute, HttpRule, RuleBackend};
pub use openshift::{Insecure, Route, RouteBackend, RouteTls, Termination};
pub use policy::{BackendTlsPolicy, PolicyTarget};
pub use read::Selector;
pub use reference::{BackendRef, Grant, ObjectRef, ParentRef};
pub use service::{EndpointSlice, Service, ServicePort, SlicePort};
pub use stream_route::{StreamRoute, StreamRule};

/// The kinds that a build looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    GatewayClass,
    Gateway,
    HttpRoute,
    GrpcRoute,
    TlsRoute,
    TcpRoute,
    ReferenceGrant,
    BackendTlsPolicy,
    /// OpenShift's.
    Route,
    Service,
    EndpointSlice,
    Secret,
    ConfigMap,
    Namespace,
}

impl Kind {
    pub const ALL: [Self; 14] = [
        Self::GatewayClass,
        Self::Gateway,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TlsRoute,
        Self::TcpRoute,
        Self::ReferenceGrant,
        Self::BackendTlsPolicy,
        Self::Route,
        Self::Service,
        Self::EndpointSlice,
        Self::Secret,
        Self::ConfigMap,
        Self::Namespace,
    ];

    /// As manifests spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::GatewayClass => "GatewayClass",
            Self::Gateway => "Gateway",
            Self::HttpRoute => "HTTPRoute",
            Self::GrpcRoute => "GRPCRoute",
            Self::TlsRoute => "TLSRoute",
            Self::TcpRoute => "TCPRoute",
            Self::ReferenceGrant => "ReferenceGrant",
            Self::BackendTlsPolicy => "BackendTLSPolicy",
            Self::Route => "Route",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Namespace => "Namespace",
        }
    }

    pub fn group(self) -> &'static str {
        match self {
            Self::GatewayClass
            | Self::Gateway
            | Self::HttpRoute
            | Self::GrpcRoute
            | Self::TlsRoute
            | Self::TcpRoute
            | Self::ReferenceGrant
            | Self::BackendTlsPolicy => "gateway.networking.k8s.io",
            Self::Route => "route.openshift.io",
            Self::EndpointSlice => "discovery.k8s.io",
            Self::Service | Self::Secret | Self::ConfigMap | Self::Namespace => "",
        }
    }
}

/// The name of an object in its workspace; the namespace is empty where the kind has none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    pub namespace: String,
    pub name: String,
}

impl Name {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{}", self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Who an object is, apart from what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub name: Name,
    pub generation: i64,
    /// `creationTimestamp`: of one format, so that older is less.
    pub created: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

impl Meta {
    /// The order in which the specification settles conflicts: the oldest first, then by namespace and name.
    pub fn age(&self) -> (&str, &Name) {
        (&self.created, &self.name)
    }
}

/// An object, or why it could not be read.
#[derive(Debug)]
pub struct Object<T> {
    pub meta: Meta,
    pub spec: Result<T, Unread<T>>,
}

/// What can still be said of an object that could not be read.
#[derive(Debug)]
pub struct Unread<T> {
    pub why: String,
    /// As much of it as its status needs: a route's parents, a Gateway's class.
    pub rest: Option<Box<T>>,
}

impl<T> Object<T> {
    /// What it says, also if only a part was understood.
    pub fn known(&self) -> Option<&T> {
        match &self.spec {
            Ok(spec) => Some(spec),
            Err(unread) => unread.rest.as_deref(),
        }
    }
}

/// Objects of one kind in one workspace. As long as none of them changes, it is the same list in memory.
pub type Objects<T> = Arc<BTreeMap<Name, Arc<Object<T>>>>;

/// Slices by the Service that they belong to.
pub(crate) type SlicesOf = BTreeMap<Name, BTreeMap<Name, Arc<Object<EndpointSlice>>>>;

/// What one workspace holds.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    pub classes: Objects<GatewayClass>,
    pub gateways: Objects<Gateway>,
    pub http_routes: Objects<HttpRoute>,
    pub grpc_routes: Objects<HttpRoute>,
    pub tls_routes: Objects<StreamRoute>,
    pub tcp_routes: Objects<StreamRoute>,
    pub grants: Objects<Grant>,
    pub backend_tls_policies: Objects<BackendTlsPolicy>,
    pub routes: Objects<Route>,
    pub services: Objects<Service>,
    pub endpoint_slices: Objects<EndpointSlice>,
    /// So that a build need not search for them.
    pub(crate) slices_of: Arc<SlicesOf>,
    pub secrets: Objects<Credential>,
    pub config_maps: Objects<Authorities>,
    /// Labels by name.
    pub namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
}

/// Everything that was seen, by the workspace's logical-cluster id. A clone shares it all: of what changes afterwards, only the
/// list of its kind is copied, and no object.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    pub workspaces: BTreeMap<String, Arc<Workspace>>,
}

impl Observed {
    /// An object is there, or has changed.
    pub fn put(&mut self, workspace: &str, kind: Kind, object: &Value) {
        let held = self.workspaces.entry(workspace.to_owned()).or_default();
        Arc::make_mut(held).put(kind, object);
    }

    /// An object is gone. The workspace itself goes with its last object.
    pub fn remove(&mut self, workspace: &str, kind: Kind, name: &Name) {
        if let Some(held) = self.workspaces.get_mut(workspace) {
            Arc::make_mut(held).remove(kind, name);
            if held.is_empty() {
                self.workspaces.remove(workspace);
            }
        }
    }
}

impl Workspace {
    fn put(&mut self, kind: Kind, object: &Value) {
        let meta = read::meta(object);
        match kind {
            Kind::GatewayClass => keep(&mut self.classes, meta, gateway::read_class(object)),
            Kind::Gateway => keep(&mut self.gateways, meta, gateway::read(object)),
            Kind::HttpRoute => {
                let spec = http_route::read_http(object, &meta.name.namespace);
                keep(&mut self.http_routes, meta, spec);
            }
            Kind::GrpcRoute => {
                let spec = http_route::read_grpc(object, &meta.name.namespace);
                keep(&mut self.grpc_routes, meta, spec);
            }
            Kind::TlsRoute => {
                let spec = stream_route::read(object, &meta.name.namespace);
                keep(&mut self.tls_routes, meta, spec);
            }
            Kind::TcpRoute => {
                let spec = stream_route::read(object, &meta.name.namespace);
                keep(&mut self.tcp_routes, meta, spec);
            }
            Kind::ReferenceGrant => keep(&mut self.grants, meta, reference::read_grant(object)),
            Kind::BackendTlsPolicy => keep(&mut self.backend_tls_policies, meta, policy::read(object)),
            Kind::Route => keep(&mut self.routes, meta, openshift::read(object)),
            Kind::Service => keep(&mut self.services, meta, service::read(object)),
            Kind::EndpointSlice => self.put_slice(meta, object),
            Kind::Secret => keep(&mut self.secrets, meta, credential::read_secret(object)),
            Kind::ConfigMap => keep(&mut self.config_maps, meta, credential::read_config_map(object)),
            Kind::Namespace => {
                Arc::make_mut(&mut self.namespaces).insert(meta.name.name, meta.labels);
            }
        }
    }

    fn remove(&mut self, kind: Kind, name: &Name) {
        match kind {
            Kind::GatewayClass => drop(forget(&mut self.classes, name)),
            Kind::Gateway => drop(forget(&mut self.gateways, name)),
            Kind::HttpRoute => drop(forget(&mut self.http_routes, name)),
            Kind::GrpcRoute => drop(forget(&mut self.grpc_routes, name)),
            Kind::TlsRoute => drop(forget(&mut self.tls_routes, name)),
            Kind::TcpRoute => drop(forget(&mut self.tcp_routes, name)),
            Kind::ReferenceGrant => drop(forget(&mut self.grants, name)),
            Kind::BackendTlsPolicy => drop(forget(&mut self.backend_tls_policies, name)),
            Kind::Route => drop(forget(&mut self.routes, name)),
            Kind::Service => drop(forget(&mut self.services, name)),
            Kind::EndpointSlice => self.remove_slice(name),
            Kind::Secret => drop(forget(&mut self.secrets, name)),
            Kind::ConfigMap => drop(forget(&mut self.config_maps, name)),
            Kind::Namespace => drop(Arc::make_mut(&mut self.namespaces).remove(&name.name)),
        }
    }

    fn put_slice(&mut self, meta: Meta, object: &Value) {
        let name = meta.name.clone();
        self.remove_slice(&name);
        keep(&mut self.endpoint_slices, meta, service::read_slice(object));
        if let Some(slice) = self.endpoint_slices.get(&name)
            && let Some(service) = slice.meta.labels.get(service::SERVICE_LABEL)
        {
            Arc::make_mut(&mut self.slices_of)
                .entry(Name::new(&name.namespace, service))
                .or_default()
                .insert(name, Arc::clone(slice));
        }
    }

    fn remove_slice(&mut self, name: &Name) {
        let Some(gone) = forget(&mut self.endpoint_slices, name) else {
            return;
        };
        if let Some(service) = gone.meta.labels.get(service::SERVICE_LABEL) {
            let service = Name::new(&name.namespace, service);
            let slices_of = Arc::make_mut(&mut self.slices_of);
            if let Some(slices) = slices_of.get_mut(&service) {
                slices.remove(name);
                if slices.is_empty() {
                    slices_of.remove(&service);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
            && self.gateways.is_empty()
            && self.http_routes.is_empty()
            && self.grpc_routes.is_empty()
            && self.tls_routes.is_empty()
            && self.tcp_routes.is_empty()
            && self.grants.is_empty()
            && self.backend_tls_policies.is_empty()
            && self.routes.is_empty()
            && self.services.is_empty()
            && self.endpoint_slices.is_empty()
            && self.secrets.is_empty()
            && self.config_maps.is_empty()
            && self.namespaces.is_empty()
    }
}

fn keep<T>(objects: &mut Objects<T>, meta: Meta, spec: Result<T, Unread<T>>) {
    Arc::make_mut(objects).insert(meta.name.clone(), Arc::new(Object { meta, spec }));
}

fn forget<T>(objects: &mut Objects<T>, name: &Name) -> Option<Arc<Object<T>>> {
    Arc::make_mut(objects).remove(name)
}
