//! The parts of machines, wired to the API of this process: controllers that need no host, and the host that this is.

use std::path::Path;
use std::sync::Arc;

use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_kernel_apiserver::Kernel;
use fairway_machines_wiring::Settings;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::config::machines::resolvers;
use crate::data_dir::DataDir;

/// Where the host says who knows names.
const RESOLVERS: &str = "/etc/resolv.conf";

/// Starts them; the task ends when `shutdown` has been given and everything under way is finished. Guests run on: the next start finds
/// them.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    data: &DataDir,
    config: &Config,
    (clients, metrics): (ClientFactory, Arc<Metrics>),
    served: Served,
    shutdown: Shutdown,
) -> JoinHandle<()> {
    let _ = kernel;
    let settings = Settings {
        resolvers: resolvers(Path::new(RESOLVERS)),
        ..Settings::default()
    };
    let engine = fairway_machines_engine::run(
        fairway_machines_engine::Options {
            clients: clients.clone(),
            served: Some(served.clone()),
        },
        Arc::clone(&metrics),
        shutdown.clone(),
    );
    let cluster = fairway_machines_wiring::run(
        fairway_machines_wiring::Options {
            clients: clients.clone(),
            served: Some(served.clone()),
            settings: settings.clone(),
        },
        Arc::clone(&metrics),
        shutdown.clone(),
    );
    let host = config.machines.as_ref().map(|config| {
        fairway_machines_volumes::run(
            fairway_machines_volumes::Options {
                clients,
                node: config.node.clone(),
                directory: data.machines(),
                images: data.images(),
                allowed_hosts: config.image_hosts.clone(),
                keep_disks: None,
                served: Some(served),
            },
            metrics,
            shutdown,
        )
    });
    tokio::spawn(async move {
        let host = async move {
            if let Some(host) = host {
                host.await;
            }
        };
        tokio::join!(engine, cluster, host);
    })
}
