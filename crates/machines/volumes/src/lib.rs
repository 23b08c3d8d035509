//! Disks of virtual machines as claims: DataVolumes and claims are filled, kept on this host and removed.
//!
//! For the node there is little to know:
//! - A claim that is `Bound` has a volume whose directory [`directory_of`] finds; in it [`disk_path`] is the disk, whole and writable.
//!   The path in the volume must not be believed otherwise: tenants may write it.
//! - While a machine has a claim and a node, the disk is the machine's: it is neither removed nor grown here. If a claim asks for
//!   more, the capacity of its volume says how large the disk should be; the node grows it, and the file says when it is done.
//! - Disks out of container images are fetched through [`ContainerDisks`].
//!
//! Tasks: one watch for each kind in [`world`] over all workspaces; controllers of claims (with the DataVolumes of their names), of
//! DataSources and of DataImportCrons; one job for each disk that is being filled ([`fill`]); one task that publishes images.
//! Channels: watches and jobs write keys into queues.
//!
//! It must not know QEMU; of machines that run it knows that they copy their disks on order.

mod alone;
mod claims;
mod container_disks;
mod data_sources;
mod decide;
mod fill;
mod image_service;
mod images;
mod import_crons;
pub mod moment;
mod names;
mod origin;
mod place;
mod pull;
mod snapshots;
mod uploads;
mod uses;
mod view;
mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::dynamic::follow_all;
use fairway_controller::events::Recorder;
use fairway_controller::served::Served;
use fairway_controller::{ClientFactory, Controller, Manager, Metrics, Shutdown};
use fairway_machines_guests::Guests;
use fairway_outbound::AllowedHosts;
use tokio::sync::Notify;

use claims::Claims;
use data_sources::DataSources;
use fill::Fills;
use images::Images;
use import_crons::ImportCrons;
use origin::Origins;
use place::Place;
use snapshots::Snapshots;
use world::{Queues, World};

pub use container_disks::{ContainerDisk, ContainerDiskError, ContainerDisks, PullPolicy};
pub use image_service::ImageService;
pub use place::{directory_of, volume_directory};
pub use uploads::Uploads;

/// Who the controllers of volumes are.
pub const USER: &str = "system:serviceaccount:kube-system:fairway-machines-volumes";

/// The class of volumes of this host.
pub const STORAGE_CLASS: &str = "local";

/// Who fills claims of that class.
pub const PROVISIONER: &str = "fairway.dev/local";

/// Where images that everybody may start from are published.
pub const IMAGES_NAMESPACE: &str = "fairway-images";

/// The disk in the directory of a volume: a qcow2 file. What lies behind it is beside it and named by it without a
/// directory, so that the directory may be moved.
pub fn disk_path(volume: &Path) -> PathBuf {
    volume.join("disk.qcow2")
}

/// What it is told at the start.
pub struct Options {
    /// Makes clients.
    pub clients: ClientFactory,
    /// The node on which volumes are made: this one. Nothing where no machines run: then it only chooses nodes for disks.
    pub node: Option<String>,
    /// Where volumes are kept, in a directory `volumes`.
    pub directory: PathBuf,
    /// The cache of images, on the same file system.
    pub images: PathBuf,
    /// Where images may be fetched from.
    pub allowed_hosts: AllowedHosts,
    /// How long disks are kept of machines that Git pruned; if nobody says so, as long as their tombstones.
    pub keep_disks: Option<Duration>,
    /// Whether this is the control plane, and not only one more node: it looks after DataSources and DataImportCrons, publishes its
    /// images, and takes on claims for which nobody chose a node, or chooses one. Other nodes fetch images from it ([`ImageService`]).
    pub is_control_plane: bool,
    /// Takes what is uploaded.
    pub uploads: Option<Uploads>,
    /// Machines that run, which copy their disks for snapshots; without them a snapshot waits until its machine has ended.
    pub guests: Option<Arc<dyn Guests>>,
    /// What is served here, if somebody follows it already.
    pub served: Option<Served>,
}

/// How many claims are looked at at once.
const WORKERS: usize = 8;

/// As who events are written.
const COMPONENT: &str = "fairway-machines-volumes";

/// Fills claims until the end. Returns when what was under way is finished or broken off; what was broken off goes on at the next
/// start.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let mut manager = Manager::new(options.clients, metrics, shutdown.clone());
    let clients = manager.clients(USER);
    let served = match options.served {
        Some(served) => served,
        None => {
            let (served, following) = Served::follow(clients.clone(), shutdown.clone());
            manager.spawn(following);
            served
        }
    };
    let is_control_plane = options.is_control_plane;
    let node = options.node.unwrap_or_default();
    let queues = Queues::default();
    let world = Arc::new(World::new(manager.reach(), queues.clone()));
    let place = Arc::new(Place::new(options.directory));
    let images = Arc::new(Images::new(options.images));
    let origins = Arc::new(Origins::new(
        clients.clone(),
        (Arc::clone(&place), Arc::clone(&images)),
        (node.clone(), !is_control_plane),
        options.allowed_hosts,
    ));
    let fills = Arc::new(Fills::new(queues.claims.clone()));
    if let Some(uploads) = &options.uploads {
        uploads.run_with(uploads::Inside {
            clients: clients.clone(),
            node: node.clone(),
            place: Arc::clone(&place),
            images: Arc::clone(&images),
            queue: queues.claims.clone(),
        });
    }
    let claims = Claims {
        clients: clients.clone(),
        recorder: Recorder::new(clients.clone(), COMPONENT),
        node,
        place,
        origins: Arc::clone(&origins),
        fills: Arc::clone(&fills),
        world: Arc::clone(&world),
        keep_disks: options.keep_disks,
        chooses: options.is_control_plane,
        uploads: options.uploads,
    };
    manager.spawn(follow_all(
        clients.every(),
        served.changes(),
        move |kind| world::is_watched(kind, is_control_plane),
        shutdown.clone(),
        move |change| world.take(change),
    ));
    let snapshots = Snapshots {
        clients: clients.clone(),
        recorder: Recorder::new(clients.clone(), COMPONENT),
        node: claims.node.clone(),
        chooses: is_control_plane,
        place: Arc::clone(&claims.place),
        guests: options.guests,
    };
    let controller = Controller::new("volume-snapshots", queues.snapshots, snapshots).workers(4);
    manager.spawn(controller.run(manager.metrics(), shutdown.clone()));
    let controller = Controller::new("volumes", queues.claims, claims).workers(WORKERS);
    manager.spawn(controller.run(manager.metrics(), shutdown.clone()));
    if options.is_control_plane {
        let published = Arc::new(Notify::new());
        manager.spawn(data_sources::publish(
            clients.clone(),
            images,
            Arc::clone(&published),
            shutdown.clone(),
        ));
        let sources = DataSources {
            clients: clients.clone(),
            published,
        };
        let controller = Controller::new("data-sources", queues.data_sources, sources);
        manager.spawn(controller.run(manager.metrics(), shutdown.clone()));
        let crons = ImportCrons {
            recorder: Recorder::new(clients.clone(), COMPONENT),
            clients,
            origins,
        };
        let controller = Controller::new("data-import-crons", queues.import_crons, crons).workers(2);
        manager.spawn(controller.run(manager.metrics(), shutdown));
    }
    manager.run().await;
    fills.end();
}
