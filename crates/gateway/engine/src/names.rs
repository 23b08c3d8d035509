//! Which host names lead where: what the platform's name server tells. Pure.
//!
//! A route may name any host, also one that is somebody else's. So of routes only names below the platform's own domain are told,
//! and others only where a DNSPolicy of the root workspace, the operator's, asks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use fairway_gateway_policy::dns::Record;
use fairway_gateway_routes::Observed;
use fairway_gateway_routes::observed::Name;
use fairway_gateway_routes::table::{Door, HostPattern, Listener, RuleKey, Table, TlsListener};

use crate::settings::Settings;

/// Names in lower case, `*.example.com` among them, with their addresses.
pub type Names = BTreeMap<String, BTreeSet<Ipv4Addr>>;

/// The workspace that a name belongs to.
pub(crate) type Owners = BTreeMap<String, String>;

/// When the oldest route was made, and where it is served; by workspace.
type Claims<'a> = BTreeMap<&'a str, (Option<&'a str>, BTreeSet<IpAddr>)>;

/// The names of what is served. Where Gateways have addresses of their own, several workspaces may serve a name; it leads to one of
/// them: who had it `before`, else who has the oldest route. The domain as a whole is the `operator`'s.
pub(crate) fn published(
    (table, observed): (&Table, &Observed),
    records: &[Record],
    settings: &Settings,
    operator: &str,
    before: &Owners,
) -> (Names, Owners) {
    let mut claimed: BTreeMap<String, Claims<'_>> = BTreeMap::new();
    // Who listens at an address.
    let mut listening: BTreeMap<IpAddr, BTreeSet<&str>> = BTreeMap::new();
    for (door, kind) in &table.doors {
        for (host, rule) in hosts(kind) {
            let workspace = rule.listener.workspace.as_str();
            listening.entry(door.ip()).or_default().insert(workspace);
            let Some(name) = text(&host).filter(|name| is_below(name, &settings.domain)) else {
                continue;
            };
            let whole = name.strip_prefix("*.").unwrap_or(&name) == settings.domain;
            if whole && workspace != operator {
                continue;
            }
            let claims = claimed.entry(name).or_default();
            let (created, addresses) = claims.entry(workspace).or_default();
            let of_rule = made(observed, rule);
            if created.is_none_or(|oldest| of_rule.is_some_and(|one| one < oldest)) {
                *created = of_rule;
            }
            addresses.insert(door.ip());
        }
    }
    let mut names = Names::new();
    let mut add = |name: &str, address: IpAddr| {
        // The name server knows addresses of IPv4 alone.
        if let IpAddr::V4(address) = address {
            names.entry(name.to_owned()).or_default().insert(address);
        }
    };
    let mut owners = Owners::new();
    for (name, claims) in &claimed {
        let had = before.get(name).filter(|it| claims.contains_key(it.as_str()));
        // One without a route is the youngest.
        let oldest = claims.iter().min_by_key(|(_, (at, _))| (at.is_none(), *at));
        let owner = had
            .map(String::as_str)
            .or(oldest.map(|(workspace, _)| *workspace));
        if let Some((owner, (_, addresses))) = owner.and_then(|owner| claims.get_key_value(owner)) {
            owners.insert(name.clone(), (*owner).to_owned());
            addresses.iter().for_each(|address| add(name, *address));
        }
    }
    if !table.doors.is_empty() {
        add(&format!("gateway.{}", settings.domain), settings.address);
    }
    for (name, addresses) in by_name(records) {
        let of_operator = !is_below(&name, &settings.domain);
        let at = |address: &IpAddr| listening.get(address).into_iter().flatten().copied();
        let owner = match owners.get(&name) {
            Some(owner) => Some(owner.clone()),
            None => {
                let had = before.get(&name).map(String::as_str);
                let had = had.filter(|had| addresses.iter().flat_map(at).any(|it| it == *had));
                had.or_else(|| addresses.iter().flat_map(at).next())
                    .map(str::to_owned)
            }
        };
        for address in &addresses {
            if of_operator || at(address).any(|it| Some(it) == owner.as_deref()) {
                add(&name, *address);
            }
        }
        owners.extend(owner.filter(|_| !of_operator).map(|owner| (name, owner)));
    }
    (names, owners)
}

/// In the order in which they were decided.
fn by_name(records: &[Record]) -> BTreeMap<String, Vec<IpAddr>> {
    let mut found: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for record in records {
        let addresses = record.addresses.iter().filter_map(|it| it.parse::<IpAddr>().ok());
        let name = record.name.to_ascii_lowercase();
        found.entry(name).or_default().extend(addresses);
    }
    found
}

/// When the route of a rule was made.
fn made<'a>(observed: &'a Observed, rule: &RuleKey) -> Option<&'a str> {
    let held = observed.workspaces.get(&rule.listener.workspace)?;
    let name = Name::new(&rule.namespace, &rule.name);
    let meta = match rule.kind {
        "HTTPRoute" => &held.http_routes.get(&name)?.meta,
        "GRPCRoute" => &held.grpc_routes.get(&name)?.meta,
        "TLSRoute" => &held.tls_routes.get(&name)?.meta,
        "Route" => &held.routes.get(&name)?.meta,
        _ => return None,
    };
    Some(&meta.created)
}

