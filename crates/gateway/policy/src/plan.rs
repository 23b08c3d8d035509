//! PlanPolicies: tiers of customers. A policy becomes a RateLimitPolicy of the same name, and tells authentication which tier
//! somebody has: `auth.kuadrant.plan`.

use fairway_gateway_routes::table::RuleKey;
use serde_json::{Map, Value, json};

use crate::auth::Added;
use crate::effective::level;
use crate::object::{Kind, Policy, PolicyKey};
use crate::status::Condition;

/// The most tiers of one policy.
const MAX_PLANS: usize = 64;

/// What a plan grants, with upstream's lengths of months and years.
const WINDOWS: [(&str, &str); 4] = [
    ("daily", "24h"),
    ("weekly", "168h"),
    ("monthly", "730h"),
    ("yearly", "8760h"),
];

/// The RateLimitPolicy that stands for a PlanPolicy, or why there is none. The object is the policy's own (owner reference).
pub fn rate_limit_policy(object: &Value) -> Result<Value, String> {
    let mut limits = Map::new();
    for (tier, plan) in tiers(&object["spec"])? {
        let mut rates: Vec<Value> = WINDOWS
            .iter()
            .filter_map(|(field, window)| {
                Some(json!({"limit": plan["limits"][field].as_i64()?, "window": window}))
            })
            .collect();
        rates.extend(plan["limits"]["custom"].as_array().into_iter().flatten().cloned());
        let predicate = format!("auth.kuadrant.plan == {}", quoted(tier));
        limits.insert(
            tier.to_owned(),
            json!({"when": [{"predicate": predicate}], "rates": rates}),
        );
    }
    let metadata = &object["metadata"];
    Ok(json!({
        "apiVersion": Kind::RateLimitPolicy.api_version(),
        "kind": Kind::RateLimitPolicy.as_str(),
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"],
            "ownerReferences": [{
                "apiVersion": Kind::PlanPolicy.api_version(), "kind": Kind::PlanPolicy.as_str(),
                "name": metadata["name"], "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {"targetRef": object["spec"]["targetRef"], "limits": limits},
    }))
}

/// Whether a RateLimitPolicy is the one that was made for this very PlanPolicy.
pub fn stands_for(there: &Value, wanted: &Value) -> bool {
    let uid = &wanted["metadata"]["ownerReferences"][0]["uid"];
    let owners = there["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.any(|it| it["kind"] == Kind::PlanPolicy.as_str() && it["uid"] == *uid)
}

/// What a PlanPolicy is told whose place for its RateLimitPolicy somebody else has.
pub fn in_the_way(limits: &PolicyKey) -> String {
    format!(
        "RateLimitPolicy {}/{} is there already and was not made for it; give one of the two another name",
        limits.namespace, limits.name
    )
}

/// What PlanPolicies add to the authentication of one rule: of several in its path, the most specific counts.
pub fn data(policies: &[Policy], path: &RuleKey) -> Vec<Added> {
    let mut found: Vec<(u8, &Policy)> = policies
        .iter()
        .filter(|policy| policy.key.kind == Kind::PlanPolicy && !policy.deleting)
        .filter_map(|policy| Some((level(&policy.target, &policy.key, path)?, policy)))
        .collect();
    found.sort_by_key(|(level, policy)| (std::cmp::Reverse(*level), policy.created.clone()));
    let most_specific = found.first().map(|(_, policy)| policy);
    most_specific
        .map(|policy| Added {
            policy: policy.key.clone(),
            name: "plan".to_owned(),
            expression: expression(&policy.spec),
        })
        .into_iter()
        .collect()
}

/// The first tier whose predicate is true; somebody without a tier has none (null).
pub fn expression(spec: &Value) -> Result<String, String> {
    let mut text = String::new();
    for (tier, plan) in tiers(spec)? {
        let predicate = plan["predicate"].as_str().unwrap_or("false").replace('\n', " ");
        text.push_str(&format!("({predicate}) ? dyn({}) : ", quoted(tier)));
    }
    text.push_str("dyn(null)");
    Ok(text)
}

/// A policy's conditions, from those of its RateLimitPolicy: whether it is enforced and how, or what is wrong.
pub fn conditions(problem: Option<&str>, limits: &[Condition], name: &str) -> Vec<Condition> {
    let (kind, limit) = (Kind::PlanPolicy, Kind::RateLimitPolicy);
    let enforced = limits.iter().find(|it| it.r#type == "Enforced" && it.is_true);
    let judged = match (problem, enforced) {
        (Some(problem), _) => Err(problem.to_owned()),
        (None, Some(enforced)) => Ok(enforced),
        (None, None) => Err(match limits.iter().find(|it| !it.is_true) {
            Some(condition) => format!("{limit} {name} is not enforced: {}", condition.message),
            None => format!("{limit} {name} is not enforced"),
        }),
    };
    match judged {
        Err(problem) => vec![Condition {
            r#type: "Accepted",
            is_true: false,
            reason: "Unknown",
            message: format!("{kind} has encountered some issues: {problem}"),
        }],
        Ok(enforced) => {
            let own = enforced.message.strip_prefix(limit.as_str());
            let message = own.map_or_else(|| enforced.message.clone(), |rest| format!("{kind}{rest}"));
            vec![
                crate::status::accepted(kind),
                Condition {
                    message,
                    ..enforced.clone()
                },
            ]
        }
    }
}

fn tiers(spec: &Value) -> Result<Vec<(&str, &Value)>, String> {
    let plans = spec["plans"].as_array().ok_or("there are no plans")?;
    if plans.len() > MAX_PLANS {
        return Err(format!("there are more than {MAX_PLANS} plans"));
    }
    let mut tiers: Vec<(&str, &Value)> = Vec::new();
    for plan in plans {
        let tier = plan["tier"].as_str().filter(|tier| !tier.is_empty());
        let tier = tier.ok_or("a plan has no tier")?;
        if tiers.iter().any(|(other, _)| *other == tier) {
            return Err(format!("tier {tier:?} is there twice"));
        }
        tiers.push((tier, plan));
    }
    Ok(tiers)
}

/// A text in CEL; JSON's escapes are CEL's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
