//! The kernel's own controllers, each with a client and a user of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_controllers::Options;
use fairway_tenancy_syncagent::hosted;
use kube::Client;
use tokio::task::JoinHandle;

use super::gitops;
use super::rotation::Live;
use crate::config::Config;

/// Clients of every user, in process.
pub(super) fn clients(kernel: &Arc<Kernel>) -> ClientFactory {
    let kernel = Arc::clone(kernel);
    ClientFactory::across_workspaces(move |user| {
        InProcess::new(
            Arc::clone(&kernel),
            UserInfo::new(user, fairway_kernel_controllers::groups(user)),
        )
    })
}

/// Starts them; the task ends when `shutdown` has been given and everything under way is finished. What they know of what is
/// served is there for others.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    live: &Live,
    config: &Config,
    (directories, own): (gitops::Directories, gitops::OwnHost),
    (clients, metrics): (ClientFactory, Arc<Metrics>),
    advertise: SocketAddr,
    shutdown: Shutdown,
) -> (JoinHandle<()>, Served) {
    // Several follow what is served: once is enough.
    let (served, kinds) = fairway_kernel_controllers::follow_served(&clients, shutdown.clone());
    let service_ip = kernel.service_network.api_address();
    let options = Options {
        root_ca: live.trust.subscribe(),
        client_ca: live.client_trust.subscribe(),
        signer: Some(Arc::new(live.clone())),
        signing_duration: Duration::from_secs(u64::try_from(config.cert_duration).unwrap_or(0)),
        served: Some(served.clone()),
        ..Options::new(clients, "", service_ip, advertise)
    };
    let options = match &config.external_url {
        Some(url) => Options {
            url: url.clone(),
            ..options
        },
        None => options,
    };
    let (shown, certificates) = (Arc::clone(&metrics), live.clone());
    kernel
        .more_metrics
        .add(move || shown.render() + &certificates.figures());
    let agents = sync_agents(kernel, options.clients.clone(), &metrics, shutdown.clone());
    let urls = vec![options.url.clone(), format!("https://{advertise}")];
    let engine = gitops::run(
        options.clients.clone(),
        directories,
        own,
        urls,
        served.clone(),
        Arc::clone(&metrics),
        shutdown.clone(),
    );
    let controllers = fairway_kernel_controllers::run(options, metrics, shutdown);
    let running = tokio::spawn(async move {
        tokio::join!(kinds, controllers, agents, engine);
    });
    (running, served)
}

/// The sync agents of exports that ask for one, in the same process.
fn sync_agents(
    kernel: &Arc<Kernel>,
    clients: ClientFactory,
    metrics: &Arc<Metrics>,
    shutdown: Shutdown,
) -> impl Future<Output = ()> + Send + use<> {
    let user = UserInfo::new(hosted::USER, fairway_kernel_controllers::groups(hosted::USER));
    let server = Client::new(InProcess::new(Arc::clone(kernel), user), "default");
    hosted::run(clients, server, Arc::clone(metrics), shutdown)
}
