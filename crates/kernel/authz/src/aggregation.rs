//! Aggregated cluster roles: the rules that their selectors gather from other cluster roles.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::rule::PolicyRule;

/// What a policy keeps of a ClusterRole.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterRole {
    pub(crate) rules: Vec<PolicyRule>,
    labels: BTreeMap<String, String>,
    /// None where the object has no aggregation rule, which is not the same as one that gathers nothing.
    selectors: Option<Vec<LabelSelector>>,
}

/// A label selector as objects spell it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Requirement {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// An aggregated cluster role whose rules must be rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingAggregation {
    /// The cluster role.
    pub name: String,
    /// The rules that it shall have.
    pub rules: Vec<PolicyRule>,
}

impl LabelSelector {
    /// Whether the labels satisfy every requirement. A selector without requirements matches everything.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| {
                let actual = labels.get(&requirement.key);
                match requirement.operator {
                    Operator::In => actual.is_some_and(|value| requirement.values.contains(value)),
                    Operator::NotIn => actual.is_none_or(|value| !requirement.values.contains(value)),
                    Operator::Exists => actual.is_some(),
                    Operator::DoesNotExist => actual.is_none(),
                }
            })
    }
}

impl ClusterRole {
    pub(crate) fn from_object(object: &Value) -> Self {
        let labels = match object.pointer("/metadata/labels") {
            Some(Value::Object(labels)) => labels
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            _ => BTreeMap::new(),
        };
        let selectors = object
            .get("aggregationRule")
            .filter(|rule| !rule.is_null())
            .and_then(|rule| {
                match rule.get("clusterRoleSelectors") {
                    // A selector that cannot be read leaves the role as it is, as upstream's controller does.
                    Some(Value::Array(list)) => list
                        .iter()
                        .map(|item| LabelSelector::deserialize(item).ok())
                        .collect(),
                    _ => Some(Vec::new()),
                }
            });
        Self {
            rules: PolicyRule::list_from(object.get("rules")),
            labels,
            selectors,
        }
    }
}

pub(crate) fn pending_aggregations(roles: &BTreeMap<String, ClusterRole>) -> Vec<PendingAggregation> {
    let mut pending = Vec::new();
    for (name, role) in roles {
        let Some(selectors) = &role.selectors else {
            continue;
        };
        let rules = gather(roles, name, selectors);
        if rules != role.rules {
            pending.push(PendingAggregation {
                name: name.clone(),
                rules,
            });
        }
    }
    pending
}

/// The rules of every other role that a selector matches: by selector, then by name, each rule once.
fn gather(
    roles: &BTreeMap<String, ClusterRole>,
    own_name: &str,
    selectors: &[LabelSelector],
) -> Vec<PolicyRule> {
    let mut seen = std::collections::HashSet::new();
    let mut rules = Vec::new();
    for selector in selectors {
        for (name, role) in roles {
            if name == own_name || !selector.matches(&role.labels) {
                continue;
            }
            for rule in &role.rules {
                if seen.insert(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Kind, Policy};

    fn role(labels: &Value, selectors: Option<Value>, resources: &[&str]) -> Value {
        let rules: Vec<_> = resources
            .iter()
            .map(|resource| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]}))
            .collect();
        let mut object = json!({"metadata": {"labels": labels}, "rules": rules});
        if let Some(selectors) = selectors {
            object["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
        }
        object
    }

    /// The pending roles, each with the resources of its rules.
    fn pending(policy: &Policy) -> Vec<(String, Vec<String>)> {
        let flat =
            |rules: Vec<crate::PolicyRule>| rules.into_iter().flat_map(|rule| rule.resources).collect();
        policy
            .pending_aggregations()
            .into_iter()
            .map(|role| (role.name, flat(role.rules)))
            .collect()
    }

    #[test]
    fn gathers_by_selector_then_name_without_itself_or_repetitions() {
        let mut policy = Policy::new();
        let selectors = json!([{"matchLabels": {"to": "top"}}, {"matchExpressions": [{"key": "extra", "operator": "Exists"}]}]);
        policy.upsert(
            Kind::ClusterRole,
            "",
            "top",
            &role(&json!({"to": "top"}), Some(selectors), &["stale"]),
        );
        policy.upsert(
            Kind::ClusterRole,
            "",
            "b",
            &role(&json!({"to": "top"}), None, &["pods", "services"]),
        );
        policy.upsert(
            Kind::ClusterRole,
            "",
            "a",
            &role(&json!({"to": "top", "extra": ""}), None, &["services"]),
        );
        policy.upsert(
            Kind::ClusterRole,
            "",
            "c",
            &role(&json!({"extra": "x"}), None, &["secrets"]),
        );
        policy.upsert(
            Kind::ClusterRole,
            "",
            "d",
            &role(&json!({"to": "other"}), None, &["nodes"]),
        );
        let want = vec![(
            "top".to_owned(),
            ["services", "pods", "secrets"].map(str::to_owned).to_vec(),
        )];
        assert_eq!(pending(&policy), want);
    }

    #[test]
    fn settled_and_plain_roles_are_not_pending() {
        let mut policy = Policy::new();
        policy.upsert(Kind::ClusterRole, "", "plain", &role(&json!({}), None, &["pods"]));
        policy.upsert(
            Kind::ClusterRole,
            "",
            "empty",
            &role(&json!({}), Some(json!([])), &[]),
        );
        assert_eq!(pending(&policy), vec![]);
        policy.upsert(
            Kind::ClusterRole,
            "",
            "emptied",
            &role(&json!({}), Some(json!([])), &["pods"]),
        );
        assert_eq!(pending(&policy), vec![("emptied".to_owned(), vec![])]);
    }

    #[test]
    fn operators_follow_the_label_selector_rules() {
        let labels = [("a".to_owned(), "1".to_owned())].into();
        for (expression, want) in [
            (json!({"key": "a", "operator": "In", "values": ["1", "2"]}), true),
            (json!({"key": "a", "operator": "NotIn", "values": ["1"]}), false),
            (json!({"key": "b", "operator": "NotIn", "values": ["1"]}), true),
            (json!({"key": "b", "operator": "In", "values": ["1"]}), false),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"key": "a", "operator": "DoesNotExist"}), false),
        ] {
            let selector: super::LabelSelector =
                serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
            assert_eq!(selector.matches(&labels), want, "{expression}");
        }
    }
}
