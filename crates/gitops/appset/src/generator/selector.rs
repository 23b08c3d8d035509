//! Label selectors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Error;

/// Whether labels fit a selector; an empty one fits all.
pub fn matches(selector: &Value, labels: &BTreeMap<String, String>) -> Result<bool, Error> {
    for (name, wanted) in selector["matchLabels"].as_object().into_iter().flatten() {
        if labels.get(name).map(String::as_str) != wanted.as_str() {
            return Ok(false);
        }
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        if !fits(expression, labels)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fits(expression: &Value, labels: &BTreeMap<String, String>) -> Result<bool, Error> {
    let own = labels.get(expression["key"].as_str().unwrap_or_default());
    let listed = || {
        let values = expression["values"].as_array().into_iter().flatten();
        own.is_some_and(|own| values.filter_map(Value::as_str).any(|value| value == own))
    };
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => Ok(listed()),
        "NotIn" => Ok(!listed()),
        "Exists" => Ok(own.is_some()),
        "DoesNotExist" => Ok(own.is_none()),
        other => Err(Error::Generator(format!(
            "{other:?} is not a valid label selector operator; use In, NotIn, Exists or DoesNotExist"
        ))),
    }
}