/// Whether a name is the platform's to give.
pub(crate) fn is_below(name: &str, domain: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name);
    name == domain || name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Each name with the rules that serve it.
fn hosts(door: &Door) -> Vec<(HostPattern, &RuleKey)> {
    fn of_listener(listener: &Listener) -> impl Iterator<Item = (HostPattern, &RuleKey)> {
        let routes = listener.routes.iter();
        routes.flat_map(|(host, entries)| entries.iter().map(move |one| (host.clone(), &one.rule.key)))
    }
    match door {
        Door::Http(listeners) => listeners.iter().flat_map(|(_, it)| of_listener(it)).collect(),
        Door::Tls(listeners) => {
            let mut found = Vec::new();
            for (host, listener) in listeners.iter() {
                match &**listener {
                    TlsListener::Terminate { http, .. } => found.extend(of_listener(http)),
                    TlsListener::Passthrough(forward) => found.push((host, &forward.key)),
                }
            }
            found
        }
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
    use fairway_gateway_routes::settings::{Addresses, CONTROLLER, GatewayName};
    use fairway_gateway_routes::{self as routes, Kind, build};
    use serde_json::json;

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
        let observed = Observed::default();
        let (names, _) = published(
            (&Table::default(), &observed),
            &[record],
            &Settings::default(),
            "root",
            &Owners::new(),
        );
        let expected: Names = [("api.example.com".to_owned(), [Ipv4Addr::new(192, 0, 2, 7)].into())].into();
        assert_eq!(names, expected);
    }

    /// A workspace with a Gateway of its own address, and a route that was made in that minute.
    fn workspace(observed: &mut Observed, name: &str, minute: u32, host: &str) {
        let created = format!("2026-01-01T00:{minute:02}:00Z");
        let meta = json!({"name": "web", "namespace": "n", "generation": 1, "creationTimestamp": created});
        let gateway = json!({"metadata": meta, "spec": {
            "gatewayClassName": "fairway", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        }});
        let route = json!({"metadata": meta, "spec": {
            "parentRefs": [{"name": "web"}], "hostnames": [host], "rules": [{}],
        }});
        observed.put(name, Kind::Gateway, &gateway);
        observed.put(name, Kind::HttpRoute, &route);
    }

    #[test]
    fn a_name_leads_to_one_workspace() {
        const HOST: &str = "www.apps.fairway.localhost";
        const WHOLE: &str = "*.apps.fairway.localhost";
        let cases = [
            ("the older route has it", HOST, None, &[][..], Some(1)),
            ("who had it keeps it", HOST, Some("new"), &[], Some(2)),
            ("who had it is gone", HOST, Some("gone"), &[], Some(1)),
            (
                "a policy of another workspace adds nothing",
                HOST,
                None,
                &["10.0.0.2"],
                Some(1),
            ),
            ("the whole domain is no tenant's", WHOLE, None, &[], None),
        ];
        for (why, host, before, policy, expected) in cases {
            let mut observed = Observed::default();
            workspace(&mut observed, "old", 1, host);
            workspace(&mut observed, "new", 2, host);
            let given = [("old", [10, 0, 0, 1]), ("new", [10, 0, 0, 2])].map(|(workspace, address)| {
                let workspace = workspace.to_owned();
                let name = Name::new("n", "web");
                (GatewayName { workspace, name }, IpAddr::from(address))
            });
            let built = build(
                &observed,
                &routes::Settings {
                    classes: [("fairway".to_owned(), CONTROLLER.to_owned())].into(),
                    addresses: Addresses::Each(given.into()),
                    ..routes::Settings::default()
                },
            );
            let before = before.map(|owner| (host.to_owned(), owner.to_owned()));
            let records: Vec<Record> = (policy.iter())
                .map(|address| Record {
                    name: host.to_owned(),
                    addresses: vec![(*address).to_owned()],
                })
                .collect();
            let (names, owners) = published(
                (&built.table, &observed),
                &records,
                &Settings::default(),
                "root",
                &before.into_iter().collect(),
            );
            let expected: Option<BTreeSet<_>> = expected.map(|last| [Ipv4Addr::new(10, 0, 0, last)].into());
            assert_eq!(names.get(host), expected.as_ref(), "{why}");
            assert_eq!(owners.contains_key(host), expected.is_some(), "{why}");
        }
    }
}
