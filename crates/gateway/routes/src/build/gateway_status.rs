//! The last step: listeners with all that hangs on them go to their doors, and Gateways are told how it went.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::gateways::{Class, ListenerPlan, Plan, class, unheeded};
use super::{Built, Fault, condition};
use crate::observed::{Kind, Name, Observed, Protocol};
use crate::settings::Settings;
use crate::status::{Condition, ListenerSays, Says, Status};
use crate::table::{Door, Forward, HostPattern, Listener, ListenerKey, Names, RuleKey, Table, TlsListener};

pub(super) fn finish(plans: &mut [Plan<'_>], observed: &Observed, settings: &Settings, built: &mut Built) {
    let served = |plan: &&Plan<'_>| plan.refused.is_none();
    for plan in plans.iter_mut().filter(|plan| plan.refused.is_none()) {
        for listener in plan.listeners.iter_mut().filter(|listener| listener.served()) {
            open(listener, observed, &mut built.table);
        }
    }
    // Only now is it known which name belongs to which listener.
    let holders = holders(plans, &built.table);
    for plan in plans.iter().filter(served) {
        for listener in plan.listeners.iter().filter(|listener| listener.served()) {
            forward(listener, &holders, &mut built.table);
        }
    }
    built
        .statuses
        .extend(plans.iter().map(|plan| Arc::new(status(plan, settings))));
}

/// What hangs on the listener moves into the table.
fn open(listener: &mut ListenerPlan<'_>, observed: &Observed, table: &mut Table) {
    let http = Arc::new(Listener {
        key: listener.key.clone(),
        routes: std::mem::take(&mut listener.http),
    });
    let listener = &*listener;
    for door in &listener.doors {
        match class(&listener.spec.protocol) {
            Class::Http => {
                if let Door::Http(names) = table
                    .doors
                    .entry(*door)
                    .or_insert_with(|| Door::Http(Names::default()))
                {
                    names.insert(listener.host.clone(), Arc::clone(&http));
                }
            }
            Class::Tls => {
                let made = if listener.spec.protocol == Protocol::Https {
                    TlsListener::Terminate {
                        certificates: listener.certificates.clone(),
                        client_authorities: listener.authorities.clone(),
                        http: Arc::clone(&http),
                    }
                } else {
                    TlsListener::Passthrough(Arc::new(nowhere(listener)))
                };
                if let Door::Tls(names) = table
                    .doors
                    .entry(*door)
                    .or_insert_with(|| Door::Tls(Names::default()))
                {
                    names.insert(listener.host.clone(), Arc::new(made));
                }
            }
            Class::Tcp => {
                let forward = listener.streams.values().next().map(Arc::clone);
                let forward = forward.unwrap_or_else(|| Arc::new(nowhere(listener)));
                table.doors.insert(*door, Door::Tcp(forward));
            }
        }
    }
    if listener.doors.is_empty() {
        return;
    }
    for key in &listener.certificates {
        let secrets = observed.workspaces.get(&key.workspace).map(|held| &held.secrets);
        let secret = secrets.and_then(|secrets| secrets.get(&Name::new(&key.namespace, &key.secret)));
        if let Some(Ok(credential)) = secret.map(|secret| &secret.spec) {
            table
                .certificates
                .insert(key.clone(), Arc::clone(&credential.certificate));
        }
    }
}

/// Connections for a name that has no route.
fn nowhere(listener: &ListenerPlan<'_>) -> Forward {
    Forward {
        key: RuleKey {
            listener: listener.key.clone(),
            kind: if listener.spec.protocol == Protocol::Tcp {
                Kind::TcpRoute.name()
            } else {
                Kind::TlsRoute.name()
            },
            namespace: String::new(),
            name: String::new(),
            rule: 0,
            section: None,
        },
        backends: Vec::new(),
    }
}

/// By door: the names of listeners, and whose they are.
type Holders = BTreeMap<SocketAddr, HashMap<HostPattern, Option<ListenerKey>>>;

fn holders(plans: &[Plan<'_>], table: &Table) -> Holders {
    let mut holders = Holders::new();
    for (door, what) in &table.doors {
        if let Door::Tls(names) = what {
            holders.insert(*door, names.iter().map(|(host, _)| (host, None)).collect());
        }
    }
    for listener in plans
        .iter()
        .flat_map(|plan| &plan.listeners)
        .filter(|listener| listener.served())
    {
        for door in &listener.doors {
            if let Some(holder) = holders
                .get_mut(door)
                .and_then(|names| names.get_mut(&listener.host))
            {
                *holder = Some(listener.key.clone());
            }
        }
    }
    holders
}

/// A route's names become names of the door, as far as no other listener has a better right to them.
fn forward(listener: &ListenerPlan<'_>, holders: &Holders, table: &mut Table) {
    if !listener.passthrough() {
        return;
    }
    for door in &listener.doors {
        let (Some(names), Some(Door::Tls(served))) = (holders.get(door), table.doors.get_mut(door)) else {
            continue;
        };
        for (host, forward) in &listener.streams {
            if holder(names, host) == Some(&listener.key) {
                served.insert(
                    host.clone(),
                    Arc::new(TlsListener::Passthrough(Arc::clone(forward))),
                );
            }
        }
    }
}

/// Whose the most specific listener name is that covers `host`.
fn holder<'a>(
    names: &'a HashMap<HostPattern, Option<ListenerKey>>,
    host: &HostPattern,
) -> Option<&'a ListenerKey> {
    if let Some(holder) = names.get(host) {
        return holder.as_ref();
    }
    if let HostPattern::Exact(name) | HostPattern::Wildcard(name) = host {
        for (at, _) in name.match_indices('.') {
            if let Some(holder) = names.get(&HostPattern::Wildcard(name[at + 1..].to_owned())) {
                return holder.as_ref();
            }
        }
    }
    names.get(&HostPattern::Any)?.as_ref()
}

