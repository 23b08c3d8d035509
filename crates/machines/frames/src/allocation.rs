//! Addresses for new machines: which to try, in which order.
//!
//! An address is a machine's when a key for it could be created, which only one of several replicas can. What to try
//! follows from the machine's own identity, so that two machines seldom want the same, and a machine that lost its
//! record tries first what it had.

use std::net::Ipv4Addr;

use crate::address::{Cidr, Mac};

/// Addresses of a network for a machine, best first: each once, without the network's own, its broadcast address and the
/// gateway's. Where it begins follows from `identity`.
pub fn addresses(network: Cidr, gateway: Ipv4Addr, identity: &str) -> impl Iterator<Item = Ipv4Addr> {
    let first = u32::from(network.first());
    let size = u64::from(u32::from(network.broadcast()) - first) + 1;
    let start = hash(identity, 0) % size;
    (0..size)
        .map(move |step| (start + step) % size)
        .filter(move |&offset| size <= 2 || (offset != 0 && offset != size - 1))
        .filter_map(move |offset| Some(Ipv4Addr::from(first + u32::try_from(offset).ok()?)))
        .filter(move |&address| address != gateway)
}

/// The MAC address to try for a card at the given attempt: locally administered, for a single card.
pub fn mac(identity: &str, attempt: u32) -> Mac {
    let [.., a, b, c, d, e] = hash(identity, attempt).to_be_bytes();
    Mac([0x02, a, b, c, d, e])
}

/// FNV-1a with a finisher. It must never change: addresses that machines have follow from it.
fn hash(identity: &str, attempt: u32) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in identity.bytes().chain(attempt.to_be_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_address_is_tried_once() {
        let gateway = Ipv4Addr::new(10, 88, 0, 1);
        let found: Vec<Ipv4Addr> = addresses("10.88.0.0/28".parse().unwrap(), gateway, "a").collect();
        let expected: HashSet<Ipv4Addr> = (2..15).map(|last| Ipv4Addr::new(10, 88, 0, last)).collect();
        assert_eq!(found.len(), 13);
        assert_eq!(found.into_iter().collect::<HashSet<_>>(), expected);
    }

    #[test]
    fn machines_begin_at_different_places_and_always_at_the_same() {
        let network: Cidr = "10.88.0.0/16".parse().unwrap();
        let first = |identity: &str| {
            addresses(network, Ipv4Addr::new(10, 88, 0, 1), identity)
                .next()
                .unwrap()
        };
        let starts: HashSet<Ipv4Addr> = (0..1000)
            .map(|n| first(&format!("root/default/vm-{n}")))
            .collect();
        assert!(starts.len() > 980, "{}", starts.len());
        assert_eq!(first("root/default/vm-0"), first("root/default/vm-0"));
        let macs: HashSet<Mac> = (0..1000).map(|n| mac(&format!("vm-{n}"), 0)).collect();
        assert_eq!(macs.len(), 1000);
        assert!(macs.iter().all(|mac| !mac.is_group() && mac.0[0] & 2 == 2));
        assert_ne!(mac("vm", 0), mac("vm", 1));
    }

    #[test]
    fn what_was_given_out_once_is_given_out_again_by_later_versions() {
        let network: Cidr = "10.88.0.0/16".parse().unwrap();
        let first = addresses(network, Ipv4Addr::new(10, 88, 0, 1), "root/default/web/0").next();
        assert_eq!(first, Some(FIRST), "machines would lose their addresses");
        assert_eq!(mac("root/default/web/0", 0), MAC);
    }

    const FIRST: Ipv4Addr = Ipv4Addr::new(10, 88, 201, 210);
    const MAC: Mac = Mac([0x02, 0x6a, 0xa8, 0x82, 0xc9, 0xd2]);
}
