//! The annotations by which manifests talk to the engine.

use serde_json::{Map, Value};

/// Options of a sync, separated by commas.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// The wave that an object belongs to.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// The phases that an object is a hook of.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// When a hook is deleted.
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// Options of the comparison.
pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
/// Whose an object is.
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Of which installation an object is.
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";
/// Since when a deletion that needs confirmation is confirmed.
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// What `kubectl apply` applied last.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Keeps a hook until its result has been seen.
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// An annotation; empty if there is none.
pub fn get<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["annotations"][name]
        .as_str()
        .unwrap_or_default()
}

/// Whether there is such an annotation at all.
pub fn has(object: &Value, name: &str) -> bool {
    object["metadata"]["annotations"]
        .get(name)
        .is_some_and(Value::is_string)
}

/// The parts of an annotation with commas, each once, in their order.
pub fn list<'a>(object: &'a Value, name: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    for part in get(object, name).split(',').map(str::trim) {
        if !part.is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Whether an annotation with commas has a part.
pub fn has_option(object: &Value, name: &str, option: &str) -> bool {
    list(object, name).contains(&option)
}

/// Writes an annotation.
pub fn set(object: &mut Value, name: &str, value: &str) {
    set_in(object, "annotations", name, value);
}

/// Takes an annotation away, and the map of them if it was the last.
pub fn remove(object: &mut Value, name: &str) {
    remove_in(object, "annotations", name);
}

/// A label; empty if there is none.
pub fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["labels"][name].as_str().unwrap_or_default()
}

/// Writes a label.
pub fn set_label(object: &mut Value, name: &str, value: &str) {
    set_in(object, "labels", name, value);
}

/// Takes a label away, and the map of them if it was the last.
pub fn remove_label(object: &mut Value, name: &str) {
    remove_in(object, "labels", name);
}

/// A field that holds a map, made if it is not there.
pub(crate) fn map_at<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let fields = object.as_object_mut()?;
    let slot = fields.entry(field).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

fn set_in(object: &mut Value, which: &str, name: &str, value: &str) {
    let metadata = map_at(object, "metadata")
        .is_some()
        .then(|| &mut object["metadata"]);
    if let Some(map) = metadata.and_then(|metadata| map_at(metadata, which)) {
        map.insert(name.to_owned(), Value::from(value));
    }
}

fn remove_in(object: &mut Value, which: &str, name: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(map) = metadata.get_mut(which).and_then(Value::as_object_mut) {
        map.shift_remove(name);
        if map.is_empty() {
            metadata.shift_remove(which);
        }
    }
}
