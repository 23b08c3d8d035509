//! The escalation check: who writes a role or a binding must already hold what it grants.
//!
//! Breaking rules into single permissions multiplies their lists, and the lists are the client's. So a rule is first
//! compared as a whole, which settles the ordinary cases, and the breakdown has a budget; what exceeds it counts as
//! not covered.

use std::collections::{BTreeSet, HashMap};

use fairway_text_gotext::strings::{quote_list, quoted};

use crate::attributes::{Attributes, ResourceAttributes, UserInfo};
use crate::binding::RoleRef;
use crate::policy::{Policy, RoleNotFound, aggregate_message};
use crate::rule::{PolicyRule, has, path_covers};
use crate::{Kind, PRIVILEGED_GROUP, RBAC_GROUP};

/// How many single permissions one comparison may look at.
const BREAKDOWN_BUDGET: usize = 20_000;

/// Why a role or binding may not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// The grant exceeds what the user holds. The text belongs into a `Forbidden` status.
    #[error("{0}")]
    NotHeld(String),
    /// An aggregation rule gathers anything, so only a user who holds everything may set one.
    #[error("must have cluster-admin privileges to use the aggregationRule")]
    AggregationRule,
    /// The role that a binding refers to does not exist; upstream answers `NotFound`.
    #[error(transparent)]
    RoleNotFound(#[from] RoleNotFound),
}

/// The single permissions of `servant` that no rule of `owner` covers; none means that the owner may grant it all.
pub fn covers<'a>(
    owner: impl IntoIterator<Item = &'a PolicyRule>,
    servant: &[PolicyRule],
) -> Vec<PolicyRule> {
    let owner: Vec<&PolicyRule> = owner.into_iter().collect();
    let mut uncovered = Vec::new();
    let mut budget = BREAKDOWN_BUDGET;
    for rule in servant {
        let permissions = permission_count(rule);
        if permissions == 0 || owner.iter().any(|held| rule_covers(held, rule)) {
            continue;
        }
        match budget.checked_sub(permissions) {
            Some(rest) => budget = rest,
            None => {
                uncovered.push(rule.clone());
                continue;
            }
        }
        break_down(rule, |permission| {
            if !owner.iter().any(|held| rule_covers(held, &permission)) {
                uncovered.push(permission);
            }
        });
    }
    uncovered
}

fn permission_count(rule: &PolicyRule) -> usize {
    let names = rule.resource_names.len().max(1);
    let on_resources = rule
        .api_groups
        .len()
        .saturating_mul(rule.resources.len())
        .saturating_mul(names);
    on_resources
        .saturating_add(rule.non_resource_urls.len())
        .saturating_mul(rule.verbs.len())
}

/// Visits each single permission of a rule: one verb on one resource of one group, with at most one name, or on one
/// path.
fn break_down(rule: &PolicyRule, mut visit: impl FnMut(PolicyRule)) {
    let one = |item: &String| vec![item.clone()];
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let permission = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    visit(permission);
                    continue;
                }
                for name in &rule.resource_names {
                    visit(PolicyRule {
                        resource_names: one(name),
                        ..permission.clone()
                    });
                }
            }
        }
    }
    for path in &rule.non_resource_urls {
        for verb in &rule.verbs {
            visit(PolicyRule {
                verbs: one(verb),
                non_resource_urls: one(path),
                ..PolicyRule::default()
            });
        }
    }
}

fn has_all(set: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|item| has(set, item))
}

/// Whether one rule holds all of another.
fn rule_covers(owner: &PolicyRule, servant: &PolicyRule) -> bool {
    let names = owner.resource_names.is_empty()
        || !servant.resource_names.is_empty() && has_all(&owner.resource_names, &servant.resource_names);
    names
        && (has(&owner.verbs, "*") || has_all(&owner.verbs, &servant.verbs))
        && (has(&owner.api_groups, "*") || has_all(&owner.api_groups, &servant.api_groups))
        && servant
            .resources
            .iter()
            .all(|resource| resource_covered(&owner.resources, resource))
        && (servant.non_resource_urls.iter())
            .all(|path| owner.non_resource_urls.iter().any(|held| path_covers(held, path)))
}

fn resource_covered(held: &[String], resource: &str) -> bool {
    held.iter().any(|item| {
        item == "*"
            || item == resource
            || resource
                .split_once('/')
                .is_some_and(|(_, subresource)| item.strip_prefix("*/") == Some(subresource))
    })
}

