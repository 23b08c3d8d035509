//! Ports of the host that lead to Services: node ports, and ports of load balancers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use fairway_controller::ObjectKey;
use fairway_fabric::Destination;
use fairway_machines_frames::address::Cidr;
use fairway_machines_frames::packet::{TCP, UDP};

use super::{Drawing, Remark, World, named};
use crate::kinds::SERVICE;
use crate::view::{ServiceType, protocol_name};

/// A port of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) at: SocketAddr,
    /// TCP or UDP.
    pub(crate) protocol: u8,
    pub(crate) service: ObjectKey,
    pub(crate) to: Destination,
    /// Who may come; everybody if nobody is named.
    pub(crate) allowed: Option<Vec<Cidr>>,
}

impl Drawing<'_> {
    /// The ports of all Services here. Where two want the same, the older has it.
    pub(super) fn doors(
        &self,
        world: &World,
        is_here: &dyn Fn(&ObjectKey) -> bool,
        remarks: &mut Vec<Remark>,
    ) -> Vec<Door> {
        let mut services: Vec<_> = world
            .services
            .iter()
            .filter(|(key, service)| is_here(key) && service.has_host_ports() && !service.is_deleting)
            .collect();
        services.sort_by(|(one, a), (other, b)| (&a.created, one).cmp(&(&b.created, other)));
        let mut taken: HashMap<(u8, SocketAddr), &ObjectKey> = HashMap::new();
        let mut doors = Vec::new();
        for (key, service) in services {
            let workspace = key.workspace.as_str();
            for port in &service.ports {
                if !matches!(port.protocol, TCP | UDP) {
                    remarks.push(Remark::about(
                        &SERVICE,
                        key,
                        "PortNotForwarded",
                        format!(
                            "Port {} is {}, which Services do not carry; machines reach each other directly.",
                            port.port,
                            protocol_name(port.protocol)
                        ),
                    ));
                    continue;
                }
                let mut wanted: Vec<(SocketAddr, Destination, Option<Vec<Cidr>>)> = Vec::new();
                if let Some(number) = port.node_port {
                    let to = Destination::new(workspace, self.settings.gateway, number);
                    let places = self.settings.addresses.iter();
                    wanted
                        .extend(places.map(|address| (SocketAddr::new(*address, number), to.clone(), None)));
                }
                if service.kind == ServiceType::LoadBalancer {
                    for address in &service.balancer.addresses {
                        // Whoever owns a Service may write its status: it must not open any other address of the host.
                        if !self.pools.iter().any(|pool| pool.contains(*address)) {
                            remarks.push(Remark::about(
                                &SERVICE,
                                key,
                                "AddressNotInPool",
                                format!("{address} is no address that load balancers may have, so its ports stay closed."),
                            ));
                            continue;
                        }
                        let to = Destination::new(workspace, *address, port.port);
                        let at = SocketAddr::new(IpAddr::V4(*address), port.port);
                        wanted.push((at, to, service.balancer.allowed()));
                    }
                }
                for (at, to, allowed) in wanted {
                    if let Some(other) = taken.get(&(port.protocol, at)) {
                        remarks.push(Remark::about(
                            &SERVICE,
                            key,
                            "PortConflict",
                            format!(
                                "{at} leads to {}, which is older: choose another port or address.",
                                named("Service", other, key)
                            ),
                        ));
                        continue;
                    }
                    taken.insert((port.protocol, at), key);
                    doors.push(Door {
                        at,
                        protocol: port.protocol,
                        service: key.clone(),
                        to,
                        allowed,
                    });
                }
            }
        }
        doors.sort_by_key(|door| (door.at, door.protocol));
        doors
    }
}
