//! How a domain serves an API behind the kernel, without knowing the kernel.
//!
//! A domain implements [`ApiService`]: which group and version, which resources and subresources, and a tower service that
//! answers. The kernel does everything else: it authenticates, authorises, counts and audits the request, shows the
//! resources in discovery and OpenAPI, and takes the connection over when it is upgraded. What it found out goes with the
//! request, as typed extensions: [`User`], [`RequestInfo`], and [`Upgrade`] where the client asked for one.
//!
//! ```
//! use fairway_apiservice::{ApiService, Body, BoxError, Handler, Resource, User, full};
//! use http::{Request, Response};
//! use tower::service_fn;
//!
//! struct Greeting;
//!
//! impl ApiService for Greeting {
//!     fn group_version(&self) -> (&str, &str) {
//!         ("greeting.example.com", "v1")
//!     }
//!
//!     fn resources(&self) -> Vec<Resource> {
//!         vec![Resource::new("greetings", "Greeting").verbs(&["get"])]
//!     }
//!
//!     fn handler(&self) -> Handler {
//!         Handler::new(service_fn(async |request: Request<Body>| {
//!             let user = request.extensions().get::<User>().map_or("", |user| &user.name);
//!             Ok::<_, BoxError>(Response::new(full(format!("hello, {user}"))))
//!         }))
//!     }
//! }
//! ```
//!
//! Must not know the kernel, any kind, or any domain.

mod resource;
mod upgrade;
pub mod websocket;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

pub use resource::Resource;
pub use upgrade::{Io, Upgrade, Upgraded};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body, as it comes or goes: it need never be in memory as a whole.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What answers. An error becomes a `Status` with code 500; one while it gets ready, 503.
pub type Handler = tower::util::BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// An API that a domain serves.
pub trait ApiService: Send + Sync + 'static {
    /// The group and the version, such as `("subresources.kubevirt.io", "v1")`. The group may be one that has other
    /// resources; then these are added to it.
    fn group_version(&self) -> (&str, &str);

    /// Its resources and subresources. They do not change while it is served.
    fn resources(&self) -> Vec<Resource>;

    /// Its OpenAPI v3 document. Without one the kernel shows the paths alone.
    fn openapi_v3(&self) -> Option<Value> {
        None
    }

    /// What answers requests that are allowed. It is asked once; the kernel clones the handler for each request.
    fn handler(&self) -> Handler;
}

/// Who asks, after authentication and impersonation. An extension of every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// UID; may be empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What is asked, as the kernel read it off the URL. An extension of every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The workspace's logical cluster.
    pub cluster: String,
    /// `get`, `list`, `create`, ...: what was authorised.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace; `None` outside of any.
    pub namespace: Option<String>,
    /// Plural resource.
    pub resource: String,
    /// Name of the object; empty for collections.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// What follows the subresource, without the slash before it (`22/tcp` of `portforward/22/tcp`).
    pub rest: String,
}

/// A body that is there already.
pub fn full(content: impl Into<Bytes>) -> Body {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// No body.
pub fn empty() -> Body {
    full(Bytes::new())
}