/// Joins permissions that differ only in their verb, so that a refusal is short to read.
pub fn compact_rules(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut compact: Vec<PolicyRule> = Vec::new();
    let mut simple: HashMap<(String, String, Option<String>), usize> = HashMap::new();
    for rule in rules {
        let key = match (
            rule.api_groups.as_slice(),
            rule.resources.as_slice(),
            rule.resource_names.as_slice(),
        ) {
            ([group], [resource], names) if names.len() < 2 && rule.non_resource_urls.is_empty() => {
                Some((group.clone(), resource.clone(), names.first().cloned()))
            }
            _ => None,
        };
        let known = key
            .as_ref()
            .and_then(|key| simple.get(key))
            .and_then(|at| compact.get_mut(*at));
        if let Some(joined) = known {
            joined.verbs.extend(rule.verbs.iter().cloned());
            continue;
        }
        if let Some(key) = key {
            simple.insert(key, compact.len());
        }
        compact.push(rule.clone());
    }
    compact
}

impl Policy {
    /// Whether the user holds, in `namespace` (empty for cluster scope), everything that `rules` grant.
    pub fn confirm_no_escalation(
        &self,
        user: &UserInfo,
        namespace: &str,
        rules: &[PolicyRule],
    ) -> Result<(), EscalationError> {
        let (held, errors) = self.policy_rules_for(user, namespace);
        let missing = covers(held, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let lines: BTreeSet<String> = compact_rules(&missing)
            .iter()
            .map(PolicyRule::compact_string)
            .collect();
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quoted(&user.name),
            quote_list(&user.groups),
            lines.into_iter().collect::<Vec<_>>().join("\n"),
        );
        if let Some(errors) = aggregate_message(&errors) {
            message.push_str("; resolution errors: [");
            message.push_str(&errors);
            message.push(']');
        }
        Err(EscalationError::NotHeld(message))
    }

    /// Whether the user may create or change a role so that it has `rules`. `aggregates` says whether the new or the
    /// old object has an aggregation rule with selectors. `namespace` is empty for cluster roles.
    pub fn may_write_role(
        &self,
        user: &UserInfo,
        kind: Kind,
        namespace: &str,
        name: &str,
        rules: &[PolicyRule],
        aggregates: bool,
    ) -> Result<(), EscalationError> {
        if self.allowed(user, "escalate", kind.resource(), namespace, name) {
            return Ok(());
        }
        self.confirm_no_escalation(user, namespace, rules)?;
        if aggregates {
            let everything = [
                PolicyRule {
                    verbs: vec!["*".into()],
                    api_groups: vec!["*".into()],
                    resources: vec!["*".into()],
                    ..PolicyRule::default()
                },
                PolicyRule {
                    verbs: vec!["*".into()],
                    non_resource_urls: vec!["*".into()],
                    ..PolicyRule::default()
                },
            ];
            self.confirm_no_escalation(user, namespace, &everything)
                .map_err(|_| EscalationError::AggregationRule)?;
        }
        Ok(())
    }

    /// Whether the user may create or change a binding of `namespace` (empty for cluster scope) to `role_ref`.
    pub fn may_bind(
        &self,
        user: &UserInfo,
        role_ref: &RoleRef,
        namespace: &str,
    ) -> Result<(), EscalationError> {
        let resource = match role_ref.kind.as_str() {
            "Role" => Some("roles"),
            "ClusterRole" => Some("clusterroles"),
            _ => None,
        };
        if user.in_group(PRIVILEGED_GROUP)
            || resource
                .is_some_and(|resource| self.allowed(user, "bind", resource, namespace, &role_ref.name))
        {
            return Ok(());
        }
        let rules = self.resolve(role_ref, namespace)?;
        self.confirm_no_escalation(user, namespace, rules)
    }

    fn allowed(&self, user: &UserInfo, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let target = ResourceAttributes {
            group: RBAC_GROUP,
            version: "*",
            resource,
            namespace,
            name,
            ..ResourceAttributes::default()
        };
        self.authorize(&Attributes {
            user,
            verb,
            resource: Some(target),
            path: "",
        })
        .is_allowed()
    }
}

#[cfg(test)]
mod tests;
