//! Reading and writing JSON the way typed API structs behave: an absent field is its zero value.

use serde_json::{Map, Value};

static NOTHING: Value = Value::Null;

/// A string field, empty if absent.
pub fn text<'a>(obj: &'a Value, key: &str) -> &'a str {
    obj.get(key).and_then(Value::as_str).unwrap_or("")
}

/// An integer field.
pub fn int(obj: &Value, key: &str) -> Option<i64> {
    obj.get(key).and_then(Value::as_i64)
}

/// A boolean field, false if absent.
pub fn flag(obj: &Value, key: &str) -> bool {
    obj.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// A field that is itself a struct; null if absent, so that lookups can be chained.
pub fn part<'a>(obj: &'a Value, key: &str) -> &'a Value {
    obj.get(key).unwrap_or(&NOTHING)
}

/// A list field, empty if absent.
pub fn list<'a>(obj: &'a Value, key: &str) -> &'a [Value] {
    obj.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The strings of a list field.
pub fn texts<'a>(obj: &'a Value, key: &str) -> impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator {
    list(obj, key).iter().map(|v| v.as_str().unwrap_or(""))
}

/// The entries of a map field, none if absent.
pub fn entries<'a>(obj: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    obj.get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(k, v)| (k.as_str(), v))
}

/// Whether a field is present.
pub fn has(obj: &Value, key: &str) -> bool {
    obj.get(key).is_some_and(|v| !v.is_null())
}

/// Whether a list, map or string field has something in it.
pub fn filled(obj: &Value, key: &str) -> bool {
    obj.get(key).is_some_and(|v| !is_empty(v))
}

fn is_empty(v: &Value) -> bool {
    match v {
        Value::Null => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Equality as Kubernetes sees it: absent, null and empty lists, maps or strings are the same.
pub fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a == b => true,
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(k, v)| same(Some(v), b.get(k)))
                && b.iter().all(|(k, v)| a.contains_key(k) || same(None, Some(v)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_f64() == b.as_f64(),
        (Some(v), None) | (None, Some(v)) => is_empty(v),
        (Some(a), Some(b)) => is_empty(a) && is_empty(b),
        (None, None) => true,
    }
}

/// A struct as upstream prints it where it shows its internal types: with capital field names.
pub fn internal(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let mut key = key.clone();
                if let Some(first) = key.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                (key, internal(value))
            })
            .collect(),
        Value::Array(items) => items.iter().map(internal).collect(),
        other => other.clone(),
    }
}

/// What a field of a Go struct shows when it is not set.
#[derive(Clone, Copy, Debug)]
pub enum Unset {
    /// A pointer, a list or a map.
    Null,
    /// A text.
    Text,
    /// A number.
    Zero,
}

/// A struct as upstream prints its internal type: every field, in Go's order and under Go's names. `fields` are the
/// names in Go and in JSON, and what stands for an absent one.
pub fn go_struct(value: &Value, fields: &[(&str, &str, Unset)]) -> Value {
    fields
        .iter()
        .map(|(name, key, unset)| {
            let shown = match (value.get(key), unset) {
                (Some(given), _) if !given.is_null() => internal(given),
                (_, Unset::Null) => Value::Null,
                (_, Unset::Text) => Value::from(""),
                (_, Unset::Zero) => Value::from(0),
            };
            ((*name).to_owned(), shown)
        })
        .collect()
}

/// The `type` and `rollingUpdate` of the strategies of workloads.
pub fn go_strategy(strategy: &Value) -> Value {
    let fields = [
        ("Type", "type", Unset::Text),
        ("RollingUpdate", "rollingUpdate", Unset::Null),
    ];
    go_struct(strategy, &fields)
}

/// A map as Go writes it: in the order of its keys.
pub fn sorted(map: &Value) -> Value {
    let Value::Object(entries) = map else {
        return map.clone();
    };
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| key.as_str());
    entries
        .into_iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Sets a field of an object; anything else becomes an object first.
fn insert(obj: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = obj {
        map.insert(key.to_owned(), value);
    } else {
        *obj = Value::Object(Map::from_iter([(key.to_owned(), value)]));
    }
}

/// A struct field for writing, made if absent.
pub fn part_mut<'a>(obj: &'a mut Value, key: &str) -> &'a mut Value {
    if !has(obj, key) {
        insert(obj, key, Value::Object(Map::new()));
    }
    &mut obj[key]
}

/// The elements of a list field for writing, none if absent.
pub fn each_mut<'a>(obj: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    obj.get_mut(key)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// Sets a field.
pub fn set(obj: &mut Value, key: &str, value: impl Into<Value>) {
    insert(obj, key, value.into());
}

/// Removes a field.
pub fn unset(obj: &mut Value, key: &str) -> Option<Value> {
    obj.as_object_mut().and_then(|map| map.shift_remove(key))
}

/// Sets a field unless it is present.
pub fn set_default(obj: &mut Value, key: &str, value: impl Into<Value>) {
    if !has(obj, key) {
        set(obj, key, value);
    }
}

/// Sets a string field unless it has a text: typed structs cannot tell an empty string from none.
pub fn set_default_text(obj: &mut Value, key: &str, value: &str) {
    if text(obj, key).is_empty() {
        set(obj, key, value);
    }
}

/// Sets a number field unless it has a value other than zero.
pub fn set_default_number(obj: &mut Value, key: &str, value: i64) {
    if int(obj, key).unwrap_or(0) == 0 {
        set(obj, key, value);
    }
}

/// Makes a field as it is in another object, absent if absent there.
pub fn copy(to: &mut Value, from: &Value, key: &str) {
    match from.get(key) {
        Some(value) => {
            if to.get(key) != Some(value) {
                set(to, key, value.clone());
            }
        }
        None => {
            unset(to, key);
        }
    }
}
