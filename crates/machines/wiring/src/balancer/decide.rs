//! Which address each Service of type LoadBalancer has.
//!
//! Whoever has one keeps it while it is good. Of two that collide the older stays. The rest get the first address at which all of their
//! ports are free.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fairway_controller::{ObjectKey, WorkspaceId};

use crate::pools::Pool;
use crate::view::Service;

/// What became of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It has this address.
    Has(Ipv4Addr),
    /// It can have none, and why.
    None(String),
}

/// Who has something at an address.
#[derive(Default)]
struct Occupied<'s> {
    ports: HashMap<(Ipv4Addr, u8, u16), ()>,
    /// The words by which Services share an address. Each means something within its workspace only.
    words: BTreeMap<Ipv4Addr, BTreeSet<(&'s WorkspaceId, &'s str)>>,
}

impl<'s> Occupied<'s> {
    fn take(&mut self, key: &'s ObjectKey, service: &'s Service, address: Ipv4Addr) {
        for port in &service.ports {
            self.ports.insert((address, port.protocol, port.port), ());
        }
        self.words.entry(address).or_default().insert(word(key, service));
    }

    fn is_free(&self, key: &ObjectKey, service: &Service, pool: &Pool, address: Ipv4Addr) -> bool {
        let clashes =
            (service.ports.iter()).any(|port| self.ports.contains_key(&(address, port.protocol, port.port)));
        if clashes {
            return false;
        }
        if pool.is_shared {
            return true;
        }
        let own = word(key, service);
        let others = self.words.get(&address);
        others.is_none_or(|others| others.iter().all(|other| !own.1.is_empty() && *other == own))
    }
}

fn word<'s>(key: &'s ObjectKey, service: &'s Service) -> (&'s WorkspaceId, &'s str) {
    (&key.workspace, service.balancer.shares.as_str())
}

/// Whether a Service's address is ours to give.
pub(super) fn is_ours(service: &Service) -> bool {
    service.kind == crate::view::ServiceType::LoadBalancer
        && service.balancer.class.is_none()
        && !service.is_deleting
}

/// Decides about all Services at once.
pub(super) fn decide<'s>(
    services: &'s [(ObjectKey, &'s Service)],
    pools: &[Pool],
    listeners: &[SocketAddr],
) -> BTreeMap<ObjectKey, Decision> {
    let mut occupied = Occupied::default();
    for listener in listeners {
        if let IpAddr::V4(address) = listener.ip() {
            let tcp = fairway_machines_frames::packet::TCP;
            occupied.ports.insert((address, tcp, listener.port()), ());
        }
    }
    // A program that listens everywhere is in the way everywhere.
    let everywhere: BTreeSet<u16> = (listeners.iter())
        .filter(|listener| listener.ip().is_unspecified())
        .map(SocketAddr::port)
        .collect();
    let mut ours: Vec<&(ObjectKey, &Service)> =
        services.iter().filter(|(_, service)| is_ours(service)).collect();
    ours.sort_by(|(one, a), (other, b)| (&a.created, one).cmp(&(&b.created, other)));
    let mut decided = BTreeMap::new();
    for (key, service) in &ours {
        let has = service.balancer.addresses.first().copied();
        let Some(address) = has.filter(|address| is_wanted(service, *address)) else {
            continue;
        };
        let is_good = (pools.iter()).any(|pool| {
            may_use(service, pool) && pool.contains(address) && occupied.is_free(key, service, pool, address)
        });
        if is_good && !is_blocked(service, &everywhere) {
            occupied.take(key, service, address);
            decided.insert(key.clone(), Decision::Has(address));
        }
    }
    for (key, service) in &ours {
        if decided.contains_key(key) {
            continue;
        }
        let found = pools
            .iter()
            .filter(|pool| may_use(service, pool))
            .find_map(|pool| {
                pool.addresses().find(|address| {
                    is_wanted(service, *address) && occupied.is_free(key, service, pool, *address)
                })
            })
            .filter(|_| !is_blocked(service, &everywhere));
        let decision = match found {
            Some(address) => {
                occupied.take(key, service, address);
                Decision::Has(address)
            }
            None => Decision::None(refusal(key, service, pools)),
        };
        decided.insert(key.clone(), decision);
    }
    decided
}

