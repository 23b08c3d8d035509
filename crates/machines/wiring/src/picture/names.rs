//! The names of a workspace.

use std::net::Ipv4Addr;

use fairway_controller::{ObjectKey, WorkspaceId};
use fairway_dns::Zone;
use fairway_dns::zone::{Endpoint, Kind, Machine, Port, Service as Named};
use fairway_machines_frames::address::Cidr;

use super::World;
use super::services::Backends;
use crate::settings::Settings;
use crate::view::{self, Service, protocol_name};

/// What a zone is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) services: Vec<Named>,
    pub(crate) machines: Vec<Machine>,
}

impl Names {
    pub(super) fn of(world: &World, workspace: &WorkspaceId) -> Self {
        let is_here = |key: &ObjectKey| key.workspace == *workspace;
        let backends = Backends::new(&world.slices, &is_here);
        let services = world.services.iter().filter(|(key, _)| is_here(key));
        let services = services.filter_map(|(key, service)| {
            Some(Named {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                kind: kind(key, service, &backends)?,
            })
        });
        let machines = world.instances.iter().filter(|(key, _)| is_here(key));
        let machines = machines.filter_map(|(key, instance)| {
            Some(Machine {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                hostname: Some(instance.hostname.clone()).filter(|name| !name.is_empty()),
                subdomain: Some(instance.subdomain.clone()).filter(|name| !name.is_empty()),
                address: instance.address.filter(|_| !instance.is_final)?,
            })
        });
        Self {
            services: services.collect(),
            machines: machines.collect(),
        }
    }

    /// The zone.
    pub(crate) fn zone(&self, settings: &Settings) -> Zone {
        let network = |network: Cidr| -> (Ipv4Addr, u8) { (network.first(), network.prefix()) };
        let networks = vec![network(settings.machines), network(settings.services)];
        Zone::new(&settings.domain, networks, &self.services, &self.machines)
    }
}

fn kind(key: &ObjectKey, service: &Service, backends: &Backends<'_>) -> Option<Kind> {
    if service.is_external_name() {
        return Some(Kind::External(service.external_name.clone()));
    }
    if service.is_headless {
        return Some(Kind::Headless(endpoints(key, service, backends)));
    }
    Some(Kind::Cluster {
        addresses: vec![service.cluster_ip?],
        ports: service.ports.iter().map(named).collect(),
    })
}

fn named(port: &view::ServicePort) -> Port {
    named_port(&port.name, port.protocol, port.port)
}

fn named_port(name: &str, protocol: u8, port: u16) -> Port {
    Port {
        name: name.to_owned(),
        protocol: protocol_name(protocol).to_ascii_lowercase(),
        port,
    }
}

/// Who a headless Service's name means: those who are ready. With `publishNotReadyAddresses` all count as ready where
/// endpoints are written.
fn endpoints(key: &ObjectKey, service: &Service, backends: &Backends<'_>) -> Vec<Endpoint> {
    let mut found: Vec<Endpoint> = Vec::new();
    for slice in backends.of(key) {
        let ports = slice.ports.iter();
        let ports: Vec<Port> = ports
            .map(|port| named_port(&port.name, port.protocol, port.port))
            .collect();
        for endpoint in &slice.endpoints {
            if endpoint.is_ready || service.publishes_not_ready {
                found.push(Endpoint {
                    hostname: endpoint.hostname.clone(),
                    address: endpoint.address,
                    ports: ports.clone(),
                });
            }
        }
    }
    found
}
