//! What policies come to for the rules of a table. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use fairway_gateway_gatekeeper::RulePlan;
use fairway_gateway_policy::auth::{Added, AuthPlan, Settings, compile as compile_auth};
use fairway_gateway_policy::effective::{self, Effective, Standing, Topology};
use fairway_gateway_policy::limit::{Gaps, compile as compile_limits};
use fairway_gateway_policy::object::{Kind, Policy, PolicyKey};
use fairway_gateway_policy::plan;
use fairway_gateway_policy::status::Problem;
use fairway_gateway_routes::observed::Observed;
use fairway_gateway_routes::table::{Door, Entry, HostPattern, Listener, RuleKey, Table, TlsListener};

const HTTP_ROUTE: &str = "HTTPRoute";
const GRPC_ROUTE: &str = "GRPCRoute";

/// A rule, and a request that leads to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Way {
    pub(crate) rule: RuleKey,
    pub(crate) host: HostPattern,
    pub(crate) entry: Entry,
    pub(crate) is_secure: bool,
    /// Where it is listened on.
    pub(crate) door: SocketAddr,
}

/// What was decided.
#[derive(Default)]
pub(crate) struct Decision {
    /// Rules that are guarded.
    pub(crate) plans: BTreeMap<RuleKey, RulePlan>,
    pub(crate) standing: BTreeMap<PolicyKey, Standing>,
    /// By the policy whose rule it is.
    pub(crate) problems: BTreeMap<PolicyKey, Vec<Problem>>,
    /// Policies that ask nothing.
    pub(crate) idle: BTreeSet<PolicyKey>,
    /// Limits that can count nobody where they are.
    pub(crate) gaps: Gaps,
}

/// The rules that listeners lead to, each once.
pub(crate) fn ways(table: &Table) -> BTreeMap<RuleKey, Way> {
    let mut found = BTreeMap::new();
    let mut take = |door: SocketAddr, listener: &Listener, is_secure: bool| {
        for (host, entries) in listener.routes.iter() {
            for entry in entries.iter() {
                let rule = entry.rule.key.clone();
                found.entry(rule.clone()).or_insert_with(|| Way {
                    rule,
                    host: host.clone(),
                    entry: entry.clone(),
                    is_secure,
                    door,
                });
            }
        }
    };
    for (at, door) in &table.doors {
        match door {
            Door::Http(listeners) => listeners.iter().for_each(|(_, it)| take(*at, it, false)),
            Door::Tls(listeners) => {
                for (_, listener) in listeners.iter() {
                    if let TlsListener::Terminate { http, .. } = &**listener {
                        take(*at, http, true);
                    }
                }
            }
            Door::Tcp(_) => {}
        }
    }
    found
}

/// Decides about the policies that guard rules.
pub(crate) fn decide(policies: &[&Policy], observed: &Observed, ways: &BTreeMap<RuleKey, Way>) -> Decision {
    let idle = policies.iter().filter(|policy| policy.asks_nothing());
    let mut decision = Decision {
        idle: idle.map(|policy| policy.key.clone()).collect(),
        ..Decision::default()
    };
    let workspaces: BTreeSet<&str> = policies.iter().map(|it| it.key.workspace.as_str()).collect();
    for workspace in workspaces {
        let topology = topology(workspace, observed, ways);
        let of_kind = |kind: Kind| -> Vec<Policy> {
            let own = policies.iter().filter(|it| it.key.workspace == workspace);
            own.filter(|it| it.key.kind == kind)
                .map(|it| (*it).clone())
                .collect()
        };
        let (auth, limits) = (of_kind(Kind::AuthPolicy), of_kind(Kind::RateLimitPolicy));
        let tiers = of_kind(Kind::PlanPolicy);
        let auth = effective::decide(&auth, &topology);
        let limits = effective::decide(&limits, &topology);
        let mut compiled = Compiled::default();
        for path in &topology.paths {
            let auth =
                (auth.effective.get(path)).map(|effective| compiled.of(effective, &plan::data(&tiers, path)));
            let limits =
                (limits.effective.get(path)).map(|effective| Arc::new(compile_limits(effective, path)));
            if auth.is_none() && limits.is_none() {
                continue;
            }
            if let Some(limits) = &limits {
                decision.gaps.look(limits, auth.as_deref(), path);
            }
            let of_auth = auth.iter().flat_map(|plan| &plan.problems);
            let of_limits = limits.iter().flat_map(|plan| &plan.problems);
            for problem in of_auth.chain(of_limits) {
                decision.blame(problem.clone());
            }
            decision.plans.insert(path.clone(), RulePlan { auth, limits });
        }
        decision.standing.extend(auth.standing);
        decision.standing.extend(limits.standing);
    }
    decision
}

/// Plans of rules that the same policies guard: mostly those of a Gateway guard all that there are, and to compile is work.
#[derive(Default)]
struct Compiled<'e> {
    by_sources: HashMap<Sources<'e>, Vec<Known<'e>>>,
}

/// Who says something, and who cannot be understood.
type Sources<'e> = (&'e [PolicyKey], &'e [(PolicyKey, String)]);

/// What they come to, the PlanPolicy that adds to it, and its plan.
type Known<'e> = (&'e Effective, Option<PolicyKey>, Arc<AuthPlan>);

impl<'e> Compiled<'e> {
    fn of(&mut self, effective: &'e Effective, added: &[Added]) -> Arc<AuthPlan> {
        let sources = (effective.sources.as_slice(), effective.broken.as_slice());
        let alike = self.by_sources.entry(sources).or_default();
        let adds = added.first().map(|added| &added.policy);
        let known = alike
            .iter()
            .find(|(other, by, _)| by.as_ref() == adds && *other == effective);
        if let Some((.., plan)) = known {
            return Arc::clone(plan);
        }
        let plan = Arc::new(compile_auth(effective, added, &Settings::default()));
        alike.push((effective, adds.cloned(), Arc::clone(&plan)));
        plan
    }
}

impl Decision {
    pub(crate) fn blame(&mut self, problem: Problem) {
        let known = self.problems.entry(problem.policy.clone()).or_default();
        if !known.contains(&problem) {
            known.push(problem);
        }
    }
}

fn topology(workspace: &str, observed: &Observed, ways: &BTreeMap<RuleKey, Way>) -> Topology {
    let mut topology = Topology::default();
    if let Some(held) = observed.workspaces.get(workspace) {
        for (name, gateway) in held.gateways.iter() {
            let listeners = gateway
                .known()
                .map(|it| it.listeners.as_slice())
                .unwrap_or_default();
            topology.gateways.insert(
                (name.namespace.clone(), name.name.clone()),
                listeners.iter().map(|it| it.name.clone()).collect(),
            );
        }
        for (name, route) in held.http_routes.iter() {
            let rules = route.known().map(|it| it.rules.as_slice()).unwrap_or_default();
            // A rule without a name is called by its place.
            let names = rules
                .iter()
                .enumerate()
                .map(|(at, rule)| rule.section.clone().unwrap_or_else(|| format!("rule-{}", at + 1)));
            topology
                .routes
                .insert((name.namespace.clone(), name.name.clone()), names.collect());
        }
    }
    let own = ways.keys().filter(|rule| rule.listener.workspace == workspace);
    // OpenShift's Routes hang on no Gateway; everything else does, and a Gateway's policies guard all of it.
    let of_gateways = own.filter(|rule| [HTTP_ROUTE, GRPC_ROUTE].contains(&rule.kind));
    topology.paths = of_gateways.cloned().collect();
    topology
}

#[cfg(test)]
pub(super) mod tests;
