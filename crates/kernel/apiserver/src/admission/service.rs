//! Cluster IPs and node ports: taken in the same transaction as the Service, so that nobody gets one twice.
//!
//! A reservation is a key that exists only once (`create if absent`), which is safe with several replicas. Addresses
//! are unique across workspaces. The plan (what is needed) is made by the kind; here it is only carried out.

use std::net::Ipv4Addr;

use bytes::Bytes;
use fairway_kernel_kinds::service::{AllocationPlan, plan_allocation, plan_release};
use fairway_kernel_schema::field::{FieldError, Path};
use fairway_kernel_store::{KeyRange, Range};
use serde_json::Value;

use crate::rest::call::{Call, meta};
use crate::status::ApiError;
use crate::storage::Reservations;

/// Where addresses and ports come from.
#[derive(Clone, Copy, Debug)]
pub struct ServiceNetwork {
    /// First address of the range.
    pub base: Ipv4Addr,
    /// Length of its prefix.
    pub bits: u32,
    /// First node port.
    pub first_port: u16,
    /// Number of node ports.
    pub ports: u16,
}

impl Default for ServiceNetwork {
    fn default() -> Self {
        Self {
            base: Ipv4Addr::new(10, 96, 0, 0),
            bits: 12,
            first_port: 30_000,
            ports: 2_768,
        }
    }
}

impl ServiceNetwork {
    fn size(&self) -> u32 {
        1 << (32 - self.bits)
    }

    /// The address of the `kubernetes` Service: the first one.
    pub fn api_address(&self) -> Ipv4Addr {
        self.nth(1)
    }

    fn nth(&self, index: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.base) + index)
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(u32::from(self.base));
        // Neither the network's own address nor its broadcast address.
        offset > 0 && offset < self.size() - 1
    }
}

/// Times that a free address is guessed before the store is asked for one.
const GUESSES: usize = 8;

/// What a write needs; carried out by [`Reserve::assign`].
#[derive(Clone, Debug, Default)]
pub struct Reserve {
    plan: AllocationPlan,
    dry_run: bool,
}

/// Completes a Service and decides what it needs.
pub fn reserve(
    call: &Call<'_>,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Reserve, ApiError> {
    refuse_impossible_ports(call, object)?;
    let plan = plan_allocation(object, old, &["IPv4"])
        .map_err(|errors| ApiError::invalid(call.about_kind(meta(object, "name")), &errors))?;
    Ok(Reserve { plan, dry_run })
}

/// A number that is no port at all must not be taken for the wish to be given one.
fn refuse_impossible_ports(call: &Call<'_>, object: &Value) -> Result<(), ApiError> {
    for (index, port) in object["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let Some(wanted) = port["nodePort"].as_i64().filter(|p| u16::try_from(*p).is_err()) else {
            continue;
        };
        let path = Path::new("spec").child("ports").index(index).child("nodePort");
        let why = out_of_range(&call.kernel.service_network);
        return Err(ApiError::invalid(
            call.about_kind(meta(object, "name")),
            &[FieldError::invalid(&path, wanted, why)],
        ));
    }
    Ok(())
}

fn out_of_range(network: &ServiceNetwork) -> String {
    let last = network.first_port + (network.ports - 1);
    format!(
        "provided port is not in the valid range. The range of valid ports is {}-{last}",
        network.first_port
    )
}

/// What a deleted Service gives back.
pub fn release(object: &Value) -> Reservations {
    let plan = plan_release(object);
    Reservations {
        release: released(&plan),
        ..Reservations::default()
    }
}

fn address_key(address: &str) -> Bytes {
    format!("!address/clusterip/{address}").into()
}

fn port_key(port: u16) -> Bytes {
    format!("!port/nodeport/{port}").into()
}

fn released(plan: &AllocationPlan) -> Vec<Bytes> {
    let addresses = plan.released_ips.iter().map(|ip| address_key(ip));
    addresses
        .chain(plan.released_ports.iter().map(|port| port_key(*port)))
        .collect()
}

