//! From JSON to views: what all kinds have in common.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Meta, Name, Unread};

pub(super) fn meta(object: &Value) -> Meta {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
    Meta {
        name: Name::new(text("namespace"), text("name")),
        generation: meta["generation"].as_i64().unwrap_or_default(),
        created: text("creationTimestamp"),
        labels: strings(&meta["labels"]),
        annotations: strings(&meta["annotations"]),
    }
}

/// Values that are not strings are left out: the API server lets none through.
pub(super) fn strings(map: &Value) -> BTreeMap<String, String> {
    map.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// A part of an object as a type. A field that is null is none, as in Go.
pub(super) fn part<T: DeserializeOwned>(value: &Value, at: &str) -> Result<T, String> {
    let read = if has_null(value) {
        let mut whole = value.clone();
        drop_nulls(&mut whole);
        T::deserialize(whole)
    } else {
        T::deserialize(value)
    };
    read.map_err(|error| format!("{at}: {error}"))
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(|field| field.is_null() || has_null(field)),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

pub(super) fn unread<T>(why: String) -> Unread<T> {
    Unread { why, rest: None }
}

/// A label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Selector {
    /// Why it cannot be used, if so.
    pub fn fault(&self) -> Option<String> {
        self.match_expressions
            .iter()
            .find_map(|one| match one.operator.as_str() {
                "In" | "NotIn" if one.values.is_empty() => Some(format!(
                    "operator {} of key {:?} needs values",
                    one.operator, one.key
                )),
                "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
                other => Some(format!("operator {other:?} of key {:?} is not known", one.key)),
            })
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let equal = self
            .match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value));
        equal
            && self.match_expressions.iter().all(|one| {
                let value = labels.get(&one.key);
                match one.operator.as_str() {
                    "In" => value.is_some_and(|value| one.values.contains(value)),
                    "NotIn" => !value.is_some_and(|value| one.values.contains(value)),
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{Selector, part};

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn selectors() {
        let cases: [(Value, bool, &str); 10] = [
            (json!({}), true, "nothing is asked for"),
            (json!({"matchLabels": {"a": "1"}}), true, "the label is there"),
            (json!({"matchLabels": {"a": "2"}}), false, "another value"),
            (
                json!({"matchLabels": null, "matchExpressions": null}),
                true,
                "null is nothing",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["0", "1"]}]}),
                true,
                "one of them",
            ),
            (
                json!({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}),
                false,
                "no such label",
            ),
            (
                json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}),
                true,
                "no label is not in",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                true,
                "it exists",
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
                false,
                "it exists",
            ),
            (
                json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}),
                false,
                "both count",
            ),
        ];
        for (selector, expected, why) in cases {
            let selector: Selector = part(&selector, "selector").unwrap();
            assert_eq!(selector.matches(&labels(&[("a", "1")])), expected, "{why}");
            assert_eq!(selector.fault(), None, "{why}");
        }
        let unknown: Selector = part(
            &json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "selector",
        )
        .unwrap();
        assert!(unknown.fault().is_some(), "In without values");
    }
}