fn is_blocked(service: &Service, everywhere: &BTreeSet<u16>) -> bool {
    service.ports.iter().any(|port| everywhere.contains(&port.port))
}

/// Whether an address is one that the Service would take.
fn is_wanted(service: &Service, address: Ipv4Addr) -> bool {
    let wanted = &service.balancer.wanted;
    // A list is for both families; the other one is not served.
    wanted.is_empty() || wanted.split(',').any(|one| one.trim().parse() == Ok(address))
}

fn may_use(service: &Service, pool: &Pool) -> bool {
    let balancer = &service.balancer;
    if balancer.pool.is_empty() {
        pool.is_automatic || !balancer.wanted.is_empty()
    } else {
        balancer.pool == pool.name
    }
}

fn refusal(key: &ObjectKey, service: &Service, pools: &[Pool]) -> String {
    let balancer = &service.balancer;
    let named = format!("{}/{}", key.namespace, key.name);
    let why = if !balancer.pool.is_empty() && !pools.iter().any(|pool| pool.name == balancer.pool) {
        format!("unknown pool {:?}", balancer.pool)
    } else if balancer.wanted.is_empty() {
        "no available IPs: other Services, or Fairway itself, have these ports at every address".to_owned()
    } else {
        format!(
            "{:?} is not in a pool, or other Services have these ports there",
            balancer.wanted
        )
    };
    format!("Failed to allocate IP for {named:?}: {why}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::settings::Settings;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(&WorkspaceId::root(), "shop", name)
    }

    fn service(created: &str, ports: &[u16], more: &Value) -> Service {
        let ports: Vec<Value> = ports.iter().map(|port| json!({"port": port})).collect();
        let mut object = json!({
            "metadata": {"creationTimestamp": created, "annotations": more["annotations"]},
            "spec": {"type": "LoadBalancer", "ports": ports, "loadBalancerIP": more["ip"], "loadBalancerClass": more["class"]},
        });
        if let Some(has) = more["has"].as_str() {
            object["status"] = json!({"loadBalancer": {"ingress": [{"ip": has}]}});
        }
        Service::read(&object)
    }

    fn pool(name: &str, first: &str, last: &str, is_shared: bool) -> Pool {
        Pool {
            name: name.into(),
            ranges: vec![(first.parse().unwrap(), last.parse().unwrap())],
            is_automatic: name != "special",
            is_shared,
            avoids_buggy: false,
        }
    }

    /// Addresses by name; a refusal begins with an exclamation mark.
    fn decided(services: &[(&str, Service)], pools: &[Pool], listeners: &[&str]) -> Vec<String> {
        let services: Vec<(ObjectKey, &Service)> = services
            .iter()
            .map(|(name, service)| (key(name), service))
            .collect();
        let listeners: Vec<SocketAddr> = listeners.iter().map(|text| text.parse().unwrap()).collect();
        decide(&services, pools, &listeners)
            .into_iter()
            .map(|(key, decision)| match decision {
                Decision::Has(address) => format!("{} {address}", key.name),
                Decision::None(why) => format!("{} !{why}", key.name),
            })
            .collect()
    }

    fn local() -> Pool {
        let settings = Settings {
            balancers: vec![("127.0.0.1".parse().unwrap(), "127.0.0.2".parse().unwrap())],
            ..Settings::default()
        };
        crate::pools::Pools::new(&settings).all()[0].clone()
    }

    #[test]
    fn ports_that_differ_share_an_address() {
        let none = json!({});
        let found = decided(
            &[
                ("a", service("2026-01-01", &[80, 443], &none)),
                ("b", service("2026-01-02", &[8080], &none)),
                ("c", service("2026-01-03", &[443], &none)),
                ("d", service("2026-01-04", &[6443], &none)),
                ("e", service("2026-01-05", &[443], &none)),
                ("f", service("2026-01-06", &[9000], &none)),
                ("g", service("2026-01-07", &[80], &json!({"class": "other"}))),
            ],
            &[local()],
            &["127.0.0.1:6443", "0.0.0.0:9000"],
        );
        let full = "no available IPs: other Services, or Fairway itself, have these ports at every address";
        assert_eq!(
            found,
            [
                "a 127.0.0.1".to_owned(),
                "b 127.0.0.1".to_owned(),
                "c 127.0.0.2".to_owned(),
                "d 127.0.0.2".to_owned(),
                format!("e !Failed to allocate IP for \"shop/e\": {full}"),
                format!("f !Failed to allocate IP for \"shop/f\": {full}"),
            ]
        );
    }

    #[test]
    fn whoever_has_an_address_keeps_it() {
        let has = |address: &str| json!({ "has": address });
        let found = decided(
            &[
                ("a", service("2026-01-01", &[80], &json!({}))),
                ("b", service("2026-01-02", &[80], &has("127.0.0.1"))),
                ("c", service("2026-01-03", &[80], &has("127.0.0.1"))),
                ("d", service("2026-01-04", &[81], &has("192.0.2.1"))),
            ],
            &[local()],
            &[],
        );
        assert_eq!(
            found[..2],
            ["a 127.0.0.2".to_owned(), "b 127.0.0.1".to_owned()],
            "an older one without an address does not take it away"
        );
        assert!(
            found[2].starts_with("c !"),
            "the younger of two that collide moves, if it can: {}",
            found[2]
        );
        assert_eq!(found[3], "d 127.0.0.1", "an address of no pool is not kept");
    }

    #[test]
    fn pools_are_shared_by_those_who_say_so() {
        let annotated = |name: &str, value: &str| json!({"annotations": {name: value}});
        let pools = [
            pool("main", "192.0.2.1", "192.0.2.2", false),
            pool("special", "198.51.100.1", "198.51.100.1", false),
        ];
        let found = decided(
            &[
                (
                    "a",
                    service("2026-01-01", &[80], &annotated("metallb.io/allow-shared-ip", "x")),
                ),
                (
                    "b",
                    service(
                        "2026-01-02",
                        &[81],
                        &annotated("metallb.universe.tf/allow-shared-ip", "x"),
                    ),
                ),
                ("c", service("2026-01-03", &[82], &json!({}))),
                ("d", service("2026-01-04", &[83], &json!({}))),
                (
                    "e",
                    service(
                        "2026-01-05",
                        &[84],
                        &annotated("metallb.io/address-pool", "special"),
                    ),
                ),
                (
                    "f",
                    service(
                        "2026-01-06",
                        &[85],
                        &annotated("metallb.io/address-pool", "nowhere"),
                    ),
                ),
                ("g", service("2026-01-07", &[86], &json!({"ip": "203.0.113.9"}))),
            ],
            &pools,
            &[],
        );
        assert_eq!(
            found[..3],
            ["a 192.0.2.1", "b 192.0.2.1", "c 192.0.2.2"].map(str::to_owned)
        );
        assert!(found[3].contains("no available IPs"), "{}", found[3]);
        assert_eq!(found[4], "e 198.51.100.1");
        assert!(found[5].contains("unknown pool \"nowhere\""), "{}", found[5]);
        assert!(
            found[6].contains("\"203.0.113.9\" is not in a pool"),
            "{}",
            found[6]
        );
    }

    #[test]
    fn an_address_that_was_asked_for_is_given() {
        let found = decided(
            &[
                ("a", service("2026-01-01", &[80], &json!({"ip": "127.0.0.2"}))),
                (
                    "b",
                    service(
                        "2026-01-02",
                        &[80],
                        &json!({"has": "127.0.0.1", "ip": "127.0.0.2"}),
                    ),
                ),
                (
                    "c",
                    service(
                        "2026-01-03",
                        &[81],
                        &json!({"annotations": {"metallb.io/loadBalancerIPs": "fd00::1, 127.0.0.2"}}),
                    ),
                ),
            ],
            &[local()],
            &[],
        );
        assert_eq!(found[0], "a 127.0.0.2");
        assert!(found[1].starts_with("b !"), "{}", found[1]);
        assert_eq!(found[2], "c 127.0.0.2");
    }
}