impl Reserve {
    /// Chooses addresses and ports that are free, and writes them into the object. The keys must be taken in the
    /// transaction that stores it; if somebody else took one meanwhile, call this again.
    pub async fn assign(&self, call: &Call<'_>, object: &mut Value) -> Result<Reservations, ApiError> {
        let mut keys = Reservations {
            release: released(&self.plan),
            ..Reservations::default()
        };
        if self.plan.is_empty() {
            return Ok(keys);
        }
        let owner = Bytes::from(format!(
            "{}/{}/{}",
            call.cluster,
            call.namespace(),
            meta(object, "name")
        ));
        for need in &self.plan.cluster_ips {
            let address = match &need.requested {
                Some(address) => self.requested_address(call, object, address).await?,
                None => self.free_address(call).await?,
            };
            AllocationPlan::assign_ip(object, need.index, &address);
            keys.take.push((address_key(&address), owner.clone()));
        }
        let mut chosen: Vec<(usize, u16)> = Vec::new();
        for need in &self.plan.node_ports {
            let shared = need
                .same_as
                .and_then(|at| chosen.iter().find(|(i, _)| *i == at))
                .map(|(_, p)| *p);
            let port = match (shared, need.requested) {
                (Some(port), _) => port,
                (None, Some(port)) => match self.refusal_of_port(call, port, &keys).await? {
                    None => port,
                    Some(why) => {
                        let path = Path::new("spec")
                            .child("ports")
                            .index(need.index)
                            .child("nodePort");
                        return Err(ApiError::invalid(
                            call.about_kind(meta(object, "name")),
                            &[FieldError::invalid(&path, port, why)],
                        ));
                    }
                },
                (None, None) => self.free_port(call, &keys).await?,
            };
            if shared.is_none() {
                keys.take.push((port_key(port), owner.clone()));
            }
            chosen.push((need.index, port));
            AllocationPlan::assign_port(object, need.index, port);
        }
        if let Some(wanted) = self.plan.health_check_port {
            let port = match wanted {
                Some(port) => match self.refusal_of_port(call, port, &keys).await? {
                    None => port,
                    // Upstream names no field here.
                    Some(why) => {
                        return Err(ApiError::unforeseen(format!(
                            "failed to allocate requested HealthCheck NodePort {port}: {why}"
                        )));
                    }
                },
                None => self.free_port(call, &keys).await?,
            };
            keys.take.push((port_key(port), owner));
            AllocationPlan::assign_health_check_port(object, port);
        }
        if self.dry_run {
            return Ok(Reservations::default());
        }
        Ok(keys)
    }

    async fn requested_address(
        &self,
        call: &Call<'_>,
        object: &Value,
        address: &str,
    ) -> Result<String, ApiError> {
        let network = &call.kernel.service_network;
        let path = Path::new("spec").child("clusterIPs");
        let shown = object["spec"]["clusterIPs"].clone();
        let invalid = |why: String| {
            ApiError::invalid(
                call.about_kind(meta(object, "name")),
                &[FieldError::invalid(&path, shown, why)],
            )
        };
        match address.parse::<Ipv4Addr>() {
            Ok(parsed) if network.contains(parsed) => {}
            _ => {
                let why = format!(
                    "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The \
                     range of valid IPs is {}/{}",
                    network.base, network.bits
                );
                return Err(invalid(why));
            }
        }
        // A dry run takes nothing, so upstream does not ask who has it.
        if !self.dry_run && is_taken(call, address_key(address)).await? {
            return Err(invalid(format!(
                "failed to allocate IP {address}: provided IP is already allocated"
            )));
        }
        Ok(address.to_owned())
    }

    /// Why a port that was asked for cannot be had.
    async fn refusal_of_port(
        &self,
        call: &Call<'_>,
        port: u16,
        keys: &Reservations,
    ) -> Result<Option<String>, ApiError> {
        const TAKEN: &str = "provided port is already allocated";
        let key = port_key(port);
        if keys.take.iter().any(|(taken, _)| *taken == key) {
            return Ok(Some(TAKEN.to_owned()));
        }
        // A dry run takes nothing: upstream asks neither for the range nor who has it.
        if self.dry_run {
            return Ok(None);
        }
        let network = &call.kernel.service_network;
        if port < network.first_port || port - network.first_port >= network.ports {
            return Ok(Some(out_of_range(network)));
        }
        let taken = is_taken(call, key).await?;
        Ok(taken.then(|| TAKEN.to_owned()))
    }

    async fn free_address(&self, call: &Call<'_>) -> Result<String, ApiError> {
        let network = &call.kernel.service_network;
        let last = network.size() - 1;
        let random = || 1 + u32::try_from(call.kernel.random.below(u64::from(last - 1))).unwrap_or(0);
        for _ in 0..GUESSES {
            let candidate = network.nth(random()).to_string();
            if !is_taken(call, address_key(&candidate)).await? {
                return Ok(candidate);
            }
        }
        for index in 1..last {
            let candidate = network.nth(index).to_string();
            if !is_taken(call, address_key(&candidate)).await? {
                return Ok(candidate);
            }
        }
        Err(ApiError::internal(
            "failed to allocate a serviceIP: range is full",
        ))
    }

    async fn free_port(&self, call: &Call<'_>, so_far: &Reservations) -> Result<u16, ApiError> {
        let network = &call.kernel.service_network;
        let start = u16::try_from(call.kernel.random.below(u64::from(network.ports))).unwrap_or(0);
        for offset in 0..network.ports {
            let port = network.first_port + (start + offset) % network.ports;
            let key = port_key(port);
            if so_far.take.iter().all(|(taken, _)| *taken != key) && !is_taken(call, key).await? {
                return Ok(port);
            }
        }
        Err(ApiError::internal("failed to allocate a nodePort: range is full"))
    }
}

async fn is_taken(call: &Call<'_>, key: Bytes) -> Result<bool, ApiError> {
    let range = Range {
        keys: KeyRange::single(&key),
        revision: None,
        limit: 1,
        keys_only: true,
        count_only: true,
    };
    Ok(call.kernel.storage.store.range(range).await?.count > 0)
}
