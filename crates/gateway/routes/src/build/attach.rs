//! Which listeners a route hangs on, under which host names, and what is hung there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gateways::{Index, ListenerPlan, Plan};
use super::mixed::Mixed;
use super::shelves::Shelves;
use super::{Fault, Scope};
use crate::hostname;
use crate::observed::{From, Kind, Meta, ParentRef};
use crate::table::{Forward, HostPattern};

/// What became of one `parentRefs` entry that names a Gateway of ours.
pub(super) struct Outcome<'a> {
    pub(super) parent: &'a ParentRef,
    pub(super) gateway: usize,
    /// Listeners by their place in the Gateway, with the host names under which the route is reached there.
    pub(super) listeners: Vec<(usize, Vec<HostPattern>)>,
    /// Why there is none.
    pub(super) fault: Option<Fault>,
    /// What is not as it was asked for, although there are some.
    pub(super) remark: String,
}

/// A parent that is no Gateway, is not there or belongs to somebody else gets no outcome: it is not ours to judge.
pub(super) fn attach<'a>(
    scope: Scope<'_>,
    kind: Kind,
    meta: &Meta,
    parents: &'a [ParentRef],
    hostnames: &[HostPattern],
    plans: &mut [Plan<'_>],
    index: &Index,
) -> Vec<Outcome<'a>> {
    let mut counted = BTreeSet::new();
    let mut outcomes = Vec::new();
    for parent in parents.iter().filter(|parent| parent.is_gateway()) {
        let Some(gateway) = index.get(scope, &parent.name) else {
            continue;
        };
        let Some(plan) = plans.get_mut(gateway) else {
            continue;
        };
        let mut outcome = judge(scope, kind, meta, parent, hostnames, plan, gateway);
        // Named twice, it still hangs there once.
        outcome.listeners.retain(|(at, _)| counted.insert((gateway, *at)));
        for (at, _) in &outcome.listeners {
            if let Some(listener) = plan.listeners.get_mut(*at) {
                listener.attached += 1;
            }
        }
        outcomes.push(outcome);
    }
    outcomes
}

/// A route that is as it was is counted where it was.
pub(super) fn again(places: &[Place], plans: &mut [Plan<'_>]) {
    for (gateway, at) in places {
        let plan = plans.get_mut(*gateway);
        if let Some(listener) = plan.and_then(|plan| plan.listeners.get_mut(*at)) {
            listener.attached += 1;
        }
    }
}

fn judge<'a>(
    scope: Scope<'_>,
    kind: Kind,
    meta: &Meta,
    parent: &'a ParentRef,
    hostnames: &[HostPattern],
    plan: &Plan<'_>,
    gateway: usize,
) -> Outcome<'a> {
    let named = |listener: &ListenerPlan<'_>| {
        parent
            .section
            .as_ref()
            .is_none_or(|section| *section == listener.spec.name)
            && parent.port.is_none_or(|port| port == listener.spec.port)
    };
    let mut fault: Option<Fault> = None;
    let mut listeners = Vec::new();
    for (at, listener) in plan
        .listeners
        .iter()
        .enumerate()
        .filter(|(_, listener)| named(listener))
    {
        if let Err(why) = allowed(scope, kind, meta, plan, listener) {
            let is_worse = |known: &Fault| known.reason == "NoMatchingListenerHostname";
            if !fault.as_ref().is_some_and(is_worse) {
                fault = Some(Fault::new("NotAllowedByListeners", why));
            }
            continue;
        }
        let common = common(&listener.host, hostnames);
        if common.is_empty() {
            let message = format!(
                "no host name of the route is one of listener {:?}",
                listener.spec.name
            );
            fault = Some(Fault::new("NoMatchingListenerHostname", message));
        } else {
            listeners.push((at, common));
        }
    }
    let unnamed = || {
        let message = format!(
            "Gateway {} has no listener that sectionName and port name",
            parent.name
        );
        Fault::new("NoMatchingParent", message)
    };
    Outcome {
        parent,
        gateway,
        fault: (listeners.is_empty()).then(|| fault.unwrap_or_else(unnamed)),
        remark: String::new(),
        listeners,
    }
}

fn allowed(
    scope: Scope<'_>,
    kind: Kind,
    meta: &Meta,
    plan: &Plan<'_>,
    listener: &ListenerPlan<'_>,
) -> Result<(), String> {
    let name = &listener.spec.name;
    if !listener.kinds.contains(&kind) {
        return Err(format!("listener {name:?} takes no {}", kind.name()));
    }
    let namespace = &meta.name.namespace;
    let welcome = match &listener.spec.allowed.from {
        From::All => true,
        From::Same => *namespace == plan.meta.name.namespace,
        From::Selector(selector) => scope
            .held
            .namespaces
            .get(namespace)
            .is_some_and(|labels| selector.matches(labels)),
        From::Nobody(why) => return Err(format!("listener {name:?}: {why}")),
    };
    if welcome {
        Ok(())
    } else {
        Err(format!(
            "listener {name:?} takes no routes of namespace {namespace:?}"
        ))
    }
}

fn common(listener: &HostPattern, route: &[HostPattern]) -> Vec<HostPattern> {
    if route.is_empty() {
        return vec![listener.clone()];
    }
    let mut common: Vec<HostPattern> = Vec::new();
    for name in route
        .iter()
        .filter_map(|name| hostname::intersect(listener, name))
    {
        if !common.contains(&name) {
            common.push(name);
        }
    }
    common
}

/// A listener by its Gateway's and its own place.
pub(super) type Place = (usize, usize);

/// What hangs on listeners, until all of it is there and can be put in order.
#[derive(Default)]
pub(super) struct Hung<'a> {
    pub(super) mixed: Mixed,
    /// Of HTTPRoutes and GRPCRoutes.
    pub(super) shelves: Shelves,
    streams: BTreeMap<Place, Vec<Stream<'a>>>,
}

struct Stream<'a> {
    meta: &'a Meta,
    host: HostPattern,
    forward: Arc<Forward>,
}

impl<'a> Hung<'a> {
    pub(super) fn new(shelves: Shelves, is_mixed: bool) -> Self {
        let mut hung = Self {
            shelves,
            ..Self::default()
        };
        hung.mixed.needed = is_mixed;
        hung
    }

    pub(super) fn stream(&mut self, place: Place, host: HostPattern, meta: &'a Meta, forward: Arc<Forward>) {
        self.streams
            .entry(place)
            .or_default()
            .push(Stream { meta, host, forward });
    }

    /// What is on the shelves comes back, for the next build.
    pub(super) fn onto(mut self, plans: &mut [Plan<'_>]) -> Shelves {
        self.shelves.onto(plans);
        for ((gateway, at), mut streams) in self.streams {
            let Some(listener) = plans.get_mut(gateway).and_then(|plan| plan.listeners.get_mut(at)) else {
                continue;
            };
            // Of two routes with one name the older is served.
            streams.sort_by(|one, two| one.meta.age().cmp(&two.meta.age()));
            for Stream { host, forward, .. } in streams {
                listener.streams.entry(host).or_insert(forward);
            }
        }
        self.shelves
    }
}
