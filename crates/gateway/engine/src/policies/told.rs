//! What policies are told.

use std::collections::BTreeMap;
use std::time::Duration;

use fairway_gateway_gatekeeper::RuleGuard;
use fairway_gateway_policy::effective::Standing;
use fairway_gateway_policy::object::{Kind, PolicyKey};
use fairway_gateway_policy::plan;
use fairway_gateway_policy::status::{Condition, DataPlane as Known, component, conditions};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::held::{One, Seen};
use super::probe::refuses;
use super::prober::Round;
use crate::plane::DataPlane;

/// How long a probe may take: what a policy asks on the way is a tenant's server.
const PROBE: Duration = Duration::from_millis(500);
/// How long all probes of a workspace may take.
const WORKSPACE: Duration = Duration::from_secs(1);
/// Workspaces that are probed at the same time.
const AT_ONCE: usize = 32;

type Conditions = BTreeMap<PolicyKey, Vec<Condition>>;

/// The conditions of every policy that guards rules, after the data plane has taken the guards over; and whether every probe
/// had its answer in time. What had none is not proven. Workspaces do not wait for each other.
pub(super) async fn conditions_of(plane: &dyn DataPlane, round: &Round) -> (Conditions, bool) {
    let mut workspaces: BTreeMap<&str, Vec<(&PolicyKey, &Standing)>> = BTreeMap::new();
    for (key, standing) in &round.decision.standing {
        let own = workspaces.entry(&key.workspace).or_default();
        own.push((key, standing));
    }
    let each: Vec<_> = (workspaces.into_values())
        .map(|policies| of_workspace(plane, round, policies).boxed())
        .collect();
    let mut each = futures::stream::iter(each).buffer_unordered(AT_ONCE);
    let (mut found, mut is_whole) = (Conditions::new(), true);
    while let Some((conditions, whole)) = each.next().await {
        found.extend(conditions);
        is_whole &= whole;
    }
    (found, is_whole)
}

async fn of_workspace(
    plane: &dyn DataPlane,
    round: &Round,
    policies: Vec<(&PolicyKey, &Standing)>,
) -> (Conditions, bool) {
    let until = Instant::now() + WORKSPACE;
    let (mut found, mut is_whole) = (Conditions::new(), true);
    for (key, standing) in policies {
        let mut known = Known {
            asks_nothing: round.decision.idle.contains(key),
            ..Known::default()
        };
        if let Standing::Attached { affects, .. } = standing {
            for rule in affects {
                let (Some(way), Some((plan, guard))) = (round.ways.get(rule), round.guards.get(rule)) else {
                    known.waiting_for.push(component(rule));
                    continue;
                };
                let promises = match key.kind {
                    Kind::AuthPolicy => plan.auth.as_ref().is_some_and(|plan| plan.refuses_strangers()),
                    _ => plan.limits.as_ref().is_some_and(|plan| !plan.limits.is_empty()),
                };
                if promises {
                    let until = until.min(Instant::now() + PROBE);
                    let refused = timeout_at(until, refuses(plane, way, guard, key.kind)).await;
                    is_whole &= refused.is_ok();
                    if refused != Ok(true) {
                        known.waiting_for.push(component(rule));
                    }
                }
                add_troubles(&mut known, key.kind, guard);
            }
        }
        let problems = round.decision.problems.get(key);
        let problems = problems.map(Vec::as_slice).unwrap_or_default();
        found.insert(key.clone(), conditions(key.kind, standing, problems, &known));
    }
    (found, is_whole)
}

fn add_troubles(known: &mut Known, kind: Kind, guard: &RuleGuard) {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default();
    let troubles = match kind {
        Kind::AuthPolicy => guard.troubles(),
        _ => guard.limit_troubles(now),
    };
    for trouble in troubles {
        if !known.troubles.contains(&trouble) {
            known.troubles.push(trouble);
        }
    }
}

/// The conditions of PlanPolicies, from those of the RateLimitPolicies that stand for them.
pub(crate) fn of_plans(
    seen: &Seen,
    told: &BTreeMap<PolicyKey, Vec<Condition>>,
) -> BTreeMap<PolicyKey, Vec<Condition>> {
    let plans = seen
        .policies
        .iter()
        .filter(|(key, _)| key.kind == Kind::PlanPolicy);
    let conditions = plans.map(|(key, one)| {
        let limits = PolicyKey {
            kind: Kind::RateLimitPolicy,
            ..key.clone()
        };
        let problem = match plan::rate_limit_policy(&one.object) {
            Err(problem) => Some(problem),
            Ok(wanted) => (seen.policies.get(&limits))
                .filter(|there| !plan::stands_for(&there.object, &wanted))
                .map(|_| plan::in_the_way(&limits)),
        };
        let is_enforced = told
            .get(&limits)
            .is_some_and(|conditions| conditions.iter().any(|it| it.r#type == "Enforced" && it.is_true));
        (
            key.clone(),
            plan::conditions(problem.as_deref(), is_enforced, &key.name),
        )
    });
    conditions.collect()
}

/// The patch of a policy's status; nothing if it says all of this already.
pub(crate) fn patch(one: &One, conditions: &[Condition], now: &str) -> Option<Value> {
    let before = &one.current.status;
    let written: Vec<Value> = conditions.iter().map(|it| written(it, one, now)).collect();
    let generation = one.policy.generation;
    if before["conditions"] == json!(written) && before["observedGeneration"] == generation {
        return None;
    }
    Some(json!({
        "metadata": {"uid": one.current.uid, "resourceVersion": one.current.version},
        "status": {"conditions": written, "observedGeneration": generation},
    }))
}

fn written(condition: &Condition, one: &One, now: &str) -> Value {
    let old = one.current.status["conditions"].as_array();
    let old = old
        .into_iter()
        .flatten()
        .find(|it| it["type"] == condition.r#type);
    let since = old
        .filter(|it| it["status"] == condition.status())
        .and_then(|it| it["lastTransitionTime"].as_str());
    json!({
        "type": condition.r#type, "status": condition.status(), "reason": condition.reason,
        "message": condition.message, "observedGeneration": one.policy.generation,
        "lastTransitionTime": since.unwrap_or(now),
    })
}
