//! The names of a workspace, as a table.
//!
//! Kubernetes' DNS specification 1.1.0 says which names a Service has; a machine in addition has
//! `<name>.<namespace>.vm.<domain>`, and its `hostname` under its `subdomain` where a headless Service has that name.
//! Every name above one that exists exists, too, without records (RFC 8020).

use std::collections::HashMap;
use std::net::Ipv4Addr;

/// A port of a Service that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    pub name: String,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    pub port: u16,
}

/// Something behind a headless Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub hostname: Option<String>,
    pub address: Ipv4Addr,
    /// The ports as this endpoint has them.
    pub ports: Vec<Port>,
}

/// What a Service's name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Cluster {
        addresses: Vec<Ipv4Addr>,
        ports: Vec<Port>,
    },
    /// Its ready endpoints, or all with `publishNotReadyAddresses`.
    Headless(Vec<Endpoint>),
    /// `type: ExternalName`.
    External(String),
}

/// A Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub namespace: String,
    pub name: String,
    pub kind: Kind,
}

/// A machine with an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub namespace: String,
    pub name: String,
    pub hostname: Option<String>,
    pub subdomain: Option<String>,
    pub address: Ipv4Addr,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    A(Ipv4Addr),
    Ptr(String),
    Cname(String),
    Srv { port: u16, target: String },
    Txt(String),
}

/// The table. Names are in lower case and without the last dot.
#[derive(Debug, Clone, Default)]
pub struct Zone {
    domain: String,
    /// Networks whose addresses are looked up here and nowhere else: first address and prefix length.
    networks: Vec<(Ipv4Addr, u8)>,
    names: HashMap<String, Vec<Data>>,
}

impl Zone {
    pub fn new(
        domain: &str,
        networks: Vec<(Ipv4Addr, u8)>,
        services: &[Service],
        machines: &[Machine],
    ) -> Self {
        let mut zone = Self {
            domain: domain.trim_matches('.').to_ascii_lowercase(),
            networks,
            names: HashMap::new(),
        };
        let domain = zone.domain.clone();
        zone.add(&format!("dns-version.{domain}"), Data::Txt("1.1.0".into()));
        zone.exists(&format!("svc.{domain}"));
        for service in services {
            zone.add_service(service);
        }
        for machine in machines {
            zone.add_machine(machine, services);
        }
        for records in zone.names.values_mut() {
            records.sort();
            records.dedup();
        }
        zone
    }

    /// Names that lead to addresses, whatever they are below; `*.example.com` stands for everything below it that has no name of
    /// its own. Names below `domain` that are not among them do not exist.
    pub fn of_hosts(domain: &str, hosts: impl IntoIterator<Item = (String, Vec<Ipv4Addr>)>) -> Self {
        let mut zone = Self {
            domain: domain.trim_matches('.').to_ascii_lowercase(),
            ..Self::default()
        };
        zone.exists(&zone.domain.clone());
        for (name, addresses) in hosts {
            let name = name.to_ascii_lowercase();
            zone.exists(&name);
            let records = zone.names.entry(name).or_default();
            records.extend(addresses.into_iter().map(Data::A));
            records.sort();
            records.dedup();
        }
        zone
    }

    fn add_service(&mut self, service: &Service) {
        let name = format!("{}.{}.svc.{}", service.name, service.namespace, self.domain);
        match &service.kind {
            Kind::Cluster { addresses, ports } => {
                for address in addresses {
                    self.add(&name, Data::A(*address));
                    self.add(&reverse(*address), Data::Ptr(name.clone()));
                }
                for port in ports {
                    self.add_port(&name, port, &name);
                }
            }
            Kind::Headless(endpoints) => {
                self.exists(&name);
                for endpoint in endpoints {
                    let host = endpoint
                        .hostname
                        .clone()
                        .unwrap_or_else(|| dashed(endpoint.address));
                    let own = format!("{host}.{name}");
                    self.add(&name, Data::A(endpoint.address));
                    self.add(&own, Data::A(endpoint.address));
                    self.add(&reverse(endpoint.address), Data::Ptr(own.clone()));
                    for port in &endpoint.ports {
                        self.add_port(&name, port, &own);
                    }
                }
            }
            Kind::External(target) => {
                self.add(
                    &name,
                    Data::Cname(target.trim_end_matches('.').to_ascii_lowercase()),
                );
            }
        }
    }

    fn add_port(&mut self, service: &str, port: &Port, target: &str) {
        if !port.name.is_empty() {
            let name = format!("_{}._{}.{service}", port.name, port.protocol);
            self.add(
                &name,
                Data::Srv {
                    port: port.port,
                    target: target.to_ascii_lowercase(),
                },
            );
        }
    }

