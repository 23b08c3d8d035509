//! What runs on a host that has virtual machines: its Node, and the process of every instance that is placed on it.
//!
//! ```text
//!   VirtualMachineInstance ──► instances ──► one task each (instance::runner) ──► QEMU
//!         ▲                                        │
//!         └────────── status, events ──────────────┘
//! ```
//!
//! A machine outlives Fairway: at a start every task looks first whether its process is there already. Nothing is kept about machines
//! that is not in the API or in the machine's own directory ([`instance::home`]).
//!
//! Tasks: one that keeps the Node and its Lease; one watch of instances over all workspaces; with the first machine one of claims; one that measures
//! machines now and then; one task for each instance of this node, with those that it starts beside itself. Channels: watches write to tasks of
//! instances, each of which owns its machine.
//!
//! The crate must not place machines, nor act on those of other nodes.

mod claims;
mod context;
mod guests;
pub mod host;
pub mod instance;
mod instances;
mod metrics;
mod paths;
pub mod ports;
mod registration;
mod registry;
mod settings;
pub mod supervise;
mod taps;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use fairway_controller::events::Recorder;
use fairway_controller::{ClientFactory, Manager, Metrics, Shutdown};
use fairway_machines_plan::confinement::users::Range;

use context::Context;
use host::{Host, Isolation, Processors};
use instance::home;
use instances::Instances;
pub use metrics::figures_of_instances;
use ports::{Cables, Disks};
use registration::Registration;
use registry::Registry;
use supervise::Fencing;
pub use taps::{DataPath, Taps};

/// Who a node is.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-machines-node";

/// As who events are written; upstream's name for it.
const COMPONENT: &str = "virt-handler";

/// QEMU, unless somebody says otherwise.
pub const QEMU: &str = "qemu-system-x86_64";

/// What a node is told at the start.
pub struct Options {
    /// Makes the clients of users, and knows whether there are workspaces.
    pub clients: ClientFactory,
    /// Where this host is reached by others.
    pub address: Option<IpAddr>,
    /// Which host this is, if it is not to be found out ([`host::identity`]): nodes that say the same see each other's files and sockets.
    pub host: Option<String>,
    /// QEMU.
    pub program: PathBuf,
    /// Machines end when this node is not heard of. Only for a node whose control plane is elsewhere: where both are one process, nobody
    /// could start a machine twice, and guests must outlive its restart.
    pub fencing: Option<Fencing>,
    /// Numbers that are users of machines, each of one; nothing: machines run as the node's user.
    pub users: Option<Range>,
    /// What carries frames between machines here.
    pub data_path: DataPath,
    /// Whoever connects network cards.
    pub cables: Arc<dyn Cables>,
    /// Whoever fetches disks out of container images.
    pub disks: Arc<dyn Disks>,
}

/// A node of this process. It is there before it runs, for those who reach machines through it (`Guests`). Machines live in its directory,
/// which is on the same file system as volumes and images.
#[derive(Clone)]
pub struct Node {
    name: Arc<str>,
    directory: Arc<Path>,
    registry: Arc<Registry>,
    /// What it runs with, once it does.
    context: Arc<OnceLock<Arc<Context>>>,
    /// How often somebody has asked for figures.
    asked: Arc<AtomicU64>,
    /// Backups are begun and ended one after the other.
    backups: Arc<tokio::sync::Mutex<()>>,
}

impl Node {
    /// A node with this name, whose machines live in this directory.
    pub fn new(name: &str, directory: &Path) -> Self {
        Self {
            name: name.into(),
            directory: directory.into(),
            registry: Arc::default(),
            context: Arc::default(),
            asked: Arc::default(),
            backups: Arc::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Runs the machines of this host until the end. Returns when everything is let go of; machines run on.
pub async fn run(node: Node, options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients, metrics, shutdown.clone());
    let clients = manager.clients(USER);
    let isolation = Isolation::new(&node.directory, options.users);
    let allotted = home::processors(&node.directory);
    let processors = Processors::here(isolation.has_users(), allotted);
    let context = Arc::new(Context {
        recorder: Recorder::new(clients.clone(), COMPONENT),
        clients,
        node: node.name().to_owned(),
        address: options.address,
        host_id: options.host.unwrap_or_else(host::identity),
        host: Host::new(options.program, &*node.directory, isolation.emulated()),
        directory: node.directory.to_path_buf(),
        cables: options.cables,
        disks: options.disks,
        fencing: options.fencing,
        data_path: options.data_path,
        isolation,
        processors: Arc::new(processors),
        registry: Arc::clone(&node.registry),
    });
    // One that begins anew in the same process talks to the same API.
    let _ = node.context.set(Arc::clone(&context));
    let registration = Registration::new(Arc::clone(&context));
    manager.spawn(registration.run(shutdown.clone()));
    let (registry, until) = (Arc::clone(&context.registry), shutdown.clone());
    manager.spawn(async move { metrics::history::follow(&registry, until).await });
    manager.spawn(Instances::new(Arc::clone(&context), shutdown).run());
    manager.run().await;
    context.data_path.leave();
}
