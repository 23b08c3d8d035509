//! One form for objects that mean the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fairway_kernel_kinds::strategy;
use fairway_kernel_schema::builtin::{self, KindInfo, UnknownFields};
use serde_json::{Map, Value};

use super::merge::project;
use crate::key;

/// The built-in kind of an object.
pub(super) fn builtin_kind(object: &Value) -> Option<&'static KindInfo> {
    let (group, version) = key::group_version(object);
    builtin::kind(group, version, key::kind(object))
}

/// An object as the API server would write it: quantities in their canonical form, empty fields gone, numbers in one way.
/// One that does not fit its kind stays as it is, so that what is wrong with it stays visible.
pub(super) fn canonical(mut object: Value, ignore_aggregated_roles: bool) -> Value {
    whole_numbers(&mut object);
    if let Some(kind) = builtin_kind(&object) {
        let mut typed = object.clone();
        let result = builtin::check(kind, &mut typed, UnknownFields::Report);
        if result.errors.is_empty() && result.unknown.is_empty() {
            builtin::encode(kind, &mut typed);
            // The encoder also adds what is always written; only what the author wrote is compared.
            object = project(&object, typed);
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("creationTimestamp");
    }
    match (key::group(&object), key::kind(&object)) {
        ("", "Secret") => normalize_secret(&mut object),
        ("", "Endpoints") => normalize_endpoints(&mut object),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            normalize_role(&mut object, ignore_aggregated_roles);
        }
        _ => {}
    }
    object
}

/// Fills in what the API server would, where the kind is built in.
pub(super) fn fill_defaults(object: &mut Value) {
    let Some(kind) = builtin_kind(object) else {
        return;
    };
    // Defaults are written for objects whose fields have their types.
    let mut probe = object.clone();
    if builtin::check(kind, &mut probe, UnknownFields::Ignore)
        .errors
        .is_empty()
    {
        strategy(kind.group, kind.resource).default(object);
    }
}

/// `1.0` and `1` are one number to the API server.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 9e15 {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// `stringData` is how people write `data`.
pub(super) fn normalize_secret(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let texts = match fields.get("stringData") {
        Some(Value::Object(_)) => fields.shift_remove("stringData"),
        Some(Value::Null) => {
            fields.shift_remove("stringData");
            None
        }
        _ => None,
    };
    if let Some(Value::Object(texts)) = texts {
        let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
        if data.is_null() {
            *data = Value::Object(Map::new());
        }
        if let Some(data) = data.as_object_mut() {
            for (name, text) in texts {
                data.insert(name, BASE64.encode(text.as_str().unwrap_or_default()).into());
            }
        }
    }
    if let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) {
        data.values_mut()
            .filter(|value| value.is_null())
            .for_each(|value| *value = "".into());
    }
}

/// No rules and no list of rules are the same; the rules of an aggregated role are somebody else's.
fn normalize_role(object: &mut Value, ignore_aggregated: bool) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let aggregated = ignore_aggregated && fields.get("aggregationRule").is_some_and(Value::is_object);
    let empty = match fields.get("rules") {
        Some(Value::Array(rules)) => rules.is_empty(),
        Some(Value::Null) | None => true,
        Some(_) => false,
    };
    if aggregated || empty {
        fields.shift_remove("rules");
    }
}

/// The order of addresses, ports and subsets says nothing.
fn normalize_endpoints(object: &mut Value) {
    let Some(subsets) = object.get_mut("subsets").and_then(Value::as_array_mut) else {
        return;
    };
    for subset in subsets.iter_mut() {
        for port in subset["ports"].as_array_mut().into_iter().flatten() {
            if let Some(port) = port.as_object_mut() {
                port.entry("protocol").or_insert_with(|| "TCP".into());
            }
        }
        for list in ["addresses", "notReadyAddresses", "ports"] {
            if let Some(items) = subset.get_mut(list).and_then(Value::as_array_mut) {
                items.sort_by_cached_key(sortable);
            }
        }
    }
    subsets.sort_by_cached_key(sortable);
}

/// A text that is the same for equal values, whatever the order of their fields.
fn sortable(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}
