//! Services: an address and a port that stand for one of several backends.
//!
//! The choice depends on the client, the Service and the backends alone (highest random weight), so the same connection
//! finds the same backend again after the switch was restarted and has forgotten it, and a backend that comes or goes
//! moves only the connections that must move.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::topology::Tenant;
use crate::track::Tuple;

/// Where a connection to a Service may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backend {
    pub address: Ipv4Addr,
    pub port: u16,
}

/// One port of a Service at one of its addresses: ClusterIP, external and load balancer addresses, or the gateway with a
/// node port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    pub tenant: Tenant,
    pub address: Ipv4Addr,
    pub protocol: u8,
    pub port: u16,
    pub backends: Arc<[Backend]>,
    /// `sessionAffinity: ClientIP`: every connection of a client goes to the same backend.
    pub by_client: bool,
}

/// The Services of all tenants, for looking up.
#[derive(Debug, Default)]
pub struct Services {
    ports: HashMap<(Tenant, Ipv4Addr, u8, u16), ServicePort>,
    addresses: HashSet<(Tenant, Ipv4Addr)>,
    behind: HashSet<(Backend, u8)>,
}

/// What is found at an address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Backend(Backend),
    /// A Service's address, but nothing serves the port, or nothing is ready to.
    Nobody,
    /// No Service has this address.
    NoService,
}

impl Services {
    pub fn new(ports: impl IntoIterator<Item = ServicePort>) -> Self {
        let mut services = Self::default();
        for port in ports {
            services.addresses.insert((port.tenant, port.address));
            for backend in port.backends.iter() {
                services.behind.insert((*backend, port.protocol));
            }
            services
                .ports
                .insert((port.tenant, port.address, port.protocol, port.port), port);
        }
        services
    }

    /// The backend for a connection of a tenant's guest.
    pub fn find(&self, tenant: Tenant, connection: &Tuple) -> Found {
        let key = (tenant, connection.dst, connection.protocol, connection.dport);
        match self.ports.get(&key) {
            Some(service) => choose(service, connection).map_or(Found::Nobody, Found::Backend),
            None if self.addresses.contains(&(tenant, connection.dst)) => Found::Nobody,
            None => Found::NoService,
        }
    }

    /// Whether some Service leads to this port, so that a packet from it may be half of a translated connection.
    pub fn is_behind_one(&self, address: Ipv4Addr, protocol: u8, port: u16) -> bool {
        self.behind.contains(&(Backend { address, port }, protocol))
    }
}

fn choose(service: &ServicePort, connection: &Tuple) -> Option<Backend> {
    let client = u64::from(u32::from(connection.src)) << 16;
    let client = client
        | if service.by_client {
            0
        } else {
            u64::from(connection.sport)
        };
    let service_seed = u64::from(u32::from(service.address)) << 16 | u64::from(service.port);
    let weight = |backend: &Backend| {
        let end = u64::from(u32::from(backend.address)) << 16 | u64::from(backend.port);
        mixed(mixed(client ^ mixed(service_seed)) ^ end)
    };
    service.backends.iter().copied().max_by_key(weight)
}

/// A permutation of 64 bits that leaves no pattern (the finisher of SplitMix64).
const fn mixed(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::TCP;

    const VIP: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
    const TENANT: Tenant = Tenant(1);

    fn services(backends: u8, by_client: bool) -> Services {
        Services::new([ServicePort {
            tenant: TENANT,
            address: VIP,
            protocol: TCP,
            port: 80,
            backends: (0..backends)
                .map(|n| Backend {
                    address: Ipv4Addr::new(10, 88, 0, 10 + n),
                    port: 8080,
                })
                .collect(),
            by_client,
        }])
    }

    fn connection(client: u8, sport: u16) -> Tuple {
        Tuple {
            protocol: TCP,
            src: Ipv4Addr::new(10, 88, 1, client),
            dst: VIP,
            sport,
            dport: 80,
        }
    }

    #[test]
    fn a_service_belongs_to_its_tenant_and_port() {
        let services = services(1, false);
        let here = connection(1, 1);
        assert!(matches!(services.find(TENANT, &here), Found::Backend(_)));
        assert_eq!(services.find(Tenant(2), &here), Found::NoService);
        assert_eq!(services.find(TENANT, &Tuple { dport: 81, ..here }), Found::Nobody);
        assert_eq!(
            services.find(TENANT, &Tuple { protocol: 17, ..here }),
            Found::Nobody
        );
        assert_eq!(self::services(0, false).find(TENANT, &here), Found::Nobody);
        assert!(services.is_behind_one(Ipv4Addr::new(10, 88, 0, 10), TCP, 8080));
        assert!(!services.is_behind_one(Ipv4Addr::new(10, 88, 0, 10), TCP, 80));
    }

    #[test]
    fn connections_spread_and_stay() {
        let (before, after) = (services(4, false), services(3, false));
        let mut hits = [0; 4];
        for sport in 1000..5000 {
            let connection = connection(1, sport);
            let Found::Backend(backend) = before.find(TENANT, &connection) else {
                panic!("a backend is ready");
            };
            let number = backend.address.octets()[3] - 10;
            hits[usize::from(number)] += 1;
            if number < 3 {
                assert_eq!(
                    after.find(TENANT, &connection),
                    Found::Backend(backend),
                    "only the lost backend's connections move"
                );
            }
        }
        assert!(hits.iter().all(|&n| (800..1200).contains(&n)), "{hits:?}");
    }

    #[test]
    fn affinity_goes_by_client() {
        let services = services(4, true);
        for client in 1..20 {
            let first = services.find(TENANT, &connection(client, 1));
            assert!((2..50).all(|sport| services.find(TENANT, &connection(client, sport)) == first));
        }
    }
}
