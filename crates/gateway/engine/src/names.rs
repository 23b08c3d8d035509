//! Which host names lead where: what the platform's name server tells. Pure.
//!
//! A route may name any host, also one that is somebody else's. So of routes only names below the platform's own domain are told,
//! and others only where a DNSPolicy of the root workspace, the operator's, asks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use fairway_gateway_policy::dns::Record;
use fairway_gateway_routes::table::{Door, HostPattern, Listener, Table, TlsListener};

use crate::settings::Settings;

/// Names in lower case, `*.example.com` among them, with their addresses.
pub type Names = BTreeMap<String, BTreeSet<Ipv4Addr>>;

/// The names of what is served.
pub(crate) fn published(table: &Table, records: &[Record], settings: &Settings) -> Names {
    let mut names = Names::new();
    let mut add = |name: String, address: IpAddr| {
        // The name server knows addresses of IPv4 alone.
        if let IpAddr::V4(address) = address {
            names.entry(name).or_default().insert(address);
        }
    };
    for (door, kind) in &table.doors {
        for host in hosts(kind) {
            if let Some(name) = text(&host).filter(|name| is_below(name, &settings.domain)) {
                add(name, door.ip());
            }
        }
    }
    if !table.doors.is_empty() {
        add(format!("gateway.{}", settings.domain), settings.address);
    }
    for record in records {
        for address in record.addresses.iter().filter_map(|it| it.parse().ok()) {
            add(record.name.to_ascii_lowercase(), address);
        }
    }
    names
}

/// Whether a name is the platform's to give.
pub(crate) fn is_below(name: &str, domain: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    name == domain || name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn hosts(door: &Door) -> Vec<HostPattern> {
    let of_listener =
        |listener: &Listener| -> Vec<HostPattern> { listener.routes.iter().map(|(host, _)| host).collect() };
    match door {
        Door::Http(listeners) => listeners.iter().flat_map(|(_, it)| of_listener(it)).collect(),
        Door::Tls(listeners) => (listeners.iter())
            .flat_map(|(host, listener)| match &**listener {
                TlsListener::Terminate { http, .. } => of_listener(http),
                TlsListener::Passthrough(_) => vec![host],
            })
            .collect(),
        Door::Tcp(_) => Vec::new(),
    }
}

fn text(host: &HostPattern) -> Option<String> {
    match host {
        HostPattern::Exact(name) => Some(name.clone()),
        HostPattern::Wildcard(suffix) => Some(format!("*.{suffix}")),
        HostPattern::Any => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_platform_are_its_to_give() {
        for (name, expected) in [
            ("api.apps.fairway.localhost", true),
            ("*.apps.fairway.localhost", true),
            ("apps.fairway.localhost", true),
            ("notapps.fairway.localhost", false),
            ("www.example.com", false),
        ] {
            assert_eq!(is_below(name, "apps.fairway.localhost"), expected, "{name}");
        }
    }

    #[test]
    fn records_of_policies_are_told() {
        let record = Record {
            name: "API.example.com".to_owned(),
            addresses: vec!["192.0.2.7".to_owned(), "other.example.com".to_owned()],
        };
        let names = published(&Table::default(), &[record], &Settings::default());
        let expected: Names = [("api.example.com".to_owned(), [Ipv4Addr::new(192, 0, 2, 7)].into())].into();
        assert_eq!(names, expected);
    }
}
