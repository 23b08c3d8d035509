//! Who gets which address, port and host name: the oldest, among all Gateways and OpenShift's Routes of all workspaces.

mod held;

use std::collections::BTreeSet;
use std::net::SocketAddr;

use held::{Doors, Owner};

use super::Fault;
use super::gateways::{Class, Plan, class};
use super::openshift::RoutePlan;
use crate::hostname;
use crate::settings::Settings;
use crate::table::HostPattern;

/// Gives every listener and Route its doors, or tells why not. Returns what was asked for.
pub(super) fn settle(
    plans: &mut [Plan<'_>],
    routes: &mut [RoutePlan<'_>],
    settings: &Settings,
) -> BTreeSet<SocketAddr> {
    enum Who {
        Gateway(usize),
        Route(usize),
    }
    let gateways = plans
        .iter()
        .enumerate()
        .map(|(at, plan)| ((plan.meta.age(), plan.workspace), Who::Gateway(at)));
    let claims = routes
        .iter()
        .enumerate()
        .map(|(at, plan)| ((plan.meta.age(), plan.workspace), Who::Route(at)));
    let mut order: Vec<_> = gateways.chain(claims).collect();
    order.sort_by(|one, two| one.0.cmp(&two.0));
    let order: Vec<Who> = order.into_iter().map(|(_, who)| who).collect();
    let mut doors = Doors::new(settings);
    let mut wanted = BTreeSet::new();
    for who in order {
        match who {
            Who::Gateway(at) => {
                if let Some(plan) = plans.get_mut(at) {
                    gateway(plan, &mut doors, &mut wanted, settings);
                }
            }
            Who::Route(at) => {
                if let Some(plan) = routes.get_mut(at) {
                    route(plan, &mut doors, &mut wanted, settings);
                }
            }
        }
    }
    wanted
}

fn gateway(
    plan: &mut Plan<'_>,
    doors: &mut Doors<'_>,
    wanted: &mut BTreeSet<SocketAddr>,
    settings: &Settings,
) {
    if plan.refused.is_some() {
        return;
    }
    for listener in &mut plan.listeners {
        if listener.fault.is_some() || listener.conflict.is_some() {
            continue;
        }
        let by = Owner {
            workspace: plan.workspace.to_owned(),
            shares: None,
            who: format!("listener {:?} of Gateway {}", listener.spec.name, plan.meta.name),
        };
        let class = class(&listener.spec.protocol);
        let host = if class == Class::Tcp {
            HostPattern::Any
        } else {
            listener.host.clone()
        };
        let asked: Vec<SocketAddr> = plan
            .addresses
            .iter()
            .map(|ip| SocketAddr::new(*ip, listener.spec.port))
            .collect();
        let denied = asked.iter().find_map(|asked| {
            reserved(*asked, class, &host, &by, settings)
                .or_else(|| doors.denied(settings.bound(*asked), class, &host, &by))
        });
        if denied.is_some() {
            listener.conflict = denied;
            continue;
        }
        for asked in asked {
            wanted.insert(asked);
            doors.take(settings.bound(asked), class, &host, &by);
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
    doors: &mut Doors<'_>,
    wanted: &mut BTreeSet<SocketAddr>,
    settings: &Settings,
) {
    if plan.refused.is_some() {
        return;
    }
    let by = Owner {
        workspace: plan.workspace.to_owned(),
        shares: Some(plan.meta.name.namespace.clone()),
        who: format!("Route {}", plan.meta.name),
    };
    let router = &settings.router;
    for (wants, port, class) in [
        (plan.wants_https, router.https, Class::Tls),
        (plan.wants_http, router.http, Class::Http),
    ] {
        if !wants {
            continue;
        }
        let asked = SocketAddr::new(router.address, port);
        let door = settings.bound(asked);
        let denied = reserved(asked, class, &plan.host, &by, settings)
            .or_else(|| doors.denied(door, class, &plan.host, &by));
        let denied = denied.map(|fault| Fault::new("HostAlreadyClaimed", fault.message));
        let failed = settings.failure(asked);
        let failed = failed.map(|why| {
            Fault::new(
                "RouteNotAdmitted",
                format!("{asked} cannot be listened on: {why}"),
            )
        });
        let is_https = class == Class::Tls;
        match denied.or(failed) {
            // What is served encrypted stays so; only the plain port is somebody else's.
            Some(fault) if !is_https && plan.https.is_some() => {
                plan.remark = Some(format!("not served on port {port}: {}", fault.message));
            }
            Some(fault) => {
                plan.refused = Some(fault);
                return;
            }
            None => {
                wanted.insert(asked);
                doors.take(door, class, &plan.host, &by);
                let place = if is_https { &mut plan.https } else { &mut plan.http };
                *place = Some(door);
            }
        }
    }
}
