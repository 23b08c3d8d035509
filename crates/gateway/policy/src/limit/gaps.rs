//! What limits ask of authentication where nobody answers.
//!
//! A rule without an AuthPolicy has no `auth`, and one without a PlanPolicy no `auth.kuadrant`, whatever is sent to it: a limit
//! that asks for them there counts nobody, and this can be told before the first request comes.

use std::collections::BTreeMap;

use fairway_gateway_routes::table::RuleKey;

use super::LimitPlan;
use crate::auth::AuthPlan;
use crate::object::PolicyKey;
use crate::status::{component, few};

/// What PlanPolicies tell.
const KUADRANT: &str = "auth.kuadrant";

/// Limits that cannot count at some rules, by the policy that says them.
#[derive(Debug, Default)]
pub struct Gaps(BTreeMap<PolicyKey, BTreeMap<Gap, Vec<String>>>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    limit: String,
    asked: Vec<&'static str>,
    lacks: &'static str,
}

impl Gaps {
    /// Looks at the limits of a rule, with the authentication that comes before them.
    pub fn look(&mut self, limits: &LimitPlan, auth: Option<&AuthPlan>, path: &RuleKey) {
        for limit in &limits.limits {
            let asked: Vec<&'static str> = limit.asks_of_auth().into_iter().collect();
            let (asked, lacks) = match auth {
                None if !asked.is_empty() => (asked, "no AuthPolicy guards"),
                Some(auth) if asked.contains(&KUADRANT) && !tells_kuadrant(auth) => {
                    (vec![KUADRANT], "no PlanPolicy applies to")
                }
                _ => continue,
            };
            let gap = Gap {
                limit: limit.name.clone(),
                asked,
                lacks,
            };
            let of_policy = self.0.entry(limit.source.clone()).or_default();
            of_policy.entry(gap).or_default().push(component(path));
        }
    }

    /// What a policy is told of its limits.
    pub fn of(&self, policy: &PolicyKey) -> Vec<String> {
        let own = self.0.get(policy).into_iter().flatten();
        own.map(|(gap, rules)| {
            let Gap { limit, asked, lacks } = gap;
            let (asked, rules) = (asked.join(" and "), few(rules));
            format!("limit {limit:?} counts nothing there: it asks for {asked}, and {lacks} [{rules}]")
        })
        .collect()
    }
}

fn tells_kuadrant(auth: &AuthPlan) -> bool {
    !auth.problems.is_empty() || auth.filters.iter().any(|filter| filter.key == "kuadrant")
}
