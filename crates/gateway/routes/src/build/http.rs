//! HTTPRoutes and GRPCRoutes: rules for the listeners that they hang on.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::attach::{Hung, Outcome, attach};
use super::backends::{Clusters, Way};
use super::gateways::{Index, Plan};
use super::memo::Made;
use super::shelves::Ranked;
use super::{Fault, Scope, condition, resolved, route_status};
use crate::observed::{self, HttpRoute, HttpRule, Kind, Object};
use crate::settings::Settings;
use crate::status::{Condition, ParentSays};
use crate::table::{Action, Backend, Entry, Filter, ListenerKey, Mirror, Redirect, Rule, RuleKey, Target};

/// Hangs a route where it belongs, and says what its parents say of it.
pub(super) fn route(
    scope: Scope<'_>,
    (kind, object): (Kind, &Arc<Object<HttpRoute>>),
    (plans, index): (&mut [Plan<'_>], &Index),
    settings: &Settings,
    clusters: &mut Clusters<'_>,
    hung: &mut Hung<'_>,
) -> Made {
    let meta = &object.meta;
    let nothing = |says: Vec<ParentSays>| Made {
        kind,
        route: Arc::clone(object),
        status: Arc::new(route_status(scope, kind, &meta.name, says)),
        attached: Vec::new(),
        shelves: Vec::new(),
        clusters: Vec::new(),
        policies: BTreeSet::new(),
        gateways: BTreeSet::new(),
    };
    // Who the parents are cannot be read, so nobody can say anything.
    let Some(spec) = object.known() else {
        return nothing(Vec::new());
    };
    let mut outcomes = attach(scope, kind, meta, &spec.parents, &spec.hostnames, plans, index);
    if outcomes.is_empty() {
        return nothing(Vec::new());
    }
    let places = |outcome: &Outcome<'_>| {
        let gateway = outcome.gateway;
        let listeners = outcome.listeners.iter();
        listeners.map(move |(at, _)| (gateway, *at)).collect::<Vec<_>>()
    };
    let attached = outcomes.iter().flat_map(places).collect();
    let refused = refused(object, spec);
    for outcome in outcomes
        .iter_mut()
        .filter(|outcome| outcome.fault.is_none() && refused.is_none())
    {
        let gateway = outcome.gateway;
        let before = outcome.listeners.len();
        outcome
            .listeners
            .retain(|(at, hosts)| hung.mixed.admit(kind, (gateway, *at), hosts));
        if outcome.listeners.len() == before {
            continue;
        }
        let other = if kind == Kind::GrpcRoute {
            "an HTTPRoute"
        } else {
            "a GRPCRoute"
        };
        let message = format!("{other}, which is older, has a host name of this route on the same listener");
        if outcome.listeners.is_empty() {
            outcome.fault = Some(Fault::new("HostnameConflict", message));
        } else {
            outcome.remark = format!("not on all listeners: {message}");
        }
    }
    let mut unresolved = None;
    let mut rules: Vec<(usize, &HttpRule, Rule)> = Vec::new();
    for (at, rule) in spec.rules.iter().enumerate() {
        let mut made = self::rule(kind, meta, at, rule, clusters, &mut unresolved);
        if let Some((_, why)) = &rule.fault {
            // Another rule might answer its requests without what this one was to do first.
            made.filters = Vec::new();
            made.action = answer_500(why.clone());
        }
        rules.push((at, rule, made));
    }
    let led_to = clusters.of(rules.iter().map(|(_, _, made)| made));
    let mut gateways = BTreeSet::new();
    let mut places = Vec::new();
    for outcome in outcomes.iter().filter(|_| refused.is_none()) {
        gateways.insert(outcome.gateway);
        let Some(plan) = plans.get(outcome.gateway) else {
            continue;
        };
        let address = plan.addresses.first().copied();
        for (listener, hosts) in &outcome.listeners {
            if let Some(of_plan) = plan.listeners.get(*listener) {
                places.push(((outcome.gateway, *listener), hosts, &of_plan.key, address));
            }
        }
    }
    for (at, rule, made) in rules {
        // Most routes hang on one listener, and then nothing is copied.
        let copies = std::iter::repeat_n(made, places.len());
        for ((place, hosts, key, address), mut made) in places.iter().zip(copies) {
            made.key.listener = (*key).clone();
            if let Some(address) = address {
                move_ports(&mut made.filters, *address, settings);
            }
            let made = Arc::new(made);
            for (match_at, one) in rule.matches.iter().enumerate() {
                for host in *hosts {
                    let ranked = Ranked {
                        kind,
                        route: Arc::clone(object),
                        rule: at,
                        at: match_at,
                        entry: Entry {
                            matches: one.clone(),
                            rule: Arc::clone(&made),
                        },
                    };
                    hung.shelves.put(*place, host, ranked);
                }
            }
        }
    }
    let shelves = places
        .iter()
        .flat_map(|(place, hosts, ..)| hosts.iter().map(|host| (*place, host.clone())))
        .collect();
    let policies = clusters.mark(&gateways);
    let remarks = clusters.take_remarks();
    let told = |outcome: &super::attach::Outcome<'_>| {
        let remark = Some(&outcome.remark).filter(|remark| !remark.is_empty());
        let all: Vec<&str> = remark
            .into_iter()
            .chain(&spec.remarks)
            .map(String::as_str)
            .collect();
        all.join("; ")
    };
    let partial = refused.is_none().then(|| partial(spec)).flatten();
    let says = |outcome: &super::attach::Outcome<'_>| {
        let fault = outcome.fault.as_ref().or(refused.as_ref());
        let mut conditions: Vec<Condition> = vec![
            match fault {
                None => Condition::new("Accepted", true, "Accepted", told(outcome), meta.generation),
                fault => condition("Accepted", fault, meta.generation),
            },
            resolved(unresolved.as_ref(), &remarks, meta.generation),
        ];
        if let (None, Some(partial)) = (fault, &partial) {
            conditions.push(Condition::new(
                "PartiallyInvalid",
                true,
                partial.reason,
                partial.message.clone(),
                meta.generation,
            ));
        }
        ParentSays {
            reference: outcome.parent.shown.clone(),
            controller: plans
                .get(outcome.gateway)
                .map(|plan| plan.controller.clone())
                .unwrap_or_default(),
            conditions,
        }
    };
    Made {
        attached,
        shelves,
        clusters: led_to,
        policies,
        gateways,
        ..nothing(outcomes.iter().map(says).collect())
    }
}

