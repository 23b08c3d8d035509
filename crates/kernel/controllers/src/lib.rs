//! The controllers that an API server cannot do without.
//!
//! Each module is one controller: `decide` is pure and has a table of tests, the rest observes and acts. Each has a user
//! of its own with the rights of upstream's controller of the same name; [`USERS`] lists them. None of them is
//! `system:masters`, and none reads the store: they see a `kube::Client` like anybody else.
//!
//! | module | keeps true |
//! |---|---|
//! | `namespace_deletion` | a namespace that is being deleted loses its content, then goes |
//! | `garbage` | what lost its last owner goes too |
//! | `definitions` | a CRD goes after its objects; names that become free are given to who waits for them |
//! | `expired_events` | events last an hour |
//! | `root_ca` | every namespace has `kube-root-ca.crt` |
//! | `default_accounts` | every namespace has the service account `default` |
//! | `role_aggregation` | aggregated cluster roles hold the rules of those that they select |
//! | `kubernetes_service` | `default/kubernetes` leads to this server |
//! | `endpoint_mirroring` | Endpoints written by hand have EndpointSlices |
//! | `disruption` | a PodDisruptionBudget knows how many pods may be disrupted |
//! | `failing_jobs` | a Job fails at once and says why: no node here runs pods |

mod default_accounts;
mod definitions;
mod disruption;
mod endpoint_mirroring;
mod expired_events;
mod failing_jobs;
mod garbage;
mod kubernetes_service;
mod namespace_deletion;
mod role_aggregation;
mod root_ca;
mod users;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::kinds::{self, Kinds};
use fairway_controller::{Manager, Metrics, Shutdown, WorkspaceId};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;

pub use users::USERS;

/// Upstream's `--event-ttl`.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// What the controllers are told at the start.
#[derive(Clone)]
pub struct Options {
    /// Makes the client of a user. A kubeconfig's client may serve all of them.
    pub client_for: Arc<dyn Fn(&str) -> Client + Send + Sync>,
    /// The certificates by which this server can be trusted, in PEM.
    pub root_ca: String,
    /// The address of the Service `default/kubernetes`.
    pub service_ip: Ipv4Addr,
    /// Where the API can be reached from outside the process.
    pub advertise: SocketAddr,
    /// How long an event is kept after its last change.
    pub event_ttl: Duration,
}

impl Options {
    /// Options with upstream's defaults.
    pub fn new(
        client_for: impl Fn(&str) -> Client + Send + Sync + 'static,
        root_ca: impl Into<String>,
        service_ip: Ipv4Addr,
        advertise: SocketAddr,
    ) -> Self {
        Self {
            client_for: Arc::new(client_for),
            root_ca: root_ca.into(),
            service_ip,
            advertise,
            event_ttl: EVENT_TTL,
        }
    }
}

/// What every controller gets: its options, the workspace that it works in, and the kinds that are served.
#[derive(Clone)]
struct Setup {
    options: Options,
    workspace: WorkspaceId,
    kinds: watch::Receiver<Arc<Kinds>>,
}

/// A controller registers its tasks with the manager.
type Register = fn(&mut Manager, &Setup);

const CONTROLLERS: &[Register] = &[
    namespace_deletion::register,
    garbage::register,
    definitions::register,
    expired_events::register,
    root_ca::register,
    default_accounts::register,
    role_aggregation::register,
    kubernetes_service::register,
    endpoint_mirroring::register,
    disruption::register,
    failing_jobs::register,
];

/// Runs every controller until the end. Returns when what was under way is finished.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let client_for = Arc::clone(&options.client_for);
    let factory = Arc::new(move |_: &WorkspaceId, user: &str| client_for(user));
    let mut manager = Manager::new(factory, metrics, shutdown);
    let workspace = WorkspaceId::root();
    let (sender, receiver) = watch::channel(Arc::new(Kinds::default()));
    let collector = manager.client(&workspace, users::GARBAGE_COLLECTOR);
    manager.spawn(kinds::follow(collector, sender, manager.shutdown()));
    let setup = Setup {
        options,
        workspace,
        kinds: receiver,
    };
    for register in CONTROLLERS {
        register(&mut manager, &setup);
    }
    manager.run().await;
}

/// The time as objects have it: whole seconds.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
