//! What every controller of the platform shares.
//!
//! A controller watches objects, puts the keys of what changed into a [`queue::Queue`], and reconciles one key at a time
//! through a [`controller::Controller`]. It sees nothing but a `kube::Client`, so it runs unchanged on the embedded
//! kernel, on another Fairway and on any Kubernetes cluster.
//!
//! There is one watch for each kind over all workspaces ([`Reach::Every`]); keys say which workspace an object is in, and
//! a reconciler acts with a client of that workspace ([`Clients::of`]). A plain cluster is one workspace, the root.
//!
//! Tasks: a [`manager::Manager`] owns them all; each watch is one task ([`watch::follow`]), each controller is one
//! dispatcher that starts at most `workers` reconciles at once. Channels: a watch writes into a queue, never into a
//! controller; whoever wants to know which kinds exist holds
//! [`served::Served`].

pub mod access;
pub mod apply;
pub mod backoff;
pub mod cache;
pub mod clients;
pub mod commit;
pub mod conditions;
pub mod controller;
pub mod dynamic;
pub mod error;
pub mod events;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod finalizers;
pub mod glimpse;
pub mod json;
pub mod key;
pub mod kinds;
pub mod manager;
pub mod metadata;
pub mod metrics;
pub mod queue;
pub mod requests;
pub mod served;
pub mod shutdown;
pub mod watch;

pub use clients::{ClientFactory, Clients};
pub use controller::{Controller, Outcome, Reconcile};
pub use error::{Attempt, Failure};
pub use json::Json;
pub use key::{ObjectKey, Reach, WorkspaceId};
pub use manager::Manager;
pub use metadata::Metadata;
pub use metrics::Metrics;
pub use queue::Queue;
pub use requests::Requests;
pub use shutdown::{Shutdown, ShutdownTrigger};
