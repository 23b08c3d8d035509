//! Who gets which address, port and host name, among all Gateways and OpenShift's Routes of all workspaces: who has it already, then
//! the oldest.

mod held;
mod holders;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use held::{Doors, Owner};
pub use holders::{Holders, Holding};

use super::Fault;
use super::gateways::{Class, Plan, class};
use super::openshift::RoutePlan;
use crate::hostname;
use crate::settings::Settings;
use crate::table::HostPattern;

/// A listener of a Gateway, or a Route, by place.
#[derive(Clone, Copy)]
enum Who {
    Listener(usize, usize),
    Route(usize),
}

/// What one of them asks for.
struct Claim {
    who: Who,
    by: Owner,
    host: HostPattern,
    asked: Vec<(SocketAddr, Class)>,
}

/// Gives every listener and Route its doors, or tells why not. Returns what was asked for, and who has what.
///
/// What a workspace has, it keeps as long as it asks for it: else whoever has an old object could write any name into it. Among all
/// other claims the oldest object has it.
pub(super) fn settle(
    plans: &mut [Plan<'_>],
    routes: &mut [RoutePlan<'_>],
    settings: &Settings,
) -> (BTreeSet<SocketAddr>, Holders) {
    let mut doors = Doors::new(settings);
    let mut incumbents = Vec::new();
    let mut others = Vec::new();
    for claim in claims(plans, routes, settings) {
        let mut is_incumbent = false;
        for (asked, class) in &claim.asked {
            let door = settings.bound(*asked);
            let holders = &settings.holders;
            if holders.holds(door, *class, &claim.host, &claim.by.workspace) {
                doors.keep(door, *class, &claim.host, &claim.by);
                is_incumbent = true;
            }
        }
        match is_incumbent {
            true => incumbents.push(claim),
            false => others.push(claim),
        }
    }
    let mut wanted = BTreeSet::new();
    for claims in [incumbents, others] {
        for claim in claims {
            match claim.who {
                Who::Listener(at, of) => {
                    if let Some(plan) = plans.get_mut(at) {
                        listener(plan, of, &claim, &mut doors, &mut wanted, settings);
                    }
                }
                Who::Route(at) => {
                    if let Some(plan) = routes.get_mut(at) {
                        route(plan, &claim, &mut doors, &mut wanted, settings);
                    }
                }
            }
        }
        doors.release();
    }
    (wanted, doors.holders())
}

/// All of them, those of the oldest objects first.
fn claims(plans: &[Plan<'_>], routes: &[RoutePlan<'_>], settings: &Settings) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (at, plan) in plans
        .iter()
        .enumerate()
        .filter(|(_, plan)| plan.refused.is_none())
    {
        for (of, listener) in plan.listeners.iter().enumerate() {
            if listener.fault.is_some() || listener.conflict.is_some() {
                continue;
            }
            let class = class(&listener.spec.protocol);
            let addresses = plan.addresses.iter();
            let claim = Claim {
                who: Who::Listener(at, of),
                by: Owner {
                    workspace: plan.workspace.to_owned(),
                    shares: None,
                    who: format!("listener {:?} of Gateway {}", listener.spec.name, plan.meta.name),
                },
                host: match class {
                    Class::Tcp => HostPattern::Any,
                    Class::Http | Class::Tls => listener.host.clone(),
                },
                asked: addresses
                    .map(|ip| (SocketAddr::new(*ip, listener.spec.port), class))
                    .collect(),
            };
            claims.push(((plan.meta.age(), plan.workspace), claim));
        }
    }
    let router = &settings.router;
    for (at, plan) in routes
        .iter()
        .enumerate()
        .filter(|(_, plan)| plan.refused.is_none())
    {
        let ports = [
            (plan.wants_https, router.https, Class::Tls),
            (plan.wants_http, router.http, Class::Http),
        ];
        let ports = ports.into_iter().filter(|(wants, ..)| *wants);
        let claim = Claim {
            who: Who::Route(at),
            by: Owner {
                workspace: plan.workspace.to_owned(),
                shares: Some(plan.meta.name.namespace.clone()),
                who: format!("Route {}", plan.meta.name),
            },
            host: plan.host.clone(),
            asked: ports
                .map(|(_, port, class)| (SocketAddr::new(router.address, port), class))
                .collect(),
        };
        claims.push(((plan.meta.age(), plan.workspace), claim));
    }
    // Stable: listeners of one Gateway stay in their order.
    claims.sort_by(|one, two| one.0.cmp(&two.0));
    claims.into_iter().map(|(_, claim)| claim).collect()
}

fn listener(
    plan: &mut Plan<'_>,
    of: usize,
    claim: &Claim,
    doors: &mut Doors<'_>,
    wanted: &mut BTreeSet<SocketAddr>,
    settings: &Settings,
) {
    let Some(listener) = plan.listeners.get_mut(of) else {
        return;
    };
    let mut asked = claim.asked.iter();
    listener.conflict = asked.find_map(|(asked, class)| denied(*asked, *class, claim, doors, settings));
    if listener.conflict.is_some() {
        return;
    }
    for (asked, class) in claim.asked.iter().copied() {
        wanted.insert(asked);
        doors.take(settings.bound(asked), class, &claim.host, &claim.by);
        match settings.failure(asked) {
            None => listener.doors.push(settings.bound(asked)),
            Some(why) if plan.named => {
                let message = format!("{asked} cannot be listened on: {why}");
                plan.address_fault = Some(Fault::new("AddressNotUsable", message));
            }
            Some(why) => {
                let message =
                    format!("{asked} cannot be listened on: {why}; free the port, or take another one");
                listener.fault = Some(Fault::new("PortUnavailable", message));
            }
        }
    }
}

fn denied(
    asked: SocketAddr,
    class: Class,
    claim: &Claim,
    doors: &Doors<'_>,
    settings: &Settings,
) -> Option<Fault> {
    let Claim { by, host, .. } = claim;
    reserved(asked, class, host, by, settings)
        .or_else(|| doors.denied(settings.bound(asked), class, host, by))
}

/// Why nobody but the operator may have it, whoever was first: what OpenShift's Routes of all workspaces need of the address that
/// they share.
fn reserved(
    asked: SocketAddr,
    wanted: Class,
    host: &HostPattern,
    by: &Owner,
    settings: &Settings,
) -> Option<Fault> {
    let router = &settings.router;
    if by.workspace == settings.operator || asked.ip() != router.address {
        return None;
    }
    let ports = [
        (router.http, Class::Http, "HTTP"),
        (router.https, Class::Tls, "HTTPS and TLS"),
    ];
    let other = ports.into_iter().find(|(port, class, _)| {
        // Also the port that stands in for one that needs a privilege.
        let of_router = SocketAddr::new(router.address, *port);
        *class != wanted && settings.bound(asked) == settings.bound(of_router)
    });
    if let Some((port, _, protocols)) = other {
        let message = format!(
            "port {port} of {} is for {protocols}; take another port",
            asked.ip()
        );
        return Some(Fault::new("ProtocolConflict", message));
    }
    let HostPattern::Wildcard(suffix) = host else {
        return None;
    };
    // Nobody else could have a name below it.
    let whole =
        !suffix.contains('.') || hostname::covers(host, &HostPattern::Wildcard(router.domain.clone()));
    whole.then(|| {
        let message = format!("names below {suffix} are for all workspaces; name each host that is meant");
        Fault::new("HostnameConflict", message)
    })
}

fn route(
    plan: &mut RoutePlan<'_>,
    claim: &Claim,
    doors: &mut Doors<'_>,
    wanted: &mut BTreeSet<SocketAddr>,
    settings: &Settings,
) {
    for (asked, class) in claim.asked.iter().copied() {
        let denied = denied(asked, class, claim, doors, settings);
        let denied = denied.map(|fault| Fault::new("HostAlreadyClaimed", fault.message));
        let failed = settings.failure(asked).map(|why| {
            let message = format!("{asked} cannot be listened on: {why}");
            Fault::new("RouteNotAdmitted", message)
        });
        let is_https = class == Class::Tls;
        match denied.or(failed) {
            // What is served encrypted stays so; only the plain port is somebody else's.
            Some(fault) if !is_https && plan.https.is_some() => {
                plan.remark = Some(format!("not served on port {}: {}", asked.port(), fault.message));
            }
            Some(fault) => {
                plan.refused = Some(fault);
                return;
            }
            None => {
                let door = settings.bound(asked);
                wanted.insert(asked);
                doors.take(door, class, &claim.host, &claim.by);
                let place = if is_https { &mut plan.https } else { &mut plan.http };
                *place = Some(door);
            }
        }
    }
}
