//! What a node asks of others on its host: to connect network cards, and to fetch disks out of container images.
//!
//! They are traits, so that a machine's life can be tested without a switch and without a registry.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fairway_controller::ObjectKey;
use fairway_fabric::Fabric;
use fairway_machines_image::Image;
use fairway_machines_volumes::{ContainerDisk, ContainerDiskError, ContainerDisks};
use fairway_machines_wiring::{Card, Problem, Wiring};
use futures::future::BoxFuture;
use tokio::sync::watch;

/// Whoever connects the network cards of this host's machines.
pub trait Cables: Send + Sync + 'static {
    /// Connects the cards of an instance's machine; the same again changes nothing.
    fn plug(&self, key: &ObjectKey, hostname: &str, cards: Vec<Card>);
    /// Disconnects them.
    fn unplug(&self, key: &ObjectKey);
    /// The address of an instance, as soon as it has one.
    fn address(&self, key: &ObjectKey) -> Option<Ipv4Addr>;
    /// What is wrong with an instance's network.
    fn problems(&self, key: &ObjectKey) -> Vec<Problem> {
        let _ = key;
        Vec::new()
    }
    /// Says when that has changed for any instance; nothing if it never does.
    fn troubles(&self) -> Option<watch::Receiver<u64>> {
        None
    }
    /// The way to machines of this host.
    fn fabric(&self) -> Arc<dyn Fabric>;
}

/// Whoever fetches disks out of container images, and keeps them.
pub trait Disks: Send + Sync + 'static {
    /// Fetches a disk.
    fn fetch<'a>(&'a self, wanted: ContainerDisk<'a>) -> BoxFuture<'a, Result<Image, ContainerDiskError>>;
}

impl Cables for Wiring {
    fn plug(&self, key: &ObjectKey, hostname: &str, cards: Vec<Card>) {
        Wiring::plug(self, key, hostname, cards);
    }

    fn unplug(&self, key: &ObjectKey) {
        Wiring::unplug(self, key);
    }

    fn address(&self, key: &ObjectKey) -> Option<Ipv4Addr> {
        Wiring::address(self, key)
    }

    fn problems(&self, key: &ObjectKey) -> Vec<Problem> {
        Wiring::problems(self, key)
    }

    fn troubles(&self) -> Option<watch::Receiver<u64>> {
        Some(Wiring::troubles(self))
    }

    fn fabric(&self) -> Arc<dyn Fabric> {
        Wiring::fabric(self)
    }
}

impl Disks for ContainerDisks {
    fn fetch<'a>(&'a self, wanted: ContainerDisk<'a>) -> BoxFuture<'a, Result<Image, ContainerDiskError>> {
        Box::pin(async move { ContainerDisks::fetch(self, &wanted).await })
    }
}
