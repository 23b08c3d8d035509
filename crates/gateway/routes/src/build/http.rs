//! HTTPRoutes and GRPCRoutes: rules for the listeners that they hang on.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::attach::{Hung, attach};
use super::backends::{Clusters, Way};
use super::gateways::{Index, Plan};
use super::precedence::Rank;
use super::{Fault, Scope, condition, resolved};
use crate::observed::{self, HttpRoute, HttpRule, Kind, Object};
use crate::settings::Settings;
use crate::status::{Condition, ParentSays};
use crate::table::{Action, Backend, Entry, Filter, ListenerKey, Mirror, Redirect, Rule, RuleKey, Target};

/// Hangs a route where it belongs, and says what its parents say of it.
pub(super) fn route<'a>(
    scope: Scope<'a>,
    kind: Kind,
    object: &'a Arc<Object<HttpRoute>>,
    plans: &mut [Plan<'_>],
    index: &Index,
    clusters: &mut Clusters<'_>,
    hung: &mut Hung<'a>,
) -> Vec<ParentSays> {
    // Who the parents are cannot be read, so nobody can say anything.
    let Some(spec) = object.known() else {
        return Vec::new();
    };
    let meta = &object.meta;
    let mut outcomes = attach(scope, kind, meta, &spec.parents, &spec.hostnames, plans, index);
    if outcomes.is_empty() {
        return Vec::new();
    }
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
    let mut gateways = BTreeSet::new();
    let mut places = Vec::new();
    for outcome in outcomes.iter().filter(|_| refused.is_none()) {
        gateways.insert(outcome.gateway);
        let listeners = plans.get(outcome.gateway).map(|plan| plan.listeners.as_slice());
        for (listener, hosts) in &outcome.listeners {
            if let Some(plan) = listeners.and_then(|listeners| listeners.get(*listener)) {
                places.push(((outcome.gateway, *listener), hosts, &plan.key));
            }
        }
    }
    for (at, rule, made) in rules {
        // Most routes hang on one listener, and then nothing is copied.
        for ((place, hosts, key), mut made) in places.iter().zip(std::iter::repeat_n(made, places.len())) {
            made.key.listener = (*key).clone();
            let made = Arc::new(made);
            for (match_at, one) in rule.matches.iter().enumerate() {
                for host in *hosts {
                    let entry = Entry {
                        matches: one.clone(),
                        rule: Arc::clone(&made),
                    };
                    hung.http(*place, host, Rank::new(kind, one, meta, at, match_at), entry);
                }
            }
        }
    }
    clusters.mark(&gateways);
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
    outcomes.iter().map(says).collect()
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
                Ok(target) => filters.push(Filter::Mirror(Mirror {
                    to: Backend {
                        weight: 1,
                        target,
                        filters: Vec::new(),
                    },
                    denominator: mirror.denominator,
                    numerator: mirror.numerator,
                })),
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
pub(super) fn moved(mut entries: Vec<Entry>, address: Option<IpAddr>, settings: &Settings) -> Vec<Entry> {
    let Some(address) = address else { return entries };
    for entry in &mut entries {
        let moves = |filter: &Filter| new_port(filter, address, settings).is_some();
        if entry.rule.filters.iter().any(moves) {
            let mut rule = Rule::clone(&entry.rule);
            for filter in &mut rule.filters {
                let port = new_port(filter, address, settings);
                if let (Filter::Redirect(redirect), Some(port)) = (filter, port) {
                    redirect.port = Some(port);
                }
            }
            entry.rule = Arc::new(rule);
        }
    }
    entries
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
