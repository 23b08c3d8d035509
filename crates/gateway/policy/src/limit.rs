//! A RateLimitPolicy as a plan: limits with their conditions, counters and rates.
//!
//! Counters belong to the route and the policy that says the limit, as upstream's do: rules of one route share them, two routes
//! below one Gateway do not.

mod gaps;

use std::collections::BTreeSet;
use std::time::Duration;

use fairway_gateway_routes::table::RuleKey;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

pub use gaps::Gaps;

use crate::effective::Effective;
use crate::expression::{Cel, ConditionSpec, Named, Predicate};
use crate::object::{Failure, LIMITS_WHEN, PolicyKey, Rule};
use crate::status::{Fault, Problem};

/// The most rates of one limit, and the most counters.
const MAX_PARTS: usize = 16;

/// What an effective RateLimitPolicy comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitPlan {
    /// The policy that refusals name.
    pub policy: PolicyKey,
    pub limits: Vec<Limit>,
    /// Why it must refuse everything.
    pub problems: Vec<Problem>,
    /// What holds and is hardly meant, for the conditions of the policies that say it.
    pub notes: Vec<(PolicyKey, String)>,
}

/// A limit that applies to the requests that fit its conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As the policy names it.
    pub name: String,
    pub source: PolicyKey,
    /// Of its counters: workspace, route and limit.
    pub scope: String,
    /// Upstream's name for it, in Limitador.
    pub identifier: String,
    pub when: Predicate,
    /// Requests that differ in one of these are counted apart.
    pub counters: Vec<Cel>,
    pub rates: Vec<Rate>,
    /// What the policy says of requests that cannot be counted, if it does.
    pub failure: Option<Failure>,
}

impl Limit {
    /// What it has to know from authentication: `auth.identity` and the like.
    pub fn asks_of_auth(&self) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        self.when.asks_of_auth(&mut found);
        found.extend(self.counters.iter().flat_map(Cel::asks_of_auth));
        found
    }
}

/// So many in such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub limit: u64,
    pub window: Duration,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct LimitSpec {
    when: Vec<ConditionSpec>,
    counters: Vec<CounterSpec>,
    rates: Vec<RateSpec>,
}

#[derive(Debug, Clone, Deserialize)]
struct CounterSpec {
    expression: String,
}

#[derive(Debug, Clone, Deserialize)]
struct RateSpec {
    limit: i64,
    window: String,
}

/// Makes a plan for the rules of one route.
pub fn compile(effective: &Effective, path: &RuleKey) -> LimitPlan {
    let mut problems: Vec<Problem> = effective
        .broken
        .iter()
        .map(|(policy, why)| Problem {
            policy: policy.clone(),
            rule: "spec".to_owned(),
            what: Fault::Invalid(why.clone()),
        })
        .collect();
    let above: Vec<ConditionSpec> = match effective.rules.get(LIMITS_WHEN) {
        None => Vec::new(),
        Some(rule) => serde_json::from_value(rule.spec.clone()).unwrap_or_else(|error| {
            problems.push(problem(
                rule,
                "when",
                Fault::Invalid(format!("it cannot be read: {error}")),
            ));
            Vec::new()
        }),
    };
    let (mut limits, mut notes) = (Vec::new(), Vec::new());
    for (name, rule) in effective.rules.iter().filter(|(name, _)| *name != LIMITS_WHEN) {
        match limit(name, rule, &above, path) {
            Ok((limit, note)) => {
                notes.extend(note.map(|note| (rule.source.clone(), note)));
                limits.push(limit);
            }
            Err(fault) => problems.push(problem(rule, &format!("limits.{name}"), fault)),
        }
    }
    let policy = problems
        .first()
        .map(|problem| problem.policy.clone())
        .or_else(|| limits.first().map(|limit| limit.source.clone()))
        .or_else(|| effective.sources.first().cloned());
    LimitPlan {
        policy: policy.unwrap_or_else(|| PolicyKey {
            workspace: path.listener.workspace.clone(),
            kind: crate::object::Kind::RateLimitPolicy,
            namespace: path.namespace.clone(),
            name: path.name.clone(),
        }),
        limits,
        problems,
        notes,
    }
}