/// Why nothing of it is served.
fn refused(object: &Object<HttpRoute>, spec: &HttpRoute) -> Option<Fault> {
    if let Err(unread) = &object.spec {
        return Some(Fault::new("UnsupportedValue", unread.why.clone()));
    }
    if !spec.faults.is_empty() {
        // Left out, a name would open the route to others.
        return Some(Fault::new(
            "UnsupportedValue",
            format!("hostnames: {}", spec.faults.join("; ")),
        ));
    }
    let (reason, why) = spec.rules.first()?.fault.as_ref()?;
    let all = spec.rules.iter().all(|rule| rule.fault.is_some());
    all.then(|| Fault::new(reason, format!("rule 0: {why}")))
}

/// What is left out of a route that is served, in the words that the specification asks for.
fn partial(spec: &HttpRoute) -> Option<Fault> {
    let dropped: Vec<(usize, &(&'static str, String))> = spec
        .rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Some((at, rule.fault.as_ref()?)))
        .collect();
    let (_, (reason, _)) = dropped.first()?;
    let tell = |(at, (_, why)): &(usize, &(&'static str, String))| {
        let readable = spec.rules.get(*at).is_some_and(|rule| !rule.matches.is_empty());
        let answer = if readable {
            " (its requests are answered with 500)"
        } else {
            ""
        };
        format!("Dropped Rule {at}: {why}{answer}")
    };
    let told: Vec<String> = dropped.iter().map(tell).collect();
    Some(Fault::new(reason, told.join("; ")))
}

fn rule(
    kind: Kind,
    meta: &observed::Meta,
    at: usize,
    rule: &HttpRule,
    clusters: &mut Clusters<'_>,
    unresolved: &mut Option<Fault>,
) -> Rule {
    let way = if kind == Kind::GrpcRoute {
        Way::Grpc
    } else {
        Way::Http
    };
    let namespace = &meta.name.namespace;
    let mut broken = None;
    let mut filters = Vec::new();
    for filter in &rule.filters {
        match filter {
            observed::Filter::Ready(filter) => filters.push(filter.clone()),
            observed::Filter::Mirror(mirror) => match clusters.resolve(kind, namespace, &mirror.to, &way) {
                Ok(target) => {
                    clusters.remark_mirror(&target);
                    filters.push(Filter::Mirror(Mirror {
                        to: Backend {
                            weight: 1,
                            target,
                            filters: Vec::new(),
                        },
                        denominator: mirror.denominator,
                        numerator: mirror.numerator,
                    }));
                }
                // What cannot be mirrored is not; the request itself is not touched by it.
                Err(fault) => keep_first(unresolved, fault),
            },
            observed::Filter::Unknown(what) => broken = Some(extension(what, unresolved)),
        }
    }
    let mut backends = Vec::new();
    for backend in &rule.backends {
        let mut own = Vec::new();
        let mut target = match clusters.resolve(kind, namespace, &backend.to, &way) {
            Ok(target) => target,
            Err(fault) => {
                let why = fault.message.clone();
                keep_first(unresolved, fault);
                Target::Broken(why)
            }
        };
        for filter in &backend.filters {
            match filter {
                observed::Filter::Ready(filter) => own.push(filter.clone()),
                observed::Filter::Unknown(what) => target = Target::Broken(extension(what, unresolved)),
                observed::Filter::Mirror(_) => {}
            }
        }
        backends.push(Backend {
            weight: backend.to.weight,
            target,
            filters: own,
        });
    }
    let redirects = filters.iter().any(|filter| matches!(filter, Filter::Redirect(_)));
    let action = match broken {
        // A filter that is not known must not be passed by.
        Some(why) => answer_500(why),
        None if redirects => Action::Answered,
        None => Action::Forward(backends),
    };
    let answered = matches!(action, Action::Answered);
    if !answered {
        filters.retain(|filter| !matches!(filter, Filter::Redirect(_)));
    }
    Rule {
        key: RuleKey {
            listener: ListenerKey {
                workspace: String::new(),
                namespace: String::new(),
                gateway: String::new(),
                listener: String::new(),
            },
            kind: kind.name(),
            namespace: namespace.clone(),
            name: meta.name.name.clone(),
            rule: at,
            section: rule.section.clone(),
        },
        filters,
        action,
        timeouts: rule.timeouts,
        retry: rule.retry.clone(),
        affinity: rule.affinity.clone(),
    }
}

fn answer_500(why: String) -> Action {
    Action::Forward(vec![Backend {
        weight: 1,
        target: Target::Broken(why),
        filters: Vec::new(),
    }])
}

fn extension(what: &str, unresolved: &mut Option<Fault>) -> String {
    let message = format!("filter {what}: no extensions are known");
    keep_first(unresolved, Fault::new("InvalidKind", message.clone()));
    message
}

fn keep_first(place: &mut Option<Fault>, fault: Fault) {
    place.get_or_insert(fault);
}

/// Redirections to a scheme go to its well-known port, which may be listened on elsewhere.
fn move_ports(filters: &mut [Filter], address: IpAddr, settings: &Settings) {
    for filter in filters {
        let port = new_port(filter, address, settings);
        if let (Filter::Redirect(redirect), Some(port)) = (filter, port) {
            redirect.port = Some(port);
        }
    }
}

fn new_port(filter: &Filter, address: IpAddr, settings: &Settings) -> Option<u16> {
    let Filter::Redirect(Redirect {
        scheme: Some(scheme),
        port: None,
        hostname: None,
        ..
    }) = filter
    else {
        return None;
    };
    let known = if scheme == "https" { 443 } else { 80 };
    let bound = settings.bound(SocketAddr::new(address, known)).port();
    (bound != known).then_some(bound)
}
