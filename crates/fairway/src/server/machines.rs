//! The parts of machines, wired to the API of this process: controllers that need no host, and the host that this is.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Metrics, Shutdown};
use fairway_fabric::Fabric;
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::admission::service::ServiceNetwork;
use fairway_machines_engine::Foresight;
use fairway_machines_guests::Guests;
use fairway_machines_link::{Answers, Links, figures};
use fairway_machines_node::supervise::Fencing;
use fairway_machines_node::{DataPath, Node, QEMU, Taps};
use fairway_machines_plan::settings::NODES_PLUG;
use fairway_machines_subresources::Service;
use fairway_machines_tap::Space;
use fairway_machines_volumes::{ContainerDisks, ImageService, Uploads};
use fairway_machines_wiring::frames::address::Cidr;
use fairway_machines_wiring::{NodeOptions, Settings, Wiring};
use futures::FutureExt as _;
use tokio::task::JoinHandle;
use tracing::error;

use crate::cli::machines::MachineNetwork;
use crate::config::Config;
use crate::config::machines::{MachinesConfig, resolvers};
use crate::data_dir::DataDir;

/// Where the host says who knows names.
const RESOLVERS: &str = "/etc/resolv.conf";

/// What every part is told.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) clients: ClientFactory,
    pub(crate) served: Served,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shutdown: Shutdown,
    pub(crate) settings: Settings,
}

/// Starts them; the task ends when `shutdown` has been given and everything under way is finished. Guests run on: the next start finds
/// them. Others reach them through what is returned.
pub(super) fn start(
    kernel: &Arc<Kernel>,
    data: &DataDir,
    config: &Config,
    (clients, metrics): (ClientFactory, Arc<Metrics>),
    (served, uploads, foresight): (Served, Option<Uploads>, Foresight),
    shutdown: Shutdown,
) -> (JoinHandle<()>, Reachable) {
    let common = Common {
        clients,
        served,
        metrics,
        shutdown,
        settings: settings(
            &kernel.service_network,
            std::iter::once(config.listen).chain(config.web_listen).collect(),
            config.machines.as_ref(),
        ),
    };
    let cluster = cluster(common.clone(), foresight);
    if let Some(Err(problem)) = uploads.as_ref().map(|uploads| kernel.serve_api(uploads)) {
        error!(%problem, "tokens for uploads are not served");
    }
    let images = ImageService::new(&common.clients, data.images());
    if let Err(problem) = kernel.serve_api(&images) {
        error!(%problem, "joined nodes cannot fetch images");
    }
    let mut reachable = Reachable {
        networks: vec![common.settings.machines, common.settings.services],
        fabric: None,
        names: None,
    };
    let host = match &config.machines {
        Some(config) => {
            let host = Host::start(&common, config, data, Role::ControlPlane(uploads));
            let here: Arc<dyn Guests> = Arc::new(host.node.clone());
            let here = (config.node.clone(), here);
            serve(kernel, &common.clients, Some(here), host.wiring.fabric());
            reachable.fabric = Some(host.wiring.fabric());
            reachable.names = Some(host.wiring.names());
            host.run(common).boxed()
        }
        None => {
            serve(
                kernel,
                &common.clients,
                None,
                Arc::new(fairway_fabric::PlainTcp::default()),
            );
            let volumes = fairway_machines_volumes::Options {
                clients: common.clients,
                node: None,
                directory: data.machines(),
                images: data.images(),
                allowed_hosts: config.image_hosts.clone(),
                keep_disks: None,
                is_control_plane: true,
                uploads,
                guests: None,
                served: Some(common.served),
            };
            fairway_machines_volumes::run(volumes, common.metrics, common.shutdown).boxed()
        }
    };
    let running = tokio::spawn(async move {
        tokio::join!(cluster, host);
    });
    (running, reachable)
}

/// Which addresses are machines' and Services', the way to them, and whom they ask for names, if machines run here.
pub(super) struct Reachable {
    pub(super) networks: Vec<Cidr>,
    pub(super) fabric: Option<Arc<dyn Fabric>>,
    pub(super) names: Option<Arc<fairway_dns::Server>>,
}

/// The networks: those of the API server, and addresses of this host.
pub(crate) fn settings(
    services: &ServiceNetwork,
    listeners: Vec<SocketAddr>,
    config: Option<&MachinesConfig>,
) -> Settings {
    // A prefix has at most 32 bits.
    let bits = u8::try_from(services.bits).unwrap_or(32);
    let mut settings = Settings {
        services: Cidr::of(services.base, bits),
        resolvers: resolvers(Path::new(RESOLVERS)),
        ..Settings::default()
    };
    // A load balancer must not want the ports of this server.
    settings.listeners = listeners;
    if let Some(config) = config {
        settings
            .listeners
            .extend(config.tunnel().map(|tunnel| tunnel.usual()));
        settings.addresses = config.addresses.clone();
        settings.outside = config.egress.clone();
    }
    settings
}

/// Controllers that see clients only.
async fn cluster(common: Common, foresight: Foresight) {
    let engine = fairway_machines_engine::Options {
        clients: common.clients.clone(),
        served: Some(common.served.clone()),
        nodes_plug: NODES_PLUG,
        foresight,
    };
    let snapshots = fairway_machines_snapshots::Options {
        clients: common.clients.clone(),
        served: Some(common.served.clone()),
    };
    let wiring = fairway_machines_wiring::Options {
        clients: common.clients,
        served: Some(common.served),
        settings: common.settings,
    };
    let (metrics, shutdown) = (common.metrics, common.shutdown);
    tokio::join!(
        fairway_machines_engine::run(engine, Arc::clone(&metrics), shutdown.clone()),
        fairway_machines_snapshots::run(snapshots, Arc::clone(&metrics), shutdown.clone()),
        fairway_machines_wiring::run(wiring, metrics, shutdown),
    );
}