    fn add_machine(&mut self, machine: &Machine, services: &[Service]) {
        let own = format!("{}.{}.vm.{}", machine.name, machine.namespace, self.domain);
        self.add(&own, Data::A(machine.address));
        let by_address = format!(
            "{}.{}.pod.{}",
            dashed(machine.address),
            machine.namespace,
            self.domain
        );
        self.add(&by_address, Data::A(machine.address));
        let mut reversed = own;
        if let Some(subdomain) = &machine.subdomain {
            let is_headless = services.iter().any(|service| {
                service.namespace == machine.namespace
                    && service.name == *subdomain
                    && matches!(service.kind, Kind::Headless(_))
            });
            if is_headless {
                let host = machine.hostname.as_ref().unwrap_or(&machine.name);
                let name = format!("{host}.{subdomain}.{}.svc.{}", machine.namespace, self.domain);
                self.add(&name, Data::A(machine.address));
                reversed = name;
            }
        }
        // A headless Service may have named the address already.
        if !self.names.contains_key(&reverse(machine.address)) {
            self.add(&reverse(machine.address), Data::Ptr(reversed));
        }
    }

    fn add(&mut self, name: &str, data: Data) {
        let name = name.to_ascii_lowercase();
        self.exists(&name);
        if let Some(records) = self.names.get_mut(&name) {
            records.push(data);
        }
    }

    /// Notes a name and those above it, up to the domain.
    fn exists(&mut self, name: &str) {
        let mut name = name.to_ascii_lowercase();
        while self.owns(&name) && !self.names.contains_key(&name) {
            let above = name.split_once('.').map(|(_, above)| above.to_owned());
            self.names.insert(name, Vec::new());
            match above {
                Some(above) => name = above,
                None => return,
            }
        }
    }

    /// Whether this zone alone knows whether a name exists.
    pub fn owns(&self, name: &str) -> bool {
        let below = name.strip_suffix(&self.domain);
        if below.is_some_and(|below| below.is_empty() || below.ends_with('.')) {
            return true;
        }
        if self.records(name).is_some() {
            return true;
        }
        address_of(name).is_some_and(|address| {
            self.networks
                .iter()
                .any(|&(first, prefix)| is_within(address, first, prefix))
        })
    }

    /// The records of a name: none if it does not exist.
    pub fn records(&self, name: &str) -> Option<&[Data]> {
        let own = self.names.get(name);
        let wild = || {
            let above = name.match_indices('.').map(|(at, _)| &name[at..]);
            above
                .into_iter()
                .find_map(|above| self.names.get(&format!("*{above}")))
        };
        own.or_else(wild).map(Vec::as_slice)
    }

    pub fn domain(&self) -> &str {
        &self.domain
    }
}

fn is_within(address: Ipv4Addr, first: Ipv4Addr, prefix: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
    u32::from(address) & mask == u32::from(first) & mask
}

fn dashed(address: Ipv4Addr) -> String {
    address.to_string().replace('.', "-")
}

/// The name under which an address is looked up.
pub fn reverse(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("{d}.{c}.{b}.{a}.in-addr.arpa")
}

/// The address that a name looks up.
fn address_of(name: &str) -> Option<Ipv4Addr> {
    let mut octets = name.strip_suffix(".in-addr.arpa")?.rsplit('.');
    let mut address = [0; 4];
    for octet in &mut address {
        *octet = octets.next()?.parse().ok()?;
    }
    octets.next().is_none().then(|| Ipv4Addr::from(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_looked_up_backwards() {
        let address = Ipv4Addr::new(10, 96, 0, 7);
        assert_eq!(reverse(address), "7.0.96.10.in-addr.arpa");
        assert_eq!(address_of("7.0.96.10.in-addr.arpa"), Some(address));
        for wrong in [
            "96.10.in-addr.arpa",
            "1.7.0.96.10.in-addr.arpa",
            "a.0.96.10.in-addr.arpa",
            "in-addr.arpa",
        ] {
            assert_eq!(address_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_zone_owns_its_domain_and_networks() {
        let zone = Zone::new(
            "Cluster.Local.",
            vec![(Ipv4Addr::new(10, 88, 0, 0), 16)],
            &[],
            &[],
        );
        for (name, expected) in [
            ("cluster.local", true),
            ("x.svc.cluster.local", true),
            ("evilcluster.local", false),
            ("local", false),
            ("1.0.88.10.in-addr.arpa", true),
            ("1.0.89.10.in-addr.arpa", false),
            ("example.org", false),
            ("", false),
        ] {
            assert_eq!(zone.owns(name), expected, "{name}");
        }
    }
}
