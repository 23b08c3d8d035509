//! Disks of virtual machines as claims: DataVolumes and claims are filled, kept on this host and removed.
//!
//! For the node there is little to know. A bound claim names a directory of this host (`spec.local.path` of its volume), in
//! which [`disk_path`] is the disk, whole and writable. Disks out of container images are fetched through
//! [`ContainerDisks`].
//!
//! It must not know QEMU or machines that run.

mod container_disks;
mod decide;
mod names;
mod view;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairway_controller::{ClientFactory, Manager, Metrics, Shutdown};
use fairway_outbound::AllowedHosts;

pub use container_disks::{ContainerDisk, ContainerDiskError, ContainerDisks, PullPolicy};

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
    /// The node on which volumes are made: this one.
    pub node: String,
    /// Where volumes are kept, in a directory `volumes`.
    pub directory: PathBuf,
    /// The cache of images, on the same file system.
    pub images: PathBuf,
    /// Where images may be fetched from.
    pub allowed_hosts: AllowedHosts,
}

/// Fills claims until the end. Returns when what was under way is finished.
pub async fn run(options: Options, metrics: Arc<Metrics>, shutdown: Shutdown) {
    let manager = Manager::new(options.clients, metrics, shutdown);
    manager.run().await;
}
