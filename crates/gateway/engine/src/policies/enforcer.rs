//! Guards of rules: kept while their policies say the same, so that counters and keys outlive a change of something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_gateway_gatekeeper::{Gatekeeper, Outside, RuleGuard, RulePlan, Settings};
use fairway_gateway_guard::Guard;
use fairway_gateway_policy::status::Problem;
use fairway_gateway_routes::table::RuleKey;

use super::cluster::Api;
use super::decide::Decision;
use super::held::Held;
use crate::plane::{Guards, Protection};
use fairway_controller::Clients;
use fairway_outbound::Outbound;

/// Holds the guards.
pub(crate) struct Enforcer {
    pub(crate) gatekeeper: Arc<Gatekeeper>,
    guards: BTreeMap<RuleKey, Kept>,
}

struct Kept {
    plan: RulePlan,
    guard: Arc<RuleGuard>,
    problems: Vec<Problem>,
}

impl Enforcer {
    pub(crate) fn new(clients: Clients, outbound: Arc<Outbound>) -> Self {
        let outside = Outside::new(outbound, Arc::new(Api::new(clients)));
        Self {
            gatekeeper: Arc::new(Gatekeeper::new(outside, Settings::default())),
            guards: BTreeMap::new(),
        }
    }

    /// Takes in Secrets that have changed.
    pub(crate) fn take_secrets(&self, held: &Held) {
        for (workspace, secrets) in held.seen().take_secrets() {
            self.gatekeeper.set_secrets(&workspace, secrets);
        }
    }

    /// Makes the guards that a decision asks for. `false`: they are those that there were. What a guard finds wrong is added to
    /// the decision.
    pub(crate) fn take(&mut self, decision: &mut Decision) -> bool {
        let mut changed = self.guards.len() != decision.plans.len();
        let mut guards = BTreeMap::new();
        for (rule, plan) in &decision.plans {
            let same = (self.guards.remove(rule)).filter(|kept| is_same(&kept.plan, plan));
            let kept = same.unwrap_or_else(|| {
                changed = true;
                let (guard, problems) = self.gatekeeper.guard(plan.clone());
                Kept {
                    plan: plan.clone(),
                    guard,
                    problems,
                }
            });
            guards.insert(rule.clone(), kept);
        }
        self.guards = guards;
        for problem in self.guards.values().flat_map(|kept| &kept.problems) {
            decision.blame(problem.clone());
        }
        changed
    }

    /// For the data plane.
    pub(crate) fn guards(&self) -> Guards {
        let all = self.guards.iter();
        all.map(|(rule, kept)| {
            let guard: Arc<dyn Guard> = Arc::clone(&kept.guard) as Arc<dyn Guard>;
            (rule.clone(), Protection::Guarded(guard))
        })
        .collect()
    }

    /// The plans and guards of rules, for probes.
    pub(crate) fn kept(&self) -> BTreeMap<RuleKey, (RulePlan, Arc<RuleGuard>)> {
        let all = self.guards.iter();
        all.map(|(rule, kept)| (rule.clone(), (kept.plan.clone(), Arc::clone(&kept.guard))))
            .collect()
    }
}

fn is_same(one: &RulePlan, other: &RulePlan) -> bool {
    one.auth == other.auth && one.limits == other.limits
}
