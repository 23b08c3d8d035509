//! Sorting, with texts in upper and lower case taken for the same unless somebody objects.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::error::Error;
use super::super::value::Value;

fn compared(left: &Value, right: &Value, case_sensitive: bool) -> Ordering {
    let folded = |value: &Value| match value {
        Value::Text(text) if !case_sensitive => Value::text(text.to_uppercase()),
        other => other.clone(),
    };
    folded(left).compare(&folded(right)).unwrap_or(Ordering::Equal)
}

/// Items in the order of their keys.
pub(super) fn sorted(items: Vec<Value>, key: impl Fn(&Value) -> Value, case_sensitive: bool) -> Vec<Value> {
    let mut keyed: Vec<(Value, Value)> = items.into_iter().map(|item| (key(&item), item)).collect();
    // What does not compare is left where it is; a sort must not fail for it.
    keyed.sort_by(|(left, _), (right, _)| compared(left, right, case_sensitive));
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// The entries of a map as pairs, in the order of their keys or values.
pub(super) fn sorted_map(of: &Value, by: &str, case_sensitive: bool) -> Result<Value, Error> {
    let Value::Map(entries) = of else {
        return Err(Error::failed("dictsort wants a map"));
    };
    let mut sorted: Vec<(Arc<str>, Value)> = entries.to_vec();
    sorted.sort_by(|left, right| match by {
        "value" => compared(&left.1, &right.1, case_sensitive),
        _ => compared(
            &Value::Text(Arc::clone(&left.0)),
            &Value::Text(Arc::clone(&right.0)),
            case_sensitive,
        ),
    });
    let pairs = sorted
        .into_iter()
        .map(|(key, value)| Value::list(vec![Value::Text(key), value]));
    Ok(Value::list(pairs.collect()))
}
