//! Which labels a selector picks.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels.
pub(crate) type Labels = BTreeMap<String, String>;

/// Whether a requirement holds for a value.
fn holds(operator: &str, values: &[String], value: Option<&str>) -> bool {
    let listed = |value: &str| values.iter().any(|it| it == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = |is: fn(i64, i64) -> bool| {
        let wanted = values.first().and_then(|it| number(it));
        matches!((value.and_then(number), wanted), (Some(value), Some(wanted)) if is(value, wanted))
    };
    match operator {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(|value, wanted| value > wanted),
        "Lt" => compared(|value, wanted| value < wanted),
        // What nobody understands picks nothing.
        _ => false,
    }
}

/// Whether a selector picks labels. None picks nothing, and an empty one everything.
pub(crate) fn picks(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    let exact = selector.match_labels.iter().flatten();
    let mut expressions = selector.match_expressions.iter().flatten();
    exact
        .into_iter()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|it| {
            let value = labels.get(&it.key).map(String::as_str);
            holds(&it.operator, it.values.as_deref().unwrap_or_default(), value)
        })
}

/// Whether a term picks a node. An empty one picks none.
pub(crate) fn picks_node(term: &NodeSelectorTerm, name: &str, labels: &Labels) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let check = |it: &NodeSelectorRequirement, value: Option<&str>| {
        holds(&it.operator, it.values.as_deref().unwrap_or_default(), value)
    };
    let says_something = !expressions.is_empty() || !fields.is_empty();
    says_something
        && expressions
            .iter()
            .all(|it| check(it, labels.get(&it.key).map(String::as_str)))
        && fields
            .iter()
            .all(|it| it.key == "metadata.name" && check(it, Some(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn labels() -> Labels {
        [("zone", "a"), ("cores", "8")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn selectors_of_labels() {
        for (selector, expected) in [
            (json!({}), true),
            (json!({"matchLabels": {"zone": "a"}}), true),
            (json!({"matchLabels": {"zone": "b"}}), false),
            (json!({"matchLabels": {"rack": "1"}}), false),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["1"]}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}),
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}),
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}),
                false,
            ),
        ] {
            let read: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(picks(Some(&read), &labels()), expected, "{selector}");
        }
        assert!(!picks(None, &labels()));
    }

    #[test]
    fn terms_of_nodes() {
        let on = |key: &str, operator: &str, value: &str| -> Value {
            json!([{"key": key, "operator": operator, "values": [value]}])
        };
        for (term, expected) in [
            (json!({}), false),
            (json!({"matchExpressions": on("cores", "Gt", "4")}), true),
            (json!({"matchExpressions": on("cores", "Lt", "4")}), false),
            (json!({"matchExpressions": on("zone", "Gt", "4")}), false),
            (json!({"matchFields": on("metadata.name", "In", "n1")}), true),
            (json!({"matchFields": on("metadata.name", "NotIn", "n1")}), false),
            (json!({"matchFields": on("spec.x", "NotIn", "n1")}), false),
            (
                json!({"matchExpressions": on("zone", "In", "a"), "matchFields": on("metadata.name", "In", "n2")}),
                false,
            ),
        ] {
            let read: NodeSelectorTerm = serde_json::from_value(term.clone()).unwrap();
            assert_eq!(picks_node(&read, "n1", &labels()), expected, "{term}");
        }
    }
}
