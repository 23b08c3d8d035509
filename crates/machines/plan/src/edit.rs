//! Changing objects in place, field by field, without a type that would lose what it does not know.

use serde_json::{Map, Value, json};

/// The object at a path; what is missing on the way is made, and what is none is replaced.
fn object<'v>(mut value: &'v mut Value, path: &[&str]) -> Option<&'v mut Map<String, Value>> {
    for name in path {
        value = here(value)?.entry(*name).or_insert_with(|| json!({}));
    }
    here(value)
}

fn here(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut()
}

/// The value at a path, if it is there.
pub(crate) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let found = path.iter().try_fold(value, |value, name| value.get(name))?;
    (!found.is_null()).then_some(found)
}

/// Whether there is something at a path that Go would not take for a zero.
pub(crate) fn is_set(value: &Value, path: &[&str]) -> bool {
    match at(value, path) {
        None => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

/// Sets a field unless something is there that is not a zero.
pub(crate) fn set_if_unset(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if !is_set(value, path) {
        set(value, path, new);
    }
}

/// Sets a field.
pub(crate) fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some((last, parents)) = path.split_last()
        && let Some(holder) = object(value, parents)
    {
        holder.insert((*last).to_owned(), new.into());
    }
}

/// The items of a list, if it is there.
pub(crate) fn items<'v>(value: &'v mut Value, path: &[&str]) -> impl Iterator<Item = &'v mut Value> {
    let list = path.iter().try_fold(value, |value, name| value.get_mut(name));
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Adds items to a list, which is made if it is not there.
pub(crate) fn append(value: &mut Value, path: &[&str], new: Vec<Value>) {
    let mut all = at(value, path)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    all.extend(new);
    set(value, path, all);
}
