//! Labels and label selectors: what is valid, and what matches.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::at::{At, Errors};
use crate::{read, validation};

/// A map of labels.
pub fn validate_labels<'a>(
    errs: &mut Errors,
    at: &At<'_>,
    labels: impl Iterator<Item = (&'a str, &'a Value)>,
) {
    for (key, value) in labels {
        validate_label_name(errs, at, key);
        let value = value.as_str().unwrap_or("");
        errs.all_invalid(at, value, validation::is_label_value(value));
    }
}

/// The key of a label.
pub fn validate_label_name(errs: &mut Errors, at: &At<'_>, key: &str) {
    errs.all_invalid(at, key, validation::is_qualified_name(key));
}

/// A label selector with `matchLabels` and `matchExpressions`.
pub fn validate(errs: &mut Errors, at: &At<'_>, selector: &Value) {
    validate_labels(
        errs,
        &at.field("matchLabels"),
        read::entries(selector, "matchLabels"),
    );
    let expressions = at.field("matchExpressions");
    for (i, requirement) in read::list(selector, "matchExpressions").iter().enumerate() {
        validate_requirement(errs, &expressions.index(i), requirement);
    }
}

fn validate_requirement(errs: &mut Errors, at: &At<'_>, requirement: &Value) {
    let values = at.field("values");
    let filled = read::filled(requirement, "values");
    match read::text(requirement, "operator") {
        "In" | "NotIn" if !filled => {
            errs.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if filled => {
            errs.forbidden(
                &values,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            );
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errs.invalid(&at.field("operator"), other, "not a valid selector operator"),
    }
    validate_label_name(errs, &at.field("key"), read::text(requirement, "key"));
    for (i, value) in read::texts(requirement, "values").enumerate() {
        errs.all_invalid(&values.index(i), value, validation::is_label_value(value));
    }
}

/// Whether a selector can be evaluated: its operators exist and have the values they need.
pub fn is_usable(selector: &Value) -> bool {
    let mut errs = Errors::new();
    validate(&mut errs, &At::new(""), selector);
    errs.is_empty()
}

/// Whether a selector selects by anything at all.
pub fn is_empty(selector: &Value) -> bool {
    !read::filled(selector, "matchLabels") && !read::filled(selector, "matchExpressions")
}

/// Whether a label selector matches a set of labels; an empty one matches all.
pub fn matches(selector: &Value, labels: &Value) -> bool {
    let by_label = read::entries(selector, "matchLabels").all(|(key, want)| labels.get(key) == Some(want));
    by_label
        && read::list(selector, "matchExpressions")
            .iter()
            .all(|requirement| {
                let have = labels.get(read::text(requirement, "key")).and_then(Value::as_str);
                let among = || read::texts(requirement, "values").any(|v| Some(v) == have);
                match read::text(requirement, "operator") {
                    "In" => have.is_some() && among(),
                    "NotIn" => have.is_none() || !among(),
                    "Exists" => have.is_some(),
                    "DoesNotExist" => have.is_none(),
                    _ => false,
                }
            })
}

/// Whether a plain map selector matches a set of labels.
pub fn map_matches(selector: &Value, labels: &Value) -> bool {
    selector
        .as_object()
        .is_none_or(|map| map.iter().all(|(key, want)| labels.get(key) == Some(want)))
}

/// A plain map as the text form of a selector, sorted by key: `a=b,c=d`.
pub fn map_text(selector: &Value) -> String {
    let sorted: BTreeMap<&str, &str> = selector
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.as_str(), v.as_str().unwrap_or("")))
        .collect();
    sorted
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// A label selector as text, as `status.selector` of a scale holds it.
pub fn text(selector: &Value) -> String {
    let mut requirements: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, value) in read::entries(selector, "matchLabels") {
        requirements
            .entry(key)
            .or_default()
            .push(format!("{key}={}", value.as_str().unwrap_or("")));
    }
    for requirement in read::list(selector, "matchExpressions") {
        let key = read::text(requirement, "key");
        let mut values: Vec<&str> = read::texts(requirement, "values").collect();
        values.sort_unstable();
        let text = match read::text(requirement, "operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        requirements.entry(key).or_default().push(text);
    }
    requirements.into_values().flatten().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{matches, text, validate};
    use crate::at::{At, Errors};

    #[test]
    fn matching() {
        let labels = json!({"app": "web", "tier": "front"});
        let cases = [
            (json!({}), true, "an empty selector matches all"),
            (json!({"matchLabels": {"app": "web"}}), true, "by label"),
            (json!({"matchLabels": {"app": "db"}}), false, "other value"),
            (
                json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}),
                true,
                "in",
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}),
                true,
                "absent is not in",
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]}),
                false,
                "absent",
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
                true,
                "absent",
            ),
        ];
        for (selector, expected, reason) in cases {
            assert_eq!(matches(&selector, &labels), expected, "{reason}");
        }
    }

    #[test]
    fn as_text() {
        let selector = json!({
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]
        });
        assert_eq!(text(&selector), "a=1,b=2,c notin (x,y),!d");
    }

    #[test]
    fn faults() {
        let selector = json!({"matchLabels": {"a b": "c"}, "matchExpressions": [
            {"key": "x", "operator": "In"}, {"key": "x", "operator": "Exists", "values": ["a"]}, {"key": "x", "operator": "Maybe"}]});
        let mut errs = Errors::new();
        validate(&mut errs, &At::new("spec.selector"), &selector);
        let found: Vec<String> = errs.into_vec().iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found[0]
                .starts_with("spec.selector.matchLabels: Invalid value: \"a b\": name part must consist of")
        );
        assert_eq!(
            found[1],
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        );
        assert_eq!(
            found[3],
            "spec.selector.matchExpressions[2].operator: Invalid value: \"Maybe\": not a valid selector operator"
        );
    }
}
