//! Reading an object's fields, and the cells that many kinds share.
//!
//! Objects reach this crate after validation, but a table must not fail on one that is odd: what is missing or of
//! another type reads as empty.

use serde_json::Value;

use crate::duration::{human_duration, unix_seconds};

pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

/// The field at a path such as `spec.type`; none if it is missing or null.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path.split('.').try_fold(object, |value, name| value.get(name))?;
    (!found.is_null()).then_some(found)
}

/// The text at a path, or empty.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a path, or `fallback` where there is no such field.
pub(crate) fn text_or<'a>(object: &'a Value, path: &str, fallback: &'a str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or(fallback)
}

/// The text at a path, or `fallback` where there is none or it is empty.
pub(crate) fn filled_or<'a>(object: &'a Value, path: &str, fallback: &'a str) -> &'a str {
    match text(object, path) {
        "" => fallback,
        found => found,
    }
}

/// The number at a path, or 0.
pub(crate) fn number(object: &Value, path: &str) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The boolean at a path, or `fallback`.
pub(crate) fn flag(object: &Value, path: &str, fallback: bool) -> bool {
    at(object, path).and_then(Value::as_bool).unwrap_or(fallback)
}

/// The elements of the list at a path.
pub(crate) fn items<'a>(object: &'a Value, path: &str) -> std::slice::Iter<'a, Value> {
    at(object, path)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
}

/// How many elements the list or map at a path has.
pub(crate) fn count(object: &Value, path: &str) -> i64 {
    let length = match at(object, path) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// The texts in the list at a path, joined.
pub(crate) fn joined(object: &Value, path: &str, separator: &str) -> String {
    items(object, path)
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(separator)
}

/// A quantity or an int-or-string as it is written, or `fallback`.
pub(crate) fn scalar(object: &Value, path: &str, fallback: &str) -> String {
    match at(object, path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => fallback.to_owned(),
    }
}

pub(crate) fn name(object: &Value) -> Value {
    text(object, "metadata.name").into()
}

/// The condition of a type, as its fields.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "status.conditions").find(|condition| text(condition, "type") == kind)
}

pub(crate) fn condition_is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "status") == "True")
}

/// The time since the timestamp at a path.
pub(crate) fn since(object: &Value, path: &str, now: i64) -> String {
    match unix_seconds(text(object, path)) {
        Some(then) => human_duration(now.saturating_sub(then)),
        None => UNKNOWN.to_owned(),
    }
}

pub(crate) fn age(object: &Value, now: i64) -> Value {
    since(object, "metadata.creationTimestamp", now).into()
}

pub(crate) fn is_deleted(object: &Value) -> bool {
    at(object, "metadata.deletionTimestamp").is_some()
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    at(object, "metadata.annotations")?.get(key)?.as_str()
}

/// The names and the images of the containers in the pod spec at a path.
pub(crate) fn containers(object: &Value, pod_spec: &str) -> [Value; 2] {
    let list = at(object, pod_spec)
        .map(|spec| items(spec, "containers").as_slice())
        .unwrap_or_default();
    ["name", "image"].map(|field| {
        let cells: Vec<&str> = list.iter().map(|container| text(container, field)).collect();
        cells.join(",").into()
    })
}

/// The first three of a list, and how many more there are; `fallback` for none.
pub(crate) fn shortened(all: &[String], fallback: &str) -> String {
    const SHOWN: usize = 3;
    match all.len() {
        0 => fallback.to_owned(),
        n if n <= SHOWN => all.join(","),
        n => format!("{} + {} more...", all[..SHOWN].join(","), n - SHOWN),
    }
}
