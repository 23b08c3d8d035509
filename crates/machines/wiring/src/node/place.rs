//! Where a machine is that this node's switch does not know: one of a workspace that has nothing here.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

use fairway_controller::WorkspaceId;
use fairway_fabric::Destination;

use super::Caches;
use crate::picture::Backends;

impl Caches {
    /// The node of a machine, and the machine's own address and port where a Service's was asked for.
    pub(crate) fn place_of(&self, to: &Destination, protocol: u8) -> Option<(String, Destination)> {
        let workspace = WorkspaceId::parse(&to.workspace).ok()?;
        let IpAddr::V4(address) = to.address else {
            return None;
        };
        if let Some(node) = self.node_at(&workspace, address) {
            return Some((node, to.clone()));
        }
        let services = self.services.of_workspace(&workspace);
        let (key, service) = (services.iter()).find(|(_, service)| service.cluster_ip == Some(address))?;
        let port = (service.ports.iter()).find(|port| port.port == to.port && port.protocol == protocol)?;
        let slices = self.slices.of_namespace(&workspace, &key.namespace);
        let backends = Backends::new(&slices, &|_| true).behind(key, port, None);
        let number = usize::try_from(RandomState::new().hash_one(to)).unwrap_or_default();
        // Whichever comes, and another if that is nowhere.
        let turned = (backends.iter().cycle()).skip(number.checked_rem(backends.len())?);
        turned.take(backends.len()).find_map(|backend| {
            let mut there = to.clone();
            (there.address, there.port) = (IpAddr::V4(backend.address), backend.port);
            Some((self.node_at(&workspace, backend.address)?, there))
        })
    }
}