fn problem(rule: &Rule, name: &str, what: Fault) -> Problem {
    Problem {
        policy: rule.source.clone(),
        rule: name.to_owned(),
        what,
    }
}

/// A limit, and what has to be said of it.
fn limit(
    name: &str,
    rule: &Rule,
    above: &[ConditionSpec],
    path: &RuleKey,
) -> Result<(Limit, Option<String>), Fault> {
    let invalid = |why: String| Fault::Invalid(why);
    let spec: LimitSpec = serde_json::from_value(rule.spec.clone())
        .map_err(|error| invalid(format!("it cannot be read: {error}")))?;
    if spec.rates.len() > MAX_PARTS || spec.counters.len() > MAX_PARTS {
        return Err(invalid(format!("it has more than {MAX_PARTS} rates or counters")));
    }
    let conditions: Vec<ConditionSpec> = above.iter().chain(&spec.when).cloned().collect();
    let counters: Result<Vec<Cel>, _> = spec
        .counters
        .iter()
        .map(|counter| Cel::expression(&counter.expression))
        .collect();
    let rates: Result<Vec<Rate>, Fault> = spec.rates.iter().map(rate).collect();
    let negative = spec.rates.iter().find(|rate| rate.limit < 0);
    let note = negative.map(|rate| {
        let limit = rate.limit;
        format!(
            "limit {name:?} has a rate of {limit}, which counts as 0: every request that it fits is refused"
        )
    });
    let identifier = identifier(&rule.source, name);
    let limit = Limit {
        name: name.to_owned(),
        source: rule.source.clone(),
        scope: format!(
            "{}|{}/{}|{identifier}",
            path.listener.workspace, path.namespace, path.name
        ),
        identifier,
        when: Predicate::compile(&conditions, &Named::new())?,
        counters: counters?,
        rates: rates?,
        failure: rule.failure,
    };
    Ok((limit, note))
}

/// A negative limit counts as none at all, as upstream has it; a window is whole seconds, as Limitador has it.
fn rate(spec: &RateSpec) -> Result<Rate, Fault> {
    let window = window(&spec.window).ok_or_else(|| {
        Fault::Invalid(format!(
            "window {:?} is not a duration such as 1h30m",
            spec.window
        ))
    })?;
    let window = Duration::from_secs(window.as_secs());
    if window.is_zero() {
        return Err(Fault::Invalid(format!(
            "window {:?} is shorter than a second",
            spec.window
        )));
    }
    Ok(Rate {
        limit: u64::try_from(spec.limit).unwrap_or(0),
        window,
    })
}

/// Gateway API's durations: up to four numbers of up to five digits, with `h`, `m`, `s` or `ms`.
pub(crate) fn window(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut parts) = (text, Duration::ZERO, 0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        if digits == 0 || digits > 5 {
            return None;
        }
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, length) = match rest {
            _ if rest.starts_with("ms") => (Duration::from_millis(1), 2),
            _ if rest.starts_with('h') => (Duration::from_secs(3600), 1),
            _ if rest.starts_with('m') => (Duration::from_secs(60), 1),
            _ if rest.starts_with('s') => (Duration::from_secs(1), 1),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(u32::try_from(number).ok()?)?)?;
        rest = &rest[length..];
        parts += 1;
    }
    (1..=4).contains(&parts).then_some(total)
}

/// Upstream's name of a limit in Limitador: what may stand in an identifier, and a hash of the rest.
pub fn identifier(policy: &PolicyKey, name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' })
        .collect();
    let digest = Sha256::digest(format!("{}/{}/{name}", policy.namespace, policy.name));
    let hash: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("limit.{clean}__{hash}")
}

#[cfg(test)]
mod tests;
