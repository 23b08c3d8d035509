//! Services: their addresses and ports, and who is behind them.

use std::collections::{BTreeMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use fairway_controller::ObjectKey;
use fairway_machines_frames::packet::{TCP, UDP};
use fairway_machines_frames::service::{Backend, ServicePort};
use fairway_machines_frames::topology::Guest;

use super::{Drawing, Objects, World};
use crate::view::{self, Service, Slice};

/// Slices by the key of their Service.
pub(crate) struct Backends<'w>(BTreeMap<ObjectKey, Vec<&'w Slice>>);

impl<'w> Backends<'w> {
    pub(crate) fn new(slices: &'w Objects<Slice>, is_here: &dyn Fn(&ObjectKey) -> bool) -> Self {
        let mut by_service: BTreeMap<ObjectKey, Vec<&Slice>> = BTreeMap::new();
        for (key, slice) in slices {
            if is_here(key) && !slice.service.is_empty() {
                let service = ObjectKey::new(&key.workspace, &key.namespace, &slice.service);
                by_service.entry(service).or_default().push(slice);
            }
        }
        Self(by_service)
    }

    pub(super) fn of(&self, service: &ObjectKey) -> &[&'w Slice] {
        self.0.get(service).map_or(&[], Vec::as_slice)
    }

    /// Where connections to a port may end: those who are ready, and if nobody is, those who are about to go but still serve. `local`: on
    /// this node alone.
    pub(crate) fn behind(
        &self,
        service: &ObjectKey,
        port: &view::ServicePort,
        local: Option<&str>,
    ) -> Vec<Backend> {
        let mut ready = Vec::new();
        let mut leaving = Vec::new();
        for slice in self.of(service) {
            let here = (slice.ports.iter())
                .filter(|own| own.name == port.name && own.protocol == port.protocol)
                .map(|own| own.port);
            for number in here {
                for endpoint in &slice.endpoints {
                    let backend = Backend {
                        address: endpoint.address,
                        port: number,
                    };
                    if local.is_some_and(|node| endpoint.node != node) {
                        continue;
                    }
                    if endpoint.is_ready {
                        ready.push(backend);
                    } else if endpoint.is_leaving {
                        leaving.push(backend);
                    }
                }
            }
        }
        let mut found = if ready.is_empty() { leaving } else { ready };
        found.sort_by_key(|backend| (backend.address, backend.port));
        found.dedup();
        found
    }
}

impl Drawing<'_> {
    /// Every port of every Service at each of its addresses. Where two Services of a workspace have the same, the older stays.
    pub(super) fn services(
        &self,
        world: &World,
        is_here: &dyn Fn(&ObjectKey) -> bool,
        backends: &Backends<'_>,
        guests: &[Guest],
    ) -> Vec<ServicePort> {
        let mut services: Vec<_> = world
            .services
            .iter()
            .filter(|(key, service)| is_here(key) && !service.is_external_name())
            .collect();
        services.sort_by(|(one, a), (other, b)| (&a.created, one).cmp(&(&b.created, other)));
        let machines: HashSet<Ipv4Addr> = guests.iter().map(|guest| guest.address).collect();
        let mut taken = HashSet::new();
        let mut ports = Vec::new();
        for (key, service) in services {
            let tenant = self.numbers.tenant(&key.workspace);
            for port in &service.ports {
                // What the gateway cannot translate has no way through a Service.
                if !matches!(port.protocol, TCP | UDP) {
                    continue;
                }
                let internal = self.backends(backends, key, port, service.internal_is_local);
                let external = self.backends(backends, key, port, service.external_is_local);
                for (address, number, is_external) in self.places(service, port) {
                    // An external address must not take a machine's place.
                    if machines.contains(&address) || !taken.insert((tenant, address, port.protocol, number))
                    {
                        continue;
                    }
                    ports.push(ServicePort {
                        tenant,
                        address,
                        protocol: port.protocol,
                        port: number,
                        backends: Arc::clone(if is_external { &external } else { &internal }),
                        by_client: service.by_client,
                    });
                }
            }
        }
        ports
    }

    fn backends(
        &self,
        backends: &Backends<'_>,
        key: &ObjectKey,
        port: &view::ServicePort,
        is_local: bool,
    ) -> Arc<[Backend]> {
        backends.behind(key, port, is_local.then_some(self.node)).into()
    }

    /// Addresses and numbers at which a port is found, and whether that is from outside.
    fn places(&self, service: &Service, port: &view::ServicePort) -> Vec<(Ipv4Addr, u16, bool)> {
        let mut places = Vec::new();
        places.extend(service.cluster_ip.map(|address| (address, port.port, false)));
        let external = service.external_ips.iter().chain(&service.balancer.addresses);
        places.extend(external.map(|address| (*address, port.port, true)));
        let node_port = port.node_port.filter(|_| service.has_host_ports());
        places.extend(node_port.map(|number| (self.settings.gateway, number, true)));
        places
    }
}
