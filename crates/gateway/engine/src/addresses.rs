//! Addresses of Gateways out of a pool, each its own.
//!
//! An address is reserved by an IPAddress object that is named by it, as machines' addresses are. Names are unique in a
//! workspace, so all of them lie in one: the system's, or the only one that there is. So no two Gateways of whatever
//! workspaces have the same address, with however many replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr};

use fairway_api::gateway::GATEWAY;
use fairway_controller::{Clients, Failure, Reach, Requests, WorkspaceId};
use fairway_gateway_routes::observed::Name;
use fairway_gateway_routes::settings::GatewayName;
use serde_json::{Value, json};
use tracing::warn;

use crate::kinds::{IP_ADDRESS, api_version, collection};

/// The workspace whose objects are the system's own.
const SYSTEM: &str = "system:fairway";
/// Says who looks after an IPAddress; upstream's allocator leaves those of others alone.
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const MANAGER: &str = "gateways.fairway.dev";
const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
/// The Gateway's workspace.
const WORKSPACE: &str = "fairway.dev/workspace";

/// Addresses, and whose they are.
pub(crate) struct Pool {
    requests: Requests,
    range: (Ipv4Addr, u8),
    /// As far as this process knows; read at the first use.
    held: Option<BTreeMap<GatewayName, Ipv4Addr>>,
}

impl Pool {
    /// Must be called within a runtime.
    pub(crate) fn new(clients: &Clients, range: (Ipv4Addr, u8)) -> Self {
        let home = match clients.reach() {
            Reach::Every => WorkspaceId::parse(SYSTEM).unwrap_or_else(|_| WorkspaceId::root()),
            Reach::One(only) => only.clone(),
        };
        Self {
            requests: Requests::new(clients.of(&home)),
            range,
            held: None,
        }
    }

    /// Gives every Gateway its address, and takes back those of Gateways that are gone. What cannot be done now is done the next
    /// time; a Gateway without an address says so.
    pub(crate) async fn assign(&mut self, gateways: BTreeSet<GatewayName>) -> BTreeMap<GatewayName, IpAddr> {
        if let Err(failure) = self.settle(&gateways).await {
            warn!(
                failure = failure.sentence(),
                "addresses of Gateways cannot be given"
            );
        }
        let held = self.held.iter().flatten();
        held.filter(|(gateway, _)| gateways.contains(gateway))
            .map(|(gateway, address)| (gateway.clone(), IpAddr::V4(*address)))
            .collect()
    }

    async fn settle(&mut self, gateways: &BTreeSet<GatewayName>) -> Result<(), Failure> {
        let mut held = match self.held.take() {
            Some(held) => held,
            None => self.read().await?,
        };
        let outcome = self.change(&mut held, gateways).await;
        self.held = Some(held);
        outcome
    }

    async fn change(
        &self,
        held: &mut BTreeMap<GatewayName, Ipv4Addr>,
        gateways: &BTreeSet<GatewayName>,
    ) -> Result<(), Failure> {
        let gone: Vec<GatewayName> = held.keys().filter(|it| !gateways.contains(it)).cloned().collect();
        for gateway in gone {
            if let Some(address) = held.get(&gateway) {
                self.requests.delete(&self.path(*address)).await?;
                held.remove(&gateway);
            }
        }
        for gateway in gateways {
            if held.contains_key(gateway) {
                continue;
            }
            let taken: BTreeSet<Ipv4Addr> = held.values().copied().collect();
            let mut free = candidates(self.range, gateway).filter(|it| !taken.contains(it));
            loop {
                let Some(address) = free.next() else {
                    warn!(
                        gateway = %gateway.name, workspace = gateway.workspace,
                        "all addresses of the pool are taken; start the server with a larger --gateway-pool"
                    );
                    break;
                };
                let all = collection(&IP_ADDRESS, "");
                let created = self.requests.create(&all, &object(address, gateway)).await?;
                if created || self.is_of(address, gateway).await? {
                    held.insert(gateway.clone(), address);
                    break;
                }
            }
        }
        Ok(())
    }

    fn path(&self, address: Ipv4Addr) -> String {
        format!("{}/{address}", collection(&IP_ADDRESS, ""))
    }

    /// Another replica may have been quicker, for the same Gateway.
    async fn is_of(&self, address: Ipv4Addr, gateway: &GatewayName) -> Result<bool, Failure> {
        let found = self.requests.get(&self.path(address)).await?;
        Ok(found.and_then(|object| owner(&object)).as_ref() == Some(gateway))
    }

    async fn read(&self) -> Result<BTreeMap<GatewayName, Ipv4Addr>, Failure> {
        let selector = format!("{MANAGED_BY}={MANAGER}");
        let all = self
            .requests
            .list_selected(&collection(&IP_ADDRESS, ""), &selector)
            .await?;
        let held = all.iter().filter_map(|object| {
            let address = object.pointer("/metadata/name")?.as_str()?.parse().ok()?;
            Some((owner(object)?, address))
        });
        Ok(held.collect())
    }
}

fn owner(object: &Value) -> Option<GatewayName> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let workspace = object
        .pointer("/metadata/annotations")?
        .get(WORKSPACE)?
        .as_str()?;
    Some(GatewayName {
        workspace: workspace.to_owned(),
        name: Name::new(text("/spec/parentRef/namespace")?, text("/spec/parentRef/name")?),
    })
}

fn object(address: Ipv4Addr, gateway: &GatewayName) -> Value {
    json!({
        "apiVersion": api_version(&IP_ADDRESS), "kind": IP_ADDRESS.kind,
        "metadata": {
            "name": address.to_string(),
            "labels": {MANAGED_BY: MANAGER, FAMILY: "IPv4"},
            "annotations": {WORKSPACE: gateway.workspace},
        },
        "spec": {"parentRef": {
            "group": GATEWAY.group, "resource": GATEWAY.plural,
            "namespace": gateway.name.namespace, "name": gateway.name.name,
        }},
    })
}

/// The addresses of a network that hosts may have, from one on that the Gateway's name leads to: replicas then try the same
/// first, and a Gateway that is made again mostly has the address that it had.
fn candidates((base, bits): (Ipv4Addr, u8), gateway: &GatewayName) -> impl Iterator<Item = Ipv4Addr> {
    let size = 1_u64 << (32 - u32::from(bits.min(32)));
    let base = u64::from(u32::from(base)) & !(size - 1);
    // Network and broadcast are left out where there are others.
    let (first, count) = if size > 2 {
        (base + 1, size - 2)
    } else {
        (base, size)
    };
    let mut hasher = DefaultHasher::new();
    (&gateway.workspace, &gateway.name.namespace, &gateway.name.name).hash(&mut hasher);
    let start = hasher.finish() % count;
    (0..count).filter_map(move |step| {
        let address = first + (start + step) % count;
        u32::try_from(address).ok().map(Ipv4Addr::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_network_is_a_candidate_once() {
        let gateway = GatewayName {
            workspace: "root".to_owned(),
            name: Name::new("n", "g"),
        };
        for (bits, count) in [(24, 254), (30, 2), (31, 2), (32, 1)] {
            let all: BTreeSet<Ipv4Addr> = candidates((Ipv4Addr::new(10, 9, 8, 0), bits), &gateway).collect();
            assert_eq!(all.len(), count, "/{bits}");
            let listed = candidates((Ipv4Addr::new(10, 9, 8, 0), bits), &gateway).count();
            assert_eq!(listed, count, "/{bits}");
        }
        let object = object(Ipv4Addr::new(10, 9, 8, 7), &gateway);
        assert_eq!(owner(&object), Some(gateway));
    }
}
