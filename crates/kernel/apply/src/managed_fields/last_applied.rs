//! The annotation in which client-side apply keeps what it applied.
//!
//! A user who moves from client-side to server-side apply keeps the name `kubectl`. What the annotation proves to be theirs
//! must not conflict, and the annotation must stay true, so that the way back is open.

use serde_json::Value;

use super::metadata;
use crate::fieldpath::Set;
use crate::fieldpath::codec::write_json;
use crate::typed::Typed;
use crate::typed::validate::Duplicates;

/// The manager for which this is done.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Kubernetes' limit for all annotations of an object.
const MAX_ANNOTATIONS_SIZE: usize = 256 * 1024;

/// The fields that the annotation says were applied, and that still have the applied value.
pub(super) fn owned_by_last_applied(live: &Typed<'_, '_>, api_version: &str) -> Option<Set> {
    let annotation = metadata(&live.value)?
        .get("annotations")?
        .get(ANNOTATION)?
        .as_str()
        .filter(|a| !a.is_empty())?;
    live.validate(Duplicates::Refuse).ok()?;
    let last: Value = serde_json::from_str(annotation).ok()?;
    last.get("kind")?.as_str().filter(|kind| !kind.is_empty())?;
    if last.get("apiVersion")?.as_str() != Some(api_version) {
        return None;
    }
    let last = Typed {
        zero_values: false,
        ..Typed::new(live.shapes, live.shape, &last)
    };
    last.validate(Duplicates::Refuse).ok()?;
    let changes = last.compare(live).ok()?;
    let applied = last.to_field_set().ok()?;
    Some(
        applied
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed),
    )
}

/// Writes the configuration into the annotation of an object that has one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    let annotations = object
        .get_mut("metadata")
        .and_then(|m| m.get_mut("annotations"))
        .and_then(Value::as_object_mut);
    let Some(annotations) = annotations else {
        return;
    };
    if annotations
        .get(ANNOTATION)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return;
    }
    annotations.insert(ANNOTATION.to_owned(), Value::from(without_annotation(config)));
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MAX_ANNOTATIONS_SIZE {
        annotations.shift_remove(ANNOTATION);
    }
}

fn without_annotation(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.shift_remove(ANNOTATION);
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
    let mut text = String::new();
    write_json(&mut text, &config);
    text.push('\n');
    text
}
