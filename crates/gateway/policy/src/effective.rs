//! What the policies of one kind come to for each rule of each route.
//!
//! A rule is reached by a path: Gateway, listener, route, rule. Policies may hang on each of the four. They are merged from the
//! most specific to the least: each policy's own strategy says what becomes of what lies below it. Of policies on the same
//! target the older is the less specific one, as upstream sorts them; so among defaults the newest counts, among overrides
//! the oldest.

use std::collections::{BTreeMap, BTreeSet};

use fairway_gateway_routes::table::RuleKey;

use crate::object::{Policy, PolicyKey, Rule, Strategy, TargetKind, TargetRef};

/// What policies can hang on, in one workspace, and the paths that lead to rules.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    /// Gateways by namespace and name, with their listeners.
    pub gateways: BTreeMap<(String, String), BTreeSet<String>>,
    /// HTTPRoutes by namespace and name, with the names of their rules.
    pub routes: BTreeMap<(String, String), BTreeSet<String>>,
    /// Every rule that a ready listener leads to.
    pub paths: Vec<RuleKey>,
}

/// The policies of one kind that apply to a rule, as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// By name.
    pub rules: BTreeMap<String, Rule>,
    /// The policies that some rule comes from, sorted.
    pub sources: Vec<PolicyKey>,
    /// Policies in the path that cannot be understood: as long as there are any, nothing may pass.
    pub broken: Vec<(PolicyKey, String)>,
}

/// How a policy fares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is not accepted.
    Refused(Refusal),
    /// It hangs on something, and this is what became of it.
    Attached {
        /// The rules where something of it counts.
        affects: Vec<RuleKey>,
        /// Who keeps it from counting, where it does not count, sorted.
        overridden_by: Vec<PolicyKey>,
    },
}

/// Why a policy is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    TargetNotFound {
        name: String,
    },
    /// Another policy was there before, and the kind knows no merging.
    Conflicted {
        by: PolicyKey,
    },
    Invalid {
        why: String,
    },
}

/// What was decided of all policies of one kind in one workspace.
#[derive(Debug, Clone, Default)]
pub struct Decided {
    pub effective: BTreeMap<RuleKey, Effective>,
    pub standing: BTreeMap<PolicyKey, Standing>,
}

/// Decides about policies that protect rules: AuthPolicies, or RateLimitPolicies. All of one kind and workspace.
pub fn decide(policies: &[Policy], topology: &Topology) -> Decided {
    let mut decided = Decided::default();
    let mut attached: Vec<&Policy> = Vec::new();
    for policy in policies.iter().filter(|policy| !policy.deleting) {
        let refusal = refusal(policy, topology);
        // One that is not understood still guards what it hangs on.
        if !matches!(refusal, Some(Refusal::TargetNotFound { .. })) {
            attached.push(policy);
        }
        let standing = match refusal {
            Some(refusal) => Standing::Refused(refusal),
            None => Standing::Attached {
                affects: Vec::new(),
                overridden_by: Vec::new(),
            },
        };
        decided.standing.insert(policy.key.clone(), standing);
    }
    attached.sort_by(|a, b| {
        let order = |policy: &Policy| (policy.created.clone(), policy.key.clone());
        order(a).cmp(&order(b))
    });
    for path in &topology.paths {
        let in_path = in_path(&attached, path);
        if let Some(effective) = merge(&in_path) {
            for policy in &in_path {
                record(policy, path, &effective, &mut decided.standing);
            }
            decided.effective.insert(path.clone(), effective);
        }
    }
    decided
}

/// Policies that hang on a path, from the least specific to the most.
fn in_path<'a>(policies: &[&'a Policy], path: &RuleKey) -> Vec<&'a Policy> {
    let level = |policy: &Policy| level(&policy.target, &policy.key, path);
    let mut found: Vec<(u8, &Policy)> = policies
        .iter()
        .filter_map(|policy| Some((level(policy)?, *policy)))
        .collect();
    // Stable: within a level the oldest stays first.
    found.sort_by_key(|(level, _)| *level);
    found.into_iter().map(|(_, policy)| policy).collect()
}

