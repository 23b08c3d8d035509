//! What the server fills in before it looks at a definition.

use serde_json::{Map, Value, json};

use super::{flag, list, present, text};

fn object<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let map = value.as_object_mut()?;
    let slot = map.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

fn storage_version(crd: &Value) -> Option<String> {
    let versions = list(crd.get("spec")?, "versions");
    versions
        .iter()
        .find(|v| flag(v, "storage"))
        .map(|v| text(v, "name").to_owned())
}

/// Defaults of `spec`, and of the stored versions if there are none.
pub fn set_defaults(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").filter(|s| s.is_object()) else {
        return;
    };
    if let Some(names) = object(spec, "names") {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
        let unset = |names: &Map<String, Value>, field: &str| {
            names.get(field).and_then(Value::as_str).unwrap_or("").is_empty()
        };
        if unset(names, "singular") && !kind.is_empty() {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if unset(names, "listKind") && !kind.is_empty() {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    if present(spec, "conversion").is_none()
        && let Some(spec) = spec.as_object_mut()
    {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let service = spec.pointer_mut("/conversion/webhook/clientConfig/service");
    if let Some(service) = service.and_then(Value::as_object_mut) {
        let port = service.entry("port").or_insert(Value::Null);
        if port.is_null() {
            *port = 443.into();
        }
    }
    if crd
        .get("status")
        .is_none_or(|s| list(s, "storedVersions").is_empty())
    {
        add_stored_version(crd);
    }
}

/// Adds the storage version to the stored ones, where it stays until objects were migrated.
fn add_stored_version(crd: &mut Value) {
    let Some(storage) = storage_version(crd) else {
        return;
    };
    let Some(status) = object(crd, "status") else {
        return;
    };
    let stored = status
        .entry("storedVersions")
        .or_insert_with(|| Value::Array(Vec::new()));
    if !stored.is_array() {
        *stored = Value::Array(Vec::new());
    }
    if let Some(stored) = stored.as_array_mut()
        && !stored.iter().any(|v| *v == storage)
    {
        stored.push(storage.into());
    }
}

/// A definition about to be created: its status is the server's.
pub fn prepare_for_create(crd: &mut Value) {
    if let Some(crd) = crd.as_object_mut() {
        crd.insert("status".to_owned(), Value::Object(Map::new()));
    }
    if let Some(metadata) = object(crd, "metadata") {
        metadata.insert("generation".to_owned(), 1.into());
    }
    set_defaults(crd);
    add_stored_version(crd);
}

/// A definition about to be updated: the status stays, except that a new storage version joins the stored ones.
pub fn prepare_for_update(crd: &mut Value, old: &Value) {
    let status = old
        .get("status")
        .cloned()
        .unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(crd) = crd.as_object_mut() {
        crd.insert("status".to_owned(), status);
    }
    set_defaults(crd);
    add_stored_version(crd);
    let generation = old
        .pointer("/metadata/generation")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    let changed = crd.get("spec") != old.get("spec");
    if let Some(metadata) = object(crd, "metadata") {
        metadata.insert("generation".to_owned(), (generation + i64::from(changed)).into());
    }
}

/// A definition whose status is about to be updated: the rest stays.
pub fn prepare_for_status_update(crd: &mut Value, old: &Value) {
    if let (Some(crd), Some(spec)) = (crd.as_object_mut(), old.get("spec")) {
        crd.insert("spec".to_owned(), spec.clone());
    }
}
