//! Labels and label selectors on one line.

use serde_json::{Map, Value};

use crate::field::{at, items, text};

/// Labels as `a=1,b=2` in the order of their keys; `<none>` if there are none.
pub(crate) fn format_labels(labels: Option<&Value>) -> String {
    let mut pairs: Vec<String> = entries(labels)
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.sort();
    none_if_empty(pairs.join(","))
}

/// A selector as `a=1,b in (x,y),!c`; `<none>` if it has no requirements.
pub(crate) fn format_selector(selector: Option<&Value>) -> String {
    match requirements(selector) {
        Some(text) => none_if_empty(text),
        None => "<error>".to_owned(),
    }
}

/// As [`format_selector`], but empty without requirements.
pub(crate) fn format_selector_or_empty(selector: Option<&Value>) -> String {
    requirements(selector).unwrap_or_else(|| "<invalid>".to_owned())
}

fn none_if_empty(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

fn entries(labels: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let map: Option<&Map<String, Value>> = labels.and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// None for a selector with an operator that does not exist.
fn requirements(selector: Option<&Value>) -> Option<String> {
    let Some(selector) = selector else {
        return Some(String::new());
    };
    let mut parts: Vec<(&str, String)> = entries(at(selector, "matchLabels"))
        .map(|(key, value)| (key, format!("{key}={value}")))
        .collect();
    for expression in items(selector, "matchExpressions") {
        let key = text(expression, "key");
        let values = || {
            let mut values: Vec<&str> = items(expression, "values").filter_map(Value::as_str).collect();
            values.sort_unstable();
            values.join(",")
        };
        let part = match text(expression, "operator") {
            "In" => format!("{key} in ({})", values()),
            "NotIn" => format!("{key} notin ({})", values()),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        parts.push((key, part));
    }
    parts.sort_by_key(|(key, _)| *key);
    Some(
        parts
            .into_iter()
            .map(|(_, part)| part)
            .collect::<Vec<_>>()
            .join(","),
    )
}

/// A selector in Go's debugging form, which admission policy bindings show.
pub(crate) fn debug_selector(selector: &Value) -> String {
    let mut labels: Vec<String> = entries(at(selector, "matchLabels"))
        .map(|(key, value)| format!("{key}: {value},"))
        .collect();
    labels.sort();
    let expressions: Vec<String> = items(selector, "matchExpressions")
        .map(|expression| {
            let values: Vec<&str> = items(expression, "values").filter_map(Value::as_str).collect();
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                text(expression, "key"),
                text(expression, "operator"),
                values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        expressions.concat()
    )
}