/// How far down a path a target is: 0 the Gateway, 1 a listener, 2 the route, 3 one rule of it.
pub(crate) fn level(target: &TargetRef, key: &PolicyKey, path: &RuleKey) -> Option<u8> {
    let listener = &path.listener;
    if key.workspace != listener.workspace {
        return None;
    }
    match &target.kind {
        TargetKind::Gateway if listener.namespace == key.namespace && listener.gateway == target.name => {
            match &target.section {
                None => Some(0),
                Some(section) => (*section == listener.listener).then_some(1),
            }
        }
        TargetKind::HttpRoute
            if path.kind == "HTTPRoute" && path.namespace == key.namespace && path.name == target.name =>
        {
            match &target.section {
                None => Some(2),
                Some(section) => is_rule(section, path).then_some(3),
            }
        }
        _ => None,
    }
}

/// A rule has a name of its own, or is called by its place: `rule-1` is the first.
fn is_rule(section: &str, path: &RuleKey) -> bool {
    match &path.section {
        Some(name) => name == section,
        None => section
            .strip_prefix("rule-")
            .and_then(|number| number.parse::<usize>().ok())
            .is_some_and(|number| number == path.rule + 1),
    }
}

fn merge(policies: &[&Policy]) -> Option<Effective> {
    let (most_specific, _) = policies.split_last()?;
    let mut rules = most_specific.rules.clone();
    let mut is_empty = most_specific.is_empty;
    for policy in policies.iter().rev().skip(1) {
        match policy.strategy {
            Strategy::AtomicDefaults if !is_empty => {}
            Strategy::AtomicDefaults | Strategy::AtomicOverrides => {
                rules = policy.rules.clone();
                is_empty = policy.is_empty;
            }
            Strategy::MergeDefaults => {
                for (name, rule) in &policy.rules {
                    rules.entry(name.clone()).or_insert_with(|| rule.clone());
                }
                is_empty &= policy.is_empty;
            }
            Strategy::MergeOverrides => {
                for (name, rule) in &policy.rules {
                    rules.insert(name.clone(), rule.clone());
                }
                is_empty &= policy.is_empty;
            }
        }
    }
    let sources: BTreeSet<PolicyKey> = rules.values().map(|rule| rule.source.clone()).collect();
    let broken = policies
        .iter()
        .filter_map(|policy| Some((policy.key.clone(), policy.invalid.clone()?)))
        .collect();
    Some(Effective {
        rules,
        sources: sources.into_iter().collect(),
        broken,
    })
}

/// Notes what became of a policy on one path.
fn record(
    policy: &Policy,
    path: &RuleKey,
    effective: &Effective,
    standing: &mut BTreeMap<PolicyKey, Standing>,
) {
    let Some(Standing::Attached {
        affects,
        overridden_by,
    }) = standing.get_mut(&policy.key)
    else {
        return;
    };
    let mut counts = effective.rules.is_empty();
    let mut by = BTreeSet::new();
    for name in policy.rules.keys() {
        match effective.rules.get(name) {
            Some(rule) if rule.source == policy.key => counts = true,
            Some(rule) => {
                by.insert(rule.source.clone());
            }
            None => by.extend(effective.sources.iter().cloned()),
        }
    }
    if counts {
        affects.push(path.clone());
    }
    for key in by {
        if !overridden_by.contains(&key) {
            overridden_by.push(key);
        }
    }
    overridden_by.sort();
}

fn refusal(policy: &Policy, topology: &Topology) -> Option<Refusal> {
    if !has_target(policy, topology) {
        return Some(Refusal::TargetNotFound {
            name: policy.target.name.clone(),
        });
    }
    let why = policy.invalid.clone()?;
    Some(Refusal::Invalid { why })
}

/// Whether the target exists, with its section.
pub fn has_target(policy: &Policy, topology: &Topology) -> bool {
    let place = (policy.key.namespace.clone(), policy.target.name.clone());
    let section = policy.target.section.as_ref();
    match policy.target.kind {
        TargetKind::Gateway => topology
            .gateways
            .get(&place)
            .is_some_and(|listeners| section.is_none_or(|section| listeners.contains(section))),
        TargetKind::HttpRoute => topology.routes.get(&place).is_some_and(|rules| {
            section.is_none_or(|section| {
                rules.contains(section)
                    || topology.paths.iter().any(|path| {
                        path.kind == "HTTPRoute"
                            && (&path.namespace, &path.name) == (&place.0, &place.1)
                            && is_rule(section, path)
                    })
            })
        }),
        TargetKind::Other(_) => false,
    }
}

#[cfg(test)]
mod tests;
