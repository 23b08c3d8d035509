//! The `scale` subresource of kinds with replicas: read from the object, write back into it.

use serde_json::{Value, json};

use crate::at::{At, Errors};
use crate::read::{self, int, part, part_mut, text};
use crate::selector;
use fairway_kernel_schema::field::FieldError;

/// The Scale of an object of `resource`.
pub fn get(resource: &str, obj: &Value) -> Value {
    let metadata = part(obj, "metadata");
    let mut scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        read::copy(&mut scale["metadata"], metadata, key);
    }
    let spec = part(obj, "spec");
    let mut wanted = json!({});
    // Zero is not written out, as in the typed Scale.
    if let Some(replicas) = int(spec, "replicas").filter(|r| *r != 0) {
        read::set(&mut wanted, "replicas", replicas);
    }
    read::set(&mut scale, "spec", wanted);
    let mut status = json!({"replicas": int(part(obj, "status"), "replicas").unwrap_or(0)});
    let selected = if resource == "replicationcontrollers" {
        selector::map_text(part(spec, "selector"))
    } else {
        selector::text(part(spec, "selector"))
    };
    if !selected.is_empty() {
        read::set(&mut status, "selector", selected);
    }
    read::set(&mut scale, "status", status);
    scale
}

/// Why a Scale was not taken.
#[derive(Clone, Debug, PartialEq)]
pub enum ScaleError {
    /// The Scale itself is wrong (422).
    Invalid(Vec<FieldError>),
    /// It is about another version of the object (409).
    Conflict,
}

/// Writes the replicas of a Scale into an object; returns whether they changed. The caller then runs the main update.
///
/// # Errors
/// If the Scale is invalid, or about another object or version.
pub fn set(obj: &mut Value, scale: &Value) -> Result<bool, ScaleError> {
    let metadata = part(scale, "metadata");
    let replicas = int(part(scale, "spec"), "replicas").unwrap_or(0);
    let mut errs = Errors::new();
    errs.non_negative(&At::new("spec.replicas"), replicas);
    let name = text(metadata, "name");
    if !name.is_empty() && name != crate::meta::name(obj) {
        errs.invalid(&At::new("metadata.name"), name, "field is immutable");
    }
    if !errs.is_empty() {
        return Err(ScaleError::Invalid(errs.into_vec()));
    }
    let own = part(obj, "metadata");
    for key in ["uid", "resourceVersion"] {
        if !text(metadata, key).is_empty() && text(metadata, key) != text(own, key) {
            return Err(ScaleError::Conflict);
        }
    }
    let spec = part_mut(obj, "spec");
    let changed = int(spec, "replicas").unwrap_or(0) != replicas;
    read::set(spec, "replicas", replicas);
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ScaleError, get, set};

    #[test]
    fn round_trip() {
        let mut object = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": {"x": "y"}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}}}, "status": {"replicas": 2}});
        let mut scale = get("deployments", &object);
        assert_eq!(
            scale,
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5"},
                "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=1,b=2"}})
        );
        scale["spec"]["replicas"] = json!(7);
        assert_eq!(set(&mut object, &scale), Ok(true));
        assert_eq!(object["spec"]["replicas"], 7);
        scale["spec"]["replicas"] = json!(-1);
        assert!(matches!(set(&mut object, &scale), Err(ScaleError::Invalid(errs))
            if errs[0].to_string() == "spec.replicas: Invalid value: -1: must be greater than or equal to 0"));
        scale["spec"]["replicas"] = json!(1);
        scale["metadata"]["resourceVersion"] = json!("4");
        assert_eq!(set(&mut object, &scale), Err(ScaleError::Conflict));
    }
}
