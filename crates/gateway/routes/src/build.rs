//! From what was observed to what is served, and to what everybody is told about it.
//!
//! ```text
//! gateways   each Gateway by itself: class, addresses, listeners, certificates
//! doors      who gets which address, port and host name: who had it, then the oldest; OpenShift's Routes take part
//! attach     which listeners a route hangs on, and under which host names
//! http, stream, openshift   rules, in order of precedence; backends resolve references on the way
//! memo, shelves   what the build before made of routes, and where it hung
//! policies   BackendTLSPolicies: which applies where, and what their ancestors say
//! ```

mod attach;
mod backends;
mod doors;
mod features;
mod gateway_status;
mod gateways;
mod http;
mod memo;
mod mixed;
mod openshift;
mod policies;
mod precedence;
mod shelves;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::observed::{Kind, Name, Observed, Workspace};
use crate::settings::Settings;
use crate::status::{Condition, ParentSays, Says, Status};
use crate::table::Table;
use memo::Todo;

pub use doors::{Holders, Holding};
pub use features::FEATURES;
pub use memo::Memo;

/// What a build yields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Built {
    pub table: Table,
    /// Of every object that has one here, also if it has not changed: the writer compares.
    pub statuses: Vec<Arc<Status>>,
    /// Every address and port that somebody asks for, as they are asked for: what [`Settings::bindings`] is to tell about. The
    /// doors of the table are where they are listened on.
    pub wanted: BTreeSet<SocketAddr>,
    /// For the next build's [`Settings::holders`].
    pub holders: Holders,
}

/// A workspace by its id. All references are followed through one of these, so none leaves its workspace.
#[derive(Clone, Copy)]
struct Scope<'a> {
    id: &'a str,
    held: &'a Workspace,
}

/// The same observation and settings always yield the same.
pub fn build(observed: &Observed, settings: &Settings) -> Built {
    build_with(observed, settings, &mut Memo::default())
}

/// The same, and quicker where little has changed since the build that left this memo; what has not is the same in memory.
pub fn build_with(observed: &Observed, settings: &Settings, memo: &mut Memo) -> Built {
    memo.made = 0;
    memo.retain(|workspace| observed.workspaces.contains_key(workspace));
    let mut built = Built::default();
    let mut plans: Vec<gateways::Plan<'_>> = Vec::new();
    for (id, held) in &observed.workspaces {
        let scope = Scope { id, held };
        let classes = gateways::classes(scope, settings);
        let classes_say = gateways::class_statuses(scope, settings);
        built.statuses.extend(classes_say.into_iter().map(Arc::new));
        plans.extend(gateways::plans(scope, &classes, settings));
    }
    let mut routes = openshift::plans(observed, settings);
    (built.wanted, built.holders) = doors::settle(&mut plans, &mut routes, settings);
    let index = gateways::Index::of(&plans);
    for (id, held) in &observed.workspaces {
        let scope = Scope { id, held };
        workspace(scope, settings, (&mut plans, &index), (&mut built, memo));
    }
    openshift::serve(observed, &routes, &plans, settings, &mut built);
    gateway_status::finish(&mut plans, observed, settings, &mut built);
    built.statuses.sort_by(|one, two| place(one).cmp(&place(two)));
    built
}

/// The routes and policies of one workspace.
fn workspace(
    scope: Scope<'_>,
    settings: &Settings,
    (plans, index): (&mut [gateways::Plan<'_>], &gateways::Index),
    (built, memo): (&mut Built, &mut Memo),
) {
    let policies = policies::Policies::of(scope);
    let mut clusters = backends::Clusters::new(scope, &policies, plans);
    let basis = memo::Basis::of(scope, plans, settings);
    let http = (scope.held.http_routes.values()).map(|route| (Kind::HttpRoute, route));
    let grpc = (scope.held.grpc_routes.values()).map(|route| (Kind::GrpcRoute, route));
    let mut kept = memo.take(scope.id, &basis);
    let mut todo = kept.compare(http.chain(grpc));
    let mut hung = attach::Hung::new(std::mem::take(&mut kept.shelves), basis.is_mixed);
    if basis.is_mixed {
        // The older has the host name.
        todo.sort_by(|one, two| one.age().cmp(&two.age()));
    }
    // What is as it was goes first: others that lead to the same cluster find it.
    for one in &todo {
        if let Todo::Keep(made) = one {
            attach::again(&made.attached, plans);
            clusters.again(made);
        }
    }
    let mut routes = Vec::with_capacity(todo.len());
    for one in todo {
        let made = match one {
            Todo::Keep(made) => made,
            Todo::Make(kind, route) => {
                memo.made += 1;
                let route = (kind, route);
                http::route(scope, route, (plans, index), settings, &mut clusters, &mut hung)
            }
        };
        built.statuses.push(Arc::clone(&made.status));
        routes.push(made);
    }
    for (kind, routes) in [
        (Kind::TlsRoute, &scope.held.tls_routes),
        (Kind::TcpRoute, &scope.held.tcp_routes),
    ] {
        for route in routes.values() {
            let parents = stream::route(scope, kind, route, plans, index, &mut clusters, &mut hung);
            let status = route_status(scope, kind, &route.meta.name, parents);
            built.statuses.push(Arc::new(status));
        }
    }
    let (served, used) = clusters.finish();
    built.table.clusters.extend(served);
    let policies_say = policies.statuses(scope, plans, &used);
    built.statuses.extend(policies_say.into_iter().map(Arc::new));
    let shelves = hung.onto(plans);
    memo.keep(scope.id, basis, routes, shelves);
}

fn place(status: &Status) -> (&str, Kind, &Name) {
    (&status.workspace, status.kind, &status.name)
}

fn route_status(scope: Scope<'_>, kind: Kind, name: &Name, parents: Vec<ParentSays>) -> Status {
    Status {
        workspace: scope.id.to_owned(),
        kind,
        name: name.clone(),
        says: Says::Parents(parents),
    }
}

/// What is wrong, as a condition says it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    reason: &'static str,
    message: String,
}

impl Fault {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// True with its own name as the reason, or false with the fault's.
fn condition(kind: &'static str, fault: Option<&Fault>, generation: i64) -> Condition {
    match fault {
        None => Condition::new(kind, true, kind, "", generation),
        Some(fault) => Condition::new(kind, false, fault.reason, fault.message.clone(), generation),
    }
}

/// Whether a route's references resolve, with remarks on what they lead to.
fn resolved(unresolved: Option<&Fault>, remarks: &str, generation: i64) -> Condition {
    match unresolved {
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs", remarks, generation),
        fault => condition("ResolvedRefs", fault, generation),
    }
}

/// Whether a reference from `kind` in `namespace` may lead to `to`: within a namespace always, else by a grant there.
fn permitted(scope: Scope<'_>, kind: Kind, namespace: &str, to: &crate::observed::ObjectRef) -> bool {
    if to.name.namespace == namespace {
        return true;
    }
    let first = Name::new(&to.name.namespace, "");
    scope
        .held
        .grants
        .range(first..)
        .take_while(|(name, _)| name.namespace == to.name.namespace)
        .filter_map(|(_, grant)| grant.spec.as_ref().ok())
        .any(|grant| grant.allows(kind, namespace, to))
}

type ByName<T> = BTreeMap<Name, T>;
