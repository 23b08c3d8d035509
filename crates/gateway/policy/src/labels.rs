//! Label selectors, as Kubernetes matches them.

use serde::Deserialize;
use std::collections::BTreeMap;

/// `matchLabels` and `matchExpressions`; all must fit. An empty one fits everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| {
                let value = labels.get(&requirement.key);
                let is_listed = value.is_some_and(|value| requirement.values.contains(value));
                match requirement.operator {
                    Operator::In => is_listed,
                    Operator::NotIn => !is_listed,
                    Operator::Exists => value.is_some(),
                    Operator::DoesNotExist => value.is_none(),
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_selected() {
        let labels: BTreeMap<String, String> = [("app", "toys"), ("tier", "gold")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let one = |operator: &str, key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, fits) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "toys"}}), true),
            (json!({"matchLabels": {"app": "toys", "tier": "iron"}}), false),
            (json!({"matchLabels": {"other": ""}}), false),
            (one("In", "tier", &["gold", "iron"]), true),
            (one("In", "tier", &["iron"]), false),
            (one("NotIn", "tier", &["iron"]), true),
            (one("NotIn", "other", &["iron"]), true),
            (one("Exists", "app", &[]), true),
            (one("Exists", "other", &[]), false),
            (one("DoesNotExist", "other", &[]), true),
            (one("DoesNotExist", "app", &[]), false),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(read.matches(&labels), fits, "{selector}");
        }
        assert!(serde_json::from_value::<LabelSelector>(one("Near", "a", &[])).is_err());
    }
}
