//! What was made of HTTPRoutes and GRPCRoutes, for the next build: there may be thousands, and mostly one has changed.
//!
//! A route is made anew if it has changed itself, and all routes of a workspace if anything has that they may refer to or hang on: a
//! Gateway, a grant, a Service with its slices, a policy. That is simple to be sure of, and quick enough where it happens.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::Scope;
use super::attach::Place;
use super::gateways::Plan;
use super::shelves::Shelves;
use crate::observed::{
    Authorities, BackendTlsPolicy, Gateway, Grant, HttpRoute, Kind, Name, Object, Objects, Service, SlicesOf,
};
use crate::settings::{Binding, Settings};
use crate::status::Status;
use crate::table::{Cluster, HostPattern};

/// What one build keeps for the next.
#[derive(Debug, Default)]
pub struct Memo {
    /// By workspace.
    kept: BTreeMap<String, Kept>,
    /// Routes that the latest build had to make.
    pub(super) made: usize,
}

impl Memo {
    /// HTTPRoutes and GRPCRoutes that the latest build had to make; the others are as they were.
    pub fn made(&self) -> usize {
        self.made
    }

    /// What still holds of what was kept for a workspace.
    pub(super) fn take(&mut self, workspace: &str, basis: &Basis) -> Kept {
        let kept = self.kept.remove(workspace);
        kept.filter(|kept| (kept.basis.as_ref()).is_some_and(|before| before.is_same(basis)))
            .unwrap_or_default()
    }

    /// Keeps what was made, for the next build.
    pub(super) fn keep(&mut self, workspace: &str, basis: Basis, routes: Vec<Made>, shelves: Shelves) {
        if basis.is_mixed {
            return;
        }
        let kept = Kept {
            basis: Some(basis),
            routes,
            shelves,
        };
        self.kept.insert(workspace.to_owned(), kept);
    }

    /// Forgets workspaces that there are no longer.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.kept.retain(|workspace, _| is_there(workspace));
    }
}

/// What is kept of one workspace.
#[derive(Debug, Default)]
pub(super) struct Kept {
    basis: Option<Basis>,
    /// By kind and name.
    routes: Vec<Made>,
    pub(super) shelves: Shelves,
}

/// What was made of one route.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) kind: Kind,
    pub(super) route: Arc<Object<HttpRoute>>,
    pub(super) status: Arc<Status>,
    /// The listeners that count it.
    pub(super) attached: Vec<Place>,
    /// Where its entries hang.
    pub(super) shelves: Vec<(Place, HostPattern)>,
    /// What it leads to.
    pub(super) clusters: Vec<Arc<Cluster>>,
    /// BackendTLSPolicies that are asked for it, and the Gateways that serve it.
    pub(super) policies: BTreeSet<Name>,
    pub(super) gateways: BTreeSet<usize>,
}

impl Made {
    fn order(&self) -> (Kind, &Name) {
        (self.kind, &self.route.meta.name)
    }
}

/// What is to be done with the routes of a workspace.
pub(super) enum Todo<'a> {
    /// It is as it was.
    Keep(Made),
    Make(Kind, &'a Arc<Object<HttpRoute>>),
}

impl Todo<'_> {
    /// The oldest comes first.
    pub(super) fn age(&self) -> ((&str, &Name), Kind) {
        match self {
            Self::Keep(made) => (made.route.meta.age(), made.kind),
            Self::Make(kind, route) => (route.meta.age(), *kind),
        }
    }
}

impl Kept {
    /// Compares with the routes that there are, which come by kind and name. What is not as it was is forgotten.
    pub(super) fn compare<'a>(
        &mut self,
        routes: impl Iterator<Item = (Kind, &'a Arc<Object<HttpRoute>>)>,
    ) -> Vec<Todo<'a>> {
        let mut before = std::mem::take(&mut self.routes).into_iter().peekable();
        let (mut todo, mut gone) = (Vec::new(), Vec::new());
        for (kind, route) in routes {
            let order = (kind, &route.meta.name);
            let is_kept = |made: &Made| made.kind == kind && Arc::ptr_eq(&made.route, route);
            // The first look costs no comparison of names.
            let mut kept = before.next_if(is_kept);
            while kept.is_none()
                && let Some(old) = before.next_if(|made| made.order() <= order)
            {
                match is_kept(&old) {
                    true => kept = Some(old),
                    false => gone.push(old),
                }
            }
            todo.push(kept.map_or(Todo::Make(kind, route), Todo::Keep));
        }
        gone.extend(before);
        let routes: HashSet<_> = gone.iter().map(|made| Arc::as_ptr(&made.route)).collect();
        let shelves = gone.iter().flat_map(|made| &made.shelves);
        self.shelves.clear(shelves, &routes);
        todo
    }
}

/// Everything that routes of a workspace are made of beside themselves.
#[derive(Debug)]
pub(super) struct Basis {
    gateways: Objects<Gateway>,
    namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    grants: Objects<Grant>,
    services: Objects<Service>,
    slices_of: Arc<SlicesOf>,
    policies: Objects<BackendTlsPolicy>,
    config_maps: Objects<Authorities>,
    plans: Vec<OfPlan>,
    bindings: BTreeMap<SocketAddr, Binding>,
    /// There are routes of both kinds. The oldest has a host name then, and what becomes of a route is a matter of all others.
    pub(super) is_mixed: bool,
}

/// What a route can see of a Gateway that is not in the Gateway.
#[derive(Debug, PartialEq)]
struct OfPlan {
    at: usize,
    name: Name,
    controller: String,
    addresses: Vec<IpAddr>,
    /// Of each listener.
    served: Vec<bool>,
}

impl Basis {
    pub(super) fn of(scope: Scope<'_>, plans: &[Plan<'_>], settings: &Settings) -> Self {
        let held = scope.held;
        let own = (plans.iter().enumerate()).filter(|(_, plan)| plan.workspace == scope.id);
        let plans = own.map(|(at, plan)| OfPlan {
            at,
            name: plan.meta.name.clone(),
            controller: plan.controller.clone(),
            addresses: plan.addresses.clone(),
            served: plan.listeners.iter().map(|listener| listener.served()).collect(),
        });
        Self {
            gateways: Arc::clone(&held.gateways),
            namespaces: Arc::clone(&held.namespaces),
            grants: Arc::clone(&held.grants),
            services: Arc::clone(&held.services),
            slices_of: Arc::clone(&held.slices_of),
            policies: Arc::clone(&held.backend_tls_policies),
            config_maps: Arc::clone(&held.config_maps),
            plans: plans.collect(),
            bindings: settings.bindings.clone(),
            is_mixed: !held.http_routes.is_empty() && !held.grpc_routes.is_empty(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gateways, &other.gateways)
            && Arc::ptr_eq(&self.namespaces, &other.namespaces)
            && Arc::ptr_eq(&self.grants, &other.grants)
            && Arc::ptr_eq(&self.services, &other.services)
            && Arc::ptr_eq(&self.slices_of, &other.slices_of)
            && Arc::ptr_eq(&self.policies, &other.policies)
            && Arc::ptr_eq(&self.config_maps, &other.config_maps)
            && self.plans == other.plans
            && self.bindings == other.bindings
            && !self.is_mixed
            && !other.is_mixed
    }
}
