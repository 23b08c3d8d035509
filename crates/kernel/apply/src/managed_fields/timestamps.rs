//! Writes that change nothing but times.

use serde_json::{Map, Value};

use super::managed_fields_of;
use crate::value_order;

/// Restores the times in the record of `new` if they are all that differs from `old`, so that both are equal and the
/// write can be skipped.
pub fn keep_unchanged_timestamps(new: &mut Value, old: &Value) {
    let entries = |object: &Value| {
        managed_fields_of(object)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (old_entries, new_entries) = (entries(old), entries(new));
    let pairs = || old_entries.iter().zip(&new_entries);
    let time_changed = pairs().any(|(old, new)| old.get("time") != new.get("time"));
    let same_owners =
        old_entries.len() == new_entries.len() && pairs().all(|(old, new)| equal_except(old, new, &["time"]));
    if time_changed
        && same_owners
        && equal_except(old, new, &["metadata", "managedFields"])
        && let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("managedFields".to_owned(), Value::Array(old_entries));
    }
}

/// Whether two objects are equal but for what is under the path.
fn equal_except(left: &Value, right: &Value, path: &[&str]) -> bool {
    let (Value::Object(left), Value::Object(right), Some((first, rest))) = (left, right, path.split_first())
    else {
        return value_order::equals(left, right);
    };
    let others = |map: &Map<String, Value>| map.keys().filter(|key| key != first).count();
    let is_same = |(key, value): (&String, &Value)| {
        right
            .get(key)
            .is_some_and(|other| value_order::equals(value, other))
    };
    others(left) == others(right)
        && left.iter().filter(|(key, _)| key != first).all(is_same)
        && match (left.get(*first), right.get(*first)) {
            _ if rest.is_empty() => true,
            (Some(left), Some(right)) => equal_except(left, right, rest),
            (left, right) => left.is_none() && right.is_none(),
        }
}