/// What virtctl, consoles and those who collect figures ask for, of machines here and on nodes that are connected.
fn serve(
    kernel: &Kernel,
    clients: &ClientFactory,
    here: Option<(String, Arc<dyn Guests>)>,
    fabric: Arc<dyn Fabric>,
) {
    let links = Links::new(here, NODES_PLUG);
    let (asked, known) = (links.clone(), clients.clone());
    // Set once: there is one server in a process.
    let _ = kernel.asked_metrics.set(Box::new(move || {
        let (links, clients) = (asked.clone(), known.clone());
        async move {
            let instances = fairway_machines_node::figures_of_instances(&clients);
            let (instances, told) = tokio::join!(instances, links.figures());
            figures::together(&instances, &told)
        }
        .boxed()
    }));
    for service in Service::versions(clients, Arc::new(links.clone()), fabric) {
        if let Err(problem) = kernel.serve_api(&service) {
            error!(%problem, "consoles and commands of machines are not served");
        }
    }
    if let Err(problem) = kernel.serve_api(&fairway_machines_link::Service::new(links)) {
        error!(%problem, "nodes cannot connect");
    }
}

/// What else a host is.
pub(crate) enum Role {
    /// The API is served here, and what is uploaded through it arrives here.
    ControlPlane(Option<Uploads>),
    /// One more host for machines, which end when it is not heard of.
    Node(Option<Fencing>),
}

/// This host.
pub(crate) struct Host {
    node: Node,
    wiring: Wiring,
    role: Role,
    data_path: DataPath,
    /// Disks and running machines.
    directory: PathBuf,
    images: PathBuf,
    config: MachinesConfig,
}

/// What carries frames between machines, and the network namespace that the switch knows devices in. Machines that were started with
/// devices keep them, whatever is configured now.
fn data_path(wanted: MachineNetwork, directory: &Path) -> (DataPath, Option<Space>) {
    if wanted == MachineNetwork::User {
        return (DataPath::Switch, Space::find(directory));
    }
    let opened = Space::open(directory).map_err(|missing| missing.to_string());
    let program =
        std::env::current_exe().map_err(|error| format!("the path of this program is not known: {error}"));
    match opened.and_then(|space| Ok((space, program?))) {
        Ok((space, program)) => {
            let taps = Taps {
                space: space.clone(),
                program,
            };
            (DataPath::Kernel(taps), Some(space))
        }
        Err(why) => {
            if wanted == MachineNetwork::Tap {
                tracing::warn!(%why, "machines have no network devices of the kernel; the switch carries everything");
            }
            (DataPath::Incomplete(why), Space::find(directory))
        }
    }
}

impl Host {
    pub(crate) fn start(common: &Common, config: &MachinesConfig, data: &DataDir, role: Role) -> Self {
        let (data_path, space) = data_path(config.network, &data.machines());
        let network = NodeOptions {
            space,
            clients: common.clients.clone(),
            served: Some(common.served.clone()),
            node: config.node.clone(),
            tunnel: config.tunnel(),
            settings: common.settings.clone(),
        };
        Self {
            node: Node::new(&config.node, &data.machines()),
            wiring: Wiring::start(network, &common.shutdown),
            role,
            data_path,
            directory: data.machines(),
            images: data.images(),
            config: config.clone(),
        }
    }

    /// Who answers for this host on its stream to the server.
    pub(crate) fn answers(&self) -> Answers {
        Answers {
            node: self.config.node.clone(),
            guests: Arc::new(self.node.clone()),
            fabric: self.wiring.fabric(),
        }
    }

    pub(crate) async fn run(self, common: Common) {
        let hosts = self.config.image_hosts;
        let uploads = match &self.role {
            Role::ControlPlane(uploads) => uploads.clone(),
            Role::Node(_) => None,
        };
        let volumes = fairway_machines_volumes::Options {
            clients: common.clients.clone(),
            node: Some(self.config.node),
            directory: self.directory,
            images: self.images.clone(),
            allowed_hosts: hosts.clone(),
            keep_disks: None,
            is_control_plane: matches!(self.role, Role::ControlPlane(_)),
            uploads,
            guests: Some(Arc::new(self.node.clone())),
            served: Some(common.served),
        };
        let mut disks = ContainerDisks::new(self.images, hosts);
        if matches!(self.role, Role::Node(_)) {
            disks = disks.with_server(&common.clients);
        }
        let node = fairway_machines_node::Options {
            clients: common.clients,
            address: self.config.addresses.first().copied(),
            host: None,
            program: PathBuf::from(QEMU),
            fencing: match self.role {
                // Both are one process: nobody could start a machine twice, and guests outlive its restart.
                Role::ControlPlane(_) => None,
                Role::Node(fencing) => fencing,
            },
            users: self.config.users,
            data_path: self.data_path,
            cables: Arc::new(self.wiring),
            disks: Arc::new(disks),
        };
        let (metrics, shutdown) = (common.metrics, common.shutdown);
        tokio::join!(
            fairway_machines_volumes::run(volumes, Arc::clone(&metrics), shutdown.clone()),
            fairway_machines_node::run(self.node, node, metrics, shutdown),
        );
    }
}
