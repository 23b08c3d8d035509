//! Guards of rules: kept while their policies say the same, so that counters and keys outlive a change of something else.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fairway_gateway_gatekeeper::{FailureMode, Gatekeeper, Outside, Realms, RuleGuard, RulePlan, Settings};
use fairway_gateway_guard::Guard;
use fairway_gateway_policy::status::Problem;
use fairway_gateway_routes::table::RuleKey;

use super::cluster::Api;
use super::decide::Decision;
use super::held::Held;
use crate::plane::{Guards, Protection};
use fairway_controller::{Clients, Shutdown};
use fairway_outbound::Outbound;

/// How often guards forget what they no longer need.
pub(crate) const SWEEP: Duration = Duration::from_secs(10);

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
    pub(crate) fn new(
        clients: Clients,
        (outbound, realms): (Arc<Outbound>, Arc<dyn Realms>),
        refuse_uncounted: bool,
    ) -> Self {
        let outside = Outside::new(outbound, Arc::new(Api::new(clients)), realms);
        let settings = Settings {
            rate_limit_failure: match refuse_uncounted {
                true => FailureMode::Deny,
                false => FailureMode::Allow,
            },
            ..Settings::default()
        };
        Self {
            gatekeeper: Arc::new(Gatekeeper::new(outside, settings)),
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
        let (mut guards, mut compared) = (BTreeMap::new(), Compared::default());
        for (rule, plan) in &decision.plans {
            let same = (self.guards.remove(rule)).filter(|kept| compared.are_same(&kept.plan, plan));
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

/// Has guards forget now and then what time has passed: counters, answers, tokens. Until the end.
pub(crate) async fn sweep(gatekeeper: Arc<Gatekeeper>, every: Duration, mut shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = shutdown.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
        let now = jiff::Timestamp::now().as_nanosecond();
        gatekeeper.sweep(u128::try_from(now).unwrap_or_default());
    }
}

/// Plans for authentication that were compared, by their places in memory: of thousands of rules most share one, before and now.
#[derive(Default)]
struct Compared {
    auth: HashMap<(usize, usize), bool>,
}

impl Compared {
    fn are_same(&mut self, one: &RulePlan, other: &RulePlan) -> bool {
        let same_auth = match (&one.auth, &other.auth) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                let places = (Arc::as_ptr(one).addr(), Arc::as_ptr(other).addr());
                *self.auth.entry(places).or_insert_with(|| one == other)
            }
            _ => false,
        };
        same_auth && one.limits == other.limits
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use fairway_controller::fake::Script;
    use fairway_gateway_gatekeeper::NoRealms;
    use fairway_gateway_guard::{Asked, Judgement};
    use fairway_gateway_policy::object::{Kind, Policy};
    use fairway_outbound::AllowedHosts;
    use http::{HeaderMap, Method, Uri, Version};
    use serde_json::json;

    use super::super::decide::{decide, tests::built, ways};
    use super::*;

    #[tokio::test]
    async fn counters_whose_time_has_passed_are_forgotten() {
        let outbound = Arc::new(Outbound::new(AllowedHosts::parse("").unwrap()));
        let outside = (outbound, Arc::new(NoRealms) as Arc<dyn Realms>);
        let mut enforcer = Enforcer::new(Script::new().clients(), outside, false);
        let rules = json!([{"backendRefs": [{"name": "backend", "port": 8080}]}]);
        let (observed, table) = built(fairway_gateway_routes::Kind::HttpRoute, &rules);
        let policy = json!({
            "metadata": {"namespace": "n", "name": "few"},
            "spec": {
                "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"},
                "limits": {"few": {"rates": [{"limit": 1, "window": "1m"}]}},
            },
        });
        let policy = Policy::read("tenant", Kind::RateLimitPolicy, &policy);
        let mut decision = decide(&[&policy], &observed, &ways(&table));
        enforcer.take(&mut decision);
        let (_, guard) = enforcer.kept().into_values().next().unwrap();
        let asked = Asked {
            method: &Method::GET,
            uri: &Uri::from_static("http://a/"),
            host: "a",
            scheme: "http",
            version: Version::HTTP_11,
            headers: &HeaderMap::new(),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            client_port: 1,
            door: ([192, 0, 2, 1], 443).into(),
            id: "1",
            // Long ago.
            now: 1,
            probe: false,
        };
        if let Judgement::Later(verdict) = guard.judge(&asked) {
            verdict.await;
        }
        // As of then it is running.
        assert_eq!(enforcer.gatekeeper.counters(1).len(), 1);
        let (_end, shutdown) = Shutdown::new();
        let sweeping = sweep(
            Arc::clone(&enforcer.gatekeeper),
            Duration::from_millis(1),
            shutdown,
        );
        let forgotten = async {
            while !enforcer.gatekeeper.counters(1).is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = sweeping => unreachable!("nobody has ended it"),
            () = forgotten => {}
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("the counter is still there"),
        }
    }
}
