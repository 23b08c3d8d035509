//! What policies are told.

use std::collections::BTreeMap;

use fairway_gateway_gatekeeper::RuleGuard;
use fairway_gateway_policy::effective::Standing;
use fairway_gateway_policy::object::{Kind, PolicyKey};
use fairway_gateway_policy::plan;
use fairway_gateway_policy::status::{Condition, DataPlane as Known, component, conditions};
use fairway_gateway_routes::table::RuleKey;
use serde_json::{Value, json};

use super::Enforcer;
use super::decide::{Decision, Way};
use super::held::{One, Seen};
use super::probe::refuses;
use crate::plane::DataPlane;

/// The conditions of every policy that guards rules, after the data plane has taken the guards over.
pub(crate) async fn conditions_of(
    plane: &dyn DataPlane,
    decision: &Decision,
    enforcer: &Enforcer,
    ways: &BTreeMap<RuleKey, Way>,
) -> BTreeMap<PolicyKey, Vec<Condition>> {
    let mut found = BTreeMap::new();
    for (key, standing) in &decision.standing {
        let mut known = Known::default();
        if let Standing::Attached { affects, .. } = standing {
            for rule in affects {
                let (Some(way), Some((plan, guard))) = (ways.get(rule), enforcer.of(rule)) else {
                    known.waiting_for.push(component(rule));
                    continue;
                };
                let promises = match key.kind {
                    Kind::AuthPolicy => plan.auth.as_ref().is_some_and(|plan| plan.refuses_strangers()),
                    _ => plan.limits.as_ref().is_some_and(|plan| !plan.limits.is_empty()),
                };
                if promises && !refuses(plane, way, guard, key.kind).await {
                    known.waiting_for.push(component(rule));
                }
                add_troubles(&mut known, key.kind, guard);
            }
        }
        let problems = decision.problems.get(key).map(Vec::as_slice).unwrap_or_default();
        found.insert(key.clone(), conditions(key.kind, standing, problems, &known));
    }
    found
}

fn add_troubles(known: &mut Known, kind: Kind, guard: &RuleGuard) {
    if kind != Kind::AuthPolicy {
        return;
    }
    for trouble in guard.troubles() {
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
        let problem = plan::rate_limit_policy(&one.object).err();
        let limits = PolicyKey {
            kind: Kind::RateLimitPolicy,
            ..key.clone()
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
