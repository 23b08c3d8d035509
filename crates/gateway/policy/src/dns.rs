//! DNSPolicies: which names the platform's DNS server answers, and with which addresses.

use std::net::IpAddr;

use crate::effective::{Refusal, Standing};
use crate::object::Policy;
use crate::tls::{GatewayView, conflict, gateway_of};

/// A name and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// As the listener has it, `*.example.com` among others.
    pub name: String,
    /// Sorted. A host name stands for an alias.
    pub addresses: Vec<String>,
}

/// What was decided of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub records: Vec<Record>,
    /// What the policy asks for and does not get.
    pub notes: Vec<String>,
    /// Names that are not answered, and why.
    pub denied: Vec<String>,
    pub standing: Standing,
}

/// Decides about one policy among all of its kind in a workspace. Its conditions are [`crate::tls::conditions`].
pub fn decide(policy: &Policy, all: &[Policy], gateways: &[GatewayView]) -> Decided {
    let refuse = |refusal| Decided {
        records: Vec::new(),
        notes: Vec::new(),
        denied: Vec::new(),
        standing: Standing::Refused(refusal),
    };
    let Some(gateway) = gateway_of(policy, gateways) else {
        return refuse(Refusal::TargetNotFound {
            name: policy.target.name.clone(),
        });
    };
    if let Some(by) = conflict(policy, all) {
        return refuse(Refusal::Conflicted { by });
    }
    let excluded: Vec<String> = policy.spec["excludeAddresses"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one.as_str().map(str::to_owned))
        .collect();
    let mut addresses: Vec<String> = gateway
        .addresses
        .iter()
        .filter(|address| !excluded.iter().any(|pattern| is_excluded(address, pattern)))
        .cloned()
        .collect();
    addresses.sort();
    addresses.dedup();
    let section = policy.target.section.as_ref();
    let mut records: Vec<Record> = Vec::new();
    let targeted = (gateway.listeners.iter())
        .filter(|listener| section.is_none_or(|section| *section == listener.name))
        .filter_map(|listener| Some((listener, listener.hostname.as_deref()?)))
        .filter(|(_, name)| !name.is_empty());
    let targeted: Vec<_> = targeted.collect();
    // A name that leads nowhere is not published, as upstream has it.
    for (_, name) in targeted
        .iter()
        .filter(|(listener, _)| listener.attached_routes > 0)
    {
        if !records.iter().any(|record| record.name == *name) {
            records.push(Record {
                name: (*name).to_owned(),
                addresses: addresses.clone(),
            });
        }
    }
    let mut denied: Vec<String> = Vec::new();
    for (listener, name) in &targeted {
        if !records.iter().any(|record| record.name == *name) {
            denied.push(format!(
                "{name}: no route is attached to listener {}",
                listener.name
            ));
        }
    }
    if targeted.is_empty() {
        denied.push("no listener has a host name".to_owned());
    }
    let mut notes = Vec::new();
    for (field, what) in [
        (
            "healthCheck",
            "healthCheck: addresses are published whether they answer or not",
        ),
        (
            "loadBalancing",
            "loadBalancing: weights and places do not change what is answered",
        ),
        ("delegate", "delegate"),
    ] {
        if policy
            .spec
            .get(field)
            .is_some_and(|value| !value.is_null() && *value != false)
        {
            notes.push(format!("{what} is not supported"));
        }
    }
    if policy.spec["providerRefs"]
        .as_array()
        .is_some_and(|refs| !refs.is_empty())
    {
        notes.push("providerRefs are not asked: the platform's own DNS server answers".to_owned());
    }
    Decided {
        records,
        notes,
        denied,
        standing: Standing::Attached {
            affects: Vec::new(),
            overridden_by: Vec::new(),
        },
    }
}

/// An address is left out by itself, or by its network.
fn is_excluded(address: &str, pattern: &str) -> bool {
    if address == pattern {
        return true;
    }
    let Some((network, length)) = pattern.split_once('/') else {
        return false;
    };
    let (Ok(address), Ok(network), Ok(length)) = (
        address.parse::<IpAddr>(),
        network.parse::<IpAddr>(),
        length.parse::<u32>(),
    ) else {
        return false;
    };
    let (one, other, bits) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits()), u128::from(other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let Some(rest) = u32::checked_sub(bits, length) else {
        return false;
    };
    one.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests;