fn status(plan: &Plan<'_>, settings: &Settings) -> Status {
    let generation = plan.meta.generation;
    let refused = plan.refused.as_ref();
    let listeners: Vec<ListenerSays> = plan
        .listeners
        .iter()
        .map(|one| listener_says(one, plan, settings))
        .collect();
    let valid = plan.listeners.iter().filter(|listener| listener.served()).count();
    let programmed = plan
        .listeners
        .iter()
        .any(|listener| listener.served() && !listener.doors.is_empty());
    let accepted = match refused {
        Some(fault) => condition("Accepted", Some(fault), generation),
        None if valid == plan.listeners.len() => {
            Condition::new("Accepted", true, "Accepted", plan.remarks.join("; "), generation)
        }
        // Some are served, so the Gateway is accepted for these.
        None => Condition::new(
            "Accepted",
            valid > 0,
            "ListenersNotValid",
            "the conditions of its listeners say why",
            generation,
        ),
    };
    let not_programmed = match (refused, &plan.address_fault) {
        (Some(fault), _) => Some(Fault::new("Invalid", fault.message.clone())),
        (None, Some(fault)) => Some(fault.clone()),
        (None, None) if programmed => None,
        (None, None) => Some(match unavailable(plan) {
            Some(why) => Fault::new("AddressNotUsable", why),
            None => Fault::new("Invalid", "no listener can be served; their conditions say why"),
        }),
    };
    // Of the addresses that were named, those that are listened on; the platform's own is there in any case.
    let serves = |ip: &&IpAddr| {
        let mut doors = plan.listeners.iter().flat_map(|listener| &listener.doors);
        !plan.named || plan.address_fault.is_none() || doors.any(|door| door.ip() == **ip)
    };
    let addresses: Vec<&IpAddr> = match refused {
        Some(_) => Vec::new(),
        None => plan.addresses.iter().filter(serves).collect(),
    };
    Status {
        workspace: plan.workspace.to_owned(),
        kind: Kind::Gateway,
        name: plan.meta.name.clone(),
        says: Says::Gateway {
            addresses: addresses
                .iter()
                .map(|ip| ("IPAddress".to_owned(), ip.to_string()))
                .collect(),
            conditions: vec![
                accepted,
                condition("Programmed", not_programmed.as_ref(), generation),
            ],
            listeners,
        },
    }
}

fn unavailable(plan: &Plan<'_>) -> Option<String> {
    let faults = plan
        .listeners
        .iter()
        .filter_map(|listener| listener.fault.as_ref());
    faults
        .filter(|fault| fault.reason == "PortUnavailable")
        .map(|fault| fault.message.clone())
        .next()
}

fn listener_says(listener: &ListenerPlan<'_>, plan: &Plan<'_>, settings: &Settings) -> ListenerSays {
    let generation = plan.meta.generation;
    let conflict = listener.conflict.as_ref();
    let accepted = listener.fault.as_ref().or(conflict);
    let programmed = if plan.refused.is_some() || accepted.is_some() {
        Condition::new(
            "Programmed",
            false,
            "Invalid",
            "the Gateway or the listener is not accepted",
            generation,
        )
    } else if let Some(why) = &listener.lacking {
        Condition::new("Programmed", false, "Invalid", why.clone(), generation)
    } else if listener.doors.is_empty() {
        Condition::new(
            "Programmed",
            false,
            "Pending",
            "there is no address to listen on; the Gateway's conditions say why",
            generation,
        )
    } else {
        Condition::new(
            "Programmed",
            true,
            "Programmed",
            elsewhere(listener, plan, settings),
            generation,
        )
    };
    let conflicted = match conflict {
        Some(fault) => Condition::new(
            "Conflicted",
            true,
            fault.reason,
            fault.message.clone(),
            generation,
        ),
        None => Condition::new("Conflicted", false, "NoConflicts", "", generation),
    };
    let remark = unheeded(listener.spec).unwrap_or_default();
    let mut conditions = vec![
        match accepted {
            None => Condition::new("Accepted", true, "Accepted", remark, generation),
            Some(_) => condition("Accepted", accepted, generation),
        },
        programmed,
        conflicted,
        condition("ResolvedRefs", listener.unresolved.as_ref(), generation),
    ];
    if listener.overlapping {
        let message = "a client that reuses a connection may reach the wrong one of two listeners whose host names overlap";
        conditions.push(Condition::new(
            "OverlappingTLSConfig",
            true,
            "OverlappingHostnames",
            message,
            generation,
        ));
    }
    ListenerSays {
        name: listener.spec.name.clone(),
        kinds: listener
            .kinds
            .iter()
            .map(|kind| (kind.group(), kind.name()))
            .collect(),
        attached: listener.attached,
        conditions,
    }
}

/// Where the port that was asked for needs a privilege, people must know which one to use.
fn elsewhere(listener: &ListenerPlan<'_>, plan: &Plan<'_>, settings: &Settings) -> String {
    let asked = plan
        .addresses
        .iter()
        .map(|ip| SocketAddr::new(*ip, listener.spec.port));
    let moved: Vec<String> = asked
        .filter(|asked| settings.bound(*asked) != *asked)
        .map(|asked| format!("{} in place of {asked}", settings.bound(asked)))
        .collect();
    if moved.is_empty() {
        String::new()
    } else {
        format!("listens on {}", moved.join(", "))
    }
}
