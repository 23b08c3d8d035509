//! The controllers that an API server cannot do without.
//!
//! Each module is one controller: `decide` is pure and has a table of tests, the rest observes and acts. Each has a user
//! of its own with the rights of upstream's controller of the same name; [`USERS`] lists them. None of them is
//! `system:masters`, and none reads the store: they see a `kube::Client` like anybody else.
//!
//! All but three work in every workspace, with one watch for each kind over all of them, and act on an object with a
//! client of its workspace. Only in the root workspace are `kubernetes_service`, `local_api_services` and
//! `authentication_trust`: they tell of the server, which is one. Certificates are signed in the root alone, since they
//! are good everywhere.
//!
//! | module | keeps true |
//! |---|---|
//! | `namespace_deletion` | a namespace that is being deleted loses its content, then goes |
//! | `garbage` | what lost its last owner goes too |
//! | `definitions` | a CRD goes after its objects; names that become free are given to who waits for them |
//! | `expired_events` | events last an hour |
//! | `root_ca` | every namespace has `kube-root-ca.crt` |
//! | `default_accounts` | every namespace has the service account `default` |
//! | `token_secrets` | Secrets for tokens of accounts hold one, and go with the account |
//! | `role_aggregation` | aggregated cluster roles hold the rules of those that they select |
//! | `kubernetes_service` | `default/kubernetes` leads to this server |
//! | `resource_quota` | a quota's status tells what is enforced and what is used |
//! | `certificates` | requests for certificates are approved, signed and removed as upstream does |
//! | `local_api_services` | every group and version that is served has its APIService |
//! | `authentication_trust` | extension servers find in `extension-apiserver-authentication` whose certificates to trust |
//! | `endpoint_mirroring` | Endpoints written by hand have EndpointSlices |
//! | `disruption` | a PodDisruptionBudget knows how many pods may be disrupted |
//! | `tenancy` | workspaces, and the APIs that they share |
//! | `failing_jobs` | a Job fails at once and says why: no node here runs pods |

mod authentication_trust;
mod certificates;
mod default_accounts;
mod definitions;
mod disruption;
mod endpoint_mirroring;
mod expired_events;
mod failing_jobs;
mod garbage;
mod kubernetes_service;
mod living_namespaces;
mod local_api_services;
mod namespace_deletion;
mod resource_quota;
mod role_aggregation;
mod root_ca;
mod tenancy;
mod token_secrets;
mod trust;
mod users;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Manager, Metrics, Shutdown};
use jiff::Timestamp;
use tokio::sync::watch;

use living_namespaces::LivingNamespaces;
pub use trust::Certificates;

pub use certificates::{CertificateSigner, SIGNING_DURATION, SigningJob};
pub use users::{USERS, groups};

/// Upstream's `--event-ttl`.
const EVENT_TTL: Duration = Duration::from_secs(3600);

/// What the controllers are told at the start.
#[derive(Clone)]
pub struct Options {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// The certificates by which this server can be trusted, in PEM. They may change while the controllers run.
    pub root_ca: Certificates,
    /// The authority of client certificates, in PEM; [`Options::new`] takes the root's. It may change too.
    pub client_ca: Certificates,
    /// The address of the Service `default/kubernetes`.
    pub service_ip: Ipv4Addr,
    /// Where the API can be reached from outside the process.
    pub advertise: SocketAddr,
    /// The address at which users reach the API, without a path; [`Options::new`] takes `advertise`.
    pub url: String,
    /// How long an event is kept after its last change.
    pub event_ttl: Duration,
    /// Signs what is approved; without one, requests for certificates are not signed.
    pub signer: Option<Arc<dyn CertificateSigner>>,
    /// How long a signed certificate lasts at most.
    pub signing_duration: Duration,
    /// What is served, if somebody follows it already ([`follow_served`]); otherwise the controllers do.
    pub served: Option<Served>,
}

impl Options {
    /// Options with upstream's defaults.
    pub fn new(
        clients: ClientFactory,
        root_ca: impl Into<String>,
        service_ip: Ipv4Addr,
        advertise: SocketAddr,
    ) -> Self {
        let root_ca = watch::channel(Arc::from(root_ca.into())).1;
        Self {
            clients,
            client_ca: root_ca.clone(),
            root_ca,
            service_ip,
            advertise,
            url: format!("https://{advertise}"),
            event_ttl: EVENT_TTL,
            signer: None,
            signing_duration: SIGNING_DURATION,
            served: None,
        }
    }
}

/// What every controller gets: its options, the kinds that are served, and the namespaces that live.
struct Setup {
    options: Options,
    served: Served,
    namespaces: LivingNamespaces,
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
    certificates::register,
    local_api_services::register,
    authentication_trust::register,
    endpoint_mirroring::register,
    disruption::register,
    failing_jobs::register,
    token_secrets::register,
    resource_quota::register,
    tenancy::register,
];

/// What is served, and the task that keeps it, with the rights that the controllers need: for whoever shares it with them.
pub fn follow_served(
    clients: &ClientFactory,
    shutdown: Shutdown,
) -> (Served, impl Future<Output = ()> + Send + use<>) {
    Served::follow(clients.clients(users::GARBAGE_COLLECTOR), shutdown)
}

/// Runs every controller until the end. Returns when what was under way is finished.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients.clone(), metrics, shutdown);
    let served = options.served.clone().unwrap_or_else(|| {
        let (served, follow) = follow_served(&options.clients, manager.shutdown());
        manager.spawn(follow);
        served
    });
    let setup = Setup {
        options,
        served,
        namespaces: LivingNamespaces::new(manager.reach()),
    };
    for register in CONTROLLERS {
        register(&mut manager, &setup);
    }
    setup.namespaces.follow(&mut manager);
    manager.run().await;
}

/// The time as objects have it: whole seconds.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
