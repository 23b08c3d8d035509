//! What policies are told.

use std::collections::BTreeMap;

use fairway_gateway_gatekeeper::RuleGuard;
use fairway_gateway_policy::effective::Standing;
use fairway_gateway_policy::object::{Kind, PolicyKey};
use fairway_gateway_policy::plan;
use fairway_gateway_policy::status::{Condition, DataPlane as Known, Problem, component, conditions};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};

use super::held::{One, Seen};
use super::probe::{Probed, Promise};
use super::prober::Round;
use super::queue::{Answer, Answers, Job, Tried};
use crate::plane::DataPlane;

/// Workspaces that are probed at the same time.
const AT_ONCE: usize = 32;

type Conditions = BTreeMap<PolicyKey, Vec<Condition>>;

/// The conditions of every policy that guards rules, after the data plane has taken the guards over; and whether every probe
/// had its answer in time. What had none is not proven. Workspaces do not wait for each other.
pub(super) async fn conditions_of(
    plane: &dyn DataPlane,
    round: &Round,
    answers: &mut Answers,
) -> (Conditions, bool) {
    answers.begin();
    let mut workspaces: BTreeMap<&str, Vec<(&PolicyKey, &Standing)>> = BTreeMap::new();
    for (key, standing) in &round.decision.standing {
        let own = workspaces.entry(&key.workspace).or_default();
        own.push((key, standing));
    }
    let before = &*answers;
    let each: Vec<_> = (workspaces.into_values())
        .map(|policies| {
            let asked = async move {
                let known = before.ask(plane, &jobs(round, &policies)).await;
                (of_workspace(round, policies, &known), known)
            };
            asked.boxed()
        })
        .collect();
    let mut each = futures::stream::iter(each).buffer_unordered(AT_ONCE);
    let (mut found, mut kept) = (Conditions::new(), BTreeMap::new());
    while let Some((conditions, known)) = each.next().await {
        found.extend(conditions);
        kept.extend(known);
    }
    drop(each);
    let is_whole = kept.values().all(Answer::is_known);
    answers.keep(kept);
    (found, is_whole)
}

/// The probes of policies: where they promise to refuse something, or may.
fn jobs<'r>(round: &'r Round, policies: &[(&'r PolicyKey, &'r Standing)]) -> Vec<Job<'r>> {
    let mut jobs = Vec::new();
    for (policy, standing) in policies {
        let Standing::Attached { affects, .. } = standing else {
            continue;
        };
        for rule in affects {
            let (Some(way), Some((plan, guard))) = (round.ways.get(rule), round.guards.get(rule)) else {
                continue;
            };
            let promise = match policy.kind {
                Kind::AuthPolicy => plan.auth.as_ref().map(|plan| match plan.refuses_strangers() {
                    true => Promise::Refusal,
                    false => Promise::Depends,
                }),
                _ => (plan.limits.as_ref())
                    .filter(|plan| !plan.limits.is_empty())
                    .map(|_| Promise::Refusal),
            };
            if let Some(promise) = promise {
                jobs.push(Job {
                    policy,
                    way,
                    guard,
                    promise,
                });
            }
        }
    }
    jobs
}

fn of_workspace(
    round: &Round,
    policies: Vec<(&PolicyKey, &Standing)>,
    answers: &BTreeMap<Tried, Answer>,
) -> Conditions {
    let mut found = Conditions::new();
    for (key, standing) in policies {
        let mut known = Known {
            asks_nothing: round.decision.idle.contains(key),
            gaps: round.decision.gaps.of(key),
            ..Known::default()
        };
        if let Standing::Attached { affects, .. } = standing {
            for rule in affects {
                let (true, Some((plan, guard))) = (round.ways.contains_key(rule), round.guards.get(rule))
                else {
                    known.waiting_for.push(component(rule));
                    continue;
                };
                // Without one there was nothing to ask for.
                if let Some(answer) = answers.get(&(key.clone(), rule.clone())) {
                    match answer.found {
                        None | Some(Probed::Passed) => known.waiting_for.push(component(rule)),
                        Some(Probed::ByGuard) => known.untried.push(component(rule)),
                        Some(Probed::NothingToRefuse) => known.lets_in.push(component(rule)),
                        Some(Probed::Silent) => known.silent.push(component(rule)),
                        Some(Probed::Refused) => {}
                    }
                }
                add_troubles(&mut known, key, guard);
                let note = plan.auth.as_ref().and_then(|plan| plan.note(key));
                known
                    .troubles
                    .extend(note.filter(|note| !known.troubles.contains(note)));
                for gap in guard.uncounted(key) {
                    if !known.gaps.contains(&gap) {
                        known.gaps.push(gap);
                    }
                }
            }
        }
        let problems = round.decision.problems.get(key);
        let problems = problems.map(Vec::as_slice).unwrap_or_default();
        found.insert(key.clone(), conditions(key.kind, standing, problems, &known));
    }
    found
}

fn add_troubles(known: &mut Known, policy: &PolicyKey, guard: &RuleGuard) {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default();
    let troubles = match policy.kind {
        Kind::AuthPolicy => guard.troubles(now),
        _ => guard.limit_troubles(policy, now),
    };
    for trouble in troubles {
        if !known.troubles.contains(&trouble) {
            known.troubles.push(trouble);
        }
    }
}

/// The conditions of PlanPolicies, from those of the RateLimitPolicies that stand for them, and what is wrong with their own
/// predicates.
pub(crate) fn of_plans(
    seen: &Seen,
    problems: &BTreeMap<PolicyKey, Vec<Problem>>,
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
        let of_predicates = problems.get(key).and_then(|own| own.first());
        let problem = problem
            .or_else(|| of_predicates.map(|it| format!("{it}; requests are refused until this is mended")));
        let told = told.get(&limits).map(Vec::as_slice).unwrap_or_default();
        (key.clone(), plan::conditions(problem.as_deref(), told, &key.name))
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
