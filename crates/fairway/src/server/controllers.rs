//! The kernel's own controllers, each with a client and a user of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use fairway_controller::{Metrics, Shutdown};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_controllers::Options;
use tokio::task::JoinHandle;

/// Groups of every service account of the control plane. None of them is privileged by itself.
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];

/// Starts them; the task ends when `shutdown` has been given and everything under way is finished.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    root_ca: &str,
    client_ca: &str,
    advertise: SocketAddr,
    shutdown: Shutdown,
) -> JoinHandle<()> {
    let for_clients = Arc::clone(kernel);
    let client_for = move |user: &str| {
        let service = InProcess::new(Arc::clone(&for_clients), UserInfo::new(user, GROUPS));
        kube::Client::new(service, "default")
    };
    let service_ip = kernel.service_network.api_address();
    let options = Options {
        client_ca: client_ca.to_owned(),
        ..Options::new(client_for, root_ca.to_owned(), service_ip, advertise)
    };
    let metrics = Arc::new(Metrics::default());
    let shown = Arc::clone(&metrics);
    // Set once: there is one set of controllers in a process.
    let _ = kernel.more_metrics.set(Box::new(move || shown.render()));
    tokio::spawn(fairway_kernel_controllers::run(options, metrics, shutdown))
}
