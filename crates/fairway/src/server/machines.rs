//! The parts of machines, wired to the API of this process: controllers that need no host, and the host that this is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Metrics, ObjectKey, Shutdown};
use fairway_fabric::{Connection, Fabric};
use fairway_kernel_apiserver::Kernel;
use fairway_machines_guests::{Door, Guests, Order, Refusal};
use fairway_machines_node::{Node, QEMU};
use fairway_machines_plan::settings::NODES_PLUG;
use fairway_machines_subresources::Service;
use fairway_machines_volumes::ContainerDisks;
use fairway_machines_wiring::frames::address::Cidr;
use fairway_machines_wiring::{NodeOptions, Settings, Wiring};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::task::JoinHandle;
use tracing::error;

use crate::config::Config;
use crate::config::machines::{MachinesConfig, resolvers};
use crate::data_dir::DataDir;

/// Where the host says who knows names.
const RESOLVERS: &str = "/etc/resolv.conf";

/// What every part is told.
#[derive(Clone)]
struct Common {
    clients: ClientFactory,
    served: Served,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    settings: Settings,
}

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
    let common = Common {
        clients,
        served,
        metrics,
        shutdown,
        settings: settings(kernel, config.machines.as_ref()),
    };
    let cluster = cluster(common.clone());
    let host = match &config.machines {
        Some(config) => {
            let host = Host::start(&common, config, data);
            let (guests, fabric) = (Arc::new(host.node.clone()), host.wiring.fabric());
            serve(kernel, &common.clients, guests, fabric);
            host.run(common).boxed()
        }
        None => {
            serve(
                kernel,
                &common.clients,
                Arc::new(Nobody),
                Arc::new(fairway_fabric::PlainTcp::default()),
            );
            futures::future::ready(()).boxed()
        }
    };
    tokio::spawn(async move {
        tokio::join!(cluster, host);
    })
}

/// The networks: those of the API server, and addresses of this host.
fn settings(kernel: &Kernel, config: Option<&MachinesConfig>) -> Settings {
    let services = &kernel.service_network;
    // A prefix has at most 32 bits.
    let bits = u8::try_from(services.bits).unwrap_or(32);
    let mut settings = Settings {
        services: Cidr::of(services.base, bits),
        resolvers: resolvers(Path::new(RESOLVERS)),
        ..Settings::default()
    };
    if let Some(config) = config {
        settings.addresses = config.addresses.clone();
    }
    settings
}

/// Controllers that see clients only.
async fn cluster(common: Common) {
    let engine = fairway_machines_engine::Options {
        clients: common.clients.clone(),
        served: Some(common.served.clone()),
        nodes_plug: NODES_PLUG,
    };
    let wiring = fairway_machines_wiring::Options {
        clients: common.clients,
        served: Some(common.served),
        settings: common.settings,
    };
    let (metrics, shutdown) = (common.metrics, common.shutdown);
    tokio::join!(
        fairway_machines_engine::run(engine, Arc::clone(&metrics), shutdown.clone()),
        fairway_machines_wiring::run(wiring, metrics, shutdown),
    );
}

/// What virtctl and consoles ask for.
fn serve(kernel: &Kernel, clients: &ClientFactory, guests: Arc<dyn Guests>, fabric: Arc<dyn Fabric>) {
    for service in Service::versions(clients, guests, fabric) {
        if let Err(problem) = kernel.serve_api(&service) {
            error!(%problem, "consoles and commands of machines are not served");
        }
    }
}

/// This host.
struct Host {
    node: Node,
    wiring: Wiring,
    /// Disks and running machines.
    directory: PathBuf,
    images: PathBuf,
    config: MachinesConfig,
}

impl Host {
    fn start(common: &Common, config: &MachinesConfig, data: &DataDir) -> Self {
        let network = NodeOptions {
            clients: common.clients.clone(),
            served: Some(common.served.clone()),
            node: config.node.clone(),
            settings: common.settings.clone(),
        };
        Self {
            node: Node::new(&config.node, &data.machines()),
            wiring: Wiring::start(network, &common.shutdown),
            directory: data.machines(),
            images: data.images(),
            config: config.clone(),
        }
    }

    async fn run(self, common: Common) {
        let hosts = self.config.image_hosts;
        let volumes = fairway_machines_volumes::Options {
            clients: common.clients.clone(),
            node: self.config.node,
            directory: self.directory,
            images: self.images.clone(),
            allowed_hosts: hosts.clone(),
            keep_disks: None,
            is_control_plane: true,
            uploads: None,
            served: Some(common.served),
        };
        let node = fairway_machines_node::Options {
            clients: common.clients,
            address: self.config.addresses.first().copied(),
            program: PathBuf::from(QEMU),
            cables: Arc::new(self.wiring),
            disks: Arc::new(ContainerDisks::new(self.images, hosts)),
        };
        let (metrics, shutdown) = (common.metrics, common.shutdown);
        tokio::join!(
            fairway_machines_volumes::run(volumes, Arc::clone(&metrics), shutdown.clone()),
            fairway_machines_node::run(self.node, node, metrics, shutdown),
        );
    }
}

/// Machines of a process that runs none.
struct Nobody;

impl Nobody {
    fn lost(node: &str, key: &ObjectKey) -> Refusal {
        Refusal::NodeLost {
            key: key.clone(),
            node: node.to_owned(),
            why: "this Fairway was started with --no-machines".to_owned(),
        }
    }
}

impl Guests for Nobody {
    fn can_plug(&self) -> bool {
        false
    }

    fn open<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        _: Door,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, Refusal>> {
        Box::pin(async move { Err(Self::lost(node, key)) })
    }

    fn order<'a>(
        &'a self,
        node: &'a str,
        key: &'a ObjectKey,
        _: Order,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move { Err(Self::lost(node, key)) })
    }
}
